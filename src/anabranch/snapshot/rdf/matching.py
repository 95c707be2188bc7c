"""Triple patterns as atoms: a row's values are looked up in the source's graph, and each triple found extends the row.

Invariant: the extensions of a row are the triples that agree with its values; every triple is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from anabranch.algebra.operators import TripleSource
from anabranch.algebra.triples import TriplePattern, Var
from anabranch.model.terms import Term
from anabranch.model.triples import Triples
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.atoms import Atom, ConjunctionRun, RowLayout, Solution, SolutionStep, filled
from anabranch.snapshot.rdf.tables import picker

_FREE = -1


class TripleAtom(Atom):
    def __init__(self, source: TripleSource, pattern: TriplePattern) -> None:
        self.source = source
        self.pattern = pattern
        self.times = tuple(pattern.times)
        self.columns = tuple(dict.fromkeys((*pattern.variables, *(name for name, _ in self.times))))
        self.certain = frozenset(pattern.variables)
        self._names = tuple(place.name if isinstance(place, Var) else None for place in pattern.places)
        self._terms = tuple(None if isinstance(place, Var) else place for place in pattern.places)

    def estimate(self, run: ConjunctionRun, layout: RowLayout, sample: Sequence[Solution]) -> float:
        graph = run.context.triples(self.source)
        at = self._positions(layout)
        if all(one == _FREE for one in at):
            return float(graph.estimate(*self._terms))
        total = sum(graph.estimate(*_looked_up(row, at, self._terms)) for row in sample)
        return total / len(sample)

    def step(self, layout: RowLayout, sure: frozenset[str]) -> SolutionStep:
        given = frozenset(self.columns) & frozenset(layout)
        if not given <= sure:
            return self._filling(layout)
        at = self._positions(layout)
        new = self._new_places(layout)
        twice = self._repeated(layout)
        if self.times or twice or len(new) > 2:
            return self._general(at, new, twice)
        return _plain(self.source, at, self._terms, new)

    def _positions(self, layout: RowLayout) -> tuple[int, ...]:
        return tuple(layout.index(name) if name is not None and name in layout else _FREE for name in self._names)

    def _new_places(self, layout: RowLayout) -> tuple[int, ...]:
        """The places of a triple that give the new columns, in the order of the columns."""
        return tuple(self._names.index(name) for name in self.pattern.variables if name not in layout)

    def _repeated(self, layout: RowLayout) -> tuple[tuple[int, int], ...]:
        """Pairs of places that must hold the same term, because one new variable stands at both."""
        firsts = [self._names.index(name) for name in self._names]
        return tuple(
            (first, place)
            for place, (name, first) in enumerate(zip(self._names, firsts, strict=True))
            if name is not None and name not in layout and first != place
        )

    def _general(self, at: tuple[int, ...], new: tuple[int, ...], twice: tuple[tuple[int, int], ...]) -> SolutionStep:
        """Every given value is known; times, repeated variables and any number of new ones."""
        source, terms, cut = self.source, self._terms, picker(new)

        def step(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
            graph = run.context.triples(source)
            clocks = self._clocks(run.context, graph)
            spend = run.context.spend
            for row in rows:
                made = 0
                for triple in graph.match(*_looked_up(row, at, terms)):
                    if all(triple[one] == triple[other] for one, other in twice):
                        made += 1
                        yield (*row, *cut(triple), *[clock.time_of(triple) for clock in clocks])
                spend(made)

        return step

    def _filling(self, layout: RowLayout) -> SolutionStep:
        """Some given values may be null: then the triple gives them, as it gives the new ones."""
        source, terms, at = self.source, self._terms, self._positions(layout)
        after = self.after(layout)
        room = (None,) * (len(after) - len(layout))
        target = [(after.index(name), place) for place, name in enumerate(self._names) if name is not None]
        time_target = [after.index(name) for name, _ in self.times]

        def step(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
            graph = run.context.triples(source)
            clocks = self._clocks(run.context, graph)
            for row in rows:
                made = 0
                longer = row + room
                for triple in graph.match(*_looked_up(row, at, terms)):
                    found: list[tuple[int, Any]] = [(to, triple[place]) for to, place in target]
                    found += [(to, clock.time_of(triple)) for to, clock in zip(time_target, clocks, strict=True)]
                    values = filled(longer, found)
                    if values is not None:
                        made += 1
                        yield tuple(values)
                run.context.spend(made)

        return step

    def _clocks(self, context: Context, graph: Triples) -> list[Triples]:
        return [graph if window is None else context.triples(window) for _, window in self.times]


def _looked_up(row: Solution, at: tuple[int, ...], terms: tuple[Term | None, ...]) -> list[Any]:
    return [term if position < 0 else row[position] for position, term in zip(at, terms, strict=True)]


def _plain(
    source: TripleSource, at: tuple[int, ...], terms: tuple[Term | None, ...], new: tuple[int, ...]
) -> SolutionStep:
    """The usual case, spelled out for speed: known values are not null, and there are at most two new columns."""
    s_at, p_at, o_at = at
    s_term, p_term, o_term = terms

    def step(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
        graph = run.context.triples(source)
        spend, match = run.context.spend, graph.match
        for row in rows:
            subject = s_term if s_at < 0 else row[s_at]
            predicate = p_term if p_at < 0 else row[p_at]
            object_ = o_term if o_at < 0 else row[o_at]
            if not new:
                if (subject, predicate, object_) in graph:
                    yield row
                continue
            made = 0
            if len(new) == 1:
                place = new[0]
                for triple in match(subject, predicate, object_):
                    made += 1
                    yield (*row, triple[place])
            else:
                first, second = new
                for triple in match(subject, predicate, object_):
                    made += 1
                    yield (*row, triple[first], triple[second])
            spend(made)

    return step
