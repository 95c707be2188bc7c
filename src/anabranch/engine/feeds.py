"""Encoded streams: triples of ids, encoded once for all queries, and the changes that each slide of a window brings.

Invariant: a stream's triples stand in the order of its buffer, with the same positions. A caller that inserts an event
between events that were seen must call `drop_stream`. The dictionary only grows; when most of its values have left all
windows, it is dropped with everything encoded by it, and queries build their state again from their windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.texts import LOOKED_UP_AT_ONCE
from anabranch.engine.encoded_graphs import EncodedGraph
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.views import WindowEvents
from anabranch.formats.events import value_from_json
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import PropertyKeys
from anabranch.model.mapping import Mapping
from anabranch.model.terms import Term
from anabranch.model.values import ElementId
from anabranch.planner.flow.feeds import RelationshipSlide, TripleSlide, TripleSlides
from anabranch.planner.specs.conditions import number_as_float

_MOST_IDS = 1 << 18  # smaller dictionaries are not checked for unused ids
_MOST_BYTES = 64 << 20
_NO_TRIPLES: Ids = np.empty((0, 3), np.int64)
_NO_SIZES: Ids = np.empty(0, np.int64)


class EncodedStream:
    """The triples of one stream's events, as far as queries have read, without those that the buffer has forgotten.

    Work: for blocks, one look-up per distinct term and a few array operations; for other events, three look-ups a
    triple.
    """

    __slots__ = ("_base", "_count", "_facts", "_mapping", "_offsets", "_table", "dictionary")

    def __init__(self, dictionary: Dictionary, mapping: Mapping) -> None:
        self.dictionary = dictionary
        self._mapping = mapping
        self._base: int | None = None  # the position of the first event that is here
        self._count = 0  # how many events are here
        self._facts: Ids = np.empty((1024, 3), np.int64)
        self._offsets: Ids = np.zeros(1024, np.int64)  # where the triples of each event begin, and where the last ends
        self._table: tuple[Sequence[Term], Ids] = ((), np.empty(0, np.int64))  # the terms that were encoded last

    def between(self, stream: StreamBuffer, first: int, stop: int) -> tuple[Ids, Ids]:
        """Return the triples of the events at these positions, and the number of triples per event."""
        if first >= stop:
            return _NO_TRIPLES, _NO_SIZES
        if self._base is None or first > self._base + self._count:
            self._base, self._count = first, 0
            self._offsets[0] = 0
        if first < self._base:  # a query that was registered late reads older events than the others: only it pays
            facts, sizes = self._encoded(stream, first, min(stop, self._base))
            rest, more = self.between(stream, self._base, stop)
            return np.concatenate((facts, rest)), np.concatenate((sizes, more))
        if stop > self._base + self._count:
            self._reach(stream, stop)
        offsets = self._offsets[first - self._base : stop - self._base + 1]
        return self._facts[offsets[0] : offsets[-1]].copy(), offsets[1:] - offsets[:-1]

    def _reach(self, stream: StreamBuffer, stop: int) -> None:
        assert self._base is not None
        if 2 * (stream.first_position - self._base) > self._count:
            self._forget(stream)
        for run in stream.runs(self._base + self._count, stop):
            filled, before = int(self._offsets[self._count]), self._count
            self._count += len(run)
            self._offsets = _reaching(self._offsets, before + 1, self._count + 1)
            if not isinstance(run, list) and isinstance(run, TripleBlock):
                self._offsets[before + 1 : self._count + 1] = np.arange(filled + 1, filled + len(run) + 1)
                self._facts = _reaching(self._facts, filled, filled + len(run))
                self._put(run, self._facts[filled : filled + len(run)])
            else:
                triples, sizes = self._of_events(run)
                self._facts = _reaching(self._facts, filled, filled + len(triples))
                for at, triple in enumerate(triples, filled):  # they are few: many come as blocks
                    self._facts[at] = triple
                for at, size in enumerate(sizes, before + 1):
                    filled += size
                    self._offsets[at] = filled

    def _encoded(self, stream: StreamBuffer, first: int, stop: int) -> tuple[Ids, Ids]:
        facts, sizes = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)]
        for run in stream.runs(first, stop):
            if isinstance(run, TripleBlock):
                found, each = np.empty((len(run), 3), np.int64), np.ones(len(run), np.int64)
                self._put(run, found)
            else:
                triples, each_of = self._of_events(run)
                found, each = np.array(triples, np.int64).reshape(-1, 3), np.array(each_of, np.int64)
            facts.append(found)
            sizes.append(each)
        return np.concatenate(facts), np.concatenate(sizes)

    def _put(self, block: TripleBlock, rows: Ids) -> None:
        """Write the triples of a block into rows."""
        ids = self._ids_of(block.terms)
        for place, codes in enumerate((block.subjects, block.predicates, block.objects)):
            rows[:, place] = ids[codes]

    def _of_events(self, events: Sequence[Event]) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Encode the triples of events; return them and the number of triples per event."""
        triples = [self._mapping.triples_of(event) for event in events]
        encode = self.dictionary.encode
        encoded = [(encode(one.subject), encode(one.predicate), encode(one.object)) for some in triples for one in some]
        return encoded, list(map(len, triples))

    def _ids_of(self, terms: Sequence[Term]) -> Ids:
        known, ids = self._table
        if known is not terms:
            ids = self.dictionary.encode_terms(terms)
            self._table = (terms, ids)
        return ids

    def _forget(self, stream: StreamBuffer) -> None:
        """Drop the events that the buffer has forgotten, once they are half of those held here."""
        assert self._base is not None
        gone = min(stream.first_position - self._base, self._count)
        if gone * 2 <= self._count + 1:
            return
        cut, filled = int(self._offsets[gone]), int(self._offsets[self._count])
        self._facts[: filled - cut] = self._facts[cut:filled]
        self._offsets[: self._count - gone + 1] = self._offsets[gone : self._count + 1] - cut
        self._count -= gone
        self._base += gone


def _reaching(array: Ids, filled: int, size: int) -> Ids:
    """Return the array, or a larger one with the same content, with room for `size` items."""
    if size <= len(array):
        return array
    grown = np.empty((max(2 * len(array), size), *array.shape[1:]), np.int64)
    grown[:filled] = array[:filled]
    return grown


class EncodedStreams:
    """The triples of all streams, encoded by one dictionary. `generation` changes when ids get new meanings."""

    def __init__(self) -> None:
        self.generation = 0
        self.dictionary = Dictionary(number_as_float, value_from_json)
        self._streams: dict[str, EncodedStream] = {}
        self._graphs: dict[str, EncodedGraph] = {}
        self.most = _MOST_IDS
        self.most_bytes = _MOST_BYTES
        self._counted_from: int | None = None
        self._settled = (0, 0)  # ids and bytes

    def stream(self, name: str, mapping: Mapping) -> EncodedStream:
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = EncodedStream(self.dictionary, mapping)
        return found

    def graph(self, name: str, mapping: Mapping) -> EncodedGraph:
        found = self._graphs.get(name)
        if found is None:
            found = self._graphs[name] = EncodedGraph(self.dictionary, mapping)
        return found

    def keys_of(self, name: str) -> PropertyKeys:
        """Return the properties that queries have asked for of a stream."""
        found = self._graphs.get(name)
        return () if found is None else found.keys

    def drop_stream(self, name: str) -> None:
        self._streams.pop(name, None)
        if name in self._graphs:
            self._graphs[name].forget_range()

    def renew_if_full(self, streams: Collection[StreamBuffer], computed: bool = False) -> bool:
        """Drop the dictionary when it is large, by ids or by bytes, and most of its values are no longer used.

        They are no longer used when most events that came since it was new have left the streams' buffers. Values that
        filled it at the start (windows, static graphs) are not counted. `computed`: queries compute new values at each
        instant, so the share of held events does not matter. Returns whether it was dropped.
        """
        ids, size = len(self.dictionary), self.dictionary.weight()
        is_new = self._counted_from is None
        if is_new:
            self._settled = (ids, size)
        is_large = ids >= 2 * self._settled[0] + self.most or size >= 2 * self._settled[1] + self.most_bytes
        if not is_new and not is_large:
            return False
        accepted, held = sum([stream.accepted for stream in streams]), sum(map(len, streams))
        if self._counted_from is None:
            self._counted_from = accepted - held
        if not is_large or (not computed and held * 4 > accepted - self._counted_from):
            return False
        self.generation += 1
        # The next one will probably be as large: it need not grow again. What is looked up together counts as new.
        room = min(self.dictionary.text_count, _MOST_IDS) + LOOKED_UP_AT_ONCE
        self.dictionary = Dictionary(number_as_float, value_from_json, room)
        self._streams.clear()
        self._graphs.clear()
        self._counted_from = None
        return True


class _Sizes:
    """The number of triples of each event of a window, from the oldest on."""

    __slots__ = ("_gone", "_parts")

    def __init__(self) -> None:
        self._parts: deque[Ids] = deque()
        self._gone = 0  # events of the first part that have left

    def add(self, sizes: Ids) -> None:
        if len(sizes):
            self._parts.append(sizes)

    def drop(self, events: int) -> int:
        """Drop the oldest events; return how many triples they had."""
        triples = 0
        while events:
            part = self._parts[0]
            leaving = min(events, len(part) - self._gone)
            if leaving == 1:
                triples += int(part[self._gone])
            else:
                triples += int(part[self._gone : self._gone + leaving].sum())
            self._gone += leaving
            events -= leaving
            if self._gone == len(part):
                self._parts.popleft()
                self._gone = 0
        return triples

    def all(self) -> Ids:
        """Return the sizes of all events."""
        if len(self._parts) > 1 or self._gone:
            joined = np.concatenate(self._parts)[self._gone :]
            self.clear()
            self.add(joined)
        return self._parts[0] if self._parts else np.empty(0, np.int64)

    def clear(self) -> None:
        self._parts.clear()
        self._gone = 0


class WindowFeed:
    """One query's view of one window of triples: the triples that entered and left since the last slide."""

    __slots__ = ("_arrived", "_delivered", "_first", "_kept", "_sizes", "_skip", "_stop")

    def __init__(self) -> None:
        self._arrived: tuple[int, int, Ids] = (0, 0, np.empty(0, np.int64))
        """Of the last slide: the positions of the arrived events, and how many triples of each arrived."""
        self._first = 0
        self._skip = 0  # how many triples of the first event are outside
        self._stop = 0
        self._sizes = _Sizes()  # of the events from the first on
        self._delivered = 0  # how many triples were given out
        self._kept = 0  # how many of them are still inside

    def slide(self, view: WindowEvents, encoded: EncodedStream) -> TripleSlide:
        (first, stop), skip = view.positions, view.skip
        if first >= self._stop:
            arrived, sizes = encoded.between(view.stream, first, stop)
            arrived = arrived[skip:]
            self._sizes.clear()
            self._kept = len(arrived)
            self._arrived = (first, stop, sizes)
        else:
            gone = self._sizes.drop(first - self._first)
            arrived, sizes = encoded.between(view.stream, self._stop, stop)
            self._kept += len(arrived) - (gone + skip - self._skip)
            self._arrived = (self._stop, stop, sizes)
        self._sizes.add(sizes)
        self._first, self._skip, self._stop = first, skip, max(stop, first)
        self._delivered += len(arrived)
        return TripleSlide(np.ascontiguousarray(arrived), self._delivered - self._kept)

    def slides(self, stream: StreamBuffer, firsts: Ids, stops: Ids, encoded: EncodedStream) -> TripleSlides:
        """Return the same for several slides of a window of time, given by the positions of its events."""
        first, stop = int(firsts[0]), int(stops[-1])
        if first >= self._stop:
            self._sizes.clear()
            self._kept, self._first, self._stop = 0, first, first
        number = self._delivered - self._kept  # of the first triple that is inside
        arrived, sizes = encoded.between(stream, self._stop, max(stop, self._stop))
        self._sizes.add(sizes)
        before = np.zeros(max(stop, self._stop) - self._first + 1, np.int64)
        np.cumsum(self._sizes.all(), out=before[1:])
        lefts = number + before[firsts - self._first]
        ends = number + before[np.maximum(stops, firsts) - self._first]
        self._sizes.drop(int(firsts[-1]) - self._first)
        self._first, self._stop = int(firsts[-1]), max(stop, self._stop, int(firsts[-1]))
        self._delivered += len(arrived)
        self._kept = self._delivered - int(lefts[-1])
        return TripleSlides(np.ascontiguousarray(arrived), np.maximum.accumulate(ends), lefts)

    def times(self, view: WindowEvents) -> Ids:
        """Return the event times of the triples that arrived in the last slide."""
        first, stop, sizes = self._arrived
        times = np.repeat(view.stream.arrivals(first, stop)[0], sizes)
        return times[view.skip :] if first == view.positions[0] else times


class RelationshipFeed:
    """One query's view of the relationships of a window: those that entered and left since the last slide."""

    __slots__ = ("_delivered", "_dictionary", "_first", "_kept", "_sizes", "_stop")

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._first = 0
        self._stop = 0
        self._sizes = _Sizes()
        self._delivered = 0
        self._kept = 0

    def slide(self, view: WindowEvents, mapping: Mapping) -> RelationshipSlide:
        first, stop = view.positions
        if first >= self._stop:
            self._sizes.clear()
            self._kept = 0
            self._stop = first
        else:
            self._kept -= self._sizes.drop(first - self._first)
        encode = self._dictionary.encode
        flat: list[int] = []
        sizes: list[int] = []
        seen: dict[ElementId | None, tuple[int, int, int]] = {}
        moved = False
        for event in view.stream.between(self._stop, stop):
            _, relationships = mapping.elements_of(event) if event.triples else (event.nodes, event.relationships)
            sizes.append(len(relationships))
            for one in relationships:
                link = (encode(one.source), encode(one.type), encode(one.target))
                moved = moved or seen.setdefault(one.id, link) != link
                flat += link
        self._sizes.add(np.array(sizes, np.int64))
        self._first, self._stop = first, max(stop, first)
        self._delivered += len(flat) // 3
        self._kept += len(flat) // 3
        return RelationshipSlide(np.array(flat, np.int64).reshape(-1, 3), self._delivered - self._kept, moved)
