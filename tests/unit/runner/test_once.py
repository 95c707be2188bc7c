"""A query is parsed, and built, once in a process, whoever asks for the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch.cli.app import app
from anabranch.engine.query import ContinuousQuery
from anabranch.syntax import seraph, sparql

SERAPH = """
LOAD STREAM FROM 'in.ndjson' AS r AT r.at INTO s
MERGE (n:N {id: r.id})

REGISTER QUERY counted STARTING AT 1970-01-01T00:00:00Z
{ MATCH (n:N) WITHIN PT10S ON STREAM s EMIT count(n) AS n SNAPSHOT EVERY PT1S }
"""
CSPARQL = "REGISTER QUERY named AS SELECT ?s FROM STREAM <urn:t> [RANGE 10s STEP 1s] FROM <g.ttl> WHERE { ?s ?p ?o }"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often texts were parsed and queries were built, by their names."""
    found: Counter[str] = Counter()

    def counted(room: Any) -> Callable[..., Any]:
        parse = room.parse_script

        def parse_script(text: str, *more: Any) -> Any:
            found[text] += 1
            return parse(text, *more)

        return parse_script

    for room in (seraph, sparql):
        monkeypatch.setattr(room, "parse_script", counted(room))
    build = ContinuousQuery.__init__

    def init(self: ContinuousQuery, registration: Any, *more: Any) -> None:
        found[registration.name] += 1
        build(self, registration, *more)

    monkeypatch.setattr(ContinuousQuery, "__init__", init)
    return found


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.ndjson").write_text("".join(json.dumps({"at": n * 500, "id": n}) + "\n" for n in range(30)))
    Path("t.nt.tsv").write_text("".join(f"{n * 500}\t<urn:a{n}> <urn:p> <urn:b> .\n" for n in range(30)))
    Path("g.ttl").write_text("<urn:g> <urn:p> <urn:h> .")
    Path("q.seraph").write_text(SERAPH)
    Path("q.csparql").write_text(CSPARQL)


TEXTS = [anabranch.QueryText(SERAPH, "q.seraph"), anabranch.QueryText(CSPARQL, "q.csparql")]
ONCE = {SERAPH: 1, CSPARQL: 1, "counted": 1, "named": 1}


def test_the_library_compiles_a_query_once(counts: Counter[str]) -> None:
    done = anabranch.run(TEXTS, {"urn:t": "t.nt.tsv"}, sinks=["out.ndjson"], engine="local", batch_events=7)
    assert (done.events, counts) == (60, ONCE)


def test_the_command_compiles_a_query_once(counts: Counter[str]) -> None:
    command = ["run", "q.seraph", "q.csparql", "-s", "urn:t=t.nt.tsv", "--engine", "local", "-o", "json"]
    ran = CliRunner().invoke(app, command)
    assert (ran.exit_code, counts) == (0, ONCE), ran.output


def test_a_session_compiles_a_query_once(counts: Counter[str]) -> None:
    session = anabranch.Session.local()
    session.graph("g.ttl", anabranch.load_graph("g.ttl"))
    session.register_texts(TEXTS)
    session.push("s", {"at": 0})
    assert counts == ONCE
