"""Why a row is there: its elements alone give it, none of them can go, and the times are those of the law."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.engine.answers import AnswerRow, row_key
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.session import Session
from anabranch.errors import EngineError, QueryError
from anabranch.formats.values import to_json
from anabranch.insight.elements import ElementUnit, unit_name
from anabranch.insight.held import Holding
from anabranch.insight.minimal import Budget, OutOfBudget, smallest, thinned
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import Why
from anabranch.insight.why import why, why_left
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.values import Node, Relationship

from .recordings import case_recordings, chained_recordings, drawn_recordings

XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
RECORDINGS = {name: recording for name, recording, _ in case_recordings()}


def has(replay: Replay, moment: ReplayInstant, row: AnswerRow, kept: list[ElementUnit] | None = None) -> bool:
    rows = replay.rows(moment, None if kept is None else frozenset(kept))
    return row_key(row) in {row_key(one) for one in rows}


def held_against_the_law(recording: Recording, moment: ReplayInstant, wanted: AnswerRow, found: Why) -> None:
    replay = Replay(recording)
    shown = tuple(map(to_json, wanted))
    row = next(one for one in replay.rows(moment) if tuple(map(to_json, one)) == shown)
    holding = Holding(replay, moment)
    names = {(element.stream, element.id) for element in found.elements}
    units = [unit for unit in holding.units if (unit.stream, unit_name(unit)) in names]
    assert len(units) == len(found.elements)
    assert has(replay, moment, row, units), "the elements alone give the row"
    if found.minimal:
        for unit in units:
            assert not has(replay, moment, row, holding.without(units, unit)), f"{unit} is not needed"
    before = [has(replay, one, row) for one in replay.moments if one.at <= moment.at]
    since = len(before) - 1
    while since and before[since - 1]:
        since -= 1
    assert found.entered_at == replay.moments[since].at
    _check_leaving(recording, moment, row, found)


def _check_leaving(recording: Recording, moment: ReplayInstant, row: AnswerRow, found: Why) -> None:
    """Until it leaves the row is there, if nothing more comes; then it is gone."""
    replay = Replay(replace(recording, ends_at=None), until=moment.at)
    instants = replay.query.cursor.instants
    if instants is None or isinstance(instants, ArrivalInstants) or instants.once:
        assert found.leaves_at is None
        return
    for ahead in range(200):
        later = ReplayInstant(moment.index + ahead, instants.instant(moment.index + ahead))
        there = has(replay, later, row)
        if found.leaves_at is not None and later.at >= found.leaves_at:
            assert later.at == found.leaves_at
            assert not there
            return
        assert there, f"it is gone at {later.at} and not at {found.leaves_at}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_elements_of_a_row_give_it_and_none_can_be_spared(name: str) -> None:
    recording = RECORDINGS[name]
    replay = Replay(recording)
    for moment in replay.moments[:6]:
        for row in replay.rows(moment)[:2]:
            found = why(recording, tuple(map(to_json, row)), moment.at)
            if not replay.query.is_volatile:
                held_against_the_law(recording, moment, row, found)


@pytest.mark.parametrize("shard", range(4))
def test_random_rows_of_random_queries_are_explained(shard: int) -> None:
    explained = minimal = 0
    for number in range(shard, 60, 4):
        for _, recording, _law in drawn_recordings(f"why/{number}"):
            replay = Replay(recording)
            for moment in replay.moments[:30:5]:
                try:
                    rows = replay.rows(moment)
                except QueryError:
                    break
                for row in rows[:1]:
                    found = why(recording, tuple(map(to_json, row)), moment.at)
                    held_against_the_law(recording, moment, row, found)
                    explained += 1
                    minimal += found.minimal
    assert explained > 5
    assert minimal > explained / 2


def test_the_student_trick_was_completed_by_the_last_return() -> None:
    recording = RECORDINGS["bikes_on_entering-student_trick"]
    found = why(recording, {"r.user_id": 5678}, parse_instant("2022-10-14T15:40Z"))
    assert found.minimal
    assert found.completed_by is not None
    assert "returnedAt" in found.completed_by.text
    assert "15:35" in found.completed_by.text
    assert found.entered_at == parse_instant("2022-10-14T15:40Z")
    # The rental of 14:58 came with the event of 15:00, and is in windows of an hour until just before 16:00.
    assert found.leaves_at == parse_instant("2022-10-14T16:00Z")
    assert {element.kind for element in found.elements} == {"node", "relationship"}


def test_a_count_is_made_of_all_that_it_counts() -> None:
    recording = _amounts("SELECT ?who (COUNT(?x) AS ?n) (SUM(?x) AS ?sum)", "GROUP BY ?who", [5, 6, 7, 8])
    found = why(recording, {"who": "http://x/a"})
    assert [element.properties["value"] for element in found.elements] == [5, 7]
    assert found.minimal
    assert "2 matches count" in found.note


def test_an_average_says_that_fewer_elements_would_give_it_too() -> None:
    recording = _amounts("SELECT (AVG(?x) AS ?mean)", "", [5, 10, 15])
    found = why(recording, {})
    assert len(found.elements) == 3
    assert not found.minimal
    assert "fewer" in found.note


def test_a_maximum_is_made_of_the_one_that_is_the_greatest() -> None:
    recording = _amounts("SELECT (MAX(?x) AS ?most)", "", [5, 15, 10])
    found = why(recording, {"most": 15})
    assert [element.properties["value"] for element in found.elements] == [15]
    assert found.minimal


def test_a_small_budget_gives_a_witness_that_may_be_too_large() -> None:
    recording = _amounts("SELECT ?x ?y", "", list(range(12)), "?a :amount ?x . ?b :amount ?y")
    found = why(recording, {"x": 3, "y": 7}, budget=1)
    assert not found.minimal
    assert len(found.elements) >= 2
    assert found.note


def test_a_row_that_is_not_there_is_refused() -> None:
    recording = _amounts("SELECT ?x", "", [1])
    with pytest.raises(EngineError, match="why not"):
        why(recording, {"x": 2})
    with pytest.raises(EngineError, match="no column `z`"):
        why(recording, {"z": 2})


def test_a_row_from_before_the_recording_has_no_entry() -> None:
    recording = _amounts("SELECT ?x", "", [1, 2, 3])
    whole = why(recording, {"x": 1})
    assert whole.entered_at is not None
    later = why(replace(recording, begins_at=whole.entered_at + 1_000_000), {"x": 1})
    assert later.entered_at is None
    assert "before the recording" in later.note


def test_quickxplain_finds_a_smallest_set_with_few_questions() -> None:
    budget = Budget(100)
    needed = {3, 40, 77}

    def holds(items: object) -> bool:
        budget.spend()
        return needed <= set(items)  # type: ignore[call-overload]

    assert smallest(list(range(200)), holds) == sorted(needed)
    assert budget.left > 40
    budget.left = 3
    with pytest.raises(OutOfBudget):
        smallest(list(range(200)), holds)


def test_thinning_leaves_out_what_comes_to_be_unneeded() -> None:
    def holds(items: object) -> bool:  # two of the three, or one of them without the first
        found = set(items)  # type: ignore[call-overload]
        return len(found) >= 2 or found == {"c"}

    found = thinned("abc", holds, lambda items, gone: [one for one in items if one != gone])
    assert holds(found.items)
    if found.minimal:
        assert all(not holds([one for one in found.items if one != gone]) for gone in found.items)


def _amounts(select: str, tail: str, amounts: list[int], where: str = "?who :amount ?x") -> Recording:
    text = f"""REGISTER QUERY q AS PREFIX : <http://x/>
    {select} FROM STREAM <http://x/s> [RANGE 100s STEP 1s] WHERE {{ {where} }} {tail}"""
    events = [
        Event(
            place * 1_000_000,
            triples=(
                Triple(Iri(f"http://x/{'ab'[place % 2]}"), Iri("http://x/amount"), Literal(str(amount), XSD_INTEGER)),
            ),
        )
        for place, amount in enumerate(amounts)
    ]
    return Recording(text, events={"http://x/s": events})


def test_a_row_is_explained_though_the_query_fails_over_fewer_elements() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:02Z {
      MATCH (a:A) WITHIN PT10S EMIT 6 / count(*) AS share, 4 / (count(*) - 1) AS rest SNAPSHOT EVERY PT1S }"""
    events = [Event(at * 1_000_000, (Node(at, ("A",)),)) for at in (1, 2, 3)]
    recording = Recording(text, events={"s": events})
    found = why(recording, {"share": 2, "rest": 2})
    assert [element.id for element in found.elements] == ["n1", "n2", "n3"]
    assert found.minimal
    assert found.entered_at == 3_000_000
    assert found.leaves_at == 11_000_000


def test_a_row_of_a_query_that_reads_the_clock_leaves_with_it() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:A) WITHIN PT1M EMIT a.x AS x, datetime().second AS second SNAPSHOT EVERY PT1S }"""
    recording = Recording(text, events={"s": [Event(1_000_000, (Node(1, ("A",), {"x": 7}),))]})
    found = why(recording, {"x": 7, "second": 1})
    assert found.leaves_at == 2_000_000


def test_a_row_may_be_written_with_prefixes_and_has_as_many_values_as_columns() -> None:
    recording = _amounts("SELECT ?who ?x", "", [1])
    assert why(recording, {"who": ":a"}).row == ("http://x/a", 1)
    with pytest.raises(EngineError, match="has 1 values, the query has 2 columns: who, x"):
        why(recording, ["http://x/a"])
    with pytest.raises(EngineError, match="no such row"):
        why(recording, {"x": True})


def test_relationships_without_ids_have_those_of_the_running_query() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH ()-[r:R]->() WITHIN PT1M EMIT id(r) AS r, r.n AS n SNAPSHOT EVERY PT1S }"""
    events = [Event(at * 1_000_000, (), (Relationship(None, "R", 1, 2, {"n": at}),)) for at in (3, 2, 4)]
    session = Session.local(["s"], lateness="PT5S")
    query = session.register(text)
    session.push("s", events)
    session.finish()
    told = [answer for answer in query.poll() if answer.at == 4_000_000]
    for row in told[0].rows:
        found = why(Recording(text, events={"s": events}), row, 4_000_000)
        assert len(found.elements) == 1


def test_a_stream_that_another_query_of_the_text_makes_is_made_again() -> None:
    recording, law = next(one[1:] for one in chained_recordings("emit_into", "busy"))
    replay = Replay(recording)
    assert [replay.rows(moment) for moment in replay.moments] == [law.rows(moment.index) for moment in replay.moments]
    assert law.is_last(replay.moments[-1].index)
    found = why(recording, {"stop": "s1", "rides": 2})
    assert found.entered_at == found.at
    assert {element.stream for element in found.elements} == {"long"}


def test_the_last_instant_is_that_of_the_streams_that_the_query_reads() -> None:
    text = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
      MATCH (a:A) WITHIN PT1M ON STREAM s EMIT a.x AS x SNAPSHOT EVERY PT1S }"""
    events = {"s": [Event(2_000_000, (Node(1, ("A",)),))], "t": [Event(60_000_000, (Node(1, ("A",)),))]}
    assert Replay(Recording(text, events=events)).moments[-1].at == 2_000_000


def test_which_of_several_queries_is_meant_must_be_said() -> None:
    recording, _ = next(one[1:] for one in chained_recordings("emit_into", "busy"))
    with pytest.raises(EngineError, match="several queries; say which is meant, of long_rides, busy"):
        why(replace(recording, query_name=""), {})


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_row_left_at_the_first_instant_without_it_and_what_is_named_is_why(name: str) -> None:
    recording = RECORDINGS[name]
    replay = Replay(recording)
    if replay.query.is_volatile:
        return
    for moment in replay.moments[:6]:
        for row in replay.rows(moment)[:2]:
            found = why_left(recording, tuple(map(to_json, row)), moment.at)
            later = [one for one in replay.moments if one.at >= moment.at]
            first = next((one for one in later if not has(replay, one, row)), None)
            assert found.left_at == (None if first is None else first.at)
            if first is None:
                continue
            assert found.at == replay.moments[replay.position(first) - 1].at
            assert found.gone or found.changed or found.came or found.note
            inside = {(unit.stream, unit_name(unit)) for unit in Holding(replay, first).units}
            assert not {(one.stream, one.id) for one in found.gone} & inside
            assert {(one.stream, one.id) for one in found.came} <= inside


def test_the_student_trick_left_with_the_rental_that_left_the_window() -> None:
    recording = replace(RECORDINGS["bikes_snapshot-student_trick"], ends_at=parse_instant("2022-10-14T16:30Z"))
    found = why_left(recording, {"r.user_id": 1234}, parse_instant("2022-10-14T15:15Z"))
    assert found.left_at is not None
    assert any("rentedAt" in one.text and "14:40" in one.text for one in found.gone)


def test_a_count_left_because_another_came_and_says_what_is_there_instead() -> None:
    recording = _amounts("SELECT (COUNT(?x) AS ?n)", "", [1, 2])
    found = why_left(recording, {"n": 1}, 0)
    assert found.instead == (2,)
    assert [one.properties["value"] for one in found.came] == [2]
    assert not found.gone


def test_a_row_that_is_still_there_has_not_left() -> None:
    recording = RECORDINGS["bikes_on_entering-student_trick"]
    there = replace(recording, ends_at=parse_instant("2022-10-14T15:40Z"))
    found = why_left(there, {"r.user_id": 5678}, parse_instant("2022-10-14T15:40Z"))
    assert found.left_at is None
    assert "still there" in found.note
