"""Values and evaluations are bounded: nothing that a text can say exhausts memory or runs for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anabranch import EvaluationOptions, Session, evaluate
from anabranch.engine.evaluation_options import Force
from anabranch.errors import Cancelled, EvaluationError
from anabranch.snapshot import limits
from anabranch.snapshot.context import Context, SkippedRows


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MAX_TEXT", 1_000), ("MAX_ITEMS", 1_000), ("MAX_NESTED", 1_000)):
        monkeypatch.setattr(limits, name, most)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "expression",
    [
        "reduce(s = 'xx', x IN range(1, 40) | s + s)",
        "reduce(s = [1], x IN range(1, 40) | s + s)",
        "reduce(s = [1], x IN range(1, 40) | [s, s])",
        "reduce(s = {a: 1}, x IN range(1, 40) | {a: s, b: s})",
        "reduce(s = [1], x IN range(1, 40) | s + [s])",
        "reduce(s = [1], x IN range(1, 101) | [s])",
        "[a IN range(1, 30) | [b IN range(1, 30) | [c IN range(1, 30) | 1]]]",
        "replace(replace('aaaaaaaaaa', 'a', 'aaaaaaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaa')",
        f"replace('aaaaaaaaaa', '', '{'a' * 99}')",
    ],
)
def test_a_value_that_would_be_too_large_is_refused_at_its_place(expression: str) -> None:
    with pytest.raises(EvaluationError, match="SER-313") as caught:
        evaluate(f"RETURN {expression} AS x", [])
    assert caught.value.diagnostic.span is not None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("call", ["CONCAT(?a, ?a, ?a)", "REPLACE(?a, 'a', 'aaa')", "REPLACE(?a, '(a)', '$1$1$1')"])
def test_a_term_that_would_be_too_large_is_refused_at_its_place(call: str) -> None:
    with pytest.raises(EvaluationError, match="SER-313") as caught:
        evaluate(f"SELECT ?b {{ BIND('{'a' * 400}' AS ?a) BIND({call} AS ?b) }}", [])
    assert caught.value.diagnostic.span is not None


@pytest.mark.usefixtures("small")
def test_a_concatenation_of_a_group_that_would_be_too_long_is_refused() -> None:
    values = " ".join(f"'{'a' * 400}{number}'" for number in range(3))
    with pytest.raises(EvaluationError, match="SER-313"):
        evaluate(f"SELECT (GROUP_CONCAT(?a) AS ?b) {{ VALUES ?a {{ {values} }} }}", [])


@pytest.mark.parametrize(
    "expression",
    [
        "size([a IN range(1, 300) WHERE any(b IN range(1, 300) WHERE b = a)])",
        "[a IN range(1, 300) | size(range(1, 300))]",
        "reduce(s = 0, a IN range(1, 300) | s + reduce(t = 0, b IN range(1, 300) | t + b))",
    ],
)
def test_steps_of_lists_are_counted_and_the_query_that_needs_too_many_stops_alone(expression: str) -> None:
    session = Session.local(["s"], evaluation=EvaluationOptions(max_steps=20_000))
    heavy = session.register(
        f"REGISTER QUERY heavy STARTING AT 1970-01-01T00:00Z {{ MATCH (n) WITHIN PT1M EMIT n.x + {expression} AS x "
        "SNAPSHOT EVERY PT1M }"
    )
    light = session.register(
        "REGISTER QUERY light STARTING AT 1970-01-01T00:00Z { MATCH (n) WITHIN PT1M EMIT n.x AS x SNAPSHOT EVERY PT1M }"
    )
    session.push("s", [{"at": 1_000, "nodes": [{"id": 1, "properties": {"x": 1}}]}, {"at": 90_000, "nodes": []}])
    [(name, failure)] = session.failures()
    assert (name, failure.diagnostics[0].code) == ("heavy", "SER-306")
    assert failure.diagnostics[0].span is not None
    assert (heavy.done, [answer.rows for answer in light.poll()]) == (True, [[(1,)]])


def test_a_long_evaluation_asks_whether_it_is_still_wanted() -> None:
    asked = []

    def check() -> None:
        asked.append(True)
        if len(asked) > 3:
            raise Cancelled("enough")

    context = Context(graph=lambda source: pytest.fail("no graph"), check=check)
    spend: Callable[[int], None] = context.spend

    def work() -> None:
        for _ in range(1_000):
            spend(10_000)

    with pytest.raises(Cancelled):
        work()
    assert 3 * 65_536 < context.steps < 5 * 75_536


def test_what_is_about_more_than_a_row_is_never_skipped() -> None:
    skipped = SkippedRows()
    context = Context(graph=lambda source: pytest.fail("no graph"), max_steps=10, skipped=skipped)
    with pytest.raises(EvaluationError, match="SER-306"):
        context.spend(11)
    context.skip(EvaluationError("SER-304", "one"))
    context.skip(EvaluationError("SER-304", "two"))
    assert (skipped.count, str(skipped.first), str(skipped.last)) == (2, "error[SER-304]: one", "error[SER-304]: two")


@pytest.mark.parametrize("force", ["auto", "recompute"])
def test_more_rows_than_there_is_room_for_are_refused_before_they_are_made(
    force: Force, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.snapshot.context.MAX_HELD", 10_000_000)
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force, max_steps=10**12))
    session.register(
        "REGISTER QUERY product STARTING AT 1970-01-01T00:00Z { MATCH (n) WITHIN PT1M UNWIND range(1, 9000) AS x "
        "UNWIND range(1, 9000) AS y EMIT n, x, y SNAPSHOT EVERY PT1M }"
    )
    session.push("s", [{"at": 1_000, "nodes": [{"id": 1}]}, {"at": 90_000, "nodes": []}])
    [(_, failure)] = session.failures()
    assert failure.diagnostics[0].code == "SER-306"
    assert "rows over this window" in failure.diagnostics[0].message
