"""Questions about whole plans: what they read, and whether the same graphs always give the same answer."""

from __future__ import annotations

import pytest

from anabranch.algebra.expressions import Call, Variable
from anabranch.algebra.operators import Pattern, Static, Stream, Window
from anabranch.algebra.walk import (
    is_empty_without_events,
    is_volatile,
    keeps_lists,
    keeps_order,
    sources,
    static_graphs,
    walk,
    windows,
)
from anabranch.model.temporal import parse_duration
from anabranch.syntax import seraph


def test_the_walk_reaches_plans_inside_of_expressions_and_predicates_inside_of_patterns() -> None:
    plan = seraph.plan(
        "MATCH (a) WHERE EXISTS { MATCH (a)-[r]->(b) WHERE b.x = rand() } RETURN [x IN [1] | abs(x)] AS y"
    )
    nodes = list(walk(plan))
    assert sum(isinstance(node, Pattern) for node in nodes) == 2
    assert {node.function for node in nodes if isinstance(node, Call)} >= {"rand", "abs"}
    assert nodes[0] is plan


def test_sources_are_listed_once_in_the_order_of_the_text() -> None:
    text = """REGISTER QUERY q STARTING AT 2024-01-01T00:00Z {
      MATCH (a) WITHIN PT1H ON STREAM s MATCH (b) WITHIN PT2H ON STREAM s MATCH (c) WITHIN PT1H ON STREAM s
      MATCH (d) ON GRAPH g
      EMIT a SNAPSHOT EVERY PT1H }"""
    plan = seraph.registrations(text)[0].plan
    hour, two = parse_duration("PT1H"), parse_duration("PT2H")
    assert windows(plan) == (Window(Stream("s"), hour), Window(Stream("s"), two))
    assert static_graphs(plan) == (Static("g"),)
    assert sources(plan) == (*windows(plan), *static_graphs(plan))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("date()", True),
        ("datetime.statement()", True),
        ("localtime.realtime()", True),
        ("time.transaction('Europe/Rome')", True),
        ("rand()", True),
        ("datetime({timezone: 'Europe/Rome'})", True),
        ("time({hour: 1, timezone: 'Europe/Rome'})", True),
        ("date.truncate('day')", True),
        ("[x IN [1] WHERE rand() > 0.5 | x]", True),
        ("date('2015-07-21')", False),
        ("datetime({year: 2015, timezone: 'Europe/Rome'})", False),
        ("date.truncate('day', date('2015-07-21'))", False),
        ("duration('PT1H')", False),
        ("abs(1)", False),
    ],
)
def test_what_reads_the_clock_or_chance_is_volatile(expression: str, expected: bool) -> None:
    assert is_volatile(seraph.plan(f"RETURN {expression} AS x")) is expected


def test_an_expression_can_be_asked_too() -> None:
    assert is_volatile(Call("rand", ()))
    assert not is_volatile(Variable("x"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("MATCH (n) RETURN n.x AS x ORDER BY x LIMIT 3", True),
        ("MATCH (n) RETURN n.x AS x, count(*) AS c", True),
        ("MATCH (n) RETURN count(*) AS c", False),
        ("OPTIONAL MATCH (n) RETURN n", False),
        ("MATCH (n) OPTIONAL MATCH (n)-->(m) RETURN n, m", True),
        ("UNWIND [1, 2] AS x RETURN x", False),
        ("UNWIND [1, 2] AS x MATCH (n) RETURN x, n", True),
        ("MATCH (n) RETURN 1 AS x UNION ALL RETURN 2 AS x", False),
        ("MATCH (n) RETURN 1 AS x UNION MATCH (n) RETURN 2 AS x", True),
    ],
)
def test_plans_that_have_no_row_without_events_are_known(query: str, expected: bool) -> None:
    assert is_empty_without_events(seraph.plan(query)) is expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("MATCH (a) RETURN a", False),
        ("MATCH (a) WITH a.x AS x, count(*) AS c RETURN x, c", False),
        ("MATCH (a) RETURN a ORDER BY a.x", True),
        ("MATCH (a) WITH a ORDER BY a.x RETURN collect(a) AS all", True),
        ("MATCH (a) UNWIND a.list AS x RETURN x", False),
        ("MATCH (a) WHERE EXISTS { MATCH (a)-->(b) WITH b ORDER BY b.x RETURN b } RETURN a", False),
        ("RETURN 1 AS x", True),
        ("WITH 1 AS x RETURN x UNION ALL RETURN 2 AS x", True),
        ("RETURN EXISTS { MATCH (a) } AS x", True),
    ],
)
def test_rows_have_an_order_when_somebody_asked_for_it_or_the_query_brings_them(text: str, kept: bool) -> None:
    assert keeps_order(seraph.plan(text)) is kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("MATCH (a) UNWIND a.list AS x RETURN x", True),
        ("MATCH (a) UNWIND a.list AS x WITH x WHERE x > 1 UNWIND [x, 1] AS y RETURN y", True),
        ("MATCH (a) UNWIND a.list AS x RETURN DISTINCT x", False),
        ("MATCH (a) UNWIND a.list AS x RETURN x, count(*) AS n", False),
        ("MATCH (a) UNWIND a.list AS x MATCH (b {k: x}) RETURN b", False),
        ("MATCH (a) WITH a ORDER BY a.x MATCH (a)-->(b) RETURN b", False),
        ("UNWIND [2, 1, 2] AS x WITH DISTINCT x RETURN x", True),
        ("MATCH (a) RETURN a", False),
    ],
)
def test_a_list_keeps_its_order_until_rows_are_put_together(text: str, kept: bool) -> None:
    assert keeps_lists(seraph.plan(text)) is kept
