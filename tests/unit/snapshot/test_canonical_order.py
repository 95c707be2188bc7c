"""Where a query says no order, no answer depends on the order in which a graph came to be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.delta.dictionary import exact_key
from anabranch.model.graph import PropertyGraph
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Relationship
from anabranch.optimizer import RULES, Knowledge, optimize
from anabranch.snapshot import Context, evaluate_plan
from anabranch.syntax import seraph

NODES = [
    Node(id, ("N",), {"x": x, "k": k})
    for id, x, k in [(1, 1, "a"), (2, 1.0, "a"), ("n", 2, "b"), (4, 2.0, "a"), (5, 0, "b"), (6, -0.0, "b"), (7, 3, "a")]
]
EDGES = [Relationship(f"r{at}", "T", NODES[at].id, NODES[to].id) for at, to in enumerate([1, 2, 0, 0, 6, 4, 3])]
QUERIES = [
    "MATCH (n) RETURN n.x AS x LIMIT 3",
    "MATCH (n) RETURN n SKIP 2 LIMIT 2",
    "MATCH (n)-->(m) RETURN m.x AS x, n.k AS k SKIP 1",
    "MATCH (n) RETURN n.x AS x ORDER BY x",
    "MATCH (n) RETURN n.k AS k, n.x AS x ORDER BY k DESC LIMIT 3",
    "MATCH (n) RETURN collect(n.x) AS xs",
    "MATCH (n)-->(m) RETURN n.k AS k, collect(m.x) AS xs, collect(m.k) AS ks ORDER BY k",
    "MATCH (n) RETURN collect(DISTINCT n.x) AS xs",
    "MATCH (n) RETURN DISTINCT n.x AS x ORDER BY x",
    "MATCH (n) WITH n.x AS x, count(*) AS c RETURN x, c ORDER BY x",
    "MATCH (n) RETURN sum(DISTINCT n.x) AS s, min(n.x) AS least, max(n.x) AS most",
    "MATCH (n) WHERE n.x < 3 RETURN max(n.x) AS most, min(n.x) AS least",
    "MATCH (n {k: 'a'}) RETURN n.x AS x, [(n)--(m) | m.x] AS around ORDER BY x",
    "MATCH (n) WITH n ORDER BY n.k RETURN collect(n.x) AS xs",
]


@pytest.mark.parametrize("text", QUERIES)
def test_answers_do_not_depend_on_the_order_of_the_graph(text: str) -> None:
    plan = seraph.plan(text)
    found = set()
    for seed in range(12):
        random = Random(seed)
        nodes, edges = random.sample(NODES, len(NODES)), random.sample(EDGES, len(EDGES))
        graph = PropertyGraph(nodes, edges)
        rows = evaluate_plan(plan, Context(graph=lambda source, graph=graph: graph))[1]  # type: ignore[misc]
        found.add(repr([[exact_key(value) for value in row] for row in rows]))
    assert len(found) == 1


def test_lists_collected_side_by_side_belong_together() -> None:
    plan = seraph.plan("MATCH (n) RETURN collect(n.k) AS ks, collect(id(n)) AS ids")
    ((ks, ids),) = evaluate_plan(plan, Context(graph=lambda source: PropertyGraph(NODES[::-1])))[1]
    assert (ks, ids) == (["a", "a", "a", "a", "b", "b", "b"], [1, 2, 4, 7, "n", 5, 6])


def test_a_list_keeps_the_order_that_somebody_asked_for() -> None:
    unwound = "UNWIND [3, 1, 2] AS x RETURN collect(x) AS xs"
    sorted_down = "MATCH (n) WITH n ORDER BY n.x DESC, id(n) RETURN collect(id(n)) AS ids"
    context = Context(graph=lambda source: PropertyGraph(NODES))
    assert evaluate_plan(seraph.plan(unwound), context)[1] == [([3, 1, 2],)]
    assert evaluate_plan(seraph.plan(sorted_down), context)[1] == [([7, "n", 4, 1, 2, 5, 6],)]


# --- triples: neither do they depend on rewrites ---

WINDOW, OTHER = op.Window(op.Stream("s")), op.Window(op.Stream("t"))
P, Q = Iri("http://p"), Iri("http://q")


def bgp(*patterns: tuple[str, Iri, str], window: op.Window = WINDOW) -> tr.GraphPattern:
    return tr.GraphPattern(window, tuple(tr.TriplePattern(tr.Var(a), p, tr.Var(b)) for a, p, b in patterns))


def concat(name: str) -> ex.AggregateCall:
    return ex.AggregateCall("sparql:group_concat", (ex.Variable(name),))


def project(plan: op.Operator, *names: str) -> op.Operator:
    return op.Project(plan, tuple((name, ex.Variable(name)) for name in names))


# The first and the last are merged, which changes the places of the columns.
PATTERN = op.Join(op.Join(bgp(("z", P, "y")), bgp(("a", Q, "b"), window=OTHER)), bgp(("z", Q, "c")))
PLANS: list[op.Operator] = [
    project(op.Slice(PATTERN, ex.Constant(3), ex.Constant(20)), "c", "b"),
    project(op.Slice(op.Union(project(PATTERN, "b", "c"), project(PATTERN, "c", "b")), None, ex.Constant(40)), "c"),
    project(op.Order(PATTERN, (op.OrderKey(ex.Variable("y"), of_terms=True),)), "b"),
    project(op.Slice(op.Order(PATTERN, (op.OrderKey(ex.Variable("y"), True, True),)), None, ex.Constant(4)), "c"),
    project(op.Aggregate(PATTERN, (), (("one", concat("y")), ("two", concat("c")))), "two"),
    op.Aggregate(PATTERN, (("z", ex.Variable("z")),), (("all", concat("y")),)),
    project(op.Annotate(PATTERN, ("z",), (("one", concat("b")), ("two", concat("c")))), "z", "two"),
]


@pytest.mark.parametrize("plan", PLANS)
def test_neither_rewrites_nor_the_order_of_triples_change_which_rows_come_first(plan: op.Operator) -> None:
    random = Random(3)
    names = [Literal(letter) for letter in "abc"]
    triples = [Triple(Iri(f"http://{s}"), p, o) for s in "xyz" for p in (P, Q) for o in random.sample(names, 2)]
    found: set[Any] = set()
    for seed in range(6):
        graph = TripleGraph(Random(seed).sample(triples, len(triples)))
        context = Context(graph=lambda source: PropertyGraph(), triple_graph=lambda source, graph=graph: graph)  # type: ignore[misc]
        for rules in ((), RULES, RULES[::-1]):
            rewritten = optimize(plan, Knowledge(), rules).plan
            rows = evaluate_plan(rewritten, context)[1]
            found.add(tuple(rows) if not isinstance(plan, op.Aggregate) else tuple(sorted(rows)))
            assert rows
    if isinstance(plan, op.Project) and isinstance(plan.input, op.Slice | op.Annotate):
        found = {tuple(sorted(rows)) for rows in found}  # a bag: only which rows they are is told
    assert len(found) == 1
