"""The first minute: what a newcomer sees of `anabranch demo auctions`, and every example, chosen from there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect
from tests.ui.chromium import monitor, opened
from tests.ui.conftest import watched

from anabranch.ui.presets import PRESETS, Preset

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect.set_options(timeout=120_000)  # a loaded machine, and kernels that are compiled, take their time
ROWS = "#panel-answers .ab-table tbody tr"


@pytest.fixture(scope="module")
def demo_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with monitor(tmp_path_factory.mktemp("demo"), demo=True) as found:
        yield found


@pytest.fixture
def demo(browser: Browser, demo_address: str) -> Iterator[Page]:
    page = opened(browser, 1440, 900, "light")
    for one in watched(page, demo_address):
        one.goto(f"{demo_address}/?session=auctions")
        expect(one.locator(".ab-pill.running, .ab-pill.paused")).to_be_visible()
        if one.locator(".ab-pill.paused").count():  # a test before has failed
            one.get_by_role("button", name="Start", exact=True).click()
            expect(one.locator(".ab-pill.running")).to_be_visible()
        yield one


def test_the_first_view_has_rows_a_welcome_and_a_chart_that_moves_above_the_fold(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    expect(demo.locator(".ab-welcome")).to_contain_text("An auction house, 10 events a second. Items with ten bids")
    drawn = [one.get_attribute("aria-label") for one in demo.locator(".ab-tick.on").all()]
    assert drawn == ["draw avg over time", "draw max over time"]
    demo.wait_for_function("document.querySelector('.ab-chart').dataset.points > 20")
    box = demo.locator(".ab-chart").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900
    items = [text.strip() for text in demo.locator(f"{ROWS}:not(.leaving) td:first-child").all_inner_texts()]
    assert items == sorted(items)
    demo.get_by_role("button", name="Close the welcome").click()
    expect(demo.locator(".ab-welcome")).to_be_hidden()
    demo.reload()
    expect(demo.locator(ROWS).first).to_be_visible()
    expect(demo.locator(".ab-welcome")).to_be_hidden()


@pytest.mark.parametrize("number", range(len(PRESETS)), ids=lambda number: f"{number + 1}-{PRESETS[number].file}")
def test_every_example_starts_from_the_demo_and_shows_rows(demo: Page, number: int) -> None:
    preset: Preset = PRESETS[number]
    demo.get_by_role("button", name="Examples").click()
    demo.get_by_role("menuitem").nth(number).click()
    expect(demo.locator("select[aria-label=session]")).to_have_value(preset.case.session)
    expect(demo.locator(".cm-content")).to_contain_text(preset.text().splitlines()[0])
    expect(demo.locator(".ab-welcome")).to_contain_text(preset.story)
    expect(demo.locator(ROWS).first).to_be_visible()
    expect(demo.locator(".q-notification")).to_have_count(0)
    if preset.draw:
        expect(demo.locator(".ab-tick.on")).to_have_count(len(preset.draw))
        expect(demo.locator(".ab-chart")).to_have_attribute("data-points", re.compile("[1-9]"))


def test_an_example_leaves_a_query_of_its_name_alone_until_start_is_pressed(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    demo.locator(".cm-content").click()
    demo.keyboard.press("Control+Home")
    demo.keyboard.type("# mine")
    demo.keyboard.press("Enter")
    demo.get_by_role("button", name="Start").click()
    expect(demo.locator(".ab-welcome")).to_be_hidden()
    demo.get_by_role("button", name="Examples").click()
    demo.get_by_role("menuitem").first.click()
    expect(demo.locator(".q-notification")).to_contain_text("Press Start")
    expect(demo.locator(".cm-content")).not_to_contain_text("# mine")
    demo.get_by_role("button", name="Start").click()
    expect(demo.locator(".ab-welcome")).to_be_visible()


def figure_6(page: Page) -> None:
    """The example whose rows come and go every second, with rows of its own in the table."""
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem").filter(has_text="Figure 6").click()
    expect(page.locator("#panel-answers .ab-table thead")).to_contain_text("sum")
    expect(page.locator(f"{ROWS}:not(.leaving) td:nth-child(7)").first).to_be_visible()


def test_a_row_that_is_leaving_says_why_it_left(demo: Page) -> None:
    figure_6(demo)
    demo.evaluate(
        f"""() => new Promise((done) => {{
          const look = () => {{
            const row = document.querySelector("{ROWS}.leaving:has(td:nth-child(7))");
            if (row) {{ row.click(); done(); }} else setTimeout(look, 20);
          }};
          look();
        }})"""
    )
    dialog = demo.get_by_role("dialog")
    expect(dialog).to_contain_text("Why did this row leave?")
    expect(dialog).to_contain_text(re.compile("It was there at .* and no longer at"))
    expect(dialog.locator(".ab-elements li").first).to_be_visible()
    demo.get_by_role("button", name="Why was it there?").click()
    expect(dialog).to_contain_text("Why is this row there?")
    expect(dialog.locator(".ab-elements li").first).to_be_visible()
    demo.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_every_click_on_a_row_answers_while_the_stream_runs(demo: Page) -> None:
    figure_6(demo)
    dialog = demo.get_by_role("dialog")
    for number in range(6):
        demo.wait_for_function(f"document.querySelectorAll('{ROWS}').length > 5")
        demo.evaluate(f"document.querySelectorAll('{ROWS}')[{number}].click()")
        expect(dialog).to_contain_text(re.compile("Why is this row there|Why did this row leave"))
        expect(dialog.locator(".ab-elements li").first).to_be_visible()
        demo.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


def test_why_not_takes_what_the_table_shows_and_never_denies_a_row_of_it(demo: Page) -> None:
    figure_6(demo)
    demo.get_by_role("button", name="Pause", exact=True).first.click()
    expect(demo.locator(".ab-pill.paused")).to_be_visible()
    demo.wait_for_timeout(1500)
    shown = demo.locator(ROWS).first.locator("td").first.inner_text()
    assert "://" not in shown
    demo.get_by_role("button", name="Why not?").click()
    field = demo.locator(".ab-dialog input[aria-label=id]")
    assert field.evaluate("one => [...one.list.options].map((option) => option.value)").count(shown) == 1
    field.fill(shown)
    field.press("Enter")
    dialog = demo.get_by_role("dialog")
    expect(dialog).to_contain_text("There is such a row at")
    demo.get_by_role("button", name="Why is it there?").click()
    expect(dialog.locator(".ab-elements li").first).to_be_visible()
    demo.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    demo.get_by_role("button", name="Start").click()
    expect(demo.locator(".ab-pill.running")).to_be_visible()


def test_the_keyboard_reaches_everything_and_comes_back(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    assert demo.locator("main").count() == 1
    assert demo.locator("h1").inner_text() == "Anabranch"
    text = demo.locator(".cm-content").inner_text()
    demo.locator(".cm-content").click()
    expect(demo.locator(".ab-keys")).to_be_visible()
    demo.keyboard.press("Escape")
    demo.keyboard.press("Tab")
    expect(demo.locator(".ab-keys")).to_be_hidden()
    assert demo.locator(".cm-content").inner_text() == text
    demo.locator("#tab-answers").focus()
    demo.keyboard.press("ArrowRight")
    expect(demo.locator("#tab-plan")).to_have_attribute("aria-selected", "true")
    demo.keyboard.press("Home")
    expect(demo.locator("#tab-answers")).to_have_attribute("aria-selected", "true")
    demo.get_by_role("button", name="Examples").focus()
    demo.keyboard.press("Enter")
    expect(demo.get_by_role("menuitem").first).to_be_focused()
    demo.keyboard.press("ArrowDown")
    expect(demo.get_by_role("menuitem").nth(1)).to_be_focused()
    demo.keyboard.press("End")
    expect(demo.get_by_role("menuitem").last).to_be_focused()
    demo.keyboard.press("Escape")
    expect(demo.get_by_role("menuitem")).to_have_count(0)
    expect(demo.get_by_role("button", name="Examples")).to_be_focused()
    demo.get_by_role("button", name="Pause", exact=True).first.click()
    expect(demo.locator(".ab-pill.paused")).to_be_visible()
    demo.wait_for_timeout(1500)  # a beat, so that no row is about to leave
    demo.locator(ROWS).first.focus()
    demo.keyboard.press("Enter")
    expect(demo.get_by_role("dialog")).to_be_visible()
    demo.keyboard.press("Escape")
    expect(demo.get_by_role("dialog")).to_be_hidden()
    demo.wait_for_function("document.activeElement !== document.body")
    demo.get_by_role("button", name="Start").click()
    expect(demo.locator(".ab-pill.running")).to_be_visible()


def test_enter_adds_a_stream(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    demo.get_by_label("session", exact=True).select_option(label="new session …")
    demo.get_by_role("textbox", name="name of the session").fill("mine")
    demo.keyboard.press("Enter")
    expect(demo.locator("select[aria-label=session]")).to_have_value("mine")
    demo.get_by_role("button", name="Add", exact=True).click()
    demo.get_by_role("textbox", name="name of the stream").fill("scans")
    demo.keyboard.press("Enter")
    expect(demo.locator(".ab-stream h3")).to_have_text("scans")


def test_the_speed_of_the_steps_stays_chosen(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    demo.locator("#tab-steps").click()
    demo.get_by_role("button", name="Record the last events").click()
    speed = demo.get_by_label("messages a second")
    speed.select_option("30")
    demo.get_by_role("button", name="Next message").click()
    demo.wait_for_timeout(500)
    expect(speed).to_have_value("30")


def test_a_line_for_each_is_drawn_of_what_is_in_the_table(demo: Page) -> None:
    expect(demo.locator(ROWS).first).to_be_visible()
    demo.get_by_label("line for").select_option(label="each item")
    expect(demo.locator(".ab-chart")).to_have_attribute("data-points", re.compile("[1-9]"))
    for _ in range(20):  # until the lines are those of items
        with demo.expect_download() as download:
            demo.get_by_role("button", name="Save the series as CSV").click()
        head = download.value.path().read_text().partition("\n")[0].strip()
        drawn = {name.partition(" · ")[0] for name in head.split(",")[1:]}
        shown = set(demo.locator(f"{ROWS} td:first-child").all_inner_texts())
        if drawn & shown:
            break
        demo.wait_for_timeout(500)
    assert drawn & shown
    assert len(drawn - shown) <= 2  # answers come meanwhile
    demo.get_by_label("line for").select_option(label="all rows")
