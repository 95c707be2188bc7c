"""Temporal values from maps and from other temporal values: `datetime({date: d, time: t, timezone: 'Z'})`.

`date`, `time` and `datetime` in a map select a group of components from another value; the other entries then
replace single components. A zone that was selected is kept, and naming another one then moves the same instant
there; where no zone was selected, naming one only says which clock was read.

Invariant: a value is a pure function of its map; the clock is asked only by functions.py.
"""

from __future__ import annotations

from anabranch.model.temporal.duration import Duration, exact
from anabranch.model.temporal.fields import (
    DATE_COMPONENTS,
    TIME_COMPONENTS,
    TemporalFields,
    date_from_fields,
    has_any,
    integer_field,
    require_known,
    time_from_fields,
)
from anabranch.model.temporal.refusals import kind_of, wrong_kind, wrong_value
from anabranch.model.temporal.values import MIDNIGHT, Date, DateTime, LocalDateTime, LocalTime, Time
from anabranch.model.temporal.zones import UTC, Zone, parse_zone

DURATION_COMPONENTS = (
    "years",
    "quarters",
    "months",
    "weeks",
    "days",
    "hours",
    "minutes",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
)
EPOCH_COMPONENTS = ("epochSeconds", "epochMillis")


def date_part(value: object, wanted: str = "date") -> Date:
    """The day of a value that has one."""
    match value:
        case Date():
            return value
        case LocalDateTime() | DateTime():
            return value.date
        case _:
            raise wrong_kind(f"cannot take a {wanted} from {kind_of(value)}")


def time_part(value: object, wanted: str = "time") -> LocalTime:
    """The local time of day of a value that has one."""
    match value:
        case LocalTime():
            return value
        case Time():
            return value.local
        case LocalDateTime() | DateTime():
            return value.time
        case _:
            raise wrong_kind(f"cannot take a {wanted} from {kind_of(value)}")


def zone_part(value: object) -> Zone | None:
    """The zone of a value that has one."""
    match value:
        case Time():
            return Zone(None, value.offset_seconds)
        case DateTime():
            return value.zone
        case _:
            return None


def zone_field(fields: TemporalFields) -> Zone | None:
    """The zone that a map names."""
    if "timezone" not in fields:
        return None
    name = fields["timezone"]
    if not isinstance(name, str):
        raise wrong_kind(f"timezone must be a string, not {kind_of(name)}", "write it like '+01:00' or 'Europe/Rome'")
    return parse_zone(name)


def construct_date(fields: TemporalFields) -> Date:
    require_known(fields, "date", ("date", *DATE_COMPONENTS))
    base = date_part(fields["date"]) if "date" in fields else None
    return date_from_fields(fields, base)


def construct_local_time(fields: TemporalFields) -> LocalTime:
    require_known(fields, "localtime", ("time", *TIME_COMPONENTS))
    return time_from_fields(fields, _selected_time(fields, needs_hour=True))


def construct_time(fields: TemporalFields, now_seconds: int) -> Time:
    """A time; a named zone gives the offset that it has now."""
    require_known(fields, "time", ("time", "timezone", *TIME_COMPONENTS))
    local = time_from_fields(fields, _selected_time(fields, needs_hour=True))
    named = zone_field(fields)
    offset = named.offset_at(now_seconds) if named is not None else None
    match fields.get("time"):
        case Time() | DateTime() as selected:
            time = Time(local, selected.offset_seconds)
            return time if offset is None else time.at_offset(offset)
        case _:
            return Time(local, offset or 0)


def construct_local_date_time(fields: TemporalFields) -> LocalDateTime:
    require_known(fields, "localdatetime", ("datetime", "date", "time", *DATE_COMPONENTS, *TIME_COMPONENTS))
    return _local_date_time(fields)


def construct_date_time(fields: TemporalFields, default_zone: Zone = UTC) -> DateTime:
    groups = ("datetime", "date", "time", "timezone")
    require_known(fields, "datetime", (*groups, *DATE_COMPONENTS, *TIME_COMPONENTS, *EPOCH_COMPONENTS))
    named = zone_field(fields)
    if has_any(fields, EPOCH_COMPONENTS):
        return _from_epoch_fields(fields, named or default_zone)
    selected = zone_part(fields["datetime"] if "datetime" in fields else fields.get("time"))
    moment = DateTime.of(_local_date_time(fields), selected or named or default_zone, _selected_offset(fields))
    if selected is not None and named is not None:
        return moment.at_zone(named)
    return moment


def construct_duration(fields: TemporalFields) -> Duration:
    """A duration; fractions flow down to smaller units."""
    require_known(fields, "duration", DURATION_COMPONENTS)
    if not fields:
        raise wrong_value("duration() needs at least one component", "for example {hours: 1}")
    amounts = {}
    for name in DURATION_COMPONENTS:
        value = fields.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_kind(f"{name} must be a number, not {kind_of(value)}")
        amounts[name] = exact(value)
    return Duration.approximate(
        months=amounts["years"] * 12 + amounts["quarters"] * 3 + amounts["months"],
        days=amounts["weeks"] * 7 + amounts["days"],
        seconds=amounts["hours"] * 3600 + amounts["minutes"] * 60 + amounts["seconds"],
        nanoseconds=amounts["milliseconds"] * 1_000_000 + amounts["microseconds"] * 1000 + amounts["nanoseconds"],
    )


def _selected_time(fields: TemporalFields, needs_hour: bool = False) -> LocalTime | None:
    if "time" in fields:
        return time_part(fields["time"])
    if needs_hour and "hour" not in fields and not has_any(fields, TIME_COMPONENTS):
        raise wrong_value("hour is missing", "for example {hour: 12, minute: 30}")
    return None


def _local_date_time(fields: TemporalFields) -> LocalDateTime:
    if "datetime" in fields:
        for group in ("date", "time"):
            if group in fields:
                raise wrong_value(f"datetime and {group} cannot be selected together")
        source = fields["datetime"]
        base_date: Date | None = date_part(source, "date and time")
        base_time: LocalTime | None = time_part(source, "date and time")
    else:
        base_date = date_part(fields["date"]) if "date" in fields else None
        base_time = _selected_time(fields)
    names_time = has_any(fields, TIME_COMPONENTS)
    date = date_from_fields(fields, base_date, require_full=names_time and base_time is None)
    return LocalDateTime(date, time_from_fields(fields, base_time) if names_time or base_time else MIDNIGHT)


def _selected_offset(fields: TemporalFields) -> int | None:
    match fields.get("datetime", fields.get("time")):
        case DateTime() as selected:
            return selected.offset_seconds
        case _:
            return None


def _from_epoch_fields(fields: TemporalFields, zone: Zone) -> DateTime:
    others = [name for name in fields if name not in (*EPOCH_COMPONENTS, "timezone", "nanosecond")]
    if others or all(name in fields for name in EPOCH_COMPONENTS):
        given = next(name for name in EPOCH_COMPONENTS if name in fields)
        other = others[0] if others else EPOCH_COMPONENTS[1]
        raise wrong_value(f"{given} and {other} cannot be given together")
    nanosecond = integer_field(fields, "nanosecond", 0)
    if "epochSeconds" in fields:
        return from_epoch(integer_field(fields, "epochSeconds", 0), nanosecond, zone)
    return from_epoch_millis(integer_field(fields, "epochMillis", 0), nanosecond, zone)


def from_epoch(seconds: int, nanosecond: int = 0, zone: Zone = UTC) -> DateTime:
    carry, nanosecond = divmod(nanosecond, 1_000_000_000)
    return DateTime.from_epoch(seconds + carry, nanosecond, zone)


def from_epoch_millis(millis: int, nanosecond: int = 0, zone: Zone = UTC) -> DateTime:
    return from_epoch(millis // 1000, millis % 1000 * 1_000_000 + nanosecond, zone)
