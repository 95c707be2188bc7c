"""The union of a window on arrays gives the facts of the union of its events."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from anabranch.delta.batch import NULL
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.element_versions import KEY_SET, TYPE, ElementShape
from anabranch.delta.element_versions import LABELS as LABELS_PART
from anabranch.delta.graph_window import GraphWindow
from anabranch.delta.kernels.graph_window import KindTable
from anabranch.engine.encoded_graphs import EncodedGraph
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.graph_block import PROPERTIES
from anabranch.model.mapping import Mapping
from anabranch.model.union import unite
from anabranch.model.values import Node, Relationship

LABELS, TYPES, KEYS = ("A", "B"), ("R", "S"), ("x", "y")
# Kinds of nodes: any, those with A, those with A and B; of relationships: any without a direction, those of type S.
NEEDS, SHOWN_NODES = (0, 1, 3), 0b101
NODE_NUMBERS, LINK_NUMBERS = (1, 2, 3), (4, 5)


def _events(draw: random.Random) -> list[Event]:
    """Draw events in which elements change labels, properties, types and ends, and come back after they have left."""
    found = []
    for at in range(draw.randint(5, 60)):
        nodes = {}
        for _ in range(draw.randint(0, 3)):
            node_id = draw.choice((1, 2, "1", "n"))
            labels = tuple(draw.sample(LABELS, draw.randint(0, 2)))
            nodes[node_id] = Node(
                node_id, labels, {key: draw.randrange(2) for key in draw.sample(KEYS, draw.randint(0, 2))}
            )
        links = {}
        for _ in range(draw.randint(0, 2)):
            link_id, ends = draw.choice(("r", "s", 7)), [draw.choice((1, 2, "1", "n", "far")) for _ in range(2)]
            properties = {key: draw.randrange(2) for key in draw.sample(KEYS, draw.randint(0, 2))}
            links[link_id] = Relationship(link_id, draw.choice(TYPES), *ends, properties)
        found.append(Event(at, tuple(nodes.values()), tuple(links.values())))
    return found


def _expected(events: list[Event]) -> Counter[tuple[object, ...]]:
    """Return the facts of a union, with elements in place of their numbers."""
    graph = unite(events)
    found: Counter[tuple[object, ...]] = Counter()

    def content(properties: object) -> tuple[object, ...]:
        return tuple(properties.get(key) for key in KEYS)  # type: ignore[attr-defined]

    for node in graph.nodes.values():
        bits = sum(1 << at for at, label in enumerate(LABELS) if label in node.labels)
        for at, need in enumerate(NEEDS):
            if bits & need == need:
                shows = (node.id, content(node.properties)) if SHOWN_NODES >> at & 1 else None
                found[node.id, NODE_NUMBERS[at], shows] += 1
    for one in graph.relationships.values():
        shows = (one.id, one.type, one.source, one.target, content(one.properties))
        found[one.source, LINK_NUMBERS[0], one.target, one.id, shows] += 1
        if one.source != one.target:
            found[one.target, LINK_NUMBERS[0], one.source, one.id, shows] += 1
        if one.type == "S":
            found[one.source, LINK_NUMBERS[1], one.target, one.id, None] += 1
    return found


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_facts_are_those_of_the_union(seed: int, whole: bool) -> None:
    draw = random.Random(seed)
    dictionary = Dictionary()
    encoded = EncodedGraph(dictionary, Mapping())
    encoded.ask((*KEYS, PROPERTIES) if whole else KEYS)
    types: list[str] = []
    sets_of: list[tuple[str, ...]] | None = [] if whole else None
    keys = (*KEYS, PROPERTIES, KEY_SET) if whole else KEYS
    wholes = (1, len(KEYS), len(KEYS)) if whole else (0, -1, -1)
    window = GraphWindow(len(LABELS), ElementShape(keys, None, sets_of), ElementShape(keys, types), dictionary)
    events = _events(draw)
    facts: Counter[tuple[int, ...]] = Counter()
    first = stop = 0
    while first < len(events):
        before, stop = stop, min(len(events), stop + draw.randint(0, 6))
        first = draw.randint(first, stop) if stop < len(events) else draw.choice((first, len(events)))
        nodes, links = encoded._of_events(events[max(before, first) : stop], max(before, first))
        types += encoded.types[len(types) :]
        if sets_of is not None:
            sets_of += encoded.label_sets[len(sets_of) :]
        sets = [sum(1 << at for at, label in enumerate(LABELS) if label in names) for names in encoded.label_sets]
        of_type = [0b11 if name == "S" else 0b01 for name in encoded.types]
        kinds = KindTable(
            *(np.array(one, np.int64) for one in (sets, NEEDS, of_type, (SHOWN_NODES, 0b01, 0b01))),
            *(np.array(one, np.int64) for one in (NODE_NUMBERS, LINK_NUMBERS, wholes)),
        )
        is_void = draw.random() < 0.2
        removed, added = window.slide(nodes, links, first, kinds, (None, None), is_void)
        for fact in removed.tolist():
            facts[tuple(fact)] -= 1
            assert facts[tuple(fact)] == 0, "a fact left that was not there"
        for fact in added.tolist():
            facts[tuple(fact)] += 1
            assert facts[tuple(fact)] == 1, "a fact came twice"
        facts = +facts
        assert _with_elements(facts, dictionary) == _expected([] if is_void else events[first:stop])
        if whole:
            _check_whole(facts, unite(events[first:stop]), dictionary)
    assert len(window) == 0, "everything has left"


def _check_whole(facts: Counter[tuple[int, ...]], graph: PropertyGraph, dictionary: Dictionary) -> None:
    """Versions are whole elements, down to the order of labels and keys, and their parts can be looked up."""
    shown = [other for _, kind, other, _, _ in facts if kind in NODE_NUMBERS and other]
    for version in shown:
        node = dictionary.decode(version)
        assert isinstance(node, Node)
        same = graph.nodes[node.id]
        assert (node.labels, list(node.properties.items())) == (same.labels, list(same.properties.items()))
        found = [dictionary.parts(np.array([version, NULL]), part) for part in (LABELS_PART, PROPERTIES, "x")]
        values = [[dictionary.decode(one) for one in ids.tolist()] for ids in found if ids is not None]
        assert values == [[list(same.labels), None], [same.properties, None], [same.properties.get("x"), None]]
        assert dictionary.parts(np.array([version]), TYPE) is None
    for _, kind, _, _, version in facts:
        if kind == LINK_NUMBERS[0]:
            one = dictionary.decode(version)
            assert isinstance(one, Relationship)
            twin = graph.relationships[one.id]
            assert (one, list(one.properties)) == (twin, list(twin.properties))
            ids = dictionary.parts(np.array([version]), TYPE)
            assert ids is not None
            assert dictionary.decode(int(ids[0])) == twin.type


def _with_elements(facts: Counter[tuple[int, ...]], dictionary: Dictionary) -> Counter[tuple[object, ...]]:
    """Return facts with elements in place of numbers: a number is that of the element which its versions name."""
    found: Counter[tuple[object, ...]] = Counter()
    names: dict[int, object] = {}
    links: dict[int, object] = {}
    for end, kind, other, identity, content in facts:
        if kind in NODE_NUMBERS and other:
            node = dictionary.decode(other)
            assert isinstance(node, Node)
            assert names.setdefault(end, node.id) == node.id, "two nodes have one number"
        if kind == LINK_NUMBERS[0]:
            one = dictionary.decode(content)
            assert isinstance(one, Relationship)
            assert links.setdefault(identity, one.id) == one.id, "two relationships have one number"
    for end, kind, other, identity, content in facts:
        shows: object = None
        if kind in NODE_NUMBERS:
            if other:
                node = dictionary.decode(other)
                assert isinstance(node, Node)
                shows = (node.id, tuple(node.properties.get(key) for key in KEYS))
            found[names[end], kind, shows] += 1
            continue
        if content:
            one = dictionary.decode(content)
            assert isinstance(one, Relationship)
            properties = tuple(one.properties.get(key) for key in KEYS)
            shows = (one.id, one.type, one.source, one.target, properties)
        found[names[end], kind, names[other], links[identity], shows] += 1
    return found
