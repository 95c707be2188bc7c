"""Static parts: the parts of a plan that read only static graphs are computed once per version of these graphs, and
kept.

Invariant: the rows are those of the plan at this instant. They are kept only under the version numbers of the graphs
that they came from, and not used while a window holds a triple that could belong to them.

Invariant: a part that is kept has no more rows than its graphs have triples, or than `MOST_ROWS`. Beyond that
`PartTooLarge` is raised: evaluating the part for the bindings of the rest of the query costs less than keeping it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import static_graphs
from anabranch.model.values import Value
from anabranch.snapshot.compiled import RowSource
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.tables import TermTable

Row = TypeVar("Row")

MOST_ROWS = 100_000


class PartTooLarge(Exception):
    """A static part has too many rows to be kept; the query is correct, and must be evaluated without such parts."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a part over static graphs has more than {limit:,} rows")


class StaticRows:
    """A `StaticPart`, compiled. The table keeps its indexes from one evaluation to the next."""

    def __init__(self, operator: tr.StaticPart, plan: RowSource, otherwise: RowSource | None) -> None:
        self._operator = operator
        self._columns = operator.columns
        self._plan = plan
        self._otherwise = otherwise
        self._names = tuple(graph.name for graph in static_graphs(operator.plan))
        self._picks: list[int] | None = None
        if operator.otherwise is not None and operator.otherwise.columns != self._columns:
            self._picks = [operator.otherwise.columns.index(name) for name in self._columns]
        self._kept: tuple[tuple[int, ...], TermTable] | None = None

    def __call__(self, context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        return iter(self.table(context, row).rows)

    def table(self, context: Context, row: tuple[Value, ...]) -> TermTable:
        found: TermTable | None = context.memory.get(self)
        if found is None:
            found = context.memory[self] = self._found(context, row)
        return found

    def _found(self, context: Context, row: tuple[Value, ...]) -> TermTable:
        if self._otherwise is not None and self._is_touched(context):
            rows = self._otherwise(context, row)
            picks = self._picks
            if picks is not None:
                rows = (tuple([one[at] for at in picks]) for one in rows)
            return TermTable(self._columns, no_more_than(self._most(context), rows))
        if context.static_version is None:
            return TermTable(self._columns, no_more_than(self._most(context), self._evaluated(context, row)))
        versions = tuple(map(context.static_version, self._names))
        if self._kept is None or self._kept[0] != versions:
            rows = no_more_than(self._most(context), self._evaluated(context, row))
            self._kept = (versions, TermTable(self._columns, rows))
        return self._kept[1]

    def _most(self, context: Context) -> int:
        return max(MOST_ROWS, *(len(context.triples(op.Static(name))) for name in self._names))

    def _is_touched(self, context: Context) -> bool:
        graphs = [context.triples(window) for window in self._operator.windows]
        return any(graph.has_predicate(predicate) for graph in graphs for predicate in self._operator.unless)

    def _evaluated(self, context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        plan = self._operator.plan
        if context.plugin is not None and _is_plain(plan):
            assert isinstance(plan, tr.GraphPattern)
            return iter(context.plugin.match(plan.patterns, context.triples(plan.source)))
        return self._plan(context, row)


def no_more_than(most: int, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a part; raise PartTooLarge if there are more than `most`."""
    for number, row in enumerate(rows):
        if number >= most:
            raise PartTooLarge(most)
        yield row


def _is_plain(plan: op.Operator) -> bool:
    match plan:
        case tr.GraphPattern(_, patterns):
            return bool(patterns) and not any(pattern.times for pattern in patterns)
        case _:
            return False
