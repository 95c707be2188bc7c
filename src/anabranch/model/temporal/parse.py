"""ISO 8601 text to temporal values, in every form that openCypher names.

Dates come as calendar, week, quarter or ordinal dates, extended (with dashes) or basic; parts that are left out
take their lowest value. Times may leave out minutes and seconds. A zone is an offset, a name in brackets, or both.

Invariant: what `str` writes, these functions read back to an equal value.
"""

from __future__ import annotations

import re
from fractions import Fraction

from anabranch.errors import EvaluationError
from anabranch.model.temporal.duration import Duration
from anabranch.model.temporal.refusals import wrong_value
from anabranch.model.temporal.values import MIDNIGHT, Date, DateTime, LocalDateTime, LocalTime, Time, require_range
from anabranch.model.temporal.zones import UTC, Zone, parse_offset, parse_zone

_DATE = r"""
    (?P<year> [+-]\d{4,9} (?=[-WQT]|$) | \d{4} )
    (?: -?W (?P<week>\d\d) (?: -?(?P<week_day>\d) )?
      | -?Q (?P<quarter>\d) (?: -?(?P<quarter_day>\d\d) )?
      | - (?P<month>\d\d) (?: -(?P<day>\d\d) )?
      | (?P<basic_month>\d\d) (?P<basic_day>\d\d)?
      | -?(?P<ordinal>\d\d\d)
    )?
"""
_TIME = r"""
    (?P<hour>\d\d) (?: :?(?P<minute>\d\d) (?: :?(?P<second>\d\d) (?: [.,](?P<fraction>\d{1,9}) )? )? )?
"""
_OFFSET = r"(?P<offset> Z | z | [+-]\d\d (?: :?\d\d (?: :?\d\d )? )? )?"
_ZONE_NAME = r"(?: \[ (?P<zone>[^\]]+) \] )?"

_DATE_TEXT = re.compile(_DATE, re.VERBOSE | re.ASCII)
_LOCAL_TIME_TEXT = re.compile(rf"T?{_TIME}", re.VERBOSE | re.ASCII)
_TIME_TEXT = re.compile(rf"T?{_TIME}{_OFFSET}", re.VERBOSE | re.ASCII)
_LOCAL_DATE_TIME_TEXT = re.compile(rf"{_DATE}(?:T{_TIME})?", re.VERBOSE | re.ASCII)
_DATE_TIME_TEXT = re.compile(rf"{_DATE}(?:T{_TIME}{_OFFSET}{_ZONE_NAME})?", re.VERBOSE | re.ASCII)

_AMOUNT = r"[+-]?\d+(?:[.,]\d+)?"
_DURATION_TEXT = re.compile(
    rf"""
    (?P<sign>[+-])? P
    (?: (?P<years>{_AMOUNT})Y )? (?: (?P<months>{_AMOUNT})M )? (?: (?P<weeks>{_AMOUNT})W )? (?: (?P<days>{_AMOUNT})D )?
    (?: T (?: (?P<hours>{_AMOUNT})H )? (?: (?P<minutes>{_AMOUNT})M )? (?: (?P<seconds>{_AMOUNT})S )? )?
    """,
    re.VERBOSE | re.ASCII,
)
_DURATION_AS_DATE_TIME = re.compile(
    r"""
    (?P<sign>[+-])? P (?P<years>\d{4}) (?P<dash>-?) (?P<months>\d\d) (?P=dash) (?P<days>\d\d)
    T (?P<hours>\d\d) (?P<colon>:?) (?P<minutes>\d\d) (?P=colon) (?P<seconds>\d\d (?: [.,]\d{1,9} )? )
    """,
    re.VERBOSE | re.ASCII,
)


def parse_date(text: str) -> Date:
    return _date(_match(_DATE_TEXT, text, "date", "2015-07-21, 2015-W30-2 or 2015-202"), text)


def parse_local_time(text: str) -> LocalTime:
    return _time(_match(_LOCAL_TIME_TEXT, text, "local time", "21:40:32.142 or 2140"), text)


def parse_time(text: str) -> Time:
    """A time; without an offset it is at UTC."""
    match = _match(_TIME_TEXT, text, "time", "21:40:32+01:00 or 2140Z")
    return Time(_time(match, text), parse_offset(match["offset"]) if match["offset"] else 0)


def parse_local_date_time(text: str) -> LocalDateTime:
    match = _match(_LOCAL_DATE_TIME_TEXT, text, "local date and time", "2015-07-21T21:40:32.142")
    return LocalDateTime(_date(match, text), _time(match, text))


def parse_date_time(text: str, default_zone: Zone = UTC) -> DateTime:
    """A date and time; without a zone it is in the default zone."""
    match = _match(_DATE_TIME_TEXT, text, "date and time", "2015-07-21T21:40+01:00 or 2015-07-21T21:40[Europe/London]")
    local = LocalDateTime(_date(match, text), _time(match, text))
    offset = parse_offset(match["offset"]) if match["offset"] else None
    if match["zone"] is None:
        return DateTime.of(local, default_zone if offset is None else Zone(None, offset))
    zone = parse_zone(match["zone"])
    if offset is not None and not zone.accepts(local.local_seconds, offset):
        actual = DateTime.of(local, zone)
        raise wrong_value(f"the offset and the zone of `{text}` do not agree", f"in that zone it is {actual}")
    return DateTime.of(local, zone, offset)


def parse_duration(text: str) -> Duration:
    """`P1Y2M10DT2H30M`, with a fraction or a sign at any amount, or the form `P2012-02-02T14:37:21.545`."""
    match = _DURATION_AS_DATE_TIME.fullmatch(text)
    if match is not None:
        for name, high in (("months", 12), ("days", 31), ("hours", 23), ("minutes", 59)):
            require_range(name, int(match[name]), 0, high)
        require_range("seconds", int(match["seconds"][:2]), 0, 59)
        return _duration(match, has_weeks=False)
    match = _DURATION_TEXT.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        raise _unreadable(text, "duration", "P1Y2M10DT2H30M, PT0.5S or P2W")
    return _duration(match, has_weeks=True)


def _match(pattern: re.Pattern[str], text: str, kind: str, examples: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise _unreadable(text, kind, examples)
    return match


def _unreadable(text: str, kind: str, examples: str) -> EvaluationError:
    return wrong_value(f"cannot read `{text}` as a {kind}", f"write it like {examples}")


def _date(match: re.Match[str], text: str) -> Date:
    year = int(match["year"])
    try:
        if match["week"] is not None:
            return Date.of_week(year, int(match["week"]), int(match["week_day"] or 1))
        if match["quarter"] is not None:
            return Date.of_quarter(year, int(match["quarter"]), int(match["quarter_day"] or 1))
        if match["ordinal"] is not None:
            return Date.of_ordinal(year, int(match["ordinal"]))
        month = match["month"] or match["basic_month"] or 1
        return Date(year, int(month), int(match["day"] or match["basic_day"] or 1))
    except EvaluationError as error:
        raise _within(error, text) from None


def _time(match: re.Match[str], text: str) -> LocalTime:
    if match["hour"] is None:
        return MIDNIGHT
    fraction = int((match["fraction"] or "0").ljust(9, "0"))
    try:
        return LocalTime(int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0), fraction)
    except EvaluationError as error:
        raise _within(error, text) from None


def _within(error: EvaluationError, text: str) -> EvaluationError:
    diagnostic = error.diagnostic
    return wrong_value(f"{diagnostic.message} in `{text}`", diagnostic.hint)


def _duration(match: re.Match[str], has_weeks: bool) -> Duration:
    sign = -1 if match["sign"] == "-" else 1

    def amount(name: str) -> Fraction:
        text = match[name]
        return sign * Fraction(text.replace(",", ".")) if text is not None else Fraction(0)

    weeks = amount("weeks") if has_weeks else Fraction(0)
    return Duration.approximate(
        months=amount("years") * 12 + amount("months"),
        days=weeks * 7 + amount("days"),
        seconds=amount("hours") * 3600 + amount("minutes") * 60 + amount("seconds"),
    )
