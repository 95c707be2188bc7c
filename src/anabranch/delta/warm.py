"""Loads the compiled kernels before the first use; compiles those that are not in the cache.

    python -m anabranch.delta.warm          all of them
    python -m anabranch.delta.warm changes  one part: several parts can be compiled at the same time

Invariant: after `warm` no incremental operator compiles anything: each kernel has one signature, and it has been
called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np

from anabranch.delta.batch import Batch
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Range

_NUMBERS = np.arange(16, dtype=np.float64)
_FACTS = np.array([[1, 9, 2], [2, 9, 3], [3, 9, 1], [1, 9, 2]], np.int64)
_TRIANGLE = Conjunction(
    3,
    (
        FactPattern((Free(0), Fixed(9), Free(1)), (Range(2, 0.0, 5.0),)),
        FactPattern((Free(1), Fixed(9), Free(2))),
        FactPattern((Free(2), Fixed(9), Free(0))),
    ),
    3,
    ((0, 1),),
)


def _slides() -> None:
    from anabranch.delta.log_matcher import LogMatcher

    matcher = LogMatcher(_TRIANGLE)
    matcher.slide(_FACTS, np.array([2, 4], np.int64), np.array([0, 2], np.int64), _NUMBERS)
    matcher.matches()


def _changes() -> None:
    from anabranch.delta.log_matcher import LogMatcher

    matcher = LogMatcher(_TRIANGLE)
    matcher.change(_FACTS[:0], _FACTS[:3], _NUMBERS)
    matcher.change(_FACTS[:1], _FACTS[:0], _NUMBERS)


def _windows() -> None:
    from anabranch.delta.evaluation import evaluate

    evaluate(_TRIANGLE, _FACTS, _NUMBERS)


def _traces() -> None:
    from anabranch.delta.trace import Trace

    trace = Trace(2, (0,))
    rows = np.array([[1, 2], [1, 3], [1, 2]], np.int64)
    trace.add(Batch(rows, np.array([1, 1, 1], np.int64)))
    trace.add(Batch(rows, np.array([-1, 0, 0], np.int64)))
    keys = np.ascontiguousarray(rows[:, :1])
    trace.probe(keys)
    trace.totals(keys)
    trace.weights_of(rows)
    trace.rows()


def _connectivity() -> None:
    from anabranch.delta.connectivity.bic import BicIndex
    from anabranch.delta.connectivity.recency import RecencyTree, spanning_forest
    from anabranch.delta.connectivity.slides import spanning_forests
    from anabranch.delta.connectivity.vertices import WindowedIndex

    one, other = np.array([1, 2, 5], np.int64), np.array([2, 3, 5], np.int64)
    for index in (RecencyTree(), BicIndex(2)):
        windowed = WindowedIndex(index)
        for tick in range(5):
            windowed.insert(one + tick, other + tick, np.full(3, tick, np.int64))
            windowed.forget(tick - 1)
            windowed.connected(one, other, tick - 1)
            windowed.roots(one, tick - 1)
            windowed.components(tick - 1)
            windowed.sweep()
    tree = RecencyTree()
    edges, priorities = np.array([[0, 1], [1, 2]], np.int64), np.array([3, 1, 2], np.int64)
    for tick in (0, 1 << 31):  # the second moves the base of ticks
        tree.forget(tick)
        tree.insert(edges, np.full(2, tick, np.int64), priorities)
    tree.all_roots(3, 1 << 31)
    spanning_forest(edges, np.zeros(2, np.int64))
    lefts, rights = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    spanning_forests(lefts, rights, np.arange(2), np.zeros(2, np.int64), 3, np.ones(2, np.bool_))


def _paths() -> None:
    from anabranch.delta.paths.automaton import PathRepetition, PathStep, automaton
    from anabranch.delta.paths.components import ComponentPairs
    from anabranch.delta.paths.matcher import PathMatcher

    everyone = np.array([1, 2], np.int64)
    ComponentPairs(standing=False).change([], [(0, 1, 2)], everyone, everyone)

    matcher = PathMatcher(automaton(PathRepetition(PathStep(frozenset({9})), 1)))
    matcher.lay(_FACTS)
    count = 9000  # enough for every array to grow, and to shrink when all of it leaves
    ends = np.arange(count) // 3 * 4 + np.arange(count) % 3 + 10
    matcher.slide(np.column_stack((ends, np.full(count, 9), ends + 1)).astype(np.int64), 0)
    matcher.pairs()
    for left in (count // 2, count):
        matcher.slide(np.empty((0, 3), np.int64), left)


def _texts() -> None:
    from anabranch.delta.texts import PADDING, TextTable, plain_iris, spelled_integers

    text = b"http://a/b"
    count = 2000  # enough for the table to grow
    data = np.frombuffer(text * count + bytes(PADDING), np.uint8).copy()
    found = plain_iris(data, np.arange(count + 1) * len(text))
    assert found is not None
    table = TextTable()
    table.add(data, *found, 0)
    table.find(text, 0)
    table.digests(0, b"")
    spelled_integers(data, *found)


def _lines() -> None:
    from anabranch.delta.json_lines import LineScan, lines_end, padded, scan_instants, scan_maps

    line = b'{"at": 1, "nodes": [{"id": 1, "properties": {"a": 1.5}}]}'
    lines_end(line, 0, 1)
    LineScan(padded(line), 0, len(line), ("a",))
    texts, ends = padded(b'{"a": 1}2022-10-14T14:45:00Z'), np.array([0, 8, 28])
    scan_maps(texts, ends[:1], ends[1:2], ("a",))
    scan_instants(texts, ends[1:2], ends[2:])


def _sums() -> None:
    from anabranch.delta.number_sums import FLOAT, number_sums

    words = np.ones(2, np.float64).view(np.int64)
    list(number_sums(np.full(2, FLOAT, np.uint8), words, np.ones(2, np.int64), np.zeros(1, np.int64)))


def _elements() -> None:
    from anabranch.delta.dictionary import Dictionary
    from anabranch.delta.element_versions import ElementShape
    from anabranch.delta.graph_rows import LinkRows, NodeRows
    from anabranch.delta.graph_window import GraphWindow
    from anabranch.delta.kernels.graph_window import KindTable

    dictionary = Dictionary()
    key = np.array([dictionary.encode("a")], np.int64)
    zero, values = np.zeros(1, np.int64), np.full((1, 1), key[0], np.int64)
    masks, wholes = np.array([1, 1, 0], np.int64), np.array([0, -1, -1], np.int64)
    kinds = KindTable(zero, zero, np.ones(1, np.int64), masks, key, key, wholes)
    window = GraphWindow(1, ElementShape(("k",)), ElementShape(("k",), ["T"]), dictionary)
    nodes, links = NodeRows(zero, key, zero, values), LinkRows(zero, key, zero, key, key, values)
    window.slide(nodes, links, 0, kinds, (None, None))


def _extremes() -> None:
    from anabranch.delta.extremes import GroupExtremes, NumberChanges

    extremes, ones = GroupExtremes(), np.ones(1, np.int64)
    extremes.change(NumberChanges(ones, np.ones(1, np.float64), ones, ones, ones), ones)


def _groups() -> None:
    from anabranch.delta.dictionary import Dictionary
    from anabranch.delta.number_groups import NumberGroups
    from anabranch.delta.operators.base import RowFunction
    from anabranch.delta.operators.group_calls import GroupCall, raise_error

    # The calls of aggregates are not of this room: here is one that only names what it does.
    class Example:
        ordered = counts_rows = averages = False
        extreme = 0

        def __init__(self, counts: bool) -> None:
            self.counts, self.sums = counts, not counts

        def counted(self, count: int) -> int:
            return count

    dictionary = Dictionary()
    value: RowFunction = lambda rows: np.ascontiguousarray(rows[:, 1])  # noqa: E731
    calls = [GroupCall(Example(counts), (value,)) for counts in (True, False)]  # type: ignore[arg-type]
    groups = NumberGroups(1, calls, None, dictionary, raise_error, False)
    rows = np.full((1, 2), dictionary.encode(1.5), np.int64)
    groups.take(rows[:, :1], rows, np.ones(1, np.int64))
    groups.changes()
    groups.take_slides(rows[:, :1], rows, np.ones(1, np.int64), np.ones(1, np.int64))


def _orders() -> None:
    from anabranch.delta.dictionary import Dictionary
    from anabranch.delta.operators.ordering import OrderedSlice
    from anabranch.delta.sort_words import ColumnOrder, SortWords

    dictionary = Dictionary()
    rows = dictionary.encode_integers(np.arange(20)).reshape(-1, 1)
    ordered = OrderedSlice(1, ColumnOrder([0], SortWords(dictionary, lambda value: value)), 0, 1)
    ordered.apply(Batch.entering(rows))
    ordered.listed()


def _shortest() -> None:
    from anabranch.delta.paths.shortest import PathEdge, ShortestPaths

    paths = ShortestPaths(backwards=False, both_ways=False, every=False, is_open=True, maximum=None)
    paths.change((), [PathEdge(1, 1, 2), PathEdge(2, 2, 3)], (), [1])
    paths.change([2])


PARTS: Mapping[str, Callable[[], None]] = {
    "slides": _slides,
    "changes": _changes,
    "windows": _windows,
    "traces": _traces,
    "connectivity": _connectivity,
    "paths": _paths,
    "shortest": _shortest,
    "texts": _texts,
    "lines": _lines,
    "elements": _elements,
    "sums": _sums,
    "extremes": _extremes,
    "groups": _groups,
    "orders": _orders,
}


def warm(*parts: str) -> None:
    """Call every kernel, or those of these parts, on a small input."""
    for part in parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    warm(*sys.argv[1:])
