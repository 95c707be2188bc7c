"""The log of results: numbers without gaps, within bounds, whatever batches come again."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch.errors import EngineError
from anabranch.formats.answers import AnswerParts, head, json_text, to_typed
from anabranch.formats.values import to_json
from anabranch.server.limits import Limits
from anabranch.server.problems import ServerError
from anabranch.server.results import FRESH, Rendering, ResultLog
from anabranch.server.subscriptions import Subscription, Wakers
from anabranch.sinks.base import RenderedAnswer


def told(query: str, number: int, rows: int = 1) -> RenderedAnswer:
    at = 1_000_000 * number
    typed = to_typed(AnswerParts(query, at, "snapshot", "", at - 5, at, ["n"], [(row,) for row in range(rows)]))
    return RenderedAnswer(query, number, at, rows, typed=typed)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_result_has_all_that_is_said_of_it_and_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "r", Limits(rows_per_result=2))
    log.write(0, [told("q", 0, rows=5)])
    assert log.read("q")[0].to_dict() == {
        "seq": 0,
        "query": "q",
        "at": "1970-01-01T00:00:00Z",
        "op": "snapshot",
        "win_start": "1969-12-31T23:59:59.999995Z",
        "win_end": "1970-01-01T00:00:00Z",
        "columns": ["n"],
        "rows": [[0], [1]],
        "total": 5,
        "truncated": True,
    }
    log.shut()


@pytest.mark.parametrize("seed", range(6))
def test_it_is_a_list_of_the_last_results_of_each_query_over_restarts(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    clock = Clock()
    limits = Limits(results_kept=draw.choice([3, 10, 50]), result_bytes_kept=draw.choice([2_000, 1 << 20]))
    log = ResultLog(tmp_path / "r", limits, clock)
    given: dict[str, list[int]] = {"a": [], "b": []}
    last: list[RenderedAnswer] = []
    for batch in range(60):
        clock.now += draw.choice([0.1, FRESH + 1])
        came = []
        for query, numbers in given.items():
            for _ in range(draw.randrange(4)):
                came.append(told(query, len(numbers)))
                numbers.append(len(numbers))
        log.write(batch, came)
        last = came
        if draw.random() < 0.2:
            log.write(batch, last)  # after a crash the batch comes again
        if draw.random() < 0.1:
            log.shut()
            log = ResultLog(tmp_path / "r", limits, clock)
        for query, numbers in given.items():
            kept = [one.seq for one in log.read(query, limit=10_000)]
            assert kept == numbers[len(numbers) - len(kept) :]
            assert log.last(query) == len(numbers) - 1
            if limits.result_bytes_kept == 1 << 20:
                assert len(kept) >= min(limits.results_kept, len(numbers))
            after = draw.randrange(len(numbers) + 1) - 1
            if kept and (after == -1 or after >= kept[0] - 1):
                found = [one.seq for one in log.read(query, after, 5)]
                assert found == [one for one in kept if one > after][:5]
    log.shut()


def test_what_is_no_longer_kept_is_refused_with_the_oldest(tmp_path: Path) -> None:
    clock = Clock()
    log = ResultLog(tmp_path / "r", Limits(results_kept=3), clock)
    for number in range(10):
        clock.now += FRESH + 1
        log.write(number, [told("q", number)])
    with pytest.raises(ServerError) as refused:
        log.read("q", 4)
    assert refused.value.code == "SRV-011"
    assert refused.value.details == {"oldest": 7}
    assert [one.seq for one in log.read("q", 6)] == [7, 8, 9]
    assert [one.seq for one in log.read("q", -1)] == [7, 8, 9]
    log.shut()


def test_numbers_go_on_when_a_run_begins_anew(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "r", Limits())
    log.write(0, [told("q", 0), told("q", 1)])
    log.begin_anew()
    log.write(0, [told("q", 0), told("q", 1)])
    log.write(0, [told("q", 0), told("q", 1)])
    assert [one.seq for one in log.read("q")] == [0, 1, 2, 3]
    log.shut()
    again = ResultLog(tmp_path / "r", Limits())
    again.write(1, [told("q", 1), told("q", 2)])
    assert [one.to_dict()["seq"] for one in again.read("q")] == [0, 1, 2, 3, 4]
    again.shut()


def test_a_burst_larger_than_what_is_kept_reaches_who_listens(tmp_path: Path) -> None:
    async def listened() -> list[int]:
        log = ResultLog(tmp_path / "r", Limits(results_kept=5))
        subscription = Subscription(log, Wakers(log), Limits())
        await asyncio.to_thread(log.write, 0, [told("q", number) for number in range(2_000)])
        found: list[int] = []
        async for one in subscription:
            found.append(one["seq"])
            if len(found) == 2_000:
                break
        subscription.close()
        log.shut()
        return found

    assert asyncio.run(listened()) == list(range(2_000))


def test_who_is_behind_for_too_long_is_cut_off_and_who_catches_up_is_not(tmp_path: Path) -> None:
    async def paced() -> None:
        limits, clock = Limits(client_queue=10, client_patience=5.0), Clock()
        log = ResultLog(tmp_path / "r", limits)
        slow = Subscription(log, Wakers(log), limits, ["q"], clock=clock)
        quick = Subscription(log, Wakers(log), limits, ["q"], clock=clock)
        log.write(0, [told("q", number) for number in range(1_200)])
        await slow.batch()
        assert [len(await quick.batch()) for _ in range(3)] == [500, 500, 200]
        clock.now += 6
        log.write(1, [told("q", 1_200)])
        assert len(await quick.batch()) == 1
        with pytest.raises(ServerError) as refused:
            await slow.batch()
        assert refused.value.code == "SRV-016"
        slow.close()
        quick.close()
        log.shut()

    asyncio.run(paced())


def test_several_queries_come_in_the_order_in_which_they_were_told(tmp_path: Path) -> None:
    async def listened() -> list[tuple[str, int]]:
        log = ResultLog(tmp_path / "r", Limits())
        log.write(0, [told("a", 0)])
        subscription = Subscription(log, Wakers(log), Limits(), None, -1)
        log.write(1, [told("b", 0), told("a", 1), told("b", 1)])
        found = [(one.query, one.seq) for one in await subscription.batch()]
        log.write(2, [told("c", 0)])
        found += [(one.query, one.seq) for one in await subscription.batch()]
        subscription.close()
        log.shut()
        return found

    assert asyncio.run(listened()) == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("c", 0)]


def test_numbers_outlive_results_and_queries(tmp_path: Path) -> None:
    limits = Limits(result_bytes_kept=1_000)
    log = ResultLog(tmp_path / "r", limits)
    log.write(0, [told("quiet", 0), told("deleted", 0), told("deleted", 1)])
    log.forget("deleted")
    log.write(1, [told("loud", number) for number in range(20)])
    log.shut()
    again = ResultLog(tmp_path / "r", limits)
    assert (again.last("quiet"), again.last("deleted"), sorted(again.queries())) == (0, -1, ["loud", "quiet"])
    again.write(1, [told("quiet", 0)])  # the batch comes again
    assert again.read("quiet") == []
    again.begin_anew()
    again.write(0, [told("quiet", 0), told("deleted", 0)])
    assert (again.last("quiet"), again.last("deleted")) == (1, 2)
    again.shut()


def test_a_query_that_is_back_gets_no_number_twice(tmp_path: Path) -> None:
    """Killed before its batch was over, the run counts again from a number that was given to the deleted query."""
    log = ResultLog(tmp_path / "r", Limits())
    log.write(0, [told("q", number) for number in range(5)])
    log.forget("q")
    log.write(0, [told("q", 2), told("q", 3)])
    log.shut()
    again = ResultLog(tmp_path / "r", Limits())
    again.write(0, [told("q", 2), told("q", 3)])
    again.write(1, [told("q", 4)])
    assert [(one.seq, one.at) for one in again.read("q")] == [(5, 2_000_000), (6, 3_000_000), (7, 4_000_000)]
    again.shut()


def test_a_disk_that_was_full_for_a_while_loses_nothing(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "r", Limits())
    log.write(0, [told("q", 0)])
    pages = log._disk.execute("PRAGMA page_count").fetchone()[0]
    log._disk.execute(f"PRAGMA max_page_count = {pages}")
    for _ in range(2):
        with pytest.raises(EngineError, match="cannot keep results"):
            log.write(1, [told("q", 1, rows=5_000)])
        assert [one.seq for one in log.read("q")] == [0]
    log._disk.execute("PRAGMA max_page_count = 1000000")
    log.write(1, [told("q", 1, rows=5_000)])
    assert [one.seq for one in log.read("q")] == [0, 1]
    log.shut()


def test_who_listens_to_a_query_that_is_deleted_goes_on_when_it_is_back(tmp_path: Path) -> None:
    async def listened() -> list[int]:
        log = ResultLog(tmp_path / "r", Limits())
        subscription = Subscription(log, Wakers(log), Limits(), ["q"])
        log.write(0, [told("q", 0)])
        assert len(await subscription.batch()) == 1
        waiting = asyncio.ensure_future(subscription.batch())
        await asyncio.sleep(0)
        log.write(1, [told("q", 1), told("q", 2)])
        log.forget("q")  # before the client was given them
        await asyncio.sleep(0.01)
        log.write(2, [told("q", 3)])
        found = [one.seq for one in await waiting]
        subscription.close()
        log.shut()
        return found

    assert asyncio.run(listened()) == [3]


def test_a_row_that_is_rendered_again_is_the_same_to_the_byte() -> None:
    rows: list[tuple[Any, ...]] = [("a", 1, 2.5), ("\ud800", None, True), ("a", 1, 2.5)]
    columns = ("x", "y", "z")
    kept = Rendering(2)
    for seq, some in enumerate((rows, rows[:1], [], rows)):
        typed = to_typed(AnswerParts("q", 0, "snapshot", "", 0, 60, columns, some))
        said = {
            "seq": seq,
            **head("q", 0, "snapshot", "", 0, 60),
            "columns": list(columns),
            "rows": [[to_json(value) for value in row] for row in some[:2]],
            "total": len(some),
            "truncated": len(some) > 2,
        }
        one = RenderedAnswer("q", seq, 0, len(some), typed=typed)
        assert kept.render(seq, one).body == json_text(said) == Rendering(2).render(seq, one).body


# --- results as changes -----------------------------------------------------------------------------------------------


def snapshot(number: int, rows: list[tuple[Any, ...]], query: str = "q") -> RenderedAnswer:
    at = 1_000_000 * number
    typed = to_typed(AnswerParts(query, at, "snapshot", "", at - 5, at, ("n", "text"), rows))
    return RenderedAnswer(query, number, at, len(rows), typed=typed)


def reopened(path: Path, limits: Limits) -> list[bytes]:
    """Read all kept results of a log from its file alone."""
    log = ResultLog(path, limits)
    try:
        return [one.body for one in log.read("q", limit=10_000)]
    finally:
        log.shut()


def stored_bytes(path: Path) -> int:
    with sqlite3.connect(path) as disk:
        found = [disk.execute(f"SELECT coalesce(sum(length(body)), 0) FROM {one}") for one in ("results", "wholes")]
        return sum(one.fetchone()[0] for one in found)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 30), max_size=6), st.integers(0, 40), st.booleans()), min_size=1, max_size=20
    ),
    st.integers(1, 12),
    st.sampled_from([1_000, 10_000, 64 << 20]),
)
def test_results_stored_as_changes_are_read_as_they_were_rendered(
    tmp_path: Path, changes: list[tuple[list[int], int, bool]], kept: int, most: int
) -> None:
    path = Path(mkdtemp(dir=tmp_path)) / "r"
    limits = Limits(results_kept=kept, result_bytes_kept=most)
    log = ResultLog(path, limits)
    rows: list[tuple[Any, ...]] = [(number, "long enough " * 3) for number in range(30)]
    expected: list[bytes] = []
    for number, (toggled, size, is_turned) in enumerate(changes):
        for one in toggled:
            row = (one, "ä\n\u2028" * 5)
            rows = [other for other in rows if other != row] if row in rows else [*rows[:size], row, *rows[size:]]
        if is_turned:
            rows = rows[::-1]
        answer = snapshot(number, rows)
        log.write(number, [answer])
        expected.append(Rendering(limits.rows_per_result).render(number, answer).body)
    log.shut()
    found = reopened(path, limits)
    assert len(found) <= kept
    assert found == expected[len(expected) - len(found) :]
    assert stored_bytes(path) <= most
    if most > 1_000_000:
        assert len(found) == min(kept, len(expected))


def test_unchanged_rows_are_stored_once(tmp_path: Path) -> None:
    rows = [(number, "x" * 100) for number in range(500)]
    limits = Limits()
    log = ResultLog(tmp_path / "r", limits)
    for number in range(150):
        log.write(number, [snapshot(number, [*rows[1:], (number, "new")])])
    log.shut()
    bodies = reopened(tmp_path / "r", limits)
    assert len(bodies) == 150
    assert stored_bytes(tmp_path / "r") < sum(map(len, bodies)) / 30


def test_wholes_go_with_their_last_change(tmp_path: Path) -> None:
    limits = Limits(results_kept=3)
    log = ResultLog(tmp_path / "r", limits)
    rows = [(number, "x" * 100) for number in range(50)]
    for number in range(250):
        log.write(number, [snapshot(number, rows), snapshot(number, rows, "other")])
    log.forget("other")
    log.shut()
    with sqlite3.connect(tmp_path / "r") as disk:
        wholes = disk.execute("SELECT count(*) FROM wholes").fetchone()[0]
    assert wholes <= 2
    assert len(reopened(tmp_path / "r", limits)) == 3


def test_a_log_of_whole_results_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with sqlite3.connect(path) as disk:
        disk.executescript(
            """CREATE TABLE results (id INTEGER PRIMARY KEY, query TEXT NOT NULL, seq INTEGER NOT NULL,
                   at INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (query, seq));
               INSERT INTO results (query, seq, at, body) VALUES ('q', 0, 5, X'7b7d');
               PRAGMA user_version = 1;"""
        )
    log = ResultLog(path, Limits())
    rows = [(number, "x" * 100) for number in range(50)]
    for number in (1, 2):
        log.write(number, [snapshot(number, rows)])
    log.shut()
    first, *rest = reopened(path, Limits())
    assert first == b"{}"
    assert [len(json.loads(one)["rows"]) for one in rest] == [50, 50]
