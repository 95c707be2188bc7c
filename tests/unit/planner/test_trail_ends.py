"""The ends of trails, kept up to date, are those that a search of the plain evaluator finds, until all has left."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship
from anabranch.planner.leaves import trail_ends
from anabranch.planner.leaves.matches import ElementMatch

SECOND = 1_000_000
PATTERNS = [
    "(a:P)-[:X*]->(b)", "(a)-[:X*]->(b:Q)", "(a:P)<-[*]-(b:Q)", "(a)-[*0..]->(b)", "(a:P)-[*..2]->(b)",
    "(a:P)-[*]->(a)", "(a:P)-[:X*]-(b:Q)", "(a)-[*0..]-(b:Q)", "(a)-[*]-(b)", "(a)-[*]-(a:P)",
]  # fmt: skip


def drawn(seed: int, count: int = 40) -> list[Event]:
    random = Random(seed)
    found = []
    for at in range(count):
        ends = random.randrange(7), random.randrange(7)
        nodes = tuple(
            Node(one, tuple(sorted(random.sample("PQ", random.randint(0, 2))))) for one in dict.fromkeys(ends)
        )
        kind = random.choice("XXY")
        name = f"{ends[0]}{kind}{ends[1]}{random.choice('st')}"
        found.append(Event(at * SECOND, nodes, (Relationship(name, kind, *ends),)))
    return found


def query(pattern: str) -> str:
    shown = "id(a) AS a" if "(b" not in pattern else "id(a) AS a, id(b) AS b"
    return f"""REGISTER QUERY q STARTING AT '1970-01-01T00:00:00Z'
    {{ MATCH {pattern} WITHIN PT9S EMIT DISTINCT {shown} SNAPSHOT EVERY PT2S }}"""


class Run:
    def __init__(self, pattern: str, evaluation: EvaluationOptions, rules: str = "all") -> None:
        self.session = Session.local(evaluation=evaluation, rules=rules)
        self.query = self.session.register(query(pattern))

    def told(self, events: list[Event], at_once: bool = False) -> list[object]:
        for some in [events] if at_once else [[event] for event in events]:
            self.session.push("s", some)
        self.session.finish(drain=True)
        return [answer.to_dict() for answer in self.query.poll()]

    def match(self) -> ElementMatch:
        flow = self.session._engine.query("q").run.flow
        assert flow is not None
        (found,) = (step.part for step in flow.maintained.flow._steps if isinstance(step.part, ElementMatch))
        return found


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_are_those_of_the_plain_query(pattern: str, seed: int) -> None:
    plain = Run(pattern, EvaluationOptions(force="recompute"), rules="none").told(drawn(seed))
    assert any(answer["rows"] for answer in plain)  # type: ignore[index]
    assert Run(pattern, EvaluationOptions()).told(drawn(seed), at_once=seed == 0) == plain


@pytest.mark.parametrize("pattern", PATTERNS)
def test_nothing_is_kept_of_what_has_left(pattern: str) -> None:
    run = Run(pattern, EvaluationOptions())
    run.told(drawn(7))
    match = run.match()
    assert match.size().rows == 0
    assert len(match._facts) == 0


@pytest.mark.parametrize("pattern", PATTERNS[:3])
def test_trees_with_many_idle_loops_are_made_anew_and_nobody_sees_it(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Run(pattern, EvaluationOptions(force="recompute"), rules="none").told(drawn(9))
    monkeypatch.setattr(trail_ends, "_SPARE_LOOPS", 0)
    assert Run(pattern, EvaluationOptions()).told(drawn(9)) == plain


@pytest.mark.parametrize("pattern", [PATTERNS[0], PATTERNS[8]])
def test_more_ends_than_can_be_kept_are_searched_for_anew(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Run(pattern, EvaluationOptions(force="recompute"), rules="none").told(drawn(4))
    monkeypatch.setattr(trail_ends, "MOST_PAIRS", 5)
    assert Run(pattern, EvaluationOptions()).told(drawn(4)) == plain
