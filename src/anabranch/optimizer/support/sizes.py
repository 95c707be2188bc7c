"""Upper bounds for the number of rows of a part of a plan over static graphs.

Law: `most_rows` is never less than the number of rows. Property paths are an exception: their pairs of ends are assumed
to be as many as their steps. Conditions of filters are ignored.

The bound uses degrees: patterns are taken one after the other, the narrowest first, and each multiplies the rows by at
most the number of triples of its most frequent value. Joins on near-keys stay small; joins on frequent values do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Constant, Variable
from anabranch.algebra.walk import parts_of, walk
from anabranch.model.terms import Term
from anabranch.model.triples import Triples
from anabranch.optimizer.support.property_paths import steps_needed

_ENOUGH = 20_000  # up to this many rows a part is always small
_PER_TRIPLE = 2  # beyond that, rows allowed per triple that is read


class GraphSizes:
    """The number of triples of one static graph by their terms; results are cached."""

    def __init__(self, graph: Triples) -> None:
        self._graph = graph
        self._widest: dict[tuple[Term | None, int], int] = {}

    def count(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> int:
        return self._graph.estimate(subject, predicate, object_)

    def widest(self, predicate: Term | None, place: int) -> int:
        """Return the largest number of triples with this predicate that share one term at a place (0: subject, 2:
        object)."""
        found = self._widest.get((predicate, place))
        if found is None:
            terms = Counter(triple[place] for triple in self._graph.match(None, predicate, None))
            found = self._widest[predicate, place] = max(terms.values(), default=0)
        return found


Sizes = Mapping[str, GraphSizes]


def is_small(plan: op.Operator, sizes: Sizes) -> bool:
    """Return whether the rows of a part are few compared with the triples that it reads; True where too little is
    known."""
    most = most_rows(plan, sizes)
    if most <= _ENOUGH or most == inf:
        return True
    read = sum(
        _count(pattern, _known(node, sizes))
        for node in walk(plan)
        if isinstance(node, tr.GraphPattern)
        for pattern in node.patterns
    )
    return most <= _PER_TRIPLE * read


def most_rows(plan: op.Operator, sizes: Sizes, bound: frozenset[str] = frozenset()) -> float:
    """Return an upper bound for the rows per row with the columns `bound`; infinite where nothing is known."""
    match plan:
        case tr.GraphPattern(patterns=patterns):
            known = _known(plan, sizes)
            return inf if known is None else _matches(patterns, known, bound)
        case tr.Path(subject=subject, object=object_):
            known = _known(plan, sizes)
            steps = steps_needed(plan)
            if known is None or steps is None:
                return inf
            ends = {place.name for place in (subject, object_) if isinstance(place, tr.Var)}
            return 1 if ends <= bound else sum(one.count(None, step, None) for step in steps for one in known)
        case tr.Values(rows=rows):
            return len(rows)
        case op.Unit() | op.Argument():
            return 1
        case op.Join(left, right):
            first = most_rows(left, sizes, bound) * most_rows(right, sizes, bound | set(left.columns))
            return min(first, most_rows(right, sizes, bound) * most_rows(left, sizes, bound | set(right.columns)))
        case op.LeftJoin(left, right):
            return most_rows(left, sizes, bound) * max(1, most_rows(right, sizes, bound | set(left.columns)))
        case op.Union(left, right):
            return most_rows(left, sizes, bound) + most_rows(right, sizes, bound)
        case tr.Minus(left):
            return most_rows(left, sizes, bound)
        case op.Slice(below, limit=Constant(value)) if isinstance(value, int):
            return min(value, most_rows(below, sizes))
        case op.Project(below, items):
            same = {name for name, one in items if isinstance(one, Variable) and one.name == name}
            return most_rows(below, sizes, bound & same)
        case _:
            return inf if len(plan.inputs) != 1 else most_rows(plan.inputs[0], sizes, bound & set(plan.columns))


def _known(leaf: tr.GraphPattern | tr.Path, sizes: Sizes) -> list[GraphSizes] | None:
    """Return the sizes of the static graphs that a leaf reads; None where one is not known."""
    names = [part.name for part in parts_of(leaf.source) if isinstance(part, op.Static)]
    return [sizes[name] for name in names] if all(name in sizes for name in names) else None


def _matches(patterns: Iterable[tr.TriplePattern], known: list[GraphSizes], bound: frozenset[str]) -> float:
    rest, rows = list(patterns), 1.0
    while rest and rows:
        ways = [_ways(one, known, bound) for one in rest]
        best = ways.index(min(ways))
        rows *= ways[best]
        bound |= set(rest.pop(best).variables)
    return rows


def _ways(pattern: tr.TriplePattern, known: list[GraphSizes], bound: frozenset[str]) -> int:
    """Return an upper bound for the triples that fit a pattern of which the variables `bound` have a value."""
    fixed = [not isinstance(place, tr.Var) or place.name in bound for place in pattern.places]
    most = _count(pattern, known)
    if all(fixed):
        return min(most, 1)
    predicate = None if isinstance(pattern.predicate, tr.Var) else pattern.predicate
    for place in (0, 2):
        if fixed[place] and isinstance(pattern.places[place], tr.Var):
            most = min(most, sum(one.widest(predicate, place) for one in known))
    return most


def _count(pattern: tr.TriplePattern, known: list[GraphSizes] | None) -> int:
    subject, predicate, object_ = (None if isinstance(place, tr.Var) else place for place in pattern.places)
    return sum(one.count(subject, predicate, object_) for one in known or ())
