"""The five instant types of Cypher: Date, LocalTime, Time, LocalDateTime, DateTime.

All are exact to the nanosecond and hold plain integers. Equality is Cypher's: the same local fields, the same
offset and the same zone. Order is by instant first, then by offset and zone, so that it agrees with equality.

Invariant: a value that exists is a day and a time that exist; constructors refuse everything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.model.temporal import calendar
from anabranch.model.temporal.format import NANOS_PER_SECOND, format_date, format_offset, format_time
from anabranch.model.temporal.refusals import wrong_value
from anabranch.model.temporal.zones import SECONDS_PER_DAY, UTC, Zone

NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND


def require_range(name: str, value: int, low: int, high: int) -> int:
    """The value itself, or a refusal that names the component."""
    if not low <= value <= high:
        raise wrong_value(f"{name} {value} is out of range", f"{name} lies between {low} and {high} here")
    return value


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the proleptic Gregorian calendar."""

    year: int
    month: int = 1
    day: int = 1

    def __post_init__(self) -> None:
        require_range("year", self.year, calendar.MIN_YEAR, calendar.MAX_YEAR)
        require_range("month", self.month, 1, 12)
        require_range("day", self.day, 1, calendar.days_in_month(self.year, self.month))

    @classmethod
    def from_epoch_day(cls, days: int) -> Date:
        return cls(*calendar.civil_from_days(days))

    @classmethod
    def of_week(cls, week_year: int, week: int, day_of_week: int = 1) -> Date:
        """A day of an ISO week; the year is the week-based one."""
        require_range("year", week_year, calendar.MIN_YEAR, calendar.MAX_YEAR)
        require_range("week", week, 1, calendar.weeks_in_week_year(week_year))
        require_range("dayOfWeek", day_of_week, 1, 7)
        return cls.from_epoch_day(calendar.first_day_of_week_year(week_year) + 7 * (week - 1) + day_of_week - 1)

    @classmethod
    def of_quarter(cls, year: int, quarter: int, day_of_quarter: int = 1) -> Date:
        require_range("quarter", quarter, 1, 4)
        require_range("dayOfQuarter", day_of_quarter, 1, calendar.days_in_quarter(year, quarter))
        return cls(year, 3 * quarter - 2, 1).plus_days(day_of_quarter - 1)

    @classmethod
    def of_ordinal(cls, year: int, ordinal_day: int) -> Date:
        require_range("ordinalDay", ordinal_day, 1, calendar.days_in_year(year))
        return cls(year, 1, 1).plus_days(ordinal_day - 1)

    @property
    def epoch_day(self) -> int:
        return calendar.days_from_civil(self.year, self.month, self.day)

    def plus_months(self, months: int) -> Date:
        return Date(*calendar.add_months(self.year, self.month, self.day, months))

    def plus_days(self, days: int) -> Date:
        return Date.from_epoch_day(self.epoch_day + days)

    def order_key(self) -> tuple[int, int, int]:
        return self.year, self.month, self.day

    def component(self, name: str) -> object:
        match name:
            case "year":
                return self.year
            case "month":
                return self.month
            case "day":
                return self.day
            case "quarter":
                return calendar.quarter_of_month(self.month)
            case "weekYear":
                return calendar.week_date(self.epoch_day)[0]
            case "week":
                return calendar.week_date(self.epoch_day)[1]
            case "weekDay" | "dayOfWeek":
                return calendar.weekday(self.epoch_day)
            case "ordinalDay":
                return calendar.ordinal_day(self.year, self.month, self.day)
            case "dayOfQuarter":
                return calendar.day_of_quarter(self.year, self.month, self.day)
            case _:
                return None

    def __str__(self) -> str:
        return format_date(self.year, self.month, self.day)


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A time of day, without a zone."""

    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0

    def __post_init__(self) -> None:
        require_range("hour", self.hour, 0, 23)
        require_range("minute", self.minute, 0, 59)
        require_range("second", self.second, 0, 59)
        require_range("nanosecond", self.nanosecond, 0, NANOS_PER_SECOND - 1)

    @classmethod
    def from_nano_of_day(cls, nanos: int) -> LocalTime:
        second_of_day, nanosecond = divmod(nanos, NANOS_PER_SECOND)
        minute_of_day, second = divmod(second_of_day, 60)
        return cls(minute_of_day // 60, minute_of_day % 60, second, nanosecond)

    @property
    def second_of_day(self) -> int:
        return self.hour * 3600 + self.minute * 60 + self.second

    @property
    def nano_of_day(self) -> int:
        return self.second_of_day * NANOS_PER_SECOND + self.nanosecond

    def order_key(self) -> tuple[int, ...]:
        return (self.nano_of_day,)

    def component(self, name: str) -> object:
        match name:
            case "hour":
                return self.hour
            case "minute":
                return self.minute
            case "second":
                return self.second
            case "millisecond":
                return self.nanosecond // 1_000_000
            case "microsecond":
                return self.nanosecond // 1000
            case "nanosecond":
                return self.nanosecond
            case _:
                return None

    def __str__(self) -> str:
        return format_time(self.hour, self.minute, self.second, self.nanosecond)


MIDNIGHT = LocalTime()


def _offset_component(name: str, offset_seconds: int, zone_name: str | None) -> object:
    match name:
        case "timezone":
            return zone_name if zone_name is not None else format_offset(offset_seconds)
        case "offset":
            return format_offset(offset_seconds)
        case "offsetMinutes":
            return abs(offset_seconds) // 60 * (-1 if offset_seconds < 0 else 1)
        case "offsetSeconds":
            return offset_seconds
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day at an offset from UTC."""

    local: LocalTime
    offset_seconds: int = 0

    def at_offset(self, offset_seconds: int) -> Time:
        """The same moment of the day on another clock."""
        shift = (offset_seconds - self.offset_seconds) * NANOS_PER_SECOND
        return Time(LocalTime.from_nano_of_day((self.local.nano_of_day + shift) % NANOS_PER_DAY), offset_seconds)

    def order_key(self) -> tuple[int, int]:
        return self.local.nano_of_day - self.offset_seconds * NANOS_PER_SECOND, self.offset_seconds

    def component(self, name: str) -> object:
        found = self.local.component(name)
        return found if found is not None else _offset_component(name, self.offset_seconds, None)

    def __str__(self) -> str:
        return f"{self.local}{format_offset(self.offset_seconds)}"


@dataclass(frozen=True, slots=True)
class LocalDateTime:
    """A day and a time of day, without a zone."""

    date: Date
    time: LocalTime = MIDNIGHT

    @classmethod
    def from_local_seconds(cls, seconds: int, nanosecond: int = 0) -> LocalDateTime:
        days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
        time = LocalTime.from_nano_of_day(second_of_day * NANOS_PER_SECOND + nanosecond)
        return cls(Date.from_epoch_day(days), time)

    @property
    def local_seconds(self) -> int:
        """Seconds from 1970-01-01T00:00 on the same clock."""
        return self.date.epoch_day * SECONDS_PER_DAY + self.time.second_of_day

    def plus_nanos(self, nanos: int) -> LocalDateTime:
        seconds, nanosecond = divmod(self.time.nanosecond + nanos, NANOS_PER_SECOND)
        return LocalDateTime.from_local_seconds(self.local_seconds + seconds, nanosecond)

    def order_key(self) -> tuple[int, int]:
        return self.local_seconds, self.time.nanosecond

    def component(self, name: str) -> object:
        found = self.date.component(name)
        return found if found is not None else self.time.component(name)

    def __str__(self) -> str:
        return f"{self.date}T{self.time}"


@dataclass(frozen=True, slots=True)
class DateTime:
    """A day and a time of day in a zone: a fixed offset, or a named zone with the offset that it has then."""

    date: Date
    time: LocalTime = MIDNIGHT
    offset_seconds: int = 0
    zone_name: str | None = None

    @classmethod
    def of(cls, local: LocalDateTime, zone: Zone = UTC, preferred_offset: int | None = None) -> DateTime:
        """A local date and time read in a zone; gaps and overlaps as in `Zone.resolve`."""
        wanted = local.local_seconds
        seconds, offset = zone.resolve(wanted, preferred_offset)
        if seconds != wanted:
            local = LocalDateTime.from_local_seconds(seconds, local.time.nanosecond)
        return cls(local.date, local.time, offset, zone.name)

    @classmethod
    def from_epoch(cls, epoch_seconds: int, nanosecond: int = 0, zone: Zone = UTC) -> DateTime:
        offset = zone.offset_at(epoch_seconds)
        local = LocalDateTime.from_local_seconds(epoch_seconds + offset, nanosecond)
        return cls(local.date, local.time, offset, zone.name)

    @classmethod
    def from_epoch_micros(cls, micros: int) -> DateTime:
        """The instant in UTC."""
        seconds, micros_of_second = divmod(micros, 1_000_000)
        return cls.from_epoch(seconds, micros_of_second * 1000)

    def to_epoch_micros(self) -> int:
        """Whole microseconds since 1970-01-01T00:00Z, rounded down."""
        return self.epoch_seconds * 1_000_000 + self.time.nanosecond // 1000

    @property
    def zone(self) -> Zone:
        return Zone(self.zone_name) if self.zone_name is not None else Zone(None, self.offset_seconds)

    @property
    def epoch_seconds(self) -> int:
        return self.date.epoch_day * SECONDS_PER_DAY + self.time.second_of_day - self.offset_seconds

    def at_zone(self, zone: Zone) -> DateTime:
        """The same instant in another zone."""
        return DateTime.from_epoch(self.epoch_seconds, self.time.nanosecond, zone)

    def with_local(self, local: LocalDateTime) -> DateTime:
        """Another local date and time in this zone, at this offset where the zone allows it."""
        return DateTime.of(local, self.zone, self.offset_seconds)

    def plus_nanos(self, nanos: int) -> DateTime:
        """Some time later on the one clock that never jumps."""
        seconds, nanosecond = divmod(self.time.nanosecond + nanos, NANOS_PER_SECOND)
        return DateTime.from_epoch(self.epoch_seconds + seconds, nanosecond, self.zone)

    def order_key(self) -> tuple[int, int, int, str]:
        return self.epoch_seconds, self.time.nanosecond, self.offset_seconds, self.zone_name or ""

    def component(self, name: str) -> object:
        match name:
            case "epochSeconds":
                return self.epoch_seconds
            case "epochMillis":
                return self.epoch_seconds * 1000 + self.time.nanosecond // 1_000_000
        found = self.date.component(name)
        if found is None:
            found = self.time.component(name)
        return found if found is not None else _offset_component(name, self.offset_seconds, self.zone_name)

    def __str__(self) -> str:
        zone = f"[{self.zone_name}]" if self.zone_name is not None else ""
        return f"{self.date}T{self.time}{format_offset(self.offset_seconds)}{zone}"


Instant = Date | LocalTime | Time | LocalDateTime | DateTime
INSTANT_TYPES = (Date, LocalTime, Time, LocalDateTime, DateTime)
