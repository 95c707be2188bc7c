"""The elements of a stream's events as ids, encoded once for all queries that match them on arrays.

Invariant: rows stand in the order of the events, and of the elements in each event. Numbers of label sets and types
mean the same as long as the dictionary lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from anabranch.delta.batch import ABSENT, Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.element_versions import KEY_SET
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.views import WindowEvents
from anabranch.model.event import Event
from anabranch.model.graph_block import (
    PROPERTIES,
    GraphBlock,
    GraphPart,
    GraphSource,
    PropertyKeys,
    ValueColumn,
    made_id,
)
from anabranch.model.mapping import Mapping
from anabranch.model.values import Node, Relationship
from anabranch.planner.flow.feeds import GraphSlide, GraphSlides

_MOST_SOURCES = 3  # encoded sources that are kept


class _EncodedSource(NamedTuple):
    """The elements of a source's events: where those of each event begin, and their ids."""

    source: GraphSource
    keys: PropertyKeys
    node_starts: Ids
    nodes: NodeRows
    link_starts: Ids
    links: LinkRows


class _Numbers:
    """Numbers of values, by their ids in the dictionary: each is asked for once. That of an absent value is 0."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: Ids = np.zeros(1, np.int64)  # by the id, from that of an absent value on; -1: not asked for yet

    def numbers(self, ids: Ids, number_of: Callable[[int], int]) -> Ids:
        places = ids - ABSENT
        size = int(places.max(initial=0)) + 1
        if size > len(self._known):
            known, self._known = self._known, np.full(2 * size, -1, np.int64)
            self._known[: len(known)] = known
        found: Ids = self._known[places]
        if int(found.min(initial=0)) < 0:
            for one in np.unique(ids[found < 0]).tolist():
                self._known[one - ABSENT] = number_of(one)
            found = self._known[places]
        return found


class EncodedGraph:
    """The elements of one stream, as far as queries read them."""

    def __init__(self, dictionary: Dictionary, mapping: Mapping) -> None:
        self.dictionary = dictionary
        self._mapping = mapping
        self.keys: PropertyKeys = ()
        self.columns: tuple[str, ...] = ()
        """The columns of rows: the keys, and where all properties are asked for, the number of their keys."""
        self.label_sets: list[tuple[str, ...]] = [()]
        self.types: list[str] = []
        self._set_numbers: dict[tuple[str, ...], int] = {(): 0}
        self._key_sets: dict[tuple[str, ...], int] = {}
        self._key_set_of = _Numbers()  # by the id of a map
        self._set_of = _Numbers()  # by the id of a list of labels; that of none is 0
        self._type_of = _Numbers()  # by the id of a text
        self._type_numbers: dict[str, int] = {}
        self._sources: dict[int, _EncodedSource] = {}
        self._last: tuple[int, int, NodeRows, LinkRows] | None = None

    def ask(self, keys: PropertyKeys) -> None:
        """Add properties to those that are read."""
        if not set(keys) <= set(self.keys):
            self.keys = tuple(dict.fromkeys((*self.keys, *keys)))
            self.columns = (*self.keys, KEY_SET) if PROPERTIES in self.keys else self.keys
            self._sources.clear()
            self._last = None

    def forget_range(self) -> None:
        """Note that the positions of events have changed."""
        self._last = None

    def between(self, stream: StreamBuffer, first: int, stop: int) -> tuple[NodeRows, LinkRows]:
        """Return the elements of the events at these positions."""
        if self._last is not None and self._last[:2] == (first, stop):
            return self._last[2:]
        found: list[tuple[NodeRows, LinkRows]] = []
        position = first
        for run in stream.runs(first, stop):
            if isinstance(run, GraphBlock):
                found += self._of_block(run, position)
            else:
                found.append(self._of_events(run if isinstance(run, list) else run.events(), position))
            position += len(run)
        rows = found[0] if len(found) == 1 else self._joined(found)
        self._last = (first, stop, *rows)
        return rows

    def _joined(self, parts: list[tuple[NodeRows, LinkRows]]) -> tuple[NodeRows, LinkRows]:
        parts = parts or [self._of_events([], 0)]
        nodes, links = zip(*parts, strict=True)
        return (
            NodeRows(*(np.concatenate(columns) for columns in zip(*nodes, strict=True))),
            LinkRows(*(np.concatenate(columns) for columns in zip(*links, strict=True))),
        )

    # --- blocks ---

    def _of_block(self, block: GraphBlock, position: int) -> list[tuple[NodeRows, LinkRows]]:
        changes = np.flatnonzero((np.diff(block.parts_of) != 0) | (np.diff(block.rows) != 1)) + 1
        if len(changes) * 8 > len(block):  # events of several sources take turns
            return [self._of_events(block.events(), position)]
        found = []
        for start, stop in zip([0, *changes.tolist()], [*changes.tolist(), len(block)], strict=True):
            part, row = block.parts[int(block.parts_of[start])], int(block.rows[start])
            found.append(self._of_run(part, row, row + stop - start, position + start))
        return found

    def _of_run(self, part: GraphPart, row: int, stop: int, position: int) -> tuple[NodeRows, LinkRows]:
        whole = self._encoded(part.source)
        shift = position - row
        first, last = int(whole.node_starts[row]), int(whole.node_starts[stop])
        nodes = NodeRows(*(column[first:last] for column in whole.nodes))
        first, last = int(whole.link_starts[row]), int(whole.link_starts[stop])
        links = LinkRows(*(column[first:last] for column in whole.links))
        if len(links.keys) and int(links.keys.min()) < 0:
            links = links._replace(keys=self._with_made_ids(links, part, whole.link_starts, first))
        return nodes._replace(positions=nodes.positions + shift), links._replace(positions=links.positions + shift)

    def _with_made_ids(self, links: LinkRows, part: GraphPart, starts: Ids, first: int) -> Ids:
        """Return the keys of relationships, of which the first is number `first` of the source, with the ids that the
        stream makes."""
        keys = links.keys.copy()
        lacking = np.flatnonzero(keys < 0)
        rows = links.positions[lacking]
        indices = first + lacking - starts[rows]
        made = [
            made_id(part.split, part.shift + row, index)
            for row, index in zip(rows.tolist(), indices.tolist(), strict=True)
        ]
        keys[lacking] = self.dictionary.encode_all(made)
        return keys

    def _encoded(self, source: GraphSource) -> _EncodedSource:
        known = self._sources.get(id(source))
        if known is not None and known.source is source:
            return known
        columns = source.columns(self.keys)

        def ids(column: ValueColumn) -> Ids:
            return self.dictionary.encode_column(column, columns.data, columns.objects)

        def matrix(properties: Sequence[ValueColumn], rows: int) -> Ids:
            found = np.empty((rows, len(self.columns)), np.int64)
            for at, column in enumerate(properties):
                found[:, at] = ids(column)
            self._add_key_sets(found)
            return found

        node_starts, node_rows = _starts(columns.nodes.per_event)
        link_starts, link_rows = _starts(columns.relationships.per_event)
        of = columns.relationships
        nodes = NodeRows(
            node_rows,
            ids(columns.nodes.ids),
            self._label_sets_of(ids(columns.nodes.labels)),
            matrix(columns.nodes.properties, len(node_rows)),
        )
        links = LinkRows(
            link_rows,
            ids(of.ids),
            self._types_of(ids(of.types)),
            ids(of.sources),
            ids(of.targets),
            matrix(of.properties, len(link_rows)),
        )
        found = _EncodedSource(source, self.keys, node_starts, nodes, link_starts, links)
        if len(self._sources) >= _MOST_SOURCES:
            del self._sources[next(iter(self._sources))]
        self._sources[id(source)] = found
        return found

    def _label_sets_of(self, ids: Ids) -> Ids:
        return self._set_of.numbers(ids, lambda one: self._label_set(self.dictionary.decode(one)))

    def _label_set(self, labels: object) -> int:
        names = tuple(dict.fromkeys(labels))  # type: ignore[call-overload]
        found = self._set_numbers.get(names)
        if found is None:
            found = self._set_numbers[names] = len(self.label_sets)
            self.label_sets.append(names)
        return found

    def _types_of(self, ids: Ids) -> Ids:
        return self._type_of.numbers(ids, lambda one: self._type(str(self.dictionary.decode(one))))

    def _type(self, name: str) -> int:
        found = self._type_numbers.get(name)
        if found is None:
            found = self._type_numbers[name] = len(self.types)
            self.types.append(name)
        return found

    def _add_key_sets(self, values: Ids) -> None:
        """Fill in the numbers of the keys of maps; an element without properties has the empty map."""
        if PROPERTIES not in self.keys:
            return
        at = self.keys.index(PROPERTIES)
        maps = values[:, at]
        maps[maps == ABSENT] = self.dictionary.encode({})
        values[:, -1] = self._key_set_of.numbers(maps, self._key_set)

    def _key_set(self, one: int) -> int:
        keys: Any = self.dictionary.decode(one)
        return self._key_sets.setdefault(tuple(keys), len(self._key_sets))

    # --- single events ---

    def _of_events(self, events: Sequence[Event], position: int) -> tuple[NodeRows, LinkRows]:
        encode, keys, whole = self.dictionary.encode, self.keys, PROPERTIES in self.keys

        def values(element: Node | Relationship) -> list[int]:
            own = {**element.properties, PROPERTIES: dict(element.properties)} if whole else element.properties
            return [encode(own[key]) if key in own else ABSENT for key in keys]

        nodes: list[tuple[int, int, int]] = []
        links: list[tuple[int, int, int, int, int]] = []
        node_values: list[list[int]] = []
        link_values: list[list[int]] = []
        for at, event in enumerate(events, position):
            described, related = (
                self._mapping.elements_of(event) if event.triples else (event.nodes, event.relationships)
            )
            for node in described:
                nodes.append((at, encode(node.id), self._label_set(node.labels)))
                node_values.append(values(node))
            for one in related:
                ends = (encode(one.source), encode(one.target))
                links.append((at, encode(one.id), self._type(one.type), *ends))
                link_values.append(values(one))
        node_columns = np.ascontiguousarray(_matrix(nodes, 3).T)
        link_columns = np.ascontiguousarray(_matrix(links, 5).T)
        matrices = []
        for known in (node_values, link_values):
            matrix = np.empty((len(known), len(self.columns)), np.int64)
            matrix[:, : len(keys)] = _matrix(known, len(keys))
            self._add_key_sets(matrix)
            matrices.append(matrix)
        return NodeRows._make((*node_columns, matrices[0])), LinkRows._make((*link_columns, matrices[1]))


def _matrix(values: Sequence[Sequence[int]], width: int) -> Ids:
    return np.array(values, np.int64).reshape(len(values), width)


def _starts(per_event: Ids) -> tuple[Ids, Ids]:
    """Return where the elements of each event begin, and the row of the event of each element."""
    starts = np.zeros(len(per_event) + 1, np.int64)
    np.cumsum(per_event, out=starts[1:])
    return starts, np.repeat(np.arange(len(per_event)), per_event)


class GraphFeed:
    """One query's view of the elements of a window: those of the events that arrived since the last slide."""

    __slots__ = ("_stop",)

    def __init__(self) -> None:
        self._stop = 0

    def slide(self, view: WindowEvents, encoded: EncodedGraph) -> GraphSlide:
        first, stop = view.positions
        nodes, links = encoded.between(view.stream, max(first, self._stop), max(first, self._stop, stop))
        self._stop = max(self._stop, stop)
        return GraphSlide(nodes, links, first, encoded.label_sets, encoded.types, encoded.columns)

    def slides(self, stream: StreamBuffer, firsts: Ids, stops: Ids, encoded: EncodedGraph) -> GraphSlides:
        """Return the same for several slides, given by the positions of the window's events."""
        begin, stop = max(int(firsts[0]), self._stop), int(stops[-1])
        nodes, links = encoded.between(stream, begin, max(begin, stop))
        self._stop = max(self._stop, stop)
        return GraphSlides(nodes, links, firsts, stops, encoded.label_sets, encoded.types, encoded.columns)
