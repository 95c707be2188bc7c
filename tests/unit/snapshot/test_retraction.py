"""What was added to an aggregate and removed again leaves no trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.snapshot.rdf.support import term

from anabranch.algebra.expressions import AggregateCall, Variable
from anabranch.algebra.walk import depends_on_order
from anabranch.delta.dictionary import exact_key
from anabranch.errors import EvaluationError
from anabranch.model.compare import canonical_key
from anabranch.model.temporal import Date, Duration
from anabranch.model.values import Node, Value
from anabranch.snapshot.aggregates import AGGREGATES, Accumulator, DistinctValues
from anabranch.snapshot.grouping import Aggregation
from anabranch.snapshot.rdf.aggregates import AGGREGATES as TERM_AGGREGATES
from anabranch.snapshot.rdf.values import number_of
from anabranch.snapshot.sums import FloatSum, root

NUMBERS: Sequence[Value] = (0, 1, 2, -3, 10**18, 0.0, -0.0, 1.0, 2.5, 0.1, -7.25, 1e300, -1e300, 5e-324, math.inf)
MIXED: Sequence[Value] = (
    *(1, 1.0, True, "a", "b", 2, 2.0, -0.0, 0, math.nan, Date(2020), [1], [1.0], [1, None], {"a": 1, "b": 2}),
    *({"b": 2, "a": 1}, {"a": 1.0, "b": 2}, Node(1), Node(1, ("A",)), Node(1, (), {"x": 1}), Node(1, (), {"x": 1.0})),
)
TERMS: Sequence[Value] = (
    None,
    *map(term, ("1^^integer", "01^^integer", "1.0^^decimal", "2.50^^decimal", "1^^double", "0.1^^float", "a", "b@en")),
    *map(term, ("NaN^^double", "INF^^double", "-INF^^double", "-4^^integer", "1E300^^double", "<http://a/>")),
    *map(term, ("x^^integer", "9" * 60 + "." + "1" * 60 + "^^decimal", "1E-300^^double")),
)
TERM_NUMBERS = [one for one in TERMS if number_of(one) is not None]


def values_for(name: str) -> Sequence[Value]:
    if name in ("sparql:sum", "sparql:avg"):
        return [*TERM_NUMBERS * 3, None]  # one error hides the rest, so errors are few
    if name.startswith("sparql:"):
        return TERMS
    return NUMBERS if name in ("sum", "avg") or name.startswith(("stdev", "percentile")) else MIXED


def extra_for(name: str, random: Random) -> Sequence[Value]:
    return (random.choice((0.0, 0.3, 0.5, 1)),) if name.startswith("percentile") else ()


def begin(name: str, distinct: bool) -> Accumulator:
    inner = {**AGGREGATES, **TERM_AGGREGATES}[name]()
    return DistinctValues(inner) if distinct else inner


def seen(accumulator: Accumulator, ordered: bool) -> Any:
    """The result as far as the order of values allows it to be told; an error by its text."""
    try:
        value = accumulator.result()
    except EvaluationError as error:
        return str(error)
    if ordered:
        parts = value if isinstance(value, list) else [] if value is None else value[0].split()  # type: ignore[index]
        return sorted(map(repr, map(exact_key, parts)))
    return exact_key(value)


# Which look of a value an ordered aggregate shows with DISTINCT depends on the order, so groups feed it anew.
CASES = [
    (name, distinct)
    for name, make in {**AGGREGATES, **TERM_AGGREGATES}.items()
    for distinct in (False, True)
    if not (distinct and make().ordered)
]


@pytest.mark.parametrize(("name", "distinct"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_result_is_that_of_what_is_left(name: str, distinct: bool, seed: int) -> None:
    random = Random(f"{name}/{seed}")
    ordered = begin(name, False).ordered
    pool = values_for(name)
    changed, left = begin(name, distinct), list[tuple[Value, Sequence[Value]]]()
    for step in range(400):
        if left and random.random() < (0.35 if step % 100 < 60 else 0.8):
            changed.remove(*left.pop(random.randrange(len(left))))
        else:
            left.append((random.choice(pool), extra_for(name, random)))
            changed.add(*left[-1])
        if step % 7 == 0:
            fresh = begin(name, distinct)
            random.shuffle(left)
            for value, extra in left:
                fresh.add(value, extra)
            assert seen(changed, ordered) == seen(fresh, ordered)
    while left:
        changed.remove(*left.pop())
    assert seen(changed, ordered) == seen(begin(name, distinct), ordered)


@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e290])
def test_a_sum_of_floats_after_many_slides_is_the_one_from_scratch(scale: float) -> None:
    random = Random(scale)
    window = [random.gauss(0, 1) * 10 ** random.randint(-12, 12) * scale for _ in range(50)]
    total = FloatSum()
    for value in window:
        total.add(value)
    for step in range(20_000):
        total.remove(window.pop(0))
        window.append(random.gauss(0, 1) * 10 ** random.randint(-12, 12) * scale)
        total.add(window[-1])
        if step % 50 == 0:
            assert total.total() == math.fsum(window)
    for value in window:
        total.remove(value)
    assert total.total() == 0.0
    assert total.count == 0


def test_a_sum_may_pass_the_floats_on_its_way() -> None:
    total = FloatSum()
    for value in (1.7e308, 1.7e308, -1.7e308):
        total.add(value)
    assert total.total() == 1.7e308
    total.remove(-1.7e308)
    assert total.total() == math.inf
    total.add(math.nan)
    assert math.isnan(total.total())
    total.remove(math.nan)
    total.remove(1.7e308)
    assert total.total() == 1.7e308


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**200), st.integers(1, 2**80), st.integers(-600, 300))
def test_roots_are_rounded_once(numerator: int, denominator: int, exponent: int) -> None:
    found = root(numerator, denominator, exponent)
    exact = Fraction(numerator, denominator) * Fraction(2) ** (2 * exponent)
    if math.isinf(found) or (numerator and abs(found) < 1e-300):
        return
    below, above = (Fraction(math.nextafter(found, way)) for way in (-math.inf, math.inf))
    low, high = (below + Fraction(found)) / 2, (above + Fraction(found)) / 2
    assert max(low, 0) ** 2 <= exact <= high**2


def test_deviations_do_not_lose_small_differences_of_large_numbers() -> None:
    deviation = AGGREGATES["stdevp"]()
    for value in (1e15, 1e15 + 1, 1e15 + 2, 3e200):
        deviation.add(value, ())
    deviation.remove(3e200, ())
    assert deviation.result() == math.sqrt(2 / 3)


@pytest.mark.parametrize(
    ("name", "culprit", "others", "healed"),
    [
        ("sparql:sum", None, ["1^^integer", "2^^integer"], "3^^integer"),
        ("sparql:avg", "a", ["1^^integer", "2^^integer"], "1.5^^decimal"),
        ("sparql:max", None, ["1^^integer", "2^^integer"], "2^^integer"),
        ("sparql:group_concat", None, ["x", "y"], "x y"),
        ("sparql:sum", "1^^double", ["1^^integer", "2^^integer"], "3^^integer"),
        ("sparql:sum", "1^^double", ["1^^float", "2^^integer"], "3^^float"),
    ],
)
def test_without_its_culprit_a_group_is_well_again(
    name: str, culprit: str | None, others: list[str], healed: str
) -> None:
    accumulator = TERM_AGGREGATES[name]()
    bad = None if culprit is None else term(culprit)
    accumulator.add(bad, ())
    for one in others:
        accumulator.add(term(one), ())
    sick = accumulator.result()
    accumulator.remove(bad, ())
    assert accumulator.result() == term(healed) != sick


def test_durations_and_numbers_may_follow_but_not_meet_each_other() -> None:
    total = AGGREGATES["sum"]()
    total.add(Duration(days=1), ())
    total.add(1, ())
    with pytest.raises(EvaluationError, match="numbers and durations together"):
        total.result()
    total.remove(Duration(days=1), ())
    total.add(1.5, ())
    assert total.result() == 2.5
    total.add(Duration(days=2), ())
    total.remove(1.5, ())
    total.remove(1, ())
    assert total.result() == Duration(days=2)


def test_a_sum_of_durations_may_pass_what_a_duration_holds() -> None:
    total = AGGREGATES["sum"]()
    most = Duration(months=2**63 - 1)
    total.add(most, ())
    total.add(Duration(months=1), ())
    with pytest.raises(EvaluationError):
        total.result()
    total.add(Duration(months=-1), ())
    assert total.result() == most


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [("min", (2.0, 2), 2), ("max", (2.0, 2), 2), ("max", (-0.0, 0.0), 0.0), ("min", ([1.0], [1]), [1])],
)
def test_extremes_of_equals_do_not_depend_on_who_came_first(
    name: str, values: tuple[Value, ...], expected: Value
) -> None:
    for order in (values, values[::-1]):
        for asked_before in (False, True):
            accumulator = AGGREGATES[name]()
            for value in order:
                accumulator.add(value, ())
                if asked_before:
                    accumulator.result()
            assert exact_key(accumulator.result()) == exact_key(expected)


def test_the_next_look_of_a_value_takes_the_place_of_one_that_leaves() -> None:
    looks = sorted(({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}), key=canonical_key)
    least = DistinctValues(AGGREGATES["min"]())
    for look in (looks[2], looks[0], looks[1]):
        least.add(look, ())
    for look in looks:
        assert exact_key(least.result()) == exact_key(look)
        least.remove(look, ())
    assert least.result() is None


def test_the_algebra_knows_which_aggregates_depend_on_order() -> None:
    for name, make in {**AGGREGATES, **TERM_AGGREGATES}.items():
        call = AggregateCall(name, (Variable("x"),))
        assert depends_on_order(call) == make().ordered == Aggregation(call).ordered
