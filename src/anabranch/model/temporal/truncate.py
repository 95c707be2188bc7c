"""Truncation: the nearest earlier boundary of a unit, then single components laid over it.

The result has the type of the function that was called; the input may be any value that has the fields the unit
needs. A zone that is named replaces the input's zone without moving the clock.

Invariant: without overriding components, truncating twice to a unit is truncating once.
"""

from __future__ import annotations

from anabranch.model.temporal import calendar
from anabranch.model.temporal.construct import date_part, time_part, zone_field, zone_part
from anabranch.model.temporal.fields import (
    DATE_COMPONENTS,
    SUBSECONDS,
    TIME_COMPONENTS,
    TemporalFields,
    date_from_fields,
    has_any,
    require_known,
    subsecond_nanos,
    time_from_fields,
)
from anabranch.model.temporal.format import NANOS_PER_SECOND
from anabranch.model.temporal.refusals import unknown_name, wrong_value
from anabranch.model.temporal.values import MIDNIGHT, Date, DateTime, LocalDateTime, LocalTime, Time
from anabranch.model.temporal.zones import UTC

DATE_UNITS = ("millennium", "century", "decade", "year", "weekYear", "quarter", "month", "week", "day")
YEARS_OF_UNIT = {"millennium": 1000, "century": 100, "decade": 10, "year": 1}
NANOS_OF_UNIT = {
    "hour": 3600 * NANOS_PER_SECOND,
    "minute": 60 * NANOS_PER_SECOND,
    "second": NANOS_PER_SECOND,
    "millisecond": 1_000_000,
    "microsecond": 1000,
}
UNITS = (*DATE_UNITS, *NANOS_OF_UNIT)


def truncate_date(unit: str, value: object, fields: TemporalFields) -> Date:
    require_known(fields, "date.truncate", DATE_COMPONENTS)
    return date_from_fields(fields, _date_at(_known_unit(unit, DATE_UNITS, "date"), value))


def truncate_local_time(unit: str, value: object, fields: TemporalFields) -> LocalTime:
    require_known(fields, "localtime.truncate", TIME_COMPONENTS)
    return _time_at(_known_unit(unit, ("day", *NANOS_OF_UNIT), "localtime"), value, fields)


def truncate_time(unit: str, value: object, fields: TemporalFields, now_seconds: int) -> Time:
    require_known(fields, "time.truncate", ("timezone", *TIME_COMPONENTS))
    local = _time_at(_known_unit(unit, ("day", *NANOS_OF_UNIT), "time"), value, fields)
    named = zone_field(fields)
    if named is not None:
        return Time(local, named.offset_at(now_seconds))
    match value:
        case Time() | DateTime():
            return Time(local, value.offset_seconds)
        case _:
            return Time(local)


def truncate_local_date_time(unit: str, value: object, fields: TemporalFields) -> LocalDateTime:
    require_known(fields, "localdatetime.truncate", (*DATE_COMPONENTS, *TIME_COMPONENTS))
    return _local_date_time_at(_known_unit(unit, UNITS, "localdatetime"), value, fields)


def truncate_date_time(unit: str, value: object, fields: TemporalFields) -> DateTime:
    require_known(fields, "datetime.truncate", ("timezone", *DATE_COMPONENTS, *TIME_COMPONENTS))
    local = _local_date_time_at(_known_unit(unit, UNITS, "datetime"), value, fields)
    offset = value.offset_seconds if isinstance(value, DateTime) else None
    return DateTime.of(local, zone_field(fields) or zone_part(value) or UTC, offset)


def _known_unit(unit: str, allowed: tuple[str, ...], function: str) -> str:
    """The unit as this file spells it, or a refusal."""
    folded = {name.lower(): name for name in UNITS}
    found = folded.get(unit.lower())
    if found is None:
        raise unknown_name("unit", unit, allowed)
    if found not in allowed:
        raise wrong_value(f"{function}.truncate() cannot truncate to {found}", f"one of {', '.join(allowed)}")
    return found


def _local_date_time_at(unit: str, value: object, fields: TemporalFields) -> LocalDateTime:
    if unit in NANOS_OF_UNIT:
        return LocalDateTime(date_from_fields(fields, date_part(value)), _time_at(unit, value, fields))
    return LocalDateTime(date_from_fields(fields, _date_at(unit, value)), time_from_fields(fields, MIDNIGHT))


def _date_at(unit: str, value: object) -> Date:
    date = date_part(value)
    if unit in YEARS_OF_UNIT:
        years = YEARS_OF_UNIT[unit]
        return Date(date.year // years * years)
    match unit:
        case "weekYear":
            return Date.of_week(calendar.week_date(date.epoch_day)[0], 1)
        case "quarter":
            return Date.of_quarter(date.year, calendar.quarter_of_month(date.month))
        case "month":
            return Date(date.year, date.month)
        case "week":
            return date.plus_days(1 - calendar.weekday(date.epoch_day))
        case _:
            return date


def _time_at(unit: str, value: object, fields: TemporalFields) -> LocalTime:
    nanos = time_part(value).nano_of_day
    if unit == "day":
        return time_from_fields(fields, MIDNIGHT)
    kept = LocalTime.from_nano_of_day(nanos - nanos % NANOS_OF_UNIT[unit])
    result = time_from_fields(fields, kept)
    below = {"millisecond": SUBSECONDS[1:], "microsecond": SUBSECONDS[2:]}.get(unit, ())
    if has_any(fields, below) and not has_any(fields, set(SUBSECONDS) - set(below)):
        # What was kept of the second stays: only the part below the unit is given.
        extra = subsecond_nanos({**fields, **dict.fromkeys(_bigger(below), 0)})
        return LocalTime(result.hour, result.minute, result.second, kept.nanosecond + extra)
    return result


def _bigger(below: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in SUBSECONDS if name not in below)
