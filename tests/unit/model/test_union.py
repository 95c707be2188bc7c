"""The union of events: both conflict policies, the life of elements, and sliding equal to building anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.formats.values import cypher_text
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.union import ConflictPolicy, WindowContent, unite
from anabranch.model.values import Node, Relationship
from anabranch.testing.oracle import union


def look(graph: PropertyGraph) -> list[str]:
    nodes = [f"{node.id}{cypher_text(node)}" for node in graph.nodes.values()]
    relationships = [f"{r.source}-{r.id}{cypher_text(r)}->{r.target}" for r in graph.relationships.values()]
    return nodes + relationships


def test_the_newest_value_of_each_key_wins_and_labels_unite() -> None:
    graph = unite(
        [
            Event(1, (Node(1, ("A",), {"x": 1, "y": 1}),)),
            Event(2, (Node(1, ("B",), {"x": 2, "z": 2}),)),
        ]
    )
    assert look(graph) == ["1(:B:A {x: 2, z: 2, y: 1})"]


def test_a_relationship_takes_its_newest_type_and_ends() -> None:
    graph = unite(
        [
            Event(1, (), (Relationship("r", "OLD", 1, 2, {"a": 1}),)),
            Event(2, (), (Relationship("r", "NEW", 1, 3, {"b": 2}),)),
        ]
    )
    assert graph.relationships["r"].target == 3
    assert look(graph)[-1] == "1-r[:NEW {b: 2, a: 1}]->3"
    assert set(graph.nodes) == {1, 3}


def test_an_element_lives_until_the_last_event_that_carried_it_leaves() -> None:
    content = WindowContent()
    for event_time in (1, 2, 3):
        content.add(Event(event_time, (Node(1, (), {"at": event_time}),)))
    content.evict(3)
    assert look(content.graph()) == ["1({at: 3})"]
    content.evict(4)
    assert look(content.graph()) == []
    assert len(content) == 0


def test_a_value_that_leaves_with_its_event_is_gone() -> None:
    content = WindowContent()
    content.add(Event(1, (Node(1, ("Old",), {"old": 1}),)))
    content.add(Event(2, (Node(1, ("New",), {"new": 2}),)))
    assert look(content.graph()) == ["1(:New:Old {new: 2, old: 1})"]
    content.evict(2)
    assert look(content.graph()) == ["1(:New {new: 2})"]


def test_of_equal_instants_the_later_arrival_is_newer() -> None:
    graph = unite([Event(1, (Node(1, (), {"x": "first"}),)), Event(1, (Node(1, (), {"x": "second"}),))])
    assert look(graph) == ["1({x: 'second'})"]


def test_an_end_that_no_node_describes_is_a_bare_node() -> None:
    graph = unite([Event(1, (), (Relationship("r", "T", 1, 2),))])
    assert look(graph) == ["1()", "2()", "1-r[:T]->2"]


def test_the_graph_is_not_built_again_while_nothing_changes() -> None:
    content = WindowContent()
    content.add(Event(5, (Node(1),)))
    graph = content.graph()
    content.evict(5)
    assert content.graph() is graph
    content.evict(6)
    assert content.graph() is not graph


def test_elements_that_no_change_touched_are_the_same_objects() -> None:
    content = WindowContent()
    content.add(Event(1, (Node(1, ("A",)),)))
    content.add(Event(2, (Node(2, ("A",), {"x": 1}),)))
    content.add(Event(3, (Node(2, ("B",), {"y": 1}),)))
    merged = content.graph().nodes[2]
    content.evict(2)
    content.add(Event(4, (Node(3),)))
    assert content.graph().nodes[2] is merged


def strict_conflict(*elements: Node | Relationship) -> str:
    content = WindowContent("strict")
    for event_time, element in enumerate(elements):
        if isinstance(element, Node):
            content.add(Event(event_time, (element,)))
        else:
            content.add(Event(event_time, (), (element,)))
    conflict = content.conflict()
    assert (conflict is not None) == (not content.graph().nodes)
    return "" if conflict is None else str(conflict)


def test_strict_names_the_element_and_the_property() -> None:
    assert strict_conflict(Node(7, (), {"a": 1, "b": 1}), Node(7, (), {"a": 1, "b": 2})) == (
        "node 7: events in the window disagree about its property `b` (1, then 2); the union is empty"
    )
    assert "property `b`" in strict_conflict(Node(7, (), {"a": 1}), Node(7, (), {"a": 1, "b": 2}))
    assert "labels" in strict_conflict(Node(7, ("A",)), Node(7, ("B",)))
    assert "its type" in strict_conflict(Relationship("r", "A", 1, 2), Relationship("r", "B", 1, 2))
    assert "its ends" in strict_conflict(Relationship("r", "A", 1, 2), Relationship("r", "A", 2, 1))


def test_strict_accepts_what_agrees() -> None:
    assert strict_conflict(Node(7, ("A", "B"), {"a": 1, "b": 2}), Node(7, ("B", "A"), {"b": 2, "a": 1})) == ""
    # A bare end says nothing about the node.
    assert strict_conflict(Node(1, ("A",), {"a": 1}), Relationship("r", "T", 1, 2)) == ""


def test_a_strict_union_is_whole_again_when_the_disagreement_has_left() -> None:
    content = WindowContent("strict")
    content.add(Event(1, (Node(1, (), {"x": 1}),)))
    content.add(Event(2, (Node(1, (), {"x": 2}),)))
    content.add(Event(3, (Node(2),)))
    assert look(content.graph()) == []
    content.evict(2)
    assert look(content.graph()) == ["1({x: 2})", "2()"]
    assert content.conflict() is None


_properties = st.dictionaries(st.sampled_from("xyz"), st.sampled_from([1, 2, "a", [1]]), max_size=3)
_nodes = st.builds(
    Node, st.integers(0, 3), st.lists(st.sampled_from("AB"), unique=True, max_size=2).map(tuple), _properties
)
_relationships = st.builds(
    Relationship, st.integers(0, 2), st.sampled_from("TU"), st.integers(0, 4), st.integers(0, 4), _properties
)
_contents = st.tuples(st.lists(_nodes, max_size=3).map(tuple), st.lists(_relationships, max_size=2).map(tuple))


@given(
    st.lists(st.tuples(st.integers(0, 3), _contents, st.integers(1, 9)), max_size=12),
    st.sampled_from(["latest", "strict"]),
)
def test_sliding_equals_building_anew(
    steps: list[tuple[int, tuple[tuple[Node, ...], tuple[Relationship, ...]], int]], policy: ConflictPolicy
) -> None:
    content = WindowContent(policy)
    events: list[Event] = []
    now = 0
    for gap, (nodes, relationships), width in steps:
        now += gap
        events.append(Event(now, nodes, relationships))
        content.add(events[-1])
        content.evict(now - width)
        events = [event for event in events if event.event_time >= now - width]
        assert look(content.graph()) == look(union(events, policy))


@pytest.mark.parametrize("conflicts", ["latest", "strict"])
def test_the_order_of_properties_is_that_of_the_newest_event_whatever_the_policy(conflicts: ConflictPolicy) -> None:
    first, second = (Event(at, (Node(1, ("A",), keys),)) for at, keys in ((1, {"x": 2, "y": 1}), (2, {"y": 1, "x": 2})))
    content = WindowContent(conflicts)
    content.add(first)
    assert list(content.graph().nodes[1].properties) == ["x", "y"]
    content.add(second)
    assert list(content.graph().nodes[1].properties) == ["y", "x"]
    content.evict(2)
    assert list(content.graph().nodes[1].properties) == ["y", "x"]


def test_a_disagreement_that_has_left_is_not_reported_in_place_of_one_that_is_there() -> None:
    content = WindowContent("strict")
    content.add(Event(1, (Node("gone", (), {"x": 1}),)))
    content.add(Event(2, (Node("gone", (), {"x": 2}),)))
    content.add(Event(3, (Node("here", (), {"y": 1}),)))
    content.add(Event(4, (Node("here", (), {"y": 2}),)))
    content.evict(2)
    conflict = content.conflict()
    assert conflict is not None
    assert (conflict.element_id, conflict.aspect) == ("here", "y")
