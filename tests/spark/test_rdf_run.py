"""RDF through the whole pipeline: triples in lines, streams that queries make, two languages, and static graphs that
change while the run goes on."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.spark.test_sources_run import rows_of, text_of, told_here
from tests.support.jobs import job_for, queries_of
from tests.support.spark_runs import Runner
from tests.support.watched import Watched

from anabranch.model.terms import Iri, Triple
from anabranch.model.triples import TripleGraph
from anabranch.runner.job import Job
from anabranch.sinks.files import LinesFile
from anabranch.sources.files import FileSource
from anabranch.sources.following import FollowedFiles
from anabranch.sources.static import GraphFile

EX = "http://ex/"
TOLLS = f"{EX}tolls"
PREFIX = f"PREFIX : <{EX}>\n"
GATES = 5


def line(index: int) -> bytes:
    """A car passes a gate every two seconds; every third comes back after a while."""
    car, gate = index % 40 if index % 3 == 0 else index, index * 7 % GATES
    return f"{index * 2000}\t<{EX}gate{gate}> <{EX}registers> <{EX}car{car}> .\n".encode()


def lines(minutes: int) -> list[bytes]:
    return [line(index) for index in range(minutes * 30 + 1)]


def city() -> TripleGraph:
    return TripleGraph(
        Triple(Iri(f"{EX}gate{gate}"), Iri(f"{EX}in"), Iri(f"{EX}{'north' if gate % 2 else 'south'}"))
        for gate in range(GATES)
    )


DISTRICTS = f"""{PREFIX}
    REGISTER QUERY districts AS SELECT ?district (COUNT(DISTINCT ?car) AS ?cars)
    FROM STREAM <{TOLLS}> [RANGE 2m STEP 1m]
    WHERE {{ ?gate :registers ?car . ?gate :in ?district }} GROUP BY ?district ORDER BY ?district
"""


def job(text: str, path: Path, follow: bool = False, **more: object) -> Job:
    source = (FollowedFiles if follow else FileSource)(TOLLS, str(path))
    return job_for(text, {TOLLS: source}, **{"graphs": {"default": city()}, **more})


def test_lines_of_triples_are_told_as_without_spark_and_those_set_aside_are_so_once_over_a_restart(
    runner: Runner, tmp_path: Path
) -> None:
    given = lines(6)
    for index in range(20, len(given), 35):
        given[index] = b"not\xff a triple\n" if index % 2 else given[index - 15]  # broken, or late
    path = tmp_path / "tolls.nt.tsv"
    path.write_bytes(b"".join(given))
    asked = job(DISTRICTS, path, batch_events=60)
    out = tmp_path / "out.ndjson"
    for batches in (1, 1, 1000):
        watched = Watched()
        _, run = runner.run(asked, should_stop=watched.reached(batches), sinks=[LinesFile(out), watched])
    answers, letters = told_here(asked)
    assert out.read_text() == text_of(answers)
    assert sorted((tmp_path / "dead.ndjson").read_bytes().splitlines(keepends=True)) == sorted(letters)
    assert len(letters) == 5
    assert out.read_text().count("\n") == 1 + 2 * 6
    assert (run.progress.status["malformed"], run.progress.status["late"]) == (2, 3)


CHAIN = f"""{PREFIX}
    REGISTER QUERY busiest AS SELECT ?gate (SUM(?n) AS ?sum) (COUNT(*) AS ?reports)
    FROM STREAM <busy> [RANGE 5m STEP 1m] WHERE {{ ?gate :saw ?n }} GROUP BY ?gate ORDER BY ?gate

    REGISTER STREAM busy AS CONSTRUCT {{ ?gate :saw ?n }}
    FROM STREAM <{TOLLS}> [RANGE 2m STEP 1m]
    WHERE {{ SELECT ?gate (COUNT(?car) AS ?n) WHERE {{ ?gate :registers ?car }} GROUP BY ?gate }}

    REGISTER QUERY last AS SELECT ?gate ?n FROM STREAM <busy> [RANGE TRIPLES 3]
    WHERE {{ ?gate :saw ?n }} ORDER BY ?gate ?n
"""


def test_the_stream_that_a_query_makes_survives_restarts_with_its_windows(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "tolls.nt.tsv"
    path.write_bytes(b"".join(lines(9)))
    asked = job(CHAIN, path, batch_events=50)
    out = tmp_path / "out.ndjson"
    watched = None
    for batches in (2, 2, 1000):
        watched = Watched(before=watched)
        runner.run(asked, should_stop=watched.reached(batches), sinks=[LinesFile(out), watched])
    told, expected = rows_of(out.read_text()), rows_of(text_of(told_here(asked)[0]))
    for name in ("busy", "busiest", "last"):
        mine = [row for row in told if row["query"] == name]
        assert mine == [row for row in expected if row["query"] == name], name
        assert len(mine) >= 20, name
    assert max(row["row"]["reports"] for row in told if row["query"] == "busiest") >= 4, "windows reach over restarts"


BY_GATE = f"""
    REGISTER QUERY by_gate STARTING AT 1970-01-01T00:01:00Z
    {{
      MATCH (gate)-[:registers]->(car) WITHIN PT2M ON STREAM `{TOLLS}`
      MATCH (gate)-[:in]->(district) ON GRAPH city
      EMIT id(district) AS district, count(DISTINCT car) AS cars ORDER BY district SNAPSHOT EVERY PT1M
    }}
"""


def test_seraph_and_csparql_answer_side_by_side_over_one_stream_of_triples(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "tolls.nt.tsv"
    path.write_bytes(b"".join(lines(5)))
    asked = job(DISTRICTS, path, graphs={"default": city(), "city": city()}, batch_events=60)
    asked = replace(asked, queries=asked.queries + queries_of(BY_GATE))
    told, _ = runner.run(asked)
    rows = rows_of(told.text)
    by_query = {
        name: [(row["at"], row["row"]["district"], row["row"]["cars"]) for row in rows if row["query"] == name]
        for name in ("districts", "by_gate")
    }
    # The C-SPARQL query begins with the first event, at the epoch itself; the Seraph query a minute later.
    assert [row for row in by_query["districts"] if row[0] > "1970-01-01T00:00:00Z"] == by_query["by_gate"]
    assert len(by_query["by_gate"]) == 10
    assert told.text.decode() == text_of(told_here(asked)[0])


def test_a_static_graph_that_changes_is_seen_by_the_next_batch_and_after_a_restart(
    runner: Runner, tmp_path: Path
) -> None:
    folder, knowledge = tmp_path / "input", tmp_path / "city.ttl"
    folder.mkdir()
    given = lines(5)

    def district(name: str) -> None:
        text = "".join(f"<{EX}gate{gate}> <{EX}in> <{EX}{name}> .\n" for gate in range(GATES))
        (tmp_path / ".coming").write_text(text)
        os.rename(tmp_path / ".coming", knowledge)

    def arrive(minute: int, name: str | None = None) -> None:
        """A minute of passages, up to the instant that ends it, perhaps after the city has changed."""
        if name is not None:
            district(name)
        first = minute * 30 + 2 if minute else 0
        (folder / ".coming").write_bytes(b"".join(given[first : minute * 30 + 32]))
        os.rename(folder / ".coming", folder / f"{minute}.nt.tsv")

    district("north")
    file = GraphFile("default", (str(knowledge),))

    def asked() -> Job:
        return job(DISTRICTS, folder, True, graphs={"default": file.load()}, graph_files=(file,), refresh=1)

    out = tmp_path / "out.ndjson"
    arrive(0)
    watched = Watched(partial(arrive, 1, "south"))
    runner.run(asked(), should_stop=watched.reached(answers=3), sinks=[LinesFile(out), watched])
    arrive(2)
    watched = Watched(partial(arrive, 3, "east"), before=watched)
    runner.run(asked(), should_stop=watched.reached(answers=5), sinks=[LinesFile(out), watched])
    seen = [(row["at"][14:16], row["row"]["district"].removeprefix(EX)) for row in rows_of(out.read_text())]
    assert [seen[place] for place in (0, 1, 2, 4)] == [
        ("00", "north"),
        ("01", "north"),
        ("02", "south"),
        ("04", "east"),
    ]
    # A batch that was not committed before the stop comes again first, and the city changes behind it.
    assert seen[3] in (("03", "south"), ("03", "east"))
    copies = list((tmp_path / "checkpoint" / "graphs").glob("*.graph"))
    assert 1 <= len(copies) <= 2, "copies that no batch asks for are removed"
