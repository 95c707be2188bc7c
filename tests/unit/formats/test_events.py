"""Events as JSON objects: what is read, what is refused, and the reason as the user sees it."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest

from anabranch.errors import MalformedEventError
from anabranch.formats.events import event_from_dict, event_to_dict, events_from, graph_from
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.instants import parse_instant
from anabranch.model.points import Point
from anabranch.model.temporal import parse_date, parse_duration
from anabranch.model.values import Node, Relationship

AT = "2022-10-14T14:45:00Z"


def test_an_event_is_read_with_all_its_parts() -> None:
    event = event_from_dict(
        {
            "at": AT,
            "nodes": [{"id": 5, "labels": ["Bike", "EBike"], "properties": {"id": 5}}, {"id": "s"}],
            "relationships": [{"id": "r1", "type": "rentedAt", "from": 5, "to": "s", "properties": {"user": 1234}}],
        }
    )
    assert event.event_time == parse_instant(AT)
    bike, station = event.nodes
    assert (bike.id, bike.labels, bike.properties) == (5, ("Bike", "EBike"), {"id": 5})
    assert (station.id, station.labels, station.properties) == ("s", (), {})
    (rental,) = event.relationships
    assert (rental.id, rental.type, rental.source, rental.target) == ("r1", "rentedAt", 5, "s")
    assert rental.properties == {"user": 1234}


@pytest.mark.parametrize(
    "at", [AT, 1665758700000, 1665758700000.0, "2022-10-14T16:45+02:00", datetime(2022, 10, 14, 14, 45)]
)
def test_an_instant_may_be_text_or_epoch_milliseconds(at: Any) -> None:
    assert event_from_dict({"at": at}).event_time == parse_instant(AT)


def test_milliseconds_may_have_a_fraction() -> None:
    assert event_from_dict({"at": 0.001}).event_time == 1


@pytest.mark.parametrize(("start", "end"), [("from", "to"), ("start", "end"), ("source", "target")])
def test_edges_and_other_names_of_ends_are_read(start: str, end: str) -> None:
    event = event_from_dict({"at": AT, "edges": [{"type": "T", start: 1, end: 2}]})
    assert (event.relationships[0].source, event.relationships[0].target) == (1, 2)
    assert event.relationships[0].id is None


def test_one_label_may_be_a_text_and_null_properties_are_absent() -> None:
    event = event_from_dict({"at": AT, "nodes": [{"id": 1, "label": "A", "properties": {"x": None, "y": 1}}]})
    assert event.nodes[0].labels == ("A",)
    assert event.nodes[0].properties == {"y": 1}


def test_fields_of_the_users_own_are_ignored() -> None:
    assert event_from_dict({"at": AT, "source": "station 3", "nodes": []}) == Event(parse_instant(AT))


def test_typed_values_are_read() -> None:
    properties = {
        "day": {"$date": "2015-07-21"},
        "place": {"$point": {"x": 1, "y": 2}},
        "list": [{"$duration": "PT1H"}, 1],
        "map": {"inner": {"$date": "2015-07-21"}},
    }
    read = event_from_dict({"at": AT, "nodes": [{"id": 1, "properties": properties}]}).nodes[0].properties
    assert read == {
        "day": parse_date("2015-07-21"),
        "place": Point("cartesian", (1.0, 2.0)),
        "list": [parse_duration("PT1H"), 1],
        "map": {"inner": parse_date("2015-07-21")},
    }


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "an event is an object, not a list"),
        ({}, "at: missing"),
        ({"at": None}, "at: expected an ISO 8601 text or epoch milliseconds, got null"),
        ({"at": True}, "at: expected an ISO 8601 text or epoch milliseconds, got true or false"),
        ({"at": 1e300}, "at: 1e+300 milliseconds is no instant"),
        ({"at": AT, "relationship": []}, "relationship: unknown field; did you mean `relationships`?"),
        ({"at": AT, "nodes": {}}, "nodes: expected a list, got an object"),
        ({"at": AT, "nodes": [7]}, "nodes[0]: a node is an object, not a number"),
        ({"at": AT, "nodes": [{}]}, "nodes[0].id: missing"),
        ({"at": AT, "nodes": [{"id": 1.5}]}, "nodes[0].id: an id is a whole number or a text, not a number"),
        ({"at": AT, "nodes": [{"id": True}]}, "nodes[0].id: an id is a whole number or a text, not true or false"),
        ({"at": AT, "nodes": [{"id": 2**63}]}, "nodes[0].id: 9223372036854775808 does not fit into 64 bits"),
        ({"at": AT, "nodes": [{"id": 1, "labels": "A"}]}, "nodes[0].labels: labels are a list of texts"),
        ({"at": AT, "nodes": [{"id": 1, "labels": ""}]}, "nodes[0].labels: labels are a list of texts"),
        (
            {"at": AT, "nodes": [{"id": 1, "properties": []}]},
            "nodes[0].properties: properties are an object, not a list",
        ),
        (
            {"at": AT, "relationships": [{"type": "R", "from": 1, "to": 1, "properties": 0}]},
            "relationships[0].properties: properties are an object, not a number",
        ),
        (
            {"at": AT, "nodes": [{"id": 1, "properties": [1]}]},
            "nodes[0].properties: properties are an object, not a list",
        ),
        (
            {"at": AT, "nodes": [{"id": 1, "properties": {"x": [1, 2**70]}}]},
            "nodes[0].properties.x[1]: 1180591620717411303424 does not fit into 64 bits",
        ),
        (
            {"at": AT, "nodes": [{"id": 1, "properties": {"x": math.nan}}]},
            "nodes[0].properties.x: nan is no number that JSON knows",
        ),
        (
            {"at": AT, "nodes": [{"id": 1, "properties": {"x": {"$day": "1"}}}]},
            "nodes[0].properties.x: unknown typed value `$day`; there are $date, $time, $localtime, $datetime, "
            "$localdatetime, $duration, $point, $float, $map",
        ),
        (
            {"at": AT, "nodes": [{"id": 1}, {"id": 1, "labels": ["A"]}]},
            "nodes[1]: id 1 is also nodes[0], with other content",
        ),
        ({"at": AT, "edges": [], "relationships": []}, "edges: given besides `relationships`; use one of the two"),
        ({"at": AT, "edges": [{"type": "T", "from": 1}]}, "edges[0].to: missing"),
        ({"at": AT, "relationships": [{"from": 1, "to": 2}]}, "relationships[0].type: missing"),
        (
            {"at": AT, "relationships": [{"type": 3, "from": 1, "to": 2}]},
            "relationships[0].type: expected a text, got a number",
        ),
    ],
)
def test_what_is_refused_is_refused_with_its_place(data: Any, reason: str) -> None:
    with pytest.raises(MalformedEventError) as caught:
        event_from_dict(data)
    assert caught.value.reason == reason


def test_a_wrong_instant_says_what_is_wrong() -> None:
    with pytest.raises(MalformedEventError, match=r"at: .*2022-13-14.*month"):
        event_from_dict({"at": "2022-13-14T00:00"})


def test_the_same_node_twice_in_one_event_is_no_disagreement() -> None:
    assert len(event_from_dict({"at": AT, "nodes": [{"id": 1}, {"id": 1}]}).nodes) == 2


def test_what_is_written_is_read_again() -> None:
    event = Event(
        parse_instant(AT) + 1,
        (Node(1, ("A",), {"d": parse_date("2015-07-21"), "f": 1.0, "l": [1, "x"], "p": Point("wgs-84", (1.0, 2.0))}),),
        (Relationship(None, "T", 1, "b", {"x": True}), Relationship("r", "T", 1, "b")),
    )
    again = event_from_dict(event_to_dict(event))
    assert event_to_dict(again) == event_to_dict(event)
    assert again.nodes[0].properties == event.nodes[0].properties
    assert "id" not in event_to_dict(event)["relationships"][0]


def test_events_are_many_or_one() -> None:
    event = Event(1)
    assert events_from(event) == [event]
    assert events_from({"at": 0}) == [Event(0)]
    assert events_from([event, {"at": 0}]) == [event, Event(0)]


def test_a_graph_is_made_from_what_a_user_has() -> None:
    graph = PropertyGraph([Node(1)])
    assert graph_from(graph) is graph
    from_object = graph_from({"nodes": [{"id": 1}], "edges": [{"type": "T", "from": 1, "to": 2}] * 2})
    assert len(from_object.relationships) == 2
    assert set(from_object.nodes) == {1, 2}
    from_events = graph_from(
        [{"at": 2, "nodes": [{"id": 1, "label": "New"}]}, {"at": 1, "nodes": [{"id": 1, "label": "Old"}]}]
    )
    assert from_events.nodes[1].labels == ("New", "Old")


@pytest.mark.parametrize("name", ["date", "data", "note", "lat", "path", "rate", "source", "id"])
def test_fields_of_the_users_own_are_left_alone(name: str) -> None:
    assert event_from_dict({"at": AT, "nodes": [], name: 1}) == event_from_dict({"at": AT})


def test_a_map_with_a_key_that_looks_like_a_tag_survives_writing_and_reading() -> None:
    event = Event(0, (Node(1, (), {"m": {"$date": "no date", "x": [1, {"$y": 2}]}}),))
    assert event_from_dict(event_to_dict(event)).nodes[0].properties == event.nodes[0].properties
