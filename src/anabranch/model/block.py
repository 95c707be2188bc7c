"""A block: a run of events of one triple each, as columns.

Streams of RDF in tables are long runs of such events. As columns, a run travels from a file to the matcher without an
object per triple: only distinct terms are handled one by one. Events can be requested one by one or all.

Law: `TripleBlock.of(events)` holds the same events in the same order; a slice of a block is the block of the slice.

Invariant: the four columns have one length and are never written to; codes are places in `terms`. Two codes may stand
for one term, and `terms` may contain terms without a code: slices of a block share its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt

from anabranch.model.event import Event
from anabranch.model.terms import Term, Triple

Times = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TripleBlock(Sequence[Event]):
    times: Times
    terms: Sequence[Term]
    subjects: Codes
    predicates: Codes
    objects: Codes

    @classmethod
    def of(cls, events: Sequence[Event]) -> TripleBlock | None:
        """Return the events as a block; None when one of them is not one triple alone."""
        if any(len(event.triples) != 1 or event.nodes or event.relationships for event in events):
            return None
        codes: dict[Term, int] = {}
        flat = (codes.setdefault(term, len(codes)) for event in events for term in event.triples[0])
        columns = np.fromiter(flat, np.int32, 3 * len(events)).reshape(-1, 3).T
        times = np.fromiter((event.event_time for event in events), np.int64, len(events))
        return cls(times, list(codes), *np.ascontiguousarray(columns))

    @classmethod
    def joined(cls, blocks: Sequence[TripleBlock]) -> TripleBlock:
        """Concatenate blocks."""
        if len(blocks) == 1:
            return blocks[0]
        narrow = [TripleBlock(_NO_TIMES, (), _NO_CODES, _NO_CODES, _NO_CODES), *(block.narrowed() for block in blocks)]
        codes: dict[Term, int] = {}
        tables = [
            np.fromiter((codes.setdefault(term, len(codes)) for term in one.terms), np.int32, len(one.terms))
            for one in narrow
        ]
        pairs = list(zip(narrow, tables, strict=True))
        return cls(
            np.concatenate([one.times for one in narrow]),
            list(codes),
            np.concatenate([table[one.subjects] for one, table in pairs]),
            np.concatenate([table[one.predicates] for one, table in pairs]),
            np.concatenate([table[one.objects] for one, table in pairs]),
        )

    def __len__(self) -> int:
        return len(self.times)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> TripleBlock: ...

    def __getitem__(self, index: int | slice) -> Event | TripleBlock:
        if isinstance(index, slice):
            return self._picked(index)
        terms = self.terms
        triple = Triple(
            terms[self.subjects[index]],
            terms[self.predicates[index]],
            terms[self.objects[index]],
        )
        return Event(int(self.times[index]), triples=(triple,))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events())

    def events(self) -> list[Event]:
        """Yield the events one by one."""
        term = self.terms.__getitem__
        columns = (map(term, column.tolist()) for column in (self.subjects, self.predicates, self.objects))
        triples = zip(map(Triple, *columns))
        return list(map(Event, self.times.tolist(), repeat(()), repeat(()), triples))

    def without(self, rows: Iterable[int]) -> TripleBlock:
        """Return the block without the events at these places."""
        mask = np.ones(len(self), np.bool_)
        mask[list(rows)] = False
        return self._picked(mask)

    def sorted_by(self, order: npt.NDArray[np.intp]) -> TripleBlock:
        """Return the events in another order."""
        return self._picked(order)

    def _picked(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> TripleBlock:
        columns = (self.subjects[which], self.predicates[which], self.objects[which])
        return TripleBlock(self.times[which], self.terms, *columns)

    def narrowed(self) -> TripleBlock:
        """Return the same events, with only the terms that they use."""
        named = np.zeros(len(self.terms), np.bool_)
        for column in (self.subjects, self.predicates, self.objects):
            named[column] = True
        if named.all():
            return self
        places = np.cumsum(named, dtype=np.int32) - np.int32(1)
        terms = [self.terms[index] for index in np.flatnonzero(named).tolist()]
        columns = (places[column] for column in (self.subjects, self.predicates, self.objects))
        return TripleBlock(self.times, terms, *columns)

    @property
    def is_ordered(self) -> bool:
        """Whether no event is earlier than the one before it."""
        return bool((self.times[1:] >= self.times[:-1]).all())


_NO_TIMES: Times = np.empty(0, np.int64)
_NO_CODES: Codes = np.empty(0, np.int32)
