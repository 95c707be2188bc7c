"""Points on the time line and durations, as XML Schema has them: any year, any fraction of a second, zone optional.

A moment holds its local seconds since 1970; fields that a kind lacks (the day of a gYear, the date of a time) are
filled from the last moment of 1972, so that values of one kind compare.

Invariant: a moment without a zone is compared with one that has a zone only where no zone of the world could change
the answer; otherwise the comparison has no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

from anabranch.model.terms import XSD, XSD_DATE, XSD_DATE_TIME, XSD_DAY_TIME_DURATION, XSD_DURATION, XSD_TIME

XSD_YEAR_MONTH_DURATION = f"{XSD}yearMonthDuration"
XSD_G_YEAR = f"{XSD}gYear"
XSD_G_YEAR_MONTH = f"{XSD}gYearMonth"
XSD_G_MONTH = f"{XSD}gMonth"
XSD_G_MONTH_DAY = f"{XSD}gMonthDay"
XSD_G_DAY = f"{XSD}gDay"

EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, traps=[])
"""Decimal arithmetic that never raises; wide enough to be exact for all but absurd operands."""

_DAY = 86_400
_FURTHEST_ZONE = 14 * 3600


@dataclass(frozen=True, slots=True)
class XsdMoment:
    """A value of dateTime, date, time or one of the g-types; `kind` is the datatype, `offset` minutes east of UTC."""

    kind: str
    seconds: Decimal
    offset: int | None

    @property
    def instant(self) -> Decimal:
        """Seconds on the UTC line; without a zone, as if it were UTC."""
        return EXACT.subtract(self.seconds, Decimal(60 * self.offset)) if self.offset else self.seconds


@dataclass(frozen=True, slots=True)
class MomentFields:
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal


@dataclass(frozen=True, slots=True)
class Period:
    """A duration: months and seconds, of one sign."""

    kind: str
    months: int
    seconds: Decimal


# --- the calendar -----------------------------------------------------------------------------------------------------


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of the days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def fields_of(moment: XsdMoment) -> MomentFields:
    days, rest = divmod(int(moment.seconds.to_integral_value("ROUND_FLOOR")), _DAY)
    year, month, day = date_of(days)
    fraction = EXACT.subtract(moment.seconds, Decimal(days * _DAY + rest))
    return MomentFields(year, month, day, rest // 3600, rest // 60 % 60, EXACT.add(Decimal(rest % 60), fraction))


def moment(kind: str, fields: MomentFields, offset: int | None) -> XsdMoment:
    whole = days_of(fields.year, fields.month, fields.day) * _DAY + fields.hour * 3600 + fields.minute * 60
    return XsdMoment(kind, EXACT.add(Decimal(whole), fields.second), offset)


# --- text to value ----------------------------------------------------------------------------------------------------

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY_OF_MONTH = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
    r"|(?P<midnight>24:00:00(?:\.0+)?))"
)
_ZONE = r"(?P<zone>Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"

_MOMENTS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(pattern + _ZONE)
    for kind, pattern in {
        XSD_DATE_TIME: f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}T{_TIME}",
        XSD_DATE: f"{_YEAR}-{_MONTH}-{_DAY_OF_MONTH}",
        XSD_TIME: _TIME,
        XSD_G_YEAR: _YEAR,
        XSD_G_YEAR_MONTH: f"{_YEAR}-{_MONTH}",
        XSD_G_MONTH: f"--{_MONTH}",
        XSD_G_MONTH_DAY: f"--{_MONTH}-{_DAY_OF_MONTH}",
        XSD_G_DAY: f"---{_DAY_OF_MONTH}",
    }.items()
}
MOMENT_KINDS = tuple(_MOMENTS)
PERIOD_KINDS = (XSD_DURATION, XSD_DAY_TIME_DURATION, XSD_YEAR_MONTH_DURATION)

_PERIOD = re.compile(
    r"(?P<sign>-?)P(?=.)(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?P<time>T(?=.)(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?"
)


def parse_moment(kind: str, text: str) -> XsdMoment | None:
    """The value of a lexical form, or nothing when it is none."""
    found = _MOMENTS[kind].fullmatch(text)
    if found is None:
        return None
    part = found.groupdict()
    year, month = int(part.get("year") or 1972), int(part.get("month") or 12)
    day = int(part.get("day") or month_length(year, month))
    if day > month_length(year, month):
        return None
    clock = MomentFields(
        *(year, month, day, int(part.get("hour") or 0), int(part.get("minute") or 0)),
        Decimal(part.get("second") or 0),
    )
    value = moment(kind, clock, _zone_minutes(part["zone"]))
    if part.get("midnight") and kind != XSD_TIME:  # the end of a day is the start of the next
        return XsdMoment(kind, EXACT.add(value.seconds, Decimal(_DAY)), value.offset)
    return value


def _zone_minutes(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def parse_period(kind: str, text: str) -> Period | None:
    found = _PERIOD.fullmatch(text)
    if found is None:
        return None
    part = found.groupdict()
    if kind == XSD_DAY_TIME_DURATION and (part["years"] or part["months"]):
        return None
    if kind == XSD_YEAR_MONTH_DURATION and (part["days"] or part["time"]):
        return None
    sign = -1 if part["sign"] else 1
    months = int(part["years"] or 0) * 12 + int(part["months"] or 0)
    whole = int(part["days"] or 0) * _DAY + int(part["hours"] or 0) * 3600 + int(part["minutes"] or 0) * 60
    seconds = EXACT.add(Decimal(whole), Decimal(part["seconds"] or 0))
    return Period(kind, sign * months, EXACT.multiply(Decimal(sign), seconds))


# --- value to text ----------------------------------------------------------------------------------------------------


def decimal_text(value: Decimal) -> str:
    """Digits without an exponent, without zeros or a point that say nothing."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def zone_text(offset: int | None) -> str:
    if offset is None:
        return ""
    if offset == 0:
        return "Z"
    hours, minutes = divmod(abs(offset), 60)
    return f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


def _year_text(year: int) -> str:
    return f"-{-year:04}" if year < 0 else f"{year:04}"


def _clock_text(fields: MomentFields) -> str:
    second = decimal_text(fields.second)
    return f"{fields.hour:02}:{fields.minute:02}:{second if fields.second >= 10 else '0' + second}"


_SHAPES: Mapping[str, Callable[[MomentFields], str]] = {
    XSD_DATE_TIME: lambda f: f"{_year_text(f.year)}-{f.month:02}-{f.day:02}T{_clock_text(f)}",
    XSD_DATE: lambda f: f"{_year_text(f.year)}-{f.month:02}-{f.day:02}",
    XSD_TIME: _clock_text,
    XSD_G_YEAR: lambda f: _year_text(f.year),
    XSD_G_YEAR_MONTH: lambda f: f"{_year_text(f.year)}-{f.month:02}",
    XSD_G_MONTH: lambda f: f"--{f.month:02}",
    XSD_G_MONTH_DAY: lambda f: f"--{f.month:02}-{f.day:02}",
    XSD_G_DAY: lambda f: f"---{f.day:02}",
}


def moment_text(value: XsdMoment) -> str:
    return _SHAPES[value.kind](fields_of(value)) + zone_text(value.offset)


def period_text(value: Period) -> str:
    """The canonical form: as few units as it takes, and some zero when there is nothing."""
    years, months = divmod(abs(value.months), 12)
    total = EXACT.abs(value.seconds)
    whole = int(total)
    fraction = EXACT.subtract(total, Decimal(whole))
    days, rest = divmod(whole, _DAY)
    second = decimal_text(EXACT.add(Decimal(rest % 60), fraction))
    date = "".join(f"{count}{unit}" for count, unit in ((years, "Y"), (months, "M"), (days, "D")) if count)
    time = "".join(f"{count}{unit}" for count, unit in ((rest // 3600, "H"), (rest // 60 % 60, "M")) if count)
    time += f"{second}S" if second != "0" else ""
    if not date and not time:
        return "P0M" if value.kind == XSD_YEAR_MONTH_DURATION else "PT0S"
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    return f"{sign}P{date}{'T' + time if time else ''}"


# --- order ------------------------------------------------------------------------------------------------------------


def _sign(one: Decimal, other: Decimal) -> int:
    return (one > other) - (one < other)


def compare_moments(one: XsdMoment, other: XsdMoment) -> int | None:
    """-1, 0 or 1 for two moments of one kind; nothing when it depends on a zone that is not given."""
    if (one.offset is None) == (other.offset is None):
        return _sign(one.instant, other.instant)
    if other.offset is None:
        reverse = compare_moments(other, one)
        return None if reverse is None else -reverse
    distance = EXACT.subtract(one.seconds, other.instant)
    if abs(distance) <= _FURTHEST_ZONE:
        return None
    return -1 if distance < 0 else 1


_REFERENCES = tuple(
    moment(XSD_DATE_TIME, MomentFields(year, month, 1, 0, 0, Decimal(0)), 0)
    for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
)
"""The four starting points that XML Schema takes to find out whether a duration is always the longer one."""


def compare_periods(one: Period, other: Period) -> int | None:
    """-1, 0 or 1; nothing when it depends on the length of the months."""
    if one.months == other.months:
        return _sign(one.seconds, other.seconds)
    if one.seconds == other.seconds:
        return -1 if one.months < other.months else 1
    signs = {_sign(shifted(start, one).seconds, shifted(start, other).seconds) for start in _REFERENCES}
    return signs.pop() if len(signs) == 1 else None


# --- arithmetic -------------------------------------------------------------------------------------------------------


def shifted(start: XsdMoment, period: Period) -> XsdMoment:
    """A dateTime, date or time, a duration later. Months keep the day where the month has it, else take its last."""
    seconds = start.seconds
    if period.months and start.kind != XSD_TIME:
        fields = fields_of(start)
        years, month = divmod(fields.year * 12 + fields.month - 1 + period.months, 12)
        day = min(fields.day, month_length(years, month + 1))
        moved = MomentFields(years, month + 1, day, fields.hour, fields.minute, fields.second)
        seconds = moment(start.kind, moved, None).seconds
    seconds = EXACT.add(seconds, period.seconds)
    if start.kind == XSD_DATE_TIME:
        return XsdMoment(start.kind, seconds, start.offset)
    days = Decimal(int(seconds.to_integral_value("ROUND_FLOOR")) // _DAY * _DAY)
    if start.kind == XSD_DATE:
        return XsdMoment(start.kind, days, start.offset)
    last_day = days_of(1972, 12, 31) * _DAY
    return XsdMoment(start.kind, EXACT.add(EXACT.subtract(seconds, days), Decimal(last_day)), start.offset)


def between(later: XsdMoment, earlier: XsdMoment) -> Period:
    """Return the time between two moments of one kind."""
    return Period(XSD_DAY_TIME_DURATION, 0, EXACT.subtract(later.instant, earlier.instant))


def added(one: Period, other: Period, sign: int = 1) -> Period | None:
    """The sum or difference of two durations; nothing when years would go one way and days the other."""
    months = one.months + sign * other.months
    seconds = EXACT.add(one.seconds, EXACT.multiply(Decimal(sign), other.seconds))
    if (months > 0 > seconds) or (months < 0 < seconds):
        return None
    return Period(one.kind if one.kind == other.kind else XSD_DURATION, months, seconds)


def negated(period: Period) -> Period:
    return Period(period.kind, -period.months, EXACT.minus(period.seconds))
