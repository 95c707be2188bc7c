"""The SPARQL plug-in: what it gives back, what it refuses, and that it answers as the plain evaluator does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import pytest

from anabranch.algebra.explain import explain
from anabranch.algebra.triples import PluginQuery, TriplePattern, Var
from anabranch.engine.session import Session
from anabranch.errors import EvaluationError, QueryError
from anabranch.model.event import Event
from anabranch.model.terms import TRUE, XSD_INTEGER, Blank, Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.syntax import languages

EX = "http://ex/"
SECOND = 1_000_000


def n(name: str) -> Iri:
    return Iri(EX + name)


def number(value: int) -> Literal:
    return Literal(str(value), XSD_INTEGER)


P, Q = n("p"), n("q")
GRAPH = TripleGraph(
    [
        Triple(n("a"), P, n("b")),
        Triple(n("b"), P, n("c")),
        Triple(n("a"), Q, number(5)),
        Triple(Blank("x", "one"), P, Blank("x", "two")),
    ]
)
NOTHING = TripleGraph(())


# --- whole queries ----------------------------------------------------------------------------------------------------


def test_rows_come_with_their_columns_and_unbound_is_nothing() -> None:
    text = f"PREFIX : <{EX}> SELECT ?y ?n ?x {{ ?x :p ?y FILTER isIRI(?x) OPTIONAL {{ ?x :q ?n }} }} ORDER BY ?x"
    assert Oxigraph().evaluate(text, GRAPH, {}) == (
        ("y", "n", "x"),
        [(n("b"), number(5), n("a")), (n("c"), None, n("b"))],
    )


def test_ask_is_one_row_and_a_graph_its_triples() -> None:
    assert Oxigraph().evaluate(f"ASK {{ <{EX}a> ?p ?o }}", GRAPH, {}) == (("ask",), [(TRUE,)])
    columns, rows = Oxigraph().evaluate(f"CONSTRUCT {{ ?o <{EX}q> ?s }} WHERE {{ ?s <{EX}p> ?o }}", GRAPH, {})
    assert columns == ("subject", "predicate", "object")
    assert (n("b"), Q, n("a")) in rows
    assert len(rows) == 3


def test_a_blank_node_comes_back_as_itself_whatever_its_document() -> None:
    _, rows = Oxigraph().evaluate("SELECT ?s ?o { ?s ?p ?o FILTER isBlank(?s) }", GRAPH, {})
    assert rows == [(Blank("x", "one"), Blank("x", "two"))]


def test_named_graphs_are_asked_by_name_and_a_blank_node_is_one_in_all_of_them() -> None:
    named = {n("g"): TripleGraph([Triple(Blank("x", "one"), Q, number(1))]), n("h"): NOTHING}
    text = f"SELECT ?g ?o {{ ?s <{EX}p> ?o GRAPH ?g {{ ?s ?q ?n }} }}"
    assert Oxigraph().evaluate(text, GRAPH, named)[1] == [(n("g"), Blank("x", "two"))]
    assert Oxigraph().evaluate(f"SELECT ?s {{ GRAPH <{EX}h> {{ ?s ?p ?o }} }}", GRAPH, named)[1] == []


def test_nothing_is_kept_from_one_call_to_the_next() -> None:
    plugin = Oxigraph()
    plugin.evaluate("SELECT * { ?s ?p ?o }", GRAPH, {})
    assert plugin.evaluate("SELECT * { ?s ?p ?o }", NOTHING, {})[1] == []


def test_a_text_that_pyoxigraph_does_not_read_is_an_error_of_ours() -> None:
    with pytest.raises(EvaluationError) as caught:
        Oxigraph().evaluate("SELECT ?s, ?o { ?s ?p ?o }", GRAPH, {})
    assert caught.value.diagnostic.code == "SPQ-303"
    assert caught.value.diagnostic.message.startswith("pyoxigraph refuses the query: ")


# --- patterns ---------------------------------------------------------------------------------------------------------


def test_matches_have_the_variables_in_the_order_of_their_appearance() -> None:
    patterns = [TriplePattern(Var("z"), P, Var("a")), TriplePattern(Var("a"), P, Var("m"))]
    assert Oxigraph().match(patterns, GRAPH) == [(n("a"), n("b"), n("c"))]


def test_names_of_variables_may_be_such_as_no_sparql_has() -> None:
    assert Oxigraph().match([TriplePattern(Var(" s"), Q, Var("the-o"))], GRAPH) == [(n("a"), number(5))]


def test_a_pattern_without_variables_matches_once_or_not_at_all() -> None:
    assert Oxigraph().match([TriplePattern(n("a"), P, n("b"))], GRAPH) == [()]
    assert Oxigraph().match([TriplePattern(n("a"), P, n("c"))], GRAPH) == []


def test_the_order_of_matches_depends_on_them_alone() -> None:
    triples = [Triple(n(f"s{index}"), P, number(index % 7)) for index in range(50)]
    patterns = [TriplePattern(Var("s"), P, Var("o"))]
    forth, back = (Oxigraph().match(patterns, TripleGraph(order)) for order in (triples, triples[::-1]))
    assert forth == back
    assert len(forth) == 50


# --- the evaluator ----------------------------------------------------------------------------------------------------

STREAM = f"{EX}stream"
WINDOW = f"FROM STREAM <{STREAM}> [RANGE 10s STEP 5s]"
NAMED = f"FROM NAMED STREAM <{STREAM}> [RANGE 10s STEP 5s]"
OTHER = f"FROM NAMED STREAM <{EX}other> [RANGE 10s STEP 5s]"
EVENTS = [
    Event(
        second * SECOND,
        triples=(
            Triple(n(f"gate{second % 2}"), n("registers"), n(f"car{second}")),
            Triple(n("gate1"), n("total"), number(second)),
        ),
    )
    for second in (1, 3, 4, 7, 8, 12)
]
CITY = TripleGraph([Triple(n("gate0"), n("in"), n("north")), Triple(n("gate1"), n("in"), n("south"))])

QUERIES = {
    "rows": f"SELECT ?g ?c {WINDOW} WHERE {{ ?g :registers ?c }}",
    "star": f"SELECT * {WINDOW} WHERE {{ ?g :registers ?c OPTIONAL {{ ?g :in ?d }} }}",
    "groups": f"SELECT ?d (COUNT(?c) AS ?n) {WINDOW} {{ ?g :registers ?c . ?g :in ?d }} GROUP BY ?d",
    "a static graph by name": f"SELECT ?c {WINDOW} FROM <{EX}city> {{ ?g :registers ?c ; :in :north }}",
    "a named stream": f"SELECT ?c ?d {NAMED} FROM <{EX}city> {{ GRAPH <{STREAM}> {{ ?g :registers ?c }} ?g :in ?d }}",
    "one of two": f"SELECT ?c {NAMED} {OTHER} {{ GRAPH <{STREAM}> {{ ?g :registers ?c }} }}",
    "not the default": f"SELECT ?c {WINDOW} {OTHER} {{ GRAPH :other {{ ?g :registers ?c }} }}",
    "by name": f"SELECT ?c ?d {NAMED} {{ GRAPH <{STREAM}> {{ ?g :registers ?c }} GRAPH :city {{ ?g :in ?d }} }}",
    "an empty graph": f"SELECT ?g {WINDOW} {{ ?g :registers ?c GRAPH :empty {{ OPTIONAL {{ ?g ?p ?o }} }} }}",
    "any graph": f"SELECT ?w ?c {NAMED} {{ GRAPH ?w {{ ?g :registers ?c }} }}",
    "a window of triples": f"SELECT * FROM STREAM <{STREAM}> [RANGE TRIPLES 3] {{ ?g :registers ?c }}",
    "sums and filters": f"SELECT (SUM(?t) AS ?all) {WINDOW} {{ ?g :total ?t FILTER (?t > 1) }}",
    "the greatest": f"SELECT ?g ?t {WINDOW} {{ ?g :total ?t }} ORDER BY DESC(?t) LIMIT 1",
    "what is not there": f"SELECT ?c {WINDOW} {{ ?g :registers ?c FILTER NOT EXISTS {{ ?g :in :north }} }}",
    "FROM before SELECT": f"{WINDOW} SELECT ?g ?c WHERE {{ ?g :registers ?c }}",
    "true or false": f"ASK {WINDOW} {{ :gate1 :total ?t FILTER (?t > 7) }}",
    "a description": f"DESCRIBE :gate1 {WINDOW}",
}


def answers(text: str, evaluator: str) -> list[tuple[int, str, Counter[Hashable]]]:
    session = Session.local(evaluator=evaluator)  # type: ignore[arg-type]
    session.graph("default", CITY)
    session.graph(f"{EX}city", CITY)
    session.graph(f"{EX}empty", NOTHING)
    query = session.register(text)
    session.push(STREAM, EVENTS)
    session.push(f"{EX}other", EVENTS[1:])
    session.finish()
    return [(int(one.at), one.op, Counter(map(tuple, one.rows))) for one in query.poll()]


@pytest.mark.parametrize("body", QUERIES.values(), ids=QUERIES.keys())
def test_the_plug_in_answers_at_every_instant_as_our_own_evaluator_does(body: str) -> None:
    text = f"PREFIX : <{EX}> REGISTER QUERY q AS {body}"
    own = answers(text, "own")
    assert len(own) >= 3
    assert any(rows for _, _, rows in own)
    assert answers(text, "plugin") == own


def test_when_one_query_of_a_text_is_refused_none_is_registered() -> None:
    session = Session.local(evaluator="plugin")
    with pytest.raises(QueryError, match="SPQ-302"):
        session.register_all(
            f"REGISTER QUERY a AS SELECT ?g {WINDOW} {{ ?g ?p ?c }} "
            f"REGISTER QUERY b AS SELECT (NOW() AS ?n) {WINDOW} {{ ?g ?p ?c }}"
        )
    assert session.queries == []


def test_a_stream_that_the_plug_in_constructs_is_read_by_the_next_query() -> None:
    text = f"""PREFIX : <{EX}>
        REGISTER STREAM seen AS CONSTRUCT {{ ?c :at ?g }} {WINDOW} WHERE {{ ?g :registers ?c }}
        REGISTER QUERY reader AS SELECT ?c FROM STREAM <seen> [RANGE 5s STEP 5s] WHERE {{ ?c :at :gate1 }}"""
    told = []
    for evaluator in ("own", "plugin"):
        session = Session.local(evaluator=evaluator)  # type: ignore[arg-type]
        _, reader = session.register_all(text)
        session.push(STREAM, EVENTS)
        session.finish()
        told.append([(int(one.at), Counter(map(tuple, one.rows))) for one in reader.poll()])
    assert told[0] == told[1]
    assert len(told[0]) >= 3


def test_the_evaluator_of_a_session_survives_its_checkpoint() -> None:
    session = Session.local(evaluator="plugin")
    session.register(f"PREFIX : <{EX}> REGISTER QUERY q AS {QUERIES['rows']}")
    session.push(STREAM, EVENTS[:3])
    restored = Session.restore(session.checkpoint())
    with pytest.raises(QueryError, match="SPQ-302"):
        restored.register(f"REGISTER QUERY late AS SELECT (NOW() AS ?n) {WINDOW} {{ ?g ?p ?c }}")
    for one in (session, restored):
        one.push(STREAM, EVENTS[3:])
        one.finish()
    assert [one.rows for one in restored.query("q").poll()] == [one.rows for one in session.query("q").poll()]


def test_seraph_queries_are_ours_whoever_answers_sparql() -> None:
    session = Session.local(evaluator="plugin")
    query = session.register(
        "REGISTER QUERY q STARTING AT 1970-01-01T00:00:05Z "
        "{ MATCH (g)-[:registers]->(c) WITHIN PT10S EMIT count(c) AS n SNAPSHOT EVERY PT5S }"
    )
    session.push(STREAM, EVENTS)
    session.finish()
    assert [one.rows for one in query.poll()] == [[(3,)], [(5,)], [(3,)]]


@pytest.mark.parametrize(
    "body",
    [
        f"SELECT ?g ?n {WINDOW} {{ ?g :registers ?c }} AGGREGATE {{ (?n, COUNT, {{?g}}) }}",
        f"SELECT ?g (timestamp(?c) AS ?t) {WINDOW} {{ ?g :registers ?c }}",
        f"SELECT ?g (NOW() AS ?t) {WINDOW} {{ ?g :registers ?c }}",
        f"SELECT ?g {WINDOW} {{ ?g :registers ?c FILTER (RAND() < 2) }}",
        f"SELECT ?g (<{EX}function>(?c) AS ?f) {WINDOW} {{ ?g :registers ?c }}",
        f"CONSTRUCT {{ [] :saw ?c }} {WINDOW} {{ ?g :registers ?c }}",
        f"SELECT {{ ?g ?c }} {WINDOW} {{ ?g :registers ?c }}",
        f"SELECT ?g, ?c {WINDOW} {{ ?g :registers ?c }}",
        f"SELECT ?the-gate {WINDOW} {{ ?the-gate :registers ?c }}",
    ],
    ids=[
        *("AGGREGATE", "timestamp()", "NOW()", "RAND()", "a function of nobody's", "new blank nodes"),
        *("braces", "commas", "a hyphen"),
    ],
)
def test_what_is_more_than_plain_sparql_is_refused_before_it_runs_and_our_own_evaluator_takes_it(body: str) -> None:
    text = f"PREFIX : <{EX}> REGISTER QUERY q AS {body}"
    with pytest.raises(QueryError) as caught:
        Session.local(evaluator="plugin").register(text)
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "SPQ-302"
    assert diagnostic.message == "the SPARQL plug-in cannot answer the query `q`: it is more than plain SPARQL"
    assert diagnostic.hint is not None
    assert diagnostic.hint.endswith("leave out --evaluator plugin")
    assert answers(text, "own")


def binds(first: int, last: int) -> str:
    return " ".join(f"BIND ({index} AS ?x{index})" for index in range(first, last))


DEEP = (
    f"PREFIX : <{EX}> REGISTER QUERY deep AS SELECT ?g ?c ?x7 {WINDOW} "
    f"{{ {{ ?g :registers ?c {binds(90, 180)} }} {binds(0, 90)} }}"
)


def test_a_plan_too_deep_for_our_evaluator_is_the_plug_in_s_and_explain_says_so() -> None:
    [registration] = languages.registrations(DEEP)
    assert isinstance(registration.plan, PluginQuery)
    assert "└─ PluginQuery  SPARQL plug-in\n" in explain(registration).text(100)
    shallow = DEEP.replace(binds(90, 180), "").replace("QUERY deep", "QUERY shallow")
    assert not isinstance(languages.registrations(shallow)[0].plan, PluginQuery)
    assert answers(DEEP, "own") == answers(shallow, "own")


def test_a_plan_too_deep_and_more_than_plain_sparql_is_refused() -> None:
    with pytest.raises(QueryError) as caught:
        languages.registrations(DEEP.replace("SELECT ?g", "SELECT (NOW() AS ?now) ?g"))
    assert caught.value.diagnostics[0].code == "SPQ-006"
