"""Patterns as facts: whatever is matched on the facts is what the plain evaluator finds in the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.delta.batch import Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.patterns import Conjunction, Fixed, Free
from anabranch.errors import EvaluationError, InternalError
from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.union import ElementChanges, WindowContent
from anabranch.model.values import Node, Relationship
from anabranch.planner.leaves.graph_facts import FactMaker, nothing_shared, path_values
from anabranch.planner.patterns.graph_patterns import plan_pattern
from anabranch.planner.patterns.kinds import GraphMatch, NodeKind, PatternComponent, RelationshipKind, TrailKind
from anabranch.snapshot import Context, compile_expression, evaluate_plan
from anabranch.snapshot.compiled import truth

SOURCE = op.Window()
Fact = tuple[int, ...]
Rows = list[tuple[Any, ...]]


# --- matching as plain as can be --------------------------------------------------------------------------------------


def plain_matches(conjunction: Conjunction, facts: set[Fact]) -> list[tuple[int, ...]]:
    def extend(position: int, bound: dict[int, int]) -> Iterator[dict[int, int]]:
        if position == len(conjunction.patterns):
            if all(bound[one] != bound[other] for one, other in conjunction.different):
                yield bound
            return
        for fact in facts:
            now: dict[int, int] | None = dict(bound)
            for place, value in zip(conjunction.patterns[position].places, fact, strict=True):
                match place:
                    case Fixed(wanted) if wanted != value:
                        now = None
                    case Free(variable) if now is not None and now.setdefault(variable, value) != value:
                        now = None
                if now is None:
                    break
            if now is not None:
                yield from extend(position + 1, now)

    found = {tuple(bound[one] for one in range(conjunction.variables)) for bound in extend(0, {})}
    return sorted(found)


class Matched:
    """A pattern that is matched on facts, kept up to date with a window's changes."""

    def __init__(self, match: GraphMatch, parameters: dict[str, Any] | None = None) -> None:
        self.match = match
        self.dictionary = Dictionary()
        self.context = Context(graph=_no_graph, parameters=parameters or {})
        self.maker = FactMaker(match, self.dictionary, self.context)
        self.facts: set[Fact] = set()

    def change(self, changes: ElementChanges) -> None:
        removed, added = (_as_set(ids) for ids in self.maker.facts(changes))
        assert not removed & added
        assert removed <= self.facts
        assert not added & self.facts
        self.facts = self.facts - removed | added

    def rows(self, wanted: tuple[str, ...]) -> Rows:
        match, dictionary = self.match, self.dictionary
        joined: list[tuple[int, ...]] = [()]
        for component in match.components:
            found = plain_matches(component.conjunction, self.facts)
            part = [tuple(one[pick] for pick in component.picks) for one in found]
            joined = [row + other for row in joined for other in part]
        columns = match.columns
        ids = np.array(joined, np.int64).reshape(len(joined), len(columns))
        for one, other in match.different:
            ids = ids[ids[:, columns.index(one)] != ids[:, columns.index(other)]]
        for one, other in match.disjoint:
            ids = ids[nothing_shared(columns.index(one), columns.index(other), dictionary)(ids)]
        for path in match.paths:
            ids = np.column_stack((ids, path_values(path, columns, dictionary)(ids)))
            columns = (*columns, path.name)
        rows = dictionary.rows(ids)
        for condition in match.kept:
            test = compile_expression(condition, columns)
            rows = [row for row in rows if truth(test(row, self.context)) is True]
        return [tuple(row[columns.index(name)] for name in wanted) for row in rows]


def _no_graph(source: op.Source) -> PropertyGraph:
    raise InternalError("no graph")


def _as_set(ids: Ids) -> set[Fact]:
    rows = [tuple(row) for row in ids.tolist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def planned(pattern: op.Pattern, *conditions: ex.Expression, **options: Any) -> GraphMatch:
    match = plan_pattern(pattern, conditions, **options)
    assert isinstance(match, GraphMatch), match
    return match


def plain_rows(
    pattern: op.Pattern, conditions: list[ex.Expression], graph: PropertyGraph, wanted: tuple[str, ...], **given: Any
) -> Rows:
    plan: op.Operator = op.Filter(pattern, ex.And(tuple(conditions))) if conditions else pattern
    columns, rows = evaluate_plan(plan, Context(graph=lambda source: graph, parameters=given))
    return [tuple(row[columns.index(name)] for name in wanted) for row in rows]


def bag(rows: Rows) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(content_key, row)) for row in rows)


# --- drawn at random --------------------------------------------------------------------------------------------------


def random_event(random: Random, event_time: int) -> Event:
    def properties() -> dict[str, Any]:
        return {key: random.choice([0, 1, 1, "a", None]) for key in random.sample("xy", random.randrange(3))}

    def labels() -> tuple[str, ...]:
        return tuple(random.sample("ABC", random.choice([0, 1, 2, 2, 3])))

    nodes = tuple(Node(random.randrange(5), labels(), properties()) for _ in range(random.randrange(3)))
    relationships = tuple(
        Relationship(random.randrange(8), random.choice("SST"), random.randrange(6), random.randrange(6), properties())
        for _ in range(random.randrange(4))
    )
    return Event(event_time, nodes, relationships)


LENGTHS: tuple[tuple[int, int | None], ...] = ((1, None), (1, 2), (0, 1), (0, None), (2, 3), (3, 3), (0, 0), (2, 1))


def random_pattern(random: Random, trails: bool = False) -> op.Pattern:
    paths = []
    for number in range(random.choice([1, 1, 2, 3])):
        hops = random.choice([0, 1, 1, 2, 3] if number == 0 else [0, 1, 1])
        nodes = tuple(
            op.NodePattern(random.choice("abcd"), tuple(random.sample("ABC", random.choice([0, 0, 0, 1, 2]))))
            for _ in range(hops + 1)
        )
        relationships = tuple(
            op.RelationshipPattern(
                f"r{number}{position}",
                tuple(random.sample("ST", random.choice([0, 1, 1, 2]))),
                random.choice(["out", "in", "both"]),
                random.choice(LENGTHS) if trails and random.random() < 0.7 else None,
            )
            for position in range(hops)
        )
        paths.append(op.PathPattern(nodes, relationships, random.choice([None, None, f"p{number}"])))
    pattern = op.Pattern(SOURCE, tuple(paths))
    where = random_conditions(random, pattern)
    return op.Pattern(SOURCE, pattern.paths, ex.And(tuple(where)) if where and random.random() < 0.5 else None)


def random_conditions(random: Random, pattern: op.Pattern) -> list[ex.Expression]:
    trails = {one.variable for path in pattern.paths for one in path.relationships if one.length is not None}
    paths = {path.variable for path in pattern.paths if path.variable is not None}
    names = tuple(name for name in pattern.columns if name not in trails | paths)
    lists: list[ex.Expression] = [ex.Variable(name) for name in sorted(trails)]
    lists += [ex.Call("relationships", (ex.Variable(name),)) for name in sorted(paths)]

    def some() -> ex.Expression:
        return ex.Property(ex.Variable(random.choice(names)), random.choice("xy"))

    def conjunct() -> ex.Expression:
        one = random.choice(names)
        x = ex.Property(ex.Variable(one), "x")
        return random.choice(
            [
                ex.Compare("=", some(), some()),
                ex.Compare("<>", some(), ex.Constant(random.randrange(2))),
                ex.Compare("<", ex.Parameter("limit"), some()),
                ex.HasLabels(ex.Variable(one), (random.choice("ABCS"),)),
                ex.Call("in", (some(), ex.ListOf((ex.Constant(0), ex.Constant("a"))))),
                ex.Not(ex.Or((ex.Compare("=", x, ex.Property(ex.Variable(one), "y")), ex.IsNull(x)))),
                ex.Compare("=", ex.Call("toString", (x,)), ex.Constant("1")),
                ex.Compare("<>", ex.Call("id", (ex.Variable(one),)), ex.Constant(2)),
            ]
        )

    def of_each() -> ex.Expression:
        x = ex.Property(ex.Variable("e"), "x")
        condition = random.choice(
            [
                ex.Compare("<>", x, ex.Constant(1)),
                ex.IsNull(x),
                ex.Compare("=", ex.Call("toString", (x,)), ex.Constant("1")),
                ex.Compare("=", x, some()),
            ]
        )
        return ex.Quantifier(random.choice(["all", "all", "any"]), "e", random.choice(lists), condition)

    own = [conjunct() for _ in range(random.choice([0, 0, 1, 2]))]
    return [*own, of_each()] if trails and random.random() < 0.4 else own


@pytest.mark.parametrize("trails", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_a_pattern_over_a_sliding_window_gives_the_plain_rows(seed: int, trails: bool) -> None:
    random = Random(seed)
    pattern = random_pattern(random, trails)
    conditions = random_conditions(random, pattern)
    wanted = tuple(name for name in pattern.columns if random.random() < 0.6)
    needed = random.choice([frozenset(wanted), None])
    matched = Matched(planned(pattern, *conditions, needed=needed, parameters={"limit": 0}), {"limit": 0})
    content = WindowContent(track=True)
    for now in range(12):
        content.add(random_event(random, now))
        content.evict(now - random.randrange(3))
        if random.random() < 0.7:
            matched.change(content.changes())
            plain = plain_rows(pattern, conditions, content.graph(), wanted, limit=0)
            assert bag(matched.rows(wanted)) == bag(plain)
    content.clear()
    matched.change(content.changes())
    assert not matched.facts
    assert not len(matched.maker)


# --- one by one -------------------------------------------------------------------------------------------------------


def path(*steps: op.NodePattern | op.RelationshipPattern, name: str | None = None) -> op.PathPattern:
    nodes = tuple(step for step in steps if isinstance(step, op.NodePattern))
    return op.PathPattern(nodes, tuple(step for step in steps if isinstance(step, op.RelationshipPattern)), name)


def node(name: str, *labels: str) -> op.NodePattern:
    return op.NodePattern(name, labels)


def shortest(one: op.RelationshipPattern) -> op.PathPattern:
    return op.PathPattern((node("a"), node("b")), (one,), None, "shortest")


def relationship(name: str, *types: str, **options: Any) -> op.RelationshipPattern:
    return op.RelationshipPattern(name, types, **{"direction": "out", **options})


def x_of(name: str) -> ex.Expression:
    return ex.Property(ex.Variable(name), "x")


ONE_HOP = op.Pattern(SOURCE, (path(node("a"), relationship("r", "T"), node("b")),))


def test_nodes_that_nobody_asks_about_have_no_facts() -> None:
    match = planned(ONE_HOP, needed=frozenset())
    assert [type(kind) for kind in match.kinds] == [RelationshipKind]
    assert match.columns == ()
    assert match.components[0].conjunction.variables == 3  # both ends and the relationship, which makes the bag


def test_a_lonely_node_has_a_fact_even_if_nobody_looks_at_it() -> None:
    match = planned(op.Pattern(SOURCE, (path(node("a")),)), needed=frozenset())
    assert [(kind.labels, kind.shown) for kind in match.kinds if isinstance(kind, NodeKind)] == [((), False)]


def test_a_content_that_nobody_looks_at_changes_no_fact() -> None:
    maker = FactMaker(planned(ONE_HOP, needed=frozenset({"b"})), Dictionary(), Context(graph=_no_graph))
    before, after = Relationship(1, "T", 1, 2, {"x": 1}), Relationship(1, "T", 1, 2, {"x": 2})
    ends = ((None, Node(1, (), {"x": 1})), (None, Node(2)))
    assert len(maker.facts(ElementChanges(ends, ((None, before),)))[1]) == 3  # of b either may be one
    removed, added = maker.facts(ElementChanges(((Node(2), Node(2, ("B",))),), ((before, after),)))
    assert removed[:, 1].tolist() == added[:, 1].tolist() == [2]


def test_the_same_question_at_two_places_is_one_kind() -> None:
    hops = path(node("a"), relationship("r", "T"), node("b"), relationship("s", "T", direction="in"), node("c"))
    match = planned(op.Pattern(SOURCE, (hops,)), needed=frozenset())
    assert len(match.kinds) == 1
    assert match.components[0].conjunction.different == ((0, 3),)


def test_relationships_of_different_types_need_no_comparison() -> None:
    match = planned(
        op.Pattern(SOURCE, (path(node("a"), relationship("r", "S"), node("b"), relationship("s", "T"), node("c")),))
    )
    assert match.components[0].conjunction.different == ()


def test_relationships_of_separate_parts_are_told_apart_after_the_join() -> None:
    parts = (path(node("a"), relationship("r", "T"), node("b")), path(node("c"), relationship("s"), node("d")))
    match = planned(op.Pattern(SOURCE, parts), needed=frozenset())
    assert len(match.components) == 2
    assert match.different == (("r", "s"),)
    assert set(match.columns) == {"r", "s"}


def test_the_facts_of_one_part_are_a_share_of_all() -> None:
    parts = (path(node("a", "A"), relationship("r", "T"), node("b")), path(node("c", "C")))
    match = planned(op.Pattern(SOURCE, parts))
    graph = PropertyGraph([Node(1, ("A", "C"))], [Relationship(1, "T", 1, 2)])
    all_kinds = Counter(fact[1] for fact in _made(match, graph, None))
    shares = [Counter(fact[1] for fact in _made(match, graph, component)) for component in match.components]
    assert all(shares)
    assert shares[0] + shares[1] == all_kinds


def _made(match: GraphMatch, graph: PropertyGraph, component: PatternComponent | None) -> list[list[int]]:
    maker = FactMaker(match, Dictionary(), Context(graph=_no_graph), component)
    facts: list[list[int]] = maker.facts(ElementChanges.entering(graph))[1].tolist()
    return facts


def test_a_condition_that_never_fails_is_settled_and_its_element_not_shown() -> None:
    condition = ex.And((ex.Compare(">", x_of("r"), ex.Parameter("p")), ex.HasLabels(ex.Variable("b"), ("B",))))
    match = planned(ONE_HOP, condition, needed=frozenset(), parameters={"p": 1})
    assert match.kept == ()
    assert match.columns == ()


def test_a_condition_that_may_fail_is_asked_early_and_again() -> None:
    condition = ex.Compare(">", ex.Call("subtract", (x_of("r"), ex.Constant(1))), ex.Constant(3))
    match = planned(ONE_HOP, condition, needed=frozenset())
    assert match.kept == (condition,)
    assert match.columns == ("r",)
    graph = PropertyGraph((), [Relationship(one, "T", 1, 2, {"x": x}) for one, x in enumerate([1, 5, "no number"])])
    matched = Matched(match)
    matched.change(ElementChanges.entering(graph))
    assert len(matched.facts) == 2  # of 5, and of what cannot be computed


def test_an_error_is_raised_only_where_a_match_is_complete() -> None:
    condition = ex.Compare(">", ex.Call("toInteger", (x_of("a"),)), ex.Constant(3))
    matched = Matched(planned(ONE_HOP, condition))
    matched.change(ElementChanges(((None, Node(1, (), {"x": {"no": "number"}})),)))
    assert matched.rows(()) == []
    matched.change(ElementChanges(((None, Node(2)),), ((None, Relationship(1, "T", 1, 2)),)))
    with pytest.raises(EvaluationError):
        matched.rows(())


@pytest.mark.parametrize(
    "condition",
    [
        ex.Compare("=", x_of("a"), ex.Call("rand", ())),
        ex.Compare("=", ex.Call("endNode", (ex.Variable("r"),)), ex.Constant(None)),
        ex.Exists(op.Argument(("a",))),
        ex.Compare("=", x_of("a"), x_of("b")),
        ex.Compare("=", x_of("a"), x_of("elsewhere")),
        ex.Compare("=", ex.Constant(1), ex.Constant(2)),
    ],
)
def test_a_condition_on_more_than_one_element_waits_for_the_match(condition: ex.Expression) -> None:
    match = planned(ONE_HOP, condition)
    assert match.kept == (condition,)
    assert not any(kind.conditions for kind in match.kinds if not isinstance(kind, TrailKind))


# --- trails -----------------------------------------------------------------------------------------------------------


def trails_of(match: GraphMatch) -> list[TrailKind]:
    return [kind for kind in match.kinds if isinstance(kind, TrailKind)]


def of_each(source: ex.Expression, function: str | None = None) -> ex.Expression:
    x = x_of("e") if function is None else ex.Call(function, (x_of("e"),))
    return ex.Quantifier("all", "e", source, ex.Compare("=", x, ex.Constant(1)))


TRAIL = op.Pattern(SOURCE, (path(node("a", "A"), relationship("r", "T", length=(1, 3)), node("b"), name="p"),))


def test_a_trail_begins_and_ends_at_nodes_that_fit() -> None:
    match = planned(TRAIL, ex.Compare("=", x_of("b"), ex.Constant(1)), needed=frozenset())
    (kind,) = trails_of(match)
    labels = {one.number: (one.labels, bool(one.conditions)) for one in match.kinds if isinstance(one, NodeKind)}
    assert [labels[kind.starts or 0], labels[kind.ends or 0]] == [(("A",), False), ((), True)]
    assert (kind.shown, kind.between) == (False, False)


@pytest.mark.parametrize("source", [ex.Variable("r"), ex.Call("relationships", (ex.Variable("p"),))])
def test_what_must_hold_for_all_is_asked_of_each_on_the_way(source: ex.Expression) -> None:
    match = planned(TRAIL, of_each(source), needed=frozenset())
    assert len(trails_of(match)[0].each) == 1
    assert (match.kept, match.columns) == ((), ())
    match = planned(TRAIL, of_each(source, "toInteger"), needed=frozenset())
    assert len(trails_of(match)[0].each) == len(match.kept) == 1, "what may fail is asked again"


def test_what_must_hold_for_all_is_not_settled_by_the_trails_of_a_path_alone() -> None:
    hops = path(
        node("a"), relationship("r", length=(1, 3)), node("b"), relationship("s", length=None), node("c"), name="p"
    )
    condition = of_each(ex.Call("relationships", (ex.Variable("p"),)))
    match = planned(op.Pattern(SOURCE, (hops,)), condition)
    assert match.kept == (condition,)
    assert len(trails_of(match)[0].each) == 1


def test_nodes_on_the_way_are_shown_where_the_path_is() -> None:
    assert [kind.between for kind in trails_of(planned(TRAIL, needed=frozenset({"p"})))] == [True]
    assert [kind.between for kind in trails_of(planned(TRAIL, needed=frozenset({"r"})))] == [False]


def test_relationships_of_a_trail_differ_from_all_others_of_the_match() -> None:
    hops = path(
        node("a"),
        relationship("r", "T", length=(1, None)),
        node("b"),
        relationship("s", "S"),
        node("c"),
        relationship("t", length=(0, None)),
        node("d"),
    )
    match = planned(op.Pattern(SOURCE, (hops,)), needed=frozenset())
    assert match.disjoint == (("r", "t"), ("s", "t"))
    assert match.different == ()
    assert set(match.columns) == {"r", "s", "t"}


def test_trails_that_may_not_be_kept_are_searched_for_anew() -> None:
    answer = plan_pattern(TRAIL, trails=False)
    assert isinstance(answer, str)
    assert "variable length" in answer
    assert isinstance(plan_pattern(ONE_HOP, trails=False), GraphMatch)
    answer = plan_pattern(op.Pattern(SOURCE, (shortest(relationship("r")),)), trails=False)
    assert isinstance(answer, str)
    assert "shortest paths" in answer


# --- what cannot be done ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (path(node("a"), relationship("r", where=ex.Constant(True)), node("b")), "inside of a relationship"),
        (shortest(relationship("r", length=(2, None))), "shortest paths of 2 relationships and more"),
        (shortest(relationship("r", where=ex.Compare("=", x_of("r"), x_of("a")))), "the rest of the row"),
        (shortest(relationship("r", where=ex.Call("abs", (x_of("r"),)))), "may fail"),
        (path(node("a"), relationship("r"), node("b"), relationship("r"), node("c")), "`r` stands for two"),
        (path(node("r"), relationship("r"), node("b")), "`r` stands for two"),
    ],
)
def test_what_has_no_facts_is_said(pattern: op.PathPattern, reason: str) -> None:
    answer = plan_pattern(op.Pattern(SOURCE, (pattern,)))
    assert isinstance(answer, str)
    assert reason in answer
