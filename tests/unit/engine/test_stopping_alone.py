"""Whatever breaks in the evaluation of one query is said of that query, and the others go on."""

from __future__ import annotations

import pytest

from anabranch import EvaluationOptions, Session
from anabranch.engine.evaluation_options import Force
from anabranch.errors import Cancelled
from anabranch.planner.flow.runtime import _Remembered
from anabranch.snapshot.evaluate import CompiledPlan

EVENTS = [
    {"at": 1_000 + 60_000 * minute, "nodes": [{"id": minute, "properties": {"x": minute}}]} for minute in range(4)
]


def _text(name: str, emit: str) -> str:
    matched = f"MATCH (n) WITHIN PT1M EMIT {emit} AS x SNAPSHOT EVERY PT1M"
    return f"REGISTER QUERY {name} STARTING AT 1970-01-01T00:01Z {{ {matched} }}"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), "SER-311", "the memory ran out in "),
        (KeyError("lost"), "SER-312", "KeyError: 'lost', in test_stopping_alone line "),
        (RecursionError("too deep"), "SER-312", "RecursionError: too deep"),
    ],
)
@pytest.mark.parametrize("force", ["auto", "recompute"])
def test_what_breaks_one_query_is_said_of_it_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, said: str, force: Force
) -> None:
    values, run = _Remembered._computed, CompiledPlan.run

    def broken(self: _Remembered, key: tuple[int, ...]) -> int:
        if len(self._runtime.parameters) and 1 in map(self._runtime.dictionary.decode, key):
            raise error
        return values(self, key)

    def broken_run(self: CompiledPlan, context: object, argument: tuple[object, ...] = ()) -> object:
        if context.clock == 120_000_000 and context.parameters:  # type: ignore[attr-defined]
            raise error
        return run(self, context, argument)  # type: ignore[arg-type]

    monkeypatch.setattr(_Remembered, "_computed", broken)
    monkeypatch.setattr(CompiledPlan, "run", broken_run)
    session = Session.local(["s"], evaluation=EvaluationOptions(force=force))
    broken_query = session.register(_text("broken", "n.x + $more"), parameters={"more": 1})
    other = session.register(_text("other", "n.x + 1"))
    session.push("s", EVENTS)
    [(name, failure)] = session.failures()
    assert (name, failure.diagnostics[0].code) == ("broken", code)
    assert (
        failure.diagnostics[0].message.partition("inside Anabranch: ")[2 if code == "SER-312" else 0].startswith(said)
    )
    assert [answer.rows for answer in broken_query.poll()] == [[(1,)]]
    assert [answer.rows for answer in other.poll()] == [[(1,)], [(2,)], [(3,)]]


def test_a_session_whose_evaluation_is_cancelled_says_so() -> None:
    session = Session.local(["s"])
    session.register(_text("q", "n.x"))

    def check() -> None:
        raise Cancelled("not wanted any more")

    session._engine.ask_before_each(check)
    with pytest.raises(Cancelled):
        session.push("s", EVENTS)
