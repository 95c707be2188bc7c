"""The operator graph of a query, and its numbers as the engine counts them."""

from __future__ import annotations

from itertools import count

import pytest

from anabranch.engine.engine import Engine
from anabranch.engine.query_options import QueryOptions
from anabranch.insight.operators import graph_of, operator_graph
from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.syntax import languages

from .recordings import case_recordings

RECORDINGS = list(case_recordings())
TEXT = """
REGISTER QUERY cars AS PREFIX : <http://x/>
SELECT ?district (COUNT(?car) AS ?cars) FROM STREAM <http://x/s> [RANGE 10s STEP 1s]
WHERE { ?gate :registers ?car . ?gate :in ?district } GROUP BY ?district"""


@pytest.mark.parametrize("recording", [one[1] for one in RECORDINGS], ids=[one[0] for one in RECORDINGS])
def test_every_box_stands_behind_its_inputs_and_the_result_is_last(recording: Recording) -> None:
    graph = operator_graph(recording)
    seen: set[int] = set()
    for box in graph.boxes:
        assert set(box.inputs) <= seen
        assert box.id not in seen
        seen.add(box.id)
        assert not any(name.startswith(" ") for name in box.columns)
    read = {one for box in graph.boxes for one in box.inputs}
    assert [box.kind for box in graph.boxes].count("result") == 1
    assert graph.boxes[-1].kind == "result"
    assert {box.id for box in graph.boxes[:-1] if box.kind not in ("window", "static")} <= read


def test_windows_static_parts_and_what_is_computed_anew_are_told_apart() -> None:
    static = TripleGraph([Triple(Iri("http://x/g1"), Iri("http://x/in"), Iri("http://x/d1"))])
    graph = operator_graph(Recording(TEXT, graphs={"default": static}))
    kinds = {box.kind for box in graph.boxes}
    assert kinds == {"window", "static", "streaming", "result"}
    [window] = [box for box in graph.boxes if box.kind == "window"]
    assert "PT10S" in window.detail
    anew = operator_graph(
        Recording(
            "REGISTER QUERY q STARTING AT 2022-10-14T12:00Z "
            "{ MATCH (n) WITHIN PT5M EMIT n.id AS id, rand() < 2 AS sure SNAPSHOT EVERY PT1M }"
        )
    )
    [recomputed] = [box for box in anew.boxes if box.kind == "recomputed"]
    assert "chance" in recomputed.detail


def test_live_counters_have_the_ids_of_the_boxes_and_count_what_passed() -> None:
    ticking = count(step=1_000)
    engine = Engine(clock=lambda: next(ticking))
    engine.add_static_graph(
        "default", TripleGraph([Triple(Iri(f"http://x/g{n}"), Iri("http://x/in"), Iri("http://x/d")) for n in range(2)])
    )
    [registration] = languages.registrations(TEXT)
    query = engine.register(registration, QueryOptions(text=TEXT))
    events = [
        Event(n * 500_000, triples=(Triple(Iri(f"http://x/g{n % 2}"), Iri("http://x/registers"), Literal(str(n))),))
        for n in range(40)
    ]
    engine.push("http://x/s", events)
    works = {work.id: work for work in query.operators()}
    graph = graph_of(query, engine._around)
    assert {box.id for box in graph.boxes} <= works.keys()
    window, matcher, result = graph.boxes[0], next(b for b in graph.boxes if b.kind == "streaming"), graph.boxes[-1]
    assert works[window.id].rows_in == 39, "the last event's instant is still open"
    assert works[window.id].held_rows == 20
    assert works[matcher.id].rows_out > 0
    assert works[matcher.id].seconds > 0
    assert works[matcher.id].calls == works[window.id].calls
    assert works[result.id].held_rows == 1


def test_without_a_clock_nothing_is_timed() -> None:
    engine = Engine()
    [registration] = languages.registrations(TEXT)
    query = engine.register(registration, QueryOptions(text=TEXT))
    engine.push(
        "http://x/s",
        [
            Event(n * 500_000, triples=(Triple(Iri("http://x/g"), Iri("http://x/in"), Iri("http://x/d")),))
            for n in range(9)
        ],
    )
    assert all(work.seconds == 0 for work in query.operators())
