"""CSRBench: four queries over a stream of sensor observations, against the answers of its oracle.

Windows are [w - a, w). The expected answers come for every admissible first instant t0; ours begin at the epoch, and
must be, instant by instant, those of one t0. The oracle tells nothing where no observation fits; SPARQL 1.1 gives an
average of no numbers the value 0, so such an answer counts as none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anabranch import Session
from anabranch.model.event import Event
from anabranch.model.terms import XSD_INTEGER, Literal
from anabranch.sources.base import as_event
from anabranch.sources.open import open_source

from .tck import suites_folder

STREAM = "http://ex.org/streams/test"
FOLDER = suites_folder() / "csrbench"
SECOND = 1_000_000

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"CSRBench is not at {FOLDER}")


def answered(query: Path) -> dict[int, set[frozenset[tuple[str, Any]]]]:
    """Our answers by instant in milliseconds, as sets of rows."""
    text = query.read_text(encoding="utf-8")
    session = Session.local([STREAM], windows="right-open")
    registered = session.register(text, file_name=query.name)
    for event in open_source(STREAM, str(FOLDER / "csrbench-stream.nt.tsv")).read_all(as_event):
        assert isinstance(event, Event), event
        session.push(STREAM, event)
    session.finish()
    found = {}
    for answer in registered.poll():
        rows = {frozenset(zip(answer.columns, map(plain, row), strict=True)) for row in answer.rows}
        if rows != {frozenset({("avg", plain(Literal("0", XSD_INTEGER)))})}:
            found[answer.at // 1000] = rows
    return found


def plain(term: Any) -> Any:
    return term[0] if not isinstance(term, Literal) else round(float(term.lexical), 6)


def expected(file: Path) -> dict[int, set[frozenset[tuple[str, Any]]]]:
    found = {}
    for relation in json.loads(file.read_text(encoding="utf-8"))["relations"]:
        rows = set()
        for one in relation["results"]["bindings"]:
            values = one["binding"].items()
            rows.add(
                frozenset(
                    (name, said["value"] if said["type"] == "uri" else round(float(said["value"]), 6))
                    for name, said in values
                )
            )
        found[relation["timestamp"]] = rows
    return found


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_answers_are_those_of_a_first_instant_of_the_oracle(number: int) -> None:
    got = answered(FOLDER / f"q{number}.csparql")
    assert got
    agreeing = []
    for file in sorted((FOLDER / "expected").glob(f"q{number}.rstream.t0_*.json")):
        wanted = expected(file)
        if {at: rows for at, rows in wanted.items() if rows} == got:
            agreeing.append(file.name)
    assert f"q{number}.rstream.t0_0.json" in agreeing
