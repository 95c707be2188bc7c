"""The page in a real browser: what people do with it, and what they see."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

from anabranch.ui.presets import PRESETS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

expect.set_options(timeout=120_000)  # the first answer may wait for kernels to be compiled
FIGURE_6 = "Figure 6 of the LUPOS paper"
ROWS = "#panel-answers .ab-table tbody tr"


def choose(page: Page, note: str) -> None:
    """Take an example by its note."""
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem").filter(has_text=note).first.click()
    preset = next(one for one in PRESETS if note in one.note)
    expect(page.locator("select[aria-label=session]")).to_have_value(preset.case.session)
    expect(page.locator(".cm-content")).to_contain_text(preset.text().splitlines()[0])


def figure_6(page: Page, address: str, more: str = "") -> None:
    """The page with the auctions running."""
    page.goto(f"{address}/?session=auctions{more}")
    expect(page.locator(".ab-page")).to_be_visible()
    if page.locator("select[aria-label=session] option[value=auctions]").count() == 0 or "query" not in texts(
        page.locator(".ab-chip .name")
    ):
        choose(page, FIGURE_6)
        page.get_by_role("button", name="Start").click()
    expect(page.locator(".ab-chip .name").first).to_be_visible()
    if page.locator(".ab-pill.running").count() == 0:
        page.get_by_role("button", name="Start").click()
    expect(page.locator(".ab-pill.running")).to_be_visible()


def texts(found: Locator) -> list[str]:
    return [text.strip() for text in found.all_inner_texts()]


def tab(page: Page, name: str) -> None:
    page.locator(".ab-body > .ab-bar").get_by_role("tab", name=name).click()


def rest(address: str, method: str, path: str, body: object = None) -> None:
    """Ask the server; a body that is a list is sent as lines."""
    lines = isinstance(body, list)
    text = "\n".join(json.dumps(one) for one in body) if isinstance(body, list) else json.dumps(body)
    request = urllib.request.Request(
        f"{address}/api/v1/sessions{path}",
        None if body is None else text.encode(),
        {"Content-Type": "application/x-ndjson" if lines else "application/json"},
        method=method,
    )
    urllib.request.urlopen(request, timeout=60).close()


def people(address: str, session: str, emit: str = "p.name AS name", on_error: str = "skip") -> None:
    """A session of that name with a query over people of the last minute, whose events are pushed."""
    rest(address, "POST", "", {"name": session})
    rest(address, "POST", f"/{session}/streams", {"name": "people"})
    matched = f"MATCH (p:P) WITHIN PT1M EMIT {emit} SNAPSHOT EVERY PT1M"
    text = f"REGISTER QUERY names STARTING AT 2024-05-01T10:00 {{ {matched} }}"
    rest(address, "POST", f"/{session}/queries", {"text": text, "on_error": on_error})


def came(address: str, session: str, minute: int, names: Sequence[str], **more: Any) -> None:
    """People come in a minute, and the minute ends."""
    nodes = [{"id": name, "labels": ["P"], "properties": {"name": name, **more}} for name in names]
    told = [
        {"at": f"2024-05-01T10:{minute:02}:30Z", "nodes": nodes, "relationships": []},
        {"at": f"2024-05-01T10:{minute + 1:02}:01Z", "nodes": [], "relationships": []},
    ]
    rest(address, "POST", f"/{session}/streams/people/events", told)


def points(page: Page) -> int:
    return int(page.locator(".ab-chart").get_attribute("data-points") or 0)


def ticked(page: Page) -> list[str]:
    return [str(one.get_attribute("aria-label")) for one in page.locator(".ab-tick.on").all()]


def test_an_example_is_chosen_and_started_and_its_rows_arrive(page: Page, address: str) -> None:
    page.goto(address)
    choose(page, FIGURE_6)
    expect(page.locator(".cm-content")).to_contain_text("SLIDINGTRIPLES 100")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(ROWS).first).to_be_visible()
    assert texts(page.locator("#panel-answers .ab-sort")) == ["id", "title", "bid", "avg", "min", "max", "sum"]
    events = page.locator(".ab-figure b").nth(1)
    before = events.inner_text()
    expect(events).not_to_have_text(before)


def test_an_error_is_underlined_and_explained_while_it_is_written_and_goes_when_it_is_mended(
    page: Page, address: str
) -> None:
    figure_6(page, address)
    expect(page.locator(".cm-content")).to_contain_text("SLIDINGTRIPLES")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("}")
    expect(page.locator(".cm-content .ab-wrong")).to_be_visible()
    expect(page.locator(".ab-diagnostics li")).to_contain_text(re.compile(r"[A-Z]+-\d+ \d+:\d+"))
    page.keyboard.press("Backspace")
    expect(page.locator(".ab-diagnostics")).to_be_hidden()
    expect(page.locator(".cm-content .ab-wrong")).to_have_count(0)


def test_a_query_that_is_not_right_is_not_started(page: Page, address: str) -> None:
    figure_6(page, address)
    chips = texts(page.locator(".ab-chip .name"))
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("REGISTER QUERY half STARTING AT NOW { MATCH (a")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".q-notification")).to_contain_text("underlined")
    assert texts(page.locator(".ab-chip .name")) == chips
    page.evaluate("localStorage.clear()")


def test_the_chart_of_a_ticked_column_grows(page: Page, address: str) -> None:
    figure_6(page, address)
    expect(page.locator("#panel-answers .ab-tick")).to_have_count(5)
    assert ticked(page) == ["draw avg over time", "draw max over time"]  # as the example has it
    page.get_by_role("checkbox", name="draw max over time").click()
    expect(page.locator(".ab-chart")).to_be_visible()
    page.wait_for_function("document.querySelector('.ab-chart').dataset.points > 0")
    before = points(page)
    page.wait_for_function(f"document.querySelector('.ab-chart').dataset.points > {before + 2}")
    page.get_by_role("checkbox", name="draw max over time").click()
    page.wait_for_function(f"document.querySelector('.ab-chart').dataset.points >= {2 * before}")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the series as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "at,avg,max"
    assert len(lines) > before


def test_a_reload_keeps_the_session_the_text_the_ticked_columns_and_the_tab(page: Page, address: str) -> None:
    figure_6(page, address)
    page.get_by_role("checkbox", name="draw bid over time").click()
    page.wait_for_function("document.querySelector('.ab-chart').dataset.points > 3")
    count = points(page)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# a thought")
    tab(page, "Plan")
    expect(page.locator("#panel-plan .box").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("tab", name="Plan", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cm-content")).to_contain_text("# a thought")
    assert page.locator("select[aria-label=session]").input_value() == "auctions"
    tab(page, "Answers")
    expect(page.get_by_role("checkbox", name="draw bid over time")).to_have_attribute("aria-checked", "true")
    page.wait_for_function(f"document.querySelector('.ab-chart').dataset.points >= {count}")


def test_the_operators_are_drawn_and_count_what_they_do(page: Page, address: str) -> None:
    figure_6(page, address, "&tab=plan")
    result = page.locator("#panel-plan .box.result")
    expect(result).to_have_attribute("aria-label", re.compile(r"out [1-9]"))
    expect(page.locator("#panel-plan .box.window .part")).to_have_text("window")
    expect(page.locator("#panel-plan .box.streaming .part").first).to_have_text("streaming")
    page.get_by_role("tab", name="Before and after the rules").click()
    expect(page.locator(".ab-drawings figcaption").first).to_contain_text("Before the rules")
    expect(page.locator(".ab-drawings svg").first).to_be_visible()


def state(page: Page) -> list[str]:
    return texts(page.locator(".ab-now")) + texts(page.locator("#panel-steps td")) + texts(page.locator(".ab-sub"))


def test_stepping_forward_and_back_gives_the_same_state(page: Page, address: str) -> None:
    figure_6(page, address)
    expect(page.locator(ROWS).first).to_be_visible()
    tab(page, "Step by step")
    expect(page.locator(".ab-figures b").nth(1)).to_have_text(re.compile(r"[1-9]\d\d"))  # events
    page.get_by_role("button", name="Record the last events").click()
    current = page.locator(".ab-messages .current .number")
    expect(current).to_be_visible()
    start = int(current.inner_text())
    seen = {start: state(page)}
    for number in range(start + 1, start + 6):
        page.get_by_role("button", name="Next message").click()
        expect(current).to_have_text(str(number))
        page.wait_for_timeout(200)
        seen[number] = state(page)
    assert len({tuple(one) for one in seen.values()}) > 1
    for number in range(start + 4, start - 1, -1):
        page.get_by_role("button", name="Previous message").click()
        expect(current).to_have_text(str(number))
        page.wait_for_timeout(200)
        assert state(page) == seen[number]
    page.get_by_role("button", name="First message").click()
    expect(current).to_have_text("1")
    expect(page.get_by_role("button", name="Previous message")).to_be_disabled()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(current).to_have_text(re.compile("[3-9]"))
    page.get_by_role("button", name="Pause", exact=True).last.click()


def test_the_window_is_drawn_as_a_graph_that_can_be_scrubbed(page: Page, address: str) -> None:
    figure_6(page, address, "&tab=window")
    what, line = "#panel-window .ab-card-head .ab-quiet", "#panel-window .ab-slider span"
    expect(page.locator(what)).to_contain_text(re.compile(r"\d+ elements"))

    def drawn() -> tuple[str, str]:
        """The instant that the line stands at, and what is said of the graph, once this is that instant's."""
        said = "(selector) => document.querySelector(selector).textContent"
        page.wait_for_function(f"([what, line]) => ({said})(what).includes(({said})(line))", arg=[what, line])
        return page.locator(line).inner_text(), page.locator(what).inner_text()

    page.locator("#panel-window").get_by_role("button", name="Instant before").click()
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    here = drawn()
    page.locator("#panel-window").get_by_role("button", name="Instant before").click()
    expect(page.locator(line)).not_to_have_text(here[0])
    assert drawn()[1] != here[1]
    page.locator("#panel-window").get_by_role("button", name="Instant after").click()
    expect(page.locator(line)).to_have_text(here[0])
    assert drawn() == here


def test_a_click_on_a_row_tells_why_it_is_there(page: Page, address: str) -> None:
    figure_6(page, address)
    expect(page.locator(ROWS).first).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).first.click()
    expect(page.locator(".ab-pill.paused")).to_be_visible()
    page.wait_for_timeout(1500)  # a beat, so that no row is about to leave
    expect(page.locator(f"{ROWS}.leaving")).to_have_count(0)
    title = page.locator(ROWS).first.locator("td").nth(1).inner_text()
    page.locator(ROWS).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Why is this row there?")
    expect(dialog.locator(".ab-elements li").first).to_be_visible()
    expect(dialog.locator(".ab-elements")).to_contain_text(title)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Start").click()


def test_why_not_tells_which_part_of_the_pattern_is_missing(page: Page, address: str) -> None:
    figure_6(page, address)
    expect(page.locator(ROWS).first).to_be_visible()
    page.get_by_role("button", name="Why not?").click()
    page.get_by_role("combobox", name="title").fill("a thing that nobody sells")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("dialog").locator(".ab-elements li.bad").first).to_contain_text("?title")


def test_another_speed_makes_the_stream_faster(page: Page, address: str) -> None:
    page.goto(address)
    choose(page, "Bids at least twice the bid before")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".ab-pill.running")).to_be_visible()
    page.locator("select[aria-label=speed]").select_option("1000")
    expect(page.locator(".ab-stream .address")).to_contain_text("rate=1000")
    expect(page.locator(".ab-stream .facts b").first).to_have_text(re.compile(r"[1-9]\d\d"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".ab-pill.stopped")).to_be_visible()


def test_a_query_that_tells_what_enters_gets_a_log_with_instants(page: Page, address: str) -> None:
    page.goto(address)
    choose(page, "five events")
    page.keyboard.press("Escape")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(page.locator(ROWS)).to_have_count(2)
    assert texts(page.locator("#panel-answers .ab-sort")) == ["at", "r.user_id", "s.id", "r.val_time", "hops"]
    assert texts(page.locator(ROWS).first.locator("td"))[:2] == ["15:40:00", "5678"]
    expect(page.locator(".ab-header .ab-pill").first).to_have_text("ended")


def test_static_and_streaming_parts_are_told_apart_in_the_plan(page: Page, address: str) -> None:
    page.goto(address)
    choose(page, "Static city, moving cars")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(ROWS).first).to_be_visible()
    tab(page, "Plan")
    expect(page.locator("#panel-plan .box.static .part").first).to_have_text("static")
    expect(page.locator("#panel-plan .box.streaming .part").first).to_have_text("streaming")


def test_the_theme_follows_the_system_until_it_is_chosen_and_the_choice_stays(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".ab-page")).to_be_visible()
    assert "body--dark" not in str(page.locator("body").get_attribute("class"))
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))


def test_a_phone_never_scrolls_sideways(phone: Page, address: str) -> None:
    figure_6(phone, address)
    expect(phone.locator(ROWS).first).to_be_visible()
    expect(phone.locator(".ab-chart")).to_be_visible()
    for name in ("Answers", "Plan", "Step by step", "Window"):
        tab(phone, name)
        phone.wait_for_timeout(700)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, name


def test_everything_that_can_be_clicked_has_a_name_and_is_reached_by_the_keyboard(page: Page, address: str) -> None:
    figure_6(page, address)
    expect(page.locator(ROWS).first).to_be_visible()
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, select, input, [role=button]')].filter((one) => one.offsetParent &&"
        " !(one.getAttribute('aria-label') || one.textContent.trim() || one.title)).map((one) => one.outerHTML)"
    )
    assert nameless == []
    page.locator(".ab-body > .ab-bar .ab-tab").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Plan", exact=True)).to_have_attribute("aria-selected", "true")


def test_an_answer_of_other_rows_is_shown_whole(page: Page, address: str) -> None:
    people(address, "crowd")
    page.goto(f"{address}/?session=crowd")
    for minute in (0, 1, 2):
        came(address, "crowd", minute, [f"{minute}-{number:03}" for number in range(200)])
        expect(page.locator(ROWS).first).to_contain_text(f"{minute}-000")
        expect(page.locator(f"{ROWS}.leaving")).to_have_count(0)
        expect(page.locator(ROWS)).to_have_count(200)


def test_an_answer_without_rows_empties_the_table(page: Page, address: str) -> None:
    people(address, "quiet")
    page.goto(f"{address}/?session=quiet")
    when = page.locator("#panel-answers .ab-card-head .ab-quiet").first
    came(address, "quiet", 0, ["ann"])
    expect(page.locator(ROWS)).to_have_text(["ann"])
    expect(when).to_contain_text("10:01:00")
    came(address, "quiet", 4, [])
    expect(page.locator(ROWS)).to_have_count(0)
    expect(when).to_have_text("snapshot at 2024-05-01 10:05:00 · no rows")
    came(address, "quiet", 5, ["bob"])
    expect(page.locator(ROWS)).to_have_text(["bob"])
    expect(when).to_contain_text("10:06:00")


def test_markup_is_shown_as_text(page: Page, address: str) -> None:
    people(address, "letters", "p.name AS name")
    page.goto(f"{address}/?session=letters")
    came(address, "letters", 0, ["half", "<img src=x onerror=alert(1)>"])
    expect(page.locator(ROWS)).to_have_text(["<img src=x onerror=alert(1)>", "half"])
    page.locator(ROWS).first.click()
    expect(page.get_by_role("dialog").locator(".ab-elements li").first).to_contain_text("<img src=x")
    page.keyboard.press("Escape")
    tab(page, "Step by step")
    page.get_by_role("button", name="Record the last events").click()
    expect(page.locator(".ab-messages .current")).to_be_visible()
    expect(page.locator(".ab-messages")).to_contain_text("<img src=x")
    tab(page, "Window")
    expect(page.locator("#panel-window .ab-card-head .ab-quiet")).to_contain_text("2 elements")
    assert page.locator("img").count() == 0


def test_what_others_delete_is_no_longer_shown(page: Page, address: str) -> None:
    people(address, "gone")
    came(address, "gone", 0, ["before"])
    page.goto(f"{address}/?session=gone")
    expect(page.locator(ROWS)).to_have_text(["before"])
    rest(address, "DELETE", "/gone/queries/names")
    expect(page.locator(ROWS)).to_have_count(0)
    expect(page.locator(".ab-chip")).to_have_count(0)
    rest(address, "DELETE", "/gone")
    expect(page.locator(".q-notification")).to_contain_text("gone is gone")
    expect(page.locator("select[aria-label=session]")).not_to_have_value("gone")


def test_a_query_that_failed_can_be_tried_again(page: Page, address: str) -> None:
    people(address, "failing", "10 / p.number AS share", on_error="fail")
    page.goto(f"{address}/?session=failing")
    came(address, "failing", 0, ["nobody"], number=0)
    expect(page.locator(".ab-banner")).to_contain_text("division by zero")
    page.get_by_role("button", name="more about names").click()
    page.get_by_role("menuitem", name="Resume").click()
    expect(page.locator(".ab-banner")).to_be_hidden()
    came(address, "failing", 2, ["somebody"], number=5)
    expect(page.locator(ROWS)).to_have_text(["2"])


def test_rows_that_were_skipped_are_said(page: Page, address: str) -> None:
    people(address, "skipping", "10 / p.number AS share")
    page.goto(f"{address}/?session=skipping")
    came(address, "skipping", 0, ["nobody"], number=0)
    expect(page.locator(".ab-banner")).to_contain_text("names: 1 row skipped: SER-304 division by zero")


def test_what_a_query_warns_of_is_told(page: Page, address: str) -> None:
    people(address, "strict")
    matched = "MATCH (p:P) WITHIN PT1H EMIT p.number AS number SNAPSHOT EVERY PT1M"
    text = f"REGISTER QUERY sure STARTING AT 2024-05-01T10:00 {{ {matched} }}"
    rest(address, "POST", "/strict/queries", {"text": text, "conflicts": "strict"})
    page.goto(f"{address}/?session=strict&query=sure")
    came(address, "strict", 0, ["ann"], number=1)
    page.locator(".ab-chip .name", has_text="sure").click()
    expect(page.locator(ROWS)).to_have_text(["1"])
    warning = page.get_by_role("status", name="warnings")
    expect(warning).to_be_hidden()
    came(address, "strict", 2, ["ann"], number=2)
    expect(warning).to_contain_text("disagree about its property `number` (1, then 2)")


def test_the_chart_tells_the_time_that_the_table_tells(browser: Browser, address: str) -> None:
    people(address, "abroad", "count(p) AS people")
    context = browser.new_context(timezone_id="America/New_York")
    page = context.new_page()
    page.goto(f"{address}/?session=abroad")
    for minute in (0, 1, 2):
        came(address, "abroad", minute, ["somebody"])
    page.get_by_role("checkbox", name="draw people over time").click(timeout=120_000)
    page.wait_for_function("document.querySelector('.ab-chart').dataset.points >= 3", timeout=120_000)
    page.locator(".ab-chart").hover()
    expect(page.locator(".ab-chart")).to_contain_text("2024-05-01 10:0")
    context.close()


def test_the_arrow_keys_step_but_not_while_a_query_is_written(page: Page, address: str) -> None:
    people(address, "keys")
    came(address, "keys", 0, [f"{number:02}" for number in range(12)])
    page.goto(f"{address}/?session=keys&tab=steps")
    page.get_by_role("button", name="Record the last events").click()
    page.get_by_role("button", name="First message").click()
    current = page.locator(".ab-messages .current .number")
    expect(current).to_have_text("1")
    page.keyboard.press("ArrowRight")
    expect(current).to_have_text("2")
    page.locator(".cm-content").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.wait_for_timeout(1500)
    expect(current).to_have_text("2")
