"""Windows over triples: of time, of a count, of everything, with steps; and the two models side by side."""

from __future__ import annotations

import pytest
from tests.unit.engine.rdf import P, asked, at, event, everything, last, lasting, objects, options, told

from anabranch.algebra.expressions import Property, Variable
from anabranch.algebra.operators import DEFAULT_GRAPH, MergedSource, NodePattern, PathPattern, Pattern, Project, Static
from anabranch.engine.engine import Engine
from anabranch.engine.progress import LatePolicy
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.mapping import Mapping
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node


def run(registration, *events: Event, windows: str = "trailing", engine: Engine | None = None) -> list[str]:  # type: ignore[no-untyped-def]
    engine = engine or Engine()
    engine.register(registration, options(registration, windows=windows))
    engine.push("s", events)
    engine.finish()
    return told(engine, registration.name)


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_triple_that_comes_again_lives_until_its_latest_arrival_leaves() -> None:
    found = run(
        asked(objects(lasting("PT2M")), starting_at=at("10:00")),
        *(event("10:00", "a"), event("10:01", "a", "b"), event("10:03")),
    )
    assert found == ["10:00 a", "10:01 a b", "10:02 a b"]


def test_a_window_by_count_cuts_the_oldest_event() -> None:
    found = run(
        asked(objects(last(3)), starting_at=at("10:00")),
        *(event("10:00", "a", "b"), event("10:01", "c", "d"), event("10:02", "e"), event("10:02", "f", "g", "h", "i")),
    )
    assert found == ["10:00 a b", "10:01 b c d", "10:02 g h i"]


def test_a_window_by_count_cuts_through_events_slide_after_slide() -> None:
    groups = ["ab", "cd", "e", "fgh", "i", "jkl", "mn", "", "o"]
    found = run(
        asked(objects(last(5)), starting_at=at("10:00")),
        *(event(f"10:{minute:02d}", *names) for minute, names in enumerate(groups)),
    )
    came = ["".join(groups[: minute + 1])[-5:] for minute in range(len(groups))]
    assert found == [f"10:{minute:02d} {' '.join(names)}" for minute, names in enumerate(came)]


def test_a_window_by_count_ends_before_its_instant_when_windows_are_right_open() -> None:
    found = run(
        asked(objects(last(2)), starting_at=at("10:00")),
        *(event("10:00", "a"), event("10:01", "b")),
        windows="right-open",
    )
    assert found == ["10:01 a", "10:02 a b"]


def test_a_window_by_count_begins_with_its_oldest_triple() -> None:
    engine = Engine()
    registration = asked(objects(last(2)), starting_at=at("10:02"))
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a"), event("10:01", "b", "c")])
    engine.finish()
    (answer,) = engine.poll("q")
    assert (answer.win_start, answer.win_end) == (at("10:01"), at("10:02"))


def test_a_window_without_bound_holds_all_that_came() -> None:
    found = run(
        asked(objects(everything()), every="PT1H", starting_at=at("10:00")), event("09:00", "a"), event("11:00", "b")
    )
    assert found == ["10:00 a", "11:00 a b"]


def test_between_two_steps_a_window_shows_what_it_showed_at_the_last() -> None:
    found = run(
        asked(objects(lasting("PT10M", step=parse_duration("PT2M"))), starting_at=at("10:00")),
        *(event("10:00", "a"), event("10:01", "b"), event("10:02", "c"), event("10:03", "d")),
    )
    assert found == ["10:00 a", "10:01 a", "10:02 a b c", "10:03 a b c", "10:04 a b c d"]


def test_steps_are_counted_from_the_start_of_the_query() -> None:
    found = run(
        asked(objects(lasting("PT10M", step=parse_duration("PT2M"))), starting_at=at("10:01")),
        *(event("10:00", "a"), event("10:02", "b"), event("10:03", "c"), event("10:04", "d")),
    )
    assert found == ["10:01 a", "10:02 a", "10:03 a b c", "10:04 a b c", "10:05 a b c d"]


def test_a_window_may_end_between_the_events_of_one_slide() -> None:
    groups = {
        "10:00:10": "a",
        "10:00:20": "bc",
        "10:00:40": "def",
        "10:01:10": "gh",
        "10:01:50": "i",
        "10:02:20": "jkl",
    }
    found = run(
        asked(objects(lasting("PT90S")), starting_at=at("10:01")),
        *(event(clock, *names) for clock, names in groups.items()),
        event("10:04"),
    )
    assert found == ["10:01 a b c d e f", "10:02 d e f g h i", "10:03 i j k l"]


def test_a_query_starts_with_its_first_event_though_that_comes_second() -> None:
    engine = Engine(lateness=parse_duration("PT1M"))
    registration = asked(objects(lasting("PT10M")))
    engine.register(registration, options(registration))
    for one in (event("10:05", "a"), event("10:04:30", "b"), event("10:07", "c")):
        engine.push("s", [one])
    engine.finish()
    assert told(engine)[0] == "10:04:30 b"


def test_an_engine_forgets_what_no_window_by_count_will_show_again() -> None:
    engine = Engine()
    registration = asked(objects(last(2)), starting_at=at("10:00"))
    engine.register(registration, options(registration))
    engine.push("s", [event(f"10:{minute:02d}", "a", "b", "c") for minute in range(30)])
    assert len(engine.stream("s")) <= 2


def test_a_window_by_count_does_not_keep_a_drained_run_going() -> None:
    engine = Engine()
    registration = asked(objects(MergedSource((last(1), lasting("PT2M")))), starting_at=at("10:00"))
    engine.register(registration, options(registration))
    engine.push("s", [event("10:00", "a")])
    engine.finish(drain=True)
    assert told(engine) == ["10:00 a", "10:01 a", "10:02 a"]


# --- instants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "expected"), [("trailing", ["10:05 a"]), ("right-open", ["10:10 a"]), ("formal", ["10:05 a"])]
)
def test_aligned_instants_begin_where_a_window_can_hold_the_first_event(windows: str, expected: list[str]) -> None:
    assert (
        run(asked(objects(lasting("PT10M")), every="PT5M", aligned=True), event("10:05", "a"), windows=windows)
        == expected
    )


def test_aligned_instants_are_multiples_since_the_epoch() -> None:
    engine = Engine()
    registration = asked(objects(lasting("PT10M")), every="PT7M", aligned=True)
    engine.register(registration, options(registration))
    engine.push("s", [event("10:05", "a")])
    engine.finish()
    (answer,) = engine.poll("q")
    assert answer.at % 420_000_000 == 0
    assert 0 <= answer.at - at("10:05") < 420_000_000


def test_on_running_streams_aligned_instants_begin_after_what_was_seen() -> None:
    engine = Engine()
    first = asked(objects(lasting("PT1H")), "first", every="PT5M", aligned=True)
    engine.register(first, options(first))
    engine.push("s", [event("10:00", "a"), event("10:07", "b")])
    second = asked(objects(lasting("PT1H")), "second", every="PT5M", aligned=True)
    engine.register(second, options(second))
    engine.push("s", [event("10:21", "c")])
    assert told(engine, "second") == ["10:10 a b", "10:15 a b", "10:20 a b"]


# --- two models -------------------------------------------------------------------------------------------------------


def nodes(source) -> Project:  # type: ignore[no-untyped-def]
    pattern = Pattern(source, (PathPattern((NodePattern("n"),)),))
    return Project(pattern, (("x", Property(Variable("n"), "p")),))


def test_a_query_over_triples_reads_property_graphs_by_the_mapping() -> None:
    engine = Engine(mapping=Mapping(vocabulary="http://v/"))
    registration = asked(objects(lasting("PT1M")))
    assert run(registration, Event(at("10:00"), (Node(1, (), {"p": "a"}),)), engine=engine) == []
    engine = Engine()
    assert run(registration, Event(at("10:00"), (Node(1, (), {"p": "a"}),)), engine=engine) == ["10:00 a"]


def test_a_query_over_property_graphs_reads_triples_by_the_mapping() -> None:
    registration = asked(nodes(lasting("PT1M")), language="seraph")
    assert run(registration, event("10:00", "a")) == ["10:00 a"]


@pytest.mark.parametrize(
    "graph", [TripleGraph([Triple(Iri("n:1"), P, Literal("a"))]), PropertyGraph([Node("n:1", (), {"p": "a"})])]
)
def test_a_static_graph_of_either_model_is_seen_by_queries_of_both(graph: TripleGraph | PropertyGraph) -> None:
    engine = Engine()
    engine.add_static_graph("g", graph)
    for registration in (
        asked(objects(Static("g")), "triples", every=None, starting_at=at("10:00")),
        asked(nodes(Static("g")), "graph", every=None, starting_at=at("10:00"), language="seraph"),
    ):
        engine.register(registration, options(registration))
    engine.push("s", [event("10:01")])
    assert (told(engine, "triples"), told(engine, "graph")) == (["10:00 a"], ["10:00 a"])


def test_the_default_graph_is_empty_until_somebody_gives_it_and_then_seen_at_once() -> None:
    engine = Engine()
    registration = asked(objects(Static(DEFAULT_GRAPH)), starting_at=at("10:00"))
    engine.register(registration, options(registration))
    engine.push("s", [event("10:01")])
    engine.add_static_graph(DEFAULT_GRAPH, TripleGraph([Triple(Iri("n:1"), P, Literal("a"))]))
    engine.push("s", [event("10:02")])
    engine.add_static_graph(DEFAULT_GRAPH, TripleGraph([Triple(Iri("n:1"), P, Literal("b"))]))
    engine.finish()
    assert told(engine) == ["10:01 a", "10:02 b"]


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusal(registration, engine: Engine) -> str:  # type: ignore[no-untyped-def]
    with pytest.raises(QueryError) as caught:
        engine.register(registration, options(registration))
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code}: {diagnostic.message}; {diagnostic.hint}"


def test_an_unknown_graph_is_refused_with_the_ways_to_give_it() -> None:
    plan = MergedSource((Static("http://g"), Static(DEFAULT_GRAPH)))
    assert refusal(asked(objects(plan)), Engine()) == (
        "SER-212: no graph <http://g>; give it with --graph http://g=FILE, or write FROM and the file's name"
    )


def test_a_range_of_nothing_is_refused_in_the_words_of_the_language() -> None:
    message = refusal(asked(objects(lasting("PT0S"))), Engine())
    assert message.startswith("SER-214: RANGE must be longer than nothing")


@pytest.mark.parametrize(
    ("registration", "reason"),
    [
        (asked(objects(last(3))), "a window by count"),
        (asked(objects(lasting("PT1M")), every=None, arrivals=1), "instants that hang on what comes"),
    ],
)
def test_corrections_of_what_time_does_not_move_are_refused(registration, reason: str) -> None:  # type: ignore[no-untyped-def]
    message = refusal(registration, Engine(late=LatePolicy("correct")))
    assert message.startswith(
        f"SPQ-201: late events cannot be corrected in query `q`: it has {reason}; use --late drop"
    )
