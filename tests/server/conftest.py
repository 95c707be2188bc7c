"""A server on a free port of the loopback interface, on the local engine, and what is asked of it in most tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anabranch.server.app import create_app, make_server
from anabranch.server.hub import Hub
from anabranch.server.limits import Limits

BUSY = """
REGISTER QUERY busy STARTING AT 2022-10-14T14:45 {
  MATCH (b:Bike)-[r:rentedAt]->(s:Station) WITHIN PT1M
  EMIT s.id AS station, count(*) AS rentals SNAPSHOT EVERY PT10S
}
"""
COUNTED = """
REGISTER QUERY counted STARTING AT 2022-10-14T14:45 {
  MATCH (b:Bike) WITHIN PT1H
  EMIT count(b) AS bikes SNAPSHOT EVERY PT1M
}
"""


def bike(number: int, at: str) -> dict[str, Any]:
    return {"at": at, "nodes": [{"id": number, "labels": ["Bike"]}], "relationships": []}


def minutes(count: int, start: int = 0) -> list[dict[str, Any]]:
    """An event a minute, from 14:45 on."""
    first = 14 * 60 + 45 + start
    return [bike(start + n, f"2022-10-14T{(first + n) // 60:02}:{(first + n) % 60:02}:00Z") for n in range(count)]


def until(found: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What comes to be true; fails when it does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come to be")


class Served:
    """A hub and the server in front of it."""

    def __init__(self, folder: Path, limits: Limits | None = None, page: Any = None, **settings: Any) -> None:
        self.hub = Hub(folder, "local", limits or Limits(), roots=settings.pop("roots", None))
        self.hub.start()
        app = create_app(self.hub, **settings)
        self.app = app
        if page is not None:
            app.mount("/", page)
        self._server = make_server(app, "127.0.0.1", 0)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        until(lambda: self._server.started)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=f"{self.address}/api/v1", timeout=30)

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join()
        self.hub.close()

    def make(
        self, query: str = BUSY, address: str | None = "gen:bikes?rate=500", session: str = "s", **options: Any
    ) -> None:
        """A session with a stream `rides` and a query."""
        assert self.http.post("/sessions", json={"name": session}).status_code == 201
        made = self.http.post(f"/sessions/{session}/streams", json={"name": "rides", "address": address})
        assert made.status_code == 201, made.text
        registered = self.http.post(f"/sessions/{session}/queries", json={"text": query, **options})
        assert registered.status_code == 201, registered.text

    def push(self, events: list[dict[str, Any]], stream: str = "rides", session: str = "s") -> dict[str, Any]:
        body = "\n".join(json.dumps(one) for one in events)
        answer = self.http.post(f"/sessions/{session}/streams/{stream}/events", content=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def results(self, query: str, after: int = -1, limit: int = 1000, session: str = "s") -> list[dict[str, Any]]:
        answer = self.http.get(f"/sessions/{session}/queries/{query}/results", params={"after": after, "limit": limit})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["results"]
        return found

    def wait_for(self, query: str, count: int, session: str = "s") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = until(
            lambda: kept if len(kept := self.results(query, session=session)) >= count else None
        )
        return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path / "hub")
    yield one
    one.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Servers with settings of their own; those in the same folder come one after the other."""
    made: list[Served] = []

    def make(**settings: Any) -> Served:
        made.append(Served(settings.pop("folder", tmp_path / "hub"), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()
