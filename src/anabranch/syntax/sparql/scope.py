"""The state of lowering: collected problems, the settings of one statement, and the scope of an expression.

Invariant: a scope is never changed, only extended into a new one. A name without a column is unbound, which is legal in
SPARQL, so scopes never refuse a name by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from anabranch.algebra.expressions import AggregateCall, Expression
from anabranch.algebra.operators import TripleSource
from anabranch.syntax.common import LoweringProblems
from anabranch.syntax.sparql import tree as t

if TYPE_CHECKING:
    from anabranch.syntax.sparql.lower_dataset import Dataset
    from anabranch.syntax.sparql.lower_times import TimeColumns

TIME_STEM = "time"
SOLUTION_STEM = "solution"


def is_visible(name: str) -> bool:
    """Return whether a query can name the column: blank nodes and generated names begin with a space."""
    return not name.startswith(" ")


def leaves_group(name: str) -> bool:
    """Return whether a column is used outside of the group that made it: names of the query, and times of triples."""
    return is_visible(name) or name.startswith(f" {TIME_STEM}")


@dataclass(frozen=True, slots=True)
class StatementSettings:
    """The settings for all parts of one statement."""

    problems: LoweringProblems
    dialect: t.Dialect
    base: str
    dataset: Dataset
    times: TimeColumns


class Calls:
    """Aggregates met in expressions: equal ones are computed once, in a column of their own."""

    def __init__(self, problems: LoweringProblems, stem: str) -> None:
        self._problems = problems
        self._stem = stem
        self.columns: dict[AggregateCall, str] = {}
        self.next_name: str | None = None  # the name of the next new column

    def column(self, call: AggregateCall) -> str:
        name, self.next_name = self.next_name, None
        if call not in self.columns:
            self.columns[call] = name or self._problems.fresh(self._stem)
        return self.columns[call]

    @property
    def aggregates(self) -> tuple[tuple[str, AggregateCall], ...]:
        return tuple((name, call) for call, name in self.columns.items())


@dataclass(frozen=True, slots=True)
class Grouping:
    """The aggregates that expressions over groups may use, over the rows that `inner` describes."""

    inner: Scope
    calls: Calls


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of an expression: columns of its row, the graph for patterns in it, and its groups."""

    columns: tuple[str, ...]
    certain: frozenset[str]
    source: TripleSource
    grouping: Grouping | None = None
    ungrouped: Literal["refuse", "sample"] = "refuse"
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    annotations: Calls | None = None  # receives LUPOS's aggregates that annotate rows
    in_aggregate: bool = False

    def with_column(self, name: str) -> Scope:
        return self.with_columns((name,))

    def with_columns(self, names: Iterable[str], certain: Iterable[str] = ()) -> Scope:
        columns = tuple(dict.fromkeys((*self.columns, *names)))
        return replace(self, columns=columns, certain=self.certain | frozenset(certain))
