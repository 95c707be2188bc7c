"""Aggregates on changes against the plain evaluator's own groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.delta.batch import Batch, Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import DeltaOperator, RowFunction
from anabranch.delta.operators.group_calls import GroupCall, GroupOrder
from anabranch.delta.operators.grouping import AnnotatedRows, GroupedAggregates
from anabranch.errors import EvaluationError
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import Duration
from anabranch.model.terms import XSD_DOUBLE, XSD_INTEGER, Literal
from anabranch.model.values import Node, Value
from anabranch.snapshot import Context, evaluate_plan
from anabranch.snapshot.grouping import Aggregation

from .bags import Bag, ChangingBag, Row, accumulate, follows

KEYS: Sequence[Value] = (None, 1, 1.0, "a", [1], [1.0], Node(1), Node(1, ("A",)))
VALUES: Sequence[Value] = (None, 0, 1, 1.0, -2.5, 0.1, 3, 1e300)
TERMS: Sequence[Value] = (None, *(Literal(str(n), XSD_INTEGER) for n in range(3)), Literal("2.5", XSD_DOUBLE))

CYPHER = (
    ex.AggregateCall("count", ()),
    ex.AggregateCall("count", (ex.Variable("x"),)),
    ex.AggregateCall("collect", (ex.Variable("x"),)),
    ex.AggregateCall("sum", (ex.Variable("x"),)),
    ex.AggregateCall("max", (ex.Variable("x"),)),
    ex.AggregateCall("collect", (ex.Variable("y"),), distinct=True),
    ex.AggregateCall("avg", (ex.Variable("x"),), distinct=True),
    ex.AggregateCall("percentilecont", (ex.Variable("x"), ex.Constant(0.4))),
    ex.AggregateCall("count", (ex.Variable("y"),), distinct=True),
)
SPARQL = tuple(
    ex.AggregateCall(f"sparql:{name}", arguments, distinct)
    for name, arguments, distinct in [
        ("count", (), False),
        ("count", (ex.Variable("x"), ex.Variable("y")), False),
        ("count", (ex.Variable("x"), ex.Variable("y")), True),
        ("sum", (ex.Variable("x"),), False),
        ("min", (ex.Variable("y"),), False),
        ("group_concat", (ex.Variable("y"), ex.Constant(Literal("|"))), False),
        ("sample", (ex.Variable("x"),), True),
    ]
)
COLUMNS = ("k", "x", "y")


class Everything:
    """A dictionary with a pool of values, and how the plain evaluator is asked about a bag of ids."""

    def __init__(self, pools: Sequence[Sequence[Value]], calls: Sequence[ex.AggregateCall]) -> None:
        self.dictionary = Dictionary()
        self.pools = [[self.dictionary.encode(value) for value in pool] for pool in pools]
        self.aggregates = tuple((f"r{at}", call) for at, call in enumerate(calls))
        self.calls = [GroupCall(Aggregation(call), tuple(map(self.function, call.arguments))) for call in calls]

    def draw(self, random: Random) -> Row:
        return tuple(random.choice(pool) for pool in self.pools)

    def function(self, expression: ex.Expression) -> RowFunction:
        match expression:
            case ex.Variable(name):
                at = COLUMNS.index(name)
                return lambda rows: np.ascontiguousarray(rows[:, at])
            case ex.Constant(value):
                known = self.dictionary.encode(value)
                return lambda rows: np.full(len(rows), known, np.int64)
        raise AssertionError(expression)

    def rows(self, bag: Bag) -> op.Operator:
        """A bag of ids as rows of values, in any order."""
        rows = [tuple(map(self.dictionary.decode, row)) for row in bag.elements()]
        Random(len(rows)).shuffle(rows)
        return tr.Values(COLUMNS, tuple(rows))  # type: ignore[arg-type]

    def answer(self, plan: op.Operator) -> Bag:
        found = evaluate_plan(plan, Context(graph=lambda source: PropertyGraph()))[1]
        return Counter(tuple(map(self.dictionary.encode, row)) for row in found)


@pytest.fixture(autouse=True)
def rows_of_values_are_a_bag(monkeypatch: pytest.MonkeyPatch) -> None:
    """VALUES come in the query's order; here they stand for what a window holds."""
    monkeypatch.setattr("anabranch.algebra.walk._order_of", lambda plan: 0)


def judged(everything: Everything, operator: DeltaOperator, keys: tuple[str, ...], annotates: bool, seed: int) -> None:
    def plain(bag: Bag) -> Bag:
        if annotates:
            return everything.answer(op.Annotate(everything.rows(bag), keys, everything.aggregates))
        named = tuple((name, ex.Variable(name)) for name in keys)
        return everything.answer(op.Aggregate(everything.rows(bag), named, everything.aggregates))

    changing = ChangingBag(seed, 3, everything.draw)
    if keys or annotates:
        follows(operator, [changing], plain, steps=8, most=10)
        return
    given: Bag = Counter()
    accumulate(given, operator.apply(Batch.empty(3)))
    assert given == plain(changing.bag)
    for _ in range(8):
        accumulate(given, operator.apply(changing.change(10, 0.4)))
        assert given == plain(changing.bag)
    accumulate(given, operator.apply(changing.emptied()))
    assert given == plain(changing.bag)


@pytest.mark.parametrize("keys", [("k",), ("k", "y"), ()])
@pytest.mark.parametrize("seed", range(8))
def test_groups_of_cypher_are_those_of_the_plain_evaluator(keys: tuple[str, ...], seed: int) -> None:
    everything = Everything((KEYS, VALUES, KEYS), CYPHER)
    functions = [everything.function(ex.Variable(name)) for name in keys]
    same = everything.dictionary.identities
    operator = GroupedAggregates(functions, everything.calls, everything.dictionary, same, always_one=True)
    judged(everything, operator, keys, False, seed)


@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize("seed", range(8))
def test_groups_of_sparql_are_those_of_the_plain_evaluator(keys: tuple[str, ...], seed: int) -> None:
    everything = Everything((TERMS, TERMS, TERMS), SPARQL)
    functions = [everything.function(ex.Variable(name)) for name in keys]
    operator = GroupedAggregates(functions, everything.calls, everything.dictionary, always_one=True)
    judged(everything, operator, keys, False, seed)


ODD: Sequence[Value] = (0, 0.0, -0.0, 2**53, 2**53 + 1, 2.0**53, 2**61, math.nan, math.inf, -math.inf, 1e308, 5e-324)
NUMERIC = tuple(
    ex.AggregateCall(name, arguments)
    for name, arguments in [
        ("sum", (ex.Variable("x"),)),
        ("min", (ex.Variable("x"),)),
        ("max", (ex.Variable("x"),)),
        ("avg", (ex.Variable("x"),)),
        ("min", (ex.Variable("y"),)),
        ("max", (ex.Variable("y"),)),
        ("count", ()),
    ]
)


@pytest.mark.parametrize("pool", [VALUES, (*VALUES, *ODD)], ids=["usual", "odd"])
@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize("seed", range(12))
def test_sums_and_extremes_by_arrays_are_those_of_the_plain_evaluator(
    pool: Sequence[Value], keys: tuple[str, ...], seed: int
) -> None:
    everything = Everything((KEYS, pool, (*KEYS, *pool)), NUMERIC)
    functions = [everything.function(ex.Variable(name)) for name in keys]
    same = everything.dictionary.identities
    judged(
        everything, GroupedAggregates(functions, everything.calls, everything.dictionary, same, True), keys, False, seed
    )
    judged(everything, AnnotatedRows(3, functions, everything.calls, everything.dictionary, same), keys, True, seed)


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_values_that_cannot_be_added_are_skipped_beside_numbers(function: str) -> None:
    refused: list[EvaluationError] = []
    call = ex.AggregateCall(function, (ex.Variable("x"),))
    everything = Everything((KEYS, VALUES, KEYS), (call,))
    operator = GroupedAggregates([], everything.calls, everything.dictionary, refuse=refused.append)
    encode = everything.dictionary.encode
    rows = [[0, encode(2), 0], [0, encode("a"), 0], [0, encode(4.5), 0]]
    assert operator.apply(Batch.of(rows[:2], [1, 1], 3)).rows.tolist() == [[encode(2 if function == "sum" else 2.0)]]
    assert len(refused) == 1
    left = operator.apply(Batch.of(rows, [-1, -1, 1], 3))
    assert left.rows[left.weights > 0].tolist() == [[encode(4.5)]]


@pytest.mark.parametrize(("pools", "calls"), [((KEYS, VALUES, KEYS), CYPHER), ((TERMS, TERMS, TERMS), SPARQL)])
@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize("seed", range(5))
def test_annotated_rows_are_those_of_the_plain_evaluator(
    pools: Sequence[Sequence[Value]], calls: Sequence[ex.AggregateCall], keys: tuple[str, ...], seed: int
) -> None:
    everything = Everything(pools, calls)
    functions = [everything.function(ex.Variable(name)) for name in keys]
    same = everything.dictionary.identities
    operator = AnnotatedRows(3, functions, everything.calls, everything.dictionary, same)
    judged(everything, operator, keys, True, seed)


@pytest.mark.parametrize("seed", range(5))
def test_counts_alone_are_those_of_the_plain_evaluator(seed: int) -> None:
    everything = Everything((KEYS, VALUES, KEYS), CYPHER[:2])
    operator = GroupedAggregates(
        [everything.function(ex.Variable("k"))],
        everything.calls,
        everything.dictionary,
        everything.dictionary.identities,
    )
    judged(everything, operator, ("k",), False, seed)


def test_what_did_not_change_is_not_told() -> None:
    everything = Everything((KEYS, VALUES, KEYS), (ex.AggregateCall("max", (ex.Variable("x"),)),))
    encode = everything.dictionary.encode
    operator = GroupedAggregates([everything.function(ex.Variable("k"))], everything.calls, everything.dictionary)
    low, high, key = encode(1), encode(3), encode("a")
    first = operator.apply(Batch.of([[key, high, 0], [encode(1), high, 0]], [1, 1], 3))
    assert len(first) == 2
    assert len(operator.apply(Batch.of([[key, low, 0]], [1], 3))) == 0
    assert sorted(operator.apply(Batch.of([[key, high, 0]], [-1], 3)).weights.tolist()) == [-1, 1]
    assert operator.apply(Batch.of([[key, low, 0]], [-1], 3)).weights.tolist() == [-1]


def test_without_keys_and_without_the_wish_there_is_no_row_of_nothing() -> None:
    everything = Everything((KEYS, VALUES, KEYS), (ex.AggregateCall("count", ()),))
    operator = GroupedAggregates([], everything.calls, everything.dictionary)
    assert len(operator.apply(Batch.empty(3))) == 0
    assert len(operator.apply(Batch.of([[0, 0, 0]], [1], 3))) == 1
    assert operator.apply(Batch.of([[0, 0, 0]], [-1], 3)).weights.tolist() == [-1]
    assert operator.size() == (0, 0)


def test_a_group_turns_from_durations_to_numbers_within_an_instant() -> None:
    everything = Everything((KEYS, VALUES, KEYS), (ex.AggregateCall("sum", (ex.Variable("x"),)),))
    encode = everything.dictionary.encode
    operator = GroupedAggregates([], everything.calls, everything.dictionary, always_one=True)
    operator.apply(Batch.of([[0, encode(Duration(days=1)), 0]], [1], 3))
    turned = operator.apply(Batch.of([[0, encode(2), 0], [0, encode(Duration(days=1)), 0]], [1, -1], 3))
    assert sorted(zip(turned.rows[:, 0].tolist(), turned.weights.tolist(), strict=True)) == sorted(
        [(encode(Duration(days=1)), -1), (encode(2), 1)]
    )
    with pytest.raises(EvaluationError):
        operator.apply(Batch.of([[0, encode(Duration(days=1)), 0]], [1], 3))


def test_a_sum_that_slid_for_long_is_the_one_from_scratch() -> None:
    everything = Everything((KEYS, VALUES, KEYS), (ex.AggregateCall("sum", (ex.Variable("x"),)),))
    operator = GroupedAggregates([], everything.calls, everything.dictionary, always_one=True)
    random, window = Random(4), list[float]()
    given: Bag = Counter()
    for _ in range(400):
        entering = [random.gauss(0, 1) * 10 ** random.randint(-9, 9) for _ in range(5)]
        leaving, window = window[: max(len(window) - 20, 0)], window[max(len(window) - 20, 0) :] + entering
        ids = [[0, everything.dictionary.encode(value), 0] for value in (*entering, *leaving)]
        accumulate(given, operator.apply(Batch.of(ids, [1] * len(entering) + [-1] * len(leaving), 3)))
        ((result,),) = given
        assert everything.dictionary.decode(result) == math.fsum(window)


def test_only_what_is_counted_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain counts never touch a value: the dictionary is not asked for one."""
    everything = Everything((KEYS, VALUES, KEYS), CYPHER[:2])
    operator = GroupedAggregates([everything.function(ex.Variable("k"))], everything.calls, everything.dictionary)
    monkeypatch.setattr(Dictionary, "decode", lambda self, one: pytest.fail("a value was looked at"))
    rows: Ids = np.array([everything.draw(Random(seed)) for seed in range(50)], np.int64)
    assert len(operator.apply(Batch.entering(rows))) == len(np.unique(rows[:, 0]))


@pytest.mark.parametrize("most", [2, 40], ids=["small steps", "big steps"])
@pytest.mark.parametrize("seed", range(6))
def test_lists_are_in_the_order_that_the_groups_are_given(seed: int, most: int) -> None:
    calls = (ex.AggregateCall("count", ()), ex.AggregateCall("collect", (ex.Variable("x"),)))
    everything = Everything((KEYS[:4], (0, 1, 2, None), (5, 6, 7)), calls)
    decode, encode = everything.dictionary.decode, everything.dictionary.encode

    def key(ids: Sequence[int]) -> tuple[int, bool, int]:
        y, x = (decode(one) for one in ids[:2])
        return -y, x is None, x or 0

    columns = [everything.function(ex.Variable(name)) for name in "yx"]
    keys = [everything.function(ex.Variable("k"))]
    operator = GroupedAggregates(keys, everything.calls, everything.dictionary, order=GroupOrder(columns, key))

    def plain(bag: Bag) -> Bag:
        groups: dict[int, list[Row]] = {}
        for row in bag.elements():
            groups.setdefault(row[0], []).append(row)
        found: Bag = Counter()
        for group, rows in groups.items():
            rows.sort(key=lambda row: key((row[2], row[1])))
            listed = [value for row in rows if (value := decode(row[1])) is not None]
            found[group, encode(len(rows)), encode(listed)] += 1
        return found

    follows(operator, [ChangingBag(seed, 3, everything.draw)], plain, steps=12, most=most)
