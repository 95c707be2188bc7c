"""Instants of streams: UTC microseconds since 1970-01-01T00:00Z, their text, and calendar arithmetic on them.

Event times, window borders and evaluation times are these plain integers; the temporal package is for values
inside queries.

Invariant: `parse_instant(format_instant(micros)) == micros`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from anabranch.errors import EvaluationError
from anabranch.model.temporal.calendar import add_months, civil_from_days, days_from_civil, days_in_month
from anabranch.model.temporal.duration import Duration
from anabranch.model.temporal.format import format_date, format_fraction
from anabranch.model.temporal.parse import parse_date_time
from anabranch.model.temporal.refusals import wrong_value

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

# The common shape, read without building values: instants are parsed once an event.
_COMMON = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)

_SPACED = re.compile(r"^([+-]?\d[\d-]*) (?=\d)")


class Instant(int):
    """UTC microseconds that show as ISO 8601 text: an int in every other way."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_instant(self)

    def __repr__(self) -> str:
        return f"Instant('{self}')"

    def to_datetime(self) -> datetime:
        """The same instant as a datetime of the standard library, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(self))


def parse_instant(text: str) -> int:
    """Microseconds of an ISO 8601 date and time; without an offset it is UTC, a date alone is its midnight."""
    match = _COMMON.fullmatch(text)
    micros = _common_instant(match) if match is not None else None
    if micros is not None:
        return micros
    try:
        return parse_date_time(_SPACED.sub(r"\1T", text)).to_epoch_micros()
    except EvaluationError as error:
        hint = error.diagnostic.hint or "write it like 2022-10-14T14:45:00Z"
        raise wrong_value(f"`{text}` is not an instant: {error.diagnostic.message}", hint) from None


def _common_instant(match: re.Match[str]) -> int | None:
    """The instant, or None when a part is out of range and the full parser shall say which."""
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if not (1 <= month <= 12 and 1 <= day <= days_in_month(year, month) and hour < 24 and minute < 60 and second < 60):
        return None
    seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    offset = match[8]
    if offset is not None and offset != "Z":
        offset_minutes = int(offset[1:3]) * 60 + int(offset[4:6])
        if int(offset[4:6]) > 59 or offset_minutes > 18 * 60:
            return None
        seconds -= (-60 if offset[0] == "-" else 60) * offset_minutes
    return seconds * MICROS_PER_SECOND + int((match[7] or "0").ljust(9, "0")) // 1000


@lru_cache(maxsize=1 << 12)  # an instant is shown again as the end of its window, and as the start of a later one
def format_instant(micros: int) -> str:
    """The instant in UTC with seconds, and with a fraction only when there is one."""
    days, micros_of_day = divmod(micros, MICROS_PER_DAY)
    second_of_day, fraction = divmod(micros_of_day, MICROS_PER_SECOND)
    minute_of_day, second = divmod(second_of_day, 60)
    clock = f"{minute_of_day // 60:02d}:{minute_of_day % 60:02d}:{second:02d}{format_fraction(fraction * 1000)}"
    return f"{format_date(*civil_from_days(days))}T{clock}Z"


def add_duration(micros: int, duration: Duration, times: int = 1) -> int:
    """An instant some durations later, on the calendar of UTC.

    All months are added at once, so that the third month after 31 January is 30 April and not 28 April; then the
    days, then the rest.
    """
    if duration.months:
        days, micros_of_day = divmod(micros, MICROS_PER_DAY)
        moved = add_months(*civil_from_days(days), duration.months * times)
        micros = days_from_civil(*moved) * MICROS_PER_DAY + micros_of_day
    return micros + duration.days * times * MICROS_PER_DAY + duration.time_nanos * times // 1000


def subtract_duration(micros: int, duration: Duration) -> int:
    """An instant one duration earlier, on the calendar of UTC."""
    return add_duration(micros, duration, times=-1)
