"""The parts that a conjunction is made of: a triple pattern, a property path, a table of rows.

An atom extends rows. Given rows in some layout it makes each of them longer by the columns that it binds, once for
every way to do so. A row's value that is null is free: the atom binds it.

Invariant: a step gives the extensions of one row before those of the next, so the order of the rows is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from anabranch.model.values import Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.tables import TermTable

RowLayout: TypeAlias = tuple[str, ...]
Solution: TypeAlias = tuple[Any, ...]


TableSource: TypeAlias = Callable[[Context, tuple[Value, ...]], TermTable]


class ConjunctionRun:
    """One evaluation of a conjunction: the context, and its tables by number, each built on first use."""

    __slots__ = ("_row", "_sources", "_tables", "context")

    def __init__(self, context: Context, row: tuple[Value, ...], sources: Sequence[TableSource]) -> None:
        self.context = context
        self._row = row
        self._sources = sources
        self._tables: dict[int, TermTable] = {}

    def table(self, number: int) -> TermTable:
        found = self._tables.get(number)
        if found is None:
            found = self._tables[number] = self._sources[number](self.context, self._row)
        return found


SolutionStep: TypeAlias = Callable[[ConjunctionRun, Iterable[Solution]], Iterator[Solution]]


class Atom(ABC):
    """`columns` are all that it binds, `certain` those of them that are never null afterwards."""

    columns: RowLayout
    certain: frozenset[str]

    @abstractmethod
    def estimate(self, run: ConjunctionRun, layout: RowLayout, sample: Sequence[Solution]) -> float:
        """About how many extensions a row like these has."""

    @abstractmethod
    def step(self, layout: RowLayout, sure: frozenset[str]) -> SolutionStep:
        """Extend rows of a layout; the columns in `sure` are not null. New columns are appended in the atom's order."""

    def after(self, layout: RowLayout) -> RowLayout:
        """The layout of the extended rows."""
        return layout + tuple(name for name in self.columns if name not in layout)


def filled(row: Solution, found: Iterable[tuple[int, Value]]) -> list[Value] | None:
    """The row with values at positions where it has none; None where it has another value."""
    values = list(row)
    for at, value in found:
        if value is None:
            continue
        if values[at] is None:
            values[at] = value
        elif values[at] != value:
            return None
    return values
