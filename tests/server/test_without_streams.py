"""Queries that read static graphs alone, in sessions without and with streams: answered once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.conftest import COUNTED, Served, minutes, until

BIKES = {"nodes": [{"id": n, "labels": ["Bike"]} for n in (1, 2)], "relationships": []}
QUERIES = {
    "seraph": "REGISTER QUERY known { MATCH (b:Bike) ON GRAPH g RETURN id(b) AS bike ORDER BY bike }",
    "seraph every": "REGISTER QUERY known { MATCH (b:Bike) ON GRAPH g EMIT id(b) AS bike SNAPSHOT EVERY PT1M }",
    "csparql": "REGISTER QUERY known AS SELECT ?bike FROM <g> WHERE { ?bike a <urn:Bike> } ORDER BY ?bike",
}
ADDED = "REGISTER QUERY added { MATCH (b:Bike) ON GRAPH g RETURN count(b) AS n }"


def _session(served: Served, language: str = "seraph") -> None:
    served.http.post("/sessions", json={"name": "s"})
    if language == "csparql":
        turtle = {
            "content": "<urn:1> a <urn:Bike> . <urn:2> a <urn:Bike> .",
            "headers": {"content-type": "text/turtle"},
        }
        put = served.http.put("/sessions/s/graphs/g", **turtle)  # type: ignore[arg-type]
    else:
        put = served.http.put("/sessions/s/graphs/g", json=BIKES)
    assert put.status_code == 200, put.text


def _register(served: Served, text: str) -> None:
    registered = served.http.post("/sessions/s/queries", json={"text": text})
    assert registered.status_code == 201, registered.text


@pytest.mark.parametrize("kind", QUERIES)
def test_a_session_without_streams_answers_once_also_over_a_restart(serve: Callable[..., Served], kind: str) -> None:
    first = serve()
    _session(first, kind.partition(" ")[0])
    _register(first, QUERIES[kind])
    (found,) = first.wait_for("known", 1)
    assert len(found["rows"]) == 2
    until(lambda: first.http.get("/sessions/s").json()["ended"])
    first.close()
    second = serve()
    until(lambda: second.http.get("/sessions/s").json()["ended"])
    _register(second, ADDED)
    (added,) = second.wait_for("added", 1)
    assert added["rows"][0] in ([2], {"n": 2})
    assert second.results("known") == [found]


@pytest.mark.parametrize("stream", ["rides", "stream"])
def test_streams_that_are_added_later_move_their_queries_and_the_answer_is_not_repeated(
    served: Served, stream: str
) -> None:
    _session(served)
    _register(served, QUERIES["seraph"])
    (found,) = served.wait_for("known", 1)
    assert served.http.post("/sessions/s/streams", json={"name": stream}).status_code == 201
    _register(served, COUNTED)
    served.push(minutes(3), stream)
    served.wait_for("counted", 2)
    assert served.results("known") == [found]


def test_a_query_without_a_stream_does_not_wait_for_events_of_those_that_the_session_has(served: Served) -> None:
    served.make(COUNTED, address=None)
    served.http.put("/sessions/s/graphs/g", json=BIKES)
    _register(served, QUERIES["seraph"])
    (found,) = served.wait_for("known", 1)
    served.push(minutes(3))
    served.wait_for("counted", 2)
    _register(served, ADDED)
    served.wait_for("added", 1)
    served.push(minutes(3, 3))
    served.wait_for("counted", 5)
    assert served.results("known") == [found]
    assert len(served.results("added")) == 1
