"""Groups on arrays against exact fractions: rows come and go, and all sums are as if only the present had ever come."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from anabranch.algebra import expressions as ex
from anabranch.delta.batch import REFUSED, Batch, Ids, concatenated
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import RowFunction
from anabranch.delta.operators.group_calls import GroupCall
from anabranch.delta.operators.grouping import GroupedAggregates
from anabranch.delta.patterns import Changes
from anabranch.errors import EvaluationError
from anabranch.model.temporal import Duration
from anabranch.model.terms import XSD_INTEGER, Literal
from anabranch.model.values import Node, Value
from anabranch.snapshot.grouping import Aggregation

from .bags import Bag, ChangingBag, Row, accumulate, follows, summed

CALLS = (("avg", "x"), ("count", ""), ("sum", "x"), ("count", "x"), ("sum", "y"), ("avg", "y"))
LARGEST = math.nextafter(math.inf, 0)

SMALL = (None, 0, 1, -3, 7, 1.0, -2.5, 0.1, 0.2, 19.99)
FLOATS = (1e300, -1e300, LARGEST, -LARGEST, 1e292, 5e-324, -5e-324, 2.2e-308, -0.0, 0.0, 1e-17, 1.0, -1.0, 0.1)
TIES = (2.0**53, 1.0, 2.0**-60, -(2.0**-60), 2.0**53 + 2, 0.5, 2.0**-1000, -1.0, 3.0, 2.0**200, -(2.0**200))
INTEGERS = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 2**53, 1, -1, 0, None)
MIXED = (2**63 - 1, -(2**63), 2**53 + 1, 1, -1, 0, 1e19, -1e19, 0.5, 5e-324, 1e308, 2.0**52, -0.0, None)
ODD = (math.nan, math.inf, -math.inf)
REPEATED = (0.1, 2.0**-31, 2.0**32 + 0.5)
POOLS = {
    "small": SMALL,
    "floats": FLOATS,
    "ties": TIES,
    "integers": INTEGERS,
    "mixed": MIXED,
    "repeated": REPEATED,
}


class Grouped:
    """Rows (k, x, y) grouped by k, and what fractions say about them."""

    def __init__(
        self,
        keys: Sequence[Value],
        values: Sequence[Value],
        *,
        is_keyed: bool = True,
        dictionary: Dictionary | None = None,
    ) -> None:
        self.dictionary = dictionary or Dictionary()
        self.refused: list[EvaluationError] = []
        self.is_keyed = is_keyed
        self.keys = [self.dictionary.encode(key) for key in keys]
        self.values = [self.dictionary.encode(value) for value in values]
        calls = [
            GroupCall(
                Aggregation(ex.AggregateCall(function, (ex.Variable(name),) if name else ())),
                (column("kxy".index(name)),) if name else (),
            )
            for function, name in CALLS
        ]
        self.operator = GroupedAggregates(
            [column(0)] if is_keyed else [],
            calls,
            self.dictionary,
            self.dictionary.identities,
            always_one=not is_keyed,
            refuse=self.refused.append,
        )

    def draw(self, random: Random) -> Row:
        return random.choice(self.keys), random.choice(self.values), random.choice(self.values)

    def changing(self, seed: int) -> ChangingBag:
        return ChangingBag(seed, 3, self.draw)

    def row(self, *values: Value) -> list[int]:
        return [self.dictionary.encode(value) for value in values]

    def plain(self, bag: Bag) -> Bag:
        groups: dict[int | None, list[Row]] = {} if self.is_keyed else {None: []}
        for row in bag.elements():
            groups.setdefault(row[0] if self.is_keyed else None, []).append(row)
        found: Bag = Counter()
        for key, rows in groups.items():
            results = [self.result(function, name, rows) for function, name in CALLS]
            if all(result is not math.nan for result in results):
                found[(*([] if key is None else [key]), *map(self.dictionary.encode, results))] += 1
        return found

    def result(self, function: str, name: str, rows: Sequence[Row]) -> Any:
        """The result of an aggregate; NaN where it fails."""
        if not name:
            return len(rows)
        decoded = [self.dictionary.decode(row["kxy".index(name)]) for row in rows if row["kxy".index(name)] >= 0]
        values = [value for value in decoded if value is not None]
        if function == "count":
            return len(values)
        floats = [value for value in values if isinstance(value, float)]
        whole = sum(value for value in values if isinstance(value, int))
        if floats:
            total = rounded(sum(map(Fraction, floats)) + Fraction(float(whole)))
            return total if function == "sum" else total / len(values)
        if function == "avg":
            return float(Fraction(whole, len(values))) if values else None
        return whole if -(2**63) <= whole < 2**63 else math.nan


def column(place: int) -> RowFunction:
    return lambda rows: np.ascontiguousarray(rows[:, place])


def rounded(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@pytest.fixture
def on_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        pytest.fail("the groups became objects")

    monkeypatch.setattr("anabranch.delta.operators.grouping._Groups.take", fail)


def lived(grouped: Grouped, changing: ChangingBag, steps: int, most: int) -> None:
    if grouped.is_keyed:
        follows(grouped.operator, [changing], grouped.plain, steps, most)
        return
    given: Bag = Counter()
    for _ in range(steps):
        accumulate(given, grouped.operator.apply(changing.change(most, 0.4)))
        assert given == grouped.plain(changing.bag)
    accumulate(given, grouped.operator.apply(changing.emptied()))
    assert given == grouped.plain(changing.bag)


@pytest.mark.usefixtures("on_arrays")
@pytest.mark.parametrize("is_keyed", [True, False], ids=["keys", "no keys"])
@pytest.mark.parametrize(("steps", "most"), [(30, 3), (8, 80)], ids=["small steps", "big steps"])
@pytest.mark.parametrize("pool", POOLS)
def test_sums_on_arrays_are_those_of_fractions(pool: str, steps: int, most: int, is_keyed: bool) -> None:
    for seed in range(6):
        grouped = Grouped(("a", "b", None, 4), POOLS[pool], is_keyed=is_keyed)
        lived(grouped, grouped.changing(seed), steps, most)
        assert not grouped.refused or pool in ("integers", "mixed")


@pytest.mark.parametrize("is_keyed", [True, False], ids=["keys", "no keys"])
@pytest.mark.parametrize("pool", [*POOLS, "odd"])
def test_many_slides_at_once_are_as_one_after_the_other(pool: str, is_keyed: bool) -> None:
    """Also where they must be taken one after the other: sums by value, numbers that are not finite, equal keys that
    look different."""
    values = POOLS.get(pool, (*SMALL, *ODD))
    for seed in range(8):
        keys = ("a", "b", None, 4, 4.0) if seed % 2 else ("a", "b", None, 4)
        single = Grouped(keys, values, is_keyed=is_keyed)
        several = Grouped(keys, values, is_keyed=is_keyed, dictionary=single.dictionary)
        changing = single.changing(seed)
        for count in (1, 1, 6, 12, 3):
            batches = [
                changing.emptied() if place == 4 else changing.change(12 if place % 3 else 0, 0.5)
                for place in range(count)
            ]
            ends = np.cumsum([len(batch) for batch in batches])
            told = several.operator.apply_slides(Changes(concatenated(batches, 3), ends))
            for batch, change in zip(batches, told.slides(), strict=True):
                assert summed([change]) == (summed([single.operator.apply(batch)]) if len(batch) else Counter())


@pytest.mark.usefixtures("on_arrays")
@pytest.mark.parametrize("seed", range(4))
def test_floats_of_any_bits_are_added_exactly(seed: int) -> None:
    random = Random(seed)
    words = [random.getrandbits(64) for _ in range(60)]
    floats = [value for value in np.array(words, np.uint64).view(np.float64).tolist() if math.isfinite(value)]
    grouped = Grouped(("a", "b"), floats)
    lived(grouped, grouped.changing(seed), 12, 12)


@pytest.mark.usefixtures("on_arrays")
@pytest.mark.parametrize("seed", range(3))
def test_many_groups_come_and_go_and_their_room_is_given_back(seed: int) -> None:
    grouped = Grouped(range(1500), SMALL)
    random, held = Random(seed), list[Row]()
    given: Bag = Counter()
    sizes = []
    for entering, leaving in [(1200, 0), (300, 900), (0, 560), (700, 100), (40, 670), (0, 9000)]:
        random.shuffle(held)
        gone, held = held[:leaving], held[leaving:]
        new = [grouped.draw(random) for _ in range(entering)]
        held += new
        batch = Batch.of([*gone, *new], [-1] * len(gone) + [1] * len(new), 3)
        accumulate(given, grouped.operator.apply(batch))
        assert given == grouped.plain(Counter(held))
        assert grouped.operator.size().rows == len({row[0] for row in held})
        sizes.append(grouped.operator.size().bytes)
    assert not held
    assert sizes[2] < sizes[0] / 4
    assert sizes[-1] == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_value_that_is_no_finite_number_changes_the_way_and_not_the_result(seed: int) -> None:
    grouped = Grouped(("a", "b", 3), FLOATS)
    changing = grouped.changing(seed)
    given: Bag = Counter()

    def step(batch: Batch) -> None:
        accumulate(given, grouped.operator.apply(batch))

    for odd in ODD:  # a life each: on arrays, by value, and at the end on arrays again
        for _ in range(3):
            step(changing.change(8, 0.3))
            assert given == grouped.plain(changing.bag)
        row = grouped.row("a", odd, 1)
        step(Batch.of([row], [1], 3))
        own = [grouped.dictionary.decode(one[1]) for one in given if one[0] == row[0]]
        assert len(own) == 1
        assert isinstance(own[0], float)
        assert not math.isfinite(own[0])
        step(changing.change(8, 0.3))
        step(Batch.of([row], [-1], 3))
        assert given == grouped.plain(changing.bag)
        for _ in range(2):
            step(changing.change(8, 0.5))
            assert given == grouped.plain(changing.bag)
        step(changing.emptied())
        assert not given
        assert grouped.operator.size() == (0, 0)


def test_the_groups_are_on_arrays_again_when_all_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = Grouped(("a",), SMALL)
    odd = grouped.row("a", math.inf, 1)
    grouped.operator.apply(Batch.of([odd], [1], 3))
    grouped.operator.apply(Batch.of([odd], [-1], 3))
    monkeypatch.setattr("anabranch.delta.operators.grouping._Groups.take", lambda *_: pytest.fail("not on arrays"))
    given = grouped.operator.apply(Batch.of([grouped.row("a", 1, 2)], [1], 3))
    assert Counter(map(tuple, given.rows.tolist())) == grouped.plain(Counter([tuple(grouped.row("a", 1, 2))]))


@pytest.mark.parametrize("value", ["text", True, Duration(days=1)])
def test_values_of_other_kinds_come_in_mid_life(value: Value) -> None:
    grouped = Grouped(("a", "b"), SMALL)
    changing = grouped.changing(1)
    given: Bag = Counter()
    accumulate(given, grouped.operator.apply(changing.change(30, 0.0)))
    row = grouped.row("c", value, 1)
    accumulate(given, grouped.operator.apply(Batch.of([row], [1], 3)))
    assert len([one for one in given if one[0] == row[0]]) == 1
    assert len(grouped.refused) == (0 if isinstance(value, Duration) else 2)  # one by the sum and one by the average
    accumulate(given, grouped.operator.apply(changing.change(30, 0.4)))
    accumulate(given, grouped.operator.apply(Batch.of([row], [-1], 3)))
    assert given == grouped.plain(changing.bag)


def test_rows_whose_argument_failed_are_counted_and_not_added() -> None:
    grouped = Grouped(("a",), SMALL)
    rows = [grouped.row("a", 2, 2.5), [*grouped.row("a", 3), REFUSED]]
    given = summed_rows(grouped.operator.apply(Batch.of(rows, [1, 1], 3)))
    assert given == grouped.plain(Counter(map(tuple, rows)))


def summed_rows(batch: Batch) -> Bag:
    given: Bag = Counter()
    accumulate(given, batch)
    return given


NODES = (Node(1), Node(1, ("A",)), Node(1, ("B",)))


@pytest.mark.usefixtures("on_arrays")
def test_a_group_all_of_whose_rows_get_another_key_stays_on_arrays() -> None:
    grouped = Grouped((*NODES, "b"), SMALL)
    given: Bag = Counter()
    rows = [[grouped.row(node, value, value) for value in (1, 2.5, None)] for node in NODES]
    accumulate(given, grouped.operator.apply(Batch.of(rows[0], [1] * 3, 3)))
    for old, new in ((0, 1), (1, 2), (2, 0)):
        batch = Batch.of([*rows[new], *rows[old], grouped.row("b", 1, 1)], [1] * 3 + [-1] * 3 + [1], 3)
        accumulate(given, grouped.operator.apply(batch))
        shown = {grouped.dictionary.decode(row[0]) for row in given}  # type: ignore[type-var]
        assert NODES[new] in shown
        assert len(given) == 2
    # A key that comes and goes within the batch, before the one that stays, and a group that only turns.
    batch = Batch.of([*rows[1], *rows[1], *rows[0], *rows[2]], [1] * 3 + [-1] * 6 + [1] * 3, 3)
    accumulate(given, grouped.operator.apply(batch))
    assert grouped.dictionary.encode(NODES[2]) in {row[0] for row in given}


@pytest.mark.parametrize("seed", range(10))
def test_equivalent_keys_in_one_group_change_the_way_and_not_the_result(seed: int) -> None:
    grouped = Grouped((1, 1.0, "a", *NODES), SMALL)
    first = {grouped.dictionary.encode(key): rank for rank, key in enumerate((1, 1.0, "a", *NODES))}
    classes = dict(zip(first, ("one", "one", "a", "node", "node", "node"), strict=True))

    def plain(bag: Bag) -> Bag:
        shown: dict[str, int] = {}
        for key, *_ in sorted(bag, key=lambda row: first[row[0]]):
            shown.setdefault(classes[key], key)
        return grouped.plain(Counter([(shown[classes[row[0]]], *row[1:]) for row in bag.elements()]))

    follows(grouped.operator, [grouped.changing(seed)], plain, 20, 4)


@pytest.mark.parametrize("odd", [1.5, math.inf])
def test_pieces_of_an_instant_are_one_change(odd: float) -> None:
    grouped = Grouped(("a", "b"), SMALL)
    rows = [grouped.row("a", 1, 2.5), grouped.row("b", 2, 2), grouped.row("c", 3, 3)]
    given: Bag = Counter()
    accumulate(given, grouped.operator.apply(Batch.of(rows, [1] * 3, 3)))

    def pieces() -> Iterator[Batch]:
        yield Batch.of(rows[:2], [-1, -1], 3)  # both groups end, and one of them comes again
        yield Batch.of([grouped.row("a", odd, 1), grouped.row("a", 1, 2.5)], [1, 1], 3)

    batch = grouped.operator.apply_pieces(pieces())
    assert len(batch) == 3  # one leaves for good, and one is replaced
    accumulate(given, batch)
    assert {row[0] for row in given} == {grouped.row("a")[0], grouped.row("c")[0]}
    total = next(row for row in given if row[0] == grouped.row("a")[0])[3]
    assert grouped.dictionary.decode(total) == 1 + odd


@pytest.mark.usefixtures("on_arrays")
def test_counts_of_terms_are_terms() -> None:
    dictionary = Dictionary()
    call = GroupCall(Aggregation(ex.AggregateCall("sparql:count", ())), ())
    operator = GroupedAggregates([column(0)], [call], dictionary)
    rows: Ids = np.array([[1], [1], [2]], np.int64)
    found = {key: dictionary.decode(count) for key, count in operator.apply(Batch.entering(rows)).rows.tolist()}
    assert found == {1: Literal("2", XSD_INTEGER), 2: Literal("1", XSD_INTEGER)}


@pytest.mark.usefixtures("on_arrays")
def test_a_result_that_did_not_change_is_not_emitted() -> None:
    dictionary = Dictionary()
    call = GroupCall(Aggregation(ex.AggregateCall("sum", (ex.Variable("x"),))), (column(1),))
    operator = GroupedAggregates([column(0)], [call], dictionary)
    one: Callable[[Value], list[int]] = lambda value: [1, dictionary.encode(value)]  # noqa: E731
    assert len(operator.apply(Batch.of([one(2.0), one(-2.0)], [1, 1], 2))) == 1
    assert len(operator.apply(Batch.of([one(0.0), one(2.0), one(-2.0)], [1, -1, -1], 2))) == 0
    assert operator.apply(Batch.of([one(0.0), one(0)], [-1, 1], 2)).weights.tolist() == [-1, 1]
    assert operator.apply(Batch.of([one(0)], [-1], 2)).weights.tolist() == [-1]
