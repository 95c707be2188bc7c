"""What lowering knows while it works: collected problems, the settings of one statement, and what an expression sees.

Invariant: a scope is never changed, only extended into a new one. A name that no column stands for is unbound, which
is legal in SPARQL, so scopes never refuse a name by themselves.
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
    """Whether a query can name the column: blank nodes and what lowering made up begin with a space."""
    return not name.startswith(" ")


def leaves_group(name: str) -> bool:
    """Whether a column is of use outside of the group that made it: what a query can name, and times of triples."""
    return is_visible(name) or name.startswith(f" {TIME_STEM}")


@dataclass(frozen=True, slots=True)
class StatementSettings:
    """What holds for all parts of one statement."""

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
        self.next_name: str | None = None  # what the next new column is called

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
    """What expressions over groups may ask for: aggregates over the rows that `inner` describes."""

    inner: Scope
    calls: Calls


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression sees: columns of its row, the graph that patterns in it look at, and its groups."""

    columns: tuple[str, ...]
    certain: frozenset[str]
    source: TripleSource
    grouping: Grouping | None = None
    ungrouped: Literal["refuse", "sample"] = "refuse"
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    annotations: Calls | None = None  # where LUPOS's aggregates go that annotate rows
    in_aggregate: bool = False

    def with_column(self, name: str) -> Scope:
        return self.with_columns((name,))

    def with_columns(self, names: Iterable[str], certain: Iterable[str] = ()) -> Scope:
        columns = tuple(dict.fromkeys((*self.columns, *names)))
        return replace(self, columns=columns, certain=self.certain | frozenset(certain))
