"""Duration: months, days, seconds and nanoseconds, which are never turned into one another.

A month has no fixed number of days and a day no fixed number of seconds, so the four are kept apart; only
fractions flow down, with an average month of 30.436875 days (a 400-year cycle divided by its months).

Invariant: 0 <= nanoseconds < 10^9; the seconds carry the sign of the time part.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from anabranch.model.temporal.format import NANOS_PER_SECOND, format_duration
from anabranch.model.temporal.refusals import wrong_value
from anabranch.model.temporal.zones import SECONDS_PER_DAY

AVERAGE_SECONDS_PER_MONTH = 2_629_746
AVERAGE_DAYS_PER_MONTH = Fraction(AVERAGE_SECONDS_PER_MONTH, SECONDS_PER_DAY)
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Duration:
    """An amount of time; any component may be negative."""

    months: int = 0
    days: int = 0
    seconds: int = 0
    nanoseconds: int = 0

    def __post_init__(self) -> None:
        carry, nanoseconds = divmod(self.nanoseconds, NANOS_PER_SECOND)
        object.__setattr__(self, "seconds", self.seconds + carry)
        object.__setattr__(self, "nanoseconds", nanoseconds)
        for name, amount in (("months", self.months), ("days", self.days), ("seconds", self.seconds)):
            if not -_INT64_MAX - 1 <= amount <= _INT64_MAX:
                raise wrong_value(f"a duration cannot hold {amount} {name}", "each component has 64 bits")

    @classmethod
    def approximate(
        cls,
        months: Fraction | int = 0,
        days: Fraction | int = 0,
        seconds: Fraction | int = 0,
        nanoseconds: Fraction | int = 0,
    ) -> Duration:
        """A duration from fractional parts: what is left of each unit flows into the next smaller one."""
        whole_months = int(months)
        days = days + (months - whole_months) * AVERAGE_DAYS_PER_MONTH
        whole_days = int(days)
        seconds = seconds + (days - whole_days) * SECONDS_PER_DAY
        whole_seconds = int(seconds)
        nanoseconds = nanoseconds + (seconds - whole_seconds) * NANOS_PER_SECOND
        return cls(whole_months, whole_days, whole_seconds, int(nanoseconds))

    @property
    def time_nanos(self) -> int:
        """The part below the day, in nanoseconds."""
        return self.seconds * NANOS_PER_SECOND + self.nanoseconds

    @property
    def micros(self) -> int:
        """Days and the part below, in whole microseconds; months are left out."""
        return (self.days * SECONDS_PER_DAY * NANOS_PER_SECOND + self.time_nanos) // 1000

    @property
    def fixed_micros(self) -> int | None:
        """The length in microseconds; None where a calendar decides it, or it is not whole."""
        return None if self.months or self.nanoseconds % 1000 else self.micros

    @property
    def is_negative(self) -> bool:
        """Whether any part of it goes back."""
        return self.months < 0 or self.days < 0 or self.time_nanos < 0

    def negated(self) -> Duration:
        return Duration(-self.months, -self.days, -self.seconds, -self.nanoseconds)

    def order_key(self) -> tuple[int, int, int, int]:
        """By average length, for ORDER BY, min and max; Cypher's `<` between durations is null."""
        average = self.months * AVERAGE_SECONDS_PER_MONTH + self.days * SECONDS_PER_DAY + self.seconds
        return average, self.nanoseconds, self.months, self.days

    def component(self, name: str) -> object:
        """A component; `xsOfY` are what is left of a bigger unit, all others the whole in that unit."""
        match name:
            case "years":
                return _quotient(self.months, 12)
            case "quarters":
                return _quotient(self.months, 3)
            case "months":
                return self.months
            case "weeks":
                return _quotient(self.days, 7)
            case "days":
                return self.days
            case "hours":
                return _quotient(self.seconds, 3600)
            case "minutes":
                return _quotient(self.seconds, 60)
            case "seconds":
                return self.seconds
            case "milliseconds":
                return _quotient(self.time_nanos, 1_000_000)
            case "microseconds":
                return _quotient(self.time_nanos, 1000)
            case "nanoseconds":
                return self.time_nanos
            case _:
                return self._remaining_component(name)

    def _remaining_component(self, name: str) -> object:
        match name:
            case "quartersOfYear":
                return _quotient(_remainder(self.months, 12), 3)
            case "monthsOfYear":
                return _remainder(self.months, 12)
            case "monthsOfQuarter":
                return _remainder(self.months, 3)
            case "daysOfWeek":
                return _remainder(self.days, 7)
            case "minutesOfHour":
                return _quotient(_remainder(self.seconds, 3600), 60)
            case "secondsOfMinute":
                return _remainder(self.seconds, 60)
            case "millisecondsOfSecond":
                return self.nanoseconds // 1_000_000
            case "microsecondsOfSecond":
                return self.nanoseconds // 1000
            case "nanosecondsOfSecond":
                return self.nanoseconds
            case _:
                return None

    def __str__(self) -> str:
        return format_duration(self.months, self.days, self.seconds, self.nanoseconds)


def exact(number: int | float) -> Fraction:
    """The number that the user wrote: 0.1 is a tenth, not the binary float next to it."""
    if isinstance(number, int):
        return Fraction(number)
    if number != number or number in (float("inf"), float("-inf")):
        raise wrong_value(f"a duration cannot be made of {number}")
    return Fraction(repr(number))


def _quotient(amount: int, unit: int) -> int:
    return amount // unit if amount >= 0 else -(-amount // unit)


def _remainder(amount: int, unit: int) -> int:
    return amount - _quotient(amount, unit) * unit
