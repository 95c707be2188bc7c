"""The union of a window's events, and the facts of its elements, on arrays.

Law: the facts given out so far, added and removed, are exactly those of the union of the events inside, by the policy
`latest`: the newest value of each property, all labels, the newest type and ends. Whole elements are versions with
layers beneath them (`kernels/graph_window.py`).

State: per living element one record and one cell for each asked property; per arrival of an element one entry of a log.
Work per slide: O(elements of arriving and leaving events).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.element_versions import ElementShape
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.delta.kernels import graph_window as kernels
from anabranch.delta.kernels.compiling import Records
from anabranch.delta.kernels.graph_window import (
    Bits,
    Emission,
    KindTable,
    LinkTable,
    NodeTable,
    Present,
    SlideRows,
    TruthTable,
)
from anabranch.delta.operators.base import Size

MOST_KINDS = 60
"""Kinds of nodes, kinds of relationships, and labels are bits of one number each."""
_LEAST = 64
_OTHERS = ("slots", "log", "layers")  # tables that are not by slot
_ONE = np.zeros(1, np.int64)

ElementTests: TypeAlias = Callable[[Ids, Ids], Bits] | None
"""From the keys and the values of elements to the kinds whose conditions hold, as bits; None: all of them."""


class FactSlides(NamedTuple):
    """The facts that left and came in several slides, and where those of each slide end."""

    removed: Ids
    removed_ends: Ids
    added: Ids
    added_ends: Ids


class GraphWindow:
    """The elements of a window. `labels` is how many labels kinds ask for; shapes name the asked properties."""

    def __init__(self, labels: int, node_shape: ElementShape, link_shape: ElementShape, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._node_keys, self._link_keys = len(node_shape.keys), len(link_shape.keys)
        self._node_shape = dictionary.versions.shape(node_shape)
        self._link_shape = dictionary.versions.shape(link_shape)
        self._is_layered = node_shape.is_layered or link_shape.is_layered
        self._states: Records = np.zeros(1, kernels.STATE)
        self._state = self._states[0]
        self._state["node_free"] = self._state["link_free"] = self._state["layer_free"] = kernels.NONE
        self._nodes = _node_table(_LEAST, labels, self._node_keys)
        self._links = _link_table(_LEAST, self._link_keys)
        self._present = self._presence()
        self._out = _emission(_LEAST, max(self._node_keys, self._link_keys))

    def slide(
        self,
        nodes: NodeRows,
        links: LinkRows,
        first: int,
        kinds: KindTable,
        tests: tuple[ElementTests, ElementTests],
        is_void: bool = False,
    ) -> tuple[Ids, Ids]:
        """Add arrivals, and remove the events before a position; return the facts that left and those that came.
        `is_void`: the elements have no facts now, because events disagree about them."""
        self._make_room(len(nodes.keys), len(links.keys))
        self._state["void"] = is_void
        rows = SlideRows(nodes, links, np.array([first], np.int64), _ONE, _ONE, _ONE)
        kernels.take_in(self._nodes, self._links, self._states, kinds, rows, self._present)
        touched_nodes, touched_links = int(self._state["touched_nodes"]), int(self._state["touched_links"])
        if not touched_nodes and not touched_links:
            return self._out.removed[:0], self._out.added[:0]
        facts = touched_nodes * len(kinds.needs) + 2 * touched_links * len(kinds.link_numbers)
        self._make_room_for(max(facts, touched_nodes + touched_links + int(self._state["layers"])))
        present = self._present
        _pass(present.node_passes, self._nodes, present.nodes, touched_nodes, tests[0])
        _pass(present.link_passes, self._links, present.links, touched_links, tests[1])
        self._state["next_version"] = len(self._dictionary)
        kernels.emit(self._nodes, self._links, self._states, kinds, present, first, self._out)
        self._add_versions()
        removed, added = int(self._state["removed"]), int(self._state["added"])
        return self._out.removed[:removed], self._out.added[:added]

    def slides(
        self, nodes: NodeRows, links: LinkRows, firsts: Ids, stops: Ids, kinds: KindTable, tests: TruthTable
    ) -> FactSlides:
        """Do the same for several slides, given by the positions before which events arrive, and then leave."""
        self._make_room(len(nodes.keys), len(links.keys))
        count = len(firsts)
        rows = SlideRows(nodes, links, firsts, stops, np.full(count, -1, np.int64), np.full(count, -1, np.int64))
        state = self._state
        state["removed"] = state["added"] = state["versions"] = 0
        state["next_version"] = len(self._dictionary)
        tables = (self._nodes, self._links, self._states, kinds, rows, tests)
        while kernels.slide_all(*tables, self._present, self._out) < count:
            self._make_room_for(int(state["wanted"]))
        self._add_versions()
        removed, added = self._out.removed[: int(state["removed"])], self._out.added[: int(state["added"])]
        return FactSlides(removed, rows.removed, added, rows.added)

    def _add_versions(self) -> None:
        versions = int(self._state["versions"])
        if versions:
            shapes = np.where(self._out.shapes[:versions] == 0, self._node_shape, self._link_shape)
            self._dictionary.add_versions(shapes, self._out.versions[:versions])

    def __len__(self) -> int:
        """Return how many elements are kept."""
        return int((self._nodes.slots >= 0).sum() + (self._links.slots >= 0).sum())

    def size(self) -> Size:
        entries = int(self._state["node_end"] - self._state["node_head"])
        arrays = (*self._nodes, *self._links)
        return Size(entries, sum(array.nbytes for array in arrays))

    # --- room ---

    def _presence(self) -> Present:
        size = max(len(self._nodes.records), len(self._links.records))
        numbers = [np.zeros(size, np.int64) for _ in range(3)]
        return Present(_rows(size, self._node_keys), numbers[0], _rows(size, self._link_keys), *numbers[1:])

    def _make_room(self, nodes: int, links: int) -> None:
        state, ids = self._state, len(self._dictionary)
        slots = int(state["nodes"]) + nodes + 2 * links
        if slots > len(self._nodes.records) or ids > len(self._nodes.slots):
            self._nodes = _grown(self._nodes, slots, ids)
        slots = int(state["links"]) + links
        if slots > len(self._links.records) or ids > len(self._links.slots):
            self._links = _grown(self._links, slots, ids)
        if max(len(self._nodes.records), len(self._links.records)) > len(self._present.labels):
            self._present = self._presence()
        if state["node_end"] + nodes > len(self._nodes.log):
            self._nodes = self._nodes._replace(log=self._log(self._nodes.log, "node", nodes))
        if state["link_end"] + links > len(self._links.log):
            self._links = self._links._replace(log=self._log(self._links.log, "link", links))
        layers = int(state["layer_end"]) + nodes + links
        if self._is_layered and layers > len(self._nodes.layers):
            self._nodes = self._nodes._replace(layers=_longer(self._nodes.layers, 2 * layers))

    def _log(self, log: Records, name: str, more: int) -> Records:
        """Return the log with room for more entries, without those that have left; if these are half of it, it stays as
        long as it is."""
        head, end = int(self._state[f"{name}_head"]), int(self._state[f"{name}_end"])
        living = end - head
        kept = log if living + more <= len(log) // 2 else np.empty(2 * (living + more), kernels.LOGGED)
        kept[:living] = log[head:end]
        self._state[f"{name}_head"], self._state[f"{name}_end"] = 0, living
        return kept

    def _make_room_for(self, facts: int) -> None:
        if facts > len(self._out.removed):
            size = 2 * facts
            self._out = Emission(*(_longer(array, size) for array in self._out))


def _pass(passes: Bits, table: NodeTable | LinkTable, values: Ids, count: int, test: ElementTests) -> None:
    if test is None or not count:
        passes[:count] = -1
    else:
        keys = table.records["key"][table.touched[:count]].astype(np.int64)
        passes[:count] = test(keys, values[:count])


def _rows(count: int, width: int) -> Ids:
    return np.zeros((count, width), np.int64)


def _node_table(size: int, labels: int, keys: int) -> NodeTable:
    return NodeTable(
        np.zeros(size, kernels.NODE),
        np.full(size, kernels.NONE, np.int32),
        _rows(size, labels),
        _rows(size, keys),
        _rows(size, keys),
        _rows(size, keys),
        np.empty(size, kernels.LOGGED),
        np.zeros(size, np.int64),
        np.zeros(size, kernels.LAYER),
    )


def _link_table(size: int, keys: int) -> LinkTable:
    return LinkTable(
        np.zeros(size, kernels.LINK),
        np.full(size, kernels.NONE, np.int32),
        _rows(size, keys),
        _rows(size, keys),
        _rows(size, keys),
        np.empty(size, kernels.LOGGED),
        np.zeros(size, np.int64),
    )


def _emission(size: int, keys: int) -> Emission:
    versions = _rows(size, kernels.RECORD + keys)
    return Emission(_rows(size, kernels.FACT), _rows(size, kernels.FACT), versions, np.zeros(size, np.int64))


def _grown(table, slots: int, ids: int):  # type: ignore[no-untyped-def]
    size = len(table.records) if slots <= len(table.records) else max(slots, 2 * len(table.records))
    by_slot = {name: _longer(array, size) for name, array in table._asdict().items() if name not in _OTHERS}
    known = table.slots
    if ids > len(known):
        known = np.full(max(ids, 2 * len(known)), kernels.NONE, np.int32)
        known[: len(table.slots)] = table.slots
    return table._replace(slots=known, **by_slot)


def _longer(array, size: int):  # type: ignore[no-untyped-def]
    if size <= len(array):
        return array
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
