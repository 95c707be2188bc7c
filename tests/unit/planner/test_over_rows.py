"""Operators without a form on changes: the plain evaluator over rows that are kept up to date."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.support.on_changes import PieceByPiece, planned
from tests.unit.delta.bags import Bag, ChangingBag, Row, accumulate

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import walk
from anabranch.delta.batch import Batch
from anabranch.delta.dictionary import Dictionary
from anabranch.engine.evaluation_options import EvaluationOptions, Force
from anabranch.engine.session import Query, Session
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.instants import parse_instant
from anabranch.model.union import ElementChanges
from anabranch.model.values import Node, Relationship, Value
from anabranch.optimizer import optimize
from anabranch.planner.flow.feeds import RelationshipSlide, Tick, TripleSlide
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.leaves.over_rows import HeldRows, RecomputedOverRows
from anabranch.planner.queries import QueryPlan
from anabranch.snapshot import Context
from anabranch.syntax import seraph

_MINUTE = 60_000_000
_START = parse_instant("2024-05-01T10:00Z")
_WITHIN = "WITHIN PT10M"
_ZONE = "datetime({timezone: coalesce(a.zone, 'Z')})"
OVER_ROWS = {
    "a clock in the zone of a row": f"MATCH (a) {_WITHIN} EMIT {_ZONE}.minute AS m, a.x AS x",
    "such a clock in a filter, behind another condition": f"MATCH (a)-[r]->(b) {_WITHIN} WHERE r.x > 1 "
    f"AND {_ZONE}.minute % 3 = b.x EMIT id(a) AS a, count(*) AS n",
    "such a clock in WITH": f"MATCH (a) {_WITHIN} WITH a.x AS x, {_ZONE}.minute AS m EMIT x, max(m) AS m",
    "such a clock as a key": f"MATCH (a) {_WITHIN} EMIT {_ZONE}.minute + a.x AS k, count(*) AS n",
    "such a clock in UNWIND": f"MATCH (a) {_WITHIN} UNWIND [a.x, {_ZONE}.minute] AS u EMIT u, count(*) AS n",
    "such a clock that orders": f"MATCH (a) {_WITHIN} WITH a ORDER BY {_ZONE}.minute * a.x, id(a) LIMIT 2 "
    "EMIT id(a) AS a",
    "the ends of relationships of a path": f"MATCH p = (a)-[*1..2]->(b) {_WITHIN} "
    "EMIT [q IN relationships(p) | startNode(q).x] AS xs",
    "the ends of relationships of a list": f"MATCH (a)-[r]->(b) {_WITHIN} WITH b, collect(r) AS rs UNWIND rs AS q "
    "EMIT id(b) AS b, startNode(q).x AS x",
    "an end that the row no longer has": f"MATCH (a)-[r]->(b) {_WITHIN} WITH r EMIT id(startNode(r)) AS s, r.x AS x",
    "EXISTS about the variable of a list": f"MATCH (a) {_WITHIN} "
    "EMIT [k IN [0, 1, 2] WHERE EXISTS { MATCH (a)-->(z) WHERE z.x = k }] AS ks",
    "a list of distinct rows in an order": f"MATCH (a)-[r]->(b) {_WITHIN} WITH r ORDER BY r.x LIMIT 3 "
    "WITH DISTINCT r.x AS x EMIT collect(x) AS xs",
    "a list of lists in an order": f"MATCH (a)-[r]->(b) {_WITHIN} WITH a, r ORDER BY r.x WITH a, collect(r.x) AS xs "
    "EMIT collect(xs) AS all",
}
AS_A_WHOLE = {
    "chance": f"MATCH (a) {_WITHIN} EMIT a.x AS x, rand() < 2 AS r",
    "ends in several graphs": f"MATCH (a)-[r]->(b) {_WITHIN} MATCH (c)-[q]->(d) WITHIN PT2M "
    "EMIT startNode(r).x AS s, endNode(q).x AS e",
}


def plan_of(body: str) -> QueryPlan:
    (registration,) = seraph.registrations(f"REGISTER QUERY q STARTING AT NOW {{ {body} SNAPSHOT EVERY PT1M }}")
    return planned(optimize(registration.plan).plan, {})


def events(random: Random) -> list[Event]:
    found = []
    for minute in sorted(random.randrange(25) for _ in range(12)):
        values: tuple[Value, ...] = (0, 1, 2, 3, None)
        nodes = tuple(Node(one, (), {"x": random.choice(values)}) for one in range(4) if random.random() < 0.6)
        source, target = random.randrange(4), random.randrange(4)
        link = Relationship(f"{source}/{target}", "R", source, target, {"x": random.randrange(4)})
        found.append(Event(_START + minute * _MINUTE, nodes, (link,)))
    return found


def run(body: str, output: str, force: Force, seed: int) -> tuple[Query, list[object]]:
    verify = 1 if force == "auto" else 0
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force, verify=verify))
    query = session.register(f"REGISTER QUERY q STARTING AT 2024-05-01T09:59 {{ {body} {output} EVERY PT1M }}")
    session.push("s", events(Random(seed)))
    session.finish(drain=True)
    return query, [(answer.at, answer.rows) for answer in query.poll()]


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING", "ON EXIT"])
@pytest.mark.parametrize("name", OVER_ROWS)
def test_rows_are_those_of_the_plain_evaluator_at_every_instant(name: str, output: str) -> None:
    answers = 0
    for seed in range(4):
        query, told = run(OVER_ROWS[name], output, "auto", seed)
        _, expected = run(OVER_ROWS[name], output, "recompute", seed)
        assert told == expected
        answers += len(told)
        assert (query.verified > 5, query.differing) == (True, 0)
    assert answers > 3


@pytest.mark.parametrize("name", OVER_ROWS)
def test_the_pattern_below_is_incremental_and_the_operator_says_why_it_is_not(name: str) -> None:
    query = plan_of(OVER_ROWS[name])
    modes = [mode for node in walk(query.plan) if isinstance(node, op.Operator) and (mode := query.mode(node))]
    assert any(
        mode.execution == "recompute" and mode.detail.startswith("over the rows of its input: ") for mode in modes
    )
    patterns = [query.mode(node) for node in walk(query.plan) if isinstance(node, op.Pattern)]
    assert any(mode is not None and mode.execution == "incremental" for mode in patterns)
    assert not query.is_incremental


@pytest.mark.parametrize("name", AS_A_WHOLE)
def test_chance_and_look_ups_in_several_graphs_leave_the_whole_to_the_plain_evaluator(name: str) -> None:
    query = plan_of(AS_A_WHOLE[name])
    assert query.root is None
    _, told = run(AS_A_WHOLE[name], "SNAPSHOT", "auto", 0)
    assert told == run(AS_A_WHOLE[name], "SNAPSHOT", "recompute", 0)[1]


@pytest.mark.parametrize("name", [name for name in OVER_ROWS if "clock" not in name])
def test_nothing_is_kept_when_everything_has_left(name: str) -> None:
    query = plan_of(OVER_ROWS[name])
    run_, fresh = PieceByPiece(query, {}, _START), PieceByPiece(query, {}, _START)
    nothing = fresh.tick([])
    for at, event in enumerate(events(Random(3))):
        run_.tick([Event(at, event.nodes, event.relationships)])
    assert run_.kept() > fresh.kept()
    assert run_.tick([Event(100)], forget_before=100) == nothing
    assert run_.kept() == fresh.kept()


# --- the operator itself ----------------------------------------------------------------------------------------------


class Bench:
    """An aggregate over rows that are held, and the instants at which it is asked."""

    def __init__(self, *, volatile: bool = False) -> None:
        self.dictionary = Dictionary()
        self.ids = [self.dictionary.encode(value) for value in range(9)]
        self.runtime = Runtime(self.dictionary)
        self.held = HeldRows(2)
        self.version = 0
        keys = (("k", ex.Variable("a")),)
        count = ex.AggregateCall("count", ())
        plan: op.Operator = op.Aggregate(op.RowBag(("a", "b")), keys, (("n", count),))
        if volatile:
            plan = op.Extend(plan, "t", ex.Call("timestamp", ()))
        self.width = len(plan.columns)
        self.leaf = RecomputedOverRows(plan, (), self.held, self.runtime)
        self.clock = 0

    def draw(self, random: Random) -> Row:
        return random.choice(self.ids), random.choice(self.ids)

    def advance(self, settled: bool = True) -> Batch:
        self.clock += 1
        context = Context(graph=lambda source: EMPTY_GRAPH, clock=self.clock * 1000)
        return self.leaf.advance(
            Tick(context, _no_triples, _no_elements, _no_relationships, lambda sources: self.version, settled=settled)
        )

    def expected(self, bag: Bag) -> Bag:
        counts: Counter[int] = Counter()
        for row, weight in bag.items():
            counts[row[0]] += weight
        return Counter({(key, self.dictionary.encode(count)): 1 for key, count in counts.items()})


def _no_triples(window: op.Window) -> TripleSlide:
    raise AssertionError(window)


def _no_elements(window: op.Window) -> ElementChanges:
    raise AssertionError(window)


def _no_relationships(window: op.Window) -> RelationshipSlide:
    raise AssertionError(window)


@pytest.mark.parametrize("most", [2, 60], ids=["small steps", "big steps"])
def test_the_sum_of_changes_is_the_plain_meaning_over_the_held_rows(most: int) -> None:
    for seed in range(10):
        bench = Bench()
        source, given = ChangingBag(seed, 2, bench.draw), Counter[Row]()
        smallest = bench.held.size().bytes
        for _ in range(15):
            bench.held.apply(source.change(most, 0.45))
            accumulate(given, bench.advance())
            assert given == bench.expected(source.bag)
        bench.held.apply_pieces(iter([source.emptied()]))
        accumulate(given, bench.advance())
        assert given == Counter()
        assert (bench.held.size(), bench.leaf.size()) == ((0, smallest), (0, 0))


def test_it_waits_until_the_windows_are_settled_and_then_gives_the_difference() -> None:
    bench = Bench()
    source, given = ChangingBag(1, 2, bench.draw), Counter[Row]()
    accumulate(given, bench.advance(settled=False))  # the first tick is always evaluated
    for _ in range(5):
        bench.held.apply(source.change(6, 0.3))
        assert not len(bench.advance(settled=False))
    accumulate(given, bench.advance())
    assert given == bench.expected(source.bag) != Counter()


def test_without_a_change_it_is_evaluated_only_where_it_reads_the_clock() -> None:
    for volatile in (False, True):
        bench = Bench(volatile=volatile)
        bench.held.apply(Batch.of([bench.ids[:2]], [1], 2))
        assert len(bench.advance()) == 1
        assert len(bench.advance()) == (2 if volatile else 0)
        passing = Batch.of([bench.ids[:2], bench.ids[:2]], [-1, 1], 2)
        bench.held.apply(passing)
        assert len(bench.advance()) == (2 if volatile else 0)
