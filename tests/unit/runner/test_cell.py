"""A cell: caches, catching up, silence, late events, other queries."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.cells import Worker, answers_of, control, job_of, packed
from tests.support.graph_events import graph_block
from tests.support.jobs import changed, queries_of

from anabranch.engine.engine import LatePolicy
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.timing import AheadBound, IdlePolicy, StreamTiming
from anabranch.errors import EngineError, StreamError
from anabranch.formats import chunks
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.values import Node, Relationship
from anabranch.runner import cell as cells
from anabranch.runner import cell_chunks
from anabranch.runner.job import Job
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.rows import CellRow, PackedRow
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.testing.case_file import CaseFile

MINUTE = 60_000_000
COUNT = (
    "REGISTER QUERY {name} STARTING AT 1970-01-01T00:01:00Z "
    "{{ MATCH (a) WITHIN {width} ON STREAM {stream} EMIT count(a) AS n {output} EVERY PT1M }}"
)


def count(name: str = "q", width: str = "PT2M", stream: str = "s", output: str = "SNAPSHOT") -> str:
    return COUNT.format(name=name, width=width, stream=stream, output=output)


def job(*queries: str, streams: tuple[str, ...] = ("s",), **more: object) -> Job:
    case = CaseFile(Path("q.case"), query="\n".join(queries or (count(),)), streams={name: [] for name in streams})
    return changed(job_of(case), **more)


def event(minute: float, *ids: int) -> Event:
    return Event(int(minute * MINUTE), tuple(Node(one) for one in ids))


def told(rows: list[CellRow]) -> list[tuple[float, object]]:
    return [(parts.at / MINUTE, parts.rows[0][0]) for parts in answers_of(rows)]


def status(rows: list[CellRow]) -> dict[str, object]:
    return [row.detail() for row in rows if row.kind == "status"][-1]


def test_an_instant_is_answered_in_the_batch_that_passes_it() -> None:
    worker = Worker(job())
    assert told(worker.batch([*packed("s", [event(0.5, 1), event(1, 2)]), control()])) == []
    assert told(worker.batch([*packed("s", [event(1.5, 3)]), control()])) == [(1, 2)]
    assert told(worker.batch([control(end=True, closed=["s"])])) == [(2, 3)]


def test_until_is_where_queries_stop_also_when_their_stream_has_ended_before() -> None:
    events = [*packed("s", [event(0.5, 1), event(1.5, 2)]), control(end=True, closed=["s"])]
    assert told(Worker(job(until=MINUTE)).batch(events)) == [(1, 1)]
    assert told(Worker(job(until=3 * MINUTE), name="other").batch(events)) == [(1, 1), (2, 2), (3, 1)]


def test_chunks_that_no_window_needs_any_more_leave_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_chunks, "_SMALL", 0)
    worker = Worker(job())
    for minute in range(30):
        worker.batch([*packed("s", [event(minute + index / 100, index) for index in range(99)]), control()])
    assert 2 <= len(worker.state.the_chunks) <= 3
    assert status(worker.rows)["chunks"] == len(worker.state.the_chunks)


def test_a_chunk_whose_last_event_is_the_first_that_a_window_holds_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_chunks, "_SMALL", 0)
    worker = Worker(job())
    for one in (event(1, 1), Event(MINUTE + 1, (Node(2),)), event(2.5, 3)):
        worker.batch([*packed("s", [one]), control()])
    cells.forget_everything()
    assert told(worker.batch([*packed("s", [event(3.5, 4)]), control()])) == [(3, 2)]


def test_a_chunk_that_comes_and_goes_within_a_batch_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(cell_chunks, "_SMALL", 0)
    monkeypatch.setattr(MemoryState, "put_chunk", lambda state, number, data: written.append(number))
    worker = Worker(job())
    for first in (0, 100):
        rows = [replace(packed("s", [event(first + minute, 1)])[0], place=minute) for minute in range(9)]
        worker.batch([*rows, control()])
    assert status(worker.rows)["events"] == 2 * 9
    assert 0 < len(written) <= 2 * 3


def test_chunks_that_a_thread_opens_are_taken_in_as_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for worth in (0, 1 << 40):
        monkeypatch.setattr(cell_chunks, "_WORTH_A_THREAD", worth)
        worker = Worker(job())
        rows = [replace(packed("s", [event(minute, minute)])[0], place=minute) for minute in range(9)]
        rows.insert(4, PackedRow("0", "malformed", b"{}", "s", place=4, number=1, count=1))
        worker.batch([*rows, control(end=True, closed=["s"])])
        found.append([(row.kind, row.at, row.typed, row.rows) for row in worker.rows if row.kind != "status"])
    assert found[0] == found[1]
    assert [kind for kind, *_ in found[0]].count("malformed") == 1


def test_a_damaged_chunk_is_an_error_also_when_a_thread_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_chunks, "_WORTH_A_THREAD", 0)
    rows = [replace(packed("s", [event(minute, minute)])[0], place=minute) for minute in range(4)]
    rows[2] = replace(rows[2], data=rows[2].data[:-1])
    with pytest.raises(StreamError, match="the chunk is damaged"):
        Worker(job()).batch([*rows, control()])


def test_small_chunks_are_put_together() -> None:
    worker = Worker(job(count(width="PT10H")))
    for index in range(200):
        worker.batch([*packed("s", [event(index / 100, index)]), control()])
    assert len(worker.state.the_chunks) == 1


def test_a_worker_that_has_forgotten_everything_builds_its_engine_from_the_chunks() -> None:
    worker = Worker(job())
    worker.batch([*packed("s", [event(0.5, 1), event(1, 2)]), control()])
    cells.forget_everything()
    assert told(worker.batch([*packed("s", [event(1.5, 3)]), control()])) == [(1, 2)]


def test_a_worker_that_missed_batches_takes_in_only_what_it_missed() -> None:
    worker = Worker(job(count(width="PT1H")))
    big = [event(index / 10_000, index) for index in range(5000)]
    worker.batch([*packed("s", big), control()])
    stale = cells._living.pop("cell")
    worker.batch([*packed("s", [event(1.5, 6000)]), control()])
    cells._living["cell"] = stale
    del worker.state.the_chunks[0]  # the big one is in the cache
    assert told(worker.batch([*packed("s", [event(2.5, 6001)]), control()])) == [(2, 5001)]


def test_a_batch_whose_result_was_lost_is_told_again() -> None:
    worker = Worker(job())
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    rows = [*packed("s", [event(1.5, 3)]), control()]
    worker._try_in_vain(rows)
    assert told(worker.batch(rows)) == [(1, 1)]


def test_answers_are_numbered_by_query_for_ever() -> None:
    worker = Worker(job(count("a"), count("b")))
    worker.batch([*packed("s", [event(0.5, 1), event(2.5, 2)]), control()])
    cells.forget_everything()
    worker.batch([control(end=True, closed=["s"])])
    numbers = [(row.query, row.number) for row in worker.rows if row.kind == "answer"]
    assert numbers == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_streams_that_end_are_told_in_the_order_of_time_over_all_queries() -> None:
    fast, slow = count("fast", stream="f"), count("slow", stream="g")
    worker = Worker(job(fast, slow, streams=("f", "g")))
    worker.batch([*packed("f", [event(0.5, 1), event(3.5, 2)]), control()])
    worker.batch([*packed("g", [event(0.5, 1), event(1.5, 2)]), control()])
    worker.batch([*packed("g", [event(3.5, 3)]), control()])
    assert [(parts.at // MINUTE, parts.query) for parts in answers_of(worker.rows)] == [
        *((1, "fast"), (1, "slow"), (2, "fast"), (2, "slow"), (3, "fast"), (3, "slow")),
    ]


def test_live_streams_do_not_wait_for_each_other() -> None:
    fast, slow = count("fast", stream="f"), count("slow", stream="g")
    worker = Worker(job(fast, slow, streams=("f", "g"), ordered=False))
    rows = worker.batch([*packed("f", [event(0.5, 1), event(3.5, 2)]), control()])
    assert [parts.query for parts in answers_of(rows)] == ["fast", "fast", "fast"]


def test_late_events_are_set_aside_and_counted_and_the_rest_survives_a_rebuild() -> None:
    worker = Worker(job())
    rows = worker.batch([*packed("s", [event(1, 1), event(0.2, 9), event(1.2, 2)]), control()])
    late = [row for row in rows if row.kind == "late"]
    assert [(row.query, row.rows) for row in late] == [("s", 1)]
    assert json.loads(late[0].data)["reason"].startswith("late: 1970-01-01T00:00:12Z was over")
    cells.forget_everything()
    worker.batch([*packed("s", [event(3, 3)]), control()])
    assert told(worker.rows) == [(1, 1), (2, 2)]
    assert (status(worker.rows)["late"], status(worker.rows)["events"]) == (1, 3)


def test_a_late_event_corrects_the_answers_that_it_changes_also_after_a_rebuild() -> None:
    worker = Worker(job(late=LatePolicy("correct")))
    worker.batch([*packed("s", [event(0.5, 1), event(2.5, 2)]), control()])
    cells.forget_everything()
    rows = worker.batch([*packed("s", [event(0.6, 9)]), control()])
    corrections = [(parts.at // MINUTE, parts.correction, parts.rows[0][0]) for parts in answers_of(rows)]
    assert corrections == [(1, "retracted", 1), (1, "corrected", 2), (2, "retracted", 1), (2, "corrected", 2)]
    cells.forget_everything()
    assert told(worker.batch([*packed("s", [event(3.5, 3)]), control()])) == [(3, 1)]


def test_dead_letters_pass_through_in_the_batch_that_brought_them() -> None:
    worker = Worker(job())
    from anabranch.runner.rows import PackedRow

    rows = worker.batch([PackedRow("0", "malformed", b'{"line": 1}\n', "s", count=1), control()])
    assert [(row.query, row.rows, row.data) for row in rows if row.kind == "malformed"] == [("s", 1, b'{"line": 1}\n')]
    assert status(rows)["malformed"] == 1


def test_splits_are_taken_in_their_own_order_and_the_slowest_holds_back() -> None:
    worker = Worker(job())
    splits = {"s": ["0", "1"]}
    rows = [*packed("s", [event(0.5, 1), event(3, 2)], "0"), *packed("s", [event(0.6, 3)], "1")]
    assert told(worker.batch([*rows, control(splits=splits)])) == []
    assert told(worker.batch([*packed("s", [event(1.5, 4)], "1"), control(splits=splits)])) == [(1, 2)]
    assert told(worker.batch([control(splits={"s": ["0"]})])) == [(2, 3)], "split 1 is gone"


def idle_job(*queries: str, policy: str = "correct", streams: tuple[str, ...] = ("s",), **more: object) -> Job:
    """A job whose streams may fall silent."""
    made = job(*queries, streams=streams, ordered=False, timing=StreamTiming(0, IdlePolicy.parse(policy)), **more)
    live = tuple(OpenedStream(GeneratorSource(name, "graph", {}), Decoding(name), "") for name in streams)
    return replace(made, streams=live)


def test_a_silent_split_holds_no_answer_back_and_loses_nothing() -> None:
    worker = Worker(idle_job())
    splits, silent = {"s": ["0", "1"]}, {"s": ["1"]}
    rows = [*packed("s", [event(0.5, 1), event(3, 2)], "0"), *packed("s", [event(0.6, 3)], "1")]
    assert told(worker.batch([*rows, control(splits=splits)])) == []
    assert told(worker.batch([control(splits=splits, silent=silent)])) == [(1, 2), (2, 2)]
    rows = worker.batch([*packed("s", [event(0.8, 4), event(4, 5)], "1"), control(splits=splits)])
    assert told(rows) == [(1, 2), (1, 3), (2, 2), (2, 3)]
    assert [parts.correction for parts in answers_of(rows)] == ["retracted", "corrected"] * 2
    assert (status(rows)["events"], status(rows).get("late", 0)) == (5, 0)


SPLITS, SILENT = {"s": ["0", "1"]}, {"s": ["1"]}


def after_an_outage_from_the_start(worker: Worker) -> list[CellRow]:
    """Split 1 has never brought an event while split 0 went on; then it wakes with older ones, in order."""
    begun = packed("s", [event(0.5, 1), event(3, 2)], "0")
    assert told(worker.batch([*begun, control(splits=SPLITS, silent=SILENT)])) == [(1, 1), (2, 1)]
    return worker.batch([*packed("s", [event(0.8, 4), event(4, 5)], "1"), control(splits=SPLITS)])


def test_a_split_that_never_spoke_loses_nothing_to_silence() -> None:
    rows = after_an_outage_from_the_start(Worker(idle_job()))
    assert (status(rows)["late"], status(rows)["corrected"]) == (0, 1)
    assert told(rows) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert status(rows)["streams"]["s"]["watermark"] == 3 * MINUTE


def test_a_split_that_never_spoke_is_waited_for_as_far_as_the_horizon() -> None:
    rows = after_an_outage_from_the_start(Worker(idle_job(policy="correct:PT1M")))
    assert (status(rows)["late"], told(rows)) == (1, [])


def test_a_split_that_never_spoke_costs_no_more_than_some_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.engine.stream.MOST_FOR_UNHEARD", 10)
    worker = Worker(idle_job())
    for minute in range(1, 60):
        events = [event(minute + second / 60, minute) for second in range(5)]
        rows = worker.batch([*packed("s", events, "0"), control(splits=SPLITS, silent=SILENT)])
        assert status(rows)["streams"]["s"]["held"] <= 30
    rows = worker.batch([*packed("s", [event(58.5, 4), event(59.9, 5)], "1"), control(splits=SPLITS)])
    assert status(rows)["late"] == 0


def test_a_split_that_stays_empty_does_not_stop_a_query_that_cannot_be_corrected() -> None:
    made = count("made").replace("count(a) AS n", "a").replace("EVERY PT1M", "EVERY PT1M INTO t")
    worker = Worker(idle_job(made, count(stream="t")))
    begun = worker.batch([*packed("s", [event(0.5, 1), event(4, 2)], "0"), control(splits=SPLITS, silent=SILENT)])
    assert [parts.query for parts in answers_of(begun)][:1] == ["made"]
    rows = worker.batch([*packed("s", [event(0.8, 4), event(5, 5)], "1"), control(splits=SPLITS)])
    assert status(rows)["late"] == 1, "what was made of the answers stays as it is"


@pytest.mark.parametrize("lateness", [None, "PT5M"])
def test_a_query_that_begins_with_the_first_event_begins_in_silence(lateness: str | None) -> None:
    late_by = None if lateness is None else parse_duration(lateness)
    worker = Worker(idle_job(count().replace("STARTING AT 1970-01-01T00:01:00Z ", ""), lateness=late_by))
    worker.batch([*packed("s", [event(1, 1), event(2, 2)], "0"), control(splits=SPLITS)])
    rows = worker.batch([control(splits=SPLITS, idle={"s": 10 * MINUTE})])
    assert told(rows)[:1] == [(1, 1)]
    more = worker.batch([*packed("s", [event(3, 3)], "0"), control(splits=SPLITS)])
    assert status(more)["late"] == 0


def test_answers_go_on_without_a_silent_stream_as_far_as_its_fellows() -> None:
    both = count("both").replace("MATCH (a)", "MATCH (b) WITHIN PT2M ON STREAM t MATCH (a)")
    worker = Worker(idle_job(both, streams=("s", "t")))
    worker.batch([*packed("s", [event(0.5, 1)]), *packed("t", [event(0.5, 1)]), control()])
    assert told(worker.batch([*packed("s", [event(1.5, 2)]), control()])) == []
    assert told(worker.batch([*packed("s", [event(1.6, 3)]), control(idle={"t": 0})])) == [(1, 1)]
    rows = worker.batch([*packed("t", [event(0.7, 9), event(1.7, 10)]), control()])
    assert told(rows) == [(1, 1), (1, 2)], "one `a` for each of two `b`"
    assert status(rows).get("late", 0) == 0


@pytest.mark.parametrize("policy", ["correct", "wait", "advance"])
def test_an_event_at_the_instant_that_its_fellows_have_reached_comes_in_time_after_silence(policy: str) -> None:
    both = count("both").replace("MATCH (a)", "MATCH (b) WITHIN PT2M ON STREAM t MATCH (a)")
    worker = Worker(idle_job(both, policy=policy, streams=("s", "t")))
    worker.batch([*packed("s", [event(0.5, 1)]), *packed("t", [event(0.5, 1)]), control()])
    worker.batch([*packed("s", [event(2, 3)]), control(idle={"t": 0})])
    rows = worker.batch([*packed("t", [event(2, 4)]), control()])
    assert (status(rows)["late"], status(rows)["corrected"]) == (0, 0)
    ended = worker.batch([control(end=True, closed=["s", "t"])])
    assert told(ended) == [(2, 4)], "two on s with two on t"


def test_answers_go_on_at_the_clock_s_pace_when_all_are_silent_until_the_windows_are_empty() -> None:
    worker = Worker(idle_job(count(), count("gone", output="ON EXIT")))
    worker.batch([*packed("s", [event(0.5, 1), event(0.6, 2)]), control()])
    assert told(worker.batch([control(idle={"s": MINUTE})])) == [(1, 2)]
    assert told(worker.batch([control(idle={"s": 3 * MINUTE})])) == [(2, 2), (3, 0), (3, 2)]
    rows = worker.batch([control(idle={"s": 300 * MINUTE})])
    assert told(rows) == []
    stood = status(rows)["streams"]["s"]
    assert (stood["watermark"], stood["answered"], stood["idle"]) == (0.6 * MINUTE, 3 * MINUTE + 1, True)


def test_what_comes_in_order_after_silence_is_in_its_windows() -> None:
    worker = Worker(idle_job())
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    assert told(worker.batch([control(idle={"s": 2 * MINUTE})])) == [(1, 1), (2, 1)]
    rows = worker.batch([*packed("s", [event(0.5, 2), event(1.5, 3), event(4, 4)]), control()])
    assert told(rows) == [(1, 1), (1, 2), (2, 1), (2, 3), (3, 1)]
    assert (status(rows)["events"], status(rows).get("late", 0), status(rows)["corrected"]) == (4, 0, 2)


def test_a_worker_that_forgot_everything_lets_answers_go_on_too() -> None:
    worker = Worker(idle_job())
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    cells.forget_everything()
    assert told(worker.batch([control(idle={"s": MINUTE})])) == [(1, 1)]
    cells.forget_everything()
    rows = worker.batch([*packed("s", [event(0.7, 2), event(1.5, 3)]), control()])
    assert told(rows) == [(1, 1), (1, 2)]


def test_an_event_far_ahead_is_a_letter_of_its_own_and_the_stream_goes_on() -> None:
    made = changed(idle_job(), timing=StreamTiming(None, ahead=AheadBound()))
    worker = Worker(made)
    far = event(9e8, 9)
    worker.batch([*packed("s", [event(0.5, 1), far, event(0.6, 2)]), control()])
    cells.forget_everything()
    rows = worker.batch([*packed("s", [event(0.7, 3), event(0.8, 4), event(1.5, 5)]), control()])
    assert [(row.query, row.rows) for row in rows if row.kind == "ahead"] == [("s", 1)]
    assert "ahead: 3681" in next(row.data.decode() for row in rows if row.kind == "ahead")
    assert told(rows) == [(1, 4)]
    assert (status(rows)["events"], status(rows)["ahead"], status(rows).get("late", 0)) == (5, 1, 0)
    cells.forget_everything()
    assert told(worker.batch([control(end=True, closed=["s"])])) == [(2, 5)]


def test_events_after_a_gap_wait_for_each_other_over_batches_and_restarts() -> None:
    worker = Worker(changed(idle_job(), timing=StreamTiming(None, ahead=AheadBound())))
    days = [event(minute, number) for number, minute in enumerate([0.5, 5000.5, 5001, 5001.5])]
    assert [len(told(worker.batch([*packed("s", [one]), control()]))) for one in days[:3]] == [0, 0, 0]
    cells.forget_everything()
    rows = worker.batch([*packed("s", days[3:]), control()])
    assert (status(rows)["events"], status(rows)["streams"]["s"]["in_doubt"]) == (4, 0)
    assert told(rows)[-1] == (5001, 2)
    cells.forget_everything()
    assert told(worker.batch([control(end=True, closed=["s"])])) == [(5002, 3)]


def test_a_clock_that_is_set_back_lets_the_stream_begin_again() -> None:
    made = count("made").replace("count(a) AS n", "a").replace("EVERY PT1M", "EVERY PT1M INTO t")
    worker = Worker(job(count(output="ON ENTERING"), made, count("reader", stream="t", output="ON ENTERING")))
    worker.batch([*packed("s", [event(0.5, 1), event(9e8, 2), event(0.7, 3)]), control()])
    assert status(worker.rows)["late"] == 1
    clocks = {"s": [1, 5 * MINUTE]}
    cells.forget_everything()
    rows = worker.batch([*packed("s", [event(5.5, 4), event(7.5, 5)]), control(clocks=clocks)])
    found = [(parts.query, parts.at // MINUTE, len(parts.rows)) for parts in answers_of(rows)]
    assert {("q", 5, 1), ("q", 6, 1), ("made", 6, 1), ("made", 7, 1), ("reader", 6, 1)} <= set(found)
    assert len(set(found)) == len(found)
    assert min(at for _, at, _ in found) == 5
    assert status(rows)["late"] == 1
    cells.forget_everything()
    rows = worker.batch([*packed("s", [event(8.5, 6)]), control(clocks=clocks)])
    assert ("made", 8) in [(parts.query, parts.at // MINUTE) for parts in answers_of(rows)], "a word is heeded once"
    assert {entry.stream for entry in cells._living["cell"].entries.values()} == {"s"}
    assert status(rows)["streams"]["s"]["newest"] == 8.5 * MINUTE


def test_a_cache_of_before_a_new_beginning_is_not_caught_up() -> None:
    worker = Worker(job())
    worker.batch([*packed("s", [event(0.5, 1), event(90, 2)]), control()])
    old = copy.deepcopy(cells._living["cell"])
    clocks = {"s": [1, MINUTE]}
    worker.batch([control(clocks=clocks)])
    cells._living["cell"] = old
    rows = worker.batch([*packed("s", [event(1.5, 3), event(2.5, 4)]), control(clocks=clocks)])
    assert told(rows) == [(1, 0), (2, 1)]


def test_a_clock_that_is_set_forward_makes_what_lies_before_it_late() -> None:
    worker = Worker(job())
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    rows = worker.batch([*packed("s", [event(1.5, 2), event(2.5, 3)]), control(clocks={"s": [1, 2 * MINUTE]})])
    assert (told(rows), status(rows)["late"]) == ([(1, 1), (2, 1)], 1)


def test_a_stream_that_waits_answers_when_it_goes_on() -> None:
    worker = Worker(idle_job(policy="wait"))
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    assert told(worker.batch([control(idle={"s": 9 * MINUTE})])) == []
    rows = worker.batch([*packed("s", [event(0.7, 2), event(2.5, 3)]), control()])
    assert told(rows) == [(1, 2), (2, 2)]


def test_a_stream_whose_watermark_advances_in_silence_has_late_events() -> None:
    worker = Worker(idle_job(policy="advance"))
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    assert told(worker.batch([control(idle={"s": MINUTE})])) == [(1, 1)]
    rows = worker.batch([*packed("s", [event(0.7, 2), event(2.5, 3)]), control()])
    assert (told(rows), status(rows)["late"]) == ([(2, 1)], 1)


def test_a_query_that_cannot_be_corrected_waits_while_others_go_on() -> None:
    made = count("made").replace("count(a) AS n", "a").replace("EVERY PT1M", "EVERY PT1M INTO t")
    worker = Worker(idle_job(count(), made))
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    rows = worker.batch([control(idle={"s": 2 * MINUTE})])
    assert [(parts.query, parts.at // MINUTE) for parts in answers_of(rows)] == [("q", 1), ("q", 2)]
    rows = worker.batch([*packed("s", [event(0.7, 2), event(1.5, 3)]), control()])
    found = [(parts.query, parts.at // MINUTE, len(parts.rows), parts.correction) for parts in answers_of(rows)]
    assert ("made", 1, 2, "") in found
    assert ("q", 1, 1, "corrected") in found


def test_an_answer_that_comes_once_is_corrected_after_silence() -> None:
    once = (
        "REGISTER QUERY q STARTING AT 1970-01-01T00:01:00Z { MATCH (a) WITHIN PT2M ON STREAM s RETURN count(a) AS n }"
    )
    worker = Worker(idle_job(once))
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    rows = worker.batch([control(idle={"s": 2 * MINUTE})])
    assert (told(rows), status(rows)["done"]) == ([(1, 1)], False)
    rows = worker.batch([*packed("s", [event(0.7, 2), event(1.5, 3)]), control()])
    assert (told(rows), status(rows)["done"]) == ([(1, 1), (1, 2)], True)


def test_a_silent_stream_keeps_its_lateness() -> None:
    worker = Worker(idle_job(lateness=parse_duration("PT30S")))
    worker.batch([*packed("s", [event(0.9, 1)]), control()])
    assert told(worker.batch([control(idle={"s": MINUTE // 2})])) == []
    assert told(worker.batch([control(idle={"s": MINUTE})])) == [(1, 1)]


def test_the_horizon_of_silence_bounds_how_far_back_corrections_go() -> None:
    worker = Worker(idle_job(policy="correct:PT1M"))
    worker.batch([*packed("s", [event(0.5, 1)]), control()])
    assert told(worker.batch([control(idle={"s": 2 * MINUTE})])) == [(1, 1), (2, 1)]
    rows = worker.batch([*packed("s", [event(0.7, 2), event(1.6, 3), event(4, 4)]), control()])
    assert (told(rows), status(rows)["late"]) == ([(2, 1), (2, 2), (3, 1)], 1)


def test_other_queries_on_a_restart_find_the_windows_of_the_streams() -> None:
    kept, gone = count("kept", "PT10M"), count("gone")
    worker = Worker(job(kept, gone))
    worker.batch([*packed("s", [event(0.5, 1), event(1.5, 2), event(2.5, 3)]), control()])
    # The new query stands before the kept one: that the text around a query changes does not make it another.
    worker.job = replace(worker.job, queries=queries_of(f"{count('new', 'PT5M')}\n\n{kept}"))
    cells.forget_everything()
    rows = worker.batch([control()])
    assert rows[0].detail() == {"new": ["new"], "dropped": ["gone"], "kept": ["kept"]}
    rows = worker.batch([*packed("s", [event(3.5, 4)]), control()])
    assert [(parts.query, parts.at // MINUTE, parts.rows[0][0]) for parts in answers_of(rows)][-2:] == [
        ("new", 3, 3),
        ("kept", 3, 3),
    ]


def test_a_query_that_reads_another_s_stream_goes_as_far_as_that_whenever_the_source_is_closed() -> None:
    text = """
        REGISTER STREAM made AS CONSTRUCT { ?s ?p ?o } FROM STREAM <s> [RANGE 3m STEP 3m] WHERE { ?s ?p ?o }
        REGISTER QUERY q AS ASK FROM STREAM <made> [RANGE 1m STEP 1m] WHERE { ?s ?p ?o }"""
    triple = Triple(Iri("n:a"), Iri("n:p"), Iri("n:b"))
    events = packed("s", [Event(2 * MINUTE, triples=(triple,))])
    at_once, closed_before = Worker(job(text), name="at once"), Worker(job(text), name="closed before")
    at_once.batch([*events, control(end=True, closed=["s"])])
    closed_before.batch([*events, control(closed=["s"])])
    closed_before.batch([control(end=True, closed=["s"])])
    instants = [
        [(parts.query, parts.at // MINUTE) for parts in answers_of(worker.rows)] for worker in (at_once, closed_before)
    ]
    assert instants[0] == instants[1] == [("made", 3), ("q", 3)]


def test_a_reader_does_not_go_ahead_of_a_maker_whose_source_is_closed_and_that_will_be_drained() -> None:
    text = """
        REGISTER STREAM made AS CONSTRUCT { ?s ?p ?o } FROM STREAM <s> [RANGE 6m STEP 3m] WHERE { ?s ?p ?o }
        REGISTER QUERY q AS SELECT ?o FROM STREAM <made> [RANGE 2m STEP 7m] WHERE { ?s ?p ?o }"""
    triple = Triple(Iri("n:a"), Iri("n:p"), Iri("n:b"))
    events = packed("s", [Event(2 * MINUTE, triples=(triple,))])
    at_once, closed_before = (Worker(job(text, drain=True), name=name) for name in ("at once", "closed before"))
    at_once.batch([*events, control(end=True, closed=["s"])])
    closed_before.batch([*events, control(closed=["s"])])
    closed_before.batch([control(end=True, closed=["s"])])
    found = [
        [(parts.query, parts.at // MINUTE, len(parts.rows)) for parts in answers_of(worker.rows)]
        for worker in (at_once, closed_before)
    ]
    assert sorted(found[0]) == sorted(found[1])
    assert ("q", 7, 1) in found[0], "the answer at 6 m is in the window at 7 m"


def test_triples_stay_blocks_in_the_state_without_those_that_were_late() -> None:
    text = "REGISTER QUERY q AS SELECT ?o FROM STREAM <s> [RANGE 1m STEP 1m] WHERE { <n:a> <n:p> ?o }"

    def said(minute: float) -> Event:
        return Event(int(minute * MINUTE), triples=(Triple(Iri("n:a"), Iri("n:p"), Literal(str(minute))),))

    batches = [[said(0.5), said(0.2), said(0.7)], [said(0.6), said(0.8)], [said(1.5), said(1.2)], [said(3.5)]]
    steady, forgetful = Worker(job(text), name="steady"), Worker(job(text), name="forgetful")
    for events in batches:
        steady.batch([*packed("s", events), control()])
    for events in batches:
        cells.forget_everything()
        forgetful.batch([*packed("s", events), control()])
        heads = [chunks.head(cell_chunks.unlabelled(*one)[1]) for one in forgetful.state.chunks()]
        assert [head.layout for head in heads] == [chunks.ChunkLayout.BLOCK], "small ones are one"
    assert status(forgetful.rows)["late"] == 3
    assert [(row.kind, row.typed, row.data) for row in forgetful.rows if row.kind != "status"] == [
        (row.kind, row.typed, row.data) for row in steady.rows if row.kind != "status"
    ]
    told_objects = [[str(row[0].lexical) for row in parts.rows] for parts in answers_of(steady.rows)]
    assert [sorted(objects) for objects in told_objects] == [["0.5", "0.7", "0.8"], ["1.5"]]


def test_a_failing_query_is_told_once_and_stops_alone() -> None:
    failing = count("failing").replace("count(a) AS n", "1 / (count(a) - 2) AS n")
    worker = Worker(job(failing, count("fine"), evaluation=EvaluationOptions(on_error="fail")))
    worker.batch([*packed("s", [event(0.5, 1), event(0.6, 2), event(1.5, 3)]), control()])
    cells.forget_everything()
    worker.batch([*packed("s", [event(2.5, 3)]), control()])
    assert [row.query for row in worker.rows if row.kind == "failure"] == ["failing"]
    assert told(worker.rows) == [(1, 2), (2, 3)]


def test_rows_that_fail_are_counted_over_restarts_with_the_first_error_and_the_last() -> None:
    dividing = count("dividing").replace("count(a) AS n", "1 / (count(a) - 2) AS n")
    worker = Worker(job(dividing))
    worker.batch([*packed("s", [event(0.5, 1), event(0.6, 2), event(1.5, 3)]), control()])
    cells.forget_everything()
    worker.batch([*packed("s", [event(5.5, 3, 4), event(9.5)]), control()])
    said = status(worker.rows)
    standing = said["queries"]["dividing"]  # type: ignore[index]
    assert (said["skipped"], said["failed"], standing["skipped"]) == (2, 0, 2)
    assert standing["first_skipped"]["diagnostics"][0]["code"] == "SER-304"
    assert standing["last_skipped"]["text"] == dividing


def test_a_state_of_another_format_is_refused() -> None:
    worker = Worker(job())
    worker.batch([control()])
    assert worker.state.the_head is not None
    worker.state.the_head = worker.state.the_head.replace(b'"format": 4', b'"format": 99')
    cells.forget_everything()
    with pytest.raises(EngineError, match="format 99"):
        worker.batch([control()])


def test_relationships_without_ids_keep_their_ids_over_a_rebuild() -> None:
    text = (
        "REGISTER QUERY q STARTING AT 1970-01-01T00:01:00Z { MATCH ()-[r]->() WITHIN PT10M ON STREAM s "
        "EMIT collect(id(r)) AS ids SNAPSHOT EVERY PT1M }"
    )
    link = (Relationship(None, "R", 1, 2),)

    def linked(minute: float) -> Event:
        return Event(int(minute * MINUTE), (Node(1), Node(2)), link)

    steady, forgetful = Worker(job(text), name="steady"), Worker(job(text), name="forgetful")
    for minute in (0.1, 0.2, 1.5, 2.5, 3.5):
        steady.batch([*packed("s", [linked(minute), linked(minute - 5), linked(minute)]), control()])
    for minute in (0.1, 0.2, 1.5, 2.5, 3.5):
        cells.forget_everything()
        forgetful.batch([*packed("s", [linked(minute), linked(minute - 5), linked(minute)]), control()])
    assert [row.typed for row in forgetful.rows] == [row.typed for row in steady.rows]
    assert len(answers_of(steady.rows)) == 3


def test_relationships_without_ids_keep_their_ids_in_a_worker_that_missed_batches() -> None:
    text = (
        "REGISTER QUERY q STARTING AT 1970-01-01T00:01:00Z { MATCH ()-[r]->() WITHIN PT10M ON STREAM s "
        "EMIT id(r) AS id SNAPSHOT EVERY PT1M }"
    )
    link = (Relationship(None, "R", 1, 2),)
    batches = [[Event(int(minute * MINUTE), (Node(1), Node(2)), link)] * 2 for minute in (0.1, 0.2, 0.3, 1.5, 2.5)]
    steady, late = Worker(job(text), name="steady"), Worker(job(text), name="late")
    for events in batches:
        steady.batch([*packed("s", events), control()])
    for number, events in enumerate(batches):
        stale = copy.deepcopy(cells._living["late"]) if number in (1, 3) else None
        late.batch([*packed("s", events), control()])
        if stale is not None:
            cells._living["late"] = stale
    assert [row.typed for row in late.rows] == [row.typed for row in steady.rows]
    ids = [[row[0] for row in parts.rows] for parts in answers_of(steady.rows)]
    assert [len(set(one)) for one in ids] == [6, 8]


def test_the_status_tells_what_the_operators_of_each_query_have_done() -> None:
    worker = Worker(job(count("one"), count("two", "PT5M")))
    worker.batch([*packed("s", [event(0.5, 1), event(1.5, 2)]), control()])
    rows = worker.batch([*packed("s", [event(4.5, 3)]), control(end=True, closed=["s"])])
    works = status(rows)["operators"]
    assert isinstance(works, dict)
    assert works.keys() == {"one", "two"}
    ids, window = [work[0] for work in works["one"]], works["one"][0]
    assert ids == list(range(len(ids)))
    assert (window[1], window[3]) == (3, 1), "three events came, and one is left"
    assert works["two"][0][3] == 3


def test_a_state_that_is_not_read_again_holds_only_its_head_and_the_answers_are_the_same() -> None:
    kept, fleeting = Worker(job(), name="kept"), Worker(job(), name="fleeting")
    fleeting.state.durable = False
    for minute in range(9):
        rows = [*packed("s", [event(minute + 0.5, minute)]), control()]
        assert told(kept.batch(rows)) == told(fleeting.batch(rows))
    assert kept.state.the_chunks
    assert kept.state.the_parts
    assert not fleeting.state.the_chunks
    assert not fleeting.state.the_parts
    assert status(fleeting.rows)["events"] == status(kept.rows)["events"] == 9
    cells.forget_everything()
    with pytest.raises(EngineError, match="without a checkpoint"):
        fleeting.batch([control()])


def test_blocks_of_a_batch_that_no_window_needs_any_more_are_never_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_chunks, "_SMALL_EVENTS", 1)
    worker = Worker(job())
    blocks = [graph_block(event(minute + part / 4, part) for part in range(4)) for minute in range(30)]
    pack = chunks.pack
    made: list[object] = []

    def counted(events: Iterable[Event]) -> bytes:
        made.append(events)
        return pack(events)

    monkeypatch.setattr(chunks, "pack", counted)
    rows = [PackedRow("0", "chunk", b"", "s", place=place, events=block) for place, block in enumerate(blocks)]
    worker.batch([*rows, control()])
    assert 0 < sum(isinstance(one, GraphBlock) for one in made) == len(worker.state.the_chunks) < 5
    assert status(worker.rows)["bytes"] == sum(chunks_size(data) for data in worker.state.the_chunks.values())


def chunks_size(stored: bytes) -> int:
    return len(stored) - 4 - int.from_bytes(stored[:4], "little")
