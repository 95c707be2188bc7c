"""What a query means in the algebra, and what is refused before it runs."""

from __future__ import annotations

import pytest

from anabranch.algebra import expressions as x
from anabranch.algebra import operators as op
from anabranch.algebra.walk import walk
from anabranch.errors import QueryError
from anabranch.model.temporal import parse_duration
from anabranch.syntax.seraph import ingestions, plan, registrations

HOUR = parse_duration("PT1H")


def codes(text: str) -> list[str]:
    try:
        plan(text)
    except QueryError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]
    return []


def registered(body: str) -> op.Registration:
    return registrations(f"REGISTER QUERY q STARTING AT 2022-10-14T14:45 {{ {body} }}")[0]


def refused(body: str) -> list[str]:
    with pytest.raises(QueryError) as caught:
        registered(body)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_a_first_match_is_a_pattern_with_what_its_property_map_says_and_where_is_a_filter() -> None:
    found = plan("MATCH (n:A {k: 1}) WHERE n.k > 0 RETURN n")
    assert isinstance(found, op.Project)
    k = x.Property(x.Variable("n"), "k")
    path = op.PathPattern((op.NodePattern("n", ("A",)),))
    pattern = op.Pattern(op.Window(), (path,), x.Compare("=", k, x.Constant(1)))
    assert found.input == op.Filter(pattern, x.Compare(">", k, x.Constant(0)))


def test_a_property_map_that_speaks_of_earlier_variables_is_a_condition_of_the_join() -> None:
    found = plan("MATCH (a) MATCH (b {k: a.k, l: 1}) RETURN b")
    assert isinstance(found, op.Project)
    assert isinstance(found.input, op.Join)
    assert isinstance(found.input.right, op.Pattern)
    assert found.input.right.where == x.Compare("=", x.Property(x.Variable("b"), "l"), x.Constant(1))
    assert found.input.condition is not None


def test_a_second_match_joins_and_an_optional_one_joins_left() -> None:
    found = plan("MATCH (a) MATCH (a)-->(b) OPTIONAL MATCH (b)-->(c) RETURN *")
    assert isinstance(found, op.Project)
    assert isinstance(found.input, op.LeftJoin)
    assert isinstance(found.input.left, op.Join)
    assert found.columns == ("a", "b", "c")


def test_properties_of_a_variable_length_relationship_hold_for_each() -> None:
    found = plan("MATCH (a)-[r* {k: 1}]->(b) RETURN r")
    assert isinstance(found, op.Project)
    assert isinstance(found.input, op.Pattern)
    assert isinstance(found.input.where, x.Quantifier)


def test_every_match_has_its_own_window() -> None:
    found = registered("MATCH (a) WITHIN PT1H MATCH (b) WITHIN PT5M ON STREAM s MATCH (c) ON GRAPH g EMIT a EVERY PT1M")
    from anabranch.algebra.walk import sources

    assert sources(found.plan) == (
        op.Window(op.Stream(None), HOUR),
        op.Window(op.Stream("s"), parse_duration("PT5M")),
        op.Static("g"),
    )


def test_a_pattern_in_an_expression_looks_at_the_window_of_the_match_before_it() -> None:
    from anabranch.algebra.walk import sources

    found = registered("MATCH (a) WITHIN PT1H WHERE (a)-->() WITH a WHERE exists((a)<--()) EMIT a EVERY PT1M")
    assert sources(found.plan) == (op.Window(op.Stream(None), HOUR),)


def test_return_gives_one_answer_and_emit_many() -> None:
    once = registered("MATCH (a) WITHIN PT1H RETURN a")
    often = registered("MATCH (a) WITHIN PT1H EMIT a ON EXIT EVERY PT5M")
    assert (once.every, once.output) == (None, "snapshot")
    assert (often.every, often.output) == (parse_duration("PT5M"), "exiting")


def test_emit_without_a_stream_operator_is_a_snapshot() -> None:
    assert registered("MATCH (a) WITHIN PT1H EMIT a EVERY PT5M").output == "snapshot"


def test_columns_without_an_alias_are_called_as_the_text_stands() -> None:
    assert plan("MATCH (n) RETURN n.a,  n.b  +  1, count( * )").columns == ("n.a", "n.b  +  1", "count( * )")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("RETURN foo", "SER-017"),
        ("MATCH (n) WHERE (n)-[r]->() RETURN n", "SER-017"),
        ("MATCH p = (a)-->(b) MATCH p = (a)-->(b) RETURN p", "SER-018"),
        ("UNWIND [1] AS a UNWIND [2] AS a RETURN a", "SER-018"),
        ("MATCH ()-[r]->() MATCH (r) RETURN r", "SER-019"),
        ("WITH 'x' AS n MATCH (n) RETURN n", "SER-019"),
        ("RETURN nosuch(1)", "SER-020"),
        ("RETURN size()", "SER-021"),
        ("RETURN size(*)", "SER-021"),
        ("RETURN 1 AND true", "SER-022"),
        ("RETURN 1 IN 2", "SER-022"),
        ("MATCH (n) RETURN length(n)", "SER-022"),
        ("RETURN [x IN 1 | x]", "SER-022"),
        ("MATCH (n) WHERE n RETURN n", "SER-022"),
        ("MATCH (n) WHERE count(n) > 1 RETURN n", "SER-023"),
        ("RETURN count(count(*))", "SER-023"),
        ("RETURN toUpper(DISTINCT 'a')", "SER-023"),
        ("MATCH (n) RETURN n.x + count(*)", "SER-024"),
        ("RETURN 1 AS a, 2 AS a", "SER-025"),
        ("RETURN 1 AS a LIMIT -1", "SER-026"),
        ("RETURN 1 AS a SKIP 1.5", "SER-026"),
        ("MATCH (a)-[r]->()-[r]->() RETURN r", "SER-027"),
        ("MATCH (n) RETURN size((n)-->())", "SER-028"),
        ("MATCH (n $p) RETURN n", "SER-029"),
        ("MATCH () RETURN *", "SER-030"),
        ("MATCH (n) WITH n.x RETURN 1", "SER-032"),
        ("MATCH shortestPath((a)-->(b)-->(c)) RETURN a", "SER-033"),
        ("MATCH (n)", "SER-010"),
        ("RETURN 1 AS a RETURN 2 AS b", "SER-010"),
        ("MATCH (n) EMIT n", "SER-010"),
        ("RETURN 1 AS a UNION RETURN 2 AS b", "SER-011"),
        ("RETURN 1 AS a UNION RETURN 1 AS a UNION ALL RETURN 1 AS a", "SER-011"),
        ("CREATE (n) RETURN n", "SER-012"),
        ("MATCH (n) WITHIN PT1H RETURN n", "SER-043"),
    ],
)
def test_a_wrong_plain_query_is_refused_with_its_code(text: str, code: str) -> None:
    assert codes(text)[:1] == [code]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("MATCH (a) EMIT a EVERY PT5M", "SER-040"),
        ("MATCH (a) WITHIN PT1H EMIT a", "SER-041"),
        ("MATCH (a) WITHIN PT0S EMIT a EVERY PT5M", "SER-042"),
        ("MATCH (a) WITHIN PT1H EMIT a EVERY -PT5M", "SER-001"),
        ("MATCH (a) WITHIN PT1H EMIT a AS win_end EVERY PT5M", "SER-031"),
        ("MATCH (win_start) WITHIN PT1H EMIT 1 AS x EVERY PT5M", "SER-031"),
        ("MATCH (a) WITHIN PT1H EMIT a SNAPSHOT ON EXIT EVERY PT5M", "SER-010"),
        ("MATCH (a) WITHIN PT1H RETURN a UNION MATCH (a) WITHIN PT1H EMIT a EVERY PT5M", "SER-010"),
        ("MATCH (a) WITHIN PT1H ON GRAPH g EMIT a EVERY PT5M", "SER-010"),
        ("MATCH (a) WITHIN PT1H RETURN a ON ENTERING EVERY PT5M", "SER-010"),
        ("MATCH (a) WITHIN PT1H RETURN a ON EXIT", "SER-010"),
        ("MATCH (a) WITHIN PT1H EMIT count(a) AS n INTO counts EVERY PT5M", "SER-045"),
        ("MATCH (a)-[r]->() WITHIN PT1H WITH a.x AS x, r.t AS t EMIT x, collect(t) AS ts INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H UNWIND a.tags AS tag EMIT DISTINCT coalesce(tag, 1) AS t INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT sum(a.x) AS n, avg(a.y) AS m INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT a.x + 1 AS n INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT a.x * 2 - a.y AS n INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT id(a) AS i, component(a) AS c INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT a{.*, twice: a.x * 2} AS m INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT properties(a) AS m INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT {x: a.x, y: [a.y]} AS m INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT {x: a.x}.x AS n INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT a.ts[0] AS t, head(a.ts) AS h, tail(a.ts) AS r INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT reduce(s = 0, t IN a.tags | s + t) AS n INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT [t IN a.tags | t + 1] + a.x AS ts INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT a.at.year AS y INTO s EVERY PT5M", "SER-045"),
        ("MATCH (a) WITHIN PT1H EMIT win_end EVERY PT5M", "SER-031"),
        ("WITH win_end AS w MATCH (a) WITHIN PT1H EMIT a, w EVERY PT5M", "SER-040"),
    ],
)
def test_a_wrong_continuous_query_is_refused_with_its_code(body: str, code: str) -> None:
    assert refused(body)[:1] == [code]


def test_all_problems_of_a_query_are_told_at_once_in_the_order_of_the_text() -> None:
    assert refused("MATCH (a) WHERE a.x = b.y EMIT c, nosuch(a)") == [
        "SER-040",
        "SER-017",
        "SER-041",
        "SER-017",
        "SER-020",
    ]


def test_two_queries_of_one_name_in_a_file_are_refused() -> None:
    one = "REGISTER QUERY q { MATCH (a) WITHIN PT1H EMIT a EVERY PT5M }"
    with pytest.raises(QueryError, match="there is a query `q` already"):
        registrations(one + one)


def test_the_spans_of_the_text_reach_the_algebra() -> None:
    text = "MATCH (n) RETURN n.a + 1 AS x"
    found = plan(text)
    assert isinstance(found, op.Project)
    span = found.items[0][1].span
    assert span is not None
    assert text[span.start : span.end] == "n.a + 1"


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ("", "SER-013"),
        ("MATCH (n) CREATE (m)", "SER-013"),
        ("CREATE (a)-[:T]-(b)", "SER-013"),
        ("CREATE (a)-[:T|U]->(b)", "SER-013"),
        ("CREATE (a) SET b.x = 1", "SER-017"),
        ("MERGE (a:A {k: other.k})", "SER-017"),
        ("MERGE (a:A $p)", "SER-029"),
        ("CREATE (a) CREATE (a:B)", "SER-018"),
    ],
)
def test_a_wrong_load_stream_is_refused_with_its_code(clauses: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        ingestions(f"LOAD STREAM FROM 'x' AS event {clauses}")
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("kafka:///bikes.stream", "bikes"),
        ("kafka://host/city.rides?from=latest", "city.rides"),
        ("data/rides.ndjson.gz", "rides"),
        ("mqtt://host", "host"),
        ("rides", "rides"),
    ],
)
def test_a_loaded_stream_is_called_like_its_source(uri: str, name: str) -> None:
    assert ingestions(f"LOAD STREAM FROM '{uri}' AS event CREATE (n)")[0].stream == name


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("MATCH (p) WHERE EXISTS { WITH 1 AS p RETURN p } RETURN p", "SER-018"),
        ("MATCH (p) WHERE EXISTS { MATCH (p)-->(x) WITH x AS p RETURN p } RETURN p", "SER-018"),
        ("MATCH (p) WHERE EXISTS { UNWIND [1] AS p RETURN p } RETURN p", "SER-018"),
        ("MATCH (p)-->(x) RETURN x, count(*) > 0 AND EXISTS { MATCH (p)-->() } AS e", "SER-024"),
        ("MATCH (p)-->(x) RETURN x, count(*) + size([(p)-->(y) | y]) AS e", "SER-024"),
        ("MATCH (p) RETURN EXISTS { RETURN 1 AS x UNION RETURN 1 AS x UNION ALL RETURN 1 AS x }", "SER-011"),
        ("MATCH (p) RETURN [(p)-->(x) | count(x)]", "SER-023"),
        ("MATCH (p) RETURN p LIMIT size([(p)-->(x) | x])", "SER-026"),
        ("MATCH (p) RETURN p LIMIT size([x IN [1] | p])", "SER-026"),
        ("MATCH (p) RETURN p LIMIT size([p IN p | 1])", "SER-026"),
        ("MATCH (p) RETURN p LIMIT reduce(s = 0, y IN [1] | s + z)", "SER-026"),
    ],
)
def test_what_a_subquery_or_a_limit_cannot_read_is_refused_with_its_code(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (p) WHERE EXISTS { MATCH (p)-->(x) WITH p, count(x) AS n WHERE n > 1 RETURN p } RETURN p",
        "MATCH (p) WHERE EXISTS { MATCH (p)-->(x) RETURN x.name AS p } RETURN p",
        "MATCH (p) WHERE EXISTS { MATCH (p)-->(x) WITH count(x) + p.k AS n WHERE p.k < n RETURN n } RETURN p",
        "MATCH (p) RETURN [x IN [1] WHERE EXISTS { MATCH (p)-->(y) WITH count(y) AS n WHERE n = x RETURN n }] AS xs",
        "MATCH (p) RETURN p LIMIT reduce(s = 0, y IN [1] | s + y)",
        "MATCH (p) RETURN p SKIP size([x IN [1] WHERE x > 0]) LIMIT CASE WHEN all(x IN [1] WHERE x = 1) THEN 1 END",
    ],
)
def test_subqueries_and_limits_bind_variables_of_their_own(text: str) -> None:
    assert codes(text) == []


def test_aggregates_of_a_subquery_group_nothing_around_it() -> None:
    found = plan("MATCH (a) RETURN a.k AS k, EXISTS { MATCH (a)--(b) RETURN count(b) } AS e")
    assert isinstance(found, op.Project)
    assert isinstance(found.input, op.Pattern)


def test_a_name_bound_inside_of_an_expression_is_not_what_was_projected_under_its_text() -> None:
    found = plan("MATCH (n) WITH n.k AS k ORDER BY [n IN [{k: 1}] | n.k] RETURN k")
    (order,) = (node for node in walk(found) if isinstance(node, op.Order))
    (key,) = order.keys
    assert isinstance(key.expression, x.Comprehension)
    assert isinstance(key.expression.result, x.Property)


def _shortest(where: str) -> tuple[op.PathPattern, op.Operator]:
    found = plan(f"MATCH p = shortestPath((a)-[rs*]->(b)), (c) WHERE {where} RETURN p")
    assert isinstance(found, op.Project)
    pattern = next(node for node in walk(found) if isinstance(node, op.Pattern) and len(node.paths) == 2)
    return pattern.paths[0], found.input


def test_bounds_of_a_shortest_paths_length_are_bounds_of_the_pattern() -> None:
    for where, length in (
        ("length(p) > 2", (3, None)),
        ("4 >= length(p) AND size(rs) >= 2", (2, 4)),
        ("1 < size(relationships(p)) < 5", (2, 4)),
        ("length(p) = 3", (3, 3)),
    ):
        path, below = _shortest(where)
        assert path.relationships[0].length == length
        assert path.where is None
        assert isinstance(below, op.Pattern)


def test_what_holds_for_all_relationships_of_a_shortest_path_is_asked_of_each() -> None:
    path, below = _shortest("ALL(r IN relationships(p) WHERE r.k > c.k) AND NONE(r IN rs WHERE r.shut)")
    k = x.Compare(">", x.Property(x.Variable("rs"), "k"), x.Property(x.Variable("c"), "k"))
    assert path.relationships[0].where == x.And((k, x.Not(x.Property(x.Variable("rs"), "shut"))))
    assert path.where is None
    assert isinstance(below, op.Pattern)


def test_other_conditions_on_a_shortest_path_are_its_own_but_for_upper_bounds_and_what_reads_others() -> None:
    path, below = _shortest("ANY(n IN nodes(p) WHERE n.k = c.k) AND c.k > 1 AND length(p) < c.k")
    assert isinstance(path.where, x.Quantifier)
    assert isinstance(below, op.Filter)
    assert isinstance(below.condition, x.And)
    assert len(below.condition.operands) == 2
    two = plan(
        "MATCH p = shortestPath((a)-[*]->(b)), q = shortestPath((b)-[*]->(a)) WHERE length(p) > length(q) RETURN p"
    )
    assert all(one.where is None for node in walk(two) if isinstance(node, op.Pattern) for one in node.paths)


def test_a_subquery_beside_a_shortest_path_that_does_not_read_it_is_a_filter() -> None:
    path, below = _shortest("EXISTS { (a)-->(:X) }")
    assert path.where is None
    assert isinstance(below, op.Filter)


@pytest.mark.parametrize(
    "emitted",
    ["a", "count(*) AS n, a", "collect(a) AS l", "{k: a} AS m", "[a, 1] AS l", "head(collect(r)) AS h", "p"],
)
def test_an_answer_that_may_hold_an_element_makes_a_stream(emitted: str) -> None:
    assert registered(f"MATCH p = (a)-[r]->() WITHIN PT1H EMIT {emitted} INTO s EVERY PT5M").into == "s"


def test_bounds_are_those_of_the_match_before_and_in_emit_of_the_answer() -> None:
    found = registered(
        "MATCH (a) WITHIN PT1H WHERE a.t > win_start MATCH (b) ON GRAPH g WITH b, win_end AS w "
        "MATCH (c) WITHIN PT2H WHERE c.t > win_start EMIT w, win_start AS s EVERY PT5M"
    )
    bounds = [node for node in walk(found.plan) if isinstance(node, x.WindowBound)]
    widths = {(one.side, one.window and one.window.width) for one in bounds}
    assert widths == {("start", HOUR), ("end", HOUR), ("start", parse_duration("PT2H")), ("start", None)}


def test_bounds_of_a_window_are_ordinary_names_in_a_plain_query() -> None:
    assert codes("WITH 1 AS win_start RETURN win_start") == []
    assert codes("RETURN win_start") == ["SER-017"]
