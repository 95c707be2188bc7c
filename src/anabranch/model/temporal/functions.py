"""The temporal functions of Cypher by their lower-case names.

Each is called with the statement's clock (UTC microseconds since 1970) and then the arguments of the query. The
three clocks `transaction`, `statement` and `realtime` are all the statement's: an answer must not depend on when
it was computed.

Invariant: a null argument gives null; everything else gives a temporal value or an EvaluationError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anabranch.model.temporal.arithmetic import between, in_days, in_months, in_seconds
from anabranch.model.temporal.construct import (
    construct_date,
    construct_date_time,
    construct_duration,
    construct_local_date_time,
    construct_local_time,
    construct_time,
    date_part,
    from_epoch,
    from_epoch_millis,
    time_part,
    zone_field,
)
from anabranch.model.temporal.duration import Duration
from anabranch.model.temporal.fields import TemporalFields
from anabranch.model.temporal.parse import (
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)
from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.temporal.truncate import (
    truncate_date,
    truncate_date_time,
    truncate_local_date_time,
    truncate_local_time,
    truncate_time,
)
from anabranch.model.temporal.values import Date, DateTime, Instant, LocalDateTime, LocalTime, Time
from anabranch.model.temporal.zones import UTC, Zone, parse_zone

TemporalFunction = Callable[..., object]


def now(clock_micros: int, zone: Zone = UTC) -> DateTime:
    """An instant, in UTC microseconds, as a value."""
    return DateTime.from_epoch_micros(clock_micros).at_zone(zone)


def _select(name: str, value: Instant) -> Instant:
    """The part of an instant that makes a value of the named type; a date alone begins at midnight in UTC."""
    if isinstance(value, Date) and name in ("localdatetime", "datetime"):
        value = LocalDateTime(value)
    match name:
        case "date":
            return date_part(value)
        case "localtime":
            return time_part(value)
        case "time":
            offset = value.offset_seconds if isinstance(value, Time | DateTime) else 0
            return Time(time_part(value), offset)
        case "localdatetime":
            return LocalDateTime(date_part(value), time_part(value))
        case _:
            return (
                value if isinstance(value, DateTime) else DateTime.of(LocalDateTime(date_part(value), time_part(value)))
            )


def _parse(name: str, text: str) -> Instant:
    match name:
        case "date":
            return parse_date(text)
        case "localtime":
            return parse_local_time(text)
        case "time":
            return parse_time(text)
        case "localdatetime":
            return parse_local_date_time(text)
        case _:
            return parse_date_time(text)


def _construct(name: str, clock_micros: int, fields: TemporalFields) -> Instant:
    if set(fields) == {"timezone"}:
        return _select(name, now(clock_micros, zone_field(fields) or UTC))
    match name:
        case "date":
            return construct_date(fields)
        case "localtime":
            return construct_local_time(fields)
        case "time":
            return construct_time(fields, clock_micros // 1_000_000)
        case "localdatetime":
            return construct_local_date_time(fields)
        case _:
            return construct_date_time(fields)


def _truncate(name: str, clock_micros: int, unit: str, value: object, fields: TemporalFields) -> Instant:
    match name:
        case "date":
            return truncate_date(unit, value, fields)
        case "localtime":
            return truncate_local_time(unit, value, fields)
        case "time":
            return truncate_time(unit, value, fields, clock_micros // 1_000_000)
        case "localdatetime":
            return truncate_local_date_time(unit, value, fields)
        case _:
            return truncate_date_time(unit, value, fields)


def _instant_function(name: str) -> TemporalFunction:
    """`date()`, `date('2015-07-21')`, `date({year: 2015})` or `date(other)`."""

    def call(clock_micros: int, *arguments: object) -> object:
        _require_count(name, arguments, 0, 1)
        if not arguments:
            return _select(name, now(clock_micros))
        match arguments[0]:
            case None:
                return None
            case str() as text:
                return _parse(name, text)
            case Mapping() as fields:
                return _construct(name, clock_micros, fields)
            case Date() | LocalTime() | Time() | LocalDateTime() | DateTime() as value:
                return _select(name, value)
            case other:
                raise wrong_kind(f"{name}() cannot be made from {kind_of(other)}", "give a string, a map or an instant")

    return call


def _clock_function(name: str, clock: str) -> TemporalFunction:
    """`date.statement()` or `date.statement('Europe/Rome')`."""

    def call(clock_micros: int, *arguments: object) -> object:
        _require_count(f"{name}.{clock}", arguments, 0, 1)
        if not arguments:
            return _select(name, now(clock_micros))
        match arguments[0]:
            case None:
                return None
            case str() as zone:
                return _select(name, now(clock_micros, parse_zone(zone)))
            case Mapping() as fields if set(fields) == {"timezone"}:
                return _select(name, now(clock_micros, zone_field(fields) or UTC))
            case other:
                raise wrong_kind(f"{name}.{clock}() takes a time zone, not {kind_of(other)}")

    return call


def _truncate_function(name: str) -> TemporalFunction:
    """`date.truncate('month', value, {day: 2})`; without a value the clock is truncated, null fields are none."""

    def call(clock_micros: int, *arguments: object) -> object:
        _require_count(f"{name}.truncate", arguments, 1, 3)
        unit = arguments[0]
        value = arguments[1] if len(arguments) > 1 else _select(name, now(clock_micros))
        fields = arguments[2] if len(arguments) > 2 else None
        if unit is None or value is None:
            return None
        if not isinstance(unit, str):
            raise wrong_kind(f"{name}.truncate() takes the unit as a string, not {kind_of(unit)}")
        if fields is not None and not isinstance(fields, Mapping):
            raise wrong_kind(f"{name}.truncate() takes its components as a map, not {kind_of(fields)}")
        return _truncate(name, clock_micros, unit, value, fields or {})

    return call


def _between_function(name: str, compute: Callable[[object, object], Duration]) -> TemporalFunction:
    def call(clock_micros: int, *arguments: object) -> object:
        _require_count(name, arguments, 2, 2)
        if None in arguments:
            return None
        return compute(*arguments)

    return call


def _duration(clock_micros: int, *arguments: object) -> object:
    _require_count("duration", arguments, 1, 1)
    match arguments[0]:
        case None:
            return None
        case str() as text:
            return parse_duration(text)
        case Mapping() as fields:
            return construct_duration(fields)
        case Duration() as value:
            return value
        case other:
            raise wrong_kind(f"duration() cannot be made from {kind_of(other)}", "give a string or a map")


def _epoch_function(name: str, compute: Callable[..., DateTime], most: int) -> TemporalFunction:
    def call(clock_micros: int, *arguments: object) -> object:
        _require_count(name, arguments, 1, most)
        if None in arguments:
            return None
        for argument in arguments:
            if isinstance(argument, bool) or not isinstance(argument, int):
                raise wrong_kind(f"{name}() takes integers, not {kind_of(argument)}")
        return compute(*arguments)

    return call


def _require_count(name: str, arguments: tuple[object, ...], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        raise wrong_kind(f"{name}() takes {wanted} arguments, not {len(arguments)}")


def _all_functions() -> dict[str, TemporalFunction]:
    functions: dict[str, TemporalFunction] = {}
    for name in ("date", "localtime", "time", "localdatetime", "datetime"):
        functions[name] = _instant_function(name)
        functions[f"{name}.truncate"] = _truncate_function(name)
        for clock in ("transaction", "statement", "realtime"):
            functions[f"{name}.{clock}"] = _clock_function(name, clock)
    functions["datetime.fromepoch"] = _epoch_function("datetime.fromEpoch", from_epoch, 2)
    functions["datetime.fromepochmillis"] = _epoch_function("datetime.fromEpochMillis", from_epoch_millis, 1)
    functions["duration"] = _duration
    functions["duration.between"] = _between_function("duration.between", between)
    functions["duration.inmonths"] = _between_function("duration.inMonths", in_months)
    functions["duration.indays"] = _between_function("duration.inDays", in_days)
    functions["duration.inseconds"] = _between_function("duration.inSeconds", in_seconds)
    return functions


TEMPORAL_FUNCTIONS: dict[str, TemporalFunction] = _all_functions()
