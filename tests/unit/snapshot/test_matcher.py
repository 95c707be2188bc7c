"""The rules of matching, one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from anabranch import evaluate
from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.errors import EvaluationError
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Node, Path, Relationship, Value
from anabranch.snapshot import Context, evaluate_plan

WINDOW = op.Window()


def graph_of(*edges: str, **labels: str) -> PropertyGraph:
    """`graph_of("a-T>b", a="A")`: relationships numbered from 0, nodes named by letters, labels by letters."""
    relationships = []
    for number, edge in enumerate(edges):
        source, rest = edge.split("-")
        kind, target = rest.split(">")
        relationships.append(Relationship(number, kind or "T", source, target))
    names = {end for one in relationships for end in (one.source, one.target)} | set(labels)
    nodes = [Node(name, tuple(labels.get(name, ""))) for name in sorted(map(str, names))]
    return PropertyGraph(nodes, relationships)


def v(name: str) -> ex.Variable:
    return ex.Variable(name)


def n(name: str, labels: str = "") -> op.NodePattern:
    return op.NodePattern(name, tuple(labels))


def r(
    name: str,
    direction: Any = "out",
    types: tuple[str, ...] = (),
    length: tuple[int, int | None] | None = None,
    where: ex.Expression | None = None,
) -> op.RelationshipPattern:
    return op.RelationshipPattern(name, types, direction, length, where)


def path(*parts: Any, name: str | None = None, kind: Any = "trail") -> op.PathPattern:
    return op.PathPattern(tuple(parts[::2]), tuple(parts[1::2]), name, kind)


def pattern(*paths: op.PathPattern, source: op.Source = WINDOW) -> op.Pattern:
    return op.Pattern(source, paths)


def rows_of(plan: op.Operator, graph: PropertyGraph, **settings: Any) -> list[tuple[Any, ...]]:
    return evaluate_plan(plan, Context(graph=lambda source: graph, **settings))[1]


def ids(plan: op.Operator, graph: PropertyGraph, *names: str) -> list[Any]:
    """The ids of some columns, sorted."""
    picks = [plan.columns.index(name) for name in names]
    return sorted("".join(str(row[pick].id) for pick in picks) for row in rows_of(plan, graph))


# --- one relationship ---


def test_direction() -> None:
    graph = graph_of("a->b")
    for direction, expected in (("out", ["ab"]), ("in", ["ba"]), ("both", ["ab", "ba"])):
        assert ids(pattern(path(n("x"), r("e", direction), n("y"))), graph, "x", "y") == expected


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_a_self_loop_matches_once(direction: str) -> None:
    assert ids(pattern(path(n("x"), r("e", direction), n("y"))), graph_of("a->a"), "x", "y") == ["aa"]


def test_types_are_alternatives_and_labels_are_all_needed() -> None:
    graph = graph_of("a-S>b", "a-T>c", "a-U>b", b="AB", c="A")
    assert ids(pattern(path(n("x"), r("e", types=("S", "T")), n("y", "A"))), graph, "y") == ["b", "c"]
    assert ids(pattern(path(n("x"), r("e"), n("y", "AB"))), graph, "e") == ["0", "2"]


def test_labels_of_one_variable_add_up() -> None:
    graph = graph_of("a->b", "b->a", a="A", b="AB")
    twice = pattern(path(n("x", "A"), r("e"), n("y")), path(n("x", "B")))
    assert ids(twice, graph, "x") == ["b"]


# --- several relationships ---


def test_relationships_of_one_pattern_are_pairwise_different() -> None:
    graph = graph_of("a->b")
    there_and_back = pattern(path(n("x"), r("e", "both"), n("y"), r("f", "both"), n("z")))
    assert rows_of(there_and_back, graph) == []
    apart = pattern(path(n("x"), r("e"), n("y")), path(n("u"), r("f"), n("w")))
    assert rows_of(apart, graph) == []


def test_relationships_of_two_patterns_may_be_the_same() -> None:
    plan = op.Join(pattern(path(n("x"), r("e"), n("y"))), pattern(path(n("u"), r("f"), n("w"))))
    assert ids(plan, graph_of("a->b"), "e", "f") == ["00"]


def test_nodes_may_repeat() -> None:
    graph = graph_of("a->b", "b->a")
    assert ids(pattern(path(n("x"), r("e"), n("y"), r("f"), n("z"))), graph, "x", "y", "z") == ["aba", "bab"]


def test_the_same_variable_is_the_same_node() -> None:
    graph = graph_of("a->b", "b->c", "c->a", "c->c")
    triangle = pattern(path(n("x"), r("e"), n("y"), r("f"), n("z"), r("g"), n("x")))
    assert ids(triangle, graph, "x", "y", "z") == ["abc", "bca", "cab"]
    assert ids(pattern(path(n("x"), r("e"), n("x"))), graph, "x") == ["c"]


def test_unconnected_parts_give_every_pair() -> None:
    graph = graph_of(a="A", b="B", c="B")
    assert ids(pattern(path(n("x", "A")), path(n("y", "B"))), graph, "x", "y") == ["ab", "ac"]


# --- what is bound before ---


def bound(name: str, value: Value) -> op.Operator:
    return op.Project(op.Unit(), ((name, ex.Constant(value)),))


def test_a_bound_node_is_where_matching_starts() -> None:
    graph = graph_of("a->b", "c->b")
    plan = op.Join(bound("x", Node("c")), pattern(path(n("x"), r("e"), n("y"))))
    assert ids(plan, graph, "x", "e", "y") == ["c1b"]


@pytest.mark.parametrize("value", [None, 5, Node("elsewhere"), Relationship(0, "T", "a", "b")])
def test_nothing_matches_what_is_no_node_of_the_graph(value: Value) -> None:
    graph, one = graph_of("a->b"), pattern(path(n("x"), r("e"), n("y")))
    assert rows_of(op.Join(bound("x", value), one), graph) == []
    assert rows_of(op.LeftJoin(bound("x", value), one), graph) == [(value, None, None)]


def test_a_bound_relationship_is_matched_exactly() -> None:
    graph = graph_of("a->b", "a->b")
    given = bound("e", Relationship(1, "T", "a", "b"))
    assert ids(op.Join(given, pattern(path(n("x"), r("e"), n("y")))), graph, "x", "e", "y") == ["a1b"]
    assert ids(op.Join(given, pattern(path(n("x"), r("e", "both"), n("y")))), graph, "x", "y") == ["ab", "ba"]
    assert rows_of(op.Join(given, pattern(path(n("x"), r("e", types=("S",)), n("y")))), graph) == []
    assert ids(op.Join(given, pattern(path(n("x"), r("e"), n("y")), path(n("x"), r("f"), n("y")))), graph, "f") == ["0"]


def test_a_bound_list_of_relationships_is_walked_exactly() -> None:
    graph = graph_of("a->b", "b->c", "a->c")
    first, second = graph.relationships[0], graph.relationships[1]

    def ends(value: Value, direction: str = "out", length: tuple[int, int | None] = (1, None)) -> list[str]:
        one = pattern(path(n("x"), r("es", direction, length=length), n("y")))
        return ids(op.Join(bound("es", value), one), graph, "x", "y")

    assert ends([first, second]) == ["ac"]
    assert ends([second, first]) == []
    assert ends([second, first], "in") == ["ca"]
    assert ends([first, second], "both") == ["ac"]
    assert ends([first], "both") == ["ab", "ba"]
    assert ends([first, first], "both") == []
    assert ends([first, second], length=(3, None)) == []
    assert ends([], length=(0, None)) == ["aa", "bb", "cc"]
    assert ends(first) == []
    beside = pattern(path(n("x"), r("es", length=(1, None)), n("y")), path(n("x"), r("f"), n("y")))
    assert ids(op.Join(bound("es", [first, second]), beside), graph, "f") == ["2"]


def test_a_left_row_stays_once_when_nothing_meets_the_condition() -> None:
    graph = graph_of("a->b", "a->c")
    plan = op.LeftJoin(
        pattern(path(n("x"))),
        pattern(path(n("x"), r("e"), n("y"))),
        ex.Compare("=", ex.Call("id", (v("y"),)), ex.Constant("b")),
    )
    found = Counter((row[0].id, row[2] and row[2].id) for row in rows_of(plan, graph))
    assert found == {("a", "b"): 1, ("b", None): 1, ("c", None): 1}


# --- paths ---


def test_a_named_path_reads_from_left_to_right() -> None:
    graph = graph_of("a->b", "b->c", c="C")
    walk = pattern(path(n("x"), r("es", length=(2, 2)), n("y", "C"), name="p"))
    ((*_, found),) = rows_of(walk, graph)
    assert isinstance(found, Path)
    assert [node.id for node in found.nodes] == ["a", "b", "c"]
    assert [one.id for one in found.relationships] == [0, 1]


def test_a_trail_of_zero_length_is_its_node() -> None:
    walk = pattern(path(n("x"), r("es", length=(0, 0)), n("y"), name="p"))
    ((x, es, y, found),) = rows_of(walk, graph_of(a="A"))
    assert (x.id, es, y.id, found) == ("a", [], "a", Path((Node("a"),)))


def test_trails_pass_no_relationship_twice_but_nodes_again() -> None:
    graph = graph_of("a->b", "b->a", "a->c")
    walk = pattern(path(n("x"), r("es", length=(1, None)), n("y")))
    found = sorted("".join(str(one.id) for one in row[1]) for row in rows_of(walk, graph))
    assert found == ["0", "01", "012", "1", "10", "12", "2"]


def test_a_path_of_a_bound_node_alone() -> None:
    plan = op.Join(bound("x", Node("a")), pattern(path(n("x"), name="p")))
    assert rows_of(plan, graph_of(a="A")) == [(Node("a"), Path((Node("a"),)))]


def test_conditions_on_single_relationships_hold_along_a_trail() -> None:
    nodes = [Node(i) for i in range(4)]
    links = [Relationship(i, "T", i, i + 1, {"open": i != 1}) for i in range(3)]
    is_open = ex.Property(v("es"), "open")
    walk = pattern(path(n("x"), r("es", length=(1, None), where=is_open), n("y")))
    found = sorted((row[0].id, row[2].id) for row in rows_of(walk, PropertyGraph(nodes, links)))
    assert found == [(0, 1), (2, 3)]


# --- conditions ---


def numbered(*values: Value) -> PropertyGraph:
    nodes = [Node(i, ("N",), {"x": value}) for i, value in enumerate(values)]
    return PropertyGraph(nodes, [Relationship(i, "T", i, i + 1) for i in range(len(values) - 1)])


def x_of(name: str) -> ex.Property:
    return ex.Property(v(name), "x")


def test_an_equality_is_looked_up_not_searched() -> None:
    graph = numbered(*range(2000))
    same = op.Filter(pattern(path(n("a", "N")), path(n("b", "N"))), ex.Compare("=", x_of("a"), x_of("b")))
    context = Context(graph=lambda source: graph, max_steps=10_000)
    assert len(evaluate_plan(same, context)[1]) == 2000
    few = ex.ListOf((ex.Constant(3), ex.Constant(3.0), ex.Constant(None)))
    chosen = op.Filter(pattern(path(n("a"))), ex.Call("in", (x_of("a"), few)))
    context = Context(graph=lambda source: graph, max_steps=10)
    assert [row[0].id for row in evaluate_plan(chosen, context)[1]] == [3]


def test_a_lookup_by_id() -> None:
    graph, context = numbered(*range(100)), 10
    for wanted, expected in ((7, [7]), (7.0, [7]), (True, []), ("7", []), ([7], []), (None, [])):
        plan = op.Filter(pattern(path(n("a"))), ex.Compare("=", ex.Call("id", (v("a"),)), ex.Parameter("id")))
        found = rows_of(plan, graph, parameters={"id": wanted}, max_steps=context)
        assert [row[0].id for row in found] == expected


def test_a_value_of_the_path_itself_looks_nothing_up() -> None:
    asked = ex.Compare("=", ex.Call("id", (v("b"),)), ex.Call("length", (v("p"),)))
    plan = op.Filter(pattern(path(n("a"), r("e", length=(1, None)), n("b"), name="p")), asked)
    found = rows_of(plan, PropertyGraph([Node(0), Node(1)], [Relationship(5, "T", 0, 1)]))
    assert [row[2].id for row in found] == [1]


@pytest.mark.parametrize(
    ("edges", "direction", "length", "expected"),
    [
        (("a->b", "b->c", "a->c"), "out", (1, None), "ab ac bc"),
        (("a->b", "b->a"), "out", (1, None), "aa ab ba bb"),
        (("a->b", "b->c", "c->d"), "out", (1, 2), "ab ac bc bd cd"),
        (("a->b",), "out", (0, None), "aa ab bb"),
        (("a->b",), "both", (1, None), "ab ba"),
        (("a->b", "a->b"), "both", (1, None), "aa ab ba bb"),
        (("a->a", "a->b"), "both", (1, None), "aa ab ba"),
        (("a->b", "b->c", "c->a", "c->d"), "both", (1, None), "aa ab ac ad ba bb bc bd ca cb cc cd da db dc"),
    ],
)
def test_ends_of_trails_are_found_once(
    edges: tuple[str, ...], direction: Any, length: tuple[int, int | None], expected: str
) -> None:
    step = replace(r("e", direction, length=length), once=True)
    found = rows_of(pattern(path(n("x"), step, n("y"))), graph_of(*edges))
    assert sorted(f"{row[0].id}{row[2].id}" for row in found) == expected.split()
    assert all(row[1] is None for row in found)


def test_an_error_is_raised_only_where_the_whole_match_stands() -> None:
    inverse = ex.Compare(">", ex.Call("divide", (ex.Constant(10), x_of("a"))), ex.Constant(0))
    hop = pattern(path(n("a"), r("e"), n("b")))
    assert len(rows_of(op.Filter(hop, inverse), numbered(1, 2, 0))) == 2  # the last node leads nowhere
    guarded = ex.And((inverse, ex.Compare(">", x_of("b"), ex.Constant(5))))
    assert len(rows_of(op.Filter(hop, guarded), numbered(0, 1, 9))) == 1
    with pytest.raises(EvaluationError) as caught:
        rows_of(op.Filter(hop, guarded), numbered(0, 9))
    assert caught.value.diagnostic.code == "SER-304"


def test_a_condition_that_is_no_truth_value_is_refused() -> None:
    with pytest.raises(EvaluationError) as caught:
        rows_of(op.Filter(pattern(path(n("a"))), x_of("a")), numbered(1))
    assert caught.value.diagnostic.code == "SER-302"


def test_conditions_may_ask_whether_another_pattern_exists() -> None:
    graph = graph_of("a->b", "b->c")
    inner = op.Join(op.Argument(("x",)), pattern(path(n("x"), r(" e"), n(" y"))))
    assert ids(op.Filter(pattern(path(n("x"))), ex.Exists(inner)), graph, "x") == ["a", "b"]
    assert ids(op.Filter(pattern(path(n("x"))), ex.Not(ex.Exists(inner))), graph, "x") == ["c"]


# --- several graphs ---

STREAM, STATIC = op.Window(op.Stream("s")), op.Static("map")
GRAPHS = {
    STREAM: PropertyGraph([Node(1, ("S",), {"speed": 9})], [Relationship(0, "AT", 1, 2)]),
    STATIC: PropertyGraph([Node(1, ("K",), {"speed": 0}), Node(2, ("P",), {"name": "Oak"})]),
}


def test_a_node_is_joined_by_id_and_is_then_what_both_graphs_say_of_it() -> None:
    seen = pattern(path(n("x", "S"), r("e"), n("y")), source=STREAM)
    known = pattern(path(n("x", "K")), path(n("y", "P")), source=STATIC)
    _, rows = evaluate_plan(op.Join(seen, known), Context(graph=GRAPHS.__getitem__))
    ((x, _, y),) = rows
    assert (set(x.labels), y.labels) == ({"S", "K"}, ("P",))


def test_the_ends_of_a_relationship_come_from_its_own_graph() -> None:
    known, seen = pattern(path(n("k", "K")), source=STATIC), pattern(path(n("x"), r("e"), n("y")), source=STREAM)
    static_first = op.Join(known, seen)
    plan = op.Project(static_first, (("start", ex.Call("startnode", (v("e"),))),))
    ((start,),) = evaluate_plan(plan, Context(graph=GRAPHS.__getitem__))[1]
    assert start.labels == ("S",)


# --- budget ---


def test_a_pattern_that_explodes_gives_up() -> None:
    complete = PropertyGraph([], [Relationship(10 * i + j, "T", i, j) for i in range(10) for j in range(10)])
    walk = pattern(path(n("x"), r("es", length=(1, None)), n("y")))
    with pytest.raises(EvaluationError) as caught:
        rows_of(walk, complete, max_steps=100_000)
    assert caught.value.diagnostic.code == "SER-306"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("MATCH (a)-[r]->(b) MATCH (a) WHERE ALL(e IN [r] WHERE e.x = 3) RETURN r.x AS x", [3]),
        ("MATCH p = (a)-[r]->(b) MATCH (b), (a) WHERE NONE(e IN relationships(p) WHERE e.x = 3) RETURN r.x AS x", [4]),
        ("MATCH (a)-[r]->(b) MATCH (a) WHERE [e IN [r.x] | e + 1] = [5] RETURN r.x AS x", [4]),
        ("MATCH (a)-[r]->(b) MATCH (a) WHERE reduce(sum = 0, e IN [r.x] | sum + e) = 3 RETURN r.x AS x", [3]),
        ("MATCH (b) MATCH (a)-[t*1..2]->(b) WHERE ALL(e IN t WHERE e.x = b.y) RETURN size(t) AS x", [1]),
    ],
)
def test_a_condition_with_a_variable_of_its_own_may_read_elements_that_are_met_again(
    query: str, expected: list[int]
) -> None:
    nodes = [{"id": name, "labels": [], "properties": {"y": 4}} for name in "abc"]
    links = [("a", "b", 3), ("b", "c", 4)]
    relationships = [{"type": "R", "from": source, "to": target, "properties": {"x": x}} for source, target, x in links]
    found = evaluate(query, {"nodes": nodes, "relationships": relationships})
    assert [row["x"] for row in found.dicts()] == expected
