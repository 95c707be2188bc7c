"""Aggregates: one accumulator per group and call, fed with the values of its arguments.

Invariant: nulls are ignored (count(*) counts rows), and no result depends on the order of the rows, except that collect
keeps it; float sums are rounded once, at the end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence

from anabranch.model.compare import identity_key, order_key
from anabranch.model.temporal import Duration, arithmetic
from anabranch.model.temporal.refusals import kind_of, wrong_kind, wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.functions.support import in_range, number


class Accumulator(ABC):
    """The state of one aggregate over one group. `extra` are the arguments after the first."""

    @abstractmethod
    def add(self, value: Value, extra: Sequence[Value]) -> None:
        """Take in a value that is not null."""

    @abstractmethod
    def result(self) -> Value: ...


class Count(Accumulator):
    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._count += 1

    def result(self) -> Value:
        return self._count


class Collect(Accumulator):
    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._values.append(value)

    def result(self) -> Value:
        return self._values


class Extreme(Accumulator):
    """The first or last value in the order of ORDER BY; of equals, the one that came first."""

    def __init__(self, largest: bool) -> None:
        self._largest = largest
        self._best: Value = None
        self._key: tuple[object, ...] | None = None

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        key = order_key(value)
        if self._key is None or (key > self._key if self._largest else key < self._key):
            self._best, self._key = value, key

    def result(self) -> Value:
        return self._best


class Sum(Accumulator):
    """Integers, floats and durations; durations do not mix with numbers."""

    def __init__(self, name: str = "sum()") -> None:
        self._name = name
        self.count = 0
        self._integers = 0
        self._floats: list[float] = []
        self._durations: Duration | None = None

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if isinstance(value, Duration):
            if self.count and self._durations is None:
                raise wrong_kind(f"{self._name} of numbers and durations together")
            total = value if self._durations is None else arithmetic.add(self._durations, value)
            assert isinstance(total, Duration)
            self._durations = total
        elif self._durations is not None:
            raise wrong_kind(f"{self._name} of durations and {kind_of(value)} together")
        else:
            operand = number(value, self._name)
            if isinstance(operand, int):
                self._integers += operand
            else:
                self._floats.append(operand)
        self.count += 1

    def total(self) -> int | float | Duration:
        if self._durations is not None:
            return self._durations
        return _exact_sum([*self._floats, self._integers]) if self._floats else self._integers

    def result(self) -> Value:
        total = self.total()
        return in_range(total) if isinstance(total, int) else total


class Average(Sum):
    """Always a float, or a duration; null of nothing."""

    def __init__(self) -> None:
        super().__init__("avg()")

    def result(self) -> Value:
        if not self.count:
            return None
        total = self.total()
        return arithmetic.divide(total, self.count) if isinstance(total, Duration) else total / self.count


def _exact_sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # past the floats, or infinities of both signs
        return float(sum(values))


class Deviation(Accumulator):
    """Standard deviation, of a sample or of the whole population; 0 of fewer than two values."""

    def __init__(self, name: str, whole_population: bool) -> None:
        self._name = name
        self._degrees_lost = 0 if whole_population else 1
        self._values: list[float] = []

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._values.append(float(number(value, self._name)))

    def result(self) -> Value:
        count = len(self._values)
        if count < 2:
            return 0.0
        mean = _exact_sum(self._values) / count
        return math.sqrt(_exact_sum([(value - mean) ** 2 for value in self._values]) / (count - self._degrees_lost))


class Percentile(Accumulator):
    """The value below which a share of the values lies: interpolated (cont) or the nearest existing one (disc)."""

    def __init__(self, name: str, interpolated: bool) -> None:
        self._name = name
        self._interpolated = interpolated
        self._values: list[int | float] = []
        self._share: float | None = None

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        share = float(number(extra[0], self._name))
        if not 0 <= share <= 1:
            raise wrong_value(f"{self._name} takes a share between 0.0 and 1.0, not {extra[0]}")
        self._share = share
        self._values.append(number(value, self._name))

    def result(self) -> Value:
        if self._share is None:
            return None
        ordered = sorted(self._values, key=order_key)
        if not self._interpolated:
            return ordered[max(math.ceil(self._share * len(ordered)) - 1, 0)]
        place = self._share * (len(ordered) - 1)
        below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
        return float(below) if below == above else below + (above - below) * (place - math.floor(place))


AGGREGATES: Mapping[str, Callable[[], Accumulator]] = {
    "count": Count,
    "collect": Collect,
    "min": lambda: Extreme(largest=False),
    "max": lambda: Extreme(largest=True),
    "sum": Sum,
    "avg": Average,
    "stdev": lambda: Deviation("stDev()", whole_population=False),
    "stdevp": lambda: Deviation("stDevP()", whole_population=True),
    "percentilecont": lambda: Percentile("percentileCont()", interpolated=True),
    "percentiledisc": lambda: Percentile("percentileDisc()", interpolated=False),
}


class Distinct(Accumulator):
    """An aggregate that takes in each value once."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self._seen: set[Hashable] = set()

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        key = identity_key(value)
        if key not in self._seen:
            self._seen.add(key)
            self._inner.add(value, extra)

    def result(self) -> Value:
        return self._inner.result()
