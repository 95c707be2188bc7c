"""The loader of items: what a service that finds things for sale answers becomes RDF, and only news is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.push import Script, everything, serving, wait_until

from anabranch.demos.auctions import EBAY
from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.address import parse_address
from anabranch.sources.base import Limit, as_event
from anabranch.sources.receivers import Receiver, open_receiver
from anabranch.sources.receivers.items import AppId, ItemsReceiver, Questions, item_number
from anabranch.sources.receivers.listings import JsonLdContext, ListedItems, page_of, unwrapped
from anabranch.sources.spool import Spool, SpoolSource

OFTEN = 0.01
ITEM = f"{EBAY}Response.searchResult.item."
WII = Questions(("Wii",))


def item(number: int, price: str, title: str = "Wii", left: str = "P1DT2H", **more: Any) -> dict[str, Any]:
    """An item as the service writes it: every value in a list of its own."""
    return {
        "itemId": [str(number)],
        "title": [title],
        "primaryCategory": [{"categoryId": ["139971"], "categoryName": ["Consoles"]}],
        "viewItemURL": [f"https://www.ebay.com/itm/{number}"],
        "sellingStatus": [
            {"currentPrice": [{"@currencyId": "EUR", "__value__": price}], "bidCount": ["3"], "timeLeft": [left]}
        ],
        "listingInfo": [{"endTime": ["2024-05-01T10:00:00.000Z"], "buyItNowAvailable": ["false"]}],
        **more,
    }


def found(*items: Any, pages: int = 1) -> tuple[int, dict[str, str], bytes]:
    inner = {
        "ack": ["Success"],
        "searchResult": [{"@count": str(len(items)), **({"item": list(items)} if items else {})}],
        "paginationOutput": [{"pageNumber": ["1"], "totalPages": [str(pages)]}],
    }
    return 200, {}, json.dumps({"findItemsByKeywordsResponse": [inner]}).encode()


def asked(script: Script, number: int) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(script.requests[number][0]).query).items()}


def run(receiver: Receiver, spool: Spool, until: Callable[[], object]) -> None:
    receiver.start(spool)
    try:
        wait_until(lambda: until() or not receiver.running)
    finally:
        receiver.stop()
    assert receiver.error is None, receiver.error


def read(directory: Path) -> list[Event | MalformedRecord]:
    source = SpoolSource("s", directory)
    end = source.ahead(source.begin(), Limit())
    return [one for piece in source.pieces(source.begin(), end) for one in source.read(piece, as_event)]


def prices(directory: Path) -> list[tuple[str, str]]:
    """Item and price of each event, in the order in which they were told."""
    told = []
    for event in read(directory):
        assert isinstance(event, Event), event
        (one,) = [one for one in event.triples if one.predicate[0] == f"{ITEM}sellingStatus.currentPrice"]
        told.append((one.subject[0].rpartition("/")[2], one.object[0]))
    return told


# --- what an item becomes ---------------------------------------------------------------------------------------------


def test_an_item_becomes_triples_in_the_words_of_the_paper(spool: Spool) -> None:
    with serving(found(item(110, "10.5"))) as script:
        receiver = ItemsReceiver(script.url, WII, OFTEN)
        receiver.now = lambda: 1304500000.1234
        run(receiver, spool, lambda: spool.cursor)
    (event,) = read(spool.directory)
    assert isinstance(event, Event)
    assert event.event_time == 1304500000123000
    assert {one.subject[0] for one in event.triples} == {"https://www.ebay.com/itm/110"}
    said = {one.predicate[0].removeprefix(ITEM): one.object for one in event.triples}
    assert {name: term[0] for name, term in said.items()} == {
        "title": "Wii",
        "primaryCategory.categoryId": "139971",
        "primaryCategory.categoryName": "Consoles",
        "viewItemURL": "https://www.ebay.com/itm/110",
        "sellingStatus.currentPrice": "10.5",
        "sellingStatus.currentPrice.currencyId": "EUR",
        "sellingStatus.bidCount": "3",
        "listingInfo.endTime": "2024-05-01T10:00:00.000Z",
        "listingInfo.buyItNowAvailable": "false",
    }
    assert [said[name][1].rpartition("#")[2] for name in ("sellingStatus.currentPrice", "sellingStatus.bidCount")] == [
        "decimal",
        "integer",
    ]


@pytest.mark.parametrize(
    ("wrapped", "plain"),
    [
        ([["x"]], "x"),
        ({"a": [{"b": ["1", "2"]}]}, {"a": {"b": ["1", "2"]}}),
        ({"p": [{"@c": "EUR", "__value__": "1"}]}, {"p": "1", "p@c": "EUR"}),
        ({"p": [{"__value__": "1"}, {"__value__": "2"}]}, {"p": ["1", "2"]}),
        ({"@count": "0"}, {"count": "0"}),
        ([], []),
        (3.5, 3.5),
    ],
)
def test_lists_of_one_and_objects_around_amounts_are_unwrapped(wrapped: Any, plain: Any) -> None:
    assert unwrapped(wrapped) == plain


def test_a_context_of_ones_own_says_what_other_names_mean(spool: Spool, tmp_path: Path) -> None:
    context = {
        "@base": "http://shop/",
        "sku": "@id",
        "cost": {"@id": "http://v/cost"},
        "stock": None,
        "maker": {"@id": "http://v/by"},
    }
    (tmp_path / "shop.json").write_text(json.dumps(context))
    answer = {"data": {"list": [{"sku": "a1", "cost": 3, "stock": 9, "maker": {"@id": "http://m/1"}}]}}
    with serving((200, {}, json.dumps(answer).encode())) as script:
        receiver = ItemsReceiver(script.url, WII, OFTEN, "data.list", context=str(tmp_path / "shop.json"))
        run(receiver, spool, lambda: spool.cursor)
    (event,) = read(spool.directory)
    assert isinstance(event, Event)
    assert {(one.subject[0], one.predicate[0], one.object[0]) for one in event.triples} == {
        ("http://shop/a1", "http://v/cost", "3"),
        ("http://shop/a1", "http://v/by", "http://m/1"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('"http://schema.org/"', "is no JSON-LD context\nhint: it stands in the file"),
        ('{"@context": {"a": 3}}', "is no JSON-LD context: "),
    ],
)
def test_a_context_that_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(StreamError) as refused:
        JsonLdContext(tmp_path / "c.json")
    assert message in str(refused.value)
    with pytest.raises(StreamError, match="No such file"):
        JsonLdContext(tmp_path / "d.json")


# --- what is told -----------------------------------------------------------------------------------------------------


def test_an_item_is_told_anew_when_it_changed_and_not_otherwise(spool: Spool) -> None:
    rounds = [
        found(item(1, "10"), item(2, "20")),
        found(item(1, "10", left="P1DT1H"), item(2, "21")),  # the time that is left is no news
        found(item(2, "20"), item(1, "10")),  # back again: that is a change too
        found(item(1, "10"), item(3, "30")),
        found(),
    ]
    with serving(*rounds) as script:
        run(ItemsReceiver(script.url, WII, OFTEN), spool, lambda: len(script.requests) > 6)
    assert prices(spool.directory) == [("1", "10"), ("2", "20"), ("2", "21"), ("2", "20"), ("3", "30")]


def test_all_items_are_told_in_each_round_where_that_is_asked_for(spool: Spool) -> None:
    with serving(found(item(1, "10"))) as script:
        run(ItemsReceiver(script.url, WII, OFTEN, only_changes=False), spool, lambda: len(script.requests) > 2)
        assert len(prices(spool.directory)) >= 2
    assert set(prices(spool.directory)) == {("1", "10")}


def test_a_restart_tells_only_what_changed_meanwhile(tmp_path: Path) -> None:
    with serving(found(item(1, "10"), item(2, "20"))) as script:
        for price in ("20", "20", "25"):
            script.answers = [found(item(1, "10"), item(2, price))]
            before = len(script.requests)
            with Spool(tmp_path) as spool:
                run(ItemsReceiver(script.url, WII, OFTEN), spool, lambda: len(script.requests) > before + 1)  # noqa: B023
    assert prices(tmp_path) == [("1", "10"), ("2", "20"), ("2", "25")]


def test_another_context_tells_everything_again(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"@vocab": ITEM, "@base": "http://x/", "itemId": "@id"}))
    with serving(found(item(1, "10"))) as script:
        for context in (None, str(tmp_path / "c.json")):
            with Spool(tmp_path / "spool") as spool:
                before = len(script.requests)
                receiver = ItemsReceiver(script.url, WII, OFTEN, context=context)
                run(receiver, spool, lambda: len(script.requests) > before + 1)  # noqa: B023
    assert len(everything(SpoolSource("s", tmp_path / "spool"))) == 2


def test_what_was_told_is_bounded_but_holds_a_whole_round() -> None:
    told = ListedItems(most=2)
    assert all(told.changes(key, b"x") for key in (1, 2, 3))
    told.forget_oldest(3)
    assert not told.changes(1, b"x")
    told.forget_oldest(0)  # 2 is now the oldest
    assert [ListedItems(told.packed()).changes(key, b"x") for key in (1, 3, 2)] == [False, False, True]
    assert told.changes(1, b"y")
    assert told.changes(None, b"z")
    assert not told.changes(None, b"z")


def test_a_clock_that_is_set_back_makes_no_instant_earlier(spool: Spool) -> None:
    clock = iter([100.0, 50.0, 120.0])
    with serving(found(item(1, "1")), found(item(1, "2")), found(item(1, "3")), found()) as script:
        receiver = ItemsReceiver(script.url, WII, OFTEN)
        receiver.now = lambda: next(clock)
        run(receiver, spool, lambda: receiver.received == 3)
    times = [event.event_time for event in read(spool.directory) if isinstance(event, Event)]
    assert times == [100_000_000, 100_000_000, 120_000_000]


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_pages_are_asked_for_up_to_the_last_and_no_further_than_allowed(spool: Spool) -> None:
    answers = [found(item(number, "1"), pages=3) for number in (1, 2, 3)]
    with serving(*answers, (500, {}, b"")) as script:
        receiver = ItemsReceiver(script.url, Questions(("Wii",), pages=10, limit=7), 60)
        run(receiver, spool, lambda: receiver.received == 3)
    assert [one for one, _ in prices(spool.directory)] == ["1", "2", "3"]
    pages = [asked(script, number)["paginationInput.pageNumber"] for number in range(len(script.requests))]
    assert pages == ["1", "2", "3"]
    assert asked(script, 0)["paginationInput.entriesPerPage"] == "7"
    with serving(found(item(4, "1"), pages=3), found(item(5, "1"), pages=3), (500, {}, b"")) as script:
        receiver = ItemsReceiver(script.url, Questions(("Wii",), pages=2), 60)
        run(receiver, spool, lambda: "2 new" in receiver.state)
        assert len(script.requests) == 2


def test_keywords_items_and_addresses_of_items_are_a_question_each(spool: Spool) -> None:
    with serving(found(item(1, "10"))) as script:
        text = (
            f"http+items://127.0.0.1:{script.port}/find?keywords=road bike,Wii%20Fit&item=110089&every=0.01"
            "&url=https://www.ebay.com/itm/Wii-Console-512/220034%3Fhash%3Ditem99"
        )
        run(open_receiver(parse_address(text)), spool, lambda: len(script.requests) >= 8)
        said = [asked(script, number) for number in range(4)]
    assert [one.get("keywords") or one["itemId"] for one in said] == ["road bike", "Wii Fit", "110089", "220034"]
    assert {one["OPERATION-NAME"] for one in said} == {"findItemsByKeywords"}
    assert all(path.startswith("/find?") for path, _ in script.requests)
    assert prices(spool.directory) == [("1", "10")]


@pytest.mark.parametrize(
    ("address", "number"),
    [
        ("https://www.ebay.com/itm/110089", "110089"),
        ("https://www.ebay.com/itm/Nice-Wii-64/110089?hash=123456", "110089"),
        ("https://shop.example/item/4711/", "4711"),
    ],
)
def test_an_items_number_is_found_in_the_address_of_its_page(address: str, number: str) -> None:
    assert item_number(address) == number


def test_the_apps_id_is_sent_to_the_service_alone_and_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_ID", "s3cr3t-id")
    states: list[str] = []
    with serving(found(item(1, "10"))) as other, serving((302, {"Location": f"{other.url}/x"}, b"")) as script:
        for extra in ("", "&app-id-parameter=SECURITY-APPNAME", "&app-id-header=X-Key"):
            text = f"http+items://127.0.0.1:{script.port}/find?keywords=Wii&every=60&app-id=SHOP_ID{extra}"
            assert "s3cr3t" not in parse_address(text).shown
            with Spool(tmp_path / f"spool{len(extra)}") as spool:
                receiver = open_receiver(parse_address(text))
                receiver.on_state = states.append
                run(receiver, spool, lambda: spool.cursor)
    headers = [{name: value for name, value in sent.items() if "s3cr3t" in value} for _, sent in script.requests]
    assert headers == [{"x-ebay-soa-security-appname": "s3cr3t-id"}, {}, {"x-key": "s3cr3t-id"}]
    assert ["s3cr3t-id" in path for path, _ in script.requests] == [False, True, False]
    assert not any("s3cr3t" in f"{path}{sent}" for path, sent in other.requests)
    assert "s3cr3t" not in "".join(states)
    assert not any(b"s3cr3t" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "s3cr3t" not in repr(AppId("s3cr3t-id"))


# --- when things go wrong ---------------------------------------------------------------------------------------------


def test_a_service_that_fails_or_wants_patience_is_asked_again(spool: Spool) -> None:
    states: list[str] = []
    answers = [(500, {}, b""), (429, {"Retry-After": "1"}, b""), lambda handler: handler.connection.close()]
    with serving(*answers, found(item(1, "10"))) as script:
        began = time.monotonic()
        receiver = ItemsReceiver(script.url, WII, OFTEN)
        receiver.on_state = states.append
        run(receiver, spool, lambda: spool.cursor)
        assert time.monotonic() - began > 0.95
    assert prices(spool.directory) == [("1", "10")]
    assert [status for status in ("500", "429") if any(f"answered {status}" in state for state in states)] == [
        "500",
        "429",
    ]


def test_what_is_no_json_and_no_item_is_set_aside_and_the_rest_goes_on(spool: Spool) -> None:
    strange = found("no item", item(1, "10"), {"itemId": ["not an IRI <>"], "title": ["x"]})
    with serving((200, {}, b"<html>busy</html>"), (200, {}, b"<html>busy</html>"), strange) as script:
        run(ItemsReceiver(script.url, WII, OFTEN), spool, lambda: len(script.requests) > 4)
    reasons = [one.reason if isinstance(one, MalformedRecord) else "event" for one in read(spool.directory)]
    assert len(reasons) == 4
    assert reasons[0].startswith("not JSON")
    assert reasons[1].startswith("not a timed triple")
    assert reasons[2] == "event"
    assert reasons[3].startswith("graph: the JSON-LD says nothing")


def by_keywords(answers: dict[str, Callable[[int], tuple[int, dict[str, str], bytes]]]) -> Callable[..., None]:
    """A service that answers each keyword in its own way; it is told how often that was asked before."""
    counts = dict.fromkeys(answers, 0)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        keywords = parse_qs(urlsplit(handler.path).query)["keywords"][0]
        status, headers, body = answers[keywords](counts[keywords])
        counts[keywords] += 1
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def keywords_asked(script: Script) -> list[str]:
    return [asked(script, number)["keywords"] for number in range(len(script.requests))]


@pytest.mark.parametrize("names", [("bad", "good"), ("good", "bad")])
def test_a_question_that_fails_is_asked_again_and_the_others_no_more_often_for_it(
    spool: Spool, names: tuple[str, str]
) -> None:
    states: list[str] = []
    answer = by_keywords({"bad": lambda _: (500, {}, b""), "good": lambda count: found(item(1, str(count)))})
    with serving(answer) as script:
        receiver = ItemsReceiver(script.url, Questions(names), 60.0, only_changes=False)
        receiver.on_state = states.append
        run(receiver, spool, lambda: keywords_asked(script).count("bad") > 4)
        assert keywords_asked(script).count("good") == 1
    assert prices(spool.directory) == [("1", "0")]
    assert all(f"{script.url}: answered 500" in state for state in states[:-1])


def test_questions_that_work_keep_their_pace_beside_one_that_does_not(spool: Spool) -> None:
    answers = {
        "gone": lambda _: (404, {}, b""),
        "bad": lambda _: (500, {}, b""),
        "good": lambda _: found(item(1, "10")),
    }
    with serving(by_keywords(answers)) as script:
        began = time.monotonic()
        receiver = ItemsReceiver(script.url, Questions(tuple(answers)), 0.05)
        run(receiver, spool, lambda: keywords_asked(script).count("good") > 20)
        assert time.monotonic() - began < 15  # pauses that double would take minutes


def test_a_page_that_fails_is_asked_again_and_those_before_it_are_not(spool: Spool) -> None:
    def answer(count: int) -> tuple[int, dict[str, str], bytes]:
        return (502, {}, b"") if count in (1, 2) else found(item(count, "10"), pages=2)

    with serving(by_keywords({"Wii": answer})) as script:
        questions = Questions(("Wii",), pages=2)
        receiver = ItemsReceiver(script.url, questions, 60.0, only_changes=False)
        run(receiver, spool, lambda: len(script.requests) == 4 and receiver.received == 2)
        pages = [asked(script, number)["paginationInput.pageNumber"] for number in range(4)]
    assert pages == ["1", "2", "2", "2"]
    assert prices(spool.directory) == [("0", "10"), ("3", "10")]


def test_a_service_that_names_a_time_to_come_again_is_left_alone_with_all_questions(spool: Spool) -> None:
    answer = by_keywords(
        {
            "good": lambda count: found(item(1, str(count))),
            "busy": lambda count: (429, {"Retry-After": "1"}, b"") if count == 0 else found(item(2, "1")),
            "last": lambda _: found(item(3, "1")),
        }
    )
    with serving(answer) as script:
        began = time.monotonic()
        receiver = ItemsReceiver(script.url, Questions(("good", "busy", "last")), 60.0)
        run(receiver, spool, lambda: receiver.received == 3)
        assert time.monotonic() - began > 0.95
        assert keywords_asked(script) == ["good", "busy", "last", "busy"]
    assert [number for number, _ in prices(spool.directory)] == ["1", "3", "2"]


def test_a_refused_question_does_not_keep_the_others_from_being_asked(spool: Spool) -> None:
    states: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        status, body = (404, b"") if "itemId" in handler.path else (200, found(item(1, "10"))[2])
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with serving(answer) as script:
        receiver = ItemsReceiver(script.url, Questions(("Wii",), ("999",)), OFTEN)
        receiver.on_state = states.append
        run(receiver, spool, lambda: any("404" in state for state in states))
    assert prices(spool.directory) == [("1", "10")]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"errorMessage": [{"error": [{"message": ["Keyword is missing."]}]}]}', "/: Keyword is missing.\nhint: "),
        (b'{"things": []}', "/: the answer has no `searchResult`\nhint: it has things; name the list"),
        (b"3", "the answer has no `searchResult`\nhint: it is no object"),
    ],
)
def test_an_answer_that_is_an_error_or_of_another_shape_ends_it(spool: Spool, body: bytes, message: str) -> None:
    with serving((200, {}, body)) as script:
        receiver = ItemsReceiver(f"{script.url}/", WII)
        receiver.start(spool)
        assert receiver.join(10)
    assert message in str(receiver.error)


def test_an_answer_without_items_is_a_page_without_items() -> None:
    assert page_of(json.loads(found()[2]), None, "x").items == []


def test_an_answer_may_be_the_list_itself_also_of_one_item() -> None:
    assert page_of([{"itemId": "1"}, {"itemId": "2"}], None, "x").items == [{"itemId": "1"}, {"itemId": "2"}]
    assert page_of([{"itemId": "1"}], None, "x").items == [{"itemId": "1"}]
    assert page_of([], None, "x").items == []
    assert page_of([json.loads(found(item(1, "10"))[2])], None, "x").items[0]["itemId"] == "1"


def test_a_silent_service_is_given_up_after_the_timeout(spool: Spool) -> None:
    hanging = threading.Event()
    states: list[str] = []
    with serving(lambda handler: hanging.wait(30)) as script:
        receiver = ItemsReceiver(script.url, WII, OFTEN, timeout=0.05)
        receiver.on_state = states.append
        run(receiver, spool, lambda: any("timed out" in state for state in states))
        hanging.set()


def test_a_service_that_answers_drop_by_drop_is_given_up_after_the_timeout(spool: Spool) -> None:
    ended = threading.Event()
    states: list[str] = []

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not ended.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    with serving(dripping) as script:
        receiver = ItemsReceiver(script.url, WII, OFTEN, timeout=0.2)
        receiver.on_state = states.append
        run(receiver, spool, lambda: any("no whole answer within 0.2 s" in state for state in states))
        ended.set()
    assert receiver.received == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("keyword=x", "there is no option keyword\nhint: did you mean keywords?"),
        ("every=soon", "every=soon is no pause"),
        ("timeout=-", "timeout=- is no pause"),
        ("timeout=0", "http+items://h/p: timeout=0 is no time to wait"),
        ("every=0", "http+items://h/p: every=0.0 is no pause"),
        ("pages=0", "http+items://h/p: pages=0: it goes from 1 to 100"),
        ("url=https://www.ebay.com/", "the address holds no item number"),
        ("only-changes=maybe", "only-changes=maybe"),
        ("app-id=NO_SUCH_ID", "app-id=NO_SUCH_ID: there is no such variable in the environment"),
        ("context=/no/such/file", "http+items://h/p: context /no/such/file: No such file"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: str, message: str) -> None:
    with pytest.raises(StreamError) as refused:
        open_receiver(parse_address(f"http+items://h/p?{options}"))
    assert message in str(refused.value)


# --- without a checkpoint ---------------------------------------------------------------------------------------------
