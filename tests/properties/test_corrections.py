"""Events in any order, from any splits, in any portions, with restarts: what stands in the end is what the law says.

An answer stands when it was told, until it is retracted; a correction stands in its place. ANABRANCH_DRAWS sets how
many draws are made of each kind (by default a third of 1,000).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.draws import draw_case
from tests.unit.engine.test_random_streams import query_texts, runs, streams

from anabranch.engine.answers import Answer, row_key
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine
from anabranch.engine.progress import LatePolicy, rank
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.session import parameter_values
from anabranch.model.event import Event
from anabranch.model.temporal import parse_duration
from anabranch.syntax import seraph
from anabranch.testing.case_file import CaseFile
from anabranch.testing.oracle import Oracle

DRAWS = max(1, int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 3)
SHARDS = 5
LARGE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@dataclass(frozen=True)
class Push:
    """Some events of one split of a stream, in their order of arrival."""

    stream: str
    split: str
    events: tuple[Event, ...]


def draw_pushes(random: Random, case: CaseFile, shuffled: bool) -> list[Push]:
    """Every event of a case once: dealt to splits, in an order of its own or by chance, cut into portions."""
    pushes: list[Push] = []
    for stream, events in case.streams.items():
        splits = random.choice(([""], [""], ["2", "10"], ["b", "7", "a"]))
        for split, dealt in _dealt(random, events, splits).items():
            left = (
                sorted(dealt, key=lambda event: event.event_time) if not shuffled else random.sample(dealt, len(dealt))
            )
            while left:
                size = random.choice((1, 1, 2, 3, len(left)))
                pushes.append(Push(stream, split, tuple(left[:size])))
                left = left[size:]
    return _interleaved(random, pushes)


def _dealt(random: Random, events: Sequence[Event], splits: Sequence[str]) -> dict[str, list[Event]]:
    dealt: dict[str, list[Event]] = {split: [] for split in splits}
    for event in events:
        dealt[random.choice(splits)].append(event)
    return dealt


def _interleaved(random: Random, pushes: Sequence[Push]) -> list[Push]:
    """The pushes in any order that keeps those of each split in theirs."""
    queues: dict[tuple[str, str], list[Push]] = {}
    for push in pushes:
        queues.setdefault((push.stream, push.split), []).append(push)
    found = []
    while queues:
        key = random.choice(list(queues))
        found.append(queues[key].pop(0))
        if not queues[key]:
            del queues[key]
    return found


def fixed_start(case: CaseFile, start: str = "2022-10-14T12:00") -> CaseFile:
    return replace(case, query=case.query.replace("STARTING AT NOW", f"STARTING AT {start}"))


def new_engine(case: CaseFile, late: LatePolicy, pushes: Sequence[Push]) -> Engine:
    engine = Engine(case.lateness, late=late)
    for stream in case.streams:
        engine.declare_stream(stream)
        engine.set_splits(stream, sorted({push.split for push in pushes if push.stream == stream}) or [""])
    for registration in seraph.registrations(case.query):
        engine.register(registration, options(case, registration.name))
    return engine


def options(case: CaseFile, name: str) -> QueryOptions:
    windows: Any = case.options["windows"]
    conflicts: Any = case.options["conflicts"]
    return QueryOptions(windows, conflicts, parameter_values(case.parameters), text=case.query, source_name=name)


@dataclass
class Outcome:
    answers: list[Answer]
    accepted: list[tuple[Push, int]]  # what was accepted of each push, and the sequence number of its first event


def play(
    case: CaseFile, late: LatePolicy, pushes: Sequence[Push], restart: Callable[..., Engine] | None = None
) -> Outcome:
    engine = new_engine(case, late, pushes)
    outcome = Outcome([], [])
    for push in pushes:
        first = engine.stream(push.stream).sequences[push.split]
        pushed = engine.push(push.stream, push.events, push.split)
        lost = {id(event) for event in pushed.late}
        kept = tuple(event for event in push.events if id(event) not in lost)
        assert pushed.accepted == len(kept) >= pushed.corrected
        outcome.accepted.append((replace(push, events=kept), first))
        outcome.answers += engine.take(engine.frontier)
        if restart is not None:
            engine = restart(engine, outcome)
    engine.finish(case.until, case.drain)
    outcome.answers += engine.take()
    assert engine.failures() == []
    return outcome


Standing = dict[tuple[str, int], Counter[Hashable]]


def standing(answers: Sequence[Answer]) -> Standing:
    """The rows that stand at each instant of each query; what is retracted must be what stood."""
    found: Standing = {}
    for answer in answers:
        key, rows = (answer.query, int(answer.at)), Counter(row_key(row) for row in answer.rows)
        if answer.correction == "retracted":
            assert found.pop(key) == rows
        else:
            assert key not in found
            found[key] = rows
    return found


def law(case: CaseFile, accepted: Sequence[tuple[Push, int]]) -> Standing:
    in_order: dict[str, list[Event]] = {}
    for stream in case.streams:
        rows = []
        for push, first in accepted:
            if push.stream == stream:
                for sequence, event in enumerate(push.events, first):
                    rows.append((event.event_time, rank(push.split), sequence, named(event, push.split, sequence)))
        in_order[stream] = [row[3] for row in sorted(rows, key=lambda row: row[:3])]
    found: list[Answer] = []
    for registration in seraph.registrations(case.query):
        oracle = Oracle(
            registration,
            in_order,
            case.options["windows"],
            case.options["conflicts"],
            parameter_values(case.parameters),
        )
        found += oracle.answers(case.until, case.drain) or []
    return standing(found)


def named(event: Event, split: str, sequence: int) -> Event:
    label = f"{split}:{sequence}" if split else f"{sequence}"
    relationships = tuple(
        one if one.id is not None else replace(one, id=f"~{label}.{index}")
        for index, one in enumerate(event.relationships)
    )
    return replace(event, relationships=relationships)


def in_new_engine(engine: Engine, outcome: Outcome) -> Engine:
    """A new process: the state without events, and the events from elsewhere."""
    other = Engine()
    other.load(engine.state(events=False), recompile)
    for push, first in outcome.accepted:
        other.refill(push.stream, push.split, first, push.events)
    assert other.state() == engine.state()
    return other


def from_checkpoint(engine: Engine, outcome: Outcome) -> Engine:
    return Engine.restore(engine.checkpoint(), recompile)


class CatchingUp:
    """Of two processes now the one goes on and now the other, which then has missed some pushes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.idle: tuple[Engine, int] | None = None

    def __call__(self, engine: Engine, outcome: Outcome) -> Engine:
        if self.random.random() < 0.5:
            return engine
        other, missed_from = self.idle or (Engine(), 0)
        if not missed_from:
            other.load(engine.state(events=False), recompile)
        for push, first in outcome.accepted[missed_from:]:
            other.refill(push.stream, push.split, first, push.events)
        if missed_from:
            other.load(engine.state(events=False), recompile)
        assert other.state() == engine.state()
        self.idle = (engine, len(outcome.accepted))
        return other


def policies(random: Random) -> LatePolicy:
    return LatePolicy("correct", random.choice((None, None, parse_duration("PT3M"), parse_duration("PT10M"))))


def check(random: Random, case: CaseFile) -> int:
    pushes = draw_pushes(random, case, shuffled=True)
    ways = (None, None, in_new_engine, from_checkpoint, CatchingUp(random))
    outcome = play(case, policies(random), pushes, random.choice(ways))
    assert standing(outcome.answers) == law(case, outcome.accepted)
    return sum(answer.correction != "" for answer in outcome.answers)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_corrections_end_where_events_in_the_order_of_time_would_have(shard: int) -> None:
    corrected = 0
    for number in range(shard, DRAWS, SHARDS):
        random = Random(f"corrections/{number}")
        corrected += check(random, fixed_start(draw_case(random, number)))
    assert corrected > 0 or DRAWS < 300, "draws without corrections prove nothing"


@settings(max_examples=100, deadline=None, suppress_health_check=LARGE)
@given(st.randoms(use_true_random=False))
def test_corrections_hold_and_a_counterexample_would_be_shrunk(random: Random) -> None:
    check(random, fixed_start(draw_case(random)))


@settings(max_examples=300, deadline=None, suppress_health_check=LARGE)
@given(st.lists(query_texts(), min_size=1, max_size=2), streams(), runs(), st.randoms(use_true_random=False))
def test_corrections_hold_where_events_meet_borders_and_each_other(
    texts: list[str], events: list[Event], run: dict[str, Any], random: Random
) -> None:
    options = {key: run[key] for key in ("windows", "conflicts", "lateness") if run[key] is not None}
    if run["drain"]:
        options["drain"] = ""
    query = "\n".join(text.replace("QUERY q", f"QUERY q{place}") for place, text in enumerate(texts))
    case = CaseFile(Path("drawn.case"), options=options, query=query, streams={"s": events})
    check(random, fixed_start(case, "2024-05-01T10:00Z"))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_neither_portions_nor_the_interleaving_of_splits_change_answers_or_what_is_late(shard: int) -> None:
    """Late events are dropped here; each split brings the same events in the same order, disordered as it may be."""
    told = 0
    for number in range(shard, DRAWS, SHARDS):
        random = Random(f"splits/{number}")
        case = fixed_start(draw_case(random, number))
        pushes = draw_pushes(random, case, shuffled=random.random() < 0.3)
        outcome = play(case, LatePolicy(), pushes)
        singly = [replace(push, events=(event,)) for push in pushes for event in push.events]
        other = play(case, LatePolicy(), _interleaved(random, singly), in_new_engine)
        caught_up = play(case, LatePolicy(), _interleaved(random, singly), CatchingUp(random))
        assert by_split(outcome) == by_split(other) == by_split(caught_up)
        assert texts(outcome) == texts(other) == texts(caught_up)
        assert standing(outcome.answers) == law(case, outcome.accepted)
        told += len(outcome.answers)
    assert told > 0 or DRAWS < 300, "draws that never answer prove nothing"


def by_split(outcome: Outcome) -> dict[tuple[str, str], list[Event]]:
    found: dict[tuple[str, str], list[Event]] = {}
    for push, _ in outcome.accepted:
        found.setdefault((push.stream, push.split), []).extend(push.events)
    return {key: events for key, events in found.items() if events}


def texts(outcome: Outcome) -> list[str]:
    return [repr(answer.to_dict()) for answer in outcome.answers]
