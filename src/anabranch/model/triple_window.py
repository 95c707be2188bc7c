"""Triples of a sliding window: they arrive at the new end and leave from the old one.

Time windows drop whole events, count windows cut them: both drop arrivals, so the state is the queue of arrivals beside
the graph of the living triples. An arrival costs one step when it comes and one when it leaves.

Law: the graph holds the triples with an arrival inside, in the order of their latest arrivals and with the times of
these: after any adds and drops it is the graph that the arrivals inside would build from nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from anabranch.errors import InternalError
from anabranch.model.terms import Term, Triple
from anabranch.model.triples import TripleGraph

KeptTriples: TypeAlias = tuple[Term | None, Term | None, Term | None]


class TripleWindow:
    """The triples of a window. Arrivals come in the order of time. With `keep`, triples that fit none of these patterns
    are counted as arrivals and never enter the graph."""

    __slots__ = ("_arrivals", "_dropped", "_fits", "_graph", "_latest", "_newest")

    def __init__(self, keep: Sequence[KeptTriples] | None = None) -> None:
        self._fits = None if keep is None else _Fitting(keep)
        self._graph = TripleGraph()
        self._arrivals: deque[Triple | None] = deque()  # None: an arrival that fits no pattern
        self._latest: dict[Triple, int] = {}  # the number of the triple's latest arrival, counted from the first ever
        self._dropped = 0  # how many arrivals have left
        self._newest: int | None = None  # the time of the last arrival

    def graph(self) -> TripleGraph:
        """Return the living triples: always the same graph object, which changes as the window slides."""
        return self._graph

    def __len__(self) -> int:
        """Return how many arrivals are inside."""
        return len(self._arrivals)

    def add(self, triples: Iterable[Triple], time: int) -> None:
        """Add arrivals of one instant."""
        if self._newest is not None and time < self._newest:
            raise InternalError("a window's arrivals come in the order of time")
        self._newest = time
        fits, graph, latest, arrivals = self._fits, self._graph, self._latest, self._arrivals
        number = self._dropped + len(arrivals)
        for triple in triples:
            if fits is None or fits(triple):
                arrivals.append(triple)
                latest[triple] = number
                graph.add(triple, time)
            else:
                arrivals.append(None)
            number += 1

    def drop(self, arrivals: int) -> None:
        """Drop the oldest arrivals."""
        if arrivals > len(self._arrivals):
            raise InternalError(f"{arrivals} arrivals cannot leave a window that holds {len(self._arrivals)}")
        for _ in range(arrivals):
            triple = self._arrivals.popleft()
            if triple is not None and self._latest[triple] == self._dropped:
                del self._latest[triple]
                self._graph.remove(triple)
            self._dropped += 1


class _Fitting:
    """Tests whether a triple fits one of several patterns; most patterns have a constant predicate."""

    __slots__ = ("_any", "_by_predicate")

    def __init__(self, keep: Sequence[KeptTriples]) -> None:
        self._any: list[tuple[Term | None, Term | None]] = []
        self._by_predicate: dict[Term, list[tuple[Term | None, Term | None]]] = {}
        for subject, predicate, object_ in keep:
            pairs = self._any if predicate is None else self._by_predicate.setdefault(predicate, [])
            pairs.append((subject, object_))

    def __call__(self, triple: Triple) -> bool:
        for pairs in (self._by_predicate.get(triple[1], ()), self._any):
            for subject, object_ in pairs:
                if (subject is None or subject == triple[0]) and (object_ is None or object_ == triple[2]):
                    return True
        return False
