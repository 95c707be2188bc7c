"""Snapshot reducibility for triples: windows of every kind, instants of every kind, and streams that queries make.

Plans are built by hand, so that the engine is judged without a parser. Every draw runs all at once, one event per push,
and in drawn portions with a restart after each: from a checkpoint, from a state whose events are kept elsewhere, and by
an engine that was left behind and catches up. All must tell what the law says about windows that are computed anew for
every instant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.algebra.operators import (
    DEFAULT_GRAPH,
    Distinct,
    MergedSource,
    Operator,
    Registration,
    Static,
    Stream,
    TripleSource,
    Window,
)
from anabranch.algebra.triples import Construct, GraphPattern, StaticPart, TriplePattern, Var
from anabranch.engine.answers import Answer
from anabranch.engine.engine import Engine
from anabranch.engine.query_options import QueryOptions
from anabranch.formats.values import to_typed_json
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Relationship
from anabranch.model.windows import WindowPolicy
from anabranch.testing.oracle import Oracle, accepted

START = parse_instant("2024-05-01T10:00:00Z")
HALF_MINUTE = 30_000_000

P, Q, R = (Iri(f"urn:anabranch:vocabulary:{name}") for name in "pqr")
RESOURCES = [Iri(f"urn:anabranch:node:{name}") for name in "abc"]
TERMS = [*RESOURCES, Literal("1"), Literal("x")]
KNOWN = TripleGraph([Triple(RESOURCES[0], R, Literal("known")), Triple(RESOURCES[1], R, RESOURCES[0])])

S, X, Y = Var("s"), Var("x"), Var("y")


# --- draws ------------------------------------------------------------------------------------------------------------

triples = st.builds(Triple, st.sampled_from(RESOURCES), st.sampled_from([P, P, Q]), st.sampled_from(TERMS))
graphs = st.lists(triples, max_size=4).map(tuple)
DURATIONS = [parse_duration(text) for text in ("PT30S", "PT1M", "PT90S", "PT3M")]
STEPS = [None, None, None, parse_duration("PT1M"), parse_duration("PT100S")]


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    now = START + draw(st.integers(-6, 6)) * HALF_MINUTE
    events = []
    for step in draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 7, -1, -3]), max_size=10)):
        now += step * HALF_MINUTE + draw(st.sampled_from([0, 0, 0, 1]))
        if draw(st.integers(0, 5)) == 0:
            nodes = (Node("a", (), {"p": draw(st.sampled_from([1, "x"]))}), Node("b"))
            events.append(Event(now, nodes, (Relationship(None, "q", "a", "b"),)))
        else:
            events.append(Event(now, triples=draw(graphs)))
    return events


@st.composite
def windows(draw: st.DrawFn, names: Sequence[str]) -> Window:
    stream = Stream(draw(st.sampled_from(names)))
    step = draw(st.sampled_from(STEPS))
    keep = draw(st.sampled_from([None, None, ((None, P, None), (None, Q, None))]))
    match draw(st.sampled_from(["width", "width", "count", "unbounded"])):
        case "width":
            return Window(stream, draw(st.sampled_from(DURATIONS)), step=step, keep=keep)
        case "count":
            return Window(stream, count=draw(st.integers(1, 6)), step=step, keep=keep)
    return Window(stream, unbounded=True, step=step, keep=keep)


@st.composite
def plans(draw: st.DrawFn, names: Sequence[str]) -> Operator:
    window = draw(windows(names))
    other = draw(windows(names))
    source: TripleSource = draw(
        st.sampled_from([window, MergedSource((window, other)), MergedSource((window, Static(DEFAULT_GRAPH)))])
    )
    one = GraphPattern(source, (TriplePattern(S, P, X, times=(("at", None),)),))
    two = GraphPattern(source, (TriplePattern(S, P, X), TriplePattern(X, Q, Y)))
    known = GraphPattern(Static("known"), (TriplePattern(S, R, Y),))
    return draw(
        st.sampled_from(
            [
                one,
                two,
                Distinct(two),
                GraphPattern(source, (TriplePattern(S, X, Y),)),
                Construct(two, (TriplePattern(X, P, S), TriplePattern(S, Q, Y))),
                StaticPart(known, GraphPattern(source, (TriplePattern(S, P, Y),)), (P,), (window,)),
            ]
        )
    )


@st.composite
def registrations(draw: st.DrawFn, name: str, names: Sequence[str]) -> Registration:
    plan = draw(plans(names))
    output = draw(st.sampled_from(["snapshot", "entering", "exiting"]))
    if draw(st.integers(0, 2)) == 0:
        arrivals = draw(st.integers(0, 4))
        return Registration(name, plan, None, None, output, arrivals=arrivals, language="csparql")
    every = draw(st.sampled_from(DURATIONS))
    starting_at = draw(st.sampled_from([None, None, START, START - 105_000_000]))
    aligned = starting_at is None and draw(st.booleans())
    return Registration(name, plan, starting_at, every, output, aligned=aligned, language="csparql")


ends = st.sampled_from([(None, False), (None, False), (None, True), (START + 80 * HALF_MINUTE, False)])
policies = st.sampled_from(["trailing", "trailing", "right-open", "formal"])
latenesses = st.sampled_from([None, parse_duration("PT1M")])
Pushes = list[tuple[str, list[Event]]]


def pushes(events: dict[str, list[Event]], portions: Sequence[int]) -> Pushes:
    """The events of each stream in its order; the streams take turns, by portions."""
    left = {name: list(these) for name, these in events.items()}
    found: Pushes = []
    turn = 0
    while any(left.values()):
        size = portions[turn % len(portions)] if portions else 1_000
        name = list(left)[turn % len(left)]
        found.append((name, left[name][: size + 1]))
        del left[name][: size + 1]
        turn += 1
    return found


def told(
    asked: Sequence[Registration],
    policy: WindowPolicy,
    lateness: object,
    given: Pushes,
    end: tuple[int | None, bool],
    restart: str | None = None,
) -> dict[str, list[str]]:
    by_name = {one.name: one for one in asked}

    def recompile(options: QueryOptions) -> Registration:
        return by_name[options.source_name]

    def begun() -> Engine:
        engine = Engine(lateness)  # type: ignore[arg-type]
        engine.add_static_graph("known", KNOWN)
        engine.declare_stream("s")
        engine.declare_stream("t")
        engine.register_all([(one, QueryOptions(windows=policy, text="-", source_name=one.name)) for one in asked])
        return engine

    engine = begun()
    behind, missed = begun(), 0
    kept: list[tuple[str, int, list[Event]]] = []
    for place, (name, events) in enumerate(given):
        first = engine.stream(name).sequences[""]
        late = {id(event) for event in engine.push(name, events).late}
        kept.append((name, first, [event for event in events if id(event) not in late]))
        if restart == "whole":
            engine = Engine.restore(engine.checkpoint(), recompile)
        elif restart == "apart":
            state = json.loads(json.dumps(engine.state(events=False)))
            engine = Engine.from_state(state, recompile)
            engine.add_static_graph("known", KNOWN)
            for stream, sequence, again in kept:
                engine.refill(stream, "", sequence, again)
        elif restart == "behind" and place % 2:
            state = json.loads(json.dumps(engine.state(events=False)))
            for stream, sequence, again in kept[missed:]:
                behind.refill(stream, "", sequence, again)
            behind.load(state, recompile)
            engine, behind, missed = behind, engine, len(kept)
    engine.finish(*end)
    return {one.name: [spelled(answer) for answer in engine.poll(one.name)] for one in asked}


def spelled(answer: Answer) -> str:
    """An answer as text; its rows are a bag."""
    rows = sorted(str([to_typed_json(value) for value in row]) for row in answer.rows)
    return f"{answer.at} {answer.win_start} {answer.win_end} {rows}"


def all_ways(
    asked: Sequence[Registration],
    policy: WindowPolicy,
    lateness: object,
    events: dict[str, list[Event]],
    portions: Sequence[int],
    end: tuple[int | None, bool],
) -> list[dict[str, list[str]]]:
    return [
        told(asked, policy, lateness, pushes(events, []), end),
        told(asked, policy, lateness, pushes(events, [0]), end),
        told(asked, policy, lateness, pushes(events, portions), end, "whole"),
        told(asked, policy, lateness, pushes(events, portions), end, "apart"),
        told(asked, policy, lateness, pushes(events, portions), end, "behind"),
    ]


@settings(deadline=None, max_examples=300)
@given(
    registrations("q", ["s", "s", "t"]), streams(), streams(), policies, latenesses, st.lists(st.integers(0, 4)), ends
)
def test_answers_over_triples_are_those_of_the_plain_law(
    asked: Registration,
    s: list[Event],
    t: list[Event],
    policy: WindowPolicy,
    lateness: object,
    portions: list[int],
    end: tuple[int | None, bool],
) -> None:
    if asked.arrivals is not None and policy == "formal":
        policy = "trailing"
    streams = {"s": accepted(s, lateness), "t": accepted(t, lateness)}  # type: ignore[arg-type]
    law = Oracle(asked, streams, policy, graphs={"known": KNOWN})
    expected = {"q": [spelled(answer) for answer in law.answers(*end) or []]}
    for found in all_ways([asked], policy, lateness, {"s": s, "t": t}, portions, end):
        assert found == expected


@settings(deadline=None, max_examples=200)
@given(
    registrations("first", ["s", "t"]),
    registrations("second", ["made", "made", "s"]),
    registrations("third", ["again", "made", "t"]),
    streams(),
    streams(),
    policies,
    st.lists(st.integers(0, 4)),
    ends,
    st.permutations([0, 1, 2]),
)
def test_queries_over_streams_that_queries_make_follow_the_law(
    first: Registration,
    second: Registration,
    third: Registration,
    s: list[Event],
    t: list[Event],
    policy: WindowPolicy,
    portions: list[int],
    end: tuple[int | None, bool],
    order: list[int],
) -> None:
    if policy == "formal":
        policy = "trailing"
    first = made_of_triples(first, "made")
    second = made_of_triples(second, "again")
    known = {"s": accepted(s), "t": accepted(t)}
    expected = {}
    clocks: dict[str, int] = {}
    for one in (first, second, third):
        law = Oracle(one, known, policy, graphs={"known": KNOWN}, clocks=clocks)
        expected[one.name] = [spelled(answer) for answer in law.answers(*end) or []]
        if one.into is not None:
            known[one.into] = law.events(*end)
            reached = law.clock(*end)
            if reached is not None:
                clocks[one.into] = reached
    asked = [(first, second, third)[place] for place in order]
    for found in all_ways(asked, policy, None, {"s": s, "t": t}, portions, end):
        assert found == expected


def made_of_triples(asked: Registration, into: str) -> Registration:
    """The query with answers that are triples, and the stream that they make."""
    plan = asked.plan
    if plan.columns != ("subject", "predicate", "object"):
        begin, finish = Var(plan.columns[0]), Var(plan.columns[-1])
        plan = Construct(plan, (TriplePattern(begin, P, finish), TriplePattern(begin, Q, begin)))
    return replace(asked, plan=plan, into=into, form="graph")
