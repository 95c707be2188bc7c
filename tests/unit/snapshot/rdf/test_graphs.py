"""CONSTRUCT, DESCRIBE, ASK, static parts that are kept, and queries that a plug-in answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.snapshot.rdf.judge import DATA, bgp, context_over, iri, rows_over, shown, triples

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.errors import EvaluationError, Span
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.terms import FALSE, TRUE, Blank, Iri, Term
from anabranch.model.triples import TripleGraph, Triples
from anabranch.snapshot import Context, compile_plan, evaluate_plan

WINDOW = op.Window(op.Stream("s"))


def template(text: str) -> tuple[tr.TriplePattern, ...]:
    """As `bgp`, with `?_x` for the template's blank nodes."""
    return tuple(tr.TriplePattern(*(_new(place) for place in pattern.places)) for pattern in bgp(text).patterns)


def _new(place: tr.TermPlace) -> tr.TermPlace:
    return tr.Var(f" _:{place.name[1:]}") if isinstance(place, tr.Var) and place.name.startswith("_") else place


# --- CONSTRUCT --------------------------------------------------------------------------------------------------------


def test_construct_gives_each_triple_once() -> None:
    plan = tr.Construct(bgp("?x p ?y"), template("?y made ?x; all made done"))
    assert shown(rows_over("a p b; c p b", plan)) == [("all", "made", "done"), ("b", "made", "a"), ("b", "made", "c")]


def test_construct_leaves_out_what_is_unbound_or_no_triple() -> None:
    rows = tr.Values(
        ("x", "v", "y"), ((iri("a"), iri("p"), None), (*triples("1 p b"),)[0], (iri("a"), Blank("n"), iri("b")))
    )
    assert rows_over("", tr.Construct(rows, template("?x ?v ?y"))) == []
    assert shown(rows_over("", tr.Construct(rows, template("?x ok ?y; ?x ?v c; ?nobody p a")))) == [
        ("a", "ok", "b"),
        ("a", "p", "c"),
    ]


def test_blank_nodes_of_the_template_are_new_for_every_row_and_shared_within_it() -> None:
    plan = tr.Construct(bgp("?x p ?y"), template("?x has ?_n; ?_n value ?y"))
    found = rows_over("a p 1; a p 2", plan)
    nodes = [row[2] for row in found if row[1] == iri("has")]
    assert len(set(nodes)) == 2
    assert [row[0] for row in found if row[1] == iri("value")] == nodes


def test_the_same_row_gives_the_same_blank_node_at_every_instant() -> None:
    plan = tr.Construct(bgp("?x p ?y"), template("?x has ?_n"))
    first, second = rows_over("a p 1", plan), rows_over("b p 2; a p 1", plan)
    assert set(first) < set(second)


def test_equal_rows_give_different_blank_nodes() -> None:
    twice = op.Project(bgp("?x p ?y"), (("x", ex.Variable("x")),))
    found = rows_over("a p 1; a p 2", tr.Construct(twice, template("?x has ?_n")))
    assert len(found) == 2


def test_a_blank_node_of_the_pattern_with_the_same_label_is_another_one() -> None:
    where = tr.GraphPattern(DATA, (tr.TriplePattern(tr.Var(" _:n"), iri("p"), tr.Var("y")),))
    found = rows_over("a p 1", tr.Construct(where, template("?_n has ?y")))
    assert isinstance(found[0][0], Blank)


# --- DESCRIBE and ASK -------------------------------------------------------------------------------------------------


def test_describe_follows_blank_nodes_and_nothing_else() -> None:
    graph = "a p b; a q _n; _n q _m; _m q c; _m p _n; b p c; c q a"
    plan = tr.Describe(op.Unit(), DATA, (ex.Constant(iri("a")),))
    assert shown(rows_over(graph, plan)) == [
        ("_m", "p", "_n"),
        ("_m", "q", "c"),
        ("_n", "q", "_m"),
        ("a", "p", "b"),
        ("a", "q", "_n"),
    ]


def test_describe_of_a_variable_takes_all_its_values_and_terms_of_the_query_always() -> None:
    plan = tr.Describe(bgp("?x p ?y"), DATA, (ex.Variable("x"), ex.Variable("y"), ex.Constant(iri("c"))))
    assert shown(rows_over("a p 1; b p a; c q d", plan)) == [("a", "p", "1"), ("b", "p", "a"), ("c", "q", "d")]
    assert shown(rows_over("c q d", plan)) == [("c", "q", "d")]


def test_ask_says_whether_there_is_a_row() -> None:
    assert rows_over("a p b", tr.Ask(bgp("?x p ?y"))) == [(TRUE,)]
    assert rows_over("a p b", tr.Ask(bgp("?x q ?y"))) == [(FALSE,)]


def test_ask_stops_at_the_first_row() -> None:
    many = ";".join(f"a{at} p b{at}" for at in range(200))
    context = context_over(many)
    assert compile_plan(tr.Ask(bgp("?x p ?y; ?z p ?w"))).run(context) == [(TRUE,)]
    assert context.steps < 1_000


# --- static parts -----------------------------------------------------------------------------------------------------


class Knowledge:
    """Static triples with a version, a window, and a count of how often each was read."""

    def __init__(self, static: str, window: str = "") -> None:
        self.graphs = {DATA: TripleGraph(triples(static)), WINDOW: TripleGraph(triples(window))}
        self.version = 1
        self.reads = 0

    def context(self, **more: Any) -> Context:
        def triple_graph(source: op.Source) -> Triples:
            self.reads += source == DATA
            return self.graphs[source]  # type: ignore[index]

        return Context(
            graph=lambda source: EMPTY_GRAPH,
            triple_graph=triple_graph,
            static_version=lambda name: self.version,
            **more,
        )


def test_a_static_part_is_read_once_for_each_version() -> None:
    known = Knowledge("a p b")
    compiled = compile_plan(tr.StaticPart(bgp("?x p ?y")))
    assert [shown(compiled.run(known.context())) for _ in range(3)] == [[("a", "b")]] * 3
    assert known.reads == 1
    known.graphs[DATA] = TripleGraph(triples("c p d"))
    known.version = 2
    assert shown(compiled.run(known.context())) == [("c", "d")]
    assert known.reads == 2


def test_a_static_part_joined_with_a_stream_is_found_through_its_kept_index() -> None:
    known = Knowledge(";".join(f"a{at} p b{at}" for at in range(500)), "a3 q x; zz q y")
    plan = op.Join(tr.StaticPart(bgp("?x p ?y")), bgp("?x q ?z", WINDOW))
    compiled = compile_plan(plan)
    compiled.run(known.context())
    context = known.context()
    assert shown(compiled.run(context)) == [("a3", "b3", "x")]
    assert context.steps < 10
    assert known.reads == 1


def test_a_stream_triple_that_belongs_to_a_static_part_is_not_overlooked() -> None:
    both = op.MergedSource((DATA, WINDOW))
    reordered = op.Project(bgp("?x p ?y", both), (("y", ex.Variable("y")), ("x", ex.Variable("x"))))
    plan = tr.StaticPart(bgp("?x p ?y"), reordered, (iri("p"),), (WINDOW,))
    known = Knowledge("a p b", "c q d")
    compiled = compile_plan(plan)
    assert shown(compiled.run(known.context())) == [("a", "b")]
    known.graphs[WINDOW].add(triples("c p d")[0])
    assert shown(compiled.run(known.context())) == [("a", "b"), ("c", "d")]
    known.graphs[WINDOW].remove(triples("c p d")[0])
    assert shown(compiled.run(known.context())) == [("a", "b")]


def test_without_versions_nothing_is_kept() -> None:
    plan = compile_plan(tr.StaticPart(bgp("?x p ?y")))
    assert shown(plan.run(context_over("a p b"))) == [("a", "b")]
    assert shown(plan.run(context_over("c p d"))) == [("c", "d")]


# --- the plug-in ------------------------------------------------------------------------------------------------------


class Recorder:
    """A plug-in that answers from a list and remembers what it was asked."""

    def __init__(self, columns: tuple[str, ...], rows: list[tuple[Term | None, ...]]) -> None:
        self.columns, self.rows = columns, rows
        self.asked: list[object] = []

    def evaluate(
        self, text: str, default: Triples, named: Mapping[Iri, Triples]
    ) -> tuple[tuple[str, ...], list[tuple[Term | None, ...]]]:
        self.asked.append((text, list(default), {name: list(graph) for name, graph in named.items()}))
        return self.columns, self.rows

    def match(self, patterns: Sequence[tr.TriplePattern], graph: Triples) -> list[tuple[Term | None, ...]]:
        self.asked.append((tuple(patterns), list(graph)))
        return self.rows


def test_a_delegated_query_is_answered_by_the_plug_in() -> None:
    plugin = Recorder(("y", "x"), [(iri("b"), iri("a"))])
    plan = tr.PluginQuery("SELECT ...", ("x", "y", "z"), DATA, ((iri("g"), DATA),))
    found = rows_over("a p b", plan, plugin=plugin)
    assert found == [(iri("a"), iri("b"), None)]
    held = list(triples("a p b"))
    assert plugin.asked == [("SELECT ...", held, {iri("g"): held})]


def test_a_delegated_query_without_a_plug_in_is_refused_with_its_place() -> None:
    plan = tr.PluginQuery("SELECT ...", ("x",), DATA, span=Span(2, 9))
    with pytest.raises(EvaluationError) as caught:
        rows_over("a p b", plan)
    assert (caught.value.diagnostic.code, caught.value.diagnostic.span) == ("SPQ-301", Span(2, 9))


def test_a_static_pattern_is_matched_by_the_plug_in_where_there_is_one() -> None:
    plugin = Recorder((), [(iri("one"), iri("two"))])
    plan = tr.StaticPart(bgp("?x p ?y"))
    assert evaluate_plan(plan, context_over("a p b", plugin=plugin))[1] == [(iri("one"), iri("two"))]
    filtered = tr.StaticPart(op.Distinct(bgp("?x p ?y")))
    assert evaluate_plan(filtered, context_over("a p b", plugin=plugin))[1] == [(iri("a"), iri("b"))]
