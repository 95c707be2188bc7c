"""Calls of aggregates: how operators on groups see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from anabranch.delta.operators.base import RowFunction
from anabranch.errors import EvaluationError
from anabranch.model.compare import SortKey
from anabranch.model.values import Value

IdRow = tuple[int, ...]


class AggregateFunction(Protocol):
    """An aggregate function over the values of its arguments. `counts`: it only counts the rows (`counts_rows`), or the
    values of its first argument that are not null, and `counted` is its result. `sums`: it adds up the values of its
    only argument, and `shift` adds many integers and finite floats at once, given as their sums (`NumberSum`);
    `averages`: its result is that sum, divided by the number of values, null of none. `extreme`: its result is the
    smallest (1) or the largest (-1) value of its only argument. `ordered`: its result depends on the order of the
    rows."""

    ordered: bool
    sums: bool
    averages: bool
    extreme: int
    counts: bool
    counts_rows: bool

    def begin(self) -> Any: ...
    def add(self, state: Any, values: Sequence[Value]) -> None: ...
    def refuses(self, values: Sequence[Value]) -> bool: ...
    def remove(self, state: Any, values: Sequence[Value]) -> None: ...
    def shift(self, state: Any, count: int, floats: int, integers: int, units: int, exponent: int) -> None: ...
    def result(self, state: Any) -> Value: ...
    def counted(self, count: int) -> Value: ...


Refuse: TypeAlias = Callable[[EvaluationError], None]


@dataclass(frozen=True, slots=True)
class GroupCall:
    function: AggregateFunction
    arguments: Sequence[RowFunction]


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The order in which aggregates see the rows of a group: `key` makes the sort key of the ids in these columns. Rows
    with equal keys are equal to the aggregates."""

    columns: Sequence[RowFunction]
    key: Callable[[IdRow], SortKey]


def raise_error(error: EvaluationError) -> None:
    """Raise the error: what is done about a failing row where nothing else is wished."""
    raise error
