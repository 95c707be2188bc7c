"""The pictures of docs/monitor.md, taken of the page as it runs: `python tools/screenshots.py [FOLDER [ENGINE]]`.

Starts the demo on a free port, on Spark unless told otherwise, and photographs every view wide and narrow, light and
dark, in Debian's Chromium.
"""

from __future__ import annotations

import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.ui.chromium import launched, monitor, opened  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
RINGS = "People who bid on one another"


def main(folder: Path, engine: str = "spark") -> None:
    with (
        tempfile.TemporaryDirectory() as data,
        monitor(Path(data), engine, demo=True) as address,
        sync_playwright() as driver,
    ):
        browser = launched(driver)
        _all(browser, address, folder)
        browser.close()


def _all(browser: Browser, address: str, folder: Path) -> None:
    wide = _opened(browser, 1440, 900, "light")
    wide.goto(f"{address}/?session=auctions")
    _answers(wide)
    _save(wide, folder, "answers-wide-light")
    _wrong(wide, folder)
    _views(wide, folder, "wide-light")
    dark = _opened(browser, 1440, 900, "dark")
    dark.goto(f"{address}/?session=auctions")
    _answers(dark)
    _save(dark, folder, "answers-wide-dark")
    _choose(dark, RINGS)
    _views(dark, folder, "wide-dark")
    _own(_opened(browser, 1440, 900, "light"), address, folder)
    schemes: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
    for scheme in schemes:
        phone = _opened(browser, 390, 844, scheme)
        phone.goto(f"{address}/?session=auctions")
        _answers(phone)
        phone.locator(".ab-tabs").first.scroll_into_view_if_needed()
        phone.evaluate("document.querySelector('#answers').scrollIntoView()")
        _save(phone, folder, f"answers-phone-{scheme}")
        phone.evaluate("scrollTo(0, 0)")
        _save(phone, folder, f"query-phone-{scheme}")


def _opened(browser: Browser, width: int, height: int, scheme: Literal["light", "dark"]) -> Page:
    return opened(browser, width, height, scheme, 180_000)


def _choose(page: Page, note: str) -> None:
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem").filter(has_text=note).first.click()
    page.locator("#panel-answers .ab-table tbody tr").first.wait_for()
    page.wait_for_timeout(1000)


def _answers(page: Page) -> None:
    """Rows, and a chart that has grown for a while."""
    page.locator("#panel-answers .ab-table tbody tr").first.wait_for()
    page.wait_for_function("document.querySelector('.ab-chart').dataset.points > 120")
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)


def _wrong(page: Page, folder: Path) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("}")
    page.locator(".ab-diagnostics li").first.wait_for()
    page.wait_for_timeout(500)
    _save(page, folder, "error-wide-light")
    page.keyboard.press("Backspace")
    page.locator(".ab-diagnostics").wait_for(state="hidden")


def _views(page: Page, folder: Path, kind: str) -> None:
    def tab(name: str) -> None:
        page.locator(".ab-body > .ab-bar").get_by_role("tab", name=name).click()

    tab("Plan")
    page.locator("#panel-plan .box").first.wait_for()
    page.wait_for_timeout(2500)
    _save(page, folder, f"plan-{kind}")
    tab("Window")
    page.locator("#panel-window .ab-card-head .ab-quiet").filter(has_text="elements").wait_for()
    page.wait_for_timeout(3000)
    _save(page, folder, f"window-{kind}")
    tab("Step by step")
    page.get_by_role("button", name="Record the last events").click()
    page.locator(".ab-messages .current").wait_for()
    for _ in range(3):
        page.get_by_role("button", name="Next message").click()
        page.wait_for_timeout(400)
    _save(page, folder, f"steps-{kind}")
    tab("Answers")
    page.get_by_role("button", name="Pause", exact=True).first.click()
    page.wait_for_timeout(2000)
    if page.locator("#panel-answers .ab-table tbody tr").count() == 0:
        return
    page.locator("#panel-answers .ab-table tbody tr").first.click()
    page.locator(".ab-elements li").first.wait_for()
    page.wait_for_timeout(1200)
    _save(page, folder, f"why-{kind}")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Start").click()


def _own(page: Page, address: str, folder: Path) -> None:
    """What docs/monitor-tutorial.md does: a session, a stream that is pushed, and a query of one's own."""
    parcels = ROOT / "examples" / "parcels"
    page.goto(address)
    page.get_by_label("session", exact=True).select_option(label="new session …")
    page.get_by_role("textbox", name="name of the session").fill("parcels")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("textbox", name="name of the stream").fill("scans")
    page.get_by_role("button", name="Add the stream").click()
    page.locator(".ab-stream").filter(has_text="scans").wait_for()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text((parcels / "busy_hubs.seraph").read_text())
    page.get_by_role("button", name="Start").click()
    page.wait_for_timeout(2000)
    pushed = urllib.request.Request(
        f"{address}/api/v1/sessions/parcels/streams/scans/events",
        (parcels / "scans.ndjson").read_bytes(),
        {"Content-Type": "application/x-ndjson"},
    )
    urllib.request.urlopen(pushed, timeout=60).close()
    page.locator("#panel-answers .ab-table tbody tr").filter(has_text="Kassel").wait_for()
    page.get_by_role("checkbox", name="draw parcels over time").click()
    page.get_by_label("line for").select_option(label="each hub")
    page.mouse.move(0, 0)
    page.wait_for_timeout(3000)
    _save(page, folder, "own-wide-light")
    page.locator("#panel-answers .ab-table tbody tr").filter(has_text="Kassel").first.click()
    page.locator(".ab-elements li").first.wait_for()
    page.wait_for_timeout(1200)
    _save(page, folder, "own-why-wide-light")


def _save(page: Page, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(folder / f"monitor-{name}.png"))
    print(folder / f"monitor-{name}.png", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES, *sys.argv[2:3])
