"""Expressions: truths and terms, calls, casts, IN, IF, and times of triples."""

from __future__ import annotations

import pytest
from tests.unit.syntax.sparql.texts import PREFIXES, iri, number, plan, registered

from anabranch.algebra.expressions import (
    And,
    Call,
    Case,
    Constant,
    Expression,
    IsNull,
    Not,
    Or,
    TripleTime,
    Variable,
)
from anabranch.algebra.operators import Extend, Filter, MergedSource, Static, Stream, Window
from anabranch.algebra.triples import GraphPattern, Var
from anabranch.model.temporal import Duration
from anabranch.model.terms import TRUE, XSD, Iri
from anabranch.syntax import sparql

X, Y = Variable("x"), Variable("y")
ONE = Constant(number(1))


def condition(text: str) -> Expression:
    found = plan(f"SELECT ?x ?y {{ ?x :p ?y FILTER({text}) }}")
    assert isinstance(found, Filter)
    return found.condition


def value(text: str) -> Expression:
    found = plan(f"SELECT * {{ ?x :p ?y BIND({text} AS ?z) }}")
    assert isinstance(found, Extend)
    return found.expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?x = ?y", Call("sparql:equal", (X, Y))),
        ("?x != ?y", Not(Call("sparql:equal", (X, Y)))),
        ("?x < ?y", Call("sparql:less", (X, Y))),
        ("?x > ?y", Call("sparql:less", (Y, X))),
        ("?x >= ?y", Call("sparql:less_or_equal", (Y, X))),
        ("?x", Call("sparql:ebv", (X,))),
        ("?x || ?y || isIRI(?x)", Or((Call("sparql:ebv", (X,)), Call("sparql:ebv", (Y,)), Call("sparql:isiri", (X,))))),
        ("!?x && true", And((Not(Call("sparql:ebv", (X,))), Constant(True)))),
        ("BOUND(?x)", Not(IsNull(X))),
        ("BOUND(?nobody)", Constant(False)),
        ("?x IN (1, ?y)", Or((Call("sparql:equal", (X, ONE)), Call("sparql:equal", (X, Y))))),
        ("?x NOT IN (1)", Not(Call("sparql:equal", (X, ONE)))),
        ("?x IN ()", Constant(False)),
        ("?nobody = 1", Call("sparql:equal", (Constant(None), ONE))),
        ("bound(?x) = true", Call("sparql:equal", (Call("sparql:term", (Not(IsNull(X)),)), Constant(TRUE)))),
    ],
)
def test_a_condition_is_a_truth(text: str, expected: Expression) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("?x + 1", Call("sparql:add", (X, ONE))),
        ("-?x", Call("sparql:negate", (X,))),
        ("STRLEN(STR(?x))", Call("sparql:strlen", (Call("sparql:str", (X,)),))),
        ("?x = ?y", Call("sparql:term", (Call("sparql:equal", (X, Y)),))),
        ("true", Constant(TRUE)),
        ("COALESCE(?nobody, ?x)", Call("coalesce", (Constant(None), X))),
        ("xsd:integer(?x)", Call("sparql:cast", (X, Constant(Iri(f"{XSD}integer"))))),
        (":unknown(?x)", Constant(None)),
        (
            "IF(?x = 1, ?x, ?y)",
            Case(
                (
                    (IsNull(Call("sparql:equal", (X, ONE))), Constant(None)),
                    (Call("sparql:equal", (X, ONE)), X),
                ),
                Y,
            ),
        ),
    ],
)
def test_a_bound_value_is_a_term(text: str, expected: Expression) -> None:
    assert value(text) == expected


def test_iri_is_resolved_against_the_base_of_the_text() -> None:
    found = sparql.plan("BASE <http://b/> SELECT * { BIND(IRI('x') AS ?z) }").plan
    assert isinstance(found, Extend)
    assert isinstance(found.expression, Call)
    assert found.expression.arguments[1:] == (Constant(Iri("http://b/")),)


def test_bnode_of_a_label_is_given_what_tells_solutions_apart() -> None:
    found = plan("SELECT (BNODE('a') AS ?x) (BNODE('a') AS ?y) { }").input  # type: ignore[attr-defined]
    assert found.expression.arguments == found.input.expression.arguments
    assert found.expression.arguments[1] == Variable(found.input.input.column)


# --- timestamp() ---

STREAM = Window(Stream("http://e/s"), width=Duration(seconds=5))
OTHER = Window(Stream("http://e/t"), width=Duration(seconds=5))
HEAD = "REGISTER QUERY q AS SELECT * FROM STREAM :s [RANGE 5s STEP 1s] "


def patterns(text: str) -> list[tuple[tuple[str, Window | None], ...]]:
    from anabranch.algebra.walk import walk

    found = registered(text).plan
    return [one.times for node in walk(found) if isinstance(node, GraphPattern) for one in node.patterns]


def test_timestamp_reads_the_times_of_the_patterns_that_mention_the_variable() -> None:
    found = registered(HEAD + "{ ?x :p ?y . ?y :q ?z . ?z :r ?w BIND(timestamp(?y) AS ?t) }").plan
    extend = found.input  # type: ignore[attr-defined]
    assert extend.expression == Call("sparql:moment", (Variable(" time1"), Variable(" time2")))
    assert [one.times for one in extend.input.patterns] == [((" time1", None),), ((" time2", None),), ()]
    assert found.columns == ("x", "y", "z", "w", "t")


def test_timestamp_sees_times_through_optional_and_union() -> None:
    found = registered(
        HEAD + "{ { ?x :p ?y } UNION { ?x :q ?y } OPTIONAL { ?x :r ?z } FILTER(timestamp(?x) > 0) }"
    ).plan
    condition = found.input.condition  # type: ignore[attr-defined]
    times = condition.arguments[1].arguments
    assert times == (Variable(" time1"), Variable(" time2"), Variable(" time3"))


def test_timestamp_of_a_stream_reads_that_window_alone() -> None:
    text = "REGISTER QUERY q AS SELECT * FROM STREAM :s [RANGE 5s STEP 1s] FROM STREAM :t [RANGE 5s STEP 1s] "
    found = patterns(text + "{ ?x :p ?y FILTER(timestamp(?x, :t) > 0) }")
    assert [window for _, window in found[0]] == [STREAM, OTHER]
    condition = registered(text + "{ ?x :p ?y FILTER(timestamp(?x, :t) > 0) }").plan.input.condition  # type: ignore[attr-defined]
    assert condition.arguments[1] == Call("sparql:moment", (Variable(" time2"),))


def test_timestamp_of_a_graph_variable_picks_the_window_by_its_value() -> None:
    text = (
        "REGISTER QUERY q AS SELECT * FROM NAMED STREAM :s [RANGE 5s STEP 1s] FROM NAMED STREAM :t [RANGE 5s STEP 1s] "
    )
    found = registered(text + "{ GRAPH ?g { ?x :p ?y } FILTER(timestamp(?x, ?g) > 0) }").plan
    case = found.input.condition.arguments[1]  # type: ignore[attr-defined]
    assert case == Case(
        (
            (
                Call("sparql:sameterm", (Variable("g"), Constant(iri("s")))),
                Call("sparql:moment", (Variable(" time1"),)),
            ),
            (
                Call("sparql:sameterm", (Variable("g"), Constant(iri("t")))),
                Call("sparql:moment", (Variable(" time2"),)),
            ),
        ),
        Constant(None),
    )


def test_timestamp_of_an_outer_variable_reaches_into_exists() -> None:
    found = registered(HEAD + "{ ?x :p ?y FILTER EXISTS { ?z :q ?y FILTER(timestamp(?x) > 5) } }").plan
    exists = found.input.condition  # type: ignore[attr-defined]
    assert " time1" in exists.plan.columns


def test_the_timestamp_of_three_terms_looks_the_triple_up() -> None:
    text = (
        "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> "
        + HEAD
        + "{ ?x :p ?y FILTER(f:timestamp(?x, :p, ?y) > 0) }"
    )
    (found,) = sparql.statements(PREFIXES + text, "csparql")
    source = MergedSource((Static("default"), STREAM))
    moment = Call("sparql:moment", (TripleTime(source, X, Constant(iri("p")), Y),))
    assert found.plan == Filter(
        GraphPattern(source, found.plan.input.patterns),  # type: ignore[attr-defined]
        Call("sparql:less", (Constant(number(0)), moment)),
    )
    assert found.plan.input.patterns[0].subject == Var("x")  # type: ignore[attr-defined]
