"""Events that go in by blocks have the effect that they have one by one: answers, late events, counts and ids."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from tests.support.graph_events import batch_block, graph_block, graph_event

from anabranch.engine.compiled import compile_queries, recompile
from anabranch.engine.engine import Engine, LatePolicy, PushResult
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.timing import AheadBound
from anabranch.formats.events import event_to_dict
from anabranch.formats.graph_lines import GraphLines
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock
from anabranch.model.temporal import parse_duration
from anabranch.syntax import languages

DRAWS = int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 10
FOUND = (1371,)  # draws that differed once
SECOND = 1_000_000
QUERIES = """
REGISTER QUERY ids STARTING AT 1970-01-01T00:00:05Z
{ MATCH (a)-[r:R]->(b) WITHIN PT20S EMIT id(r) AS r, a.x AS x, b.x AS y ON ENTERING EVERY PT5S }
REGISTER QUERY counts STARTING AT 1970-01-01T00:00:05Z
{ MATCH (n:N) WITHIN PT9S EMIT n.x AS x, count(*) AS n SNAPSHOT EVERY PT3S }
"""
Make = Callable[[Sequence[Event]], Sequence[Event]]


def lines_block(events: Sequence[Event]) -> EventBlock:
    block = GraphLines.of_dicts([event_to_dict(event) for event in events])
    assert block is not None
    return block


def arrow_block(events: Sequence[Event]) -> EventBlock:
    block = batch_block(events)
    assert block is not None
    return block


def new_engine(random: Random, policy: Any) -> Engine:
    lateness = random.choice((None, "PT4S", "PT15S"))
    ahead = random.choice((None, None, AheadBound(60 * SECOND, 60 * SECOND)))
    engine = Engine(fixed_streams=True, late=LatePolicy(policy))
    engine.declare_stream("s", None if lateness is None else parse_duration(lateness), None, ahead)
    engine.register_all(compile_queries([languages.script(QUERIES)], QueryOptions()))
    return engine


def pushes_of(random: Random) -> list[tuple[str, list[Event]]]:
    """Pushes of several splits: in order, out of order, late, and some far ahead."""
    splits = random.choice((("",), ("0", "1")))
    found, clock = [], 0
    for _ in range(random.randint(3, 12)):
        count = random.choice((1, 3, 10, 80))
        times = [clock + random.randrange(min(count, 20) * 2) * SECOND // 2 for _ in range(count)]
        if random.random() < 0.6:
            times.sort()
        if random.random() < 0.3:
            times[random.randrange(count)] -= random.randrange(25) * SECOND
        if random.random() < 0.1:
            times[random.randrange(count)] += 300 * SECOND
        clock = max([clock, *(time for time in times if time < clock + 100 * SECOND)])
        found.append((random.choice(splits), [graph_event(random, max(0, time)) for time in times]))
    return found


def story(random: Random, policy: str, make: Make) -> list[Any]:
    """All that an engine says of drawn pushes, with a restart in between."""
    engine = new_engine(random, policy)
    pushes = pushes_of(random)
    names = sorted({split for split, _ in pushes})
    if names != [""]:
        engine.set_splits("s", names)
    told: list[Any] = []
    restart = random.randrange(len(pushes))
    for number, (split, events) in enumerate(pushes):
        told.append(_said(engine.push("s", make(events), split)))
        told += map(repr, engine.take(engine.frontier))
        stream = engine.stream("s")
        told.append((stream.sequences, stream.late, stream.corrected, stream.jumps, stream.in_doubt, len(stream)))
        if number == restart:
            state = engine.state()
            told.append(state)
            engine = Engine.from_state(state, recompile)
    told += [_said(one) for one in engine.settle_doubts("s", is_over=True).values()]
    engine.close_stream("s")
    engine.finish()
    told += map(repr, engine.take())
    assert engine.failures() == []
    return told


def _said(pushed: PushResult) -> tuple[Any, ...]:
    return (pushed.accepted, pushed.late, pushed.corrected, pushed.late_places, pushed.ahead, pushed.taken)


@pytest.mark.parametrize("make", [graph_block, lines_block, arrow_block])
@pytest.mark.parametrize("policy", ["drop", "correct"])
def test_events_go_in_by_blocks_as_they_do_one_by_one(policy: str, make: Make) -> None:
    seen = {"answers": 0, "late": 0, "ids": 0}
    for number in (*range(DRAWS), *FOUND):
        expected = story(Random(f"blocks/{number}"), policy, list)
        assert story(Random(f"blocks/{number}"), policy, make) == expected, f"draw {number}"
        texts = [one for one in expected if isinstance(one, str)]
        seen["answers"] += len(texts)
        seen["ids"] += sum("~" in text for text in texts)
        seen["late"] += sum(bool(one[1] or one[2]) for one in expected if isinstance(one, tuple) and len(one) == 6)
    assert all(seen.values()), seen
