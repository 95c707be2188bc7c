"""Aggregates of SPARQL (18.5.1): one accumulator per group and call.

Unlike the aggregates of property graphs they see nulls: a null is an error, and an error among the values of sum, avg,
min, max or group_concat is the result. Each class says so by `takes_null`.

Invariant: no result depends on the order of the rows, except that group_concat keeps it: sums of integers and decimals
are exact, those of floats are rounded once at the end, and of equal values min, max and sample take the same term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction

from anabranch.model.terms import Iri, Literal
from anabranch.model.values import Value
from anabranch.snapshot.aggregates import Accumulator
from anabranch.snapshot.rdf.arithmetic import quotient, total
from anabranch.snapshot.rdf.ordering import SortKey, strict_key
from anabranch.snapshot.rdf.values import RANKS, Number, integer, literal_of, number_of, single, to_float


class TermAccumulator(Accumulator):
    """An aggregate over terms; `add` is given nulls too."""

    takes_null = True


class Count(TermAccumulator):
    """Values that are not null. With more than one argument (a whole row, or none: `count(*)`), rows."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if value is not None or extra:
            self._count += 1

    def result(self) -> Value:
        return integer(self._count)


class Sum(TermAccumulator):
    """Of the widest type among the values; an integer 0 of nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = False
        self._rank = 0
        self._exact: Number = 0
        self._floats: list[float] = []

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        number = number_of(value)
        if number is None:
            self.failed = True
            return
        self.count += 1
        self._rank = max(self._rank, RANKS[type(number)])
        if isinstance(number, float):
            self._floats.append(float(number))
        else:
            self._exact = total(self._exact, number)

    def total(self) -> Number:
        if self._rank < 2:
            return self._exact
        value = float_sum([*self._floats, to_float(self._exact)])
        return single(value) if self._rank == 2 else value

    def result(self) -> Value:
        return None if self.failed else literal_of(self.total())


class Average(Sum):
    """The sum by the number of values; an integer 0 of nothing."""

    def result(self) -> Value:
        if self.failed:
            return None
        if not self.count:
            return integer(0)
        value = quotient(self.total(), self.count)
        return None if value is None else literal_of(value)


def float_sum(values: Sequence[float]) -> float:
    """Exact until the end, then rounded once; what is infinite or no number wins."""
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    try:
        return math.fsum(values)
    except OverflowError:  # on the way, if not at the end
        exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


class Extreme(TermAccumulator):
    """The first or last term in the order of ORDER BY; an error among the values is the result."""

    def __init__(self, largest: bool, forgiving: bool = False) -> None:
        self._largest = largest
        self._forgiving = forgiving
        self._failed = False
        self._best: Value = None
        self._key: SortKey | None = None

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if value is None:
            self._failed = not self._forgiving
            return
        key = strict_key(value)
        if self._key is None or (key > self._key if self._largest else key < self._key):
            self._best, self._key = value, key

    def result(self) -> Value:
        return None if self._failed else self._best


class GroupConcat(TermAccumulator):
    """Strings in the order of the rows; the separator is the second argument, a blank where there is none."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._failed = False
        self._separator = " "

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if extra:
            self._separator = extra[0].lexical if isinstance(extra[0], Literal) else str(extra[0])
        match value:
            case Literal(text) | Iri(text):
                self._parts.append(text)
            case _:
                self._failed = True

    def result(self) -> Value:
        return None if self._failed else Literal(self._separator.join(self._parts))


class Distinct(TermAccumulator):
    """An aggregate that takes in each term, or each row of arguments, once."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self._seen: set[Hashable] = set()

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        key = (value, *extra)
        if key not in self._seen:
            self._seen.add(key)
            self._inner.add(value, extra)

    def result(self) -> Value:
        return self._inner.result()


AGGREGATES: Mapping[str, Callable[[], Accumulator]] = {
    "sparql:count": Count,
    "sparql:sum": Sum,
    "sparql:avg": Average,
    "sparql:min": lambda: Extreme(largest=False),
    "sparql:max": lambda: Extreme(largest=True),
    "sparql:sample": lambda: Extreme(largest=False, forgiving=True),
    "sparql:group_concat": GroupConcat,
}
