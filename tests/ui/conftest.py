"""One server and one Chromium for all tests of the page; a page of its own, and what it did wrong, for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.ui.chromium import CHROMIUM, launched, monitor, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("ui"))
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium"))


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with monitor(tmp_path_factory.mktemp("monitor")) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    yield from watched(opened(browser, 1440, 900, "light"), address)


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Page]:
    yield from watched(opened(browser, 390, 844, "light"), address)


def watched(page: Page, address: str) -> Iterator[Page]:
    """The page; afterwards nothing may have gone wrong in it, and nothing may have left the machine."""
    wrong: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.on("websocket", lambda socket: hosts.add(urlsplit(socket.url).netloc))
    yield page
    page.context.close()
    assert wrong == []
    assert hosts - {""} == {urlsplit(address).netloc}
