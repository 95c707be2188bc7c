"""Property paths: the nodes that a walk reaches, and paths of any length as atoms.

A path compiles to a walk, which goes from a node to the nodes at the path's other end, each once. Backward walks are
walks of the reversed path, so a path is walked from the end that is known.

Invariant: bottom-up meaning. A path of no steps joins a node of the graph with itself, and a term that the query itself
writes at an end with itself; a value that another part of the query has bound must be a node of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from anabranch.algebra import triples as tr
from anabranch.errors import InternalError
from anabranch.model.terms import Iri, Term
from anabranch.model.triples import Triples
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.atoms import Atom, ConjunctionRun, RowLayout, Solution, SolutionStep, filled

Spend: TypeAlias = Callable[[int], None]
PathWalk: TypeAlias = Callable[[Triples, Spend, Term], Iterable[Term]]
"""From a node to the ends, each once; the work is told."""


# --- walks ------------------------------------------------------------------------------------------------------------


def turned(path: tr.PropertyPath) -> tr.PropertyPath:
    """The path that leads back."""
    match path:
        case tr.PathLink():
            return tr.Inverse(path)
        case tr.Inverse(inner):
            return inner
        case tr.Sequence(paths):
            return tr.Sequence(tuple(turned(one) for one in reversed(paths)))
        case tr.Alternative(paths):
            return tr.Alternative(tuple(turned(one) for one in paths))
        case tr.Repeat(inner, least, most):
            return tr.Repeat(turned(inner), least, most)
        case tr.NegatedStep(forward, backward):
            return tr.NegatedStep(backward, forward)
    raise InternalError(f"{type(path).__name__} is no property path")


def compile_path(path: tr.PropertyPath) -> PathWalk:
    match path:
        case tr.PathLink(iri):
            return partial(_forward, iri)
        case tr.Inverse(tr.PathLink(iri)):
            return partial(_backward, iri)
        case tr.Inverse(inner):
            return compile_path(turned(inner))
        case tr.Sequence(paths):
            return partial(_sequence, [compile_path(one) for one in paths])
        case tr.Alternative(paths):
            return partial(_alternative, [compile_path(one) for one in paths])
        case tr.Repeat(inner, least, most):
            return partial(_repeat, compile_path(inner), least, most)
        case tr.NegatedStep(forward, backward):
            return partial(_negated, forward, backward)
    raise InternalError(f"{type(path).__name__} is no property path")


def _forward(iri: Iri, graph: Triples, spend: Spend, start: Term) -> list[Term]:
    found = [triple[2] for triple in graph.match(start, iri, None)]
    spend(len(found))
    return found


def _backward(iri: Iri, graph: Triples, spend: Spend, start: Term) -> list[Term]:
    found = [triple[0] for triple in graph.match(None, iri, start)]
    spend(len(found))
    return found


def _sequence(walks: list[PathWalk], graph: Triples, spend: Spend, start: Term) -> Iterable[Term]:
    ends: Iterable[Term] = (start,)
    for walk in walks:
        ends = dict.fromkeys(end for node in ends for end in walk(graph, spend, node))
    return ends


def _alternative(walks: list[PathWalk], graph: Triples, spend: Spend, start: Term) -> Iterable[Term]:
    return dict.fromkeys(end for walk in walks for end in walk(graph, spend, start))


def _negated(
    forward: tuple[Iri, ...] | None, backward: tuple[Iri, ...] | None, graph: Triples, spend: Spend, start: Term
) -> Iterable[Term]:
    found: dict[Term, None] = {}
    if forward is not None:
        out = list(graph.match(start, None, None))
        spend(len(out))
        found |= dict.fromkeys(triple[2] for triple in out if triple[1] not in forward)
    if backward is not None:
        into = list(graph.match(None, None, start))
        spend(len(into))
        found |= dict.fromkeys(triple[0] for triple in into if triple[1] not in backward)
    return found


def _repeat(walk: PathWalk, least: int, most: int | None, graph: Triples, spend: Spend, start: Term) -> Iterator[Term]:
    """Yield each node breadth first, when it is first reached, so that a caller that looks for one end can stop
    there."""
    frontier: Iterable[Term] = (start,)
    for _ in range(least):
        frontier = dict.fromkeys(end for node in frontier for end in walk(graph, spend, node))
    seen = set(frontier)
    yield from frontier
    steps = least
    while frontier and (most is None or steps < most):
        steps += 1
        following: list[Term] = []
        for node in frontier:
            for end in walk(graph, spend, node):
                if end not in seen:
                    seen.add(end)
                    following.append(end)
                    yield end
        frontier = following


def allows_no_step(path: tr.PropertyPath) -> bool:
    match path:
        case tr.Repeat(inner, least):
            return least == 0 or allows_no_step(inner)
        case tr.Inverse(inner):
            return allows_no_step(inner)
        case tr.Sequence(paths):
            return all(map(allows_no_step, paths))
        case tr.Alternative(paths):
            return any(map(allows_no_step, paths))
        case _:
            return False


# --- the atom ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """One end of the path: a term of the query, or a column; `at` is its place in the rows, -1 for none yet."""

    term: Term | None
    at: int

    def value(self, row: Solution) -> Any:
        return self.term if self.term is not None else None if self.at < 0 else row[self.at]


class PathAtom(Atom):
    def __init__(self, operator: tr.Path) -> None:
        self.source = operator.source
        self.columns = operator.columns
        self.certain = frozenset(self.columns)
        self._subject, self._object = operator.subject, operator.object
        self._forward = compile_path(operator.path)
        self._backward = compile_path(turned(operator.path))
        self._allows_no_step = allows_no_step(operator.path)
        self._is_loop = operator.subject == operator.object and isinstance(operator.subject, tr.Var)

    def estimate(self, run: ConjunctionRun, layout: RowLayout, sample: Sequence[Solution]) -> float:
        ends = (self._end(self._subject, layout), self._end(self._object, layout))
        known = sum(end.value(sample[0]) is not None for end in ends)
        size = run.context.triples(self.source).estimate(None, None, None) + 1
        return (size * size, size**0.5 + 1, 1)[known]

    def step(self, layout: RowLayout, sure: frozenset[str]) -> SolutionStep:
        subject, object_ = self._end(self._subject, layout), self._end(self._object, layout)
        after = self.after(layout)
        room = (None,) * (len(after) - len(layout))
        to_subject, to_object = (
            after.index(place.name) if isinstance(place, tr.Var) else None for place in (self._subject, self._object)
        )

        def step(run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
            pairs = _Pairs(self, run.context)
            for row in rows:
                longer = row + room
                for start, end in pairs.between(subject.value(row), object_.value(row)):
                    found = [(to, value) for to, value in ((to_subject, start), (to_object, end)) if to is not None]
                    values = filled(longer, found)
                    if values is not None:
                        yield tuple(values)

        return step

    def _end(self, place: tr.TermPlace, layout: RowLayout) -> _End:
        if isinstance(place, tr.Var):
            return _End(None, layout.index(place.name) if place.name in layout else -1)
        return _End(place, -1)


class _Pairs:
    """The pairs of one path over one graph. The nodes reached from a start are found once per evaluation."""

    def __init__(self, atom: PathAtom, context: Context) -> None:
        self._atom = atom
        self._graph = context.triples(atom.source)
        self._spend = context.spend
        self._reached: dict[Term, tuple[Term, ...]]
        self._reaching: dict[Term, tuple[Term, ...]]
        self._reached, self._reaching = context.memory.setdefault(atom, ({}, {}))
        self._terms = frozenset(end for end in (atom._subject, atom._object) if not isinstance(end, tr.Var))

    def between(self, start: Term | None, end: Term | None) -> Iterator[tuple[Term, Term]]:
        if start is None and end is None:
            yield from self._all()
        elif start is None:
            assert end is not None
            for one in self._walked(end, self._atom._backward, self._reaching):
                yield one, end
        elif end is None and not self._atom._is_loop:
            for one in self._walked(start, self._atom._forward, self._reached):
                yield start, one
        else:
            end = start if end is None else end
            if self._leads(start, end):
                yield start, end

    def _all(self) -> Iterator[tuple[Term, Term]]:
        walk, graph, spend = self._atom._forward, self._graph, self._spend
        for node in graph.nodes():
            spend(1)
            if self._atom._is_loop:
                if any(one == node for one in walk(graph, spend, node)):
                    yield node, node
                continue
            for one in walk(graph, spend, node):
                yield node, one

    def _leads(self, start: Term, end: Term) -> bool:
        if start not in self._reached and self._is_here(start):  # no need to find every end for the one
            self._spend(1)
            return any(one == end for one in self._atom._forward(self._graph, self._spend, start))
        return end in self._walked(start, self._atom._forward, self._reached)

    def _walked(self, start: Term, walk: PathWalk, known: dict[Term, tuple[Term, ...]]) -> tuple[Term, ...]:
        ends = known.get(start)
        if ends is None:
            ends = tuple(walk(self._graph, self._spend, start)) if self._is_here(start) else ()
            known[start] = ends
        self._spend(len(ends))
        return ends

    def _is_here(self, term: Term) -> bool:
        """Return whether a walk may begin at a term: a path that allows zero steps needs a term of the query or a node
        of the graph."""
        if not self._atom._allows_no_step or term in self._terms:
            return True
        graph = self._graph
        return bool(graph.estimate(term, None, None) or graph.estimate(None, None, term))
