"""Dataset clauses and rhythms: which graphs a query reads, and when it is evaluated."""

from __future__ import annotations

import pytest
from tests.unit.syntax.sparql.texts import PREFIXES, registered

from anabranch.algebra.operators import MergedSource, Output, Registration, Static, Stream, TripleSource, Window
from anabranch.algebra.triples import Describe, GraphPattern
from anabranch.algebra.walk import walk
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.syntax import sparql

REPOSITORY = Static("default")


def read(found: Registration) -> list[TripleSource]:
    return [node.source for node in walk(found.plan) if isinstance(node, GraphPattern | Describe)]


def window(stream: str, seconds: int, step: int | None = None) -> Window:
    return Window(
        Stream(f"http://e/{stream}"),
        width=Duration(seconds=seconds),
        step=None if step is None else Duration(seconds=step),
    )


def query(clauses: str, where: str = "{ ?x :p ?y }", head: str = "REGISTER QUERY q AS") -> Registration:
    return registered(f"{head} SELECT * {clauses} WHERE {where}")


# --- sources ---


def test_a_stream_is_part_of_the_default_graph_beside_the_repository() -> None:
    assert read(query("FROM STREAM :s [RANGE 10s STEP 5s]")) == [MergedSource((REPOSITORY, window("s", 10)))]


def test_a_static_from_clause_stands_in_place_of_the_repository() -> None:
    found = query("FROM :k FROM STREAM :s [RANGE 10s STEP 5s]")
    assert read(found) == [MergedSource((Static("http://e/k"), window("s", 10)))]


def test_a_named_stream_is_seen_only_by_graph() -> None:
    found = query("FROM NAMED STREAM :s [RANGE 10s STEP 5s]", "{ ?x :p ?y GRAPH :s { ?x :q ?z } }")
    assert read(found) == [REPOSITORY, window("s", 10)]


def test_graph_of_an_unnamed_stream_is_the_default_graph_without_the_other_streams() -> None:
    found = query("FROM STREAM :s [RANGE 10s STEP 5s] FROM STREAM :t [RANGE 10s STEP 5s]", "{ GRAPH :s { ?x :p ?y } }")
    assert read(found) == [MergedSource((REPOSITORY, window("s", 10)))]


def test_graph_variable_ranges_over_unnamed_streams_when_nothing_is_named() -> None:
    found = query("FROM STREAM :s [RANGE 10s STEP 5s] FROM STREAM :t [RANGE 10s STEP 5s]", "{ GRAPH ?g { ?x :p ?y } }")
    assert read(found) == [MergedSource((REPOSITORY, window("s", 10))), MergedSource((REPOSITORY, window("t", 10)))]


def test_graph_variable_ranges_over_what_is_named_alone() -> None:
    found = query(
        "FROM NAMED :k FROM NAMED STREAM :s [RANGE 10s STEP 5s] FROM STREAM :t [RANGE 10s STEP 5s]",
        "{ GRAPH ?g { ?x :p ?y } }",
    )
    assert read(found) == [Static("http://e/k"), window("s", 10)]


def test_graph_of_a_name_that_no_clause_has_is_a_static_graph() -> None:
    found = query("FROM STREAM :s [RANGE 10s STEP 5s]", "{ GRAPH :k { ?x :p ?y } }")
    assert read(found) == [Static("http://e/k")]


def test_two_windows_of_one_stream_are_merged() -> None:
    found = query("FROM :k FROM STREAM :s [RANGE 10s STEP 5s] FROM STREAM :s [RANGE 20s STEP 5s]")
    assert read(found) == [MergedSource((Static("http://e/k"), window("s", 10), window("s", 20)))]


def test_a_stream_is_found_by_the_word_under_which_a_query_registered_it() -> None:
    found = query("FROM STREAM <CarsPerDistrict> [RANGE 10s STEP 5s]", "{ GRAPH <CarsPerDistrict> { ?x :p ?y } }")
    (source,) = read(found)
    assert isinstance(source, MergedSource)
    assert source.parts[1] == Window(Stream("CarsPerDistrict"), width=Duration(seconds=10))


# --- rhythm ---


def test_a_query_is_evaluated_at_every_step_aligned_to_the_epoch() -> None:
    found = query("FROM STREAM :s [RANGE 10s STEP 5s]")
    assert (found.every, found.aligned, found.starting_at, found.arrivals) == (Duration(seconds=5), True, None, None)


def test_starting_at_takes_the_place_of_the_alignment() -> None:
    found = query("FROM STREAM :s [RANGE 10s STEP 5s]", head="REGISTER QUERY q STARTING AT 2022-10-14T14:45:00Z AS")
    assert (found.starting_at, found.aligned) == (parse_instant("2022-10-14T14:45:00Z"), False)


def test_computed_every_sets_the_rhythm_and_the_window_keeps_its_step() -> None:
    found = query("FROM :k FROM STREAM :s [RANGE 10s STEP 5s]", head="REGISTER QUERY q COMPUTED EVERY 2s AS")
    assert found.every == Duration(seconds=2)
    assert read(found) == [MergedSource((Static("http://e/k"), window("s", 10, step=5)))]


@pytest.mark.parametrize("range_", ["RANGE 10s TUMBLING", "RANGE 10s"])
def test_a_window_without_a_step_tumbles(range_: str) -> None:
    assert query(f"FROM STREAM :s [{range_}]").every == Duration(seconds=10)


def test_a_window_without_a_step_moves_with_computed_every() -> None:
    found = query("FROM :k FROM STREAM :s [RANGE 10s]", head="REGISTER QUERY q COMPUTED EVERY 2s AS")
    assert read(found) == [MergedSource((Static("http://e/k"), window("s", 10)))]


def test_different_steps_are_evaluated_at_their_greatest_common_divisor() -> None:
    found = query("FROM :k FROM STREAM :s [RANGE 10s STEP 4s] FROM STREAM :t [RANGE 1m STEP 6s]")
    assert found.every == Duration(seconds=2)
    assert read(found) == [MergedSource((Static("http://e/k"), window("s", 10, step=4), window("t", 60, step=6)))]


def test_a_day_and_twenty_four_hours_are_the_same_step() -> None:
    found = query("FROM STREAM :s [RANGE 2d STEP 1d] FROM STREAM :t [RANGE 2d STEP 24h]")
    assert {part.step for part in read(found)[0].parts[1:]} == {None}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("range_", "arrivals"), [("TRIPLES 10", 1), ("TRIPLES 10 STEP 2", 2), ("TRIPLES 10 TUMBLING", 10)]
)
def test_a_count_window_is_evaluated_by_arrivals(range_: str, arrivals: int) -> None:
    found = query(f"FROM :k FROM STREAM :s [RANGE {range_}]")
    assert (found.every, found.arrivals) == (None, arrivals)
    assert read(found) == [MergedSource((Static("http://e/k"), Window(Stream("http://e/s"), count=10)))]


def test_a_count_window_with_computed_every_follows_the_clock() -> None:
    found = query("FROM STREAM :s [RANGE TRIPLES 10]", head="REGISTER QUERY q COMPUTED EVERY 1m AS")
    assert (found.every, found.arrivals) == (Duration(seconds=60), None)


def test_a_time_window_sets_the_rhythm_beside_a_count_window() -> None:
    found = query("FROM STREAM :s [RANGE TRIPLES 10] FROM STREAM :t [RANGE 10s STEP 5s]")
    assert (found.every, found.arrivals) == (Duration(seconds=5), None)


def test_a_query_without_streams_is_answered_once() -> None:
    found = registered("SELECT * { ?x :p ?y }")
    assert (found.name, found.every, found.arrivals, found.aligned) == ("query", None, None, False)


# --- registrations ---


def test_a_registered_stream_of_triples_is_one_that_others_read() -> None:
    found = registered("REGISTER STREAM out AS CONSTRUCT { ?x :q ?y } FROM STREAM :s [RANGE 5s STEP 1s] { ?x :p ?y }")
    assert (found.into, found.form) == ("out", "graph")


@pytest.mark.parametrize(("items", "into"), [("?x ?p ?y", "out"), ("?x ?y", None)])
def test_three_columns_make_a_stream_of_triples_and_others_do_not(items: str, into: str | None) -> None:
    found = registered(f"REGISTER STREAM out AS SELECT {items} FROM STREAM :s [RANGE 5s STEP 1s] {{ ?x ?p ?y }}")
    assert found.into == into


def test_a_registered_query_makes_no_stream() -> None:
    found = registered("REGISTER QUERY q AS CONSTRUCT { ?x :q ?y } FROM STREAM :s [RANGE 5s STEP 1s] { ?x :p ?y }")
    assert found.into is None


def test_statements_without_a_name_are_numbered_past_the_names_that_are_taken() -> None:
    text = PREFIXES + "REGISTER QUERY query2 AS SELECT * { ?x :p ?y } ; SELECT * { ?x :p ?y } ; SELECT * { ?x :q ?y }"
    assert [one.name for one in sparql.statements(text, "csparql")] == ["query2", "query", "query3"]


def test_prefixes_and_language_travel_with_the_registration() -> None:
    found = registered("REGISTER QUERY q AS SELECT * { ?x :p ?y }")
    assert found.language == "csparql"
    assert ("", "http://e/") in found.prefixes


# --- LUPOS ---


def lupos(text: str) -> Registration:
    return registered(f"SELECT * {text}", "lupos")


def test_lupos_windows_read_the_only_stream_and_the_rest_reads_all_of_it() -> None:
    found = lupos(
        "{ ?x :p ?y WINDOW TYPE SLIDINGTRIPLES 100 { ?x :q ?z WINDOW TYPE SLIDINGDURATION 1500 { ?x :r ?w } } }"
    )
    assert read(found) == [
        Window(Stream(None), unbounded=True),
        Window(Stream(None), count=100),
        Window(Stream(None), width=parse_duration("PT1.5S")),
    ]


@pytest.mark.parametrize(
    ("clause", "every", "arrivals"),
    [("DURATION 1000", Duration(seconds=1), None), ("TRIPLES 100", None, 100)],
)
def test_lupos_says_how_often_to_show_the_result(clause: str, every: Duration | None, arrivals: int | None) -> None:
    found = lupos(f"STREAM INTERMEDIATERESULT {clause} WHERE {{ ?x :p ?y }}")
    assert (found.every, found.arrivals, found.aligned) == (every, arrivals, every is not None)


def test_lupos_without_intermediate_results_answers_at_the_end() -> None:
    assert lupos("WHERE { ?x :p ?y }").arrivals == 0


# --- RSP-QL ---


@pytest.mark.parametrize(("kind", "output"), [("RSTREAM", "snapshot"), ("ISTREAM", "entering"), ("DSTREAM", "exiting")])
def test_rspql_says_which_rows_to_tell(kind: str, output: Output) -> None:
    found = registered(
        f"REGISTER {kind} :out AS CONSTRUCT {{ ?x :q ?y }} FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S] "
        "WHERE { WINDOW :w { ?x :p ?y } }",
        "rspql",
    )
    assert (found.output, found.into, found.name) == (output, "http://e/out", "http://e/out")
    assert read(found) == [window("s", 10)]


def test_rspql_reads_static_knowledge_outside_of_its_windows() -> None:
    found = registered(
        "REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S] "
        "WHERE { ?x :k ?z WINDOW :w { ?x :p ?y } }",
        "rspql",
    )
    assert read(found) == [REPOSITORY, window("s", 10)]
    assert found.into is None


def test_a_window_variable_ranges_over_all_named_windows() -> None:
    found = registered(
        "REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :v ON :s [RANGE PT10S STEP PT5S] "
        "FROM NAMED WINDOW :w ON :s [RANGE PT20S STEP PT5S] WHERE { WINDOW ?w { ?x :p ?y } }",
        "rspql",
    )
    assert read(found) == [window("s", 10), window("s", 20)]
    assert found.columns == ("w", "x", "y")
