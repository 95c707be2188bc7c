"""Shortest paths: one or all, from either end, within bounds, the same whichever way they are searched."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.errors import EvaluationError
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Node, Relationship
from anabranch.snapshot import Context, evaluate_plan

SOURCE = op.Window()
Found = dict[tuple[Any, Any], list[list[Any]]]


def shortest(
    kind: Any,
    direction: Any = "out",
    length: tuple[int, int | None] | None = (1, None),
    where: ex.Expression | None = None,
    types: tuple[str, ...] = (),
    labels: tuple[str, str] = ("", ""),
) -> op.Pattern:
    hop = op.RelationshipPattern("es", types, direction, length, where)
    nodes = (op.NodePattern("x", tuple(labels[0])), op.NodePattern("y", tuple(labels[1])))
    return op.Pattern(SOURCE, (op.PathPattern(nodes, (hop,), "p", kind),))


def found(plan: op.Operator, graph: PropertyGraph) -> Found:
    """Per pair of ends, the ids of the relationships of its paths."""
    answer: Found = {}
    columns, rows = evaluate_plan(plan, Context(graph=lambda source: graph))
    for row in rows:
        match = dict(zip(columns, row, strict=True))
        assert [match["p"].nodes[0], match["p"].nodes[-1]] == [match["x"], match["y"]]
        passed = [one.id for one in match["p"].relationships]
        assert passed == [one.id for one in match["es"]]
        answer.setdefault((match["x"].id, match["y"].id), []).append(passed)
    return {pair: sorted(paths) for pair, paths in answer.items()}


def from_all_trails(graph: PropertyGraph, direction: Any, length: tuple[int, int | None], every: bool) -> Found:
    """The definition: of all trails between two different nodes, the shortest; of these, the first by ids."""
    hop = op.RelationshipPattern("es", (), direction, length)
    nodes = (op.NodePattern("x"), op.NodePattern("y"))
    trails = found(op.Pattern(SOURCE, (op.PathPattern(nodes, (hop,), "p"),)), graph)
    answer: Found = {}
    for (start, end), paths in trails.items():
        if start == end:
            paths = [one for one in paths if not one]
        best = [one for one in paths if len(one) == min(map(len, paths))]
        if best:
            answer[start, end] = best if every else [min(best)]
    return answer


def random_graph(random: Random) -> PropertyGraph:
    nodes = [Node(i) for i in range(random.randrange(2, 6))]
    ends = [(random.choice(nodes).id, random.choice(nodes).id) for _ in range(random.randrange(1, 8))]
    shuffled = random.sample(range(20), len(ends))
    return PropertyGraph(nodes, [Relationship(i, "T", *pair) for i, pair in zip(shuffled, ends, strict=True)])


@pytest.mark.parametrize("length", [(1, None), (0, None), (0, 2), (1, 2), (2, None), (2, 3), (1, 0)])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("seed", range(8))
def test_shortest_paths_are_the_shortest_trails(seed: int, direction: Any, length: tuple[int, int | None]) -> None:
    graph = random_graph(Random(seed))
    assert found(shortest("all-shortest", direction, length), graph) == from_all_trails(graph, direction, length, True)
    assert found(shortest("shortest", direction, length), graph) == from_all_trails(graph, direction, length, False)


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_does_not_depend_on_which_end_is_known(seed: int) -> None:
    graph = random_graph(Random(seed))
    for kind in ("shortest", "all-shortest"):
        pattern = shortest(kind, "both")
        expected = found(pattern, graph)
        for names in (("x",), ("y",), ("x", "y"), ("y", "x")):
            given: op.Operator = op.Pattern(SOURCE, tuple(op.PathPattern((op.NodePattern(name),)) for name in names))
            assert found(op.Join(given, pattern), graph) == expected


DIAMOND = PropertyGraph(
    [Node("s", ("S",)), Node("t", ("T",))],
    [
        Relationship(4, "A", "s", "m"),
        Relationship(2, "A", "m", "t"),
        Relationship(3, "A", "s", "k"),
        Relationship(9, "A", "k", "t"),
        Relationship(1, "B", "s", "t", {"open": False}),
    ],
)


def test_types_conditions_and_labels_hold_during_the_search() -> None:
    assert found(shortest("shortest", labels=("S", "T")), DIAMOND) == {("s", "t"): [[1]]}
    assert found(shortest("shortest", types=("A",), labels=("S", "T")), DIAMOND) == {("s", "t"): [[3, 9]]}
    state = ex.Call("coalesce", (ex.Property(ex.Variable("es"), "open"), ex.Constant(True)))
    is_open = ex.Compare("=", state, ex.Constant(True))
    all_open = shortest("all-shortest", where=is_open, labels=("S", "T"))
    assert found(all_open, DIAMOND) == {("s", "t"): [[3, 9], [4, 2]]}
    assert found(shortest("shortest", types=("A",), length=(1, 1), labels=("S", "T")), DIAMOND) == {}


def test_a_condition_may_read_the_rest_of_the_row() -> None:
    least = op.Unwind(op.Unit(), "least", ex.Constant([0, 2, 3]))
    allowed = ex.Compare(">", ex.Call("id", (ex.Variable("es"),)), ex.Variable("least"))
    plan = op.Join(least, shortest("shortest", where=allowed, labels=("S", "T")))
    columns, rows = evaluate_plan(plan, Context(graph=lambda source: DIAMOND))
    paths = {row[columns.index("least")]: [one.id for one in row[columns.index("es")]] for row in rows}
    assert paths == {0: [1], 2: [3, 9]}


def test_one_relationship_without_a_length_is_not_a_list() -> None:
    _, ((_, es, _, path),) = evaluate_plan(
        shortest("shortest", length=None, labels=("S", "T")), Context(graph=lambda source: DIAMOND)
    )
    assert es == path.relationships[0] == DIAMOND.relationships[1]


def test_shortest_paths_may_share_relationships_with_the_rest_of_the_pattern() -> None:
    hop = op.RelationshipPattern("e", ("B",), "out")
    nodes = (op.NodePattern("x"), op.NodePattern("y"))
    both = op.Pattern(SOURCE, (op.PathPattern(nodes, (hop,)), *shortest("shortest").paths))
    assert found(both, DIAMOND) == {("s", "t"): [[1]]}


def test_a_long_chain_is_no_problem() -> None:
    chain = PropertyGraph([Node(0, ("S",)), Node(5000, ("T",))], [Relationship(i, "N", i, i + 1) for i in range(5000)])
    for kind in ("shortest", "all-shortest"):
        assert found(shortest(kind, labels=("S", "T")), chain) == {(0, 5000): [list(range(5000))]}


CONDITIONS = {
    "no relationship with an odd id": lambda ids, nodes: all(one % 2 == 0 for one in ids),
    "no even node": lambda ids, nodes: all(one % 2 for one in nodes),
    "through node 1": lambda ids, nodes: 1 in nodes,
    "ids add up to a multiple of 3": lambda ids, nodes: sum(ids) % 3 == 0,
    "never": lambda ids, nodes: False,
}
_IS_ODD = ex.Compare("=", ex.Call("modulo", (ex.Call("id", (ex.Variable("e"),)), ex.Constant(2))), ex.Constant(1))
_SUM = ex.Reduce(
    "s",
    ex.Constant(0),
    "e",
    ex.Variable("es"),
    ex.Call("add", (ex.Variable("s"), ex.Call("id", (ex.Variable("e"),)))),
)
EXPRESSIONS: dict[str, ex.Expression] = {
    "no relationship with an odd id": ex.Quantifier("none", "e", ex.Variable("es"), _IS_ODD),
    "no even node": ex.Quantifier("all", "e", ex.Call("nodes", (ex.Variable("p"),)), _IS_ODD),
    "through node 1": ex.Quantifier(
        "any",
        "n",
        ex.Call("nodes", (ex.Variable("p"),)),
        ex.Compare("=", ex.Call("id", (ex.Variable("n"),)), ex.Constant(1)),
    ),
    "ids add up to a multiple of 3": ex.Compare("=", ex.Call("modulo", (_SUM, ex.Constant(3))), ex.Constant(0)),
    "never": ex.Constant(False),
}


def fulfilling_trails(
    graph: PropertyGraph, direction: Any, length: tuple[int, int | None], name: str, every: bool
) -> Found:
    """The definition: of all trails between two different nodes that fulfil the condition, the shortest."""
    hop = op.RelationshipPattern("es", (), direction, length)
    nodes = (op.NodePattern("x"), op.NodePattern("y"))
    plan = op.Pattern(SOURCE, (op.PathPattern(nodes, (hop,), "p"),))
    columns, rows = evaluate_plan(plan, Context(graph=lambda source: graph))
    kept: Found = {}
    for row in rows:
        path: Any = row[columns.index("p")]
        ids, passed = [one.id for one in path.relationships], [one.id for one in path.nodes]
        if CONDITIONS[name](ids, passed) and (passed[0] != passed[-1] or not ids):
            kept.setdefault((passed[0], passed[-1]), []).append(ids)
    best = {pair: [one for one in ids if len(one) == min(map(len, ids))] for pair, ids in kept.items()}
    return {pair: sorted(ids) if every else [min(ids)] for pair, ids in best.items()}


@pytest.mark.parametrize("length", [(1, None), (0, None), (0, 2), (1, 3), (2, None)])
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("seed", range(6))
def test_shortest_paths_with_a_condition_are_the_shortest_trails_that_fulfil_it(
    seed: int, name: str, length: tuple[int, int | None]
) -> None:
    random = Random(f"{seed} {name}")
    graph = random_graph(random)
    direction = random.choice(("out", "in", "both"))
    for kind in ("shortest", "all-shortest"):
        (path,) = shortest(kind, direction, length).paths
        pattern = op.Pattern(SOURCE, (replace(path, where=EXPRESSIONS[name]),))
        expected = fulfilling_trails(graph, direction, length, name, kind == "all-shortest")
        assert found(pattern, graph) == expected
        for given in (("x",), ("y",), ("x", "y")):
            known = op.Pattern(SOURCE, tuple(op.PathPattern((op.NodePattern(one),)) for one in given))
            assert found(op.Join(known, pattern), graph) == expected


def test_a_condition_that_no_path_fulfils_ends_when_all_have_been_tried_or_the_budget_is_spent() -> None:
    nodes = [Node(i) for i in range(9)]
    ends = [(one.id, other.id) for one in nodes for other in nodes if one is not other]
    graph = PropertyGraph(nodes, [Relationship(at, "T", *pair) for at, pair in enumerate(ends)])
    hop = op.RelationshipPattern("es", (), "out", (1, None))
    ends_of_path = (op.NodePattern("x"), op.NodePattern("y"))
    path = op.PathPattern(ends_of_path, (hop,), "p", "shortest", EXPRESSIONS["never"])
    with pytest.raises(EvaluationError) as caught:
        evaluate_plan(op.Pattern(SOURCE, (path,)), Context(graph=lambda source: graph, max_steps=100_000))
    assert caught.value.diagnostic.code == "SER-306"
    assert "no short path fulfils the condition" in caught.value.diagnostic.message
    bounded = replace(path, relationships=(replace(hop, length=(1, 2)),))
    assert evaluate_plan(op.Pattern(SOURCE, (bounded,)), Context(graph=lambda source: graph))[1] == []
