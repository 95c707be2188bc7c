"""EXPLAIN of the SPARQL family: its operators, windows, instants, and the rules that fired."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from anabranch.algebra import expressions as x
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.explain import explain
from anabranch.algebra.spell import Speller
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import (
    RDF_TYPE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DECIMAL,
    XSD_INTEGER,
    Blank,
    Iri,
    Literal,
    Term,
    tagged,
)

from .brokers import GRAPH, MARKET, PLAN, PREFIXES, QUERY, B, X, optimized

EXPLAINED = """\
query TotalAmountPerDayAndBroker
  instants    multiples of PT24H since 1970-01-01T00:00:00Z, from the first event on
  output      snapshot: all rows, at every instant
  reads       graph http://brokerscentral.org/brokers.rdf, which does not move
              stream http://stockexchange.org/market.trdf within PT24H; trailing: (w - PT24H, w]
  columns     broker, total; each answer has win_start, win_end
  execution   recompute: snapshot evaluator, when an event has entered or left a window
              static parts once for each version of their graphs
              on Spark in one cell
  rules       narrow_sources
                b:is_from: set apart, static knowledge holds it
                x:does, x:with: not in graph http://brokerscentral.org/brokers.rdf
              push_filter
                ?country = "CH" below Join
                ?amount ≥ 10 below Join
              push_projection
                drops ?country before Join
                drops ?tx before Annotate
              evaluate_static_parts
                once over http://brokerscentral.org/brokers.rdf, unless a window holds b:is_from
              summarise_windows
                http://stockexchange.org/market.trdf keeps * b:is_from *, * x:does *, * x:with *

  Emit  snapshot
  └─ Distinct
     └─ Project  ?broker, ?total
        └─ Annotate  every row, by ?broker
           │         ?total = sum(?amount)
           └─ Project  ?broker, ?amount
              └─ Join  on ?broker
                 ├─ StaticPart  once for each version of http://brokerscentral.org/brokers.rdf
                 │  │           while a window holds b:is_from: over the windows too, at each instant
                 │  └─ Project  ?broker
                 │     └─ Filter  ?country = "CH"
                 │        └─ GraphPattern  ?broker b:is_from ?country
                 │           └─ Static  graph http://brokerscentral.org/brokers.rdf
                 └─ Filter  ?amount ≥ 10
                    └─ GraphPattern  ?broker x:does ?tx
                       │             ?tx x:with ?amount
                       └─ Window  trailing: (w - PT24H, w]
                          │       keeps * b:is_from *, * x:does *, * x:with *
                          └─ Stream  stream http://stockexchange.org/market.trdf"""

BEFORE = """\
  Emit  snapshot
  └─ Distinct
     └─ Project  ?broker, ?total
        └─ Annotate  every row, by ?broker
           │         ?total = sum(?amount)
           └─ Filter  ?country = "CH" ∧ ?amount ≥ 10
              └─ GraphPattern  ?broker b:is_from ?country
                 │             ?broker x:does ?tx
                 │             ?tx x:with ?amount
                 └─ Merged  as one set of triples
                    ├─ Static  graph http://brokerscentral.org/brokers.rdf
                    └─ Window  trailing: (w - PT24H, w]
                       └─ Stream  stream http://stockexchange.org/market.trdf"""


def test_the_broker_query_is_explained_to_the_letter() -> None:
    assert explain(QUERY, optimized=optimized()).text() == EXPLAINED


def test_the_plan_before_the_rules_can_be_shown_alone_or_with_the_one_after() -> None:
    explanation = explain(QUERY, optimized=optimized())
    assert explanation.text(stage="before").endswith(f"\n\n{BEFORE}")
    both = explanation.text(stage="both")
    assert f"\n  before the rules:\n{BEFORE}\n\n  after the rules:\n  Emit" in both


def test_without_rules_there_is_one_plan_and_no_word_of_them() -> None:
    explanation = explain(QUERY)
    assert explanation.text().endswith(BEFORE)
    assert "rules" not in explanation.text(stage="both")


def test_the_dictionary_has_both_plans_and_the_rules() -> None:
    data = explain(QUERY, optimized=optimized()).to_dict()
    assert [one["rule"] for one in data["rules"]][:2] == ["narrow_sources", "push_filter"]
    assert data["rules"][1]["details"] == ['?country = "CH" below Join', "?amount ≥ 10 below Join"]
    assert data["before"] == explain(QUERY).to_dict()["plan"]
    assert (data["aligned"], data["form"], data["language"]) == (True, "bindings", "csparql")
    assert json.loads(json.dumps(data)) == data


def _steps(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [step, *(one for below in step.get("inputs", ()) for one in _steps(below))]


def test_every_step_says_whether_it_is_static_or_streaming() -> None:
    steps = _steps(explain(QUERY, optimized=optimized()).to_dict()["plan"])
    parts = {(step["operator"], *step.get("details", ())[:1]): step["part"] for step in steps}
    assert parts["Join", "on ?broker"] == "streaming"
    assert parts["Filter", '?country = "CH"'] == "static"
    assert parts["Filter", "?amount ≥ 10"] == "streaming"
    executions = {
        step["operator"]: step["execution"] for step in steps if step["part"] == "static" and "execution" in step
    }
    assert set(executions.values()) == {"once per version"}


def test_a_static_side_that_is_no_part_yet_says_so() -> None:
    static = tr.GraphPattern(GRAPH, (tr.TriplePattern(tr.Var("a"), RDF_TYPE, Iri(f"{B}Broker")),))
    stream = tr.GraphPattern(MARKET, (tr.TriplePattern(tr.Var("a"), Iri(f"{X}does"), tr.Var("t")),))
    shown = explain(replace(QUERY, plan=op.Join(static, stream))).text()
    assert "├─ GraphPattern (static)  ?a a b:Broker" in shown
    assert "└─ GraphPattern  ?a x:does ?t" in shown


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"every": None, "arrivals": 1}, "whenever a triple has come"),
        ({"every": None, "arrivals": 5}, "whenever 5 more triples have come, and at the last event"),
        ({"every": None, "arrivals": 0}, "once, at the last event, when the input has ended"),
        ({"every": None}, "once, at the first event's instant"),
        ({"starting_at": 0}, "1970-01-01T00:00:00Z + k * PT24H, k = 0, 1, ..."),
    ],
)
def test_instants_are_said_in_words(more: dict[str, Any], words: str) -> None:
    assert dict(explain(replace(QUERY, **more)).facts)["instants"] == words


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (op.Window(op.Stream("s"), count=1), "stream s: the last 1 triple up to w"),
        (op.Window(op.Stream("s"), count=10), "stream s: the last 10 triples up to w"),
        (op.Window(op.Stream("s"), unbounded=True), "stream s: all that came up to w"),
        (
            op.Window(op.Stream("s"), parse_duration("PT10M"), step=parse_duration("PT1M")),
            "stream s within PT10M; trailing: (w - PT10M, w], w at multiples of PT1M",
        ),
    ],
)
def test_windows_of_every_kind_are_said_in_words(window: op.Window, words: str) -> None:
    plan = tr.GraphPattern(window, PLAN.inputs[0].inputs[0].inputs[0].inputs[0].patterns)  # type: ignore[attr-defined]
    assert dict(explain(replace(QUERY, plan=plan)).facts)["reads"] == words


def test_answers_that_are_triples_or_go_into_a_stream_say_so() -> None:
    template = (tr.TriplePattern(tr.Var("broker"), Iri(f"{X}total"), tr.Var(" _:new")),)
    query = replace(QUERY, plan=tr.Construct(PLAN, template), form="graph", into="totals")
    shown = explain(query).text()
    assert "output      snapshot: all triples, at every instant" in shown
    assert "into        stream totals: each answer is an event at its instant" in shown
    assert "Emit  snapshot, into stream totals\n  └─ Construct  ?broker x:total _:new" in shown
    asked = explain(replace(QUERY, plan=tr.Ask(PLAN), form="boolean")).text()
    assert "; the row is yes or no" in asked


def test_what_the_plug_in_answers_is_called_so() -> None:
    plan = tr.PluginQuery("SELECT ?a\n  WHERE { ?a ?b ?c }", ("a",), GRAPH)
    shown = explain(plan, prefixes=PREFIXES)
    assert "PluginQuery  SPARQL plug-in\n  │            SELECT ?a WHERE { ?a ?b ?c }" in shown.text()
    assert shown.to_dict()["plan"]["execution"] == "SPARQL plug-in"


V, W = x.Variable("v"), x.Variable("w")


def _call(name: str, *arguments: x.Expression) -> x.Call:
    return x.Call(f"sparql:{name}", arguments)


def _term(term: Term) -> x.Constant:
    return x.Constant(term)


@pytest.mark.parametrize(
    ("expression", "spelled"),
    [
        (x.Not(_call("equal", V, _term(Literal("a")))), '?v ≠ "a"'),
        (x.And((_call("less", _term(Literal("1", XSD_INTEGER)), V), _call("less", V, W))), "?v > 1 ∧ ?v < ?w"),
        (_call("multiply", _call("add", V, W), _call("negate", W)), "(?v + ?w) * -?w"),
        (
            x.Or((x.Not(x.IsNull(V)), x.IsNull(W), x.Not(x.Not(x.IsNull(W))))),
            "?v is bound ∨ ?w is unbound ∨ ?w is unbound",
        ),
        (_call("ebv", _call("regex", V, _term(Literal("^x")))), 'regex(?v, "^x")'),
        (_call("cast", V, _term(Iri(f"{XSD}integer"))), "xsd:integer(?v)"),
        (_call("moment", x.Variable(" time3")), "timestamp(_t3)"),
        (_call("moment", x.TripleTime(MARKET, V, _term(RDF_TYPE), W)), "timestamp(time of (?v rdf:type ?w))"),
        (x.Case(((x.IsNull(V), x.Constant(None)), (V, _term(Literal("a")))), W), 'if(?v, "a", ?w)'),
        (x.AggregateCall("sparql:count", (V,), True), "count(distinct ?v)"),
        (x.AggregateCall("sparql:count", ()), "count(*)"),
        (
            x.Not(
                x.Exists(
                    op.Join(
                        op.Argument(("v",)),
                        tr.GraphPattern(GRAPH, (tr.TriplePattern(tr.Var("v"), RDF_TYPE, tr.Var("w")),)),
                    )
                )
            ),
            "¬∃ {?v a ?w}",
        ),
    ],
)
def test_sparql_expressions_are_spelled_as_people_write_them(expression: x.Expression, spelled: str) -> None:
    assert Speller(PREFIXES, sparql=True).spell(expression) == spelled


@pytest.mark.parametrize(
    ("term", "spelled"),
    [
        (Iri(f"{B}is_from"), "b:is_from"),
        (Iri(f"{B}a/b"), f"<{B}a/b>"),
        (Iri(f"{XSD}date"), "xsd:date"),
        (Literal('say "hi"\n'), '"say \\"hi\\"\\n"'),
        (Literal("01", XSD_INTEGER), "01"),
        (Literal("one", XSD_INTEGER), '"one"^^xsd:integer'),
        (Literal("1.5", XSD_DECIMAL), "1.5"),
        (Literal("true", XSD_BOOLEAN), "true"),
        (Literal("2024-01-01", XSD_DATE), '"2024-01-01"^^xsd:date'),
        (tagged("hallo", "DE"), '"hallo"@de'),
        (Blank("b0"), "_:b0"),
    ],
)
def test_terms_are_spelled_as_turtle_writes_them(term: Term, spelled: str) -> None:
    assert Speller(PREFIXES, sparql=True).place(term) == spelled


def test_property_paths_are_spelled_with_the_brackets_they_need() -> None:
    p, q = tr.PathLink(Iri(f"{B}p")), tr.PathLink(RDF_TYPE)
    spelled = Speller(PREFIXES, sparql=True).property_path
    assert spelled(tr.Repeat(tr.Sequence((p, tr.Inverse(q))), 0)) == "(b:p/(^a))*"
    assert spelled(tr.Alternative((tr.Repeat(p, 1), tr.Repeat(q, 0, 1)))) == "(b:p+)|(a?)"
    assert spelled(tr.NegatedStep((p.iri,), (q.iri,))) == "!(b:p|^a)"
    assert spelled(tr.NegatedStep((p.iri,), None)) == "!b:p"
