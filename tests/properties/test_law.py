"""Snapshot reducibility: at every instant the answer is what the plain query says about the window.

ANABRANCH_DRAWS sets how many draws are made (by default 1,000); every draw runs one event per push, all at once and
restarted after every event.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.draws import draw_case, draw_elements, draw_idioms, draw_trails, draw_unwound, permuted
from tests.support.seraph_printer import print_script

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.optimizer import optimize
from anabranch.optimizer.rules import GRAPH_RULES
from anabranch.syntax import languages
from anabranch.syntax.seraph.parser import parse_script
from anabranch.testing.cases import CaseFile, agreed, new_session

DRAWS = int(os.environ.get("ANABRANCH_DRAWS", "1000"))
SHARDS = 20
LARGE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_way_of_running_a_query_gives_what_the_law_says(shard: int) -> None:
    told = 0
    for number in range(shard, DRAWS, SHARDS):
        case = draw_case(Random(f"law/{number}"), number)
        told += sum(len(answers) for answers in agreed(case).values())
    assert told > 0 or DRAWS < 1000, "draws that never answer prove nothing"


@settings(max_examples=100, deadline=None, suppress_health_check=LARGE)
@given(st.randoms(use_true_random=False))
def test_the_law_holds_and_a_counterexample_would_be_shrunk(random: Random) -> None:
    agreed(draw_case(random))


@settings(max_examples=200, deadline=None, suppress_health_check=LARGE)
@given(st.randoms(use_true_random=False))
def test_a_random_query_survives_printing(random: Random) -> None:
    tree = parse_script(draw_case(random).query)
    assert parse_script(print_script(tree)) == tree


@settings(max_examples=60, deadline=None, suppress_health_check=LARGE)
@given(st.randoms(use_true_random=False), st.integers(min_value=0, max_value=12))
def test_a_restart_anywhere_changes_nothing(random: Random, stop: int) -> None:
    from anabranch.engine.session import Session

    case = draw_case(random)
    if len(case.streams) > 1:
        case = draw_case(Random(0))
    events = next(iter(case.streams.values()))
    name = next(iter(case.streams))

    def play(restarts: bool) -> list[str]:
        session = new_session(case)
        queries = [query.name for query in session.register_all(case.query, parameters=case.parameters)]
        session.push(name, events[:stop])
        if restarts:
            session = Session.restore(session.checkpoint())
        session.push(name, events[stop:])
        session.finish()
        return [repr(answer.to_dict()) for query in queries for answer in session.query(query).poll()]

    assert play(restarts=True) == play(restarts=False)


@pytest.mark.parametrize("rule", [rule.__name__ for rule in GRAPH_RULES])
def test_a_rule_alone_changes_no_answer(rule: str) -> None:
    fired = 0
    for number in range(250):
        draw = (draw_trails, draw_idioms, draw_case, draw_case, draw_case)[number % 5]
        case = draw(Random(f"rules/{number}"), number)
        plans = [one.plan for one in languages.registrations(case.query)]
        if not any(optimize(plan, rules=(one,)).fired for plan in plans for one in GRAPH_RULES if one.__name__ == rule):
            continue
        fired += 1
        assert told(case, rules=[rule]) == told(case, rules="none"), case.query
    assert fired, "draws on which a rule does nothing prove nothing"


def told(case: CaseFile, rules: str | list[str]) -> list[str]:
    session = new_session(case, rules)
    queries = session.register_all(case.query, parameters=case.parameters)
    for name, events in case.streams.items():
        session.push(name, events)
    session.finish()
    return [repr(answer.to_dict()) for query in queries for answer in query.poll()]


@settings(max_examples=150, deadline=None, suppress_health_check=LARGE)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_events_of_an_instant_come_changes_no_answer(random: Random) -> None:
    case = draw_unwound(random)
    assert told(case, "all") == told(permuted(case, random), "all")


def test_lists_that_are_unwound_are_kept_up_to_date_as_the_law_says() -> None:
    for number in range(60):
        case = draw_unwound(Random(f"unwound/{number}"), number)
        agreed(case)
        session = new_session(case, evaluation=EvaluationOptions(verify=1))
        queries = session.register_all(case.query)
        session.push("s", case.streams["s"])
        session.finish()
        assert [query.differing for query in queries] == [0, 0, 0], case.query
        assert all(query.verified for query in queries), "what is computed anew is verified too"


@pytest.mark.parametrize("shard", range(5))
def test_idioms_that_need_more_than_the_changed_rows_are_kept_up_to_date_as_the_law_says(shard: int) -> None:
    told = 0
    for number in range(shard, 300, 5):
        case = draw_idioms(Random(f"idioms/{number}"), number)
        told += sum(len(answers) for answers in agreed(case).values())
        session = new_session(case, evaluation=EvaluationOptions(verify=1, on_error="skip"))
        queries = session.register_all(case.query)
        session.push("s", case.streams["s"])
        session.finish(drain=True)
        assert not any(query.differing for query in queries), case.query
    assert told > 100


@pytest.mark.parametrize("shard", range(10))
def test_elements_that_are_shared_or_read_whole_are_matched_on_arrays_as_the_law_says(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anabranch.planner.leaves.array_matches import ArrayMatch
    from anabranch.planner.leaves.matches import ElementMatch

    made: list[object] = []
    begin = ArrayMatch.__init__
    monkeypatch.setattr(ArrayMatch, "__init__", lambda self, *rest: (made.append(self), begin(self, *rest))[1])
    monkeypatch.setattr(ElementMatch, "__init__", lambda self, *rest: pytest.fail("matched with objects"))
    told = 0
    for number in range(shard, 200, 10):
        case = draw_elements(Random(f"elements/{number}"), number)
        before = len(made)
        told += sum(len(answers) for answers in agreed(case).values())
        assert len(made) > before, case.query
        session = new_session(case, evaluation=EvaluationOptions(verify=1, on_error="skip"))
        queries = session.register_all(case.query)
        session.push("s", case.streams["s"])
        session.finish(drain=True)
        assert not any(query.differing for query in queries), case.query
    assert told > 20
