"""What lowering refuses: the code, the place in the text, and the next thing to try."""

from __future__ import annotations

from functools import partial

import pytest
from tests.unit.syntax.sparql.texts import PREFIXES

from anabranch.errors import (
    Diagnostic,
    QueryError,
    QueryNameError,
    QuerySyntaxError,
    QueryTypeError,
    UnsupportedQueryError,
)
from anabranch.syntax import sparql
from anabranch.syntax.sparql.tree import Dialect

STREAM = "FROM STREAM :s [RANGE 5s STEP 1s]"


def refusal(text: str, dialect: Dialect = "sparql") -> QueryError:
    lower = sparql.plan if dialect == "sparql" else partial(sparql.statements, dialect=dialect)
    with pytest.raises(QueryError) as caught:
        lower(PREFIXES + text)
    return caught.value


def pointed(error: QueryError, at: int = 0) -> tuple[str, str]:
    """The code, and the text that it points at."""
    diagnostic = error.diagnostics[at]
    assert diagnostic.span is not None
    return diagnostic.code, error.text[diagnostic.span.start : diagnostic.span.end]


def only(error: QueryError) -> Diagnostic:
    (diagnostic,) = error.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SELECT * { ?x :p ?y BIND(1 AS ?y) }", "SPQ-101", "?y"),
        ("SELECT * { { { ?x :p ?y } UNION { ?x :q ?z } } BIND(1 AS ?z) }", "SPQ-101", "?z"),
        ("SELECT ?x (1 AS ?x) { }", "SPQ-101", "?x"),
        ("SELECT (1 AS ?x) (2 AS ?x) { }", "SPQ-101", "?x"),
        ("SELECT (COUNT(?x) AS ?x) { ?x :p ?y }", "SPQ-101", "?x"),
        ("SELECT (1 AS ?z) { ?x :p ?y } VALUES ?z { 2 }", "SPQ-101", "?z"),
        ("SELECT ?k { ?x :p ?k } GROUP BY (STR(?x) AS ?k)", "SPQ-101", "?k"),
        ("SELECT ?y { ?x :p ?y } GROUP BY ?x", "SPQ-103", "?y"),
        ("SELECT ?x (COUNT(?y) AS ?n) { ?x :p ?y }", "SPQ-103", "?x"),
        ("SELECT (?y + 1 AS ?n) { ?x :p ?y } GROUP BY (?y + 1)", "SPQ-103", "?y"),
        ("SELECT (xsd:intger(?x) AS ?n) { ?x :p ?y }", "SPQ-105", "xsd:intger(?x)"),
        ("SELECT * { VALUES (?x ?x) { (1 2) } }", "SPQ-109", "?x"),
    ],
)
def test_a_name_that_cannot_stand_there_is_refused(text: str, code: str, place: str) -> None:
    error = refusal(text)
    assert isinstance(error, QueryNameError)
    assert pointed(error) == (code, place)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SELECT * { ?x :p ?y FILTER(COUNT(?x) > 1) }", "SPQ-104", "COUNT(?x)"),
        ("SELECT (SUM(COUNT(?x)) AS ?n) { ?x :p ?y }", "SPQ-104", "COUNT(?x)"),
        ("SELECT * { ?x :p ?y BIND(MAX(?y) AS ?m) }", "SPQ-104", "MAX(?y)"),
    ],
)
def test_an_aggregate_where_there_is_no_group_is_refused(text: str, code: str, place: str) -> None:
    error = refusal(text)
    assert isinstance(error, QuerySyntaxError)
    assert pointed(error) == (code, place)


def test_a_star_over_groups_is_refused() -> None:
    assert only(refusal("SELECT * { ?x :p ?y } GROUP BY ?x")).code == "SPQ-102"


def test_the_refusal_of_an_ungrouped_variable_says_what_is_grouped() -> None:
    error = refusal("SELECT ?y { ?x :p ?y } GROUP BY ?x")
    assert only(error).hint == "group by it, or aggregate it: SAMPLE(?y).  Grouped by: ?x."


def test_a_mistyped_cast_is_refused_with_the_right_name() -> None:
    assert "did you mean `integer`?" in only(refusal("SELECT (xsd:intger(?x) AS ?n) { ?x :p ?y }")).hint


def test_a_cast_of_two_values_is_refused() -> None:
    error = refusal("SELECT (xsd:integer(?x, 1) AS ?n) { ?x :p ?y }")
    assert isinstance(error, QueryTypeError)
    assert pointed(error) == ("SPQ-106", "xsd:integer(?x, 1)")


def test_service_is_refused_with_another_way() -> None:
    error = refusal("SELECT * { SERVICE :s { ?x :p ?y } }")
    assert isinstance(error, UnsupportedQueryError)
    assert only(error).code == "SPQ-110"
    assert "FROM" in only(error).hint


def test_all_problems_of_a_text_are_told_at_once_in_its_order() -> None:
    error = refusal("SELECT ?x (1 AS ?x) { ?x :p ?y FILTER(COUNT(?y) > 1) SERVICE :s { } }")
    assert [one.code for one in error.diagnostics] == ["SPQ-101", "SPQ-104", "SPQ-110"]


def test_a_group_over_several_graphs_tells_its_problem_once() -> None:
    with pytest.raises(QueryError) as caught:
        sparql.plan(PREFIXES + "SELECT * { GRAPH ?g { ?x :p ?y BIND(1 AS ?y) } }", graphs=("http://e/a", "http://e/b"))
    assert only(caught.value).code == "SPQ-101"


@pytest.mark.parametrize("part", ["OPTIONAL { ?x :p ?y }", "?x :p* ?y ."])
def test_a_plan_too_deep_to_be_walked_is_refused(part: str) -> None:
    assert only(refusal("SELECT * { " + part * 200 + "}")).code == "SPQ-006"


# --- streams ---


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        (f"SELECT (timestamp(?z) AS ?t) {STREAM} {{ ?x :p ?y }}", "SPQ-107", "timestamp(?z)"),
        (f"SELECT ?x (timestamp(?y) AS ?t) {STREAM} {{ ?x :p ?y }} GROUP BY ?x", "SPQ-107", "timestamp(?y)"),
        (f"SELECT ?x {STREAM} {{ ?x :p ?y FILTER(timestamp(?y, :t) > 0) }}", "SPQ-107", ":t"),
        (f"SELECT ?x ?n {STREAM} {{ ?x :p ?y }} AGGREGATE {{ (?y, COUNT, {{?x}}) }}", "SPQ-108", "?y"),
        (f"SELECT ?x ?n {STREAM} {{ ?x :p ?y }} AGGREGATE {{ (?n, SUM(?z), {{?x}}) }}", "SPQ-108", "?z"),
        (f"SELECT ?x ?n {STREAM} {{ ?x :p ?y }} AGGREGATE {{ (?n, COUNT, {{?z}}) }}", "SPQ-108", "?z"),
        (f"SELECT ?win_end {STREAM} {{ ?win_end :p ?y }}", "SPQ-115", "?win_end"),
    ],
)
def test_a_name_that_streams_cannot_have_there_is_refused(body: str, code: str, place: str) -> None:
    error = refusal(f"REGISTER QUERY q AS {body}", "csparql")
    assert isinstance(error, QueryNameError)
    assert pointed(error) == (code, place)


def test_an_annotation_may_not_use_another_one() -> None:
    body = (
        f"SELECT ?x {STREAM} {{ ?x :p ?y }} AGGREGATE {{ (?n, COUNT, {{?x}}) }} AGGREGATE {{ (?m, MAX(?n), {{?x}}) }}"
    )
    assert pointed(refusal(f"REGISTER QUERY q AS {body}", "csparql")) == ("SPQ-108", "?n")


def test_a_time_shorter_than_a_microsecond_is_refused() -> None:
    error = refusal("REGISTER QUERY q AS SELECT * FROM STREAM :s [RANGE PT0.0000001S STEP 1s] { ?x :p ?y }", "csparql")
    assert isinstance(error, QueryTypeError)
    assert only(error).code == "SPQ-112"


def test_ask_makes_no_stream() -> None:
    error = refusal(f"REGISTER STREAM q AS ASK {STREAM} {{ ?x :p ?y }}", "csparql")
    assert isinstance(error, QueryTypeError)
    assert only(error).code == "SPQ-114"


def test_two_queries_of_one_name_are_refused_at_the_second() -> None:
    error = refusal("REGISTER QUERY q AS SELECT * { ?x :p ?y } REGISTER QUERY q AS SELECT * { ?x :p ?y }", "csparql")
    assert pointed(error) == ("SPQ-116", "q")
    assert only(error).span.start == error.text.rindex("QUERY q") + len("QUERY ")  # type: ignore[union-attr]


def test_a_window_that_nobody_declares_is_refused_with_those_that_are() -> None:
    error = refusal(
        "REGISTER RSTREAM :q AS SELECT * FROM NAMED WINDOW :wind ON :s [RANGE PT5S STEP PT1S] "
        "WHERE { WINDOW :wnd { ?x :p ?y } }",
        "rspql",
    )
    assert pointed(error) == ("SPQ-111", ":wnd")
    assert only(error).hint == "did you mean <http://e/wind>?  Windows of this query: <http://e/wind>."


def test_two_windows_of_one_name_are_refused() -> None:
    twice = "FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S] " * 2
    error = refusal(f"REGISTER RSTREAM :q AS SELECT * {twice} {{ WINDOW :w {{ ?x :p ?y }} }}", "rspql")
    assert only(error).code == "SPQ-117"


def test_steps_of_months_and_of_seconds_have_no_common_rhythm() -> None:
    error = refusal(
        "REGISTER RSTREAM :q AS SELECT * FROM NAMED WINDOW :v ON :s [RANGE P1M STEP P1M] "
        "FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S] { WINDOW :w { ?x :p ?y } }",
        "rspql",
    )
    assert isinstance(error, QueryTypeError)
    assert only(error).code == "SPQ-113"


def test_a_lupos_aggregate_inside_of_where_is_refused() -> None:
    text = "PREFIX lupos: <http://www.luposdate.org/> SELECT ?x WHERE { ?x :p ?y FILTER(lupos:max(?y) > 3) }"
    assert pointed(refusal(text, "lupos")) == ("SPQ-104", "lupos:max(?y)")


def test_a_mistyped_lupos_aggregate_is_refused_with_the_right_name() -> None:
    text = "PREFIX lupos: <http://www.luposdate.org/> SELECT lupos:averge(?y) AS ?a WHERE { ?x :p ?y }"
    assert only(refusal(text, "lupos")).hint.startswith("did you mean `average`?")
