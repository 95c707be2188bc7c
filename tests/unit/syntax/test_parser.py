"""What the grammar takes, and what tree it makes of it."""

from __future__ import annotations

import pytest

from anabranch import evaluate
from anabranch.errors import QueryError, QuerySyntaxError
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import parse_duration
from anabranch.syntax.seraph import plan
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.parser import parse_query, parse_script


def expression(text: str) -> t.Expr:
    clause = parse_query(f"RETURN {text} AS x").parts[0].clauses[0]
    assert isinstance(clause, t.ReturnClause)
    return clause.projection.items[0].expression


def match(text: str) -> t.MatchClause:
    clause = parse_query(f"{text} RETURN 1 AS x").parts[0].clauses[0]
    assert isinstance(clause, t.MatchClause)
    return clause


def register(text: str) -> t.RegisterTree:
    statement = parse_script(text).statements[0]
    assert isinstance(statement, t.RegisterTree)
    return statement


@pytest.mark.parametrize("word", ["call", "end", "order", "stream", "every", "match", "union", "within", "exit", "on"])
def test_keywords_may_be_names_where_no_keyword_can_stand(word: str) -> None:
    clause = match(f"MATCH ({word}:{word} {{{word}: 1}})-[:{word}]->() WHERE {word}.{word} = 1")
    assert clause.patterns[0].path.nodes[0].variable == t.Name(word)
    assert clause.patterns[0].path.nodes[0].labels == (t.Name(word),)


def test_keywords_are_read_in_any_case() -> None:
    assert parse_query("match (n) where n.x is not null return n") == parse_query(
        "MATCH (n) WHERE n.x IS NOT NULL RETURN n"
    )


def test_comments_and_white_space_do_not_matter() -> None:
    plain = parse_query("MATCH (n) RETURN n.a + 1 AS x")
    assert parse_query("MATCH (n) // the nodes\nRETURN /* all\n of them */ n.a\n  + 1 AS x") == plain


def test_backticks_hold_any_name() -> None:
    assert expression("`10minAvg`") == t.VariableRef("10minAvg")
    assert expression("`a``b`") == t.VariableRef("a`b")


def test_names_may_be_of_any_alphabet() -> None:
    assert expression("größe.länge") == t.PropertyLookup(t.VariableRef("größe"), t.Name("länge"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31),
        ("0o17", 15),
        ("-9223372036854775808", -(2**63)),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'it\\'s'", "it's"),
        ('"a\\tb"', "a\tb"),
        ("'\\u00e9'", "é"),
    ],
)
def test_literals_are_read(text: str, value: object) -> None:
    assert expression(text) == t.LiteralExpr(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["9223372036854775808", "1e999", "'\\q'", "0x", "12ab", "'open"])
def test_literals_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        expression(text)


def test_power_binds_tighter_than_product_and_product_than_sum() -> None:
    assert expression("1 + 2 * 3 ^ 4") == t.Binary(
        "add",
        t.LiteralExpr(1),
        t.Binary("multiply", t.LiteralExpr(2), t.Binary("power", t.LiteralExpr(3), t.LiteralExpr(4))),
    )


def test_not_binds_looser_than_comparison_and_tighter_than_and() -> None:
    assert expression("NOT a = 1 AND b") == t.Binary(
        "and",
        t.Unary("not", t.Comparison(t.VariableRef("a"), (("=", t.LiteralExpr(1)),))),
        t.VariableRef("b"),
    )


def test_comparisons_chain() -> None:
    assert expression("1 <= a < 3") == t.Comparison(
        t.LiteralExpr(1), (("<=", t.VariableRef("a")), ("<", t.LiteralExpr(3)))
    )


def test_a_bracketed_node_before_a_relationship_is_a_pattern() -> None:
    assert expression("(a:L)-[:T]->({k: 1})") == t.PatternExpr(
        t.PathTree(
            (
                t.NodeTree(t.Name("a"), (t.Name("L"),)),
                t.NodeTree(None, (), t.MapLiteral(((t.Name("k"), t.LiteralExpr(1)),))),
            ),
            (t.RelationshipTree("out", None, (t.Name("T"),)),),
        )
    )


def test_a_bracketed_name_without_a_relationship_is_an_expression() -> None:
    assert expression("(a) - 1") == t.Binary("subtract", t.VariableRef("a"), t.LiteralExpr(1))


def test_a_list_around_in_is_a_comprehension_and_brackets_make_it_a_list() -> None:
    assert isinstance(expression("[x IN xs]"), t.ListComprehension)
    assert expression("[(x IN xs)]") == t.ListLiteral((t.Binary("in", t.VariableRef("x"), t.VariableRef("xs")),))


def test_a_list_around_a_pattern_is_a_pattern_comprehension() -> None:
    found = expression("[p = (a)-->(b) WHERE b.x > 1 | length(p)]")
    assert isinstance(found, t.PatternComprehension)
    assert found.variable == t.Name("p")


def test_reduce_and_quantifiers_are_read() -> None:
    assert isinstance(expression("reduce(s = 0, x IN xs | s + x)"), t.ReduceExpr)
    assert isinstance(expression("none(x IN xs WHERE x > 1)"), t.QuantifierExpr)


@pytest.mark.parametrize(
    ("arrow", "direction"),
    [("-->", "out"), ("<--", "in"), ("--", "both"), ("<-->", "both"), ("<-[]->", "both"), (" - [ ] - > ", "out")],
)
def test_arrows_have_directions(arrow: str, direction: str) -> None:
    assert match(f"MATCH (a){arrow}(b)").patterns[0].path.relationships[0].direction == direction


@pytest.mark.parametrize(
    ("text", "length"),
    [("*", (None, None)), ("*2", (2, 2)), ("*2..", (2, None)), ("*..3", (None, 3)), ("*0..3", (0, 3))],
)
def test_lengths_of_relationships(text: str, length: tuple[int | None, int | None]) -> None:
    assert match(f"MATCH (a)-[:T|:U|V{text}]->(b)").patterns[0].path.relationships[0].length == length


def test_a_registration_holds_name_start_query_and_rhythm() -> None:
    found = register(
        "REGISTER QUERY <trick> STARTING AT 2022-10-14T14:45 { MATCH (n) WITHIN PT1H EMIT n ON ENTERING EVERY PT5M }"
    )
    assert found.name == t.Name("trick")
    assert found.starting_at == parse_instant("2022-10-14T14:45Z")
    assert found.options == (t.EmitOption("entering"), t.EmitOption("every", parse_duration("PT5M")))


@pytest.mark.parametrize("start", ["datetime()", "NOW", "now"])
def test_a_registration_may_start_now(start: str) -> None:
    assert register(f"REGISTER QUERY q STARTING AT {start} {{ RETURN 1 AS x }}").starting_at is None


@pytest.mark.parametrize("start", ["datetime('2022-10-14T14:45Z')", "'2022-10-14T14:45'", "2022-10-14T16:45+02:00"])
def test_a_registration_may_start_at_any_spelling_of_an_instant(start: str) -> None:
    statement = register(f"REGISTER QUERY q STARTING AT {start} {{ RETURN 1 AS x }}")
    assert statement.starting_at == parse_instant("2022-10-14T14:45Z")


@pytest.mark.parametrize("width", ["PT1H", "'PT1H'", "duration('PT1H')", "pt60m"])
def test_widths_may_be_spelled_in_several_ways(width: str) -> None:
    query = register(f"REGISTER QUERY q {{ MATCH (n) WITHIN {width} EMIT n EVERY PT5M }}").query
    clause = query.parts[0].clauses[0]
    assert isinstance(clause, t.MatchClause)
    assert clause.within == t.WithinTree(parse_duration("PT1H"))


def test_where_may_stand_on_either_side_of_within() -> None:
    one = register("REGISTER QUERY q { MATCH (n) WITHIN PT1H WHERE n.x = 1 EMIT n EVERY PT5M }")
    other = register("REGISTER QUERY q { MATCH (n) WHERE n.x = 1 WITHIN PT1H EMIT n EVERY PT5M }")
    assert one == other


def test_a_match_may_name_its_stream_or_its_static_graph() -> None:
    found = register(
        "REGISTER QUERY q { MATCH (n) WITHIN PT1H ON STREAM rides MATCH (m) ON GRAPH city EMIT n, m EVERY PT5M }"
    )
    first, second = found.query.parts[0].clauses[:2]
    assert isinstance(first, t.MatchClause)
    assert isinstance(second, t.MatchClause)
    assert (first.stream, second.graph) == (t.Name("rides"), t.Name("city"))


def test_a_file_may_hold_several_statements() -> None:
    text = """
    LOAD STREAM FROM 'rides.ndjson' AS event MERGE (b:Bike {id: event.bike});
    REGISTER QUERY a { MATCH (n) WITHIN PT1H EMIT n EVERY PT5M }
    REGISTER QUERY b { MATCH (n) WITHIN PT2H EMIT n EVERY PT5M };
    """
    kinds = [type(statement).__name__ for statement in parse_script(text).statements]
    assert kinds == ["LoadStreamTree", "RegisterTree", "RegisterTree"]


@pytest.mark.parametrize(
    "text",
    ["(" * 5_000 + "1" + ")" * 5_000, "[" * 300 + "]" * 300, "NOT " * 600 + "true", "1" + " + 1 - 1" * 200],
    ids=["brackets", "lists", "negations", "sums"],
)
def test_deep_nesting_is_refused_and_does_not_crash(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match="SER-006"):
        plan(f"RETURN {text} AS x")


def test_a_condition_may_have_thousands_of_alternatives() -> None:
    query = parse_query("MATCH (n) WHERE " + " OR ".join(f"n.x = {number}" for number in range(5_000)) + " RETURN n")
    assert isinstance(query.parts[0].clauses[0], t.MatchClause)


def test_a_pair_of_surrogates_is_one_character_and_half_of_it_is_none() -> None:
    assert evaluate(r"RETURN '\ud83d\ude00!' AS x").dicts() == [{"x": "\U0001f600!"}]
    for half in (r"'\ud83d'", r"'a\ude00b'", r"'\ude00\ud83d'"):
        with pytest.raises(QueryError, match="half of a surrogate pair") as refused:
            evaluate(f"RETURN {half} AS x")
        assert refused.value.diagnostics[0].code == "SER-004"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("MATCH (a:E-Bike) RETURN a", "backticks: `E-Bike`"),
        ("MATCH (a)-[:IS-A]->(b) RETURN a", "backticks: `IS-A`"),
        ("MATCH (a) WHERE a.name LIKE 'x%' RETURN a", "STARTS WITH, ENDS WITH, CONTAINS"),
        ("MATCH (a) WHERE a.x BETWEEN 1 AND 2 RETURN a", "1 <= n.x <= 2"),
        ("MATCH (a) RETURN a.x, count(*) GROUP BY a.x", "grouped by the columns that do not aggregate"),
        ("MATCH (a) RETURN COUNT { (a)--() } AS n", "size([(a)-->(b) | b])"),
        ("MATCH (a) WHERE COUNT { MATCH (a)--() } > 1 RETURN a", "size([(a)-->(b) | b])"),
        ("MATCH (a) RETURN COLLECT { MATCH (a)--(b) RETURN b } AS n", "[(a)-->(b) | b]"),
        ("MATCH (a) CALL { MATCH (b) RETURN b } RETURN a", "EXISTS { ... }"),
        ("CALL db.labels()", "procedures are not part of Seraph"),
        ("MATCH (n WHERE n.x > 1) RETURN n", "stands behind the pattern"),
        ("MATCH (:A|B) RETURN 1", "n:A OR n:B"),
        ("MATCH (n:A&B) RETURN n", "n:A AND n:B"),
        ("LET x = 1 RETURN x", "WITH *, n.x AS x"),
        ("MATCH (a) FILTER a.x > 1 RETURN a", "WITH * WHERE"),
        ("MATCH (a)-[:R]->{1,3}(b) RETURN a", "-[:R*1..3]->"),
        ("MATCH p = ANY SHORTEST (a)-[:R]->+(b) RETURN p", "shortestPath((a)-[*]-(b))"),
        ("MATCH (a) RETURN a OFFSET 3", "SKIP"),
    ],
)
def test_what_other_languages_say_is_answered_with_what_is_written_here(text: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as refused:
        parse_query(text)
    assert hint in refused.value.diagnostics[0].hint


@pytest.mark.parametrize("start", ["20240501T1000", "20240501", "2024-W18", "2024-122", "01.05.2024"])
def test_other_forms_of_a_date_are_answered_with_ours(start: str) -> None:
    with pytest.raises(QuerySyntaxError) as refused:
        parse_script(f"REGISTER QUERY q STARTING AT {start} {{ MATCH (n) WITHIN PT1H EMIT n EVERY PT5M }}")
    assert "2024-05-01T10:00" in refused.value.diagnostics[0].hint
