"""A query with more trails than can be kept goes on without them, and nobody who reads its answers sees it."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.query import ContinuousQuery
from anabranch.model.event import Event
from anabranch.model.values import Relationship
from anabranch.planner.leaves import walks
from anabranch.syntax import seraph

SECOND = 1_000_000
FEW = 50


def events() -> list[Event]:
    """A few relationships each second; between the fifth and the tenth a crowd."""
    found = []
    for second in range(20):
        size = 4 if 5 <= second < 10 else 2
        ends = [(one, (one + 1 + second % 3) % 5) for one in range(size)]
        found.append(
            Event(
                second * SECOND,
                (),
                tuple(Relationship(10 * second + at, "T", *pair, {"x": second}) for at, pair in enumerate(ends)),
            )
        )
    return found


def run(body: str, evaluation: EvaluationOptions, feed: list[Event]) -> tuple[ContinuousQuery, list[Any]]:
    text = f"REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {{ MATCH {body} EVERY PT1S }}"
    (registration,) = seraph.registrations(text)
    engine = Engine(evaluation=evaluation)
    engine.register(registration)
    engine.push("s", feed)
    engine.finish()
    return engine.query("q"), [(answer.at, answer.rows) for answer in engine.take()]


def reasons(query: ContinuousQuery) -> set[str]:
    """Why parts of a query's plan run anew."""
    planned = query.run.plans._planned
    assert planned is not None
    return {mode.detail for mode in planned.modes.values() if mode.execution == "recompute" and mode.detail}


@pytest.mark.parametrize("output", ["SNAPSHOT", "ON ENTERING", "ON EXIT"])
@pytest.mark.parametrize(
    "body",
    [
        "(a)-[r*1..3]->(b) WITHIN PT4S EMIT id(a) AS a, id(b) AS b, [e IN r | e.x] AS x",
        "p = (a)-[*1..3]->(b) WITHIN PT4S WITH a, max(length(p)) AS longest EMIT id(a) AS a, longest",
    ],
)
def test_answers_stay_the_same_when_trails_become_too_many(
    body: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"{body} {output}"
    _, expected = run(body, EvaluationOptions(force="recompute"), events())
    query, told = run(body, EvaluationOptions(), events())
    assert told == expected
    assert not reasons(query)
    monkeypatch.setattr(walks, "MOST_WALKS", FEW)
    query, told = run(body, EvaluationOptions(), events())
    assert told == expected
    assert any("too many of them to be kept" in reason for reason in reasons(query))
    query, _ = run(body, EvaluationOptions(), events()[:5])
    assert not reasons(query), "as long as there are few, they are kept"
