"""Producers that fall silent and send what they held back, in order: nothing is late, and the answers that hold in the
end are those of streams that were never silent, however the input is cut, and whatever the worker forgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cells import Worker, answers_of, control, job_of, packed
from tests.support.jobs import changed

from anabranch.engine.answers import row_key
from anabranch.engine.timing import IdlePolicy, StreamTiming
from anabranch.model.event import Event
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Node, Relationship
from anabranch.runner.job import Job
from anabranch.runner.rows import CellRow
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.testing.case_file import CaseFile

SECOND = 1_000_000
STREAMS = {"s": ["0", "1"], "t": [""]}
QUERIES = [
    "REGISTER QUERY counts STARTING AT 1970-01-01T00:00:03Z "
    "{ MATCH (a) WITHIN PT9S ON STREAM s EMIT count(a) AS n, max(a.v) AS m SNAPSHOT EVERY PT2S }",
    "REGISTER QUERY enter STARTING AT 1970-01-01T00:00:03Z "
    "{ MATCH (a)-[:R]->(b) WITHIN PT7S ON STREAM s EMIT a.v AS a, b.v AS b ON ENTERING EVERY PT3S }",
    "REGISTER QUERY exit STARTING AT 1970-01-01T00:00:01Z "
    "{ MATCH (a)-[:R]->(b) WITHIN PT5S ON STREAM t EMIT a.v AS a ON EXIT EVERY PT4S }",
    "REGISTER QUERY both STARTING AT 1970-01-01T00:00:02Z "
    "{ MATCH (a) WITHIN PT6S ON STREAM s MATCH (b) WITHIN PT3S ON STREAM t EMIT count(*) AS n SNAPSHOT EVERY PT2S }",
    "REGISTER QUERY once STARTING AT 1970-01-01T00:00:20Z { MATCH (a) WITHIN PT9S ON STREAM t RETURN count(a) AS n }",
]


def job(query: str, policy: str, lateness: str | None) -> Job:
    made = job_of(CaseFile(Path("q.case"), query=query, streams={name: [] for name in STREAMS}))
    streams = tuple(OpenedStream(GeneratorSource(name, "graph", {}), Decoding(name), "") for name in STREAMS)
    timing = StreamTiming(0, IdlePolicy.parse(policy))
    late_by = None if lateness is None else parse_duration(lateness)
    return changed(made, streams=streams, timing=timing, ordered=False, drain=True, lateness=late_by)


def drawn_events(random: Random) -> dict[tuple[str, str], list[Event]]:
    """For each split, events in order, with gaps now and then."""
    found = {}
    for stream, splits in STREAMS.items():
        for split in splits:
            at, events = random.randrange(3 * SECOND), []
            for number in range(random.randrange(1, 12)):
                at += random.choice([0, SECOND // 2, SECOND, 4 * SECOND, 15 * SECOND])
                nodes = tuple(Node(random.randrange(4), (), {"v": number}) for _ in range(2))
                nodes = tuple({node.id: node for node in nodes}.values())
                ends = (nodes[0].id, nodes[-1].id)
                events.append(Event(at, nodes, (Relationship(None, "R", *ends, {}),)))
            found[stream, split] = events
    return found


def in_the_end(rows: Iterable[CellRow]) -> dict[tuple[str, int], Counter[Hashable]]:
    """By query and instant, the rows that hold after all corrections, where there are some."""
    found: dict[tuple[str, int], Counter[Hashable]] = defaultdict(Counter)
    for answer in answers_of(rows):
        keys = Counter(row_key(row) for row in answer.rows)
        key = (answer.query, answer.at)
        if answer.correction == "retracted":
            assert found[key] == keys, "what is retracted was emitted"
            found[key] = Counter()
        else:
            assert not found[key], "an instant is answered once, and again after it was retracted"
            found[key] = keys
    return {key: rows for key, rows in found.items() if rows}


def undisturbed(made: Job, events: dict[tuple[str, str], list[Event]]) -> list[CellRow]:
    worker = Worker(made, name="whole")
    rows = [row for (stream, split), some in events.items() for row in packed(stream, some, split)]
    worker.batch([*rows, control(splits=STREAMS)])
    worker.batch([control(end=True, closed=list(STREAMS))])
    return worker.rows


def disturbed(made: Job, events: dict[tuple[str, str], list[Event]], random: Random) -> list[CellRow]:
    """The same events in batches, with outages of splits and of streams in between."""
    worker = Worker(made, random)
    waiting = {key: list(some) for key, some in events.items()}
    while any(waiting.values()):
        awake = {key for key in waiting if random.random() < 0.5}
        if random.random() < 0.3:
            awake = set()
        rows = []
        for stream, split in awake:
            count = random.choice([0, 1, 2, 3, 9])
            rows += packed(stream, waiting[stream, split][:count], split)
            del waiting[stream, split][:count]
        silent = {
            stream: asleep
            for stream, splits in STREAMS.items()
            if (asleep := [one for one in splits if (stream, one) not in awake]) and len(asleep) < len(splits)
        }
        idle = {
            stream: random.randrange(30 * SECOND)
            for stream, splits in STREAMS.items()
            if not any((stream, split) in awake for split in splits)
        }
        random.shuffle(rows)
        worker.batch([*rows, control(splits=STREAMS, silent=silent, idle=idle)])
    worker.batch([control(end=True, closed=list(STREAMS))])
    return worker.rows


@pytest.mark.parametrize("policy", ["correct", "wait"])
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.split()[2])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), lateness=st.sampled_from([None, "PT3S"]))
def test_outages_lose_nothing(query: str, policy: str, seed: int, lateness: str | None) -> None:
    random = Random(seed)
    events = drawn_events(random)
    made = job(query, policy, lateness)
    whole, rows = undisturbed(made, events), disturbed(made, events, random)
    assert not [row for row in rows if row.kind == "late"]
    assert in_the_end(rows) == in_the_end(whole)
    if policy == "wait":
        assert not any(answer.correction for answer in answers_of(rows))
