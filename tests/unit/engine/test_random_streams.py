"""Any query over any stream, pushed in any portions, restarted anywhere, answers as the plain law says.

Times are a few steps of half a minute, so that events meet window borders, evaluation instants and each other.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import parse_duration
from anabranch.model.values import Node, Relationship
from anabranch.syntax import seraph
from anabranch.testing.oracle import Oracle, accepted

START = parse_instant("2024-05-01T10:00:00Z")
HALF_MINUTE = 30_000_000

BODIES = [
    "MATCH (n:A) {w1} EMIT n.x AS x",
    "MATCH (n) {w1} EMIT n",
    "MATCH (a)-[r:T]->(b) {w1} EMIT id(a) AS a, r, b",
    "MATCH p = (a)-[*1..3]-(b:B) {w1} EMIT p",
    "MATCH (n) {w1} EMIT n.x AS x, count(*) AS c",
    "MATCH (n) {w1} EMIT count(n) AS c, collect(n.x) AS xs",
    "MATCH (a:A) {w1} MATCH (a)-[r]-(b) {w2} EMIT a.x AS x, b.x AS y",
    "MATCH (a:A) {w1} OPTIONAL MATCH (a)-[r]->(b) {w2} EMIT a.x AS x, type(r) AS t",
    "MATCH (a) {w1} WITH a.x AS x ORDER BY x DESC LIMIT 2 EMIT x",
    "MATCH (a) {w1} WHERE NOT (a)-[:T]->() EMIT DISTINCT a.x AS x",
    "MATCH (a) {w1} EMIT a.x AS x, datetime() AS now",
    "MATCH (a) {w1} WITH a LIMIT 1 EMIT a",
    "MATCH (a:A) {w1} EMIT a.x AS x UNION ALL MATCH (b:B) {w2} EMIT b.x AS x",
]
DURATIONS = ["PT30S", "PT1M", "PT90S", "PT3M", "PT10M"]

properties = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 2, "a"]), max_size=2)
nodes = st.builds(
    Node, st.integers(1, 4), st.lists(st.sampled_from("AB"), unique=True, max_size=2).map(tuple), properties
)
relationships = st.builds(
    Relationship,
    st.sampled_from([None, "r1", "r2"]),
    st.sampled_from("TU"),
    st.integers(1, 5),
    st.integers(1, 5),
    properties,
)
contents = st.tuples(
    st.lists(nodes, max_size=3, unique_by=lambda node: node.id).map(tuple),
    st.lists(relationships, max_size=2).map(tuple),
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    now = START + draw(st.integers(-6, 6)) * HALF_MINUTE
    events = []
    for step in draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 30, -1, -3]), max_size=12)):
        now += step * HALF_MINUTE
        events.append(Event(now, *draw(contents)))
    return events


@st.composite
def query_texts(draw: st.DrawFn) -> str:
    widths = {name: f"WITHIN {draw(st.sampled_from(DURATIONS))}" for name in ("w1", "w2")}
    body = draw(st.sampled_from(BODIES)).format(**widths)
    if draw(st.integers(0, 9)) == 0:
        tail, body = "", body.replace("EMIT", "RETURN")
    else:
        output = draw(st.sampled_from(["SNAPSHOT", "ON ENTERING", "ON EXIT"]))
        tail = f" {output} EVERY {draw(st.sampled_from(DURATIONS))}"
    start = draw(st.sampled_from(["2024-05-01T10:00Z", "2024-05-01T09:58:15Z", "NOW"]))
    return f"REGISTER QUERY q STARTING AT {start} {{ {body}{tail} }}"


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "windows": draw(st.sampled_from(["trailing", "right-open", "formal"])),
        "conflicts": draw(st.sampled_from(["latest", "strict"])),
        "lateness": draw(st.sampled_from([None, "PT1M"])),
        "drain": draw(st.booleans()),
    }


def answers(text: str, events: list[Event], run: dict[str, Any], portions: list[int], restart: bool) -> list[str]:
    session = Session.local(lateness=run["lateness"], windows=run["windows"], conflicts=run["conflicts"])
    session.register(text)
    position = 0
    for portion in [*portions, len(events)]:
        session.push("s", events[position : position + portion])
        position += portion
        if restart:
            session = Session.restore(session.checkpoint())
    session.finish(drain=run["drain"])
    return [json.dumps(answer.to_dict()) for answer in session.query("q").poll()]


@settings(deadline=None, max_examples=150)
@given(query_texts(), streams(), runs(), st.lists(st.integers(0, 4), max_size=6))
def test_answers_are_those_of_the_plain_law(
    text: str, events: list[Event], run: dict[str, Any], portions: list[int]
) -> None:
    lateness = None if run["lateness"] is None else parse_duration(run["lateness"])
    (registration,) = seraph.registrations(text)
    law = Oracle(registration, {"s": accepted(events, lateness)}, run["windows"], run["conflicts"])
    expected = [json.dumps(answer.to_dict()) for answer in law.answers(drain=run["drain"]) or []]
    assert answers(text, events, run, [], False) == expected
    assert answers(text, events, run, [1] * len(events), False) == expected
    assert answers(text, events, run, portions, True) == expected


@pytest.mark.parametrize("every", ["P1M", "P1MT12H"])
@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from(["trailing", "right-open", "formal"]))
def test_calendar_windows_are_those_of_the_plain_law(every: str, gaps: list[int], windows: str) -> None:
    text = (
        "REGISTER QUERY q STARTING AT 2023-12-31T00:00Z "
        f"{{ MATCH (n) WITHIN P2M EMIT id(n) AS id ON ENTERING EVERY {every} }}"
    )
    now = START
    events = []
    for number, gap in enumerate(gaps):
        now += gap * 24 * 120 * HALF_MINUTE
        events.append(Event(now, (Node(number),)))
    run = {"windows": windows, "conflicts": "latest", "lateness": None, "drain": True}
    (registration,) = seraph.registrations(text)
    law = Oracle(registration, {"s": events}, windows)
    expected = [json.dumps(answer.to_dict()) for answer in law.answers(drain=True) or []]
    assert answers(text, events, run, [1] * len(events), True) == expected
