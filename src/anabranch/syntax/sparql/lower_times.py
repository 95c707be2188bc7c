"""Times of triples for C-SPARQL's timestamp(): the hidden columns of triple patterns, and the expressions that read
them.

timestamp(?v) is the latest time of the triples that bound ?v (C-SPARQL, section 3.3). Every triple pattern that
mentions ?v gets a hidden column with its triple's time; the columns flow upwards through joins and unions like all
others, so an expression sees exactly the times of its own group and of the parts below it.

Invariant: a query without timestamp() has no such column.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.algebra.operators import MergedSource, TripleSource, Window
from anabranch.algebra.triples import TriplePattern
from anabranch.model.terms import Iri
from anabranch.syntax.common import LoweringProblems
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.scope import TIME_STEM
from anabranch.syntax.sparql.walk import parts

EXTENSIONS = "http://larkc.eu/csparql/sparql/jena/ext#"
_TIMESTAMP = Iri(f"{EXTENSIONS}timestamp")


def is_timestamp(call: t.CallTree) -> bool:
    return call.function in ("TIMESTAMP", _TIMESTAMP)


def windows_in(source: TripleSource) -> tuple[Window, ...]:
    found = source.parts if isinstance(source, MergedSource) else (source,)
    return tuple(part for part in found if isinstance(part, Window))


class TimeColumns:
    """The time columns of one statement."""

    def __init__(self, root: t.TreePart, problems: LoweringProblems) -> None:
        self._problems = problems
        self._anywhere: set[str] = set()  # variables whose time is read, in any stream
        self._by_stream: set[str] = set()
        self._columns: dict[tuple[str, Window | None], list[str]] = {}
        for part in parts(root):
            match part:
                case t.CallTree(arguments=(t.VarTree(name),)) if is_timestamp(part):
                    self._anywhere.add(name)
                case t.CallTree(arguments=(t.VarTree(name), _)) if is_timestamp(part):
                    self._by_stream.add(name)

    def timed(self, pattern: TriplePattern, source: TripleSource) -> TriplePattern:
        """Return the pattern with the time columns that expressions read."""
        names: dict[Window | None, str] = {}
        for variable in pattern.variables:
            wanted: list[Window | None] = [None] if variable in self._anywhere else []
            if variable in self._by_stream:
                wanted.extend(windows_in(source))
            for window in wanted:
                if window not in names:
                    names[window] = self._problems.fresh(TIME_STEM)
                self._columns.setdefault((variable, window), []).append(names[window])
        if not names:
            return pattern
        return replace(pattern, times=tuple((column, window) for window, column in names.items()))

    def columns(self, variable: str, window: Window | None, visible: tuple[str, ...]) -> tuple[str, ...]:
        """The columns, among the visible ones, that hold times of a variable's triples."""
        return tuple(name for name in self._columns.get((variable, window), ()) if name in visible)

    def all_columns(self, variable: str) -> tuple[str, ...]:
        return tuple(name for (of, _), names in self._columns.items() if of == variable for name in names)

    def is_asked(self, variable: str) -> bool:
        return variable in self._anywhere or variable in self._by_stream
