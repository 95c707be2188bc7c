"""The law of the optimizer: over drawn plans and data, every rule alone and all of them together keep the rows."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.algebra.walk import windows
from anabranch.optimizer import RULES, Rule, optimize
from anabranch.optimizer.find_trails_once import find_trails_once
from anabranch.optimizer.push_into_trails import push_into_trails
from anabranch.optimizer.read_ends_from_rows import read_ends_from_rows

from .drawn import draw_data, draw_plan
from .plans import knowing, rows

SEEDS = st.integers(0, 2**48)


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_a_rule_alone_keeps_the_rows(rule: Rule) -> None:
    @settings(max_examples=60, deadline=None)
    @given(SEEDS)
    def holds(seed: int) -> None:
        random = Random(seed)
        plan, data = draw_plan(random), draw_data(random)
        optimized = optimize(plan, knowing(data), (rule,))
        assert optimized.plan.columns == plan.columns
        assert rows(optimized.plan, data) == rows(plan, data)

    holds()


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_all_rules_together_keep_the_rows(seed: int) -> None:
    random = Random(seed)
    plan, data = draw_plan(random), draw_data(random)
    optimized = optimize(plan, knowing(data))
    assert optimized.plan.columns == plan.columns
    assert rows(optimized.plan, data) == rows(plan, data)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_static_parts_stay_right_whatever_the_streams_bring_later(seed: int) -> None:
    random = Random(seed)
    plan, data = draw_plan(random), draw_data(random)
    optimized = optimize(plan, knowing(data))
    later = {**draw_data(random), "known": data["known"]}
    assert rows(optimized.plan, later) == rows(plan, later)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_a_plan_may_go_through_the_rules_twice(seed: int) -> None:
    random = Random(seed)
    plan, data = draw_plan(random), draw_data(random)
    once = optimize(plan, knowing(data)).plan
    assert rows(optimize(once, knowing(data)).plan, data) == rows(plan, data)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_what_windows_keep_does_not_depend_on_what_is_known(seed: int) -> None:
    random = Random(seed)
    plan, data = draw_plan(random), draw_data(random)
    assert set(windows(optimize(plan, knowing(data)).plan)) == set(windows(optimize(plan).plan))


def test_drawn_plans_give_every_rule_something_to_do() -> None:
    fired: set[str] = set()
    with_rows = 0
    for seed in range(200):
        random = Random(seed)
        plan, data = draw_plan(random), draw_data(random)
        fired |= {one.rule for one in optimize(plan, knowing(data)).fired if one.changed}
        with_rows += bool(rows(plan, data))
    of_triples = [rule for rule in RULES if rule not in (find_trails_once, push_into_trails, read_ends_from_rows)]
    assert fired == {rule.__name__ for rule in of_triples}
    assert with_rows > 80
