"""What somebody means who writes a value as the page shows it."""

from __future__ import annotations

from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.ui.meaning import has_row, iris, meant, read

ITEM = "http://auctions.example/item/2402"
PREFIXES = {"it": "http://auctions.example/it/"}


def test_a_shown_form_means_the_value_that_it_is_shown_for() -> None:
    seen = [ITEM, 1234.5, 7, "a text", None, "http://auctions.example/it/9"]
    assert meant("item/2402", seen, PREFIXES) == [ITEM]
    assert meant(ITEM, seen, PREFIXES) == [ITEM]
    assert meant("1,234.50", seen, PREFIXES) == [1234.5]
    assert meant("7", seen, PREFIXES) == [7]
    assert meant("it:9", seen, PREFIXES) == ["http://auctions.example/it/9"]
    assert meant("item/9", seen, PREFIXES) == []


def test_two_values_that_are_shown_alike_are_both_meant() -> None:
    others = [ITEM, "http://other.example/shop/item/2402", ITEM]
    assert meant("item/2402", others, {}) == others[:2]


def test_what_is_written_out_is_read() -> None:
    assert read("it:77", PREFIXES) == "http://auctions.example/it/77"
    assert read("<urn:x>", PREFIXES) == "urn:x"
    assert read("http://x.org/a", {"http": "no"}) == "http://x.org/a"
    assert (read("3", {}), read('"3"', {}), read("true", {}), read("a b", {})) == (3, "3", True, "a b")


def test_an_iri_of_the_recording_is_found_by_its_short_form() -> None:
    triple = Triple(Iri(ITEM), Iri("http://x/p"), Literal("item/2402"))
    event = Event(0, (), (), (triple,))
    recording = Recording("", events={"s": [event]})
    assert iris(recording, "item/2402", {}) == [ITEM]
    assert iris(recording, "item/1", {}) == []


def test_a_row_with_the_values_is_found_among_those_on_the_screen() -> None:
    rows = [["a", 1], ["b", 2.0]]
    assert has_row(("name", "n"), rows, {"n": 2}) == {"name": "b", "n": 2.0}
    assert has_row(("name", "n"), rows, {"n": 2, "name": "a"}) is None
