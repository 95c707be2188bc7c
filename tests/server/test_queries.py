"""Queries over REST: checked, explained, registered, paused, deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.server.conftest import BUSY, COUNTED, Served, bike, minutes, until

from anabranch.runner import inprocess
from anabranch.runner.cell import Cell
from anabranch.runner.rows import CellRow, PackedRow

LANGUAGES = {
    "seraph": BUSY,
    "csparql": "REGISTER QUERY q AS SELECT ?a FROM STREAM <http://s/rides> [RANGE 1m STEP 1m] WHERE { ?a ?b ?c }",
    "rspql": (
        "PREFIX : <http://x/> REGISTER RSTREAM :q AS SELECT ?a "
        "FROM NAMED WINDOW :w ON <http://s/rides> [RANGE PT1M STEP PT1M] WHERE { WINDOW :w { ?a ?b ?c } }"
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_of_each_language_is_checked_and_explained(served: Served, language: str) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides", "address": "gen:bikes?rate=1"})
    text = LANGUAGES[language]
    checked = served.http.post("/sessions/s/queries/check", json={"text": text, "language": language})
    assert checked.json() == {"ok": True, "diagnostics": []}
    explained = served.http.post("/sessions/s/queries/explain", json={"text": text, "language": language})
    assert explained.status_code == 200, explained.text
    assert explained.json()["drawings"]["after"].startswith("<svg")
    registered = served.http.post("/sessions/s/queries", json={"text": text})
    assert registered.status_code == 201, registered.text
    assert registered.json()[0]["language"] == language


def test_a_refused_text_comes_back_with_places_and_changes_nothing(served: Served) -> None:
    served.make()
    broken = BUSY.replace("EMIT", "EMITT").replace("busy", "other")
    answer = served.http.post("/sessions/s/queries", json={"text": broken})
    error = answer.json()["error"]
    assert answer.status_code == 422
    assert error["code"] == "SER-001"
    first = error["diagnostics"][0]
    assert broken[first["start"] : first["stop"]] == "EMITT"
    assert (first["line"], first["column"]) == (4, 3)
    assert [one["name"] for one in served.http.get("/sessions/s/queries").json()] == ["busy"]


def test_a_query_of_a_stream_that_is_not_there_is_refused(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    answer = served.http.post("/sessions/s/queries", json={"text": BUSY})
    assert answer.json()["error"]["code"] == "SRV-013"
    served.http.post("/sessions/s/streams", json={"name": "rides", "address": "gen:bikes?rate=1"})
    named = BUSY.replace("WITHIN PT1M", "WITHIN PT1M ON STREAM rode")
    answer = served.http.post("/sessions/s/queries", json={"text": named})
    assert answer.status_code == 422
    assert answer.json()["error"]["diagnostics"][0]["line"] == 3


def test_a_second_query_begins_with_what_the_windows_hold_and_the_first_goes_on(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(5))
    served.wait_for("counted", 4)
    second = COUNTED.replace("counted", "again").replace("count(b)", "count(b) + 100")
    served.http.post("/sessions/s/queries", json={"text": second})
    served.hub.session("s").settle()
    served.push(minutes(2, start=5))
    assert [one["rows"] for one in served.wait_for("counted", 6)] == [[[n]] for n in (1, 2, 3, 4, 5, 6)]
    assert served.wait_for("again", 1)[-1]["rows"][0][0] > 100


def test_several_queries_of_one_text_are_several(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    both = served.http.post("/sessions/s/queries", json={"text": BUSY + COUNTED}).json()
    assert [one["name"] for one in both] == ["busy", "counted"]
    assert served.http.delete("/sessions/s/queries/busy").status_code == 204
    served.push(minutes(3))
    assert len(served.wait_for("counted", 2)) == 2


def test_a_paused_query_rests_and_goes_on_with_its_numbers(served: Served) -> None:
    served.make()
    served.wait_for("busy", 2)
    assert served.http.post("/sessions/s/queries/busy/pause").json()["state"] == "paused"
    served.hub.session("s").settle()
    last = served.http.get("/sessions/s/queries/busy").json()["last_seq"]
    served.http.post("/sessions/s/queries/busy/resume")
    assert until(lambda: served.results("busy", last))[0]["seq"] == last + 1


def test_a_replaced_query_has_the_new_meaning_and_goes_on_with_its_numbers(served: Served) -> None:
    served.make()
    served.wait_for("busy", 2)
    new = BUSY.replace("AS rentals", "AS many")
    assert served.http.post("/sessions/s/queries", json={"text": new}).status_code == 409
    assert served.http.post("/sessions/s/queries", json={"text": new, "replace": True}).status_code == 201
    found = until(lambda: [one for one in served.results("busy") if one["columns"][1] == "many"])
    before = [one["seq"] for one in served.results("busy") if one["columns"][1] == "rentals"]
    assert found[0]["seq"] == before[-1] + 1


FAILING = COUNTED.replace("count(b) AS bikes", "10 / (count(b) - 2) AS bikes")


def test_a_query_that_fails_says_why_and_can_be_tried_again(served: Served) -> None:
    served.make(FAILING, None, on_error="fail")
    served.push(minutes(4))
    failed = until(lambda: one if (one := served.http.get("/sessions/s/queries/counted").json())["error"] else None)
    assert failed["state"] == "failed"
    assert failed["error"]["code"].startswith("SER-")
    session = served.http.get("/sessions/s").json()
    assert (session["state"], session["failing_queries"]) == ("running", ["counted"])
    assert 'anabranch_failed_queries{session="s"} 1' in served.http.get(f"{served.address}/metrics").text
    again = served.http.post("/sessions/s/queries/counted/resume").json()
    assert again["error"] is None
    session = served.http.get("/sessions/s").json()
    assert session["failing_queries"] == []
    assert "query counted failed at 2022-10-14T14:46:00Z: its instants from then on" in session["notes"][-1]
    served.push([bike(77, "2022-10-14T14:55:00Z")])
    assert len(served.wait_for("counted", 3)) >= 3


def test_rows_that_fail_are_skipped_and_shown_and_the_query_goes_on(served: Served) -> None:
    served.make(FAILING, None)
    served.push(minutes(5))
    assert [one["at"][11:16] for one in served.wait_for("counted", 3)] == ["14:45", "14:47", "14:48"]
    found = until(lambda: one if (one := served.http.get("/sessions/s/queries/counted").json())["skipped"] else None)
    assert (found["state"], found["error"], found["on_error"]) == ("running", None, "skip")
    assert found["last_skipped"]["code"] == "SER-304"
    assert found["last_skipped"]["diagnostics"][0]["line"] == 1 + FAILING[: FAILING.index("10 /")].count("\n")
    session = served.http.get("/sessions/s").json()
    assert (session["failing_queries"], session["skipping_queries"]) == ([], ["counted"])
    assert session["figures"]["skipped"] == 1
    assert 'anabranch_skipped_total{session="s"} 1' in served.http.get(f"{served.address}/metrics").text


def test_parameters_and_policies_are_kept(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    text = COUNTED.replace("count(b) AS bikes", "count(b) + $more AS bikes")
    new = {"text": text, "parameters": {"more": 40}, "windows": "right-open"}
    assert served.http.post("/sessions/s/queries", json=new).status_code == 201
    found = served.http.get("/sessions/s/queries/counted").json()
    assert (found["parameters"], found["windows"]) == ({"more": 40}, "right-open")
    served.push(minutes(4))
    assert [one["rows"] for one in served.wait_for("counted", 3)] == [[[40]], [[41]], [[42]]]


def test_a_chain_is_not_broken_by_pausing_its_maker(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    maker = COUNTED.replace("EMIT count(b) AS bikes SNAPSHOT", "EMIT b ON ENTERING").replace(
        "PT1M\n", "PT1M INTO made\n"
    )
    reader = COUNTED.replace("counted", "read").replace("WITHIN PT1H", "WITHIN PT1H ON STREAM made")
    both = served.http.post("/sessions/s/queries", json={"text": maker + reader})
    assert both.status_code == 201, both.text
    assert served.http.post("/sessions/s/queries/counted/pause").status_code == 422
    assert served.http.post("/sessions/s/queries/read/pause").status_code == 200


@pytest.mark.parametrize("way", ["paused and resumed", "replaced by itself", "deleted and registered"])
def test_a_query_that_failed_runs_again_whatever_brings_it_back(served: Served, way: str) -> None:
    served.make(FAILING, None, on_error="fail")
    served.push(minutes(4))
    until(lambda: served.http.get("/sessions/s/queries/counted").json()["error"])
    match way:
        case "paused and resumed":
            served.http.post("/sessions/s/queries/counted/pause")
            served.http.post("/sessions/s/queries/counted/resume")
        case "replaced by itself":
            served.http.post("/sessions/s/queries", json={"text": FAILING, "replace": True, "on_error": "fail"})
        case _:
            served.http.delete("/sessions/s/queries/counted")
            served.http.post("/sessions/s/queries", json={"text": FAILING, "on_error": "fail"})
    served.push([bike(77, "2022-10-14T14:55:00Z")])
    assert until(lambda: served.http.get("/sessions/s/queries/counted").json()["last_seq"] > 2)


def test_no_result_of_a_deleted_query_is_left_and_its_numbers_go_on(served: Served) -> None:
    served.make(BUSY.replace("PT10S", "PT1S"))
    served.wait_for("busy", 5)
    log = served.hub.session("s").log
    for _ in range(3):
        assert served.http.delete("/sessions/s/queries/busy").status_code == 204
        gone = log.forgotten(["busy"])["busy"]
        served.hub.session("s").settle()
        assert (log.queries(), log.read("busy")) == ([], [])
        served.http.post("/sessions/s/queries", json={"text": BUSY.replace("PT10S", "PT1S")})
        assert served.wait_for("busy", 1)[0]["seq"] == gone + 1


def test_a_query_whose_name_is_an_iri_is_reached(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides", "address": "gen:bikes?rate=1"})
    assert served.http.post("/sessions/s/queries", json={"text": LANGUAGES["rspql"]}).json()[0]["name"] == "http://x/q"
    path = "/sessions/s/queries/http%3A%2F%2Fx%2Fq"
    assert served.http.get(path).json()["name"] == "http://x/q"
    assert served.http.get(f"{path}/results").json()["results"] == []
    assert served.http.get(f"{path}/operators").status_code == 200
    with served.http.stream("GET", f"{path}/results/live") as answer:
        assert answer.status_code == 200
    assert served.http.post(f"{path}/pause").json()["state"] == "paused"
    assert served.http.delete(path).status_code == 204
    assert served.http.get("/sessions/s/queries").json() == []


def test_a_text_that_loads_what_is_not_there_is_refused_and_others_go_on(served: Served) -> None:
    served.make(COUNTED.replace("WITHIN PT1H", "WITHIN PT1H ON STREAM rides"), None)
    loading = "LOAD STREAM FROM '/nowhere/rentals.ndjson' AS one MERGE (b:Bike {id: one.bike_id})\n"
    loaded = COUNTED.replace("counted", "loaded").replace("WITHIN PT1H", "WITHIN PT1H ON STREAM rentals")
    refused = served.http.post("/sessions/s/queries", json={"text": loading + loaded})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SRV-013")
    served.push(minutes(3))
    assert len(served.wait_for("counted", 2)) == 2


def test_a_parameter_that_no_answer_can_hold_is_refused(served: Served) -> None:
    served.make(COUNTED, None)
    text = COUNTED.replace("counted", "more").replace("count(b)", "$more")
    for given in ({"more": "\ud800"}, {"more": [{"\udfff": 1}]}):
        body = json.dumps({"text": text, "parameters": given})
        answer = served.http.post("/sessions/s/queries", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "SRV-003")
    assert [one["name"] for one in served.http.get("/sessions/s/queries").json()] == ["counted"]


def test_an_answer_without_rows_is_no_result_and_is_known(served: Served) -> None:
    served.make(COUNTED.replace("count(b) AS bikes", "b AS bike").replace("PT1H", "PT1M"), None)

    def stands() -> Any:
        return served.http.get("/sessions/s/queries/counted").json()

    before = stands()
    assert (before["evaluated_at"], before["rows_now"]) == (None, None)
    served.push(minutes(3))
    there = until(lambda: one if (one := stands())["evaluated_at"] == "2022-10-14T14:46:00Z" else None)
    assert (there["rows_now"], there["last_seq"]) == (1, 1)
    served.push(minutes(1, start=9))
    gone = until(lambda: one if (one := stands())["evaluated_at"] == "2022-10-14T14:53:00Z" else None)
    assert (gone["rows_now"], gone["last_seq"]) == (0, 2)


def test_a_query_in_the_middle_of_a_very_long_batch_can_be_deleted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    class Watched(Cell):
        def process(self, rows: Sequence[PackedRow]) -> Iterator[CellRow]:
            if len(rows) > 1:
                begun.set()
            return super().process(rows)

    monkeypatch.setattr(inprocess, "Cell", Watched)
    slow = "WITHIN PT1H UNWIND range(1, 100000) AS n WITH b, count(n + timestamp()) AS n"
    served.make(COUNTED.replace("WITHIN PT1H", slow).replace("PT1M", "PT1S"), None)
    served.push(minutes(500))  # 30,000 instants, each of which counts up to 100,000 for each bike
    assert begun.wait(20)
    assert served.http.delete("/sessions/s/queries/counted").status_code == 204
    served.http.post("/sessions/s/queries", json={"text": COUNTED})
    assert served.wait_for("counted", 499)[-1]["rows"] == [[60]]
