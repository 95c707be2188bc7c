"""Query texts and event-time window cases of the C-SPARQL engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anabranch import Session
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.syntax import languages
from anabranch.syntax.sparql.parser import parse_script

from .tck import suites_folder

FOLDER = suites_folder() / "csparql"
TEXTS = sorted(FOLDER.glob("*.csparql"))
STREAM = "http://myexample.org/stream"

FRAGMENTS = {"ExternalTimestampTests_L190.csparql": "it projects nothing: SELECT FROM STREAM"}
WRONG = {"Application_L59.csparql": "it projects ?p, by which its subquery does not group"}
CALLS_OUT = {"ApplicationExternalTimeStamp_L60.csparql": "it asks a SERVICE, which no query of ours does"}

needs_suite = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the C-SPARQL texts are not at {FOLDER}")


def cases() -> list[dict[str, Any]]:
    file = FOLDER / "window_cases.json"
    return json.loads(file.read_text(encoding="utf-8"))["cases"] if file.is_file() else []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_a_text_is_read_or_refused_with_its_reason(path: Any) -> None:
    text = path.read_text(encoding="utf-8")
    codes = ((FRAGMENTS, "SPQ-001"), (WRONG, "SPQ-103"), (CALLS_OUT, "SPQ-110"))
    refusals = {name: code for names, code in codes for name in names}
    if path.name not in FRAGMENTS:
        assert len(parse_script(text, "csparql", path.name).statements) == 1
    if path.name in refusals:
        with pytest.raises(QueryError) as refused:
            languages.registrations(text, path.name)
        assert [one.code for one in refused.value.diagnostics] == [refusals[path.name]]
    else:
        [registration] = languages.registrations(text, path.name)
        assert registration.language == "csparql"


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{len(case['input_ms'])}-events")
def test_windows_count_what_the_engine_of_the_paper_counts(case: dict[str, Any]) -> None:
    query = json.loads((FOLDER / "window_cases.json").read_text(encoding="utf-8"))["query"]
    session = Session.local([STREAM], windows="right-open")
    for name in ("range_s", "step_s"):
        query = query.replace(f"{{{name}}}", str(case[name]))
    registered = session.register(query)
    for number, millis in enumerate(case["input_ms"]):
        triple = Triple(Iri(f"urn:s{number}"), Iri("urn:p"), Literal(str(number)))
        session.push(STREAM, Event(millis * 1000, triples=(triple,)))
    # Nothing is told of a window that has not closed.
    session.finish(until=case["input_ms"][-1] * 1000)
    counts = [int(row[0].lexical) for answer in registered.poll() for row in answer.rows]
    assert counts == case["expected_counts"]


@needs_suite
def test_what_is_refused_is_in_the_folder() -> None:
    assert {*FRAGMENTS, *WRONG, *CALLS_OUT} <= {path.name for path in TEXTS}
