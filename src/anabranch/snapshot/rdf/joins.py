"""Tables as atoms, and MINUS: rows that agree wherever both have a value.

Invariant: the joined row has the value of the side that has one; a null on either side agrees with everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from anabranch.model.values import Value
from anabranch.snapshot.compiled import RowSource
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.atoms import Atom, ConjunctionRun, RowLayout, Solution, SolutionStep, TableSource, filled
from anabranch.snapshot.rdf.tables import TermTable, picker


class TableAtom(Atom):
    """The rows of an operator, held as table number `number` of the run."""

    def __init__(self, number: int, columns: RowLayout, certain: frozenset[str]) -> None:
        self.number = number
        self.columns = columns
        self.certain = certain

    def estimate(self, run: ConjunctionRun, layout: RowLayout, sample: Sequence[Solution]) -> float:
        table = run.table(self.number)
        shared = [(layout.index(name), at) for at, name in enumerate(self.columns) if name in layout]
        if not shared:
            return float(len(table))
        return sum(len(_found(table, row, shared)) for row in sample) / len(sample)

    def step(self, layout: RowLayout, sure: frozenset[str]) -> SolutionStep:
        shared = [(layout.index(name), at) for at, name in enumerate(self.columns) if name in layout]
        cut = picker([at for at, name in enumerate(self.columns) if name not in layout])
        number = self.number
        if {layout[here] for here, _ in shared} <= sure & self.certain:
            here = picker([one for one, _ in shared])
            positions = tuple(at for _, at in shared)

            def known(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
                table, spend = run.table(number), run.context.spend
                for row in rows:
                    found = table.find(positions, here(row))
                    spend(len(found))
                    for one in found:
                        yield row + cut(one)

            return known

        def step(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
            table, spend = run.table(number), run.context.spend
            for row in rows:
                found = _found(table, row, shared)
                spend(len(found))
                for one in found:
                    values = filled(row, [(here, one[at]) for here, at in shared])
                    if values is not None:
                        yield (*values, *cut(one))

        return step


def _found(table: TermTable, row: Solution, shared: Sequence[tuple[int, int]]) -> Sequence[Solution]:
    bound = [(row[here], at) for here, at in shared if row[here] is not None]
    return table.find(tuple(at for _, at in bound), [value for value, _ in bound])


def compile_minus(left: RowSource, left_columns: RowLayout, right: TableSource, right_columns: RowLayout) -> RowSource:
    shared = [(left_columns.index(name), at) for at, name in enumerate(right_columns) if name in left_columns]
    if not shared:  # no row shares a bound column with another
        return left

    def rows(context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        table: TermTable | None = None
        for one in left(context, row):
            if table is None:
                table = right(context, row)
            bound = [(one[here], at) for here, at in shared if one[here] is not None]
            if not table.meets(tuple(at for _, at in bound), [value for value, _ in bound]):
                yield one

    return rows
