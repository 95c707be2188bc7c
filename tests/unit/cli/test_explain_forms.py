"""`anabranch explain` of the SPARQL family, and its drawings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import Invoke

Write = Callable[[str, str], Path]

BROKERS = """\
REGISTER QUERY TotalAmountPerDayAndBroker AS
PREFIX b: <http://brokerscentral.org/accounts#>
PREFIX x: <http://stockexchange.org/exchanges#>
SELECT DISTINCT ?broker ?total
FROM <http://brokerscentral.org/brokers.rdf>
FROM STREAM <http://stockexchange.org/market.trdf> [RANGE 24h TUMBLING]
WHERE {
  ?broker b:is_from ?country .
  ?broker x:does ?tx .
  ?tx x:with ?amount .
  FILTER (?country = 'CH' && ?amount >= 10)
}
AGGREGATE { (?total, SUM(?amount), ?broker) }
"""


def test_the_rules_that_fire_are_listed_with_the_plan_they_end_in(invoke: Invoke, write: Write) -> None:
    shown = invoke("explain", write("brokers.csparql", BROKERS)).out
    assert "rules       push_projection\n                drops ?country, ?tx before Annotate\n" in shown
    assert "keeps * b:is_from *, * x:does *, * x:with *" in shown


def test_the_plan_before_the_rules_has_no_trace_of_them(invoke: Invoke, write: Write) -> None:
    shown = invoke("explain", write("brokers.csparql", BROKERS), "--stage", "before").out
    assert "  Emit  snapshot" in shown
    assert "\n                          │       keeps" not in shown
    both = invoke("explain", write("brokers.csparql", BROKERS), "--stage", "both").out
    assert "\n  before the rules:\n" in both
    assert "\n  after the rules:\n" in both


@pytest.mark.parametrize(
    ("form", "begins"),
    [("mermaid", "---\ntitle: "), ("dot", "digraph "), ("svg", '<svg xmlns="http://www.w3.org/2000/svg"')],
)
@pytest.mark.parametrize("view", ["ograph", "dgraph"])
def test_a_query_can_be_drawn(invoke: Invoke, write: Write, form: str, begins: str, view: str) -> None:
    drawn = invoke("explain", write("brokers.csparql", BROKERS), "--format", form, "--view", view)
    assert drawn.code == 0
    assert drawn.out.startswith(begins)
    assert "before the rules" in drawn.out
    if form == "svg":
        ElementTree.fromstring(drawn.out)


def test_a_seraph_query_can_be_drawn(invoke: Invoke, trick: Path) -> None:
    drawn = invoke("explain", trick, "--format", "dot").out
    assert 'label="O-Graph: query student_trick"' in drawn
    assert "before the rules" in drawn
    plain = invoke("explain", "--text", "MATCH (a)-->(b) RETURN count(*)", "--format", "dot").out
    assert "before the rules" not in plain


def test_the_json_has_the_rules_and_both_plans(invoke: Invoke, write: Write) -> None:
    data = json.loads(invoke("explain", write("brokers.csparql", BROKERS), "--format", "json").out)
    assert [one["rule"] for one in data["rules"]] == ["push_projection", "summarise_windows"]
    assert data["before"] != data["plan"]


def test_a_plain_sparql_query_is_explained_with_its_prefixes(invoke: Invoke) -> None:
    shown = invoke("explain", "--text", "PREFIX : <http://ex/> SELECT ?a WHERE { ?a :p ?b FILTER(?b > 1) }").out
    assert "GraphPattern  ?a :p ?b" in shown
    assert "Filter  ?b > 1" in shown


def test_the_d_graph_as_text_is_refused_with_what_to_write(invoke: Invoke, trick: Path) -> None:
    refused = invoke("explain", trick, "--view", "dgraph")
    assert refused.code == 2
    assert "--format svg, mermaid or dot" in " ".join(refused.err.replace("│", " ").split())


def test_a_stream_that_travels_as_links_on_spark_is_named(invoke: Invoke, write: Write) -> None:
    text = (
        "REGISTER QUERY q AS SELECT ?a FROM STREAM <http://s> [RANGE 9s STEP 3s] "
        "WHERE { VALUES ?a { <http://a> } FILTER(anb:connected(?a, <http://b>)) }"
    )
    shown = invoke("explain", write("q.csparql", text)).out
    assert "\n  on Spark    http://s travels as links: a spanning forest of each slide\n" in shown
    whole = text.replace("FILTER", "?a <http://p> ?b FILTER")
    assert "travels as links" not in invoke("explain", write("w.csparql", whole)).out
