"""Whatever is sent, the server says what is wrong with it and lives."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.conftest import BUSY, COUNTED, Served, bike, minutes, until

from anabranch.engine.query import ContinuousQuery
from anabranch.formats.events import event_from_dict
from anabranch.formats.parquet import write_parquet
from anabranch.server.limits import Limits

WHERE = (
    "REGISTER QUERY q STARTING AT 2022-10-14T14:45 { MATCH (a) WITHIN PT1M WHERE %s EMIT a.x AS x SNAPSHOT EVERY PT1M }"
)
GROUP = "REGISTER QUERY q AS SELECT ?a FROM STREAM <http://s/rides> [RANGE 1m STEP 1m] WHERE { ?a ?b ?c %s }"
DEEP, LESS = 10_000, 2_000
JSON = {"content-type": "application/json"}
TEXTS = {
    "parentheses": WHERE % ("(" * DEEP + "1" + ")" * DEEP + " = 1"),
    "lists": WHERE % ("[" * LESS + "]" * LESS + " = 1"),
    "not": WHERE % ("NOT " * LESS + "true"),
    "sum": WHERE % ("1" + " + 1" * LESS + " = 1"),
    "groups": GROUP % ("{" * DEEP + "}" * DEEP),
    "subqueries": GROUP % ("{ SELECT * WHERE " * LESS + "{}" + "}" * LESS),
    "negations": GROUP % ("FILTER(" + "!" * LESS + "true)"),
    "open strings": WHERE % ("'" * LESS),
    "null": WHERE % "a.x = '\0'",
    "half a pair": WHERE % "a.x = '\ud800'",
    "nothing": "",
    "blanks": " \n" * 1000,
    "no query": "MATCH (a) RETURN a",
    "brackets": "{" * LESS,
}


def test_a_hostile_text_is_refused_with_a_code_and_others_go_on(served: Served) -> None:
    served.make()
    for name, text in TEXTS.items():
        body = json.dumps({"text": text})
        for path in ("/sessions/s/queries", "/sessions/s/queries/explain"):
            answer = served.http.post(path, content=body, headers=JSON)
            assert 400 <= answer.status_code < 500, (name, path, answer.status_code, answer.text[:300])
            assert answer.json()["error"]["code"][:4] in ("SRV-", "SER-", "SPQ-")
        checked = served.http.post("/sessions/s/queries/check", content=body, headers=JSON)
        assert checked.status_code == 200
        assert not checked.json()["ok"]
    assert [one["name"] for one in served.http.get("/sessions/s/queries").json()] == ["busy"]
    last = served.http.get("/sessions/s/queries/busy").json()["last_seq"]
    assert until(lambda: served.results("busy", max(last, 0)))


def test_a_long_text_is_refused_before_it_is_read(served: Served) -> None:
    served.make()
    long = json.dumps({"text": WHERE % ("a.x = 1 AND " * 90_000 + "true")})
    for path in ("/sessions/s/queries", "/sessions/s/queries/explain"):
        answer = served.http.post(path, content=long, headers=JSON)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "SRV-005")
    assert (
        served.http.post("/sessions/s/queries/check", content=long, headers=JSON).json()["diagnostics"][0]["code"]
        == "SRV-005"
    )


def test_a_text_that_takes_too_long_is_given_up_and_others_are_answered(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(check_seconds=0.2))
    served.hub.create("s")
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    slow = json.dumps({"text": GROUP % ("FILTER(1 = 1" + " || 1 = 1" * 15_000 + ")")})
    answers: list[int] = []

    def ask() -> None:
        answers.append(served.http.post("/sessions/s/queries", content=slow, headers=JSON).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    quickest = min(_seconds(lambda: served.http.get("/health")) for _ in range(5))
    asking.join()
    assert answers == [422]
    assert quickest < 2.0


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def test_more_texts_at_once_than_can_be_read_are_put_off(serve: Callable[..., Served]) -> None:
    served = serve()
    served.hub.create("s")
    slow = json.dumps({"text": GROUP % ("FILTER(1 = 1" + " || 1 = 1" * 600 + ")")})
    answers: list[str] = []

    def ask() -> None:
        answer = served.http.post("/sessions/s/queries/explain", content=slow, headers=JSON)
        answers.append("ok" if answer.status_code == 200 else answer.json()["error"]["code"])

    asking = [threading.Thread(target=ask) for _ in range(30)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert "SRV-022" in answers
    assert set(answers) <= {"ok", "SRV-012", "SRV-022"}


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(body_bytes=1_000))
    served.make(COUNTED, None)
    path = "/sessions/s/streams/rides/events"

    def parts() -> object:
        for _ in range(20):
            yield b"x" * 100

    for content in (b"x" * 1_001, parts()):
        answer = served.http.post(path, content=content)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "SRV-004")
    upload = served.http.post("/sessions/s/queries", content=parts(), headers=JSON)  # type: ignore[arg-type]
    assert upload.status_code == 413
    assert served.push(minutes(2))["accepted"] == 2


def test_a_small_body_that_unpacks_to_a_large_one_is_refused(served: Served) -> None:
    import gzip

    served.make(COUNTED, None)
    bomb = gzip.compress(b"\n" * (64 << 20))
    answer = served.http.post("/sessions/s/streams/rides/upload", content=bomb)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "SRV-004")


def test_counts_have_their_limits(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(sessions=1, streams=1, queries=1, graphs=1))
    served.make(COUNTED, None)
    graph = {"content": "", "headers": {"content-type": "text/turtle"}}
    assert served.http.put("/sessions/s/graphs/one", **graph).status_code == 200  # type: ignore[arg-type]
    refused = [
        served.http.post("/sessions", json={"name": "t"}),
        served.http.post("/sessions/s/streams", json={"name": "more"}),
        served.http.post("/sessions/s/queries", json={"text": BUSY}),
        served.http.put("/sessions/s/graphs/two", **graph),  # type: ignore[arg-type]
    ]
    assert [(one.status_code, one.json()["error"]["code"]) for one in refused] == [(409, "SRV-006")] * 4


RUNAWAY = """
REGISTER QUERY runaway STARTING AT 2022-10-14T14:45 {
  MATCH (b:Bike) WITHIN PT1H WHERE b.name =~ '(a+)+%s'
  EMIT count(b) AS bikes SNAPSHOT EVERY PT1M
}
"""


def test_a_regular_expression_that_would_run_away_does_not(served: Served) -> None:
    served.make(COUNTED, None)
    for text in (RUNAWAY % "b", RUNAWAY.replace("runaway", "refused") % "\\\\1b"):
        assert served.http.post("/sessions/s/queries", json={"text": text}).status_code == 201
    event = bike(1, "2022-10-14T14:45:00Z")
    event["nodes"][0]["properties"] = {"name": "a" * 60 + "c"}
    served.push([event, bike(2, "2022-10-14T14:47:30Z")])
    assert [one["rows"] for one in served.wait_for("runaway", 3)] == [[[0]], [[0]], [[0]]]
    skipped = until(lambda: served.http.get("/sessions/s/queries/refused").json()["last_skipped"])
    assert skipped["code"] == "SER-309"
    assert len(served.wait_for("counted", 3)) == 3


BODIES: list[str | bytes] = ["", "null", "[]", "{", '{"name": 5}', '{"name": "a", "x": 1}', "[" * 100_000, b"\xff\xfe"]


def test_a_body_that_is_not_understood_is_refused(served: Served) -> None:
    served.hub.create("s")
    for body in (*BODIES, '{"name": "\\ud800"}'):
        for path in ("/sessions", "/sessions/s/streams", "/sessions/s/queries", "/sessions/s/queries/check"):
            answer = served.http.post(path, content=body, headers=JSON)
            assert answer.status_code in (400, 422), (path, body[:20], answer.status_code, answer.text)
            assert answer.json()["error"]["code"].startswith("SRV-")


def test_numbers_out_of_range_are_refused(served: Served) -> None:
    served.make(COUNTED, None)
    for query in ("after=x", "after=-2", "after=99999999999999999999999", "limit=0", "limit=1001"):
        answer = served.http.get(f"/sessions/s/queries/counted/results?{query}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "SRV-003"), query


def test_files_outside_of_the_folders_that_may_be_read_are_out_of_reach(tmp_path: object) -> None:
    from pathlib import Path

    from anabranch.server.hub import Hub
    from anabranch.sources.reach import OutOfReach

    folder = Path(str(tmp_path))
    (folder / "in").mkdir()
    for place in ("in/a.ndjson", "b.ndjson"):
        (folder / place).write_text(json.dumps(bike(1, "2022-10-14T14:45:00Z")))
    with Hub(folder / "hub", "local", roots=[folder / "in"]) as hub:
        session = hub.create("s")
        session.add_stream("inside", str(folder / "in" / "a.ndjson"))
        elsewhere = ("s3://bucket/x", "http+poll://127.0.0.1:9/x", "kafka://127.0.0.1:9/x", "socket://127.0.0.1:9")
        for address in (folder / "b.ndjson", folder / "in" / ".." / "b.ndjson", "/etc/passwd", *elsewhere):
            with pytest.raises(OutOfReach):
                session.add_stream("outside", str(address))
        loading = "REGISTER QUERY q AS SELECT ?a FROM STREAM <inside> [RANGE 1m STEP 1m] FROM <%s> WHERE { ?a ?b ?c }"
        for graph in ("http://127.0.0.1:9/x.ttl", "/etc/x.ttl", "file:///etc/x.ttl"):
            with pytest.raises(OutOfReach):
                session.register(loading % graph, language="csparql")


def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.make(COUNTED, None)
    for path in ("streams/rides/events", "streams/rides/upload", "queries"):
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            head = f"POST /api/v1/sessions/s/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
            client.sendall(f'{head}Content-Type: application/json\r\n\r\n{{"at"'.encode())
            time.sleep(0.1)
    assert served.push(minutes(2))["accepted"] == 2
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def test_a_packed_table_that_becomes_far_larger_is_refused(served: Served) -> None:
    served.make(query=COUNTED, address=None)
    large = {"id": 1, "labels": ["Bike"], "properties": {"a": "x" * 50_000}}
    packed = io.BytesIO()
    write_parquet([event_from_dict({"at": "2022-10-14T14:45:00Z", "nodes": [large]})] * 1_000, packed)
    assert len(packed.getvalue()) < 100_000
    answer = served.http.post(
        "/sessions/s/streams/rides/upload",
        content=packed.getvalue(),
        headers={"Content-Type": "application/vnd.apache.parquet"},
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "SRV-004")


def test_a_graph_of_entities_is_refused(served: Served) -> None:
    served.make(query=COUNTED, address=None)
    text = """<!DOCTYPE rdf:RDF [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="http://p/">
        <rdf:Description rdf:about="http://a"><p:v>&b;</p:v></rdf:Description></rdf:RDF>"""
    answer = served.http.put("/sessions/s/graphs/g", content=text, headers={"Content-Type": "application/rdf+xml"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "SRV-014")
    assert "an entity is a name and a plain text" in answer.json()["error"]["message"]


ENDLESS = {
    "a list of lists": COUNTED.replace(
        "count(b) AS bikes",
        "count(b) + reduce(s = 0, x IN range(1, 1000000) | s + reduce(t = 0, y IN range(1, 1000000) | t + y)) AS bikes",
    ),
    "trails": COUNTED.replace("MATCH (b:Bike) WITHIN PT1H", "MATCH (b)-[*]-(c) WITHIN PT1H"),
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("what", ["/sessions/s", "/sessions/s/queries/counted"])
def test_an_evaluation_that_would_not_end_is_cancelled_by_deleting_it(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    begun, step = threading.Event(), ContinuousQuery.step

    def watched(query: ContinuousQuery, *given: Any) -> Any:
        if query.name == "counted":
            begun.set()
        return step(query, *given)

    monkeypatch.setattr(ContinuousQuery, "step", watched)
    served = serve(limits=Limits(steps=10**15))
    served.make(COUNTED.replace("counted", "other"), None)
    assert served.http.post("/sessions/s/queries", json={"text": text}).status_code == 201
    nodes = [{"id": one, "labels": ["Bike"]} for one in range(9)]
    dense = [{"type": "R", "from": one, "to": other} for one in range(9) for other in range(one)]
    event = {"at": "2022-10-14T14:45:00Z", "nodes": nodes, "relationships": dense}
    served.push([event, bike(77, "2022-10-14T14:47:30Z")])
    assert begun.wait(20)
    assert served.http.delete(what).status_code == 204
    if what == "/sessions/s":
        assert not any(one.name == "session s" for one in threading.enumerate())
    else:
        assert served.wait_for("other", 1)
