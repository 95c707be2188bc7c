"""Looking inside over REST."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from tests.server.conftest import BUSY, Served, bike, minutes, until

from anabranch.model.instants import format_instant, parse_instant

NAMED = """
REGISTER QUERY named STARTING AT 2022-10-14T14:45 {
  MATCH (b:Bike) WITHIN PT1H WHERE b.id >= 0
  EMIT id(b) AS bike SNAPSHOT EVERY PT1M
}
"""
INSIDE = "/sessions/s/queries/named"


def _made(served: Served) -> None:
    served.make(NAMED.replace(" WHERE b.id >= 0", ""), None)
    served.push(minutes(5))
    served.wait_for("named", 4)


def test_operators_have_their_counts(served: Served) -> None:
    _made(served)
    found = until(lambda: one if (one := served.http.get(f"{INSIDE}/operators").json())["load"] else None)
    boxes = {one["id"]: one for one in found["graph"]["boxes"]}
    assert {one["id"] for one in found["load"]} <= set(boxes)
    assert found["graph"]["boxes"][-1]["kind"] == "result"
    assert any(one["rows_out"] > 0 for one in found["load"])


def test_steps_are_leafed_through_by_the_id_of_their_recording(served: Served) -> None:
    _made(served)
    first = served.http.get(f"{INSIDE}/steps", params={"limit": 3})
    assert first.status_code == 200, first.text
    said = first.json()
    assert [one["number"] for one in said["messages"]] == [0, 1, 2]
    served.push(minutes(5, start=5))
    rest = served.http.get(f"{INSIDE}/steps", params={"from": 3, "limit": 1000, "recording": said["recording"]}).json()
    assert rest["total"] == said["total"] == 3 + len(rest["messages"])
    state = served.http.get(f"{INSIDE}/steps/{said['total'] - 1}", params={"recording": said["recording"]}).json()
    assert state["state"]["message"]["number"] == said["total"] - 1
    beyond = served.http.get(f"{INSIDE}/steps/{said['total']}", params={"recording": said["recording"]})
    assert beyond.status_code == 404
    assert served.http.get(f"{INSIDE}/steps", params={"recording": "none"}).status_code == 404


def test_many_who_look_into_one_recording_at_once_see_what_one_would_see(served: Served) -> None:
    _made(served)
    said = served.http.get(f"{INSIDE}/steps", params={"limit": 1}).json()
    numbers = [number for number in range(said["total"]) for _ in range(3)]
    Random(1).shuffle(numbers)

    def asked(number: int) -> Any:
        answer = served.http.get(f"{INSIDE}/steps/{number}", params={"recording": said["recording"]})
        assert answer.status_code in (200, 429, 503), answer.text
        return answer.json()["state"] if answer.status_code == 200 else None

    def state(number: int) -> Any:
        return until(lambda: asked(number))  # who comes when too many are there comes again

    alone = {number: state(number) for number in range(said["total"])}
    with ThreadPoolExecutor(6) as many:
        seen = list(zip(numbers, many.map(state, numbers), strict=True))
    assert all(found == alone[number] for number, found in seen)


def test_a_scene_holds_the_window_at_an_instant(served: Served) -> None:
    _made(served)
    answer = served.http.get(f"{INSIDE}/scene", params={"at": "2022-10-14T14:47:00Z"})
    assert answer.status_code == 200, answer.text
    scene = answer.json()["scene"]
    assert len(scene["elements"]) == scene["total"] == 3


def test_why_names_the_element_and_why_not_what_is_missing(served: Served) -> None:
    _made(served)
    why = served.http.post(f"{INSIDE}/why", json={"row": {"bike": 2}})
    assert why.status_code == 200, why.text
    assert [one["id"] for one in why.json()["why"]["elements"]] == ["n2"]
    why_not = served.http.post(f"{INSIDE}/why-not", json={"values": {"bike": 99}})
    assert why_not.status_code == 200, why_not.text
    assert "values" in why_not.json()["why_not"]


def test_rows_that_were_never_told_and_instants_that_are_none_are_refused(served: Served) -> None:
    _made(served)
    for body in ({"row": {"nothing": 1}}, {"row": [1, 2, 3]}, {"row": {"bike": 2}, "at": "yesterday"}):
        answer = served.http.post(f"{INSIDE}/why", json=body)
        assert answer.status_code < 500, answer.text


def test_before_it_has_run_there_is_nothing_to_look_into(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s", "state": "paused"})
    served.http.post("/sessions/s/streams", json={"name": "rides"})
    served.http.post("/sessions/s/queries", json={"text": BUSY})
    answer = served.http.get("/sessions/s/queries/busy/steps")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "SRV-018")


def test_a_row_over_a_stream_that_another_text_s_query_makes_has_its_reasons(served: Served) -> None:
    served.http.post("/sessions", json={"name": "s"})
    for name in ("rides", "repairs"):
        assert served.http.post("/sessions/s/streams", json={"name": name}).status_code == 201
    maker = """REGISTER QUERY even STARTING AT 2022-10-14T14:45 {
      MATCH (b:Bike) WITHIN PT1M ON STREAM rides WHERE id(b) % 2 = 0 EMIT b INTO evens SNAPSHOT EVERY PT1M }"""
    reader = """REGISTER QUERY named STARTING AT 2022-10-14T14:45 {
      MATCH (b:Bike) WITHIN PT3M ON STREAM evens EMIT id(b) AS bike SNAPSHOT EVERY PT1M }"""
    other = """REGISTER QUERY other STARTING AT 2022-10-14T14:45 {
      MATCH (b:Bike) WITHIN PT3M ON STREAM repairs EMIT id(b) AS bike SNAPSHOT EVERY PT1M }"""
    for text in (maker, reader, other):
        registered = served.http.post("/sessions/s/queries", json={"text": text})
        assert registered.status_code == 201, registered.text
    served.push(minutes(6))
    served.push(minutes(6), stream="repairs")
    found = served.wait_for("named", 5)[-1]
    assert found["rows"] == [[2], [4]]
    why = served.http.post(f"{INSIDE}/why", json={"row": {"bike": 4}, "at": found["at"]})
    assert why.status_code == 200, why.text
    assert [(one["id"], one["stream"]) for one in why.json()["why"]["elements"]] == [("n4", "evens")]
    scene = served.http.get(f"{INSIDE}/scene", params={"at": found["at"]}).json()["scene"]
    assert scene["total"] == 2


def test_why_left_names_what_left_the_window(served: Served) -> None:
    served.make(NAMED.replace(" WHERE b.id >= 0", "").replace("PT1H", "PT2M"), None)
    served.push(minutes(6))
    served.wait_for("named", 5)
    answer = served.http.post(f"{INSIDE}/why-left", json={"row": {"bike": 1}, "at": "2022-10-14T14:46:00Z"})
    assert answer.status_code == 200, answer.text
    found = answer.json()["why_left"]
    assert [one["id"] for one in found["gone"]] == ["n1"]
    assert served.http.post(f"{INSIDE}/why-left", json={"row": [1, 2, 3]}).status_code == 422


def test_a_batch_larger_than_a_short_recording_does_not_make_windows_look_empty(served: Served) -> None:
    served.make(NAMED.replace(" WHERE b.id >= 0", "").replace("PT1H", "PT10M"), None)
    begin = parse_instant("2022-10-14T14:45Z")
    served.push([bike(number, format_instant(begin + number * 60_000_000)) for number in range(900)])
    last = format_instant(begin + 898 * 60_000_000)
    until(lambda: found[-1]["at"] == last if (found := served.results("named")) else False)
    scene = served.http.get(f"{INSIDE}/scene", params={"events": 100}).json()["scene"]
    assert (scene["total"], scene["at"]) == (10, begin + 898 * 60_000_000)
    few = served.http.get(f"{INSIDE}/scene", params={"events": 5}).json()
    assert (few["instants"], few["scene"]) == ([], None)  # out of reach, which is not: empty
