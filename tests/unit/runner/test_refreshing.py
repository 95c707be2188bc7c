"""Static graphs that change while a run goes on: what an offset says of them, and what a cell sees."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.support.cells import Worker, answers_of, control, packed
from tests.support.jobs import job_for
from tests.unit.runner.test_batch_planner import Clock, Listed

from anabranch.errors import EngineError, StreamError
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.terms import Iri, Triple
from anabranch.model.triples import TripleGraph
from anabranch.runner import cell as cells
from anabranch.runner.batch_planner import BatchPlanner
from anabranch.runner.job import Job, load_job, save_job
from anabranch.runner.refreshing import GraphCopies, Refresher, RefreshSettings, copies, load_copy, refresh_settings
from anabranch.sources.base import Decoding, Limit, OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.sources.static import GraphFile

EX = "http://ex/"
SECOND = 1_000_000
EVERY = 10 * SECOND


class City:
    """A file that says in which district the gate is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.parent / "run" / "graphs"
        self.file = GraphFile("default", (str(path),))
        self._writes = 0

    def write(self, district: str, text: str | None = None) -> None:
        said = f"<{EX}gate> <{EX}in> <{EX}{district}> .\n" if text is None else text
        self.path.write_text(said)
        self._writes += 1
        os.utime(self.path, ns=(self._writes, self._writes))

    def refresher(self, clock: Clock | None = None) -> Refresher:
        return Refresher(RefreshSettings((self.file,), EVERY, str(self.folder)), clock or Clock())


@pytest.fixture
def city(tmp_path: Path) -> City:
    found = City(tmp_path / "city.ttl")
    found.write("north")
    return found


def graph(district: str) -> set[Triple]:
    return {Triple(Iri(f"{EX}gate"), Iri(f"{EX}in"), Iri(EX + district))}


def seen(noted: GraphCopies) -> set[Triple]:
    found = load_copy(copies(noted)["default"])
    assert isinstance(found, TripleGraph)
    return set(found)


# --- the refresher ----------------------------------------------------------------------------------------------------


def test_the_graph_of_the_beginning_is_kept_too_so_that_the_first_batch_sees_it_again(city: City) -> None:
    noted = city.refresher().ahead(None)
    city.write("south")
    assert seen(json.loads(json.dumps(noted))) == graph("north")


def test_files_are_looked_at_once_in_a_while(city: City) -> None:
    clock = Clock()
    refresher = city.refresher(clock)
    first = refresher.ahead(None)
    city.write("south")
    clock.now += 9.9
    assert refresher.ahead(first) == first
    clock.now += 0.1
    second = refresher.ahead(first)
    assert seen(second) == graph("south")
    clock.now += 100
    assert refresher.ahead(second) == second, "nothing has changed since"


def test_after_a_restart_files_are_looked_at_at_once(city: City) -> None:
    noted = city.refresher().ahead(None)
    assert city.refresher().ahead(noted) == noted
    city.write("south")
    assert seen(city.refresher().ahead(noted)) == graph("south")


@pytest.mark.parametrize("text", ["<http://ex/gate> <http://ex/in>", None], ids=["half written", "away"])
def test_a_file_that_cannot_be_read_leaves_the_graph_that_was_there_until_it_can(city: City, text: str | None) -> None:
    clock = Clock()
    refresher = city.refresher(clock)
    noted = refresher.ahead(None)
    if text is None:
        city.path.unlink()
    else:
        city.write("", text)
    clock.now += 10
    assert refresher.ahead(noted) == noted
    city.write("south")
    clock.now += 10
    assert seen(refresher.ahead(noted)) == graph("south")


def test_a_file_that_is_away_at_the_beginning_is_no_graph_yet(city: City) -> None:
    city.path.unlink()
    clock = Clock()
    refresher = city.refresher(clock)
    noted = refresher.ahead(None)
    assert copies(noted) == {}
    city.write("north")
    clock.now += 10
    assert seen(refresher.ahead(noted)) == graph("north")


def test_only_the_graphs_that_changed_are_copied_again(tmp_path: Path, city: City) -> None:
    (tmp_path / "people.json").write_text('{"nodes": [{"id": 1}]}')
    people = GraphFile("people", (str(tmp_path / "people.json"),))
    clock = Clock()
    refresher = Refresher(RefreshSettings((city.file, people), EVERY, str(city.folder)), clock)
    first = refresher.ahead(None)
    assert isinstance(load_copy(copies(first)["people"]), PropertyGraph)
    city.write("south")
    clock.now += 10
    second = refresher.ahead(first)
    assert second["people"] == first["people"]
    assert second["default"] != first["default"]


def test_copies_go_when_no_batch_can_ask_for_them_any_more(city: City) -> None:
    clock = Clock()
    refresher = city.refresher(clock)
    offsets = [refresher.ahead(None)]
    for district in ("south", "east"):
        city.write(district)
        clock.now += 10
        offsets.append(refresher.ahead(offsets[-1]))
    refresher.commit(offsets[1])
    assert [Path(copies(one)["default"]).exists() for one in offsets] == [False, True, True]
    refresher.commit(offsets[2])
    assert [Path(copies(one)["default"]).exists() for one in offsets] == [False, False, True]


def test_after_a_restart_nothing_goes_before_the_next_offset_is_known(city: City) -> None:
    clock = Clock()
    refresher = city.refresher(clock)
    answered = refresher.ahead(None)
    city.write("south")
    clock.now += 10
    under_way = refresher.ahead(answered)
    city.refresher().commit(answered)
    assert seen(under_way) == graph("south")


def test_without_an_interval_or_without_files_nothing_is_refreshed(city: City, tmp_path: Path) -> None:
    assert refresh_settings([city.file], None, tmp_path) is None
    assert refresh_settings([], EVERY, tmp_path) is None
    assert refresh_settings([city.file], EVERY, tmp_path) == RefreshSettings((city.file,), EVERY, str(tmp_path))


# --- the planner ------------------------------------------------------------------------------------------------------


def planner(city: City, clock: Clock, source: Listed) -> BatchPlanner:
    streams = [OpenedStream(source, Decoding(source.stream), source.stream)]
    return BatchPlanner(streams, "queries", Limit(), None, clock, city.refresher(clock))


def test_a_changed_graph_is_a_batch_of_its_own_and_the_control_names_the_copy(city: City) -> None:
    clock = Clock()
    plan = planner(city, clock, Listed("a", there={"": 3}))
    first = plan.ahead(plan.initial())
    assert plan.ahead(first) == first
    city.write("south")
    clock.now += 10
    second = plan.ahead(json.loads(json.dumps(first)))
    assert plan.pieces(first, second) == []
    assert BatchPlanner.control(second)["graphs"] == copies(second["graphs"])
    assert seen(second["graphs"]) == graph("south")
    assert plan.ahead(second) == second


def test_the_planner_lets_old_copies_go_when_a_batch_is_committed(city: City) -> None:
    clock = Clock()
    plan = planner(city, clock, Listed("a", there={"": 3}))
    first = plan.ahead(plan.initial())
    city.write("south")
    clock.now += 10
    second = plan.ahead(first)
    plan.commit(second)
    assert [path.name for path in city.folder.iterdir()] == [Path(copies(second["graphs"])["default"]).name]


def test_an_offset_without_refreshing_says_nothing_of_graphs() -> None:
    plan = BatchPlanner([OpenedStream(Listed("a", there={"": 1}), Decoding("a"), "a")], "queries", Limit())
    end = plan.ahead(plan.initial())
    assert "graphs" not in end
    assert BatchPlanner.control(end)["graphs"] == {}


# --- the cell ---------------------------------------------------------------------------------------------------------

QUERY = f"""
    PREFIX : <{EX}>
    REGISTER QUERY q AS SELECT ?car ?district FROM STREAM <{EX}s> [RANGE 5s STEP 5s]
    WHERE {{ :gate :registers ?car ; :in ?district }}"""


def job(city: City, **more: Any) -> Job:
    source = GeneratorSource(f"{EX}s", "graph", {"count": "0"})
    settings = {"graphs": {"default": city.file.load()}, "graph_files": (city.file,), "refresh": EVERY, **more}
    return job_for(QUERY, {f"{EX}s": source}, **settings)


def car(second: float) -> list[Any]:
    triple = Triple(Iri(f"{EX}gate"), Iri(f"{EX}registers"), Iri(f"{EX}car"))
    return packed(f"{EX}s", [Event(int(second * SECOND), triples=(triple,))])


def districts(rows: Any) -> list[tuple[int, str]]:
    return [
        (parts.at // SECOND, str(row[1].value).removeprefix(EX))  # type: ignore[union-attr]
        for parts in answers_of(rows)
        for row in parts.rows
    ]


def test_a_cell_sees_a_refreshed_graph_from_its_batch_on(city: City) -> None:
    refresher = city.refresher()
    worker = Worker(job(city))
    noted = refresher.ahead(None)
    worker.batch([*car(1), control(graphs=copies(noted))])
    assert districts(worker.batch([*car(6), control(graphs=copies(noted))])) == [(5, "north")]
    city.write("south")
    noted = city.refresher().ahead(noted)
    assert districts(worker.batch([*car(11), control(graphs=copies(noted))])) == [(10, "south")]


def test_a_cell_that_is_built_anew_sees_the_refreshed_graph_and_not_the_one_of_its_job(city: City) -> None:
    worker = Worker(job(city))
    first = city.refresher().ahead(None)
    worker.batch([*car(1), control(graphs=copies(first))])
    city.write("south")
    second = city.refresher().ahead(first)
    worker.batch([*car(6), control(graphs=copies(second))])
    cells.forget_everything()
    # A batch says where all graphs lie; that the state knows them too shows when it does not.
    assert districts(worker.batch([*car(11), control()])) == [(10, "south")]


def test_a_cache_from_before_the_change_catches_up_with_it(city: City) -> None:
    worker = Worker(job(city))
    first = city.refresher().ahead(None)
    worker.batch([*car(1), control(graphs=copies(first))])
    stale = cells._living.pop("cell")
    city.write("south")
    worker.batch([*car(6), control(graphs=copies(city.refresher().ahead(first)))])
    cells._living["cell"] = stale
    assert districts(worker.batch([*car(11), control()])) == [(10, "south")]


def test_a_batch_that_is_run_again_sees_what_it_saw_though_the_file_has_changed(city: City) -> None:
    worker = Worker(job(city))
    noted = city.refresher().ahead(None)
    worker.batch([*car(1), control(graphs=copies(noted))])
    batch = [*car(6), control(graphs=copies(noted))]
    worker._try_in_vain(batch)
    city.write("south")
    cells.forget_everything()
    worker.job = job(city)  # as after a restart: the job is made of the files as they are now
    assert districts(worker.batch(batch)) == [(5, "north")]


def test_without_refreshing_a_restart_sees_the_graphs_of_its_job(city: City) -> None:
    worker = Worker(job(city))
    worker.batch([*car(1), control(graphs=copies(city.refresher().ahead(None)))])
    city.write("south")
    cells.forget_everything()
    worker.job = job(city, refresh=None, graph_files=())
    assert districts(worker.batch([*car(6), control()])) == [(5, "south")]


def test_a_copy_of_an_earlier_version_is_refused_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "old.graph").write_bytes(pickle.dumps(TripleGraph(graph("north"))))
    with pytest.raises(StreamError, match=r"old\.graph: this is no copy of a graph, or one of an earlier version"):
        load_copy(str(tmp_path / "old.graph"))


def test_the_file_of_a_job_that_was_changed_is_not_looked_into(tmp_path: Path) -> None:
    query = "REGISTER QUERY q STARTING AT 2022-01-01T00:00 { MATCH (a) WITHIN PT1M EMIT a SNAPSHOT EVERY PT1M }"
    job = job_for(query, {})
    path = tmp_path / "job.bin"
    digest = save_job(job, path)
    assert path.stat().st_mode & 0o077 == 0
    assert load_job(str(path), digest).queries == job.queries
    load_job.cache_clear()
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(EngineError, match="somebody has changed it"):
        load_job(str(path), digest)


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("it was run",)
