"""Property paths to patterns (SPARQL 1.1, section 18.2.2.4).

A path that is not repeated is spelled out: links become triple patterns, sequences share fresh variables, alternatives
become unions. So they keep the bag semantics that the standard gives them. Repeats, whose answers are sets, stay one
operator with the path inside.

Invariant: fresh variables begin with a space, and only the path's own two ends leave an alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch.algebra import triples as rdf
from anabranch.algebra.expressions import And, Call, Constant, Expression, Not, Variable
from anabranch.algebra.operators import Filter, TripleSource
from anabranch.algebra.triples import PropertyPath, TermPlace, TriplePattern, Var
from anabranch.errors import Span
from anabranch.model.terms import Iri
from anabranch.syntax.common import LoweringProblems
from anabranch.syntax.sparql.tables import UNIT, VariableTable, basic, bound, join, unite

Piece = TriplePattern | VariableTable
"""A triple for the basic graph pattern around it, or rows to join with it."""


class PathLowering:
    def __init__(
        self, problems: LoweringProblems, timed: Callable[[TriplePattern, TripleSource], TriplePattern]
    ) -> None:
        self._problems = problems
        self._timed = timed

    def pieces(
        self, source: TripleSource, subject: TermPlace, path: PropertyPath, object_: TermPlace, span: Span | None
    ) -> list[Piece]:
        """Return the plans whose join connects the two ends by the path."""
        match path:
            case rdf.PathLink(iri):
                return [self._timed(TriplePattern(subject, iri, object_, span=span), source)]
            case rdf.Inverse(inner):
                return self.pieces(source, object_, inner, subject, span)
            case rdf.Sequence(paths):
                return self._sequence(source, subject, paths, object_, span)
            case rdf.Alternative(paths):
                tables = [self._table(source, subject, one, object_, span) for one in paths]
                return [unite(tables, span, _names(subject, object_))]
            case rdf.NegatedStep(forward, backward):
                return self._negated(source, subject, forward, backward, object_, span)
            case rdf.Repeat():
                return [bound(rdf.Path(source, subject, path, object_, span=span))]

    def _sequence(
        self,
        source: TripleSource,
        subject: TermPlace,
        paths: Sequence[PropertyPath],
        object_: TermPlace,
        span: Span | None,
    ) -> list[Piece]:
        places: list[TermPlace] = [subject, *(Var(self._problems.fresh("path")) for _ in paths[1:]), object_]
        found: list[Piece] = []
        for at, path in enumerate(paths):
            found.extend(self.pieces(source, places[at], path, places[at + 1], span))
        return found

    def _table(
        self, source: TripleSource, subject: TermPlace, path: PropertyPath, object_: TermPlace, span: Span | None
    ) -> VariableTable:
        return joined(self.pieces(source, subject, path, object_, span), source, UNIT, span)

    def _negated(
        self,
        source: TripleSource,
        subject: TermPlace,
        forward: tuple[Iri, ...] | None,
        backward: tuple[Iri, ...] | None,
        object_: TermPlace,
        span: Span | None,
    ) -> list[Piece]:
        tables: list[VariableTable] = []
        for excluded, (start, end) in ((forward, (subject, object_)), (backward, (object_, subject))):
            if excluded is None:
                continue
            name = self._problems.fresh("predicate")
            table = basic(source, [self._timed(TriplePattern(start, Var(name), end, span=span), source)], span)
            tests: tuple[Expression, ...] = tuple(
                Not(Call("sparql:sameterm", (Variable(name), Constant(iri))), span=span) for iri in excluded
            )
            if tests:
                condition = tests[0] if len(tests) == 1 else And(tests, span=span)
                table = VariableTable(Filter(table.plan, condition, span=span), table.certain, table.own)
            tables.append(table)
        return [tables[0] if len(tables) == 1 else unite(tables, span, _names(subject, object_))]


def _names(*places: TermPlace) -> tuple[str, ...]:
    return tuple(place.name for place in places if isinstance(place, Var))


def joined(pieces: Sequence[Piece], source: TripleSource, table: VariableTable, span: Span | None) -> VariableTable:
    """The table joined with the pieces; triples that follow each other form one basic graph pattern."""
    triples: list[TriplePattern] = []

    def flush(table: VariableTable) -> VariableTable:
        if not triples:
            return table
        found = basic(source, triples, span)
        triples.clear()
        return join(table, found, span)

    for piece in pieces:
        if isinstance(piece, TriplePattern):
            triples.append(piece)
        else:
            table = join(flush(table), piece, span)
    return flush(table)
