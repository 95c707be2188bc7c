"""Results as they come: server-sent events and the WebSocket, resumed, shared, and cut off."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.conftest import COUNTED, Served, minutes, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from anabranch.formats.answers import AnswerParts, to_typed
from anabranch.server.limits import Limits
from anabranch.sinks.base import RenderedAnswer

LIVE = "/sessions/s/queries/counted/results/live"


def events_of(served: Served, count: int, path: str = LIVE, headers: dict[str, str] | None = None) -> list[Any]:
    """The first events of a stream of them: (id, data)."""
    found: list[Any] = []
    with served.http.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        said: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                said[name] = value
            elif "data" in said:
                found.append((said.get("id"), said.get("event"), json.loads(said["data"])))
                said = {}
                if len(found) == count:
                    return found
    return found


def socket_of(served: Served, path: str = "/api/v1/sessions/s/live") -> ClientConnection:
    return connect(f"ws://127.0.0.1:{served.port}{path}")


def heard(client: ClientConnection, kind: str = "results") -> dict[str, Any]:
    while True:
        said: dict[str, Any] = json.loads(client.recv(20))
        if said["type"] == kind:
            return said


def numbers(client: ClientConnection, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += [one["seq"] for one in heard(client)["results"]]
    return found


def test_server_sent_events_have_the_number_as_id_and_go_on_behind_it(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(10))
    served.wait_for("counted", 9)
    first = events_of(served, 4, f"{LIVE}?after=-1")
    assert [(one[0], one[1], one[2]["seq"]) for one in first] == [(str(n), "result", n) for n in range(4)]
    rest = events_of(served, 5, headers={"Last-Event-ID": first[-1][0]})
    assert [one[2]["seq"] for one in rest] == [4, 5, 6, 7, 8]
    assert [one[2]["rows"] for one in first + rest] == [[[n]] for n in range(1, 10)]


def test_without_a_number_it_begins_with_what_comes_next(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(5))
    served.wait_for("counted", 4)
    later = threading.Timer(0.5, lambda: served.push(minutes(2, start=5)))
    later.start()
    assert events_of(served, 1)[0][2]["seq"] == 4
    later.join()


def test_a_number_that_is_no_longer_kept_ends_with_an_error_that_names_the_oldest(
    serve: Callable[..., Served],
) -> None:
    served = serve(limits=Limits(results_kept=3))
    served.make(COUNTED, None)
    served.push(minutes(10))
    until(lambda: served.http.get("/sessions/s/queries/counted").json()["last_seq"] == 8)
    served.hub.session("s").log._tails.clear()
    found = events_of(served, 1, f"{LIVE}?after=2")
    assert found[0][1] == "error"
    assert found[0][2]["error"]["code"] == "SRV-011"
    assert found[0][2]["error"]["oldest"] == 6
    gone = served.http.get("/sessions/s/queries/counted/results", params={"after": 2})
    assert (gone.status_code, gone.json()["error"]["oldest"]) == (410, 6)
    with socket_of(served) as client:
        client.send(json.dumps({"subscribe": "counted", "after": 2}))
        assert heard(client, "error")["error"]["code"] == "SRV-011"
        with pytest.raises(ConnectionClosed):
            client.recv(10)
        assert client.close_code == 1013


def test_a_socket_subscribes_resumes_and_leaves_queries(served: Served) -> None:
    served.make(COUNTED, None)
    served.http.post("/sessions/s/queries", json={"text": COUNTED.replace("counted", "second")})
    served.push(minutes(6))
    served.wait_for("counted", 5)
    served.wait_for("second", 5)
    with socket_of(served) as client:
        client.send(json.dumps({"subscribe": ["counted", "second"], "after": {"counted": 2, "second": -1}}))
        assert heard(client, "subscribed")["queries"] == {"counted": 2, "second": -1}
        found: list[tuple[str, int]] = []
        while len(found) < 7:
            found += [(one["query"], one["seq"]) for one in heard(client)["results"]]
        assert sorted(found) == [("counted", 3), ("counted", 4), *(("second", n) for n in range(5))]
        client.send(json.dumps({"unsubscribe": "second"}))
        assert heard(client, "subscribed")["queries"] == {"counted": 4}
        client.send(json.dumps({"ping": 1}))
        heard(client, "pong")
        served.push(minutes(1, start=6))
        assert numbers(client, 1) == [5]


def test_a_star_means_queries_that_come_later_too(served: Served) -> None:
    served.make(COUNTED, None)
    with socket_of(served) as client:
        client.send(json.dumps({"subscribe": "*"}))
        heard(client, "subscribed")
        served.http.post("/sessions/s/queries", json={"text": COUNTED.replace("counted", "second")})
        served.hub.session("s").settle()
        served.push(minutes(3))
        found: set[str] = set()
        while found != {"counted", "second"}:
            found |= {one["query"] for one in heard(client)["results"]}


@pytest.mark.parametrize(
    "said",
    [
        "rubbish",
        "[]",
        "{}",
        '{"subscribe": 5}',
        '{"subscribe": "nobody"}',
        '{"subscribe": "counted", "after": "x"}',
        "[" * 5000,
    ],
)
def test_what_a_socket_does_not_understand_it_says_and_stays(served: Served, said: str) -> None:
    served.make(COUNTED, None)
    with socket_of(served) as client:
        client.send(said)
        assert heard(client, "error")["error"]["code"].startswith("SRV-")
        client.send(json.dumps({"ping": 1}))
        heard(client, "pong")


def test_a_socket_of_an_unknown_session_is_told_so(served: Served) -> None:
    with socket_of(served, "/api/v1/sessions/none/live") as client:
        assert heard(client, "error")["error"]["code"] == "SRV-001"


def test_one_more_client_than_allowed_is_refused(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(clients=1))
    served.make(COUNTED, None)
    with socket_of(served) as client:
        client.send(json.dumps({"ping": 1}))
        heard(client, "pong")
        assert served.http.get(LIVE).json()["error"]["code"] == "SRV-007"
        with socket_of(served) as second:
            assert heard(second, "error")["error"]["code"] == "SRV-007"
    until(lambda: served.hub.clients == 0)
    with socket_of(served) as client:
        client.send(json.dumps({"ping": 1}))
        heard(client, "pong")


def _fed(served: Served, count: int, size: int) -> Iterator[None]:
    """Results of a query out of nowhere, with rows of some size."""
    log = served.hub.session("s").log
    row = ("x" * size,)
    for number in range(count):
        typed = to_typed(AnswerParts("counted", number, "snapshot", "", 0, number, ["x"], [row]))
        log.write(number, [RenderedAnswer("counted", number, number, 1, typed=typed)])
        yield


def test_a_client_that_stops_reading_is_cut_off_while_others_get_everything(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(client_patience=0.7, client_queue=50))
    served.make(COUNTED, None)
    stuck = socket.create_connection(("127.0.0.1", served.port))
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    path = "/api/v1/sessions/s/queries/counted/results/live?after=-1"
    stuck.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    with socket_of(served) as still, socket_of(served) as client:
        for one in (still, client):
            one.send(json.dumps({"subscribe": "counted", "after": -1}))
            heard(one, "subscribed")
        until(lambda: served.hub.clients == 3)
        got: list[int] = []
        reading = threading.Thread(target=lambda: got.extend(numbers(client, 1_500)))
        reading.start()
        for _ in _fed(served, 1_500, 20_000):
            time.sleep(0.001)
        reading.join(30)
        assert got == list(range(1_500))
        until(lambda: served.hub.clients == 1)
        with pytest.raises(ConnectionClosed):
            _drain(still)
    stuck.close()


def test_a_client_that_reads_too_slowly_is_told_so(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(client_patience=1.5, client_queue=50, result_bytes_kept=256 << 20))
    served.make(COUNTED, None)
    with socket_of(served) as client:
        client.send(json.dumps({"subscribe": "counted", "after": -1}))
        heard(client, "subscribed")
        feeding = threading.Thread(target=lambda: [time.sleep(0.002) for _ in _fed(served, 2_000, 40_000)])
        feeding.start()
        with pytest.raises(ConnectionClosed):
            _drain(client, 0.1)
        feeding.join()
        assert client.close_code == 1013
        assert "too slow" in str(client.close_reason)


def _drain(client: ClientConnection, pause: float = 0.0) -> None:
    while True:
        client.recv(10)
        time.sleep(pause)
