"""Recordings for tests: those of case files, and the law to hold them against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.support import sparql_draws
from tests.support.draws import draw_case

from anabranch.algebra.walk import windows
from anabranch.insight.recording import Recording
from anabranch.model.triples import TripleGraph
from anabranch.syntax import languages
from anabranch.testing.cases import CaseFile, load, oracles
from anabranch.testing.oracle import Oracle

CASES = Path(__file__).parents[2] / "cases"


def case_recordings() -> Iterator[tuple[str, Recording, Oracle]]:
    """Every query of every case file with the law of it, as far as it reads what the case brings."""
    for path in sorted(CASES.rglob("*.case")):
        case = load(path)
        if case.error is None:
            yield from recordings_of(case)


def chained_recordings(file: str, query: str) -> Iterator[tuple[str, Recording, Oracle]]:
    """A query of a case file over the streams that the case brings; others are made by its other queries."""
    [path] = CASES.rglob(f"{file}.case")
    case = load(path)
    for name, recording, law in recordings_of(case, chained=True):
        if recording.query_name == query:
            given = {stream: events for stream, events in recording.events.items() if stream in case.streams}
            yield name, replace(recording, events=given), law


def recordings_of(case: CaseFile, chained: bool = False) -> Iterator[tuple[str, Recording, Oracle]]:
    """`chained`: those too that read what other queries make."""
    registered = languages.registrations(case.query, file_name=case.path.name)
    made = {one.into for one in registered if one.into is not None and not chained}
    for law in oracles(case):
        registration = law.registration
        if law.starting_at is None or any(window.stream.name in made for window in windows(registration.plan)):
            continue
        recording = Recording(
            case.query,
            registration.name,
            law.parameters,
            law.streams,
            law.graphs,
            ends_at=case.until,
            windows=law.policy,
            conflicts=law.conflicts,
            now=law.now,
            mapping=law.mapping,
            file_name=case.path.name,
        )
        yield f"{case.path.stem}-{registration.name}", recording, law


def drawn_recordings(seed: str) -> Iterator[tuple[str, Recording, Oracle]]:
    """Random queries over random streams, of both families, each with its law."""
    yield from recordings_of(draw_case(Random(seed)))
    drawn = sparql_draws.draw(Random(seed))
    [registration] = languages.registrations(drawn.text)
    graphs = {"default": TripleGraph(drawn.static)} if drawn.static else {}
    law = Oracle(registration, drawn.streams, drawn.policy, graphs=graphs)
    if law.starting_at is not None:
        recording = Recording(drawn.text, events=drawn.streams, graphs=graphs, windows=drawn.policy)
        yield f"sparql-{seed}", recording, law
