"""Kafka as a source, against librdkafka's mock brokers over the real protocol."""

from __future__ import annotations

import itertools
import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.support.kafka_mock import KafkaMock, kafka_mock

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock
from anabranch.model.terms import Blank
from anabranch.sources import kafka, kafka_client
from anabranch.sources.address import parse_address
from anabranch.sources.base import Decoding, Limit, Offset, Piece, as_event
from anabranch.sources.kafka import KafkaSource
from anabranch.sources.kafka_properties import ALLOWED
from anabranch.syntax.seraph import ingestions

confluent_kafka = pytest.importorskip("confluent_kafka")

ALL = Limit()
_names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaMock]:
    with kafka_mock() as mock:
        yield mock


@pytest.fixture
def topic(brokers: KafkaMock) -> str:
    return brokers.create(next(_names), 3)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for _, reached in [*kafka_client._readers, *kafka_client._admins]:
        kafka_client.forget(reached)


def source(mock: KafkaMock, topic: str, **options: str) -> KafkaSource:
    named = {name.rstrip("_"): text for name, text in options.items()}
    return KafkaSource("bikes", mock.bootstrap, topic, {"timeout": "20", **named})


def fill(mock: KafkaMock, topic: str, partition: int, values: list[Any]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": mock.bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, value if isinstance(value, bytes | None) else json.dumps(value), partition=partition)
    assert producer.flush(20) == 0


def numbered(data: Any, sequence: str) -> Any:
    """A decoder that shows what it was given."""
    return sequence, data


def read(one: KafkaSource, start: Offset, end: Offset, decode: Callable[..., Any] = numbered) -> list[Any]:
    return [record for piece in one.pieces(start, end) for record in read_piece(one, piece, decode)]


def read_piece(one: KafkaSource, piece: Piece, decode: Callable[..., Any] = numbered) -> list[Any]:
    return list(one.read(piece, decode))


def replay(one: KafkaSource, limit: Limit = ALL) -> list[list[Any]]:
    """What each batch brings, until nothing comes."""
    at, batches = one.begin(), []
    while (end := one.ahead(at, limit)) != at:
        batches.append(read(one, at, end))
        at = end
    return batches


# --- what is read -----------------------------------------------------------------------------------------------------


def test_every_record_comes_once_and_each_partition_in_its_order(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, 2, 3])
    fill(brokers, topic, 2, ["ä", "日本"])
    assert replay(source(brokers, topic)) == [[("0-0", 1), ("0-1", 2), ("0-2", 3), ("2-0", "ä"), ("2-1", "日本")]]


def test_records_that_are_events_become_events(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [{"at": 1000, "nodes": [{"id": "Zürich"}]}])
    one = source(brokers, topic)
    (event,) = read(one, one.begin(), one.ahead(one.begin(), ALL), as_event)
    assert isinstance(event, Event)
    assert (event.event_time, event.nodes[0].id) == (1_000_000, "Zürich")


def test_records_may_be_timed_triples_and_each_has_its_own_blank_nodes(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [b"1\t<a:a> <a:p> _:b .", {"at": 2, "triples": [["a:a", "a:p", "_:b"]]}])
    one = source(brokers, topic)
    decode = Decoding("s").decoder()
    events = read(one, one.begin(), one.ahead(one.begin(), ALL), decode)
    assert [event.triples[0].object for event in events if isinstance(event, Event)] == [
        Blank("b", "s.0-0"),
        Blank("b", "s.0-1"),
    ]


def test_an_empty_topic_stays_where_it_is(brokers: KafkaMock, topic: str) -> None:
    one = source(brokers, topic)
    start = one.begin()
    assert start == {"partitions": {"0": 0, "1": 0, "2": 0}}
    assert one.ahead(start, ALL) is start
    assert one.pieces(start, start) == []
    assert one.splits(start) == ["0", "1", "2"]
    assert not one.finite
    assert not one.ended(start)


def test_what_cannot_be_read_comes_out_in_its_place_with_topic_partition_and_offset(
    brokers: KafkaMock, topic: str
) -> None:
    values = [b'{"at": 1}', b"{", None, b"\xff", b'{"at": NaN}', b"[" * 100_000, b"9" * 5000, b"", b'{"at": 2}']
    fill(brokers, topic, 1, values)
    one = source(brokers, topic)
    records = read(one, one.begin(), one.ahead(one.begin(), ALL), as_event)
    assert [isinstance(record, Event) for record in records] == [True, *[False] * 6, True]
    malformed = [record for record in records if isinstance(record, MalformedRecord)]
    place = f"{topic}[1]@"
    assert [record.reason.removeprefix(place).split(" (")[0] for record in malformed] == [
        "1: not JSON: Expecting property name enclosed in double quotes",
        "3: not UTF-8",
        "4: NaN is no number that JSON knows",
        "5: nested too deeply",
        "6: not JSON: a number with too many digits",
        "7: not JSON: Expecting value",
    ]
    assert (malformed[0].raw, malformed[1].raw) == ("{", "\N{REPLACEMENT CHARACTER}")


def test_many_plain_records_come_as_blocks_and_the_others_in_their_places(brokers: KafkaMock, topic: str) -> None:
    values: list[Any] = [{"at": number, "nodes": [{"id": number}]} for number in range(200)]
    values[40], values[90], values[130] = b"{", None, {"at": 1, "triples": [["a:a", "a:p", "_:b"]]}
    fill(brokers, topic, 1, values)
    one = source(brokers, topic)
    pieces = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    packed = [record for piece in pieces for record in one.read_packed(piece, as_event)]
    assert any(isinstance(record, GraphBlock) for record in packed)
    singly = [event for record in packed for event in (record if isinstance(record, GraphBlock) else [record])]
    assert list(map(repr, singly)) == list(map(repr, read(one, one.begin(), one.ahead(one.begin(), ALL), as_event)))
    assert len(singly) == 199


def test_many_records_that_are_mapped_come_as_blocks_and_the_others_in_their_places(
    brokers: KafkaMock, topic: str
) -> None:
    values: list[Any] = [{"at": number, "user": number % 7} for number in range(300)]
    values[40], values[90], values[130], values[200] = b"{", None, {"user": 1}, b'{"at": 1,\n"user": 2}'
    fill(brokers, topic, 1, values)
    one = source(brokers, topic)
    (load,) = ingestions("LOAD STREAM FROM 'kafka:///t' AS r CREATE (:A {x: r.user})")
    decode = Decoding("s", load).decoder()
    pieces = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    packed = [record for piece in pieces for record in one.read_packed(piece, decode)]
    assert any(isinstance(record, GraphBlock) for record in packed)
    singly = [event for record in packed for event in (record if isinstance(record, GraphBlock) else [record])]
    assert list(map(repr, singly)) == list(map(repr, read(one, one.begin(), one.ahead(one.begin(), ALL), decode)))
    assert len(singly) == 299


@pytest.mark.parametrize("odd", [b"", b'{"at": 1,\n"nodes": []}'])
def test_records_that_are_no_lines_are_read_one_by_one(brokers: KafkaMock, topic: str, odd: bytes) -> None:
    fill(brokers, topic, 1, [b'{"at": 1, "nodes": []}'] * 100 + [odd])
    one = source(brokers, topic)
    (piece,) = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    assert list(map(repr, one.read_packed(piece, as_event))) == list(map(repr, one.read(piece, as_event)))


def test_a_record_that_the_decoder_skips_or_refuses_does_not_end_the_reading(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [{}, {"at": 1}, {"at": 2}])
    one = source(brokers, topic)

    def decode(data: Any, sequence: str) -> Event | None:
        return None if data == {"at": 1} else as_event(data, sequence)

    refused, event = read(one, one.begin(), one.ahead(one.begin(), ALL), decode)
    assert str(refused) == f"{topic}[0]@0: at: missing"
    assert event.event_time == 2000


def test_transaction_markers_leave_gaps_that_hold_nothing_up(brokers: KafkaMock, topic: str) -> None:
    settings = {"bootstrap.servers": brokers.bootstrap, "transactional.id": topic, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(20)
    for value in ("1", "2"):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.commit_transaction(20)
    one = source(brokers, topic)
    end = one.ahead(one.begin(), ALL)
    assert end["partitions"]["0"] == 4
    assert read(one, one.begin(), end) == [("0-0", 1), ("0-2", 2)]
    only_markers = [Piece("bikes", "0", at, {"partition": 0, "start": at, "end": at + 1}) for at in (1, 3)]
    assert [list(one.read(piece, numbered)) for piece in only_markers] == [[], []]


# --- batches and restarts ---------------------------------------------------------------------------------------------


def test_a_limit_is_shared_fairly_and_short_partitions_leave_their_rest_to_the_others(
    brokers: KafkaMock, topic: str
) -> None:
    fill(brokers, topic, 0, [0] * 2)
    fill(brokers, topic, 1, [1] * 20)
    fill(brokers, topic, 2, [2] * 30)
    one = source(brokers, topic)
    end = one.ahead(one.begin(), Limit(records=12))
    assert end["partitions"] == {"0": 2, "1": 5, "2": 5}
    assert [len(batch) for batch in replay(one, Limit(records=12))] == [12, 12, 12, 12, 4]


def test_a_limit_of_one_record_starves_no_partition(brokers: KafkaMock, topic: str) -> None:
    for partition in range(3):
        fill(brokers, topic, partition, [partition] * 2)
    values = [value for batch in replay(source(brokers, topic), Limit(records=1)) for _, value in batch]
    assert sorted(values[:3]) == [0, 1, 2]
    assert len(values) == 6


def test_a_limit_of_bytes_holds_for_large_records(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, ["x" * 998] * 1500)
    fill(brokers, topic, 1, ["x" * 998] * 1500)
    batches = replay(source(brokers, topic), Limit(size=200_000))
    assert {len(batch) for batch in batches} == {200}
    assert len(batches) == 15


def test_a_range_is_cut_into_pieces_that_can_be_read_in_any_order_and_again(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_PIECE_RECORDS", 4)
    fill(brokers, topic, 0, list(range(10)))
    fill(brokers, topic, 1, [10])
    one = source(brokers, topic)
    pieces = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    assert [(piece.stream, piece.split, piece.order) for piece in pieces] == [
        ("bikes", "0", 0),
        ("bikes", "0", 4),
        ("bikes", "0", 8),
        ("bikes", "1", 0),
    ]
    expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [10]]
    for order in (pieces, pieces[::-1], pieces):
        found = {(piece.split, piece.order): [value for _, value in read_piece(one, piece)] for piece in order}
        assert [found[piece.split, piece.order] for piece in pieces] == expected


def test_readings_that_take_turns_and_readings_that_are_given_up_do_not_disturb_each_other(
    brokers: KafkaMock, topic: str
) -> None:
    for partition in range(3):
        fill(brokers, topic, partition, list(range(5)))
    one = source(brokers, topic)
    pieces = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    given_up = one.read(pieces[0], numbered)
    next(given_up)
    turns = list(zip(*(one.read(piece, numbered) for piece in pieces), strict=True))
    given_up.close()  # type: ignore[attr-defined]
    assert turns == [tuple((f"{partition}-{at}", at) for partition in range(3)) for at in range(5)]
    assert len(list(one.read(pieces[0], numbered))) == 5


def test_a_process_opens_one_consumer_for_many_readings(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []

    class Counted(kafka_client.Reader):
        def __init__(self, reached: kafka_client.Topic) -> None:
            opened.append(1)
            super().__init__(reached)

    monkeypatch.setattr(kafka_client, "Reader", Counted)
    for partition in range(3):
        fill(brokers, topic, partition, [1, 2])
    assert len(replay(source(brokers, topic), Limit(records=1))) == 6
    assert len(opened) == 1


def test_an_offset_that_went_through_json_is_all_that_a_restart_needs(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, 2])
    before = source(brokers, topic)
    reached = json.loads(json.dumps(before.ahead(before.begin(), ALL)))
    before.close()
    fill(brokers, topic, 0, [3])
    fill(brokers, topic, 1, [4])
    after = source(brokers, topic, from_="latest")
    assert read(after, reached, after.ahead(reached, ALL)) == [("0-2", 3), ("1-0", 4)]


def test_a_source_travels_to_another_process(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, "ü"])
    one = source(brokers, topic)
    pieces = one.pieces(one.begin(), one.ahead(one.begin(), ALL))
    program = (
        "import pickle, sys; one, pieces = pickle.load(sys.stdin.buffer); "
        "print([(s, d) for piece in pieces for s, d in one.read(piece, lambda data, sequence: (sequence, data))])"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program],
        input=pickle.dumps((one, pieces)),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().strip() == "[('0-0', 1), ('0-1', 'ü')]"


def test_new_partitions_are_picked_up_from_their_first_record(
    brokers: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_LIST_EVERY", 0.0)
    topic = brokers.create(next(_names), 1)
    one = source(brokers, topic, from_="latest")
    start = one.begin()
    # The mock cannot add partitions; a topic made anew that was empty before looks the same.
    brokers.delete(topic)
    brokers.create(topic, 2)
    fill(brokers, topic, 0, [1])
    fill(brokers, topic, 1, [2, 3])
    first = one.ahead(start, ALL)
    second = one.ahead(first, ALL)
    assert one.splits(first) == ["0", "1"]
    assert read(one, start, first) + read(one, first, second) == [("0-0", 1), ("1-0", 2), ("1-1", 3)]
    assert one.ahead(second, ALL) == second


def test_a_worker_that_knew_fewer_partitions_reads_a_new_one(brokers: KafkaMock) -> None:
    topic = brokers.create(next(_names), 1)
    fill(brokers, topic, 0, [1])
    worker = source(brokers, topic)
    pieces = [Piece("bikes", str(number), 0, {"partition": number, "start": 0, "end": 1}) for number in range(2)]
    assert read_piece(worker, pieces[0]) == [("0-0", 1)]
    brokers.delete(topic)
    brokers.create(topic, 2)
    fill(brokers, topic, 1, [2])
    assert read_piece(worker, pieces[1]) == [("1-0", 2)]


# --- where a run begins and ends --------------------------------------------------------------------------------------


def test_until_end_stops_at_what_the_topic_has_when_the_run_begins(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, 2, 3])
    one = source(brokers, topic, until="end")
    start = one.begin()
    assert one.finite
    assert start == {"partitions": {"0": 0, "1": 0, "2": 0}, "until": {"0": 3, "1": 0, "2": 0}}
    fill(brokers, topic, 0, [4])
    fill(brokers, topic, 1, [5])
    half = one.ahead(start, Limit(records=2))
    end = one.ahead(half, ALL)
    assert [one.ended(offset) for offset in (start, half, end)] == [False, False, True]
    assert one.ahead(end, ALL) is end
    assert [value for _, value in read(one, start, end)] == [1, 2, 3]


def test_a_finite_run_over_an_empty_topic_has_ended_at_once(brokers: KafkaMock, topic: str) -> None:
    one = source(brokers, topic, until="end")
    assert one.ended(one.begin())


def test_from_latest_reads_what_comes_after_the_beginning(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, 2])
    one = source(brokers, topic, from_="latest")
    start = one.begin()
    fill(brokers, topic, 0, [3])
    assert read(one, start, one.ahead(start, ALL)) == [("0-2", 3)]


def test_from_an_instant_asks_each_partition_for_it_and_begins_at_the_end_where_nothing_is_later(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(brokers, topic, 0, [1, 2])
    fill(brokers, topic, 1, [1, 2])
    assert source(brokers, topic, from_="2100-01-01").begin() == {"partitions": {"0": 2, "1": 2, "2": 0}}

    real: Any = kafka_client.offsets

    def offsets(reached: Any, numbers: Any, which: Any) -> dict[int, int]:
        # The mock knows no times: this answers for it.
        return real(reached, numbers, which) if isinstance(which, str) else {0: 1, 1: -1, 2: which - 1_665_758_699_999}

    monkeypatch.setattr(kafka_client, "offsets", offsets)
    began = source(brokers, topic, from_="2022-10-14T16:45:00+02:00").begin()
    assert began == {"partitions": {"0": 1, "1": 2, "2": 0}}


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_records_that_retention_removed_are_said_to_be_lost(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, list(range(10)))
    one = source(brokers, topic)
    start = one.begin()
    pieces = one.pieces(start, one.ahead(start, ALL))
    brokers.expire(topic, 0, 5)
    expected = (
        f"kafka://{brokers.bootstrap}/{topic}: offsets 0 to {{}} of partition 0 are gone ({{}}): retention removed "
        "them before they were read, or the topic was made anew\n"
        "hint: begin a new run with from=earliest (what is left), from=latest or from=<instant>"
    )
    with pytest.raises(StreamError) as planning:
        one.ahead(start, ALL)
    assert str(planning.value) == expected.format(5, "the topic begins at 5")
    with pytest.raises(StreamError, match=r"offsets 0 to 10 of partition 0 are gone \(.*out of range"):
        list(one.read(pieces[0], numbered))
    assert source(brokers, topic).begin()["partitions"]["0"] == 5


def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    brokers: KafkaMock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_LIST_EVERY", 0.0)
    fill(brokers, topic, 0, [1, 2, 3])
    one = source(brokers, topic)
    finite = source(brokers, topic, until="end")
    end, pinned = one.ahead(one.begin(), ALL), finite.begin()
    brokers.delete(topic)
    brokers.create(topic, 3)
    for looking, offset in ((one, end), (finite, pinned)):
        with pytest.raises(StreamError, match="the topic ends at 0"):
            looking.ahead(offset, ALL)
    brokers.delete(topic)
    brokers.create(topic, 2)
    with pytest.raises(StreamError, match="has no partition 2 any more"):
        one.ahead({"partitions": {"0": 0, "1": 0, "2": 0}}, ALL)


def test_a_missing_topic_is_named_with_those_that_are_like_it(brokers: KafkaMock) -> None:
    brokers.create("bike-rentals")
    with pytest.raises(StreamError) as error:
        source(brokers, "bike-rental").begin()
    assert str(error.value) == (
        f"kafka://{brokers.bootstrap}/bike-rental: there is no topic `bike-rental`\nhint: did you mean `bike-rentals`?"
    )


def test_a_cluster_without_topics_says_so() -> None:
    with kafka_mock() as mock, pytest.raises(StreamError, match="the cluster has no topics yet"):
        source(mock, "bikes").begin()


def test_a_broker_that_is_not_there_is_named_after_the_deadline() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    one = KafkaSource("bikes", address, "rentals", {"timeout": "1"})
    with pytest.raises(StreamError) as error:
        one.begin()
    assert str(error.value).startswith(f"kafka://{address}/rentals: no answer from {address} within 1 s: ")
    assert "Connection refused" in str(error.value)


def test_a_broker_that_goes_away_ends_planning_and_reading_after_the_deadline_and_may_come_back() -> None:
    with kafka_mock() as mock:
        mock.create("rentals")
        fill(mock, "rentals", 0, [1, 2])
        one = source(mock, "rentals", timeout="1")
        start = one.begin()
        end = one.ahead(start, ALL)
        (piece,) = one.pieces(start, end)
        mock.down()
        with pytest.raises(StreamError, match=r"no answer from .* within 1 s"):
            one.ahead(start, ALL)
        with pytest.raises(StreamError, match=r"no record at rentals\[0\]@0 of 0 to 2"):
            list(one.read(piece, numbered))
        mock.up()
        patient = source(mock, "rentals")
        assert read(patient, start, patient.ahead(start, ALL)) == [("0-0", 1), ("0-1", 2)]


@pytest.mark.parametrize("code", [6, 7, -195], ids=["not the leader", "timed out", "disconnected"])
def test_passing_troubles_of_brokers_are_waited_out(code: int) -> None:
    fetch, list_offsets, metadata = 1, 2, 3
    with kafka_mock() as mock:
        mock.create("rentals", 3)
        fill(mock, "rentals", 0, [1, 2, 3])
        for api_key in (fetch, list_offsets, metadata):
            mock.fail(api_key, code, code)
        assert [value for batch in replay(source(mock, "rentals")) for _, value in batch] == [1, 2, 3]


def test_a_reader_without_the_right_to_read_is_told_at_once() -> None:
    with kafka_mock() as mock:
        mock.create("rentals")
        fill(mock, "rentals", 0, [1])
        one = source(mock, "rentals", timeout="600")
        start = one.begin()
        (piece,) = one.pieces(start, one.ahead(start, ALL))
        mock.fail(1, *[29] * 10)
        with pytest.raises(StreamError, match=r"the broker refuses: .*authorization"):
            list(one.read(piece, numbered))


def test_without_confluent_kafka_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(StreamError) as error:
        KafkaSource("bikes", "localhost:9092", "rentals").begin()
    assert str(error.value) == "reading kafka:// needs confluent-kafka: pip install 'anabranch[kafka]'"


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"form": "latest"}, "there is no option form\nhint: did you mean from?"),
        ({"from": "yesterday"}, "from=`yesterday` is not known\nhint: write earliest, latest, or an instant"),
        ({"until": "now"}, "until=`now` is not known\nhint: until=end"),
        ({"timeout": "soon"}, "timeout=`soon` is no number of seconds"),
        ({"timeout": "-1"}, "timeout=`-1` is no number of seconds"),
        ({"timeout": "nan"}, "timeout=`nan` is no number of seconds"),
        ({"password": "x"}, "a password without a user\nhint: add user=<name>"),
        ({"rdkafka.group.id": "x"}, "rdkafka.group.id cannot be set"),
        ({"rdkafka.auto.offset.reset": "x"}, "rdkafka.auto.offset.reset cannot be set"),
        (
            {"rdkafka.plugin.library.paths": "x.so"},
            "rdkafka.plugin.library.paths cannot be set by an address: it loads code into this process\nhint: ",
        ),
        ({"rdkafka.ssl.engine.location": "x.so"}, "rdkafka.ssl.engine.location cannot be set by an address: it loads"),
        ({"rdkafka.ssl.providers": "x"}, "rdkafka.ssl.providers cannot be set by an address: it loads code"),
        ({"rdkafka.sasl.kerberos.kinit.cmd": "id"}, "rdkafka.sasl.kerberos.kinit.cmd cannot be set by an address: it"),
        ({"rdkafka.sasl.kerberos.keytab": "a; id"}, "rdkafka.sasl.kerberos.keytab=`a; id` becomes part of a command"),
        ({"rdkafka.bootstrap.servers": "evil"}, "rdkafka.bootstrap.servers cannot be set by an address: the brokers"),
        ({"rdkafka.offset.store.path": "/tmp/x"}, "rdkafka.offset.store.path cannot be set by an address"),
        ({"rdkafka.sasl.oauthbearer.assertion.file": "/etc/x"}, "rdkafka.sasl.oauthbearer.assertion.file cannot be"),
        ({"rdkafka.error_cb": "x"}, "rdkafka.error_cb cannot be set by an address"),
        (
            {"rdkafka.securty.protocol": "ssl"},
            "rdkafka.securty.protocol cannot be set by an address\nhint: did you mean rdkafka.security.protocol?",
        ),
    ],
    ids=lambda value: "&".join(value) if isinstance(value, dict) else "",
)
def test_wrong_options_are_refused_before_anything_is_opened(options: Mapping[str, str], reason: str) -> None:
    with pytest.raises(StreamError) as error:
        KafkaSource("bikes", "localhost:9092", "rentals", options)
    assert str(error.value).startswith(f"kafka://localhost:9092/rentals: {reason}")


@pytest.mark.parametrize("topic", ["", "a/b", "rentals?", "ü", "x" * 250])
def test_what_is_no_name_of_a_topic_is_refused(topic: str) -> None:
    with pytest.raises(StreamError, match="topic\nhint: write it like kafka://localhost:9092/bikes"):
        KafkaSource("bikes", "localhost:9092", topic)


def test_a_value_that_librdkafka_does_not_take_is_refused_in_its_words() -> None:
    one = KafkaSource("bikes", "localhost:9092", "rentals", {"rdkafka.security.protocol": "slow"})
    with pytest.raises(StreamError, match=r"refuses its settings: .*Invalid value \"slow\""):
        one.begin()


def test_the_properties_that_may_be_set_are_librdkafkas() -> None:
    unknown = []
    for name in sorted(ALLOWED):
        try:
            confluent_kafka.Producer({name: "?"}).flush(0)
        except confluent_kafka.KafkaException as error:
            if error.args[0].name() == "_INVALID_ARG" and "No such" in error.args[0].str():
                unknown.append(name)
    assert unknown in ([], ["sasl.kerberos.keytab"])  # which a build without Kerberos does not know


def test_passwords_are_not_shown(brokers: KafkaMock, topic: str) -> None:
    options = {"user": "ada", "password": "tops3cret", "timeout": "1"}
    one = KafkaSource("bikes", brokers.bootstrap, topic, options)
    settings = one.topic.client_settings()
    assert (settings["sasl.username"], settings["sasl.password"]) == ("ada", "tops3cret")
    assert (settings["security.protocol"], settings["sasl.mechanism"]) == ("sasl_ssl", "PLAIN")
    assert "tops3cret" not in f"{one.topic!r} {one.topic} {one!r}"
    with pytest.raises(StreamError) as error:
        one.begin()  # the mock speaks no TLS
    assert "tops3cret" not in str(error.value)
    with pytest.raises(StreamError) as error:
        KafkaSource("bikes", "ada:tops3cret@localhost", "rentals")
    assert "tops3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "bootstrap"),
    [
        ("kafka://localhost/rentals", "localhost:9092"),
        ("kafka://localhost:9093/rentals", "localhost:9093"),
        ("kafka://[::1]:9093/rentals", "[::1]:9093"),
        ("kafka://[::1]/rentals", "[::1]:9092"),
        ("kafka://one:9093,two/rentals", "one:9093,two:9092"),
    ],
)
def test_an_address_names_brokers_and_topic(address: str, bootstrap: str) -> None:
    one = KafkaSource.from_address("bikes", parse_address(f"{address}?until=end&rdkafka.client.id=x"))
    assert (one.topic.bootstrap, one.topic.name, one.finite) == (bootstrap, "rentals", True)
    assert one.topic.setting("client.id", "") == "x"


# --- what tools see ---------------------------------------------------------------------------------------------------


def committed(mock: KafkaMock, topic: str, group: str) -> int:
    settings = {"bootstrap.servers": mock.bootstrap, "group.id": group, "log_level": 0}
    consumer = confluent_kafka.Consumer(settings)
    (place,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    return int(place.offset)


def test_a_group_shows_how_far_the_run_is_and_is_never_read(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1, 2, 3])
    one = source(brokers, topic, group="dashboards")
    end = one.ahead(one.begin(), ALL)
    one.commit(end)
    assert committed(brokers, topic, "dashboards") == 3
    assert source(brokers, topic, group="dashboards").begin()["partitions"]["0"] == 0


def test_without_a_group_nothing_is_committed(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1])
    one = source(brokers, topic)
    one.commit(one.ahead(one.begin(), ALL))
    assert committed(brokers, topic, "anabranch") == confluent_kafka.OFFSET_INVALID


def test_a_group_that_cannot_be_written_does_not_end_the_run(
    brokers: KafkaMock, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    one = source(brokers, topic, group="dashboards")
    offset_commit = 8
    brokers.fail(offset_commit, 30)
    one.commit(one.begin())
    assert "the offsets of group `dashboards` could not be told" in caplog.text


def test_the_backlog_counts_records_read_and_in_sight(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, list(range(6)))
    fill(brokers, topic, 1, list(range(4)))
    brokers.expire(topic, 0, 2)
    one = source(brokers, topic)
    start = one.begin()
    half = one.ahead(start, Limit(records=3))
    shown = [one.backlog(offset) for offset in (start, half, one.ahead(half, ALL))]
    assert [(one.done, one.total) for one in shown] == [(0, 8), (3, 8), (8, 8)]
    assert (source(brokers, topic).backlog(start).done, source(brokers, topic).backlog(start).total) == (0, 8)


def test_a_source_that_was_closed_opens_again_when_it_is_asked(brokers: KafkaMock, topic: str) -> None:
    fill(brokers, topic, 0, [1])
    one = source(brokers, topic)
    one.begin()
    one.close()
    one.close()
    assert replay(one) == [[("0-0", 1)]]
