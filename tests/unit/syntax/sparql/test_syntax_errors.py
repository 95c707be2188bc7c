"""What a refused text looks like to the person who wrote it."""

from __future__ import annotations

import pytest

from anabranch.errors import Diagnostic, QuerySyntaxError
from anabranch.syntax.sparql.parser import parse_query, parse_script
from anabranch.syntax.sparql.tree import Dialect


def problems(text: str, dialect: Dialect = "sparql") -> tuple[Diagnostic, ...]:
    def parse() -> None:
        if dialect == "sparql":
            parse_query(text)
        else:
            parse_script(text, dialect)

    with pytest.raises(QuerySyntaxError) as caught:
        parse()
    return caught.value.diagnostics


def marked(text: str, problem: Diagnostic) -> str:
    assert problem.span is not None
    return text[problem.span.start : problem.span.end]


def test_an_error_is_drawn_with_its_line_and_carets() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query("SELECT ?x\nWHRE { ?x ?p ?o }", "trick.rq")
    assert caught.value.render() == (
        "error[SPQ-001]: unexpected `WHRE`\n"
        "  trick.rq:2:1\n"
        "  2 | WHRE { ?x ?p ?o }\n"
        "    | ^^^^ expected `{`, `(`, a variable, FROM or WHERE\n"
        "hint: did you mean WHERE?"
    )


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("SELEC * { }", "SELEC", "unexpected `SELEC`", "SELECT"),
        ("SELECT * { ?s ?p ?o FILTER(?s == ?o) }", "=", "unexpected `=`", "equality is written `=`"),
        ("SELECT * { ?s ?p ?o FILTER(?s <> ?o) }", "<>", "unexpected `<>`", "`!=`"),
        ("SELECT * { ?s ?p ?o FILTER(?s<?o&&?o>?p) }", "<?o&&?o>", "unexpected `<?o&&?o>`", "space"),
        ("SELECT * { ?s ?p ?o FILTER(?s AND ?o) }", "AND", "unexpected `AND`", "`&&`"),
        ("SELECT * { ?s ?p ?o FILTER ?o }", "?o", "unexpected `?o`", "FILTER (...)"),
        ("SELECT * { ?s ?p ?o FILTER(strlenn(?s)) }", "strlenn", "there is no function `strlenn`", "STRLEN"),
        ("SELECT ?a, ?b { }", ",", "unexpected `,`", "without commas"),
        ("SELECT COUNT(?x) AS ?n { }", "COUNT", "unexpected `COUNT`", "(COUNT(?x) AS ?n)"),
        ("SELECT (COUNT(?x)) { }", ")", "unexpected `)`", "AS ?name"),
        ("SELECT FROM <x> { }", "FROM", "SELECT selects nothing", "SELECT *"),
        ("SELECT DISTINCT WHERE { }", "WHERE", "SELECT selects nothing", "SELECT *"),
        ("SELECT * WHERE ?s ?p ?o", "?s", "unexpected `?s`", "WHERE { ?s ?p ?o }"),
        ("SELECT * { ?s ?p ?o OPTIONAL ?s ?q ?r }", "?s", "unexpected `?s`", "OPTIONAL { ?s ?p ?o }"),
        ("SELECT * { <s> <p> <o>, <q> <r> }", "<r>", "unexpected `<r>`", "end the triple before this"),
        ("SELECT * { ?s ?p }", "}", "unexpected `}`", "three parts"),
        ("SELECT * { ?s name ?o }", "name", "unexpected `name`", "?name"),
        ("SELECT * { ?s ?p ?o }}", "}", "unexpected `}`", "one `}` more"),
        ("SELECT * { } LIMIT 1 LIMIT 2", "LIMIT", "unexpected `LIMIT`", "once each"),
        ("MATCH (n) RETURN n", "MATCH", "unexpected `MATCH`", "MATCH is Cypher"),
        ("INSERT DATA { <a> <b> <c> }", "INSERT", "`INSERT` would change data", "read only"),
        ("DELETE WHERE { ?s ?p ?o }", "DELETE", "`DELETE` would change data", "read only"),
        ("PREFIX ex <http://e/> ASK { }", "ex", "unexpected `ex`", "PREFIX ex: <http://...>"),
        ("PREFIX ex: <http://e/> . ASK { }", ".", "unexpected `.`", "no `.` at the end"),
        ("@prefix ex: <http://e/> . ASK { }", "@prefix", "unexpected `@prefix`", "PREFIX without `@`"),
        ("ASK { ?s ?p 'open }", "'", "this string is never closed", "close it with '"),
        ("ASK { ?s ?p '''open' }", "'''", "this string is never closed", "close it with '''"),
        ("ASK { ?s <http://e/p ?o }", "<http://e/p", "this IRI is never closed", "close it with >"),
        ("ASK { ?s\u00a0?p ?o }", "\u00a0", "a hidden character, U+00A0", "plain space"),
        ("ASK { ?s ?p ?o FILTER(_:b = 1) }", "_:b", "a blank node cannot stand here", "variable"),
        ("ASK { ?s _:b ?o }", "_:b", "a blank node cannot stand here", "variable"),
        ("ASK { VALUES ?x { _:b } }", "_:b", "a blank node cannot stand here", "variable"),
        ("REGISTER QUERY q AS ASK { }", "REGISTER", "unexpected `REGISTER`", "continuous query"),
        ("SELECT * { } BINDINGS ?x { }", "BINDINGS", "unexpected `BINDINGS`", "VALUES"),
    ],
)
def test_a_mistake_is_pointed_at_and_the_next_thing_to_try_is_said(
    text: str, place: str, message: str, hint: str
) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.message) == ("SPQ-001", message)
    assert marked(text, problem) == place
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "begin with SELECT"),
        ("# nothing but a comment", "begin with SELECT"),
        ("PREFIX ex: <http://e/>", "declarations alone"),
        ("SELECT *", "in braces"),
        ("SELECT * { ?s ?p ?o", "close it with `}`"),
        ("SELECT * { FILTER(?x", "close it with `)`"),
    ],
)
def test_a_text_that_ends_too_early_says_what_is_missing(text: str, hint: str) -> None:
    (problem,) = problems(text)
    assert problem.code == "SPQ-002"
    assert hint in problem.hint


def test_a_bracket_that_is_never_closed_is_pointed_at_where_it_opens() -> None:
    text = "SELECT * { ?s ?p '}' . # }\n OPTIONAL { ?s ?q ?r }"
    (problem,) = problems(text)
    assert problem.message == "this `{` is never closed"
    assert problem.span is not None
    assert problem.span.start == text.index("{")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ASK { ?x foaf:name ?y }", "PREFIX foaf: <http://xmlns.com/foaf/0.1/>"),
        ("PREFIX sensors: <http://e/> ASK { ?x sensor:name ?y }", "did you mean `sensors:`?"),
        ("ASK { ?x zz:name ?y }", "PREFIX zz: <http://...>"),
        ("ASK { ?x :name ?y }", "PREFIX : <http://...>"),
    ],
)
def test_an_undeclared_prefix_is_told_with_the_line_to_add(text: str, hint: str) -> None:
    (problem,) = problems(text)
    assert problem.code == "SPQ-003"
    assert hint in problem.hint


def test_every_undeclared_prefix_is_told_once() -> None:
    found = problems("ASK { foaf:a foaf:b owl:c . rdf:d rdf:e foaf:f }")
    assert [one.message for one in found] == [
        f"the prefix `{name}:` is not declared" for name in ("foaf", "owl", "rdf")
    ]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('ASK { ?s ?p "a\\qb" }', '"a\\qb"', "`\\q` is no escape in a string"),
        ("ASK { ?s ?p '\\uD83D\\uDE00' }", "'\\uD83D\\uDE00'", "`\\uD83D` is no Unicode character"),
        ("ASK { ?s <http://e/\\u0020> ?o }", "<http://e/\\u0020>", "an IRI cannot hold the character U+0020"),
        ("ASK { ?s <http://e/a b> ?o }", " ", "an IRI cannot hold a space"),
        ("ASK { ?s ?p \\u12 }", "\\u12", "`\\u12` is no character"),
        ("SELECT * { } LIMIT 99999999999999999999", "99999999999999999999", "this number is too large"),
        ("SELECT * { } LIMIT " + "9" * 5000, "9" * 5000, "this number is too large"),
    ],
)
def test_literals_and_escapes_that_cannot_be(text: str, place: str, message: str) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.message) == ("SPQ-004", message)
    assert marked(text, problem) == place


@pytest.mark.parametrize(
    "body",
    [
        "_:a ?p ?v OPTIONAL { _:a ?q 1 }",
        "_:a ?p ?v OPTIONAL { ?s ?p ?v } _:a ?q 1",
        "{ _:a ?p ?v } UNION { _:a ?q 1 }",
        "_:a ?p ?v BIND(1 AS ?b) _:a ?q 1",
        "_:a ?p ?v FILTER EXISTS { _:a ?q 1 }",
        "_:a ?p ?v { SELECT * { _:a ?q 1 } }",
    ],
)
def test_a_blank_node_label_stands_in_one_pattern_only(body: str) -> None:
    text = f"SELECT * {{ {body} }}"
    (problem,) = problems(text)
    assert problem.code == "SPQ-005"
    assert problem.span is not None
    assert problem.span.start == text.rindex("_:a")


def test_a_blank_node_label_reaches_over_filters_and_into_templates() -> None:
    parse_query("CONSTRUCT { _:a ?p 1 } { _:a ?p ?v FILTER(?v > 1) _:a ?q 1 }")


@pytest.mark.parametrize(
    "text",
    [
        "ASK " + "{ " * 300 + "}" * 300,
        "ASK { FILTER(" + "STR(" * 300 + "?x" + ")" * 300 + ") }",
        "ASK { FILTER(" + "+".join(["?x"] * 300) + " > 1) }",
        "ASK { ?x ?y " + "[ ?p " * 300 + "1" + "]" * 300 + " }",
    ],
)
def test_a_query_that_is_nested_too_deeply_is_refused(text: str) -> None:
    (problem,) = problems(text)
    assert problem.code == "SPQ-006"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("ASK { VALUES (?a ?b) { (1) } }", "SPQ-007", "VALUES names 2 variables, and this row has 1 value"),
        ("ASK { VALUES (?a) { (1 2) } }", "SPQ-007", "VALUES names 1 variable, and this row has 2 values"),
        ("ASK { FILTER(STRLEN(?a, ?b)) }", "SPQ-007", "STRLEN takes 1 argument, and is given 2"),
        ("ASK { FILTER(SUBSTR(?a)) }", "SPQ-007", "SUBSTR takes 2 or 3 arguments, and is given 1"),
        ("ASK { FILTER(IF(?a)) }", "SPQ-007", "IF takes 3 arguments, and is given 1"),
        ("ASK { FILTER(BOUND(1)) }", "SPQ-009", "BOUND takes a variable"),
        ("ASK { FILTER(STR(DISTINCT ?a)) }", "SPQ-009", "STR takes no DISTINCT"),
        ("SELECT (SUM(*) AS ?n) { }", "SPQ-009", "SUM takes an expression, not `*`"),
        ("SELECT (SUM(?x; SEPARATOR=',') AS ?n) { }", "SPQ-009", "SUM takes no SEPARATOR"),
        ("CONSTRUCT { ?s <p>* ?o } { }", "SPQ-009", "a template holds plain triples, no property paths"),
        ("CONSTRUCT WHERE { ?s <p>* ?o }", "SPQ-009", "CONSTRUCT WHERE holds plain triples, no property paths"),
    ],
)
def test_what_the_grammar_reads_wider_is_refused_afterwards(text: str, code: str, message: str) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.message) == (code, message)


def test_mistakes_in_several_patterns_and_statements_are_told_at_once() -> None:
    text = """REGISTER QUERY a AS SELECT * WHERE {
        ?s ?p .
        ?s ?p ?o .
        ?s ?q ?r ?t .
    }
    REGISTER QUERY b SELECT * WHERE { }

    REGISTER QUERY c AS SELECT * WHERE { ?s }"""
    found = problems(text, "csparql")
    assert [one.message for one in found] == [
        "unexpected `.`",
        "unexpected `?t`",
        "unexpected `SELECT`",
        "unexpected `}`",
    ]


@pytest.mark.parametrize(
    ("dialect", "text", "message", "hint"),
    [
        ("csparql", "REGISTER QUERY AS SELECT * { }", "unexpected `AS`", "needs a name"),
        ("csparql", "REGISTER QUERY q SELECT * { }", "unexpected `SELECT`", "AS stands between"),
        ("csparql", "REGISTER QUERY q COMPUTED EVERY 5 AS ASK { }", "unexpected `5`", "5s, 5m, 5h"),
        ("csparql", "REGISTER QUERY q STARTING AT 2026-13-01 AS ASK { }", "`2026-13-01` is no instant", "ISO 8601"),
        ("csparql", "REGISTER QUERY q COMPUTED EVERY 1s COMPUTED EVERY 2s AS ASK { }", "COMPUTED EVERY stands twice in one REGISTER", ""),  # noqa: E501
        ("csparql", "ASK FROM STREAM <s> { }", "unexpected `{`", "[RANGE 10m STEP 1m]"),
        ("csparql", "ASK FROM STREAM <s> [RANGE 10 STEP 5] { }", "unexpected `10`", "TRIPLES 10"),
        ("csparql", "ASK FROM STREAM <s> [RANGE 3 mintues] { }", "there is no unit of time `mintues`", "minutes"),
        ("csparql", "ASK FROM STREAM <s> [RANGE 0s] { }", "a length of time is more than nothing", ""),
        ("csparql", "ASK FROM STREAM <s> [RANGE TRIPLES 0] { }", "this number must be above zero", ""),
        ("csparql", "ASK FROM STREAM s [RANGE 1s] { }", "unexpected `s`", "<s>"),
        ("csparql", "ASK { } AGREGATE { (?n, COUNT, ?x) }", "unexpected `AGREGATE`", "AGGREGATE"),
        ("csparql", "ASK { } AGGREGATE { (?n, SUM, ?x) }", "SUM needs a variable", "SUM(?x)"),
        ("csparql", "ASK { } AGGREGATE { (?n, SAMPLE(?y), ?x) }", "AGGREGATE knows no SAMPLE", "COUNT"),
        ("csparql", "ASK { FILTER(timestamp(1)) }", "TIMESTAMP takes a variable", "TIMESTAMP(?x)"),
        ("csparql", "ASK { FILTER(timestamp(?x, 1)) }", "the second argument of TIMESTAMP is a stream: its IRI or ?g", ""),  # noqa: E501
        ("csparql", "  ", "there is no query here", "REGISTER QUERY"),
        ("lupos", "ASK STREAM INTERMEDIATERESULT DURATION 1s WHERE { }", "unexpected `s`", "plain number"),
        ("lupos", "ASK FROM STREAM <s> [RANGE 1s] { }", "unexpected `STREAM`", "WINDOW TYPE"),
        ("lupos", "ASK { WINDOW TYPE SLIDING 3 { } }", "unexpected `SLIDING`", ""),
        ("rspql", "REGISTER RSTREAM <o> AS ASK FROM NAMED WINDOW <w> [RANGE PT1S] { }", "unexpected `[`", ""),
        ("rspql", "REGISTER RSTREAM ex:o AS ASK { }", "the prefix `ex:` is not declared", "PREFIX ex:"),
    ],
)  # fmt: skip
def test_mistakes_in_what_a_dialect_adds(dialect: Dialect, text: str, message: str, hint: str) -> None:
    (problem,) = problems(text, dialect)
    assert problem.message == message
    assert hint in problem.hint
