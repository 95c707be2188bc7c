"""Addresses: what each part is, and what is said when one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.errors import StreamError
from anabranch.sources.address import Address, parse_address, refuse_unknown
from anabranch.sources.following import FollowedFiles
from anabranch.sources.generators import GeneratorSource
from anabranch.sources.open import open_source


@pytest.mark.parametrize(
    "text",
    [
        "events.ndjson",
        "./a b/ü.ndjson",
        "C:\\data\\events.ndjson",
        "C:/data/events.ndjson",
        "data/*.parquet",
        "what?.ndjson",
        "2022-10-14T14:45.ndjson",
        "bikes:today.ndjson",
        "a@b,c#d.json",
    ],
)
def test_what_has_no_scheme_is_a_path_as_it_is_written(text: str) -> None:
    address = parse_address(text)
    assert address == Address("file", path=text, text=text)
    assert address.is_files
    assert not address.is_pushed


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///data/events.ndjson", "/data/events.ndjson"),
        ("file://localhost/data/a%20b.ndjson", "/data/a b.ndjson"),
        ("FILE:///data/%C3%BC.ndjson", "/data/ü.ndjson"),
        ("file:///C:/data", "C:/data"),
    ],
)
def test_file_addresses_are_paths_without_percent_signs(text: str, path: str) -> None:
    assert parse_address(text).path == path


@pytest.mark.parametrize("text", ["s3://bucket/a*.parquet?region=eu-west-1", "hdfs://host:9000/x", "gs://b/x"])
def test_remote_file_systems_keep_their_whole_address(text: str) -> None:
    address = parse_address(text)
    assert (address.path, address.options, address.is_files) == (text, {}, True)


SERVERS = [
    ("kafka://broker/bikes", "kafka", "broker", None, "bikes", {}),
    ("kafka://broker:9093/bikes?from=latest", "kafka", "broker", 9093, "bikes", {"from": "latest"}),
    ("kafka://a:9092,b/bikes", "kafka", "a:9092,b", None, "bikes", {}),
    ("kafka://[::1]:9092/bikes", "kafka", "::1", 9092, "bikes", {}),
    ("KAFKA://h/t?from=2022-10-14T14:45:00+02:00", "kafka", "h", None, "t", {"from": "2022-10-14T14:45:00+02:00"}),
    ("mqtt://h/city/+/bikes/#?qos=1", "mqtt", "h", None, "city/+/bikes/#", {"qos": "1"}),
    ("mqtt://h//rooted", "mqtt", "h", None, "/rooted", {}),
    ("mqtt://me:a%40b:c@h:1884/t", "mqtt", "h", 1884, "t", {"user": "me", "password": "a@b:c"}),
    ("mqtt://me@h/t", "mqtt", "h", None, "t", {"user": "me"}),
    ("mqtts://h/t", "mqtts", "h", None, "t", {}),
    ("ws://h:80/live?subscribe=%7B%22a%22:1%7D", "ws", "h", 80, "/live", {"subscribe": '{"a":1}'}),
    ("wss://h", "wss", "h", None, "", {}),
    ("https+items://h/find?keywords=road bike", "https+items", "h", None, "/find", {"keywords": "road bike"}),
    ("http+poll://h/api/v1?every=PT5S&items=a.b", "http+poll", "h", None, "/api/v1", {"every": "PT5S", "items": "a.b"}),
    ("https+sse://h/events", "https+sse", "h", None, "/events", {}),
    ("socket://127.0.0.1:9999?listen=1", "socket", "127.0.0.1", 9999, "", {"listen": "1"}),
    ("gen:bikes?seed=7&rate=1000", "gen", "", None, "bikes", {"seed": "7", "rate": "1000"}),
    ("gen://graph", "gen", "", None, "graph", {}),
    ("-", "-", "", None, "", {}),
]


@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "path", "options"), SERVERS, ids=[one[0] for one in SERVERS]
)
def test_an_address_falls_into_its_parts(
    text: str, scheme: str, host: str, port: int | None, path: str, options: dict[str, str]
) -> None:
    address = parse_address(text)
    assert address == Address(scheme, host, port, path, options, text)
    assert address.is_pushed == (scheme not in ("gen", "kafka"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an address is empty"),
        ("a\0b", "null character"),
        ("kafak://h/t", "kafak://h/t: nothing is read from kafak://\nhint: did you mean kafka://localhost:9092/bikes?"),
        ("ftp://h/t", "There are paths, -, file://, gen:, kafka://, http+poll://"),
        ("kafka:h/t", "after kafka: come two slashes\nhint: write it like kafka://localhost:9092/bikes"),
        ("kafka://h", "kafka://h: it names no topic"),
        ("kafka:///t", "it names no host"),
        ("kafka://h:no/t", "`no` is no port\nhint: a port is a number from 1 to 65535"),
        ("kafka://h:65536/t", "`65536` is no port"),
        ("kafka://h:٣/t", "`٣` is no port"),
        ("kafka://a,,b/t", "`` is no host"),
        ("kafka://::1/t", "`::1` is no host\nhint: write host, host:port or [IPv6]:port"),
        ("mqtt://a,b/t", "it names several hosts"),
        ("mqtt://me:secret@h/t?user=you", "mqtt://me:***@h/t?user=you: the user is named twice"),
        ("socket://h", "it needs a port"),
        ("socket://h:1/x", "a socket has no path"),
        ("kafka://h/t?from", "`from` is no option\nhint: write options as ?name=value"),
        ("kafka://h/t?=1", "`=1` is no option"),
        ("kafka://h/t?from=a&from=b", "the option from is given twice"),
        ("file://data/x", "`data` would be another machine\nhint: write file:///data/x"),
        ("file://", "it names no file"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(StreamError) as refused:
        parse_address(text)
    assert message in str(refused.value)


def test_a_password_is_never_shown() -> None:
    assert parse_address("mqtt://me:s3:cret@h/t").shown == "mqtt://me:***@h/t"
    shown = parse_address("kafka://h/t?rdkafka.sasl.password=s3cret&from=latest").shown
    assert shown == "kafka://h/t?rdkafka.sasl.password=***&from=latest"
    with pytest.raises(StreamError) as refused:
        parse_address("mqtt://me:s3cret@h:no/t")
    assert "s3cret" not in str(refused.value)


def test_an_unknown_option_is_refused_with_those_that_exist() -> None:
    known = {"rate": "events per second", "seed": "a number"}
    refuse_unknown("gen:x", {"rate": "1"}, known)
    with pytest.raises(StreamError) as refused:
        refuse_unknown("gen:x", {"rates": "1"}, known)
    assert str(refused.value) == (
        "gen:x: there is no option rates\n"
        "hint: did you mean rate?  There are\n  rate: events per second\n  seed: a number"
    )


def test_an_address_opens_its_source(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"at": 1}\n')
    files = open_source("s", f"file://{tmp_path}/a.ndjson", follow=True, records_are_events=False)
    assert files == FollowedFiles("s", f"{tmp_path}/a.ndjson", records_are_events=False)
    made = open_source("s", "gen:bikes?count=3")
    assert isinstance(made, GeneratorSource)
    assert (made.stream, made.finite) == ("s", True)
    with pytest.raises(StreamError, match="only files are followed"):
        open_source("s", "gen:bikes", follow=True)
    with pytest.raises(StreamError, match="needs a receiver"):
        open_source("s", "socket://localhost:1")
