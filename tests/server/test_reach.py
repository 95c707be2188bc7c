"""A server with folders of its own: what clients name outside of them stays unread, by whatever door."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.conftest import Served, bike, until

TURTLE = "<http://s/a> <http://s/password> 'hunter2' ."
LOAD = """LOAD STREAM FROM '%s' AS e INTO z MERGE (b:B {id: e.id})
REGISTER QUERY q STARTING AT 2022-01-01T00:00 {
  MATCH (b) WITHIN PT1H ON STREAM z EMIT count(b) AS c SNAPSHOT EVERY PT5M }"""
FROM = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://s/t> [RANGE 1m STEP 1m] FROM <%s> WHERE { ?s ?p ?o }"
NAMED = (
    "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://s/t> [RANGE 1m STEP 1m] FROM NAMED <%s> "
    "WHERE { GRAPH ?g { ?s ?p ?o } }"
)


@pytest.fixture
def bounded(serve: Callable[..., Served], tmp_path: Path) -> Served:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "in" / "ok.ttl").write_text(TURTLE)
    (tmp_path / "secret" / "creds.ttl").write_text(TURTLE)
    (tmp_path / "secret" / "creds.ndjson").write_text("hunter2\n")
    (tmp_path / "in" / "link.ttl").symlink_to("../secret/creds.ttl")
    served = serve(roots=[tmp_path / "in"])
    assert served.http.post("/sessions", json={"name": "s"}).status_code == 201
    assert served.http.post("/sessions/s/streams", json={"name": "http://s/t"}).status_code == 201
    return served


@pytest.mark.parametrize("query", [FROM, NAMED])
@pytest.mark.parametrize(
    "name",
    [
        "{}/secret/creds.ttl",
        "file://{}/in/%2e%2e/secret/creds.ttl",
        "file:{}/in/%2E%2E/secret/creds.ttl",
        "file://{}/in/link.ttl",
        "file://{}/in/%2e%2e/secret/cred.ttl",
        "http://127.0.0.1:9/a.ttl",
    ],
)
def test_a_query_does_not_read_a_graph_outside(bounded: Served, tmp_path: Path, query: str, name: str) -> None:
    for action in ("", "/check"):
        asked = {"text": query % name.format(tmp_path), "language": "csparql"}
        answer = bounded.http.post(f"/sessions/s/queries{action}", json=asked)
        assert answer.status_code == 403 or (action == "/check" and answer.json()["diagnostics"]), answer.text
        assert "SRV-021" in answer.text
        assert "did you mean" not in answer.text
        assert "hunter2" not in answer.text


@pytest.mark.parametrize("query", [FROM, NAMED])
def test_a_query_reads_a_graph_inside(bounded: Served, tmp_path: Path, query: str) -> None:
    text = query % f"file://{tmp_path}/in/ok%2ettl"
    answer = bounded.http.post("/sessions/s/queries", json={"text": text, "language": "csparql"})
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("address", ["/etc/passwd", "file://{}/in/%2e%2e/secret/creds.ndjson", "{}/in/../secret/*"])
def test_neither_a_stream_nor_a_load_stream_reads_outside(bounded: Served, tmp_path: Path, address: str) -> None:
    place = address.format(tmp_path)
    answer = bounded.http.post("/sessions/s/streams", json={"name": "x", "address": place})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "SRV-021")
    answer = bounded.http.post("/sessions/s/queries", json={"text": LOAD % place, "language": "seraph"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "SRV-021")


def test_a_link_in_a_followed_folder_is_set_aside(bounded: Served, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "events"
    folder.mkdir()
    (folder / "a.ndjson").symlink_to(tmp_path / "secret" / "creds.ndjson")
    (folder / "b.ndjson").write_text(json.dumps(bike(1, "2022-10-14T14:45:00Z")) + "\n")
    made = bounded.http.post("/sessions/s/streams", json={"name": "f", "address": str(folder), "follow": True})
    assert made.status_code == 201, made.text
    window = "MATCH (b) WITHIN PT1H ON STREAM f EMIT b.id AS i SNAPSHOT EVERY PT1M"
    text = f"REGISTER QUERY q STARTING AT 2022-10-14T14:45 {{ {window} }}"
    assert bounded.http.post("/sessions/s/queries", json={"text": text}).status_code == 201
    until(lambda: bounded.http.get("/sessions/s/streams/f").json()["malformed"] == 1)
    letter = bounded.http.get("/sessions/s/streams/f/malformed").text
    assert "outside of the folders that this server may read" in letter
    assert "hunter2" not in letter
    until(lambda: bounded.http.get("/sessions/s/streams/f").json()["events"] == 1)


def test_clients_do_not_send_the_environment_of_the_server_away(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "hunter2")
    assert served.http.post("/sessions", json={"name": "s"}).status_code == 201
    for address in ("mqtt://bob:${env:OWN}@127.0.0.1:9/t", "http+items://127.0.0.1:9/?keywords=a&app-id=OWN"):
        answer = served.http.post("/sessions/s/streams", json={"name": "x", "address": address})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "SRV-021")
        load = served.http.post("/sessions/s/queries", json={"text": LOAD % address, "language": "seraph"})
        assert (load.status_code, load.json()["error"]["code"]) == (403, "SRV-021")
        assert "hunter2" not in answer.text + load.text


def test_a_password_is_masked_wherever_it_is_shown(served: Served) -> None:
    assert served.http.post("/sessions", json={"name": "s"}).status_code == 201
    address = "mqtt://bob:hunter2@127.0.0.1:9/t"
    made = served.http.post("/sessions/s/streams", json={"name": "x", "address": address})
    shown = [made.text, served.http.get("/sessions/s/streams").text, served.http.get("/sessions/s").text]
    refused = served.http.post("/sessions/s/streams", json={"name": "y", "address": f"{address}?quos=1"})
    explained = served.http.post("/sessions/s/queries/explain", json={"text": LOAD % address, "language": "seraph"})
    metrics = served.http.get(f"{served.address}/metrics")
    assert (made.status_code, refused.status_code, explained.status_code) == (201, 422, 200)
    assert "mqtt://bob:***@127.0.0.1:9/t" in made.text
    assert "mqtt://bob:***@127.0.0.1:9/t" in explained.text
    assert not any("hunter2" in text for text in (*shown, refused.text, explained.text, metrics.text))
