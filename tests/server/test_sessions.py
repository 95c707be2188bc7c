"""Sessions over REST: made, told what to do, removed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.conftest import COUNTED, Served, minutes, until

from anabranch.server.problems import ServerError


def test_a_session_answers_as_soon_as_it_has_a_stream_and_a_query(served: Served) -> None:
    served.make()
    found = served.wait_for("busy", 3)
    assert [one["seq"] for one in found[:3]] == [0, 1, 2]
    assert found[0]["columns"] == ["station", "rentals"]
    assert found[0]["at"] == "2022-10-14T14:45:00Z"
    assert found[0]["total"] == len(found[0]["rows"])
    assert not found[0]["truncated"]


def test_health_says_version_and_engine(served: Served) -> None:
    assert served.http.get("/health").json()["engine"] == "local"


def test_a_paused_session_takes_events_and_answers_when_it_goes_on(served: Served) -> None:
    served.make(COUNTED, None)
    assert served.http.post("/sessions/s/pause").json()["state"] == "paused"
    assert served.hub.session("s").settle()
    assert served.push(minutes(5))["accepted"] == 5
    assert served.results("counted") == []
    assert served.http.post("/sessions/s/start").json()["state"] == "running"
    assert [one["rows"] for one in served.wait_for("counted", 4)] == [[[1]], [[2]], [[3]], [[4]]]


def test_a_stopped_session_stands_still(served: Served) -> None:
    served.make()
    served.wait_for("busy", 2)
    assert served.http.post("/sessions/s/stop").json()["state"] == "stopped"
    served.hub.session("s").settle()
    last = served.http.get("/sessions/s/queries/busy").json()
    assert last["state"] == "waiting"
    assert served.results("busy", last["last_seq"]) == []


def test_a_removed_session_is_gone_and_its_name_is_free(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(3))
    served.wait_for("counted", 2)
    assert served.http.delete("/sessions/s").status_code == 204
    assert served.http.get("/sessions/s").status_code == 404
    assert served.http.get("/sessions").json() == []
    served.make(COUNTED, None)
    assert served.results("counted") == []


def test_names_that_are_taken_or_no_names_are_refused(served: Served) -> None:
    assert served.http.post("/sessions", json={"name": "one"}).status_code == 201
    taken = served.http.post("/sessions", json={"name": "one"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "SRV-002")
    for name in ("", "../up", "a/b", "x" * 65, ".hidden"):
        refused = served.http.post("/sessions", json={"name": name})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SRV-003"), name


def test_an_unknown_session_gets_a_guess(served: Served) -> None:
    served.http.post("/sessions", json={"name": "auctions"})
    error = served.http.get("/sessions/auction").json()["error"]
    assert error["code"] == "SRV-001"
    assert "auctions" in error["hint"]


def test_the_end_of_all_streams_is_told(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(3))
    assert served.http.post("/sessions/s/streams/rides/stop").status_code == 200
    assert until(lambda: served.http.get("/sessions/s").json()["ended"])
    assert [one["rows"] for one in served.results("counted")] == [[[1]], [[2]], [[3]]]
    refused = served.http.post("/sessions/s/streams/rides/events", content="{}")
    assert refused.status_code == 422


def test_figures_are_there_for_prometheus(served: Served) -> None:
    served.make()
    served.wait_for("busy", 2)
    text = served.http.get(f"{served.address}/metrics").text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert any(line.startswith('anabranch_events_total{session="s"} ') for line in lines)
    assert any(line.startswith('anabranch_stream_held_events{session="s",stream="rides"} ') for line in lines)
    assert "anabranch_sessions 1" in lines
    assert len({line for line in text.splitlines() if line.startswith("# TYPE")}) == text.count("# TYPE")


def test_what_comes_while_a_session_is_removed_leaves_nothing_behind(served: Served) -> None:
    served.make(COUNTED, None)
    session = served.hub.session("s")
    served.push(minutes(3))
    served.wait_for("counted", 2)
    session.log._tails.clear()
    served.hub.delete("s")
    late: list[Callable[[], object]] = [
        session.start,
        lambda: session.add_stream("more"),
        lambda: session.register(COUNTED),
        lambda: session.push("rides", minutes(1)),
        lambda: session.add_graph("g", b"{}"),
        lambda: session.log.read("counted"),
        lambda: session.listen([]),
        lambda: session._feeds.spool("rides"),
    ]
    for change in late:
        with pytest.raises(ServerError) as refused:
            change()
        assert refused.value.code in ("SRV-001", "SRV-013")
    assert list((served.hub.folder / "sessions").iterdir()) == []
    made = served.http.post("/sessions", json={"name": "s"}).json()
    assert (made["streams"], made["queries"]) == ([], [])


def test_the_name_of_a_session_that_is_being_removed_is_not_free_yet(served: Served) -> None:
    served.make(COUNTED, None)
    session, begun, go_on = served.hub.session("s"), threading.Event(), threading.Event()
    close = session.close
    session.close = lambda: (begun.set(), go_on.wait(20), close())  # type: ignore[method-assign,assignment,return-value]
    removing = threading.Thread(target=served.hub.delete, args=("s",))
    removing.start()
    assert begun.wait(20)
    refused = served.http.post("/sessions", json={"name": "s"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "SRV-002")
    assert served.http.get("/sessions").json() == []
    go_on.set()
    removing.join()
    assert served.http.post("/sessions", json={"name": "s"}).status_code == 201


def test_lists_are_whole_while_queries_come_and_go(served: Served) -> None:
    served.make(COUNTED, None)
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            served.hub.session("s").register(COUNTED.replace("counted", "other"))
            served.hub.session("s").delete_query("other")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(40):
            for path in ("/sessions", "/sessions/s", "/sessions/s/queries"):
                assert served.http.get(path).status_code == 200
    finally:
        over.set()
        changing.join()


def test_a_text_is_checked_against_what_the_session_holds_when_it_is_taken(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    session = served.hub.session("s")
    within = session._within

    def slowly(work: Callable[[], Any]) -> Any:
        found = within(work)
        session.remove_stream("rides")
        return found

    session._within = slowly  # type: ignore[method-assign]
    with pytest.raises(ServerError, match="has none"):
        session.register(COUNTED)
    assert session.queries() == []
