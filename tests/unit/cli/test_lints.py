"""Lints: what is warned about, and how each falls silent."""

from __future__ import annotations

import pytest

from anabranch.cli.lints import lint
from anabranch.syntax import languages
from anabranch.syntax.seraph import plan, registrations

from .conftest import BIKES


def codes(text: str) -> list[str]:
    return [one.code for query in registrations(text) for one in lint(query)]


def continuous(body: str, every: str = "PT5M", output: str = "SNAPSHOT") -> str:
    return f"REGISTER QUERY q STARTING AT NOW {{ {body} {output} EVERY {every} }}"


@pytest.mark.parametrize(
    ("body", "every", "warned"),
    [
        ("MATCH (a:A) WITHIN PT1M EMIT a", "PT5M", True),
        ("MATCH (a:A) WITHIN P1D EMIT a", "P1M", True),
        ("MATCH (a:A) WITHIN PT5M EMIT a", "PT5M", False),
        ("MATCH (a:A) ON GRAPH g EMIT a", "PT5M", False),
    ],
)
def test_a_window_narrower_than_its_slide_has_gaps(body: str, every: str, warned: bool) -> None:
    assert codes(continuous(body, every)) == ["LINT-001"] * warned


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        ("MATCH (a), (b) RETURN a, b", True),
        ("MATCH (a) MATCH (b) RETURN a, b", True),
        ("MATCH (a)-->(b), (c)-->(d) WHERE a.x = b.x RETURN a", True),
        ("MATCH (a)-->(b), (b)-->(c) RETURN a", False),
        ("MATCH (a), (b) WHERE a.x = b.x RETURN a", False),
        ("MATCH (a) WITH a.x AS x MATCH (b {x: x}) RETURN b", False),
        ("MATCH (a) WITH collect(a) AS l MATCH (b) WHERE b IN l RETURN b", False),
        ("MATCH (a) WITH a.x AS x, a AS b MATCH (a) WHERE a.x = x RETURN b", False),
        ("MATCH (a) WITH a AS b MATCH (a) RETURN a, b", True),
        ("MATCH (a) OPTIONAL MATCH (a)-->(b) RETURN b", False),
        ("UNWIND [1, 2] AS x MATCH (a) RETURN a, x", False),
        ("MATCH (a) RETURN a AS x UNION MATCH (b) RETURN b AS x", False),
        ("MATCH (a) WHERE exists((a)-->(:B)) RETURN a", False),
    ],
)
def test_a_product_is_warned_of_unless_something_relates_its_sides(query: str, warned: bool) -> None:
    assert [one.code for one in lint(plan(query))] == ["LINT-002"] * warned


def test_the_papers_query_is_related_by_its_condition() -> None:
    assert codes((BIKES / "student_trick.seraph").read_text()) == []


@pytest.mark.parametrize(
    ("path", "warned"),
    [("-[*]-", True), ("-[*2..]->", True), ("-[*..3]-", False), ("-[:T*]-", False), ("--", False)],
)
def test_trails_over_everything_are_warned_of(path: str, warned: bool) -> None:
    assert [one.code for one in lint(plan(f"MATCH (a){path}(b) RETURN a"))] == ["LINT-003"] * warned


def test_a_limit_needs_an_order_where_rows_are_compared() -> None:
    body = "MATCH (a:A) WITHIN PT5M EMIT a.x AS x {} LIMIT 3"
    assert codes(continuous(body.format(""), output="ON ENTERING")) == ["LINT-004"]
    assert codes(continuous(body.format("ORDER BY x"), output="ON ENTERING")) == []
    assert codes(continuous(body.format(""))) == []


@pytest.mark.parametrize(
    ("clauses", "codes"),
    [
        ("[RANGE 1m STEP 5m] WHERE { ?s <urn:p> ?o }", ["LINT-001"]),
        ("[RANGE 5m STEP 5m] WHERE { ?s <urn:p> ?o . ?x <urn:q> ?y }", ["LINT-002"]),
        ("[RANGE 5m STEP 5m] WHERE { ?s <urn:p> ?o . ?x <urn:q> ?y FILTER (?o = ?y) }", []),
        ("[RANGE 5m STEP 5m] WHERE { ?s <urn:p> ?o . <urn:a> <urn:q> 1 }", []),
        ("[RANGE 5m STEP 5m] WHERE { ?s <urn:p> ?o { ?x <urn:q>+ ?y } }", ["LINT-002"]),
    ],
)
def test_sparql_is_looked_at_too(clauses: str, codes: list[str]) -> None:
    [query] = languages.registrations(f"REGISTER QUERY q AS SELECT ?s FROM STREAM <http://s> {clauses}")
    assert [one.code for one in lint(query)] == codes
