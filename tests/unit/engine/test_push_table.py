"""Rows of a table mean what their events mean: the same answers, the same late ones, whatever the way in."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.support.sparql_draws import Draw, draw

from anabranch.engine.answers import Answer
from anabranch.engine.engine import LatePolicy, PushResult
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.errors import EngineError, MalformedEventError, StreamError
from anabranch.formats.rdf.terms import term_text
from anabranch.model.event import Event
from anabranch.model.terms import Blank, Iri, Triple

SECOND = 1_000_000
ALL = "REGISTER QUERY q AS SELECT ?s ?o FROM STREAM <s> [RANGE 1m STEP 1m] WHERE { ?s <n:p> ?o }"


def table_of(events: list[Event]) -> pa.Table:
    texts = [[term_text(event.triples[0][place]) for event in events] for place in range(3)]
    times = pa.array([event.event_time for event in events], pa.timestamp("us", "UTC"))
    return pa.table(
        {**{name: pa.array(column, pa.string()) for name, column in zip("spo", texts, strict=True)}, "at": times}
    )


def drawn(random: Random) -> tuple[Draw, str]:
    """A query over events of one triple each that do not all come in their order."""
    one = draw(random)
    streams = {}
    for name, events in one.streams.items():
        single = [Event(event.event_time, triples=(triple,)) for event in events for triple in event.triples]
        for _ in range(random.choice([0, 0, 1, 3])):
            place = random.randrange(len(single))
            single.insert(place, replace(random.choice(single), triples=single[place].triples))
        streams[name] = single
    text = one.text
    if random.random() < 0.3:
        text = re.sub(r"\[RANGE \d+s STEP \d+s\]", f"[RANGE TRIPLES {random.randint(1, 6)}]", text)
    return replace(one, streams=streams), text


def play(
    one: Draw, text: str, random: Random, as_tables: bool
) -> tuple[list[PushResult], list[Answer], dict[str, int]]:
    late = LatePolicy("drop" if "TRIPLES" in text else random.choice(["drop", "correct"]))
    evaluation = EvaluationOptions(force=random.choice(["auto", "recompute"]))
    session = Session.local(list(one.streams), random.choice([None, "PT1S"]), late=late, evaluation=evaluation)
    query = session.register(text)
    waiting = {name: list(events) for name, events in one.streams.items()}
    pushed = []
    while any(waiting.values()):
        for name, events in waiting.items():
            count = random.choice([0, 1, 3, 20])
            part, events[:count] = events[:count], []
            pushed.append(session.push_table(name, table_of(part)) if as_tables else session.push(name, part))
    session.finish()
    return pushed, query.poll(), session.late


@pytest.mark.parametrize("shard", range(4))
def test_a_table_is_answered_as_its_events_are(shard: int) -> None:
    rows = late = 0
    for number in range(shard, 48, 4):
        one, text = drawn(Random(f"table/{number}"))
        expected = play(one, text, Random(f"way/{number}"), as_tables=False)
        assert play(one, text, Random(f"way/{number}"), as_tables=True) == expected, f"draw {number}: {text}"
        rows += sum(len(answer.rows) for answer in expected[1])
        late += sum(expected[2].values())
    assert rows > 0
    assert late > 0


def test_a_long_table_is_pushed_in_parts_and_forgotten_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.formats.rdf.tables._ROWS_PER_BATCH", 100)
    session = Session.local()
    query = session.register(ALL)
    events = [
        Event(number * SECOND, triples=(Triple(Iri("n:a"), Iri("n:p"), Iri(f"n:{number}")),)) for number in range(990)
    ]
    events[500] = replace(events[500], event_time=0)
    pushed = session.push_table("s", table_of(events))
    assert (pushed.accepted, pushed.late, pushed.late_places) == (989, (events[500],), (500,))
    assert len(session._engine.stream("s")) <= 160
    assert [len(answer.rows) for answer in query.poll()][:3] == [1, 60, 60]


def test_blank_nodes_belong_to_their_table_unless_tables_share_a_document() -> None:
    session = Session.local()
    query = session.register(ALL.replace("?s ?o FROM", "DISTINCT ?s FROM"))
    same = {"s": ["_:a", "_:a"], "p": ["n:p"] * 2, "at": [1, 2]}
    for _ in range(2):
        session.push_table("s", pa.table({**same, "o": ["x", "y"]}))
        same["at"] = [3, 4]
    for _ in range(2):
        session.push_table("s", pa.table({**same, "o": ["x", "y"]}), document="d")
    session.finish()
    (answer,) = query.poll()
    assert sorted(blank for (blank,) in answer.rows) == [Blank("a", "d"), Blank("a", "s.t.0"), Blank("a", "s.t.2")]


@pytest.mark.parametrize("given", [pa.Table, pa.RecordBatch, pd.DataFrame])
def test_tables_of_other_libraries_and_with_other_names_are_taken(given: Any) -> None:
    session = Session.local()
    query = session.register(ALL)
    columns = {"from": ["http://ex/a"], "link": ["n:p"], "to": [5], "time": ["2024-01-01T00:00:00Z"], "more": [1]}
    table = pd.DataFrame(columns) if given is pd.DataFrame else given.from_pydict(columns)
    assert session.push_table("s", table, "from", "link", "to", "time") == PushResult(1)
    session.finish()
    assert [[str(row[0].value) for row in answer.rows] for answer in query.poll()] == [["http://ex/a"]]


def test_a_malformed_row_is_refused_before_any_row_is_taken_in() -> None:
    session = Session.local(["s"])
    with pytest.raises(MalformedEventError, match="row 2: subject: missing"):
        session.push_table("s", pa.table({"s": ["n:a", None], "p": ["n:p"] * 2, "o": ["x"] * 2, "at": [1, 2]}))
    with pytest.raises(StreamError, match="no column `s`"):
        session.push_table("s", pa.table({"p": ["n:p"]}))
    with pytest.raises(EngineError, match="no stream `t`"):
        session.push_table("t", pa.table({"s": ["n:a"], "p": ["n:p"], "o": ["x"], "at": [1]}))
    assert len(session._engine.stream("s")) == 0
    assert session.push_table(
        "s", pa.table({name: pa.array([], pa.string()) for name in ("s", "p", "o", "at")})
    ) == PushResult(0)
