"""Trails on changes: whatever comes and goes, they are those that the plain search finds in the graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from anabranch.delta.dictionary import Dictionary
from anabranch.errors import InternalError
from anabranch.model.compare import content_key
from anabranch.model.graph import PropertyGraph
from anabranch.model.union import ElementChanges
from anabranch.model.values import ElementId, Node, Relationship
from anabranch.planner.leaves.trails import TrailMaker
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.planner.patterns.kinds import TrailKind
from anabranch.snapshot import Context
from anabranch.snapshot.index import Adjacency
from anabranch.snapshot.paths import trails

KIND = 7
LENGTHS: tuple[tuple[int, int | None], ...] = ((1, None), (1, 2), (0, None), (0, 2), (2, 3), (3, None), (0, 0), (2, 1))
Fact = tuple[int, int, int, int, int]


def kind_of(**given: Any) -> TrailKind:
    return TrailKind(
        **{
            "number": KIND,
            "types": (),
            "direction": "out",
            "minimum": 1,
            "maximum": None,
            "shown": True,
            "between": False,
            **given,
        }
    )


def as_number(node_id: ElementId) -> int:
    assert isinstance(node_id, int)
    return node_id


def _no_graph(source: object) -> PropertyGraph:
    raise InternalError("no graph")


class Kept:
    """A trail maker, the graph that it has been told of, and the facts that it has given. Node kind 1 is label `A`."""

    def __init__(self, kind: TrailKind, most: int | None = None, odd: bool = True) -> None:
        self.kind = kind
        self.dictionary = Dictionary()
        self.graph = PropertyGraph((), ())
        self.facts: set[Fact] = set()
        self.odd = odd  # whether relationships whose x is 1 are allowed
        self.maker = TrailMaker(kind, self.dictionary, as_number, self._is_of, self._allows, most=most)

    def _is_of(self, node_id: ElementId, kind: int) -> bool:
        assert kind == 1
        return "A" in self.graph.nodes[node_id].labels

    def _allows(self, relationship: Relationship) -> bool:
        return self.odd or relationship.properties.get("x") != 1

    def become(self, graph: PropertyGraph, mentioned: Random | None = None) -> tuple[set[Fact], set[Fact]]:
        before, self.graph = self.graph, graph
        removed, added = self.maker.facts(changes_between(before, graph, mentioned))
        gone, new = set(removed), set(added)
        assert (len(gone), len(new)) == (len(removed), len(added)), "each trail goes and comes once"
        assert gone <= self.facts
        assert not gone & new
        assert not self.facts & new
        self.facts = self.facts - gone | new
        return gone, new

    def found(self) -> Counter[Any]:
        """Where trails begin and end, what they pass, and the nodes between: each as far as it is shown."""
        decode = self.dictionary.decode
        assert all(fact[1] == KIND for fact in self.facts)
        return Counter(
            (
                start,
                end,
                content_key(decode(trail)) if self.kind.shown else None,
                content_key(decode(between)) if self.kind.between else None,
            )
            for start, _, end, trail, between in self.facts
        )

    def plain(self) -> Counter[Any]:
        kind, graph = self.kind, self.graph
        adjacency = Adjacency(graph, kind.types, kind.direction, ())
        context = Context(graph=_no_graph)
        found: Counter[Any] = Counter()
        for start in graph.nodes.values():
            ways = trails(adjacency, start, kind.minimum, kind.maximum, set(), self._allows, context)
            for trail, end in ways:
                if (kind.starts and "A" not in start.labels) or (kind.ends and "A" not in end.labels):
                    continue
                passed, between = start.id, []
                for one in trail[:-1]:
                    passed = one.other_end(passed)
                    between.append(graph.nodes[passed])
                shown = content_key(list(trail)) if kind.shown else None
                found[start.id, end.id, shown, content_key(between) if kind.between else None] += 1
        return found


def changes_between(before: PropertyGraph, after: PropertyGraph, mentioned: Random | None) -> ElementChanges:
    """What became of the elements; some that stayed as they were may be mentioned too."""

    def changes(old: dict[Any, Any], new: dict[Any, Any]) -> tuple[Any, ...]:
        pairs = [(old.get(key), new.get(key)) for key in {**old, **new}]
        told = [
            (was, now)
            for was, now in pairs
            if was is None
            or now is None
            or content_key(was) != content_key(now)
            or (mentioned is not None and mentioned.random() < 0.2)
        ]
        if mentioned is not None:
            mentioned.shuffle(told)
        return tuple(told)

    return ElementChanges(
        changes(dict(before.nodes), dict(after.nodes)),
        changes(dict(before.relationships), dict(after.relationships)),
    )


def relationship(number: int, source: int, target: int, type_: str = "T", **properties: Any) -> Relationship:
    return Relationship(number, type_, source, target, properties)


def chain(length: int) -> PropertyGraph:
    return PropertyGraph((), [relationship(one, one, one + 1) for one in range(length)])


# --- drawn at random --------------------------------------------------------------------------------------------------


def random_kind(random: Random) -> TrailKind:
    minimum, maximum = random.choice(LENGTHS)
    return kind_of(
        types=random.choice([(), ("S",), ("S", "T")]),
        direction=random.choice(["out", "in", "both"]),
        minimum=minimum,
        maximum=maximum,
        shown=random.random() < 0.7,
        between=random.random() < 0.5,
        starts=random.choice([None, None, 1]),
        ends=random.choice([None, None, 1]),
    )


def random_graph(random: Random, before: PropertyGraph) -> PropertyGraph:
    """Some elements go, some come, some change: content, type, labels, ends."""
    nodes = {node.id: node for node in before.nodes.values() if random.random() < 0.9}
    kept = [one for one in before.relationships.values() if random.random() < 0.8]
    for number in range(6):
        if random.random() < 0.3:
            labels = tuple(random.sample("AB", random.randrange(3)))
            nodes[number] = Node(number, labels, {"x": random.randrange(2)})
    relationships: dict[Any, Relationship] = {}
    for one in kept:
        match random.randrange(8):
            case 0:
                one = replace(one, properties={"x": random.randrange(3)})
            case 1:
                one = replace(one, type=random.choice("STU"))
            case 2:
                one = replace(one, target=random.randrange(6))
        relationships[one.id] = one
    while len(relationships) < 7 and random.random() < 0.7:
        number = random.randrange(12)
        new = relationship(
            number, random.randrange(6), random.randrange(6), random.choice("STU"), x=random.randrange(3)
        )
        relationships.setdefault(number, new)
    return PropertyGraph(nodes.values(), relationships.values())


@pytest.mark.parametrize("seed", range(300))
def test_after_any_changes_the_trails_are_those_of_the_graph(seed: int) -> None:
    random = Random(seed)
    kept = Kept(random_kind(random), odd=random.random() < 0.7)
    graph = kept.graph
    for _ in range(12):
        for _ in range(random.choice([1, 1, 1, 3])):
            graph = random_graph(random, graph)
        kept.become(graph, random)
        assert kept.found() == kept.plain()
    kept.become(PropertyGraph((), ()))
    assert not kept.facts
    assert not len(kept.maker), "an empty house"
    assert not kept.maker.nbytes


# --- one by one -------------------------------------------------------------------------------------------------------


def test_a_trail_of_several_new_relationships_comes_once() -> None:
    kept = Kept(kind_of(shown=False))
    _, added = kept.become(chain(5))
    assert len(added) == 5 + 4 + 3 + 2 + 1


def test_undirected_trails_are_walked_both_ways_and_a_loop_once() -> None:
    kept = Kept(kind_of(direction="both"))
    kept.become(PropertyGraph((), [relationship(1, 1, 2), relationship(2, 2, 2)]))
    assert sorted(fact[0:3:2] for fact in kept.facts) == [(1, 2), (1, 2), (2, 1), (2, 1), (2, 2)]


def test_a_content_changes_the_trails_that_pass_it_and_no_others() -> None:
    kept = Kept(kind_of(maximum=2))
    kept.become(PropertyGraph((), [relationship(1, 1, 2), relationship(2, 2, 3), relationship(3, 3, 4)]))
    removed, added = kept.become(
        PropertyGraph((), [relationship(1, 1, 2), relationship(2, 2, 3), relationship(3, 3, 4, x=1)])
    )
    assert {fact[0:3:2] for fact in removed} == {fact[0:3:2] for fact in added} == {(3, 4), (2, 4)}


def test_a_content_that_nobody_looks_at_changes_no_trail() -> None:
    kept = Kept(kind_of(shown=False))
    kept.become(PropertyGraph([Node(2)], [relationship(1, 1, 2), relationship(2, 2, 3)]))
    assert kept.become(PropertyGraph([Node(2, ("B",))], [relationship(1, 1, 2, x=1), relationship(2, 2, 3)])) == (
        set(),
        set(),
    )


def test_a_node_on_the_way_changes_the_trails_that_show_it() -> None:
    kept = Kept(kind_of(between=True, shown=False))
    kept.become(chain(2))
    removed, added = kept.become(PropertyGraph([Node(1, ("B",))], chain(2).relationships.values()))
    assert [fact[0:4] for fact in removed] == [fact[0:4] for fact in added]
    assert {fact[0:3:2] for fact in removed} == {(0, 2)}


def test_only_trails_from_and_to_the_nodes_asked_for_are_kept() -> None:
    kept = Kept(kind_of(starts=1, ends=1))
    nodes = [Node(0, ("A",)), Node(30, ("A",))]
    kept.become(PropertyGraph(nodes, chain(40).relationships.values()))
    assert {fact[0:3:2] for fact in kept.facts} == {(0, 30)}
    assert kept.maker.living == 1


def test_a_trail_may_be_longer_than_calls_can_nest() -> None:
    kept = Kept(kind_of(starts=1, ends=1, shown=False))
    nodes = [Node(0, ("A",)), Node(3000, ("A",))]
    kept.become(PropertyGraph((), chain(3000).relationships.values()))
    kept.become(PropertyGraph(nodes, chain(3000).relationships.values()))
    assert {fact[0:3:2] for fact in kept.facts} == {(0, 3000)}


# --- too many ---------------------------------------------------------------------------------------------------------


def test_more_trails_than_may_live_are_refused() -> None:
    Kept(kind_of(), most=55).become(chain(10))
    with pytest.raises(TooManyTrails, match="more than 54 trails"):
        Kept(kind_of(), most=54).become(chain(10))


def test_trails_that_have_gone_do_not_count() -> None:
    kept = Kept(kind_of(), most=55)
    for _ in range(3):
        kept.become(chain(10))
        kept.become(PropertyGraph((), ()))


def test_empty_trails_do_not_count() -> None:
    kept = Kept(kind_of(minimum=0, maximum=1), most=10)
    kept.become(PropertyGraph([Node(one) for one in range(100, 200)], chain(10).relationships.values()))
    assert len(kept.facts) == 111 + 10


def test_a_search_that_finds_nothing_ends_too() -> None:
    crowd = [relationship(10 * one + other, one, other) for one in range(10) for other in range(10)]
    with pytest.raises(TooManyTrails):
        Kept(kind_of(minimum=200), most=100).become(PropertyGraph((), crowd))
