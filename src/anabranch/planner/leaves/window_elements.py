"""The elements of a window on arrays, with the facts that the patterns of a query need of them.

All patterns of a query over one window share its elements: an element has one version, whichever pattern shows it, so
rows of two patterns are joined by the ids that they hold.

Invariant: facts are computed once per tick, whatever the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from anabranch.algebra.operators import Window
from anabranch.delta.batch import NULL, Ids, Mask
from anabranch.delta.element_versions import KEY, KEY_SET, LABELS, PARTS, ElementShape
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.delta.graph_window import MOST_KINDS, ElementTests, FactSlides, GraphWindow
from anabranch.delta.kernels.graph_window import NONE, Bits, KindTable, TruthTable
from anabranch.model.graph_block import PROPERTIES
from anabranch.planner.flow.feeds import GraphSlide, GraphSlides, Tick
from anabranch.planner.flow.runtime import PlainPasses, Runtime
from anabranch.planner.patterns.kinds import NodeKind, RelationshipKind
from anabranch.planner.reads import over_fields, properties_of

ElementKind = NodeKind | RelationshipKind
_ALL = np.array([np.iinfo(np.int64).max])
_UNKNOWN = 2


def has_room(kinds: Sequence[ElementKind]) -> bool:
    """Return whether one window can give the facts of all these kinds."""
    nodes = [kind for kind in kinds if isinstance(kind, NodeKind)]
    labels = {label for kind in nodes for label in kind.labels}
    return max(len(nodes), len(kinds) - len(nodes), len(labels)) <= MOST_KINDS


class OwnFacts(NamedTuple):
    """The facts of one pattern among those of all: kinds have numbers above `first`, up to `last`."""

    first: int
    last: int

    @property
    def is_first(self) -> bool:
        return self.first == 0

    def of(self, facts: Ids) -> Ids:
        kinds = facts[:, 1]
        own = (kinds > self.first) & (kinds <= self.last)
        if own.all() and self.is_first:
            return facts
        found = facts[own]
        found[:, 1] -= self.first
        return found


class WindowElements:
    """The elements of one window. Patterns add their kinds before the first tick."""

    def __init__(self, window: Window, runtime: Runtime) -> None:
        self._window = window
        self._runtime = runtime
        self._kinds: list[ElementKind] = []
        self._last = 0  # number of a kind
        self._state: _State | None = None
        self._tick: Tick | None = None
        self._facts: tuple[Ids, Ids] | None = None

    @classmethod
    def of(cls, window: Window, kinds: Sequence[ElementKind], runtime: Runtime) -> WindowElements:
        """Return the elements of a window that patterns share, with room for these kinds."""
        whole = replace(window, keep=None)
        found = runtime.shared.get((cls, whole))
        if found is None or not has_room([*found._kinds, *kinds]):
            found = runtime.shared[cls, whole] = cls(whole, runtime)
        assert isinstance(found, WindowElements)
        return found

    def add(self, kinds: Sequence[ElementKind]) -> OwnFacts:
        """Add the kinds of a pattern; return which facts are its own."""
        first = self._last
        if self._runtime.whole:
            kinds = [replace(kind, keys=tuple(dict.fromkeys((*kind.keys, LABELS, PROPERTIES)))) for kind in kinds]
        self._kinds += [replace(kind, number=first + kind.number) for kind in kinds]
        self._last = first + max(kind.number for kind in kinds)
        asked = self._runtime.properties.setdefault(self._window, {})
        asked.update(dict.fromkeys(key for key in _keys(kinds) if key != KEY_SET))
        return OwnFacts(first, self._last)

    def facts(self, tick: Tick) -> tuple[Ids, Ids]:
        """Return the facts that left and those that came, valid until the next tick."""
        if self._tick is not tick or self._facts is None:
            self._facts = self._begun().slide(tick.graph(self._window))
            self._tick = tick
        return self._facts

    def slides(self, slides: GraphSlides) -> FactSlides:
        """Return the facts of several slides, where there is one pattern whose conditions read one value each."""
        return self._begun().slides(slides)

    def _begun(self) -> _State:
        if self._state is None:
            self._state = _State(self._kinds, self._runtime)
        return self._state

    @property
    def nbytes(self) -> int:
        return 0 if self._state is None else self._state.elements.size().bytes


class _State:
    """The arrays of a window's elements, for given kinds."""

    def __init__(self, kinds: Sequence[ElementKind], runtime: Runtime) -> None:
        nodes = [kind for kind in kinds if isinstance(kind, NodeKind)]
        links = [kind for kind in kinds if isinstance(kind, RelationshipKind)]
        node_keys, link_keys = _keys(nodes), _keys(links)
        self._types: list[str] = []
        self._label_sets: list[tuple[str, ...]] | None = None
        if any(kind.shown and LABELS in kind.keys for kind in nodes):
            self._label_sets = []
        wholes = [int(self._label_sets is not None), *(_place(PROPERTIES, keys) for keys in (node_keys, link_keys))]
        self._kinds = _KindBits(nodes, links, wholes)
        shapes = ElementShape(node_keys, None, self._label_sets), ElementShape(link_keys, self._types)
        self.elements = GraphWindow(len(self._kinds.labels), *shapes, runtime.dictionary)
        self._truths = None if runtime.strict else _truths(nodes, node_keys, links, link_keys, runtime)
        self._tests: tuple[ElementTests, ElementTests] = (None, None)
        if self._truths is None:
            self._tests = _tests(nodes, node_keys, runtime), _tests(links, link_keys, runtime)
        self._columns = _Columns(node_keys), _Columns(link_keys)

    def slide(self, slide: GraphSlide) -> tuple[Ids, Ids]:
        nodes, links, table = self._arrived(slide)
        if self._truths is None:
            return self.elements.slide(nodes, links, slide.first, table, self._tests, slide.is_void)
        firsts, truths = np.array([slide.first], np.int64), self._truths.table(nodes, links)
        found = self.elements.slides(nodes, links, firsts, _ALL, table, truths)
        return found.removed, found.added

    def slides(self, slides: GraphSlides) -> FactSlides:
        assert self._truths is not None
        nodes, links, table = self._arrived(slides)
        truths = self._truths.table(nodes, links)
        return self.elements.slides(nodes, links, slides.firsts, slides.stops, table, truths)

    def _arrived(self, slide: GraphSlide | GraphSlides) -> tuple[NodeRows, LinkRows, KindTable]:
        """Return the arrivals with the properties that patterns read, and what kinds ask for."""
        self._types += slide.types[len(self._types) :]
        if self._label_sets is not None:
            self._label_sets += slide.label_sets[len(self._label_sets) :]
        of_nodes, of_links = (columns.picked(slide.keys) for columns in self._columns)
        nodes = slide.nodes if of_nodes is None else slide.nodes._replace(values=_columns(slide.nodes.values, of_nodes))
        links = slide.links if of_links is None else slide.links._replace(values=_columns(slide.links.values, of_links))
        return nodes, links, self._kinds.table(slide.label_sets, slide.types)


def _columns(values: Ids, picks: Sequence[int]) -> Ids:
    return np.ascontiguousarray(values[:, picks])


def _keys(kinds: Sequence[ElementKind]) -> tuple[str, ...]:
    """Return the columns that kinds read: to show them, and for their conditions. All properties come last, with the
    number of their keys."""
    shown = [key for kind in kinds if kind.shown for key in kind.keys]
    tested = [key for kind in kinds for one in kind.conditions for key in properties_of(one, kind.variable) or ()]
    plain = tuple(dict.fromkeys(key for key in (*shown, *tested) if key not in PARTS))
    return (*plain, PROPERTIES, KEY_SET) if PROPERTIES in shown else plain


def _place(key: str, keys: tuple[str, ...]) -> int:
    return keys.index(key) if key in keys else NONE


class _Columns:
    """Which columns of a slide hold given properties; computed again when a stream's properties have become more."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._known: tuple[str, ...] | None = None
        self._picks: list[int] | None = None

    def picked(self, keys: tuple[str, ...]) -> list[int] | None:
        """Return the columns; None where these are all columns in their order."""
        if keys is not self._known:
            self._known = keys
            self._picks = None if keys == self._keys else [keys.index(key) for key in self._keys]
        return self._picks


class _KindBits:
    """The demands of kinds as bits, for the label sets and types that came so far."""

    def __init__(self, nodes: Sequence[NodeKind], links: Sequence[RelationshipKind], wholes: Sequence[int]) -> None:
        self._links = links
        self.labels = list(dict.fromkeys(label for kind in nodes for label in kind.labels))
        needs = [_bits(label in kind.labels for label in self.labels) for kind in nodes]
        masks = [
            _bits(kind.shown for kind in nodes),
            _bits(kind.shown for kind in links),
            _bits(kind.both_ways for kind in links),
        ]
        numbers = [[kind.number for kind in nodes], [kind.number for kind in links]]
        parts: list[Sequence[int]] = [[], needs, [], masks, *numbers, wholes]
        self._table = KindTable(*(np.array(part, np.int64) for part in parts))

    def table(self, label_sets: Sequence[tuple[str, ...]], types: Sequence[str]) -> KindTable:
        table = self._table
        if len(table.labels_of_set) < len(label_sets):
            sets = [_bits(label in names for label in self.labels) for names in label_sets]
            table = table._replace(labels_of_set=np.array(sets, np.int64))
        if len(table.kinds_of_type) < len(types):
            kinds = [_bits(not kind.types or name in kind.types for kind in self._links) for name in types]
            table = table._replace(kinds_of_type=np.array(kinds, np.int64))
        self._table = table
        return table


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << at for at, flag in enumerate(flags) if flag)


class _Truths:
    """Conditions on one value each, answered once for each value that comes."""

    def __init__(self, of_nodes: Sequence[_ValueTest], of_links: Sequence[_ValueTest], runtime: Runtime) -> None:
        self._dictionary = runtime.dictionary
        self._of_nodes, self._of_links = of_nodes, of_links
        self._truths = np.full((len(of_nodes) + len(of_links), 0), _UNKNOWN, np.uint8)
        numbers = [[one.kind for one in of_nodes], [one.column for one in of_nodes]]
        numbers += [[one.kind for one in of_links], [one.column for one in of_links]]
        self._columns = [np.array(one, np.int64) for one in numbers]

    def table(self, nodes: NodeRows, links: LinkRows) -> TruthTable:
        """Return the answers, also for all values of these arrivals."""
        size = len(self._dictionary)
        if size > self._truths.shape[1]:
            grown = np.full((len(self._truths), 2 * size), _UNKNOWN, np.uint8)
            grown[:, : self._truths.shape[1]] = self._truths
            self._truths = grown
        for at, one in enumerate((*self._of_nodes, *self._of_links)):
            rows: NodeRows | LinkRows = nodes if at < len(self._of_nodes) else links
            if one.column != NONE:
                values = rows.values[:, one.column]
            elif at < len(self._of_nodes):
                values = np.concatenate((nodes.keys, links.sources, links.targets))
            else:
                values = links.keys
            known = self._truths[at]
            new = np.unique(np.append(values[values >= 0], NULL))
            new = new[known[new] == _UNKNOWN]
            if len(new):
                known[new] = one.passes(new.reshape(-1, 1))
        node_kinds, node_columns, link_kinds, link_columns = self._columns
        return TruthTable(node_kinds, node_columns, link_kinds, link_columns, self._truths)


class _ValueTest(NamedTuple):
    """A condition of a kind on one value: the column that it reads, or NONE for the key of the element."""

    kind: int
    column: int
    passes: PlainPasses


def _truths(
    nodes: Sequence[NodeKind],
    node_keys: tuple[str, ...],
    links: Sequence[RelationshipKind],
    link_keys: tuple[str, ...],
    runtime: Runtime,
) -> _Truths | None:
    """Return the conditions of kinds by value; None where one reads several values."""
    found: tuple[list[_ValueTest], list[_ValueTest]] = ([], [])
    sides: list[tuple[Sequence[ElementKind], tuple[str, ...]]] = [(nodes, node_keys), (links, link_keys)]
    for tests, (kinds, keys) in zip(found, sides, strict=True):
        for at, kind in enumerate(kinds):
            for condition in kind.conditions:
                over = over_fields(condition, (kind.variable,))
                if over is None or len(over.fields) != 1:
                    return None
                key = over.fields[0][1]
                column = NONE if key == KEY else keys.index(str(key))
                passes = PlainPasses(over.expression, over.columns, runtime.lenient(), failed=True)
                tests.append(_ValueTest(at, column, passes))
    return _Truths(*found, runtime)


def _tests(kinds: Sequence[ElementKind], keys: tuple[str, ...], runtime: Runtime) -> ElementTests:
    """Return the test of elements by the conditions of kinds; None where no kind has a condition. Where a condition
    fails, the element passes, and the test of the match decides."""
    found: list[tuple[int, list[tuple[list[int | None], PlainPasses]]]] = []
    for at, kind in enumerate(kinds):
        parts = []
        for condition in kind.conditions:
            over = over_fields(condition, (kind.variable,))
            assert over is not None, "conditions on more than properties are tested on matches"
            places = [None if key == KEY else keys.index(key) for _, key in over.fields if key is not None]
            parts.append((places, PlainPasses(over.expression, over.columns, runtime.lenient(), failed=True)))
        if parts:
            found.append((at, parts))
    if not found:
        return None

    def test(element_keys: Ids, values: Ids) -> Bits:
        bits = np.full(len(element_keys), -1, np.int64)
        for at, parts in found:
            passed: Mask = np.ones(len(element_keys), np.bool_)
            for places, passes in parts:
                columns = [element_keys if place is None else values[:, place] for place in places]
                passed &= passes(np.column_stack(columns))
            bits[~passed] &= ~(1 << at)
        return bits

    return test
