"""Random continuous SPARQL queries answer, at every instant, what pyoxigraph says of the window, whatever the rules and
whoever answers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable
from random import Random
from typing import Any

import pytest
from tests.support.sparql_draws import Draw, _value, disagreement, draw

from anabranch.engine.session import Session
from anabranch.model.triples import TripleGraph
from anabranch.syntax import languages

JUDGED = int(os.environ.get("ANABRANCH_DRAWS", "1000")) * 2 // 5
WITH_RULES = JUDGED * 3 // 8
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_continuous_answers_are_those_of_pyoxigraph_over_the_window(shard: int) -> None:
    for number in range(shard, JUDGED, SHARDS):
        problem = disagreement(draw(Random(f"ci/{number}")))
        assert problem is None, f"draw {number}: {problem}"


def told(one: Draw, **how: Any) -> list[tuple[int, Counter[Hashable]]]:
    """The answers with their rows in whatever order, which SPARQL leaves open and rules may change."""
    session = Session.local(list(one.streams), windows=one.policy, **how)  # type: ignore[arg-type]
    if one.static:
        session.graph("default", TripleGraph(one.static))
    query = session.register(one.text)
    for name, events in one.streams.items():
        session.push(name, events)
    session.finish()
    return [(int(answer.at), Counter(map(tuple, answer.rows))) for answer in query.poll()]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_answers_are_the_same_with_all_rules_and_with_none(shard: int) -> None:
    rows = 0
    for number in range(shard, WITH_RULES, SHARDS):
        one = draw(Random(f"ci/{number}"))
        plain = told(one, rules="none")
        assert told(one, rules="all") == plain, f"draw {number}:\n{one.text}"
        rows += sum(len(found) for _, found in plain)
    assert rows > 0


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_plug_in_answers_as_our_own_evaluator_does(shard: int) -> None:
    answered = 0
    for number in range(shard, WITH_RULES, SHARDS):
        one = draw(Random(f"plugin/{number}"))
        if languages.registrations(one.text)[0].delegated is None:
            continue  # GRAPH around a group that asks its graph nothing
        got, own = told(one, evaluator="plugin"), told(one)
        assert [(at, values(rows)) for at, rows in got] == [(at, values(rows)) for at, rows in own], one.text
        answered += 1
    assert answered > WITH_RULES // SHARDS * 0.9


def values(rows: Counter[Hashable]) -> Counter[Hashable]:
    """Numbers by value: both write an average as they like."""
    return Counter({tuple(map(_value, row)): count for row, count in rows.items()})  # type: ignore[call-overload]
