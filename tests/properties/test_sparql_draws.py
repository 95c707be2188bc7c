"""Random continuous SPARQL queries answer, at every instant, what pyoxigraph says of the window; rules change nothing."""

from __future__ import annotations

import os
from random import Random

import pytest

from anabranch.engine.session import Session
from anabranch.model.triples import TripleGraph
from anabranch.testing.sparql_draws import Draw, disagreement, draw

JUDGED = int(os.environ.get("ANABRANCH_DRAWS", "1000")) * 2 // 5
WITH_RULES = JUDGED * 3 // 8
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_continuous_answers_are_those_of_pyoxigraph_over_the_window(shard: int) -> None:
    for number in range(shard, JUDGED, SHARDS):
        problem = disagreement(draw(Random(f"ci/{number}")))
        assert problem is None, f"draw {number}: {problem}"


def told(one: Draw, rules: str) -> list[tuple[int, list[str]]]:
    """The answers with their rows in whatever order, which SPARQL leaves open and rules may change."""
    session = Session.local(list(one.streams), windows=one.policy, rules=rules)  # type: ignore[arg-type]
    if one.static:
        session.graph("default", TripleGraph(one.static))
    query = session.register(one.text)
    for name, events in one.streams.items():
        session.push(name, events)
    session.finish()
    return [(int(answer.at), sorted(map(repr, answer.rows))) for answer in query.poll()]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_answers_are_the_same_with_all_rules_and_with_none(shard: int) -> None:
    rows = 0
    for number in range(shard, WITH_RULES, SHARDS):
        one = draw(Random(f"ci/{number}"))
        plain = told(one, "none")
        assert told(one, "all") == plain, f"draw {number}:\n{one.text}"
        rows += sum(len(found) for _, found in plain)
    assert rows > 0
