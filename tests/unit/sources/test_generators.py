"""Made-up streams: the same events wherever they are computed, and the ones that the examples need."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch.errors import StreamError
from anabranch.formats.events import event_from_dict, event_to_dict
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.sources.base import Backlog, Limit, as_event
from anabranch.sources.generators import EVENTS_PER_PIECE, GeneratorSource

TRICK = Path(__file__).parents[3] / "examples" / "bikes" / "student_trick.seraph"


def source(name: str = "bikes", now: float = 0.0, **options: Any) -> GeneratorSource:
    return GeneratorSource("s", name, {key: str(value) for key, value in options.items()}, now=lambda: now)


def events(made: GeneratorSource, first: int = 0, stop: int = 100) -> list[Event]:
    found = [event for piece in made.pieces({"next": first}, {"next": stop}) for event in made.read(piece, as_event)]
    assert all(isinstance(event, Event) for event in found)
    return [event for event in found if isinstance(event, Event)]


def as_json(found: list[Event]) -> list[Any]:
    return [event_to_dict(event) for event in found]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bikes", {}),
        ("graph", {}),
        ("graph", {"degree": 3}),
        ("auctions", {}),
        ("auctions", {"model": "property", "rings": 1, "jumps": 5}),
    ],
)
def test_an_event_depends_on_seed_and_number_alone(name: str, options: dict[str, Any]) -> None:
    made = source(name, **options)
    all_at_once = as_json(events(made, 0, 200))
    one_by_one = [event for first in range(200) for event in as_json(events(source(name, **options), first, first + 1))]
    assert one_by_one == all_at_once
    assert as_json(events(source(name, seed=1, **options), 0, 200)) != all_at_once


def test_the_events_stay_the_same_from_version_to_version() -> None:
    (ride,) = as_json(events(source(seed=7), 1000, 1001))
    assert ride == {
        "at": "2022-10-14T15:01:40Z",
        "nodes": [
            {"id": 197, "labels": ["Bike"], "properties": {"id": 197}},
            {"id": 21, "labels": ["Station"], "properties": {"id": 21}},
        ],
        "relationships": [
            {
                "id": "r1001",
                "type": "returnedAt",
                "from": 197,
                "to": 21,
                "properties": {"user_id": 1028, "val_time": "15:01", "duration": 11},
            }
        ],
    }


@pytest.mark.parametrize("name", ["bikes", "graph", "auctions"])
def test_what_is_made_is_a_valid_event_at_its_instant(name: str) -> None:
    made = source(name, start="2024-02-28T23:59:59+01:00", step="PT0.5S")
    first = parse_instant("2024-02-28T22:59:59Z")
    for index, event in enumerate(events(made, 10, 40), 10):
        assert event.event_time == first + index * 500_000
        again = event_from_dict(event_to_dict(event))
        assert event_to_dict(again) == event_to_dict(event)


@pytest.mark.parametrize(("users", "stations"), [(1, 4), (2, 5), (60, 50), (97, 7)])
def test_every_bike_is_returned_before_it_is_rented_again_and_users_have_one_at_a_time(
    users: int, stations: int
) -> None:
    holder: dict[object, tuple[object, int]] = {}
    for event in events(source(users=users, stations=stations, step="PT10S"), 0, users * 8):
        (one,) = event.relationships
        user = one.properties["user_id"]
        if one.type == "rentedAt":
            assert one.source not in holder
            assert user not in [held_by for held_by, _ in holder.values()]
            holder[one.source] = user, event.event_time // 60_000_000
        else:
            rented_by, minute = holder.pop(one.source)
            assert rented_by == user
            assert one.properties["duration"] == event.event_time // 60_000_000 - minute
        assert isinstance(one.target, int)
        assert 1 <= one.target <= stations < one.source  # type: ignore[operator]
    assert holder == {}


@pytest.mark.parametrize("students", [2, 0])
def test_the_student_trick_is_found_where_there_are_students(students: int) -> None:
    session = anabranch.Session.local()
    query = session.register(TRICK.read_text())
    session.push("default", events(source(step="PT90S", stations=1000, students=students), 0, 80))
    session.finish()
    found = {row[0] for answer in query.poll() for row in answer.rows}
    assert bool(found) == bool(students)


def test_a_graph_has_what_was_asked_for_and_few_popular_vertices() -> None:
    found = events(source("graph", nodes=100, labels=2, types=4, degree=3), 0, 2000)
    assert {len(event.relationships) for event in found} == {3}
    edges = [one for event in found for one in event.relationships]
    assert len({one.id for one in edges}) == 6000
    assert {one.type for one in edges} == {"T0", "T1", "T2", "T3"}
    assert all(one.source != one.target for one in edges)
    labels: dict[object, tuple[str, ...]] = {}
    for node in (node for event in found for node in event.nodes):
        assert labels.setdefault(node.id, node.labels) == node.labels
    assert set(labels.values()) == {("L0",), ("L1",)}
    assert labels.keys() <= set(range(100))
    chosen = Counter(one.target for one in edges)
    assert sum(chosen[node] for node in range(10)) > 3 * sum(chosen[node] for node in range(90, 100))
    even = Counter(
        one.target for event in events(source("graph", nodes=10, skew=1), 0, 5000) for one in event.relationships
    )
    assert min(even.values()) > 350


def test_a_count_makes_the_stream_finite() -> None:
    made = source(count=50_000)
    assert made.finite
    offset, read = made.begin(), 0
    while not made.ended(offset):
        end = made.ahead(offset, Limit())
        assert end != offset
        pieces = made.pieces(offset, end)
        assert [piece.order for piece in pieces] == list(range(len(pieces)))
        sizes = [piece.where["stop"] - piece.where["first"] for piece in pieces]
        assert max(sizes) <= EVENTS_PER_PIECE
        read += sum(sizes)
        offset = end
        assert made.backlog(offset) == Backlog(read, 50_000)
    assert (read, made.ahead(offset, Limit())) == (50_000, offset)
    assert made.pieces(offset, offset) == []
    empty = source(count=0)
    assert empty.ended(empty.begin())


def test_without_a_count_it_never_ends_and_keeps_to_the_limit() -> None:
    made = source()
    assert not made.finite
    first = made.ahead(made.begin(), Limit())
    assert first == {"next": 4096}
    assert made.ahead(first, Limit(records=10)) == {"next": 4106}
    assert made.ahead(first, Limit(size=2560)) == {"next": 4106}
    assert made.ahead(first, Limit(size=1)) == {"next": 4097}
    assert not made.ended({"next": 10**9})
    assert made.backlog(first) == Backlog(4096, None)


def test_early_events_are_there_when_the_stream_begins_and_the_rest_comes_at_its_rate() -> None:
    begun = source(rate=10, early=50, now=1000.0).begin()
    assert source(rate=10, early=50, now=1000.0).ahead(begun, Limit())["next"] == 50
    assert source(rate=10, early=50, now=1001.0).ahead(begun, Limit())["next"] == 60
    assert source(rate=10, early=50, now=1001.0, count=20).ahead(begun, Limit())["next"] == 20
    with pytest.raises(StreamError, match="early: without a rate all events are there at once"):
        source(early=50)


def test_a_rate_gives_what_the_wall_clock_allows() -> None:
    begun = source(rate=10, now=1000.0).begin()
    assert begun == {"next": 0, "begun": 1000.0}
    at_once = source(rate=10, now=1000.05)
    assert at_once.ahead(begun, Limit()) == begun
    assert source(rate=10, now=1001.0).ahead(begun, Limit())["next"] == 10
    assert source(rate=10, now=1001.0, count=7).ahead(begun, Limit())["next"] == 7
    # A clock that is set back gives nothing again and takes nothing back.
    ahead = {**begun, "next": 500}
    assert source(rate=10, now=900.0).ahead(ahead, Limit()) == ahead
    assert source(rate=0.5, now=1003.0).ahead(begun, Limit())["next"] == 1


def test_a_decoder_of_records_gets_each_event_as_json_with_its_number() -> None:
    made = source(count=3)
    seen = []

    def decode(record: Any, sequence: str) -> Event | None:
        seen.append((record["relationships"][0]["id"], sequence))
        return None

    (piece,) = made.pieces({"next": 1}, {"next": 3})
    assert list(made.read(piece, decode)) == []
    assert seen == [("r2", "2"), ("r3", "3")]


def test_it_travels_to_workers() -> None:
    made = GeneratorSource("s", "bikes", {"seed": "3"})
    events(made, 0, 1)
    travelled = pickle.loads(pickle.dumps(made))
    assert as_json(events(travelled, 5, 9)) == as_json(events(made, 5, 9))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "bike",
            {},
            "gen:bike: there is no such generator\nhint: did you mean gen:bikes?  There are auctions, bikes, graph",
        ),
        ("", {}, "gen:: there is no such generator\nhint: There are auctions, bikes, graph"),
        ("bikes", {"sed": "1"}, "gen:bikes: there is no option sed\nhint: did you mean seed?  There are\n  seed: "),
        ("bikes", {"nodes": "1"}, "there is no option nodes"),
        ("graph", {"nodes": "one"}, "gen:graph: nodes=one: a whole number is expected"),
        ("graph", {"nodes": "1"}, "nodes=1: it goes from 2 to"),
        ("graph", {"skew": "0"}, "skew=0: it goes from 1 to 16"),
        ("bikes", {"rate": "nan"}, "rate=nan: it goes from 1e-06"),
        ("bikes", {"count": "-1"}, "count=-1: it goes from 0 to"),
        ("bikes", {"rate": "0"}, "rate=0: it goes from 1e-06"),
        ("bikes", {"rate": "fast"}, "rate=fast: a number is expected"),
        ("bikes", {"start": "yesterday"}, "gen:bikes: start: `yesterday` is not an instant"),
        ("bikes", {"step": "1s"}, "hint: write it like PT1S or PT0.01S"),
        ("bikes", {"step": "P1M"}, "step=P1M: months have no fixed length"),
        ("bikes", {"step": "PT0S"}, "step=PT0S: it goes from a microsecond to a century"),
        ("bikes", {"step": "P100D", "count": str(2**50)}, "after the end of time"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(StreamError) as refused:
        GeneratorSource("s", name, options)
    assert message in str(refused.value)
