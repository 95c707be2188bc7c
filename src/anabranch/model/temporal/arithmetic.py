"""Durations between instants, and the arithmetic of instants, durations and numbers.

Adding goes from the biggest unit to the smallest: months on the calendar (to the month's end when it is shorter),
then days on the calendar, then the rest on the clock that never jumps. Of two instants, the one without a date
takes the other's date, and the one without a zone takes the other's zone.

Invariant: `add(a, between(a, b)) == b` for two values of the same type and zone.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.model.temporal.construct import zone_part
from anabranch.model.temporal.duration import Duration, exact
from anabranch.model.temporal.format import NANOS_PER_SECOND
from anabranch.model.temporal.refusals import kind_of, wrong_kind, wrong_value
from anabranch.model.temporal.values import (
    MIDNIGHT,
    NANOS_PER_DAY,
    Date,
    DateTime,
    Instant,
    LocalDateTime,
    LocalTime,
    Time,
)
from anabranch.model.temporal.zones import UTC, Zone

_SOME_DAY = Date(1970)


def add(left: object, right: object) -> Instant | Duration:
    """`instant + duration`, `duration + instant` or `duration + duration`; TypeError for anything else."""
    if not isinstance(right, Duration):
        left, right = right, left
    if not isinstance(right, Duration):
        raise TypeError("not temporal arithmetic")
    match left:
        case Duration():
            return Duration(
                left.months + right.months,
                left.days + right.days,
                left.seconds + right.seconds,
                left.nanoseconds + right.nanoseconds,
            )
        case Date():
            # A date has no clock: only whole days of the time part count.
            whole_days = abs(right.time_nanos) // NANOS_PER_DAY
            extra = whole_days if right.time_nanos >= 0 else -whole_days
            return left.plus_months(right.months).plus_days(right.days + extra)
        case LocalTime():
            return LocalTime.from_nano_of_day((left.nano_of_day + right.time_nanos) % NANOS_PER_DAY)
        case Time():
            nanos = (left.local.nano_of_day + right.time_nanos) % NANOS_PER_DAY
            return Time(LocalTime.from_nano_of_day(nanos), left.offset_seconds)
        case LocalDateTime():
            date = left.date.plus_months(right.months).plus_days(right.days)
            return LocalDateTime(date, left.time).plus_nanos(right.time_nanos)
        case DateTime():
            return _plus_days(_plus_months(left, right.months), right.days).plus_nanos(right.time_nanos)
        case _:
            raise TypeError("not temporal arithmetic")


def subtract(left: object, right: object) -> Instant | Duration:
    """`instant - duration` or `duration - duration`; TypeError for anything else."""
    if not isinstance(right, Duration):
        raise TypeError("not temporal arithmetic")
    return add(left, right.negated())


def multiply(duration: object, number: object) -> Duration:
    """A duration times a number, in either order; TypeError for anything else."""
    if not isinstance(duration, Duration):
        duration, number = number, duration
    if not isinstance(duration, Duration) or not _is_number(number):
        raise TypeError("not temporal arithmetic")
    assert isinstance(number, int | float)
    factor = exact(number)
    return Duration.approximate(
        duration.months * factor, duration.days * factor, duration.seconds * factor, duration.nanoseconds * factor
    )


def divide(duration: object, number: object) -> Duration:
    """A duration divided by a number; TypeError for anything else."""
    if not isinstance(duration, Duration) or not _is_number(number):
        raise TypeError("not temporal arithmetic")
    assert isinstance(number, int | float)
    divisor = exact(number)
    if divisor == 0:
        raise wrong_value("a duration cannot be divided by zero")
    return Duration.approximate(
        duration.months / divisor, duration.days / divisor, duration.seconds / divisor, duration.nanoseconds / divisor
    )


def between(start: object, end: object) -> Duration:
    """Months, then days, then the rest; only the rest when one of the two has no date."""
    pair = _aligned(start, end)
    if not pair.both_dated:
        return Duration(nanoseconds=_nanos_between(pair.start, pair.end))
    months = _months_between(pair.start, pair.end)
    after_months = _plus_months(pair.start, months)
    days = _days_between(after_months, pair.end)
    after_days = _plus_days(after_months, days)
    return Duration(months, days, 0, _nanos_between(after_days, pair.end))


def in_months(start: object, end: object) -> Duration:
    pair = _aligned(start, end)
    return Duration(months=_months_between(pair.start, pair.end)) if pair.both_dated else Duration()


def in_days(start: object, end: object) -> Duration:
    pair = _aligned(start, end)
    return Duration(days=_days_between(pair.start, pair.end)) if pair.both_dated else Duration()


def in_seconds(start: object, end: object) -> Duration:
    pair = _aligned(start, end)
    return Duration(nanoseconds=_nanos_between(pair.start, pair.end))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two instants made comparable, and whether both brought a date of their own."""

    start: DateTime
    end: DateTime
    both_dated: bool


def _aligned(start: object, end: object) -> _Pair:
    start_date, start_time, start_zone = _parts(start)
    end_date, end_time, end_zone = _parts(end)
    first = LocalDateTime(start_date or end_date or _SOME_DAY, start_time)
    second = LocalDateTime(end_date or start_date or _SOME_DAY, end_time)
    return _Pair(
        DateTime.of(first, start_zone or end_zone or UTC, _offset_of(start)),
        DateTime.of(second, end_zone or start_zone or UTC, _offset_of(end)),
        start_date is not None and end_date is not None,
    )


def _parts(value: object) -> tuple[Date | None, LocalTime, Zone | None]:
    match value:
        case Date():
            return value, MIDNIGHT, None
        case LocalTime():
            return None, value, None
        case Time():
            return None, value.local, zone_part(value)
        case LocalDateTime() | DateTime():
            return value.date, value.time, zone_part(value)
        case _:
            raise wrong_kind(f"a duration lies between two instants, not {kind_of(value)}")


def _offset_of(value: object) -> int | None:
    return value.offset_seconds if isinstance(value, DateTime) else None


def _plus_months(moment: DateTime, months: int) -> DateTime:
    return moment.with_local(LocalDateTime(moment.date.plus_months(months), moment.time)) if months else moment


def _plus_days(moment: DateTime, days: int) -> DateTime:
    return moment.with_local(LocalDateTime(moment.date.plus_days(days), moment.time)) if days else moment


def _months_between(start: DateTime, end: DateTime) -> int:
    """Whole months on the calendar of the start's zone, towards zero."""
    end = end.at_zone(start.zone)
    end_days = end.date.epoch_day
    if end_days > start.date.epoch_day and end.time.nano_of_day < start.time.nano_of_day:
        end_days -= 1
    elif end_days < start.date.epoch_day and end.time.nano_of_day > start.time.nano_of_day:
        end_days += 1
    last = Date.from_epoch_day(end_days)
    packed = (last.year * 12 + last.month - start.date.year * 12 - start.date.month) * 32 + last.day - start.date.day
    return packed // 32 if packed >= 0 else -(-packed // 32)


def _days_between(start: DateTime, end: DateTime) -> int:
    """Whole days on the calendar of the start's zone, towards zero."""
    end = end.at_zone(start.zone)
    days = end.date.epoch_day - start.date.epoch_day
    nanos = days * NANOS_PER_DAY + end.time.nano_of_day - start.time.nano_of_day
    return nanos // NANOS_PER_DAY if nanos >= 0 else -(-nanos // NANOS_PER_DAY)


def _nanos_between(start: DateTime, end: DateTime) -> int:
    seconds = end.epoch_seconds - start.epoch_seconds
    return seconds * NANOS_PER_SECOND + end.time.nanosecond - start.time.nanosecond


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
