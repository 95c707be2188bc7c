"""The matcher finds exactly what the plain definition finds, whatever order of expansion it chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.model.compare import identity_key
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import ElementId, Node, Path, Relationship
from anabranch.snapshot import Context, compile_expression, evaluate_plan

# --- a matcher as plain as the definition: every assignment, in the order of the text, checked at the end ---

Row = dict[str, Any]


def naive_matches(
    pattern: op.Pattern, graph: PropertyGraph, row: Row, condition: ex.Expression | None, context: Context
) -> list[tuple[Any, ...]]:
    columns = tuple(row) + tuple(name for name in pattern.columns if name not in row)
    test = compile_expression(condition, columns) if condition is not None else None
    found = []
    for match in _paths(list(pattern.paths), graph, row, frozenset()):
        values = tuple(match[name] for name in columns)
        if test is None or test(values, context) is True:
            found.append(values)
    return found


def _paths(paths: list[op.PathPattern], graph: PropertyGraph, row: Row, used: frozenset[Any]) -> Iterator[Row]:
    if not paths:
        yield row
        return
    path = paths[0]
    for node in graph.nodes.values():
        start = _bind(row, path.nodes[0].variable, node)
        if start is None or not set(path.nodes[0].labels) <= set(node.labels):
            continue
        for bound, taken, walked in _hops(path, 0, node.id, graph, start, used, []):
            if path.variable is not None:
                here, nodes = node.id, [node]
                for relationship in walked:
                    here = relationship.other_end(here)
                    nodes.append(graph.nodes[here])
                named = _bind(bound, path.variable, Path(tuple(nodes), tuple(walked)))
                if named is not None:
                    yield from _paths(paths[1:], graph, named, taken)
            else:
                yield from _paths(paths[1:], graph, bound, taken)


def _hops(
    path: op.PathPattern,
    position: int,
    here: ElementId,
    graph: PropertyGraph,
    row: Row,
    used: frozenset[Any],
    walked: list[Relationship],
) -> Iterator[tuple[Row, frozenset[Any], list[Relationship]]]:
    if position == len(path.relationships):
        yield row, used, walked
        return
    hop, target = path.relationships[position], path.nodes[position + 1]
    for trail, end in _trails(hop, here, graph, used, hop.length or (1, 1)):
        value = trail if hop.length is not None else trail[0]
        with_hop = _bind(row, hop.variable, value)
        if with_hop is None or not set(target.labels) <= set(graph.nodes[end].labels):
            continue
        with_end = _bind(with_hop, target.variable, graph.nodes[end])
        if with_end is not None:
            taken = used | {one.id for one in trail}
            yield from _hops(path, position + 1, end, graph, with_end, taken, walked + trail)


def _trails(
    hop: op.RelationshipPattern,
    here: ElementId,
    graph: PropertyGraph,
    used: frozenset[Any],
    length: tuple[int, int | None],
) -> Iterator[tuple[list[Relationship], ElementId]]:
    minimum, maximum = length
    if minimum <= 0:
        yield [], here
    if maximum is not None and maximum <= 0:
        return
    for one in graph.relationships.values():
        if one.id in used or (hop.types and one.type not in hop.types):
            continue
        ends = set()
        if hop.direction != "in" and one.source == here:
            ends.add(one.target)
        if hop.direction != "out" and one.target == here:
            ends.add(one.source)
        for end in ends:
            rest = (minimum - 1, None if maximum is None else maximum - 1)
            for trail, last in _trails(hop, end, graph, used | {one.id}, rest):
                yield [one, *trail], last


def _bind(row: Row, name: str, value: Any) -> Row | None:
    if name in row:
        return row if row[name] == value else None
    return {**row, name: value}


# --- random graphs, patterns and conditions ---

SOURCE = op.Window()


def random_graph(random: Random) -> PropertyGraph:
    nodes = [
        Node(i, tuple(sorted(random.sample("ABC", random.choice([1, 2, 2, 3])))), {"x": random.choice([0, 1, 1, None])})
        for i in range(random.randrange(1, 5))
    ]
    relationships = [
        Relationship(i, random.choice("SST"), random.choice(nodes).id, random.choice(nodes).id)
        for i in range(random.randrange(2, 7))
    ]
    return PropertyGraph(nodes, relationships)


def random_pattern(random: Random, known: tuple[op.RelationshipPattern, ...] = ()) -> op.Pattern:
    """One to three paths over four node variables; some relationships may be of those already known."""
    spare = list(known)
    random.shuffle(spare)
    paths = []
    for number in range(random.choice([1, 1, 2, 3])):
        hops = random.choice([0, 1, 1, 2, 3] if number == 0 else [0, 1, 1, 2])
        nodes = tuple(
            op.NodePattern(random.choice("abcd"), tuple(random.sample("ABC", random.choice([0, 0, 0, 0, 1, 2]))))
            for _ in range(hops + 1)
        )
        relationships = []
        for position in range(hops):
            name, length = f"r{number}{position}", random.choice([None, None, None, (0, 1), (1, 2), (2, None), (2, 1)])
            if spare and random.random() < 0.5:
                taken = spare.pop()
                name, length = taken.variable, taken.length
            types = tuple(random.sample("ST", random.choice([0, 0, 0, 1, 2])))
            relationships.append(op.RelationshipPattern(name, types, random.choice(["out", "in", "both"]), length))
        paths.append(op.PathPattern(nodes, tuple(relationships), random.choice([None, f"p{number}"])))
    return op.Pattern(SOURCE, tuple(paths))


def random_condition(random: Random, names: tuple[str, ...]) -> ex.Expression | None:
    if not names:
        return None

    def some() -> ex.Expression:
        return ex.Property(ex.Variable(random.choice(names)), "x")

    def conjunct() -> ex.Expression:
        return random.choice(
            [
                ex.Compare("=", some(), some()),
                ex.Compare("=", some(), ex.Constant(random.randrange(3))),
                ex.Compare("<", some(), some()),
                ex.HasLabels(ex.Variable(random.choice(names)), (random.choice("ABC"),)),
                ex.Call("in", (some(), ex.ListOf((ex.Constant(0), ex.Constant(1))))),
                ex.Or((ex.Compare("=", some(), some()), ex.IsNull(some()))),
                ex.Compare("=", ex.Variable(random.choice(names)), ex.Variable(random.choice(names))),
            ]
        )

    return ex.And(tuple(conjunct() for _ in range(random.randrange(1, 4)))) if random.random() < 0.6 else None


def keys(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(identity_key, row)) for row in rows)


@pytest.mark.parametrize("seed", range(150))
def test_a_pattern_matches_as_the_definition_says(seed: int) -> None:
    random = Random(seed)
    graph, pattern = random_graph(random), random_pattern(random)
    context = Context(graph=lambda source: graph)
    nodes = tuple(name for name in pattern.columns if name in "abcd")
    condition = random_condition(random, nodes)
    plan: op.Operator = pattern if condition is None else op.Filter(pattern, condition)
    _, rows = evaluate_plan(plan, context)
    assert keys(rows) == keys(naive_matches(pattern, graph, {}, condition, context))


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_a_pattern_extends_rows_as_the_definition_says(seed: int, optional: bool) -> None:
    random = Random(seed)
    graph, first = random_graph(random), random_pattern(random)
    second = random_pattern(random, tuple(hop for path in first.paths for hop in path.relationships))
    context = Context(graph=lambda source: graph)
    kept = [name for name in first.columns if random.random() < 0.6]
    renamed = tuple((f"q{name}" if name.startswith("p") else name, ex.Variable(name)) for name in kept)
    left = op.Distinct(op.Project(first, renamed))
    names = tuple(dict.fromkeys([name for name, _ in renamed] + list(second.columns)))
    condition = random_condition(random, tuple(name for name in names if name in "abcd"))
    plan = op.LeftJoin(left, second, condition) if optional else op.Join(left, second, condition)
    columns, rows = evaluate_plan(plan, context)
    expected: list[tuple[Any, ...]] = []
    for row in evaluate_plan(left, context)[1]:
        found = naive_matches(second, graph, dict(zip(left.columns, row, strict=True)), condition, context)
        if optional and not found:
            found = [row + (None,) * (len(columns) - len(row))]
        expected += found
    assert keys(rows) == keys(expected)
