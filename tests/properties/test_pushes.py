"""The same events, pushed one by one, in pieces or at once, in whatever form, have the same answers, and those are the
plain evaluator's. So are late events, instants, and the answers after a restart half-way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from anabranch import Session
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.intake import PushResult
from anabranch.formats.events import event_from_dict, event_to_dict

DRAWS = int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 20
STREAM = "urn:s"
Record = dict[str, Any]
Cut = Callable[[Random, list[Record]], Iterator[list[Record]]]
Push = Callable[[Session, list[Record]], PushResult]

PATTERNS = (
    "?a <urn:p> ?b . ?b <urn:q> ?c",
    "?a <urn:p> ?b . ?a <urn:q> ?c . ?a <urn:r> ?d",
    "?a <urn:p> ?v . ?a <urn:q> ?w FILTER (?v < ?w)",
    "?a ?p ?b . ?b ?q ?a",
    "?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c }",
)
BODIES = (
    "MATCH (a:A)-[r:R]->(b) WITHIN {w} WHERE r.x > 0 EMIT a.x AS x, b.y AS y, r.x AS z",
    "MATCH (a)-[r]->(b) WITHIN {w} WHERE a.x > 0 AND b.x = 1 AND r.x < 2 EMIT id(a) AS a, id(b) AS b, r.y AS y",
    "MATCH (a:A)-[r:R]->(b) WITHIN {w} WITH a.x AS x, count(*) AS n, sum(r.x) AS s EMIT x, n, s",
    "MATCH (a)-[r]->(b)-[s]->(c) WITHIN {w} EMIT a.x AS x, c.y AS y ORDER BY x, y LIMIT 3",
    "MATCH (n:B) WITHIN {w} WHERE n.x IS NULL EMIT id(n) AS n, n.y AS y",
)


def instants(draw: Random) -> list[int]:
    """Draw times with gaps, several at an instant, and some that go back."""
    at, found = 1_000, []
    for _ in range(draw.randint(10, 70)):
        at += draw.choice((0, 1, 1, 1, 2, 5, 40, 300))
        found.append(at - draw.choice((0, 0, 0, 0, 2, 30)))
    return found


def triples(draw: Random) -> list[Record]:
    names = [f"<urn:n{number}>" for number in range(4)]
    objects = [*names, "_:b", *(f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in range(3))]
    predicates = ("<urn:p>", "<urn:q>", "<urn:r>")
    return [
        {"at": at, "triples": [[draw.choice([*names, "_:b"]), draw.choice(predicates), draw.choice(objects)]]}
        for at in instants(draw)
    ]


def elements(draw: Random) -> list[Record]:
    def properties() -> Record:
        return {key: draw.choice((0, 1, 2, 1.5, "t", None, [1])) for key in draw.sample(["x", "y"], draw.randint(0, 2))}

    def event(at: int) -> Record:
        nodes = [
            {"id": name, "labels": draw.sample(["A", "B"], draw.randint(0, 2)), "properties": properties()}
            for name in draw.sample([1, 2, "1", "n"], draw.randint(0, 2))
        ]
        ends = [draw.choice([1, 2, "1", "n", "far"]) for _ in range(2)]
        named = {} if draw.random() < 0.3 else {"id": draw.choice(["r", "s", 7])}
        link = {**named, "type": draw.choice("RS"), "from": ends[0], "to": ends[1], "properties": properties()}
        return {"at": at, "nodes": nodes, "relationships": [link] if draw.random() < 0.8 else []}

    return [event(at) for at in instants(draw)]


# --- cuts and forms ---------------------------------------------------------------------------------------------------


def one_by_one(draw: Random, events: list[Record]) -> Iterator[list[Record]]:
    yield from ([event] for event in events)


def in_pieces(draw: Random, events: list[Record]) -> Iterator[list[Record]]:
    while events:
        size = draw.choice((1, 1, 2, 7, 20, 70))
        yield events[:size]
        events = events[size:]


def at_once(draw: Random, events: list[Record]) -> Iterator[list[Record]]:
    yield events


def as_objects(session: Session, events: list[Record]) -> PushResult:
    return session.push(STREAM, events[0] if len(events) == 1 else events)


def as_events(session: Session, events: list[Record]) -> PushResult:
    read = [event_from_dict(event) for event in events]
    return session.push(STREAM, read[0] if len(read) == 1 else read)


def as_table(session: Session, events: list[Record]) -> PushResult:
    rows = [event["triples"][0] for event in events]
    columns = {name: [row[place] for row in rows] for place, name in enumerate("spo")}
    times = pa.array([event["at"] for event in events], pa.timestamp("ms"))
    return session.push_table(STREAM, pa.table({**columns, "at": times}), document="d")


@dataclass
class Seen:
    """All that a program sees of a session."""

    answers: list[Record] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)
    accepted: int = 0
    instants: int = 0
    counts: dict[str, int] = field(default_factory=dict)


def seen_of(
    text: str, file_name: str, pushes: Iterator[list[Record]], push: Push, stop: int | None = None, force: Any = "auto"
) -> Seen:
    """Push, poll after each push, and go through a checkpoint after `stop` pushes."""
    session = Session.local(lateness="PT0.005S", evaluation=EvaluationOptions(force=force))
    query = session.register(text, file_name=file_name)
    seen = Seen()
    for number, events in enumerate(pushes):
        if number == stop:
            session = Session.restore(session.checkpoint())
            query = session.query(query.name)
        result = push(session, events)
        seen.accepted += result.accepted
        seen.late += map(event_to_dict, result.late)
        seen.answers += [answer.to_dict() for answer in query.poll()]
    session.finish(drain=True)
    seen.answers += [answer.to_dict() for answer in query.poll()]
    seen.instants, seen.counts = query.instants, session.late
    return seen


def compare(draw: Random, text: str, file_name: str, events: list[Record], forms: tuple[Push, ...]) -> Seen:
    """Compare all cuts in all forms with the plain evaluator; return what was seen."""
    for push in forms:
        plain = seen_of(text, file_name, at_once(draw, events), push, force="recompute")
        cuts: tuple[Cut, ...] = (one_by_one, in_pieces, at_once)
        for cut in cuts:
            assert seen_of(text, file_name, cut(draw, events), push) == plain, (push.__name__, cut.__name__)
        half = len(events) // 2
        assert seen_of(text, file_name, one_by_one(draw, events), push, half).answers == plain.answers
    return plain


@pytest.mark.parametrize("seed", range(DRAWS))
def test_triples_pushed_singly_in_pieces_and_at_once_have_the_plain_answers(seed: int) -> None:
    draw = Random(seed)
    output, pattern = draw.choice(("ISTREAM", "DSTREAM", "RSTREAM")), draw.choice(PATTERNS)
    width, step = draw.choice((7, 50, 300)), draw.choice((1, 1, 3, 20))
    window = draw.choice((f"RANGE PT{width / 1000}S STEP PT{step / 1000}S", f"TRIPLES {width % 40 + 1}"))
    text = (
        f"REGISTER {output} <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <{STREAM}> [{window}] "
        f"WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    )
    compare(draw, text, "q.rspql", triples(draw), (as_objects, as_events, as_table))


@pytest.mark.parametrize("seed", range(DRAWS))
def test_elements_pushed_singly_in_pieces_and_at_once_have_the_plain_answers(seed: int) -> None:
    draw = Random(seed)
    body, output = draw.choice(BODIES), draw.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
    width, step = draw.choice((7, 50, 300)), draw.choice((1, 1, 3, 20))
    body = body.replace("{w}", f"PT{width / 1000}S")
    text = f"REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {{ {body} {output} EVERY PT{step / 1000}S }}"
    compare(draw, text, "q.seraph", elements(draw), (as_objects, as_events))


def test_draws_have_answers_and_late_events() -> None:
    text = (
        f"REGISTER ISTREAM <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT0.3S STEP PT0.001S] "
        "WHERE { WINDOW <urn:w> { ?a ?p ?b } }"
    )
    seen = compare(Random(0), text, "q.rspql", triples(Random(0)), (as_objects, as_table))
    assert seen.answers
    assert seen.late
    assert seen.counts == {STREAM: len(seen.late)}
