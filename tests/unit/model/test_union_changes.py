"""What a window's content says of its changes: added up, they are its graph."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.errors import InternalError
from anabranch.formats.values import cypher_text
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.union import ConflictPolicy, ElementChanges, WindowContent, unite
from anabranch.model.values import ElementId, Node, Relationship

Told = tuple[dict[ElementId, Node], dict[ElementId | None, Relationship]]


def apply(told: Told, changes: ElementChanges) -> None:
    """Change what was told; what a change says was there must have been there."""
    for told_elements, element_changes in zip(told, (changes.nodes, changes.relationships), strict=True):
        ids = [(after or before).id for before, after in element_changes]  # type: ignore[union-attr]
        assert len(ids) == len(set(ids)), "an element is told of twice"
        for element_id, (before, after) in zip(ids, element_changes, strict=True):
            assert told_elements.pop(element_id, None) is before  # type: ignore[attr-defined]
            if after is not None:
                told_elements[element_id] = after  # type: ignore[index]


def look(nodes: dict[ElementId, Node], relationships: dict[ElementId | None, Relationship]) -> list[str]:
    return sorted(
        [f"{node.id}{cypher_text(node)}" for node in nodes.values()]
        + [f"{r.source}-{r.id}{cypher_text(r)}->{r.target}" for r in relationships.values()]
    )


def looks(graph: PropertyGraph) -> list[str]:
    return look(graph.nodes, graph.relationships)


def random_event(random: Random, event_time: int, keys: str, values: range) -> Event:
    def properties() -> dict[str, object]:
        return {key: random.choice(values) for key in random.sample(keys, random.randrange(len(keys) + 1))}

    def some(most: int) -> range:
        return range(random.choice([0, *range(most + 1)]))

    nodes = tuple(
        Node(random.randrange(5), tuple(random.sample("AB", random.randrange(3))), properties()) for _ in some(3)
    )
    relationships = tuple(
        Relationship(random.randrange(4), random.choice("TU"), random.randrange(7), random.randrange(7), properties())
        for _ in some(2)
    )
    return Event(event_time, nodes, relationships)


@pytest.mark.parametrize("policy", ["latest", "strict"])
@pytest.mark.parametrize("seed", range(60))
def test_changes_added_up_are_the_graph_at_every_step(seed: int, policy: ConflictPolicy) -> None:
    random = Random(seed)
    content, now = WindowContent(policy, track=True), 0
    told: Told = ({}, {})
    keys, values = ("xyz", range(3)) if policy == "latest" else ("x", range(1, 3) if seed % 2 else range(1))
    for _ in range(60):
        for _ in range(random.choice([0, 1, 1, 2])):
            now += random.randrange(3)
            content.add(random_event(random, now, keys, values))
        match random.randrange(20):
            case 0:
                content.clear()
            case 1:
                content.evict(now + 1)
            case _:
                content.evict(now - random.randrange(8))
        if random.random() < 0.2:  # the graph may be asked for in between, or not
            content.graph()
        if random.random() < 0.7:
            apply(told, content.changes())
            assert look(*told) == looks(content.graph())
    content.evict(now + 1)
    apply(told, content.changes())
    assert told == ({}, {})
    assert content._told is not None
    assert not content._told.degrees


def test_nothing_is_told_of_what_no_event_touched() -> None:
    content = WindowContent(track=True)
    content.add(Event(1, (Node(1), Node(2)), (Relationship("r", "T", 1, 2),)))
    assert len(content.changes().nodes) == 2
    content.add(Event(2, (Node(3),)))
    assert content.changes() == ElementChanges(((None, Node(3)),), ())
    assert not content.changes()


def test_an_end_without_a_description_comes_and_goes_with_the_last_relationship_at_it() -> None:
    content = WindowContent(track=True)
    content.add(Event(1, (), (Relationship("r", "T", 1, 2), Relationship("loop", "T", 2, 2))))
    content.add(Event(2, (), (Relationship("s", "T", 2, 3),)))
    assert {after.id for _, after in content.changes().nodes if after is not None} == {1, 2, 3}
    content.evict(2)
    assert [(before, after) for before, after in content.changes().nodes] == [(Node(1), None)]
    content.evict(3)
    assert {before.id for before, _ in content.changes().nodes if before is not None} == {2, 3}


def test_a_relationship_that_moves_takes_its_bare_end_along() -> None:
    content = WindowContent(track=True)
    content.add(Event(1, (), (Relationship("r", "T", 1, 2),)))
    content.changes()
    content.add(Event(2, (), (Relationship("r", "T", 1, 3),)))
    changes = content.changes()
    assert sorted(changes.nodes, key=str) == sorted([(Node(2), None), (None, Node(3))], key=str)
    assert [(before and before.target, after and after.target) for before, after in changes.relationships] == [(2, 3)]


def test_a_node_that_loses_its_description_stays_as_a_bare_end() -> None:
    content = WindowContent(track=True)
    content.add(Event(1, (Node(1, ("A",)),)))
    content.add(Event(2, (), (Relationship("r", "T", 1, 2),)))
    content.changes()
    content.evict(2)
    ((before, after),) = content.changes().nodes
    assert (before.labels, after.labels) == (("A",), ())  # type: ignore[union-attr]


def test_a_strict_union_that_disagrees_takes_everything_out_and_back_in() -> None:
    content = WindowContent("strict", track=True)
    content.add(Event(1, (Node(1, (), {"x": 1}),)))
    content.add(Event(2, (Node(2),), (Relationship("r", "T", 2, 5),)))
    assert len(content.changes().nodes) == 3
    content.add(Event(3, (Node(1, (), {"x": 2}),)))
    gone = content.changes()
    assert {before.id for before, after in gone.nodes if before is not None and after is None} == {1, 2, 5}
    assert len(gone.relationships) == 1
    content.add(Event(4, (Node(7),)))
    assert not content.changes()
    content.evict(2)
    back = content.changes()
    assert {after.id for before, after in back.nodes if before is None and after is not None} == {1, 2, 5, 7}
    assert len(back.relationships) == 1


def test_a_whole_graph_enters_as_changes_from_nothing() -> None:
    graph = unite([Event(1, (Node(1, ("A",)),), (Relationship("r", "T", 1, 2),))])
    told: Told = ({}, {})
    apply(told, ElementChanges.entering(graph))
    assert look(*told) == looks(graph)


def test_a_content_that_does_not_track_says_so() -> None:
    with pytest.raises(InternalError):
        WindowContent().changes()


@pytest.mark.parametrize("seed", range(20))
def test_a_hub_is_what_its_carriers_say_however_long_it_has_been_sliding(seed: int) -> None:
    random = Random(seed)
    content, events = WindowContent(), []
    for now in range(80):
        labels = tuple(random.sample("ABC", random.randrange(3)))
        node = Node(1, labels, dict.fromkeys(random.sample("wxyz", random.randrange(4)), now))
        events.append(Event(now, (node,)))
        content.add(events[-1])
        first = now - random.randrange(12)
        content.evict(first)
        events = [event for event in events if event.event_time >= first]
        if random.random() < 0.6:
            expected = unite(events)
            assert looks(content.graph()) == looks(expected)
            assert list(content.graph().nodes[1].properties) == list(expected.nodes[1].properties)
