"""Canonical text of temporal values, from plain integers.

Seconds are left out when they and the fraction are zero; a fraction has as many digits as it needs. A duration
gives each component its own sign, so `-60.001` seconds are `PT-1M-0.001S`.
"""

from __future__ import annotations

NANOS_PER_SECOND = 1_000_000_000


def format_year(year: int) -> str:
    """At least four digits; a sign before the year 0 and after 9999."""
    if year > 9999:
        return f"+{year}"
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


def format_date(year: int, month: int, day: int) -> str:
    return f"{format_year(year)}-{month:02d}-{day:02d}"


def format_fraction(nanosecond: int) -> str:
    return f".{nanosecond:09d}".rstrip("0") if nanosecond else ""


def format_time(hour: int, minute: int, second: int, nanosecond: int) -> str:
    if second == 0 and nanosecond == 0:
        return f"{hour:02d}:{minute:02d}"
    return f"{hour:02d}:{minute:02d}:{second:02d}{format_fraction(nanosecond)}"


def format_offset(offset_seconds: int) -> str:
    """`Z`, `+01:00`, or `+00:53:28` for the local mean times of old."""
    if offset_seconds == 0:
        return "Z"
    sign = "-" if offset_seconds < 0 else "+"
    minutes, seconds = divmod(abs(offset_seconds), 60)
    text = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def format_duration(months: int, days: int, seconds: int, nanoseconds: int) -> str:
    """ISO 8601 with designators; an empty duration is `PT0S`."""
    month_sign = -1 if months < 0 else 1
    years, months_of_year = divmod(abs(months), 12)
    date_part = _designated(month_sign * years, "Y") + _designated(month_sign * months_of_year, "M")
    date_part += _designated(days, "D")

    total = seconds * NANOS_PER_SECOND + nanoseconds
    sign = "-" if total < 0 else ""
    whole_seconds, fraction = divmod(abs(total), NANOS_PER_SECOND)
    whole_minutes, second = divmod(whole_seconds, 60)
    hours, minute = divmod(whole_minutes, 60)
    time_part = f"{sign}{hours}H" if hours else ""
    time_part += f"{sign}{minute}M" if minute else ""
    time_part += f"{sign}{second}{format_fraction(fraction)}S" if second or fraction else ""

    if not date_part and not time_part:
        return "PT0S"
    return f"P{date_part}T{time_part}" if time_part else f"P{date_part}"


def _designated(amount: int, designator: str) -> str:
    return f"{amount}{designator}" if amount else ""
