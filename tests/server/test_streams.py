"""Streams and static graphs over REST."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.server.conftest import COUNTED, Served, bike, minutes, until

from anabranch.server.limits import Limits
from anabranch.server.streams import letter_file

TOLD = """
PREFIX : <http://x/>
REGISTER QUERY told AS
SELECT ?who ?name
FROM STREAM <http://streams/people> [RANGE 1h STEP 1m]
FROM <http://graphs/names>
WHERE { ?who :came ?where . ?who :name ?name }
"""
STREAM = "http%3A%2F%2Fstreams%2Fpeople"


def test_what_is_pushed_as_lines_as_a_list_or_alone_is_the_same(served: Served) -> None:
    served.make(COUNTED, None)
    path = "/sessions/s/streams/rides/events"
    lines, one, rest = minutes(6)[:2], minutes(6)[2], minutes(6)[3:]
    assert served.push(lines)["accepted"] == 2
    assert served.http.post(path, json=one).json()["accepted"] == 1
    assert served.http.post(path, json=rest).json()["accepted"] == 3
    assert [found["rows"] for found in served.wait_for("counted", 5)] == [[[n]] for n in range(1, 6)]


def test_records_that_are_no_events_are_counted_and_can_be_fetched(served: Served) -> None:
    served.make(COUNTED, None)
    answer = served.http.post(
        "/sessions/s/streams/rides/events",
        content='{"no": "event"}\nrubbish\n' + json.dumps(bike(1, "2022-10-14T14:45:00Z")),
    )
    assert answer.json() == {"accepted": 1, "late": 0, "ahead": 0, "in_doubt": 0, "malformed": 2, "received": 0}
    assert until(lambda: served.http.get("/sessions/s/streams/rides").json()["malformed"] == 2)
    letters = served.http.get("/sessions/s/streams/rides/malformed")
    assert letters.headers["content-type"].startswith("application/x-ndjson")
    assert {json.loads(line)["raw"] for line in letters.text.splitlines()} == {'{"no": "event"}', "rubbish"}


def test_late_events_are_counted_and_can_be_fetched(served: Served) -> None:
    served.make(COUNTED, None)
    served.push(minutes(5))
    served.wait_for("counted", 4)
    served.push([bike(99, "2022-10-14T14:40:00Z")])
    assert until(lambda: served.http.get("/sessions/s/streams/rides").json()["late"] == 1)
    assert "late" in json.loads(served.http.get("/sessions/s/streams/rides/late").text)["reason"]
    assert served.http.get("/sessions/s/streams/rides/malformed").text == ""


def test_a_stream_may_have_a_lateness_of_its_own(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    made = served.http.post("/sessions/s/streams", json={"name": "rides", "lateness": "PT10M"})
    assert made.json()["lateness"] == "PT10M"
    served.http.post("/sessions/s/queries", json={"text": COUNTED})
    served.push(minutes(5))
    served.push([bike(99, "2022-10-14T14:45:30Z")])
    served.push(minutes(5, start=20))
    assert [one["rows"] for one in served.wait_for("counted", 5)][:5] == [[[1]], [[3]], [[4]], [[5]], [[6]]]
    assert served.http.get("/sessions/s/streams/rides").json()["late"] == 0


def test_a_producer_that_was_away_sends_what_it_held_back_and_loses_nothing(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    made = served.http.post("/sessions/s/streams", json={"name": "rides", "idle_timeout": "PT0.2S"}).json()
    assert (made["idle_timeout"], made["idle"]) == ("PT0.2S", "correct")
    served.http.post("/sessions/s/queries", json={"text": COUNTED.replace("PT1M", "PT1S")})
    seconds = [bike(n, f"2022-10-14T14:45:{n:02}Z") for n in range(12)]
    served.push(seconds[:2])
    served.wait_for("counted", 4)  # the second event, and two answers without a third
    stream = served.http.get("/sessions/s/streams/rides").json()
    assert stream["is_idle"]
    assert stream["watermark"] == "2022-10-14T14:45:01Z"
    assert stream["answered"][:19] >= "2022-10-14T14:45:03"
    assert served.push(seconds[2:])["accepted"] == 10
    until(lambda: served.http.get("/sessions/s/streams/rides").json()["events"] == 12)
    until(lambda: served.http.get("/sessions/s/queries/counted").json()["evaluated_at"][:19] >= "2022-10-14T14:45:10")
    found = {}
    for result in served.results("counted"):
        found[result["at"]] = None if result.get("correction") == "retracted" else result["rows"]
    for n in range(11):
        assert found[f"2022-10-14T14:45:{n:02}Z"] == [[n + 1]]
    assert served.http.get("/sessions/s/streams/rides").json()["late"] == 0


def test_a_push_into_a_stream_that_a_query_loads_promises_nothing(served: Served) -> None:
    load = "LOAD STREAM FROM '/elsewhere.ndjson' AS e AT e.at INTO rides MERGE (b:Bike {id: e.bike})\n"
    served.make(load + COUNTED.replace("WITHIN PT1H", "WITHIN PT1H ON STREAM rides"), None)
    records = [{"at": f"2022-10-14T14:{minute}:00Z", "bike": minute} for minute in (45, 46, 47, 45)]
    said = served.push([*records, {"bike": 9}])
    assert said == {"accepted": 0, "late": 0, "ahead": 0, "in_doubt": 0, "malformed": 0, "received": 5}

    def became() -> tuple[int, ...]:
        stream = served.http.get("/sessions/s/streams/rides").json()
        return tuple(stream[kind] for kind in ("events", "late", "malformed"))

    until(lambda: became() == (3, 1, 1))


def test_a_push_says_what_will_be_seen(serve: Callable[..., Served]) -> None:
    served = serve()
    served.make(COUNTED, None)
    nothing = {"accepted": 0, "late": 0, "ahead": 0, "in_doubt": 0, "malformed": 0, "received": 0}
    assert served.push(minutes(5)) == {**nothing, "accepted": 5}
    assert served.push([bike(90, "2022-10-14T14:40:00Z"), *minutes(1, start=5)]) == {
        **nothing,
        "accepted": 1,
        "late": 1,
    }
    assert served.push([bike(91, "9999-12-31T00:00:00Z")]) == {**nothing, "ahead": 1}
    assert served.push([bike(92, "2022-10-20T00:00:00Z")]) == {**nothing, "in_doubt": 1}
    assert served.push(minutes(3, start=6)) == {**nothing, "accepted": 3, "ahead": 1}
    stream = until(lambda: one if (one := served.http.get("/sessions/s/streams/rides").json())["ahead"] == 2 else None)
    assert (stream["events"], stream["late"], stream["watermark"]) == (9, 1, "2022-10-14T14:53:00Z")
    assert len(served.http.get("/sessions/s/streams/rides/ahead").text.splitlines()) == 2
    served.close()
    assert serve().push([bike(93, "2022-10-14T14:52:59Z")]) == {**nothing, "late": 1}


def test_a_second_stream_is_not_taken_for_the_one_that_a_query_reads(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    assert served.http.post("/sessions/s/streams", json={"name": "http://streams/people"}).status_code == 201
    assert served.http.post(
        "/sessions/s/queries", json={"text": TOLD.replace("FROM <http://graphs/names>", "")}
    ).is_success
    served.http.post(f"/sessions/s/streams/{STREAM}/events", json=bike(1, "2022-10-14T14:45:00Z"))
    until(lambda: served.http.get(f"/sessions/s/streams/{STREAM}").json()["events"] == 1)
    made = served.http.post("/sessions/s/streams", json={"name": "weather"})
    assert (made.status_code, made.json().get("name")) == (201, "weather"), made.text
    assert served.push([bike(2, "2022-10-14T14:46:00Z")], "weather")["accepted"] == 1


def test_a_stream_s_clock_can_be_set_back(serve: Callable[..., Served]) -> None:
    served = serve()
    served.http.post("/sessions", json={"name": "s"})
    made = served.http.post("/sessions/s/streams", json={"name": "rides", "ahead": "none"}).json()
    assert made["ahead_bound"] == "none"
    served.http.post("/sessions/s/queries", json={"text": COUNTED.replace("SNAPSHOT", "ON ENTERING")})
    assert served.push([*minutes(2), bike(91, "2999-12-31T00:00:00Z")])["accepted"] == 3
    until(lambda: served.http.get("/sessions/s/streams/rides").json()["events"] == 3)
    stream = served.http.get("/sessions/s/streams/rides").json()
    assert (stream["jumps"], stream["last_jump"]) == (1, ["2022-10-14T14:46:00Z", "2999-12-31T00:00:00Z"])
    assert served.push(minutes(1, start=2))["late"] == 1
    until(lambda: served.http.get("/sessions/s/streams/rides").json()["late"] == 1)
    last = served.http.get("/sessions/s/queries/counted").json()["last_seq"]
    answer = served.http.post("/sessions/s/streams/rides/clock", json={"at": "2022-10-14T14:47:00Z"})
    assert answer.status_code == 200, answer.text
    assert served.push(minutes(3, start=3))["accepted"] == 3
    found = until(lambda: kept if len(kept := served.results("counted", after=last)) >= 2 else None)
    assert [(one["at"], one["rows"]) for one in found[:2]] == [
        ("2022-10-14T14:47:00Z", [[0]]),
        ("2022-10-14T14:48:00Z", [[1]]),
    ]
    served.close()
    again = serve()
    assert again.push(minutes(1, start=4))["late"] == 1, "set once, and not again after a restart"
    until(lambda: again.http.get("/sessions/s/streams/rides").json()["late"] >= 2)
    refused = again.http.post("/sessions/s/streams/rides/clock", json={"at": "soon"})
    assert refused.status_code in (400, 422)


def test_a_stream_waits_where_it_was_asked_to(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    body = {"name": "rides", "idle_timeout": "PT0.2S", "idle": "wait"}
    assert served.http.post("/sessions/s/streams", json=body).json()["idle"] == "wait"
    served.http.post("/sessions/s/queries", json={"text": COUNTED})
    served.push(minutes(2))
    until(lambda: served.http.get("/sessions/s/streams/rides").json()["is_idle"])
    assert len(served.results("counted")) == 1
    served.push(minutes(2, start=2))
    found = served.wait_for("counted", 3)
    assert [(one["rows"], one.get("correction")) for one in found] == [([[n]], None) for n in (1, 2, 3)]


def test_a_policy_or_a_timeout_that_means_nothing_is_refused(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    for body in ({"idle": "forget"}, {"idle": "wait:PT1H"}, {"idle_timeout": "soon"}, {"idle_timeout": "P1M"}):
        answer = served.http.post("/sessions/s/streams", json={"name": "rides", **body})
        assert answer.status_code == 422, answer.text
    assert served.http.get("/sessions/s/streams").json() == []


def test_a_file_is_uploaded_as_a_form_or_as_it_is_also_packed(served: Served) -> None:
    served.make(COUNTED, None)
    text = "\n".join(json.dumps(one) for one in minutes(4)).encode()
    path = "/sessions/s/streams/rides/upload"
    assert served.http.post(path, files={"file": ("rides.ndjson", text)}).json()["accepted"] == 4
    again = served.http.post(path, content=gzip.compress(text)).json()
    assert (again["accepted"], again["late"]) == (1, 3), "the newest may come again"
    assert served.http.post(path, files={"other": ("rides.ndjson", text)}).json()["error"]["code"] == "SRV-014"


def test_rdf_comes_in_its_own_formats_and_meets_a_static_graph(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    assert served.http.post("/sessions/s/streams", json={"name": "people"}).status_code == 201
    graph = '<http://x/ann> <http://x/name> "Ann" .'
    put = served.http.put(
        "/sessions/s/graphs/http%3A%2F%2Fgraphs%2Fnames", content=graph, headers={"content-type": "text/turtle"}
    )
    assert put.json() == {"name": "http://graphs/names", "media_type": "text/turtle"}
    registered = served.http.post("/sessions/s/queries", json={"text": TOLD})
    assert registered.status_code == 201, registered.text
    turtle = "@prefix : <http://x/> . :ann :came :here ."
    path, kind = f"/sessions/s/streams/{STREAM}/events", {"content-type": "text/turtle"}
    assert served.http.post(path, content=turtle, headers=kind).json()["error"]["code"] == "SRV-003"
    for at in ("2022-10-14T14:45:30Z", "2022-10-14T14:48:00Z"):
        assert served.http.post(path, params={"at": at}, content=turtle, headers=kind).json()["accepted"] == 1
    assert served.wait_for("told", 1)[0]["rows"] == [["http://x/ann", "Ann"]]
    assert served.http.get("/sessions/s/graphs").json() == [
        {"name": "http://graphs/names", "media_type": "text/turtle"}
    ]
    assert served.http.get("/sessions/s/graphs/http%3A%2F%2Fgraphs%2Fnames").text == graph
    assert served.http.get("/sessions/s/streams").json()[0]["name"] == "people"


def test_another_graph_in_the_place_of_one_is_seen(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "people"})
    path, kind = "/sessions/s/graphs/http%3A%2F%2Fgraphs%2Fnames", {"content-type": "application/n-triples"}
    served.http.put(path, content='<http://x/ann> <http://x/name> "Ann" .', headers=kind)
    served.http.post("/sessions/s/queries", json={"text": TOLD})
    events = f"/sessions/s/streams/{STREAM}/events"
    triple = "<http://x/ann> <http://x/came> <http://x/here> ."
    for at in ("2022-10-14T14:45:30Z", "2022-10-14T14:47:30Z"):
        served.http.post(events, params={"at": at}, content=triple, headers=kind)
    served.wait_for("told", 2)
    served.http.put(path, content='<http://x/ann> <http://x/name> "Anna" .', headers=kind)
    served.hub.session("s").settle()
    served.http.post(events, params={"at": "2022-10-14T14:49:30Z"}, content=triple, headers=kind)
    assert [one["rows"] for one in served.wait_for("told", 4)] == [
        [["http://x/ann", name]] for name in ("Ann", "Ann", "Anna", "Anna")
    ]
    refused = served.http.delete(path)
    assert refused.status_code in (204, 422)


def test_what_cannot_be_read_is_refused_with_its_reason(served: Served) -> None:
    served.make(COUNTED, None)
    events, graph = "/sessions/s/streams/rides/events", "/sessions/s/graphs/g"
    cases = [
        (events, "POST", "x", "image/png", 415, "SRV-015"),
        (events, "POST", "@prefix", "application/trig", 422, "SRV-014"),
        (graph, "PUT", "not turtle", "text/turtle", 422, "SRV-014"),
        (graph, "PUT", "[1, 2]", "application/json", 422, "SRV-014"),
        (graph, "PUT", "x", "image/png", 415, "SRV-015"),
    ]
    for path, method, body, kind, status, code in cases:
        answer = served.http.request(method, path, content=body, headers={"content-type": kind})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), (path, kind, answer.text)


def test_an_address_that_leads_nowhere_is_refused(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    for address in ("gen:nothing", "/there/is/no.ndjson", "ftp://x/y", "-"):
        answer = served.http.post("/sessions/s/streams", json={"name": "rides", "address": address})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "SRV-013"), address
    assert served.http.get("/sessions/s/streams").json() == []


def test_a_file_is_read_to_its_end(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "rides.ndjson"
    file.write_text("\n".join(json.dumps(one) for one in minutes(5)))
    served.make(COUNTED, str(file))
    assert until(lambda: served.http.get("/sessions/s").json()["ended"])
    assert [one["rows"] for one in served.results("counted")] == [[[n]] for n in range(1, 6)]
    assert served.http.get("/sessions/s/streams/rides").json()["closed"]
    refused = served.http.post("/sessions/s/streams/rides/events", content="{}")
    assert refused.json()["error"]["code"] == "SRV-013"


def test_a_bad_file_in_a_followed_folder_is_set_aside_and_the_stream_goes_on(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    events = [json.dumps(one) + "\n" for one in minutes(4)]
    (folder / "a.ndjson").write_text("".join(events[:2]))
    (folder / "b.json").write_text('[{"at"')
    os.utime(folder / "b.json", (0, 0))
    served.http.post("/sessions", json={"name": "s"})
    served.http.post("/sessions/s/streams", json={"name": "rides", "address": str(folder), "follow": True})
    assert served.http.post("/sessions/s/queries", json={"text": COUNTED}).status_code == 201
    assert until(lambda: served.http.get("/sessions/s/streams/rides").json()["malformed"] == 1)
    (letter,) = served.http.get("/sessions/s/streams/rides/malformed").text.splitlines()
    assert json.loads(letter)["reason"].startswith("b.json: not JSON")
    assert json.loads(json.loads(letter)["raw"]) == {"file": str(folder / "b.json"), "size": 6}
    (folder / "b.json").unlink()
    (folder / "c.ndjson").write_text("".join(events[2:]))
    assert [found["rows"] for found in served.wait_for("counted", 3)] == [[[1]], [[2]], [[3]]]
    assert served.http.get("/sessions/s").json()["error"] is None


def test_a_stream_that_a_query_reads_cannot_be_removed_and_one_that_none_reads_can(served: Served) -> None:
    served.make()
    assert served.http.delete("/sessions/s/streams/rides").status_code == 422
    served.http.delete("/sessions/s/queries/busy")
    assert served.http.delete("/sessions/s/streams/rides").status_code == 204
    assert served.http.get("/sessions/s/streams").json() == []


def test_a_replaced_stream_begins_anew_and_numbers_go_on(served: Served) -> None:
    served.make()
    served.wait_for("busy", 3)
    again = served.http.post(
        "/sessions/s/streams", json={"name": "rides", "address": "gen:bikes?rate=100", "replace": True}
    )
    assert again.status_code == 201, again.text
    last = served.http.get("/sessions/s/queries/busy").json()["last_seq"]
    found = until(lambda: served.results("busy", last))
    assert found[0]["seq"] == last + 1
    assert found[0]["at"] == "2022-10-14T14:45:00Z"
    assert served.http.get("/sessions/s/streams/rides").json()["address"] == "gen:bikes?rate=100"


def test_a_second_stream_that_leaves_a_query_in_doubt_is_refused(served: Served) -> None:
    served.make()
    refused = served.http.post("/sessions/s/streams", json={"name": "more"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SRV-013")
    assert "busy" in refused.json()["error"]["message"]
    assert [one["name"] for one in served.http.get("/sessions/s/streams").json()] == ["rides"]


def test_a_replaced_stream_lets_a_query_that_failed_begin_anew(served: Served) -> None:
    served.make(COUNTED.replace("count(b) AS bikes", "10 / (count(b) - 2) AS bikes"), None, on_error="fail")
    served.push(minutes(4))
    failed = until(lambda: one if (one := served.http.get("/sessions/s/queries/counted").json())["error"] else None)
    assert served.http.post("/sessions/s/streams", json={"name": "rides", "replace": True}).status_code == 201
    served.push([bike(number, "2022-10-14T14:45:00Z") for number in range(3)] + minutes(1, start=5))
    again = until(
        lambda: (
            one
            if (one := served.http.get("/sessions/s/queries/counted").json())["last_seq"] > failed["last_seq"]
            else None
        )
    )
    assert (again["state"], again["error"]) == ("running", None)


def test_a_stream_that_comes_back_begins_with_nothing_set_aside(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    for name in ("stays", "goes"):
        served.http.post("/sessions/s/streams", json={"name": name})
        text = COUNTED.replace("counted", f"of_{name}").replace("WITHIN PT1H", f"WITHIN PT1H ON STREAM {name}")
        assert served.http.post("/sessions/s/queries", json={"text": text}).status_code == 201
    for turn in range(2):
        for name in ("stays", "goes"):
            served.push(minutes(3, start=3 * turn), name)
        served.http.post("/sessions/s/streams/goes/events", content="rubbish")
        assert until(lambda: served.http.get("/sessions/s/streams/goes").json()["malformed"]) == 1
        served.wait_for("of_goes", 1)
        text = served.http.get("/sessions/s/queries/of_goes").json()["text"]
        served.http.delete("/sessions/s/queries/of_goes")
        assert served.http.delete("/sessions/s/streams/goes").status_code == 204
        added = served.http.post("/sessions/s/streams", json={"name": "goes"})
        assert (added.status_code, added.json()["malformed"]) == (201, 0), added.text
        assert served.http.post("/sessions/s/queries", json={"text": text}).status_code == 201
    served.hub.session("s").settle()
    assert served.http.get("/sessions/s").json()["error"] is None


def test_names_that_are_places_are_no_names_of_streams(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    for name in (".", "..", "a\x85b", "a\u2028b"):
        refused = served.http.post("/sessions/s/streams", json={"name": name})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SRV-003"), name
    assert served.http.get("/sessions/s/streams").json() == []


def test_streams_with_long_names_have_letters_of_their_own(tmp_path: Path) -> None:
    long = "日" * 20
    assert letter_file(tmp_path, f"{long}a", "late") != letter_file(tmp_path, f"{long}b", "late")
    assert len(letter_file(tmp_path, f"http://{long * 9}/", "malformed").name) < 200


def test_letters_are_given_as_they_are_while_more_are_written(served: Served) -> None:
    served.make(COUNTED, None)
    file = served.hub.session("s").letters("rides", "late")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"{}\n" * 1_000_000)
    with served.http.stream("GET", "/sessions/s/streams/rides/late") as answer, file.open("ab") as more:
        for block in answer.iter_bytes():
            assert set(block) <= set(b"{}\n")
            more.write(b"{}\n" * 100_000)
            more.flush()
        assert answer.num_bytes_downloaded >= 3_000_000


def test_an_instant_that_is_none_is_refused(served: Served) -> None:
    served.make(COUNTED, None)
    for at in ("--5", "-", "5-"):
        answer = served.http.post(
            "/sessions/s/streams/rides/events",
            params={"at": at},
            content="<a:a> <a:b> <a:c> .",
            headers={"content-type": "text/turtle"},
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "SRV-003"), at


def test_a_stream_that_is_faster_than_its_run_says_how_far_behind_that_is(serve: Callable[..., Served]) -> None:
    served = serve(limits=Limits(batch_events=5))
    served.make(address="gen:bikes?rate=100000")

    def behind() -> float:
        found = served.http.get("/sessions/s/streams/rides").json()
        return float(found["behind"]) if found["growing"] else 0.0

    assert until(behind) >= 1
    assert served.http.get("/sessions/s").json()["figures"]["behind"] >= 1
    told = served.http.get(f"{served.address}/metrics").text
    assert 'anabranch_behind_seconds{session="s"} ' in told
    batches = served.http.get("/sessions/s").json()["figures"]
    assert batches["events"] <= 5 * (batches["batch"] + 1)
