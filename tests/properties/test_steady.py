"""Instants that are taken many at once give the answers of single steps."""

from __future__ import annotations

import random

import pytest

from anabranch import Session
from anabranch.engine import query as query_module
from anabranch.engine import steady

PATTERNS = (
    "?a <urn:p> ?b . ?b <urn:q> ?c",
    "?a <urn:p> ?b",
    "?a <urn:p> ?b . ?a <urn:q> ?c FILTER (?b != ?c)",
    "?a <urn:p> ?v . ?a <urn:q> ?w FILTER (?v < ?w)",
)


def _events(draw: random.Random) -> list[dict[str, object]]:
    """Draw events of one to three triples, with gaps and several events at an instant."""
    at, found = 1_000, []
    for _ in range(draw.randint(20, 120)):
        at += draw.choice((0, 1, 1, 2, 5, 40, 400))
        triples = []
        for _ in range(draw.randint(1, 3)):
            subject, predicate = f"<urn:n{draw.randrange(5)}>", draw.choice(("<urn:p>", "<urn:q>", "<urn:r>"))
            target = draw.choice((f"<urn:n{draw.randrange(5)}>", str(draw.randrange(4))))
            triples.append(f"{subject} {predicate} {target} .")
        found.append({"at": at, "turtle": " ".join(triples)})
    return found


def _answers(text: str, events: list[dict[str, object]], cuts: list[int]) -> list[dict[str, object]]:
    session = Session.local(lateness="PT0.005S")
    query = session.register(text, file_name="q.rspql")
    found = []
    for first, stop in zip([0, *cuts], [*cuts, len(events)], strict=True):
        if first < stop:
            session.push("urn:s", events[first:stop])
            found += [answer.to_dict() for answer in query.poll()]
    session.finish(drain=True)
    return found + [answer.to_dict() for answer in query.poll()]


@pytest.mark.parametrize("seed", range(60))
def test_many_instants_at_once_answer_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    output, pattern = draw.choice(("ISTREAM", "DSTREAM")), draw.choice(PATTERNS)
    width = draw.choice((7, 50, 300))
    step = draw.choice([step for step in (1, 3, 20, 100) if 2 * step < width])  # else all of the window is evaluated
    text = (
        f"REGISTER {output} <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> "
        f"[RANGE PT{width / 1000}S STEP PT{step / 1000}S] WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    )
    events = _events(draw)
    cuts = sorted(draw.choices(range(len(events) + 1), k=draw.choice((0, 1, 10))))
    ahead: list[int] = []

    def counted(query: object, around: object, last: int) -> int:
        ahead.append(steady.run_ahead(query, around, last))  # type: ignore[arg-type]
        return ahead[-1]

    monkeypatch.setattr(query_module, "run_ahead", counted)
    at_once = _answers(text, events, cuts)
    assert sum(ahead) > 0, "no instants were taken at once"
    monkeypatch.setattr(query_module, "steady_window", lambda *_: None)
    assert at_once == _answers(text, events, cuts)
