"""Sessions on Spark: one Spark for all of them, started when the first needs it, or before.

A process has one Spark at most, and that of the tests may be the session of other tests: these have their own.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.server.conftest import COUNTED, minutes, until

from anabranch.cli.demo_auctions import AuctionDemo, furnish
from anabranch.engine.timing import StreamTiming
from anabranch.errors import EngineError
from anabranch.server.hub import Hub
from anabranch.server.limits import Limits
from anabranch.server.session import LiveSession
from anabranch.spark.session import SparkSettings
from anabranch.ui.presets import PRESETS, prepared

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark server")]


def in_its_own_process(story: Callable[[Path], None], folder: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=story, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == 0


def two_sessions(folder: Path) -> None:
    timing = StreamTiming()  # without silence: on a slow machine it would bring answers by the clock
    with Hub(folder, "spark", spark=SparkSettings("local[2]"), timing=timing) as hub:
        sessions = [hub.create(name) for name in ("a", "b")]
        for session in sessions:
            session.add_stream("rides")
            session.register(COUNTED)
            session.push("rides", minutes(5))
        for session in sessions:
            until(lambda: session.query("counted").last_seq >= 3, 90)  # noqa: B023  asked before the next turn
            assert [one["rows"] for one in session.results("counted")] == [[[1]], [[2]], [[3]], [[4]]]
        alone = hub.create("alone")
        alone.add_graph("g", b'{"nodes": [{"id": 1, "labels": ["Bike"]}], "relationships": []}')
        alone.register("REGISTER QUERY known { MATCH (b:Bike) ON GRAPH g RETURN count(b) AS n }")
        until(lambda: alone.ended, 90)
        assert [one["rows"] for one in alone.results("known")] == [[[1]]]
        first = sessions[0]
        first.register(COUNTED.replace("counted", "again"))
        first.settle(60)
        first.push("rides", minutes(3, start=5))
        until(lambda: first.query("counted").last_seq >= 6, 90)
        assert [one["rows"] for one in first.results("counted")] == [[[n]] for n in range(1, 8)]
        until(lambda: first.query("again").last_seq >= 0, 60)
        hub.delete("a")
    with Hub(folder, "spark", spark=SparkSettings("local[2]"), timing=timing) as hub:
        hub.warm_up()
        assert [one.name for one in hub.sessions()] == ["b", "alone"]
        session = hub.session("b")
        session.push("rides", minutes(2, start=5))
        until(lambda: session.query("counted").last_seq >= 5, 90)
        assert [one["seq"] for one in session.results("counted")] == list(range(6))
        until(lambda: hub.session("alone").ended, 60)
        assert [one["rows"] for one in hub.session("alone").results("known")] == [[[1]]]


def test_two_sessions_share_one_spark_and_queries_come_while_they_run(tmp_path: Path) -> None:
    in_its_own_process(two_sessions, tmp_path)


def java() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]


def java_dies(folder: Path) -> None:
    with Hub(folder, "spark", spark=SparkSettings("local[2]")) as hub:
        session = hub.create("a")
        session.add_stream("rides")
        session.register(COUNTED)
        session.push("rides", minutes(3))
        until(lambda: session.query("counted").last_seq >= 1, 90)
        [died] = java()
        died.kill()
        until(lambda: session.error is not None, 60)
        assert session.error is not None
        assert "was killed by signal 9" in session.error["message"]
        assert session.error["hint"].endswith(f"its log is {folder / 'spark' / 'spark.log'}")
        session.push("rides", minutes(3, start=3))
        session.start()
        until(lambda: session.query("counted").last_seq >= 4, 120)
        assert [one["rows"] for one in session.results("counted")] == [[[n]] for n in range(1, 6)]


def test_a_session_goes_on_with_a_java_process_of_its_own_after_one_died(tmp_path: Path) -> None:
    in_its_own_process(java_dies, tmp_path)


ENDLESS = """
REGISTER QUERY endless STARTING AT 2022-10-14T14:45 {
  MATCH (b:Bike) WITHIN PT1H
  EMIT size([x IN range(1, 100000) WHERE any(y IN range(1, 100000) WHERE x = -y)]) AS n SNAPSHOT EVERY PT1M
}
"""


def endless(folder: Path) -> None:
    with Hub(folder, "spark", Limits(steps=10**15), spark=SparkSettings("local[2]")) as hub:
        session = hub.create("s")
        session.add_stream("rides")
        session.register(COUNTED)
        session.register(ENDLESS)
        session.push("rides", minutes(3))
        until(computes, 120)
        session.delete_query("endless")
        until(lambda: not computes(), 15)
        until(lambda: session.query("counted").last_seq >= 1, 60)
        session.register(ENDLESS)
        until(computes, 120)
        hub.delete("s")
        until(lambda: not computes(), 15)


def computes() -> bool:
    """Whether one Python worker has a processor for itself, for longer than a short evaluation needs."""
    workers = [one for one in psutil.Process().children(recursive=True) if "python" in one.name()]
    before = {one.pid: _seconds(one) for one in workers}
    time.sleep(4)
    return any(_seconds(one) - before[one.pid] > 2 for one in workers)


def _seconds(process: psutil.Process) -> float:
    try:
        return float(process.cpu_times().user)
    except psutil.Error:
        return 0.0


def test_a_query_or_a_session_whose_evaluation_would_not_end_is_deleted_and_its_worker_ends(tmp_path: Path) -> None:
    in_its_own_process(endless, tmp_path)


def ends_at_once(folder: Path) -> None:
    hub = Hub(folder, "spark", spark=SparkSettings("local[2]"))
    hub.start()
    hub.warm_up()
    hub.close()
    assert hub._spark is not None
    with pytest.raises(EngineError, match="stopping"):
        hub._spark.get()
    assert java() == []
    assert not (folder / "spark" / "scratch").exists()


def test_a_server_that_ends_while_spark_starts_leaves_no_java_behind(tmp_path: Path) -> None:
    in_its_own_process(ends_at_once, tmp_path)


def all_examples(folder: Path) -> None:
    with Hub(folder, "spark", spark=SparkSettings("local[2]")) as hub:
        furnish(hub, AuctionDemo("spark"))
        for preset in PRESETS:
            session = prepared(hub, preset)
            [query] = session.register(preset.text(), replace=True)
            session.start()
            until(lambda: any(one["total"] for one in kept(session, query.name)), 120)  # noqa: B023
            session.pause()


def kept(session: LiveSession, query: str) -> list[dict[str, Any]]:
    return session.results(query, -1, 1000) if session.query(query).last_seq >= 0 else []


def test_every_example_of_the_page_runs_beside_the_demo_and_has_rows(tmp_path: Path) -> None:
    in_its_own_process(all_examples, tmp_path)
