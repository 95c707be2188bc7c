"""Which streams a run reads: those that its queries name, by whatever name a user gives them."""

from __future__ import annotations

import pytest

from anabranch.errors import EngineError, StreamError
from anabranch.sources.address import parse_address
from anabranch.sources.kafka_client import bootstrap_of
from anabranch.sources.stream_specs import resolved_names, stream_specs, streams_read
from anabranch.syntax.languages import Script, script

TOLLS, CARS = "http://streams.org/tolls.trdf", "http://streams.org/cars#"


def csparql(*streams: str, name: str = "q", made: bool = False) -> Script:
    clauses = " ".join(f"FROM STREAM <{stream}> [RANGE 5m STEP 1m]" for stream in streams)
    head = "STREAM" if made else "QUERY"
    form = "CONSTRUCT { ?s ?p ?o }" if made else "SELECT ?s"
    return script(f"REGISTER {head} {name} AS {form} {clauses} WHERE {{ ?s ?p ?o }}", f"{name}.csparql")


def seraph(stream: str) -> Script:
    text = f"REGISTER QUERY n STARTING AT NOW {{ MATCH (n) WITHIN PT5M ON STREAM {stream} EMIT n SNAPSHOT EVERY PT1M }}"
    return script(text, "n.seraph")


@pytest.mark.parametrize(
    ("given", "asked", "found"),
    [
        ([TOLLS], [TOLLS], {TOLLS: TOLLS}),
        (["tolls"], [TOLLS], {"tolls": TOLLS}),
        (["cars", "tolls"], [TOLLS, CARS], {"cars": CARS, "tolls": TOLLS}),
        (["events"], [TOLLS], {"events": TOLLS}),
        (["events", "tolls"], [TOLLS, CARS], {"events": "events", "tolls": TOLLS}),
        (["events"], [TOLLS, CARS], {"events": "events"}),
        (["tolls"], [TOLLS, "http://elsewhere.org/tolls"], {"tolls": "tolls"}),
        (["rides"], ["rides"], {"rides": "rides"}),
        (["rides"], ["rides", TOLLS], {"rides": "rides"}),
        (["tolls"], ["tolls", TOLLS], {"tolls": "tolls"}),
        (["events", TOLLS], [TOLLS], {"events": "events", TOLLS: TOLLS}),
        (["http://other.org/"], [TOLLS], {"http://other.org/": "http://other.org/"}),
        (["tolls"], ["urn:city:tolls"], {"tolls": "urn:city:tolls"}),
        (["events"], ["rides"], {"events": "events"}),
        ([], [TOLLS], {}),
    ],
    ids=[
        *("the IRI itself", "its last part", "last parts of two", "the only name for the only IRI"),
        *("one fits, the other may be any", "two could be meant", "two end alike", "a plain name"),
        *("a name that a query knows", "such a name though an IRI ends like it", "the IRI is given already"),
        *("another IRI", "a URN", "nothing is an IRI", "nothing given"),
    ],
)
def test_a_short_name_stands_for_an_iri_where_only_one_can_be_meant(
    given: list[str], asked: list[str], found: dict[str, str]
) -> None:
    assert resolved_names(given, asked) == found


def test_streams_are_those_that_queries_of_all_languages_name_each_once() -> None:
    assert streams_read([csparql(TOLLS, CARS), seraph("rides"), csparql(CARS, name="r")]) == [TOLLS, CARS, "rides"]


def test_a_stream_that_a_query_makes_is_not_spec_from_outside() -> None:
    made, reader = csparql(TOLLS, name="made", made=True), csparql("made", name="reader")
    assert streams_read([reader, made]) == [TOLLS]
    [spec] = stream_specs([("events", "a.tsv")], [reader, made])
    assert spec.name == TOLLS, "the only name is for the only stream that is left"


def test_a_stream_is_read_under_the_name_that_the_queries_know() -> None:
    [spec] = stream_specs([("tolls", "a.tsv"), ("tolls", "b.tsv")], [csparql(TOLLS)])
    assert (spec.name, spec.addresses) == (TOLLS, ("a.tsv", "b.tsv"))
    assert spec.decoding.stream == TOLLS
    assert spec.records_are_events


def test_one_stream_for_a_seraph_and_a_csparql_query_that_call_it_alike() -> None:
    by_iri = seraph(f"`{TOLLS}`")
    assert [one.name for one in stream_specs([("tolls", "a.tsv")], [by_iri, csparql(TOLLS)])] == [TOLLS]
    apart = stream_specs([("tolls", "a.tsv"), (TOLLS, "b.tsv")], [seraph("tolls"), csparql(TOLLS)])
    assert [(one.name, one.addresses) for one in apart] == [("tolls", ("a.tsv",)), (TOLLS, ("b.tsv",))]


LOAD = "LOAD STREAM FROM '{uri}' AS r AT datetime(r.at) INTO rides\nCREATE (:A {{x: r.x}})\n"


def test_load_stream_reads_what_has_its_name_or_its_address_and_else_what_its_own_address_names() -> None:
    text = script(LOAD.format(uri="raw.ndjson"), "queries/load.seraph")
    assert [one.addresses for one in stream_specs([], [text])] == [("queries/raw.ndjson",)]
    assert [one.addresses for one in stream_specs([("rides", "b.ndjson")], [text])] == [("b.ndjson",)]
    [spec] = stream_specs([("raw.ndjson", "c.ndjson")], [text])
    assert (spec.name, spec.addresses, spec.records_are_events) == ("rides", ("c.ndjson",), False)


def test_two_load_streams_into_one_name_are_refused() -> None:
    texts = [script(LOAD.format(uri=f"{name}.ndjson"), f"{name}.seraph") for name in "ab"]
    with pytest.raises(EngineError, match="two LOAD STREAM statements make the stream `rides`; name one with INTO"):
        stream_specs([], texts)


LISTING_4 = """
LOAD STREAM FROM 'kafka:///bikes.stream' AS event
MERGE (b:Bike {id: event.bike_id})
"""


@pytest.mark.parametrize("name", ["bikes", "bikes.stream", "kafka:///bikes.stream"])
def test_a_source_without_a_broker_is_replaced_by_name_by_last_part_and_by_address(name: str) -> None:
    [spec] = stream_specs([(name, "rec.ndjson")], [script(LISTING_4, "listing4.seraph")])
    assert (spec.name, spec.addresses, spec.records_are_events) == ("bikes", ("rec.ndjson",), False)


def test_a_source_without_a_broker_is_read_from_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [script(LISTING_4, "listing4.seraph")]
    monkeypatch.delenv("ANABRANCH_KAFKA", raising=False)
    with pytest.raises(StreamError, match=r"it names no host\nhint: .* with --kafka-broker or ANABRANCH_KAFKA"):
        stream_specs([], texts)
    monkeypatch.setenv("ANABRANCH_KAFKA", "one:1234,two")
    [spec] = stream_specs([], texts)
    address = parse_address(spec.addresses[0])
    assert (bootstrap_of(address), address.path) == ("one:1234,two:9092", "bikes.stream")
    assert address.shown == "kafka://one:1234,two/bikes.stream"
