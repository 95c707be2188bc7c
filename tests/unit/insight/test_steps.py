"""Steps: at every computed result the rows are the query's, and going back is as exact as going on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from anabranch.engine.answers import row_key
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.insight.recording import Recording
from anabranch.insight.shapes import to_json
from anabranch.insight.steps import RecordedSteps
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.values import Node, Relationship
from anabranch.testing.oracle import Oracle

from .recordings import case_recordings, drawn_recordings

SECOND = 1_000_000
RECORDINGS = list(case_recordings())
_MOST_INSTANTS = 300  # of one recording that the law is asked about


def held_against_the_law(steps: RecordedSteps, law: Oracle) -> int:
    """How many results were compared; each is what the plain query has over what the windows hold."""
    results = [message for message in steps.messages if message.kind == "compute result"]
    assert len(results) == len(steps.replay.moments)
    if steps.replay.recording.ends_at is None:
        assert law.is_last(steps.replay.moments[-1].index)
    for message, moment in zip(results[:_MOST_INSTANTS], steps.replay.moments, strict=False):
        expected = Counter(row_key(row) for row in law.rows(moment.index))
        assert message.at == law.instant(moment.index)
        assert steps.result_rows(message.number) == expected
        assert steps.state(message.number).result.total == expected.total()
    return len(results)


@pytest.mark.parametrize(("recording", "law"), [one[1:] for one in RECORDINGS], ids=[one[0] for one in RECORDINGS])
def test_each_computed_result_is_what_the_plain_query_says(recording: Recording, law: Oracle) -> None:
    assert held_against_the_law(RecordedSteps(recording), law) > 0


@pytest.mark.parametrize("shard", range(4))
def test_random_queries_over_random_streams_step_to_what_the_law_says(shard: int) -> None:
    compared = 0
    for number in range(shard, 40, 4):
        for _, recording, law in drawn_recordings(f"steps/{number}"):
            steps = RecordedSteps(recording)
            if not steps.note:
                compared += held_against_the_law(steps, law)
    assert compared > 0


@pytest.mark.parametrize("name", ["figure6_auctions-query", "bikes_snapshot-student_trick", "listing05_full_streets"])
def test_a_state_is_the_same_from_whatever_side_one_comes_to_it(name: str) -> None:
    recording = next(one[1] for one in RECORDINGS if one[0].startswith(name))
    steps = RecordedSteps(recording)
    forward = [steps.state(number) for number in range(len(steps.messages))]
    backward = [steps.state(number) for number in reversed(range(len(steps.messages)))]
    assert list(reversed(backward)) == forward
    jumping = Random(7)
    for _ in range(50):
        number = jumping.randrange(len(forward))
        assert steps.state(number) == forward[number]


def test_the_memory_of_an_operator_is_what_it_gave_and_did_not_take_back() -> None:
    steps = RecordedSteps(_bids(60))
    counted: dict[int, Counter[str]] = {box.id: Counter() for box in steps.graph.boxes}
    for message in steps.messages:
        if message.kind in ("element added", "binding added"):
            counted[message.operator][message.text] += 1
        elif message.kind in ("element deleted", "binding deleted"):
            counted[message.operator][message.text] -= 1
            assert counted[message.operator][message.text] >= 0, "taken back before it was given"
        memory = steps.state(message.number).memory
        for box in steps.graph.boxes[:-1]:
            assert memory[box.id].total == counted[box.id].total()


def test_keyframes_do_not_change_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from anabranch.insight import steps as module

    rare = RecordedSteps(_bids(80))
    monkeypatch.setattr(module, "_BETWEEN_KEYFRAMES", 1)
    often = RecordedSteps(_bids(80))
    assert len(often._keyframes) > len(rare._keyframes)
    for number in range(0, len(rare.messages), 7):
        assert often.state(number) == rare.state(number)


def test_elements_leave_before_others_come_and_bindings_follow_what_caused_them() -> None:
    steps = RecordedSteps(_bids(30))
    assert steps.messages[0].kind == "start of evaluation"
    for (_, first), (_, stop) in zip(steps.instants[1:], steps.instants[2:], strict=False):
        kinds = [message.kind for message in steps.messages[first:stop]]
        elements = [kind for kind in kinds if kind.startswith("element")]
        assert elements == sorted(elements, reverse=True), "deleted stands before added"
        assert kinds[-1] == "compute result"
        assert kinds.count("compute result") == 1


def test_a_recording_that_begins_later_begins_with_full_windows() -> None:
    whole = RecordedSteps(_bids(60))
    middle = whole.instants[5][0]
    late = RecordedSteps(_bids(60, begins_at=middle))
    expected = {
        message.at: whole.state(message.number).result for message in whole.messages if _is_result(message.kind)
    }
    found = {message.at: late.state(message.number).result for message in late.messages if _is_result(message.kind)}
    assert found == {at: result for at, result in expected.items() if at >= middle}
    assert late.state(0).memory[0].total > 0, "the window holds what came before"


def test_too_many_messages_are_cut_off_and_it_is_said() -> None:
    steps = RecordedSteps(_bids(60), most_messages=50)
    assert len(steps.messages) == 50
    assert "cut off" in steps.note
    assert steps.state(49).message.number == 49


def test_a_query_that_is_computed_anew_speaks_at_instants_alone() -> None:
    text = """
    REGISTER QUERY late STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a)-[r:SEES]->(b) WITHIN PT3S
      WITH a, b, rand() < 2 AS sure
      EMIT a.id AS a, b.id AS b, sure SNAPSHOT EVERY PT1S
    }"""
    events = [
        Event(at * SECOND, (Node(1, (), {"id": 1}), Node(at, (), {"id": at})), (Relationship(f"r{at}", "SEES", 1, at),))
        for at in range(2, 6)
    ]
    steps = RecordedSteps(Recording(text, events={"s": events}))
    boxes = {box.id: box for box in steps.graph.boxes}
    spoken = [message for message in steps.messages if message.kind.startswith("binding")]
    assert spoken, "rows come and go"
    assert any(box.kind == "recomputed" for box in boxes.values())
    for place, message in enumerate(steps.messages[:-1]):
        if boxes[message.operator].kind == "recomputed":
            assert steps.messages[place + 1].kind in ("binding added", "binding deleted", "compute result")


def test_what_fails_only_between_instants_is_no_failure() -> None:
    text = """
    REGISTER QUERY share STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:A) WITHIN PT2S EMIT 6 / count(*) AS share, 6 / (count(*) - 1) AS rest SNAPSHOT EVERY PT1S
    }"""
    events = [Event(at * SECOND, (Node(f"{at}{name}", ("A",)),)) for at in range(1, 6) for name in "ab"]
    steps = RecordedSteps(Recording(text, events={"s": events}))
    assert not steps.note
    results = [steps.state(message.number).result for message in steps.messages if _is_result(message.kind)]
    assert [one.rows for one in results] == [((3, 6),), *[((1, 2),)] * 4]


def test_a_query_that_fails_is_followed_until_then() -> None:
    text = """
    REGISTER QUERY share STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:A) WITHIN PT9S EMIT 6 / (count(*) - 2) AS share SNAPSHOT EVERY PT1S
    }"""
    events = [Event(at * SECOND, (Node(at, ("A",)),)) for at in range(1, 5)]
    recording = Recording(text, events={"s": events}, on_error="fail")
    steps = RecordedSteps(recording)
    assert "division by zero" in steps.note
    assert [message.kind for message in steps.messages].count("compute result") == 1
    assert "division by zero" in RecordedSteps(replace(recording, begins_at=3 * SECOND)).note
    skipping = RecordedSteps(replace(recording, on_error="skip"))
    assert not skipping.note
    results = [skipping.state(message.number).result for message in skipping.messages if _is_result(message.kind)]
    assert [one.rows for one in results] == [((-6,),), (), ((6,),), ((3,),)]


@pytest.mark.parametrize("evaluation", [EvaluationOptions(), EvaluationOptions(force="recompute")])
def test_what_entered_is_counted_from_nothing_or_from_the_instant_before(evaluation: EvaluationOptions) -> None:
    text = """
    REGISTER QUERY many STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:A) WITHIN PT1S EMIT count(*) AS n SNAPSHOT EVERY PT1S
    }"""
    recording = Recording(text, events={"s": [Event(5 * SECOND, (Node(1, ("A",)),))]}, evaluation=evaluation)
    for begins_at, entered in ((None, "1 entered, 0 left"), (3 * SECOND, "0 entered, 0 left")):
        steps = RecordedSteps(replace(recording, begins_at=begins_at))
        first = next(message for message in steps.messages if _is_result(message.kind))
        assert first.text.endswith(entered)


def test_connected_nodes_step_by_step() -> None:
    text = """
    REGISTER QUERY together STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:Start), (b:End) WITHIN PT10S
      WHERE connected(a, b)
      EMIT a.id AS a, b.id AS b SNAPSHOT EVERY PT1S
    }"""
    links = [(1, 2), (2, 3), (3, 4)]
    events = [Event(SECOND, (Node(1, ("Start",), {"id": 1}), Node(4, ("End",), {"id": 4})))]
    events += [
        Event((2 + place) * SECOND, (), (Relationship(f"r{place}", "L", source, target),))
        for place, (source, target) in enumerate(links)
    ]
    steps = RecordedSteps(Recording(text, events={"s": events}))
    totals = [steps.state(message.number).result.total for message in steps.messages if _is_result(message.kind)]
    assert totals == [0, 0, 0, 1]
    assert any(box.name == "RecencyTree" for box in steps.graph.boxes)


def test_messages_and_states_are_json() -> None:
    steps = RecordedSteps(_bids(10))
    assert isinstance(to_json(steps.graph), dict)
    assert isinstance(to_json(steps.messages[3]), dict)
    assert isinstance(to_json(steps.state(3)), dict)


def _is_result(kind: str) -> bool:
    return kind == "compute result"


def _bids(count: int, **more: object) -> Recording:
    """Items with titles and prices: a join, a filter and an aggregate."""
    text = """
    REGISTER QUERY prices AS PREFIX : <http://x/>
    SELECT ?title (MAX(?p) AS ?highest) (COUNT(*) AS ?bids)
    FROM STREAM <http://x/s> [RANGE 5s STEP 1s]
    WHERE { ?item :title ?title ; :price ?p . FILTER(?p > 2) }
    GROUP BY ?title"""
    random = Random(3)
    events = []
    for number in range(count):
        item = Iri(f"http://x/i{random.randrange(5)}")
        triple = (
            Triple(item, Iri("http://x/title"), Literal(f"thing {item.value[-1]}"))
            if random.random() < 0.3
            else Triple(
                item,
                Iri("http://x/price"),
                Literal(str(random.randrange(10)), "http://www.w3.org/2001/XMLSchema#integer"),
            )
        )
        events.append(Event(number * 300_000, triples=(triple,)))
    return Recording(text, events={"http://x/s": events}, **more)  # type: ignore[arg-type]
