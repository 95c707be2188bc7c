"""Aggregates: one accumulator per group and call, which takes in the values of its arguments and can take them back.

The evaluator only adds; the incremental engine adds the values that enter a group and removes those that leave it. Both
use these accumulators.

Invariant: nulls are ignored (count(*) counts rows). Whether a value is refused depends on the value only, and a refusal
changes nothing. After any adds and removes the result is that of a new accumulator with only the remaining values: sums
are exact until they are rounded, once, at the end; removed values leave no trace. No result depends on the order of the
values, except for aggregates that are `ordered`: they keep it.

State: the data needed to remove any value; O(1) for counts, sums and deviations, else O(distinct values).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from anabranch.model.compare import SortKey, canonical_key, identity_key, looks_same, row_order_key
from anabranch.model.sorted_bag import SortedBag
from anabranch.model.temporal import Duration, arithmetic
from anabranch.model.temporal.refusals import wrong_kind, wrong_value
from anabranch.model.values import Value
from anabranch.snapshot.functions.support import in_range, number
from anabranch.snapshot.sums import FloatSum, Moments


class Accumulator(ABC):
    """The state of one aggregate over one group. `extra` are the arguments after the first."""

    takes_null: ClassVar[bool] = False
    """Whether nulls are given to it too."""
    ordered: ClassVar[bool] = False
    """Whether the result depends on the order in which values are added."""

    @abstractmethod
    def add(self, value: Value, extra: Sequence[Value]) -> None:
        """Take in a value that is not null."""

    @abstractmethod
    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        """Take back a value that was added and not removed since."""

    @abstractmethod
    def result(self) -> Value: ...


class Count(Accumulator):
    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._count += 1

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        self._count -= 1

    def result(self) -> Value:
        return self._count


class Collect(Accumulator):
    ordered = True

    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._values.append(value)

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        key = canonical_key(value)
        del self._values[next(at for at, one in enumerate(self._values) if canonical_key(one) == key)]

    def result(self) -> Value:
        return self._values


class Ranking:
    """Values in the order of a key. They stay unsorted until the first removal or the second call of `first`."""

    __slots__ = ("_asked", "_bag", "_counts", "_entering", "_key")

    def __init__(self, key: Callable[[Value], SortKey]) -> None:
        self._key = key
        self._entering: list[Value] = []
        self._asked = False
        self._counts: dict[SortKey, tuple[Value, int]] = {}
        self._bag: SortedBag[SortKey] = SortedBag()

    def add(self, value: Value) -> None:
        self._entering.append(value)

    def remove(self, value: Value) -> None:
        self._settle()
        key = self._key(value)
        one, count = self._counts[key]
        if count > 1:
            self._counts[key] = one, count - 1
        else:
            del self._counts[key]
            self._bag.remove(key)

    def _settle(self) -> None:
        counts, new = self._counts, []
        for value in self._entering:
            key = self._key(value)
            known = counts.get(key)
            if known is None:
                new.append(key)
                counts[key] = value, 1
            else:
                counts[key] = known[0], known[1] + 1
        self._entering.clear()
        self._bag.extend(new)

    def first(self, largest: bool, firm: bool) -> Value:
        """Return the value with the smallest or largest key, or null. Unless `firm`, only the first part of a key
        decides which is larger, and among equals the first one is taken."""
        if not self._counts and not self._asked:
            self._asked = True
            if not self._entering:
                return None
            if firm or not largest:
                return (max if largest else min)(self._entering, key=self._key)
            return self._greatest()
        self._settle()
        if not len(self._bag):
            return None
        if not largest:
            return self._counts[self._bag[0]][0]
        key = self._bag[-1] if firm else self._bag.first_from(self._bag[-1][:1])
        return self._counts[key][0]  # type: ignore[index]

    def _greatest(self) -> Value:
        best = self._entering[0]
        order, look = self._key(best)
        for value in self._entering:
            key: Any = self._key(value)
            if key[0] > order or (key[0] == order and key[1] < look):
                best, (order, look) = value, key
        return best


class Extreme(Accumulator):
    """The first or last value in the order of ORDER BY; of values that are equal there, the first in the canonical
    order."""

    def __init__(self, largest: bool) -> None:
        self.sign = -1 if largest else 1
        self._largest = largest
        self._values = Ranking(canonical_key)

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._values.add(value)

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        self._values.remove(value)

    def result(self) -> Value:
        return self._values.first(self._largest, firm=False)


class Sum(Accumulator):
    """Integers, floats and durations; durations do not mix with numbers."""

    def __init__(self, name: str = "sum()") -> None:
        self._name = name
        self.count = 0
        self._integers = 0
        self._floats: FloatSum | None = None
        self._durations = 0
        self._parts = (0, 0, 0, 0)

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if value.__class__ is int:
            self._integers += value
        elif isinstance(value, Duration):
            self._last(value, 1)
        else:
            operand = number(value, self._name)
            if isinstance(operand, int):
                self._integers += operand
            else:
                if self._floats is None:
                    self._floats = FloatSum()
                self._floats.add(operand)
        self.count += 1

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        self.count -= 1
        match value:
            case Duration():
                self._last(value, -1)
            case float() if self._floats is not None:
                self._floats.remove(value)
            case int():
                self._integers -= value

    def shift(self, count: int, floats: int, integers: int, units: int, exponent: int) -> None:
        """Add `count` numbers, of which `floats` are finite floats: the sum of the integers, and the exact sum of the
        floats."""
        self.count += count
        self._integers += integers
        if floats or units:
            if self._floats is None:
                self._floats = FloatSum()
            self._floats.shift(floats, units, exponent)

    def _last(self, value: Duration, sign: int) -> None:
        months, days, seconds, nanoseconds = self._parts
        self._durations += sign
        self._parts = (
            months + sign * value.months,
            days + sign * value.days,
            seconds + sign * value.seconds,
            nanoseconds + sign * value.nanoseconds,
        )

    def total(self) -> int | float | Duration:
        if self._durations:
            if self._durations != self.count:
                raise wrong_kind(f"{self._name} of numbers and durations together")
            return Duration(*self._parts)
        if self._floats is not None and self._floats.count:
            return self._floats.total(float(self._integers))
        return self._integers

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


class Deviation(Accumulator):
    """Standard deviation, of a sample or of the whole population; 0 of fewer than two values.

    From the exact sums of the values and of their squares: (n * sum(x^2) - sum(x)^2) / (n * (n - d)), rounded once.
    """

    def __init__(self, name: str, whole_population: bool) -> None:
        self._name = name
        self._degrees_lost = 0 if whole_population else 1
        self._moments = Moments()

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        self._moments.change(float(number(value, self._name)), 1)

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        self._moments.change(float(number(value, self._name)), -1)

    def result(self) -> Value:
        return self._moments.deviation(self._degrees_lost)


class Percentile(Accumulator):
    """The value below which a share of the values lies: interpolated (cont) or the nearest existing one (disc).

    The share is meant to be one; of several, the smallest counts.
    """

    def __init__(self, name: str, interpolated: bool) -> None:
        self._name = name
        self._interpolated = interpolated
        self._ordered: SortedBag[Any] = SortedBag()
        self._entering: list[int | float] = []
        self._shares: dict[float, int] = {}

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        share = float(number(extra[0], self._name))
        if not 0 <= share <= 1:
            raise wrong_value(f"{self._name} takes a share between 0.0 and 1.0, not {extra[0]}")
        self._entering.append(number(value, self._name))
        self._shares[share] = self._shares.get(share, 0) + 1

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        self._settle()
        self._ordered.remove(canonical_key(value))
        share = float(number(extra[0], self._name))
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]

    def _settle(self) -> None:
        self._ordered.extend(list(map(canonical_key, self._entering)))
        self._entering.clear()

    def result(self) -> Value:
        if not self._shares:
            return None
        self._settle()
        share, ordered = min(self._shares), self._ordered
        if not self._interpolated:
            return _number(ordered[max(math.ceil(share * len(ordered)) - 1, 0)])
        place = share * (len(ordered) - 1)
        below, above = _number(ordered[math.floor(place)]), _number(ordered[math.ceil(place)])
        return float(below) if below == above else below + (above - below) * (place - math.floor(place))


def _number(key: Any) -> Any:
    """The number that a canonical key was made of; NaN has none in it."""
    return key[0][1] if len(key[0]) > 1 else math.nan


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


class _Member:
    """One representation of an added value, and its count."""

    __slots__ = ("count", "extra", "value")

    def __init__(self, value: Value, extra: Sequence[Value]) -> None:
        self.value = value
        self.extra = extra
        self.count = 1

    def looks(self, value: Value, extra: Sequence[Value]) -> bool:
        return looks_same(self.value, value) and (not extra or row_order_key(self.extra) == row_order_key(extra))

    def place(self) -> SortKey:
        return row_order_key((self.value, *self.extra))


class DistinctValues(Accumulator):
    """An aggregate that takes in each value once. Of equivalent values it takes the first in the canonical order; an
    ordered aggregate takes the one that came first."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self._classes: dict[Hashable, list[_Member]] = {}  # the first member of each is in the inner aggregate

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        key = identity_key(value)
        members = self._classes.get(key)
        if members is None:
            self._inner.add(value, extra)
            self._classes[key] = [_Member(value, extra)]
            return
        for member in members:
            if member.looks(value, extra):
                member.count += 1
                return
        member = _Member(value, extra)
        if self._inner.ordered or members[0].place() < member.place():
            members.append(member)
        else:
            self._inner.remove(members[0].value, members[0].extra)
            self._inner.add(value, extra)
            members.insert(0, member)

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        key = identity_key(value)
        members = self._classes[key]
        at = next(at for at, member in enumerate(members) if member.looks(value, extra))
        members[at].count -= 1
        if members[at].count:
            return
        del members[at]
        if at == 0:
            self._inner.remove(value, extra)
            if members:
                members.sort(key=_Member.place)
                self._inner.add(members[0].value, members[0].extra)
        if not members:
            del self._classes[key]

    def result(self) -> Value:
        return self._inner.result()
