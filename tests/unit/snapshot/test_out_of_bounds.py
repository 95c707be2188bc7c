"""Where an evaluation runs out of memory or of steps, its operator is named and its place in the text shown."""

from __future__ import annotations

from itertools import permutations

import pytest

from anabranch import evaluate
from anabranch.errors import LimitExceeded
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Node, Relationship
from anabranch.snapshot import aggregates
from anabranch.snapshot.context import Context
from anabranch.snapshot.evaluate import compile_plan
from anabranch.syntax import languages

COMPLETE = PropertyGraph(
    [Node(number) for number in range(9)],
    [Relationship(f"{one}-{other}", "R", one, other) for one, other in permutations(range(9), 2)],
)


def _place(error: LimitExceeded, text: str) -> str:
    span = error.diagnostic.span
    assert span is not None
    return text[span.start : span.end]


def test_trails_without_a_bound_are_refused_at_their_place() -> None:
    text = "MATCH (a) MATCH p = (a)-[:R*]->(b) RETURN length(p) AS n, count(*) AS c"
    plan, _, _ = languages.plan(text)
    with pytest.raises(LimitExceeded, match="steps over this window") as raised:
        compile_plan(plan).run(Context(lambda source: COMPLETE, max_steps=100_000))
    assert _place(raised.value, text) == "MATCH p = (a)-[:R*]->(b)"


def test_the_operator_in_which_memory_ran_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise MemoryError

    monkeypatch.setattr(aggregates.Collect, "add", full)
    with pytest.raises(LimitExceeded, match="the memory ran out in Aggregate"):
        evaluate("MATCH (a) WHERE id(a) > 1 WITH collect(a) AS all RETURN size(all) AS n", COMPLETE)


def test_rows_that_do_not_fit_are_said_of_the_last_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Context, rows: int, width: int) -> None:
        raise MemoryError

    monkeypatch.setattr(Context, "hold", full)
    with pytest.raises(LimitExceeded, match="the memory ran out in Project"):
        evaluate("MATCH (a) RETURN id(a) AS n", COMPLETE)
