"""Component maps such as `{year: 1984, week: 10, dayOfWeek: 3}` laid over a base value, or over nothing.

Without a base, a component needs every bigger one of its family; with a base, what is left out comes from the base.
A day that is inherited moves to the end of a shorter month; a day that is given must exist.

Invariant: a map never has an effect that depends on the order of its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anabranch.model.temporal import calendar
from anabranch.model.temporal.refusals import kind_of, unknown_name, wrong_kind, wrong_value
from anabranch.model.temporal.values import Date, LocalTime, require_range

TemporalFields = Mapping[str, object]

CALENDAR = ("month", "day")
WEEK = ("week", "dayOfWeek")
QUARTER = ("quarter", "dayOfQuarter")
ORDINAL = ("ordinalDay",)
DATE_FAMILIES = (CALENDAR, WEEK, QUARTER, ORDINAL)
DATE_COMPONENTS = ("year", *CALENDAR, *WEEK, *QUARTER, *ORDINAL)
SUBSECONDS = ("millisecond", "microsecond", "nanosecond")
TIME_COMPONENTS = ("hour", "minute", "second", *SUBSECONDS)


def require_known(fields: TemporalFields, function: str, allowed: Iterable[str]) -> None:
    """Refuse a map with a key that means nothing to this function."""
    names = tuple(allowed)
    for name in fields:
        if name not in names:
            raise unknown_name(f"component of {function}()", name, names)


def has_any(fields: TemporalFields, names: Iterable[str]) -> bool:
    return any(name in fields for name in names)


def integer_field(fields: TemporalFields, name: str, default: int) -> int:
    """An integer of the map, or the default when it is not there."""
    if name not in fields:
        return default
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_kind(f"{name} must be an integer, not {kind_of(value)}")
    return value


def date_from_fields(fields: TemporalFields, base: Date | None, require_full: bool = False) -> Date:
    """A date from its components; `require_full` when a time follows, so that the day must be named."""
    families = [family for family in DATE_FAMILIES if has_any(fields, family)]
    if len(families) > 1:
        first, second = (next(name for name in family if name in fields) for family in families[:2])
        raise wrong_value(f"{first} and {second} cannot be given together", "choose one way to name the day")
    family = families[0] if families else CALENDAR
    if base is None:
        require_chain(fields, ("year", *family), to_the_last=require_full)
    if family is WEEK:
        return _week_date(fields, base)
    if family is QUARTER:
        return _quarter_date(fields, base)
    year = integer_field(fields, "year", base.year if base else 0)
    if family is ORDINAL:
        return Date.of_ordinal(year, integer_field(fields, "ordinalDay", 1))
    month = require_range("month", integer_field(fields, "month", base.month if base else 1), 1, 12)
    require_range("year", year, calendar.MIN_YEAR, calendar.MAX_YEAR)
    inherited_day = min(base.day, calendar.days_in_month(year, month)) if base else 1
    return Date(year, month, integer_field(fields, "day", inherited_day))


def _week_date(fields: TemporalFields, base: Date | None) -> Date:
    base_year, base_week, base_day = calendar.week_date(base.epoch_day) if base else (0, 1, 1)
    year = integer_field(fields, "year", base_year)
    inherited_week = min(base_week, calendar.weeks_in_week_year(year))
    return Date.of_week(
        year, integer_field(fields, "week", inherited_week), integer_field(fields, "dayOfWeek", base_day)
    )


def _quarter_date(fields: TemporalFields, base: Date | None) -> Date:
    year = integer_field(fields, "year", base.year if base else 0)
    base_quarter = calendar.quarter_of_month(base.month) if base else 1
    quarter = require_range("quarter", integer_field(fields, "quarter", base_quarter), 1, 4)
    if base is None or "dayOfQuarter" in fields:
        return Date.of_quarter(year, quarter, integer_field(fields, "dayOfQuarter", 1))
    month = base.month + 3 * (quarter - base_quarter)
    return Date(year, month, min(base.day, calendar.days_in_month(year, month)))


def time_from_fields(fields: TemporalFields, base: LocalTime | None) -> LocalTime:
    """A time of day from its components; the three parts of a second are replaced together."""
    if base is None:
        require_chain(fields, ("hour", "minute", "second"))
        if has_any(fields, SUBSECONDS) and "second" not in fields:
            given = next(name for name in SUBSECONDS if name in fields)
            raise wrong_value(f"{given} cannot be given without second")
    nanosecond = base.nanosecond if base else 0
    return LocalTime(
        integer_field(fields, "hour", base.hour if base else 0),
        integer_field(fields, "minute", base.minute if base else 0),
        integer_field(fields, "second", base.second if base else 0),
        subsecond_nanos(fields) if has_any(fields, SUBSECONDS) else nanosecond,
    )


def subsecond_nanos(fields: TemporalFields) -> int:
    """Nanoseconds of a second: each part is counted within the next bigger part that is given."""
    millis = require_range("millisecond", integer_field(fields, "millisecond", 0), 0, 999)
    most_micros = 999 if "millisecond" in fields else 999_999
    micros = require_range("microsecond", integer_field(fields, "microsecond", 0), 0, most_micros)
    if "microsecond" in fields:
        most_nanos = 999
    else:
        most_nanos = 999_999 if "millisecond" in fields else 999_999_999
    nanos = require_range("nanosecond", integer_field(fields, "nanosecond", 0), 0, most_nanos)
    return millis * 1_000_000 + micros * 1000 + nanos


def require_chain(fields: TemporalFields, chain: tuple[str, ...], to_the_last: bool = False) -> None:
    """Refuse a component without the bigger ones it needs: a day without a month, a minute without an hour."""
    given = [name for name in chain if name in fields]
    if not given and not to_the_last and chain[0] != "year":
        return
    last = chain[-1] if to_the_last else (given[-1] if given else chain[0])
    for name in chain[: chain.index(last) + 1]:
        if name not in fields:
            message = f"{last} cannot be given without {name}" if last in fields else f"{name} is missing"
            raise wrong_value(message, "every bigger component must be there too")
