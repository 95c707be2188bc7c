"""RDF graphs held in memory, with the lookups that matching needs.

`TripleGraph` is a set of triples, each with the instant at which it last came (None for static knowledge).
`MergedGraph` is several graphs seen as one set, without a copy.

Law: after any adds and removals a graph answers as one built from what it holds; lookups give each triple once, in the
order in which the triples came in (a triple that comes again moves to the end).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Protocol, TypeAlias, cast

from anabranch.model.terms import Term, Triple


class Triples(Protocol):
    """Interface of a graph of triples for evaluators. None stands for any term."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Triple]: ...

    def __contains__(self, triple: object) -> bool: ...

    def match(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterable[Triple]:
        """Yield the triples with these terms."""
        ...

    def estimate(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> int:
        """At least how many triples `match` gives: exact or an upper bound, never by looking at all of them."""
        ...

    def time_of(self, triple: Triple) -> int | None:
        """Return when the triple last came; None for static knowledge and for a triple that is not here."""
        ...

    def has_predicate(self, predicate: Term) -> bool: ...

    def nodes(self) -> Iterable[Term]:
        """Return every subject and every object, each once."""
        ...


# --- one graph --------------------------------------------------------------------------------------------------------

_Group: TypeAlias = Triple | dict[Triple, None]  # a group of one is the triple itself: most subjects have few
_Index: TypeAlias = dict[Hashable, _Group]
_KeyOf: TypeAlias = Callable[[Triple], Hashable]

_OBJECT, _PREDICATE, _PREDICATE_OBJECT, _SUBJECT, _SUBJECT_OBJECT, _SUBJECT_PREDICATE = range(6)
_KEYS: tuple[_KeyOf, ...] = (
    itemgetter(2),
    itemgetter(1),
    itemgetter(1, 2),
    itemgetter(0),
    itemgetter(0, 2),
    itemgetter(0, 1),
)


class TripleGraph:
    """A set of triples, each with the instant at which it last came.

    An index is built at its first use and kept up to date from then on, so a graph pays for the lookups that its
    queries make and for no others."""

    __slots__ = ("_indexes", "_kept", "_times")

    def __init__(self, triples: Iterable[Triple] = (), times: Iterable[int | None] | None = None) -> None:
        self._times: dict[Triple, int | None] = {}
        self._indexes: list[_Index | None] = [None] * len(_KEYS)
        self._kept: list[tuple[_KeyOf, _Index]] = []  # the indexes that exist
        for triple, time in zip(triples, times, strict=True) if times is not None else ((one, None) for one in triples):
            self.add(triple, time)

    # --- changing ---

    def add(self, triple: Triple, time: int | None = None) -> None:
        """Add the triple at the end. A triple that is already here keeps the later of its two times."""
        times = self._times
        if triple in times:
            before = times.pop(triple)
            times[triple] = before if time is None or (before is not None and before > time) else time
            for key_of, index in self._kept:
                group = index[key_of(triple)]
                if group.__class__ is dict and len(group) > 1:
                    del group[triple]
                    group[triple] = None
            return
        times[triple] = time
        for key_of, index in self._kept:
            _enter(index, key_of(triple), triple)

    def remove(self, triple: Triple) -> None:
        """Remove the triple, if it is here."""
        if triple not in self._times:
            return
        del self._times[triple]
        for key_of, index in self._kept:
            key = key_of(triple)
            group = index[key]
            if isinstance(group, dict) and len(group) > 1:
                del group[triple]
            else:
                del index[key]

    # --- looking ---

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self._times)

    def __contains__(self, triple: object) -> bool:
        return triple in self._times

    def timed(self) -> Iterable[tuple[Triple, int | None]]:
        """Every triple with its time."""
        return self._times.items()

    def match(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Collection[Triple]:
        if subject is not None and predicate is not None and object_ is not None:
            triple = Triple(subject, predicate, object_)
            return (triple,) if triple in self._times else ()
        group = self._group(subject, predicate, object_)
        return (group,) if group.__class__ is Triple else group  # type: ignore[return-value]

    def estimate(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> int:
        """How many triples `match` gives, exactly."""
        if subject is not None and predicate is not None and object_ is not None:
            return 1 if (subject, predicate, object_) in self._times else 0
        group = self._group(subject, predicate, object_)
        return 1 if group.__class__ is Triple else len(group)

    def time_of(self, triple: Triple) -> int | None:
        return self._times.get(triple)

    def has_predicate(self, predicate: Term) -> bool:
        return predicate in self._index(_PREDICATE)

    def predicates(self) -> Iterable[Term]:
        """Every predicate, once."""
        return cast("Iterable[Term]", self._index(_PREDICATE))

    def nodes(self) -> Iterable[Term]:
        return dict.fromkeys(term for triple in self._times for term in (triple[0], triple[2]))

    # --- indexes ---

    def _group(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Triple | Collection[Triple]:
        """The triples with the given terms, of which one at least is not given."""
        if subject is None:
            if predicate is None:
                if object_ is None:
                    return self._times.keys()
                return self._index(_OBJECT).get(object_, ())
            if object_ is None:
                return self._index(_PREDICATE).get(predicate, ())
            return self._index(_PREDICATE_OBJECT).get((predicate, object_), ())
        if predicate is None:
            if object_ is None:
                return self._index(_SUBJECT).get(subject, ())
            return self._index(_SUBJECT_OBJECT).get((subject, object_), ())
        return self._index(_SUBJECT_PREDICATE).get((subject, predicate), ())

    def _index(self, which: int) -> _Index:
        index = self._indexes[which]
        return self._built(which) if index is None else index

    def _built(self, which: int) -> _Index:
        key_of = _KEYS[which]
        index: _Index = {}
        for triple in self._times:
            _enter(index, key_of(triple), triple)
        self._indexes[which] = index
        self._kept.append((key_of, index))
        return index


def _enter(index: _Index, key: Hashable, triple: Triple) -> None:
    group = index.get(key)
    if group is None:
        index[key] = triple
    elif isinstance(group, dict):
        group[triple] = None
    else:
        index[key] = {group: None, triple: None}


# --- several as one ---------------------------------------------------------------------------------------------------


class MergedGraph:
    """The union of several graphs, without a copy: graph by graph, each triple where it is found first."""

    __slots__ = ("graphs",)

    def __init__(self, graphs: Sequence[Triples]) -> None:
        self.graphs = tuple(graphs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self.match(None, None, None))

    def __contains__(self, triple: object) -> bool:
        return any(triple in graph for graph in self.graphs)

    def match(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterable[Triple]:
        holding = [graph for graph in self.graphs if graph.estimate(subject, predicate, object_)]
        if len(holding) < 2:
            return holding[0].match(subject, predicate, object_) if holding else ()
        if subject is not None and predicate is not None and object_ is not None:
            return holding[0].match(subject, predicate, object_)
        return _each_once(holding, subject, predicate, object_)

    def estimate(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> int:
        return sum([graph.estimate(subject, predicate, object_) for graph in self.graphs])

    def time_of(self, triple: Triple) -> int | None:
        """The latest of the graphs' times."""
        return max((time for graph in self.graphs if (time := graph.time_of(triple)) is not None), default=None)

    def has_predicate(self, predicate: Term) -> bool:
        return any(graph.has_predicate(predicate) for graph in self.graphs)

    def nodes(self) -> Iterable[Term]:
        return dict.fromkeys(term for graph in self.graphs for term in graph.nodes())


def _each_once(
    graphs: Sequence[Triples], subject: Term | None, predicate: Term | None, object_: Term | None
) -> Iterator[Triple]:
    yield from graphs[0].match(subject, predicate, object_)
    for position in range(1, len(graphs)):
        earlier = graphs[:position]
        for triple in graphs[position].match(subject, predicate, object_):
            if not any(triple in graph for graph in earlier):
                yield triple
