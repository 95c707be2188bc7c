"""`why` and `why-not` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from anabranch.cli.why import why, why_not

ROOT = Path(__file__).parents[3]
TRICK = ("examples/bikes/student_trick.seraph", "-s", "rides=examples/bikes/events.ndjson")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(ROOT)
    app = typer.Typer()
    app.command("why")(why)
    app.command("why-not")(why_not)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_a_row_is_explained_in_words(run: object) -> None:
    done = run("why", *TRICK, "--row", "r.user_id=5678")  # type: ignore[operator]
    assert done.exit_code == 0, done.output
    assert "completed by  (7)-[:returnedAt" in done.output
    assert "(7:Bike:EBike {id: 7})" in done.output
    assert "leaves at     2022-10-14T16:00:00Z" in done.output


def test_a_reason_is_json_where_asked_for(run: object) -> None:
    done = run("why", *TRICK, "-r", "r.user_id=5678", "--json")  # type: ignore[operator]
    found = json.loads(done.stdout)
    assert found["minimal"] is True
    assert {element["kind"] for element in found["elements"]} == {"node", "relationship"}


def test_what_fails_is_shown(run: object) -> None:
    done = run("why-not", *TRICK, "-r", "r.user_id=5678", "--at", "2022-10-14T15:15Z")  # type: ignore[operator]
    assert done.exit_code == 0, done.output
    assert "fails    ALL(e IN rels" in done.output


def test_a_row_that_is_not_there_is_an_error_without_traceback(run: object) -> None:
    done = run("why", *TRICK, "-r", "r.user_id=1")  # type: ignore[operator]
    assert done.exit_code != 0
    assert "ask why not" in done.output
    assert "Traceback" not in done.output


def test_a_query_that_reads_what_another_one_makes_is_explained(run: object, tmp_path: Path) -> None:
    query, events = tmp_path / "chain.seraph", tmp_path / "events.ndjson"
    query.write_text(
        """REGISTER QUERY high STARTING AT 2022-10-14T12:01Z {
             MATCH (p)-[b:BIDS]->(i) WITHIN PT1M WHERE b.price > 10 EMIT p, b, i INTO high SNAPSHOT EVERY PT1M }
           REGISTER QUERY bidders STARTING AT 2022-10-14T12:01Z {
             MATCH (p)-[:BIDS]->() WITHIN PT5M ON STREAM high EMIT p.name AS who SNAPSHOT EVERY PT1M }"""
    )
    nodes = [{"id": 1, "labels": [], "properties": {"name": "Ada"}}, {"id": 2, "labels": [], "properties": {}}]
    link = {"id": "b", "type": "BIDS", "from": 1, "to": 2, "properties": {"price": 12}}
    events.write_text(json.dumps({"at": "2022-10-14T12:00:30Z", "nodes": nodes, "relationships": [link]}))
    asked = (str(query), "-s", f"bids={events}", "--row", "who=Ada")
    done = run("why", *asked, "--query", "bidders")  # type: ignore[operator]
    assert done.exit_code == 0, done.output
    assert "completed by  (1)-[:BIDS {price: 12}]->(2)" in done.output
    assert "leaves at     2022-10-14T12:06:00Z" in done.output
    assert "say which is meant, of high, bidders" in run("why", *asked).output  # type: ignore[operator]
