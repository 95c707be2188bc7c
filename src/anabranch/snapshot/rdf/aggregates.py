"""Aggregates of SPARQL (18.5.1): one accumulator per group and call.

Unlike the aggregates of property graphs they receive nulls: a null is an error, and an error among the values of sum,
avg, min, max or group_concat is the result. Each class declares this by `takes_null`.

Invariant: as for all aggregates, the result is that of the remaining values. Sums of integers and decimals are exact,
those of floats are rounded once at the end; the type is the widest of those that are present; of equal values min, max
and sample take the same term; an error is the result as long as its value is present, and no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal

from anabranch.model.terms import Iri, Literal
from anabranch.model.values import Value
from anabranch.snapshot.aggregates import Accumulator, Ranking
from anabranch.snapshot.limits import check_text
from anabranch.snapshot.rdf.arithmetic import quotient
from anabranch.snapshot.rdf.ordering import strict_key
from anabranch.snapshot.rdf.timeline import EXACT
from anabranch.snapshot.rdf.values import RANKS, Number, integer, literal_of, number_of, single, to_float
from anabranch.snapshot.sums import FloatSum

_WIDE = Context(prec=20_000, Emin=-999_999, Emax=999_999, traps=[])
"""Wide enough for the sum of any decimals that literals can hold: what was added can be subtracted without a trace."""


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

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        if value is not None or extra:
            self._count -= 1

    def result(self) -> Value:
        return integer(self._count)


class Sum(TermAccumulator):
    """Of the widest type among the values; an integer 0 of nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self._ranks = [0] * len(RANKS)
        self._integers = 0
        self._decimals = Decimal(0)
        self._floats: FloatSum | None = None

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        match number_of(value):
            case None:
                self.errors += 1
                return
            case int() as number:
                self._integers += number
            case Decimal() as number:
                self._decimals = _WIDE.add(self._decimals, number)
            case number:
                if self._floats is None:
                    self._floats = FloatSum()
                self._floats.add(float(number))
        self.count += 1
        self._ranks[RANKS[type(number)]] += 1

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        match number_of(value):
            case None:
                self.errors -= 1
                return
            case int() as number:
                self._integers -= number
            case Decimal() as number:
                self._decimals = _WIDE.subtract(self._decimals, number)
            case number:
                assert self._floats is not None
                self._floats.remove(float(number))
        self.count -= 1
        self._ranks[RANKS[type(number)]] -= 1

    def total(self) -> Number:
        _, decimals, singles, doubles = self._ranks
        exact: Number = self._integers
        if decimals:
            exact = EXACT.plus(_WIDE.add(self._decimals, Decimal(self._integers)))
        if self._floats is None or not singles + doubles:
            return exact
        value = self._floats.total(to_float(exact))
        return value if doubles else single(value)

    def result(self) -> Value:
        return None if self.errors else literal_of(self.total())


class Average(Sum):
    """The sum by the number of values; an integer 0 of nothing."""

    def result(self) -> Value:
        if self.errors:
            return None
        if not self.count:
            return integer(0)
        value = quotient(self.total(), self.count)
        return None if value is None else literal_of(value)


class Extreme(TermAccumulator):
    """The first or last term in the order of ORDER BY; an error among the values is the result."""

    def __init__(self, largest: bool, forgiving: bool = False) -> None:
        self._largest = largest
        self._forgiving = forgiving
        self._errors = 0
        self._values = Ranking(strict_key)

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if value is None:
            self._errors += 1
        else:
            self._values.add(value)

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        if value is None:
            self._errors -= 1
        else:
            self._values.remove(value)

    def result(self) -> Value:
        failed = self._errors and not self._forgiving
        return None if failed else self._values.first(self._largest, firm=True)


class GroupConcat(TermAccumulator):
    """Strings in the order of the rows; the separator is the second argument, a blank where there is none."""

    ordered = True

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._errors = 0
        self._separator = " "

    def add(self, value: Value, extra: Sequence[Value]) -> None:
        if extra:
            self._separator = extra[0].lexical if isinstance(extra[0], Literal) else str(extra[0])
        match value:
            case Literal(text) | Iri(text):
                self._parts.append(text)
            case _:
                self._errors += 1

    def remove(self, value: Value, extra: Sequence[Value]) -> None:
        match value:
            case Literal(text) | Iri(text):
                self._parts.remove(text)
            case _:
                self._errors -= 1

    def result(self) -> Value:
        if self._errors:
            return None
        check_text(sum(map(len, self._parts)) + len(self._separator) * len(self._parts))
        return Literal(self._separator.join(self._parts))


AGGREGATES: Mapping[str, Callable[[], Accumulator]] = {
    "sparql:count": Count,
    "sparql:sum": Sum,
    "sparql:avg": Average,
    "sparql:min": lambda: Extreme(largest=False),
    "sparql:max": lambda: Extreme(largest=True),
    "sparql:sample": lambda: Extreme(largest=False, forgiving=True),
    "sparql:group_concat": GroupConcat,
}
