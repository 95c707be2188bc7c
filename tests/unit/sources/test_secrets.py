"""An address refers to its secrets: they are looked up when a client is made, and shown nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import EngineError, StreamError
from anabranch.model.masking import without_password
from anabranch.sinks.webhook import Webhook
from anabranch.sources.address import parse_address, refuse_beyond
from anabranch.sources.kafka import KafkaSource
from anabranch.sources.reach import OutOfReach, Reach
from anabranch.sources.receivers.open import open_receiver
from anabranch.sources.secrets import revealed

SECRET = "p@ss/w:rd&?#"
SERVER = Reach(None, ("GIVEN",))


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIVEN", "OWN", "ANABRANCH_SECRET_BROKER"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("EMPTY", "")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b" / "password"
    path.parent.mkdir()
    path.write_text(f"{SECRET}\n")
    return path


@pytest.mark.parametrize("place", ["mqtt://bob:{}@h:1/a/#?qos=0", "mqtt://h:1/a/#?user=bob&password={}&qos=0"])
@pytest.mark.parametrize("kind", ["env", "file"])
def test_a_password_is_looked_up_when_a_client_is_made(place: str, kind: str, file: Path) -> None:
    reference = "${env:OWN}" if kind == "env" else f"${{file:{file}}}"
    address = parse_address(place.format(reference))
    assert (address.host, address.port, address.path) == ("h", 1, "a/#")
    assert (address.options["password"], address.options["qos"]) == (reference, "0")
    assert reference in address.shown
    receiver: Any = open_receiver(address)
    assert (receiver._user, receiver._password) == ("bob", SECRET)
    assert SECRET not in receiver.name


def test_a_key_in_what_is_asked_of_a_web_service_is_encoded() -> None:
    receiver: Any = open_receiver(parse_address("http+poll://bob:${env:OWN}@h/x?query=n%3D1%26key%3D${env:OWN}"))
    assert receiver._url == "http://bob:p%40ss%2Fw%3Ard%26%3F%23@h/x?n=1&key=p%40ss%2Fw%3Ard%26%3F%23"
    assert SECRET not in receiver.name
    assert "p%40ss" not in receiver.name


def test_kafka_carries_the_reference_and_its_client_the_secret() -> None:
    source = KafkaSource.from_address("s", parse_address("kafka://bob:${env:OWN}@h/t?rdkafka.ssl.key.pem=${env:OWN}"))
    travelled = pickle.loads(pickle.dumps(source))
    assert SECRET.encode() not in pickle.dumps(source)
    settings = travelled.topic.client_settings()
    assert (settings["sasl.password"], settings["ssl.key.pem"]) == (SECRET, SECRET)
    other = KafkaSource.from_address("s", parse_address("kafka://h/t?rdkafka.client.id=${env:OWN}"))
    assert other.topic.client_settings()["client.id"] == "${env:OWN}"  # which brokers log


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:MISSING}", r"\$\{env:MISSING\}: there is no such variable in the environment"),
        ("${env:EMPTY}", r"there is no such variable"),
        ("${file:/nowhere}", r"\$\{file:/nowhere\}: No such file"),
        ("${file:/dev/null}", r"is empty"),
    ],
)
def test_what_cannot_be_looked_up_is_said(text: str, reason: str) -> None:
    with pytest.raises(StreamError, match=reason):
        revealed(text)


@pytest.mark.parametrize("text", ["$OWN", "${OWN}", "${env:}", "$${env OWN}", "{env:OWN}"])
def test_other_texts_stay_what_they_are(text: str) -> None:
    assert revealed(text) == text


@pytest.mark.parametrize("name", ["GIVEN", "ANABRANCH_SECRET_BROKER"])
def test_clients_of_a_server_name_the_variables_that_are_there_for_them(name: str) -> None:
    address = parse_address(f"mqtt://bob:${{env:{name}}}@h/t")
    refuse_beyond(address, SERVER)
    receiver: Any = open_receiver(address, reach=SERVER)
    assert receiver._password == SECRET


@pytest.mark.parametrize(
    "text",
    [
        "mqtt://bob:${env:OWN}@h/t",
        "mqtt://h/t?user=bob&password=x${env:OWN}",
        "kafka://bob:${env:OWN}@h/t",
        "http+poll://h/?query=a%3D${env:OWN}",
        "ws://h/?subscribe=${env:OWN}",
        "http+items://h/?keywords=a&app-id=OWN",
    ],
)
def test_clients_of_a_server_do_not_read_its_environment(text: str) -> None:
    with pytest.raises(OutOfReach, match="the variable OWN of this server is not there for addresses"):
        refuse_beyond(parse_address(text), SERVER)
    with pytest.raises(OutOfReach):
        revealed("${env:OWN}", SERVER)


def test_a_webhook_takes_references_too(file: Path) -> None:
    class Ledger:
        def get(self, key: str) -> object:
            return None

        def put(self, key: str, value: object) -> None: ...

    sink = Webhook("http://h/x?key=${env:OWN}", token=f"${{file:{file}}}")
    sink.open(Ledger())
    assert sink._headers["Authorization"] == f"Bearer {SECRET}"
    assert sink._query == "key=p%40ss%2Fw%3Ard%26%3F%23"
    with pytest.raises(EngineError, match="no such variable"):
        Webhook("http://h/x", token="${env:MISSING}").open(Ledger())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://me:s3:cret@h/t", "mqtt://me:***@h/t"),
        ("mqtt://me:${env:A}@h/t", "mqtt://me:${env:A}@h/t"),
        ("mqtt://me:${file:/run/a}@h/t", "mqtt://me:${file:/run/a}@h/t"),
        ("mqtt://me:x${file:/run/a}@h/t", "mqtt://me:***@h/t"),
        ("kafka://h/t?rdkafka.ssl.key.password=a&x=1", "kafka://h/t?rdkafka.ssl.key.password=***&x=1"),
        ("kafka://h/t?rdkafka.ssl.key.pem=a%0Ab", "kafka://h/t?rdkafka.ssl.key.pem=***"),
        (
            "http+poll://h/?key=id&query=n%3D1%26api_key%3Dabc%26m%3D2",
            "http+poll://h/?key=id&query=n%3D1%26api_key%3D***%26m%3D2",
        ),
        ("http+poll://h/?query=token%3Dabc", "http+poll://h/?query=token%3D***"),
        ("https://h/x?access_token=abc&b=1", "https://h/x?access_token=***&b=1"),
        ("http+poll://h/?every=5&query=n%3D1", "http+poll://h/?every=5&query=n%3D1"),
        ("/data/my:file@x.ndjson", "/data/my:file@x.ndjson"),
        ("s3://key:secret@bucket/x", "s3://key:***@bucket/x"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert without_password(text) == shown
