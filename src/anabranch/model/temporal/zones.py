"""Time zones: fixed offsets from UTC, and named zones of the IANA database.

Named zones are read from the `tzdata` package and never from the machine, since distributions build their files
with different rules for the time before 1970: the same query must give the same answer everywhere.

Invariant: `zone.offset_at(instant)` is a pure function of the zone's text and the instant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from anabranch.errors import EvaluationError
from anabranch.model.temporal.calendar import civil_from_days
from anabranch.model.temporal.format import format_offset
from anabranch.model.temporal.refusals import unknown_name, wrong_value

SECONDS_PER_DAY = 86_400
MAX_OFFSET_SECONDS = 18 * 3600
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>\d\d)(?::?(?P<seconds>\d\d))?)?", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")


@dataclass(frozen=True, slots=True)
class Zone:
    """A named zone, or (without a name) a fixed offset."""

    name: str | None = None
    fixed_offset: int = 0

    def offset_at(self, epoch_seconds: int) -> int:
        """The offset in seconds east of UTC at an instant."""
        if self.name is None:
            return self.fixed_offset
        rules = _load_rules(self.name)
        return _seconds_of(rules.fromutc(_as_datetime(epoch_seconds).replace(tzinfo=rules)))

    def resolve(self, local_seconds: int, preferred_offset: int | None = None) -> tuple[int, int]:
        """The local time that exists and its offset.

        In a gap the clock is moved forward by the gap's length; in an overlap the preferred offset is taken
        if it is one of the two, and the earlier instant otherwise.
        """
        if self.name is None:
            return local_seconds, self.fixed_offset
        before, after = self._candidate_offsets(local_seconds)
        valid = [offset for offset in (before, after) if self.offset_at(local_seconds - offset) == offset]
        if not valid:
            return local_seconds + after - before, after
        if preferred_offset is not None and preferred_offset in valid:
            return local_seconds, preferred_offset
        return local_seconds, valid[0]

    def accepts(self, local_seconds: int, offset: int) -> bool:
        """Whether a local time really has this offset here."""
        return self.offset_at(local_seconds - offset) == offset

    def _candidate_offsets(self, local_seconds: int) -> tuple[int, int]:
        assert self.name is not None
        local = _as_datetime(local_seconds).replace(tzinfo=_load_rules(self.name))
        return _seconds_of(local.replace(fold=0)), _seconds_of(local.replace(fold=1))

    def __str__(self) -> str:
        return self.name if self.name is not None else format_offset(self.fixed_offset)


UTC = Zone()


def parse_offset(text: str) -> int:
    """Seconds east of UTC of `Z`, `+01`, `+0100`, `+01:00` or `+01:00:30`."""
    if text in ("Z", "z"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise wrong_value(f"`{text}` is not an offset from UTC", "write it like `Z`, `+01:00` or `-0930`")
    minutes, seconds = int(match["minutes"] or 0), int(match["seconds"] or 0)
    total = int(match["hours"]) * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > MAX_OFFSET_SECONDS:
        raise wrong_value(f"the offset `{text}` is out of range", "offsets lie between -18:00 and +18:00")
    return -total if match["sign"] == "-" else total


def parse_zone(text: str) -> Zone:
    """A zone from an offset or from an IANA name such as `Europe/Stockholm`."""
    text = text.strip()
    if text[:1] in ("+", "-") or text in ("Z", "z"):
        return Zone(None, parse_offset(text))
    name = text.replace(" ", "_")
    try:
        _load_rules(name)
    except FileNotFoundError:
        raise _unknown_zone(text) from None
    return Zone(name)


@lru_cache(maxsize=1024)
def _load_rules(name: str) -> ZoneInfo:
    if _ZONE_NAME.fullmatch(name) is None:
        raise FileNotFoundError(name)
    resource = files("tzdata.zoneinfo").joinpath(*name.split("/"))
    try:
        with resource.open("rb") as stream:
            return ZoneInfo.from_file(stream, key=name)
    except (OSError, ValueError):
        raise FileNotFoundError(name) from None


def _unknown_zone(text: str) -> EvaluationError:
    names = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return unknown_name("time zone", text, names)


def _as_datetime(seconds: int) -> datetime:
    """A naive datetime of the same rules, also for years that `datetime` cannot hold.

    No zone has rules before the year 4 (a leap year, so every day exists), and after 9000 rules repeat with the
    calendar, which repeats each 400 years.
    """
    days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
    year, month, day = civil_from_days(days)
    if year < 4:
        year = 4
    elif year >= 9000:
        year = 8600 + (year - 8600) % 400
    minutes, second = divmod(second_of_day, 60)
    return datetime(year, month, day, minutes // 60, minutes % 60, second)


def _seconds_of(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return offset.days * SECONDS_PER_DAY + offset.seconds
