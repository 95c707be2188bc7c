"""LOAD STREAM: records become events (Listing 4 of the Seraph paper)."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.engine.ingestion import RecordMapping
from anabranch.errors import MalformedEventError
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship
from anabranch.syntax.languages import script

LISTING_4 = """
LOAD STREAM FROM 'kafka:///bikes.stream' AS event
MERGE (b:Bike {id: event.bike_id})
MERGE (s:Station {id: event.location_id})
CREATE (b)-[:rentedAt {val_time: event.time,
          user_id: event.uid}]->(s)
"""
RENTAL = {"bike_id": 5, "location_id": 1, "time": "2022-10-14T14:40Z", "uid": 1234}


def mapping(text: str) -> RecordMapping:
    text = text if "LOAD STREAM" in text else f"LOAD STREAM FROM 'records' AS event {text}"
    return RecordMapping(script(text).ingestions[0])


def event(clauses: str, record: dict[str, Any], sequence: int = 1) -> Event:
    found = mapping(clauses).event({"at": 0, **record}, sequence)
    assert found is not None
    return found


def content(found: Event) -> tuple[list[Any], list[Any]]:
    nodes = [(node.id, node.labels, dict(node.properties)) for node in found.nodes]
    edges = [(one.type, one.source, one.target, dict(one.properties)) for one in found.relationships]
    return nodes, edges


def test_listing_4_as_printed_makes_a_rental_of_a_record() -> None:
    found = mapping(LISTING_4).event(RENTAL, 1)
    assert found is not None
    assert found.event_time == parse_instant("2022-10-14T14:40Z")
    assert content(found) == (
        [("Bike(id: 5)", ("Bike",), {"id": 5}), ("Station(id: 1)", ("Station",), {"id": 1})],
        [("rentedAt", "Bike(id: 5)", "Station(id: 1)", {"val_time": "2022-10-14T14:40Z", "user_id": 1234})],
    )


def test_a_merged_node_is_the_same_in_every_event_and_a_created_relationship_is_new() -> None:
    load = mapping(LISTING_4)
    first, second = load.event(RENTAL, 1), load.event(RENTAL, 2)
    assert first is not None
    assert second is not None
    assert [node.id for node in first.nodes] == [node.id for node in second.nodes]
    assert first.relationships[0].id != second.relationships[0].id


def test_the_same_record_at_the_same_place_makes_the_same_event() -> None:
    assert mapping(LISTING_4).event(RENTAL, 7) == mapping(LISTING_4).event(RENTAL, 7)


def test_the_order_in_which_keys_are_written_does_not_change_a_node() -> None:
    one = event("MERGE (n:A {x: event.x, y: event.y})", {"x": 1, "y": 2})
    other = event("MERGE (n:A {y: event.y, x: event.x})", {"x": 1, "y": 2})
    assert one.nodes == other.nodes


def test_a_text_and_a_number_are_different_keys() -> None:
    one, other = (event("MERGE (n:A {k: event.k})", {"k": key}) for key in (1, "1"))
    assert one.nodes[0].id != other.nodes[0].id


def test_a_merged_relationship_is_known_by_its_ends_type_and_keys() -> None:
    clauses = "MERGE (a:A {k: 1}) MERGE (b:B {k: 2}) MERGE (a)-[:T {w: event.w}]->(b)"
    first, again, other = (event(clauses, {"w": weight}, number) for number, weight in enumerate((1, 1, 2)))
    assert first.relationships == again.relationships
    assert first.relationships != other.relationships


def test_unwind_with_and_where_shape_the_rows() -> None:
    clauses = "UNWIND event.items AS item WITH event, item WHERE item.n > 1 MERGE (x:X {n: item.n})"
    found = event(clauses, {"items": [{"n": 1}, {"n": 2}, {"n": 3}]})
    assert [node.properties["n"] for node in found.nodes] == [2, 3]


def test_a_record_whose_rows_are_all_filtered_writes_no_event() -> None:
    assert mapping("WITH event WHERE event.ok CREATE (n)").event({"at": 0, "ok": False}, 1) is None


def test_set_changes_properties_labels_and_whole_maps() -> None:
    clauses = "CREATE (a:A)-[r:T]->(b:B {x: 1}) SET a.name = event.name, b += {y: 2}, a:New, r = {w: 3}, b.x = null"
    assert content(event(clauses, {"name": "ana"})) == (
        [("~1.1", ("A", "New"), {"name": "ana"}), ("~1.2", ("B",), {"y": 2})],
        [("T", "~1.1", "~1.2", {"w": 3})],
    )


def test_on_create_holds_for_the_first_mention_in_an_event_and_on_match_for_the_next() -> None:
    clauses = "UNWIND event.ns AS n MERGE (a:A) ON CREATE SET a.first = n ON MATCH SET a.last = n"
    assert event(clauses, {"ns": [1, 2, 3]}).nodes[0].properties == {"first": 1, "last": 3}


def test_an_arrow_to_the_left_swaps_the_ends() -> None:
    (edge,) = event("CREATE (a:A)<-[:T]-(b:B)", {}).relationships
    assert (edge.source, edge.target) == ("~1.2", "~1.1")


@pytest.mark.parametrize(
    ("clause", "record", "instant"),
    [
        ("AT event.t", {"t": 1000}, 1_000_000),
        ("AT event.t", {"t": "1970-01-01T00:00:01Z"}, 1_000_000),
        ("AT datetime({epochSeconds: event.s})", {"s": 1}, 1_000_000),
        ("", {"time": "1970-01-01T00:00:01Z"}, 1_000_000),
        ("", {"timestamp": 1000, "other": 5}, 1_000_000),
        ("", {"at": 1000, "time": 2000}, 1_000_000),
    ],
)
def test_an_event_happens_when_its_record_says(clause: str, record: dict[str, Any], instant: int) -> None:
    load = mapping(f"LOAD STREAM FROM 'records' AS event {clause} CREATE (n)")
    found = load.event(record, 1)
    assert found is not None
    assert found.event_time == instant


@pytest.mark.parametrize(
    ("clauses", "record", "reason"),
    [
        ("MERGE (n:A {k: event.k})", {}, "MERGE needs a value for `k` of A, and it is null"),
        ("CREATE (n {x: 1 / event.zero})", {"zero": 0}, "division by zero"),
        ("CREATE (n) SET n += event.x", {"x": 1}, "SET n needs a map"),
    ],
)
def test_a_record_that_cannot_be_mapped_is_malformed_with_a_reason(
    clauses: str, record: dict[str, Any], reason: str
) -> None:
    with pytest.raises(MalformedEventError, match=reason):
        mapping(clauses).event({"at": 0, **record}, 1)


def test_a_record_without_an_instant_is_malformed() -> None:
    with pytest.raises(MalformedEventError, match="no field says when this happened"):
        mapping("CREATE (n)").event({"x": 1}, 1)


def test_a_record_that_is_no_object_is_malformed() -> None:
    with pytest.raises(MalformedEventError, match="an object with named fields"):
        mapping("CREATE (n)").event([1, 2], 1)  # type: ignore[arg-type]


def test_nodes_of_rows_can_be_written_again_without_losing_what_they_had() -> None:
    node = Node("x", ("A",), {"k": 1})
    found = mapping("UNWIND event.nodes AS n CREATE (n)-[:T]->(m:B)").event_of({"nodes": [node]}, 0, 1)
    assert found is not None
    assert found.nodes[0].properties == {"k": 1}
    assert found.relationships == (Relationship("~1.2", "T", "x", "~1.1"),)
