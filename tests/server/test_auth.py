"""Who may ask: tokens, other sites' pages, other hosts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from tests.server.conftest import COUNTED, Served
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from anabranch.server.auth import Guard

TOKEN = "a secret that nobody guesses"
LIVE = "/sessions/s/queries/counted/results/live"


@pytest.fixture
def guarded(serve: Callable[..., Served]) -> Served:
    served = serve(token=TOKEN)
    served.http.headers["Authorization"] = f"Bearer {TOKEN}"
    served.make(COUNTED, None)
    return served


def test_without_the_token_or_with_another_nothing_is_told(guarded: Served) -> None:
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": TOKEN}, {"Authorization": "Bearer"}):
        with httpx.Client(base_url=f"{guarded.address}/api/v1", headers=headers) as stranger:
            for path in ("/sessions", "/sessions/s", "/openapi.json", f"{guarded.address}/metrics"):
                refused = stranger.get(path)
                assert (refused.status_code, refused.json()["error"]["code"]) == (401, "SRV-008"), (headers, path)
            assert stranger.delete("/sessions/s").status_code == 401
            assert stranger.get("/health").status_code == 200
    assert guarded.http.get("/sessions/s").status_code == 200


def test_a_token_in_the_address_counts_for_live_results_only(guarded: Served) -> None:
    with httpx.Client(base_url=f"{guarded.address}/api/v1") as stranger:
        assert stranger.get("/sessions", params={"token": TOKEN}).status_code == 401
        with stranger.stream("GET", LIVE, params={"token": TOKEN}) as answer:
            assert answer.status_code == 200
        assert stranger.get(LIVE, params={"token": "other"}).status_code == 401
    address = f"ws://127.0.0.1:{guarded.port}/api/v1/sessions/s/live"
    with pytest.raises(InvalidStatus), connect(address):
        pass
    with connect(f"{address}?token={TOKEN.replace(' ', '%20')}") as client:
        client.send(json.dumps({"ping": 1}))
        assert json.loads(client.recv(10))["type"] == "pong"


def test_the_page_takes_the_token_once_and_then_its_cookie(guarded: Served) -> None:
    with httpx.Client(base_url=guarded.address) as browser:
        assert browser.get("/").status_code == 401
        assert browser.get("/", params={"token": "other"}).status_code == 401
        led = browser.get("/", params={"token": TOKEN, "session": "s"})
        assert (led.status_code, led.headers["location"]) == (303, "/?session=s")
        assert "HttpOnly" in led.headers["set-cookie"]
        assert "SameSite=Strict" in led.headers["set-cookie"]
        assert TOKEN not in led.headers["set-cookie"]
        assert browser.get("/api/v1/sessions").status_code == 200
    with httpx.Client(base_url=guarded.address, cookies={"anabranch": "forged"}) as browser:
        assert browser.get("/api/v1/sessions").status_code == 401
    led = httpx.get(f"{guarded.address}//evil.example/", params={"token": TOKEN})
    assert not led.headers.get("location", "/").startswith("//")


def test_a_visitor_without_the_token_types_it_in(guarded: Served) -> None:
    with httpx.Client(base_url=guarded.address, headers={"Accept": "text/html,*/*"}) as browser:
        asked = browser.get("/", params={"session": "s"})
        assert asked.status_code == 401
        assert 'name="token"' in asked.text
        wrong = browser.post("/", params={"session": "s"}, data={"token": "other"})
        assert (wrong.status_code, "not the token" in wrong.text) == (401, True)
        led = browser.post("/", params={"session": "s"}, data={"token": TOKEN})
        assert (led.status_code, led.headers["location"]) == (303, "/?session=s")
        assert browser.get("/api/v1/sessions").status_code == 200
    stranger = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
    refused = httpx.post(f"{guarded.address}/api/v1/sessions", headers=stranger, content=f"token={TOKEN}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "SRV-008")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_pages_of_other_sites_are_refused(served: Served, origin: str) -> None:
    for method, path in (("GET", "/sessions"), ("POST", "/sessions"), ("GET", "/health")):
        refused = served.http.request(method, path, headers={"Origin": origin})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SRV-009")
    served.make(COUNTED, None)
    with pytest.raises(InvalidStatus), connect(f"ws://127.0.0.1:{served.port}/api/v1/sessions/s/live", origin=origin):  # type: ignore[arg-type]
        pass


def test_its_own_pages_and_those_that_it_was_told_of_are_not(serve: Callable[..., Served]) -> None:
    served = serve(origins=["http://friend.example"])
    for origin in (served.address, f"http://localhost:{served.port}", "http://friend.example"):
        host = origin.removeprefix("http://") if "friend" not in origin else f"127.0.0.1:{served.port}"
        answer = served.http.get("/sessions", headers={"Origin": origin, "Host": host})
        assert answer.status_code == 200, origin


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "[", "10.0.0.1"])
def test_a_name_that_was_made_to_point_here_is_not_answered_to(served: Served, host: str) -> None:
    refused = served.http.get("/sessions", headers={"Host": host})
    assert refused.status_code in (400, 403), refused.text
    for own in ("localhost", f"localhost:{served.port}", "127.0.0.1", f"[::1]:{served.port}", "LOCALHOST"):
        assert served.http.get("/sessions", headers={"Host": own}).status_code == 200, own


def test_a_server_that_listens_elsewhere_answers_to_any_name(serve: Callable[..., Served]) -> None:
    served = serve(token=TOKEN, host="0.0.0.0")
    headers = {"Host": "monitor.example", "Authorization": f"Bearer {TOKEN}"}
    assert served.http.get("/sessions", headers=headers).status_code == 200


def test_browsers_let_pages_that_it_was_told_of_read_its_answers(serve: Callable[..., Served]) -> None:
    served = serve(origins=["http://friend.example"], token=TOKEN)
    page = {"Origin": "http://friend.example"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    before = served.http.options("/sessions", headers=page | asks)
    assert before.status_code == 204
    assert "POST" in before.headers["access-control-allow-methods"]
    assert "Authorization" in before.headers["access-control-allow-headers"]
    for headers, status in (({"Authorization": f"Bearer {TOKEN}"}, 200), ({}, 401)):
        answer = served.http.get("/sessions", headers=page | headers)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, page["Origin"])
    own = served.http.get("/sessions", headers={"Origin": served.address, "Authorization": f"Bearer {TOKEN}"})
    assert "access-control-allow-origin" not in own.headers
    other = served.http.options("/sessions", headers={"Origin": "http://evil.example"} | asks)
    assert (other.status_code, other.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize("query", ["token={}", "a=1&token={}", "token={}&a=1", "token=x&a=1&token={}"])
def test_behind_the_guard_an_address_has_no_token(query: str) -> None:
    seen: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["query_string"])

    async def nothing(*message: object) -> Any:
        return None

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/api/v1/sessions/s/live",
        "query_string": query.format(quote(TOKEN)).encode(),
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(Guard(app, TOKEN, (), "127.0.0.1", 100)(scope, nothing, nothing))
    assert seen == [b"a=1" if "a=1" in query else b""]
    assert b"secret" not in scope["query_string"]  # which access logs of the server read afterwards


def test_a_token_is_not_written_to_the_log(guarded: Served, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("nicegui", "uvicorn.error", "uvicorn.access", "anabranch.server"):
        logging.getLogger(name).warning("%s not found", f"http://localhost/?token={quote(TOKEN)}&a={quote_plus(TOKEN)}")
        logging.getLogger(name).warning("%s", TOKEN)
    assert len(caplog.messages) == 8
    assert not any("guesses" in one for one in caplog.messages)
    assert caplog.messages[0] == "http://localhost/?token=***&a=*** not found"


@pytest.mark.parametrize("name", ["..", "%2e%2e", "..%2f..", "a%2f..%2fb", ".", "-a", ".hidden"])
def test_a_session_has_no_name_that_leads_elsewhere(served: Served, name: str) -> None:
    for one in (name, unquote(name)):
        assert served.http.post("/sessions", json={"name": one}).status_code == 422
    answer = served.http.request("DELETE", f"{served.address}/api/v1/sessions/{name}")
    assert answer.status_code in (404, 405)


def test_names_of_streams_and_graphs_stay_inside_of_their_folder(served: Served, tmp_path: Path) -> None:
    served.make(COUNTED, None)
    (tmp_path / "hub" / "sessions" / "s" / "victim").write_text("here")
    for name in ("../../victim", "/etc/x", "a/../../b"):
        assert served.http.post("/sessions/s/streams", json={"name": name}).status_code in (201, 409, 422)
        served.http.put(f"/sessions/s/graphs/{quote(name, safe='')}", json={"nodes": [], "relationships": []})
    outside = [one for one in tmp_path.rglob("*") if not one.is_relative_to(tmp_path / "hub" / "sessions" / "s")]
    assert {one.name for one in outside if one.is_file()} <= {"lock", "catalogue.sqlite", *_BESIDE}
    assert (tmp_path / "hub" / "sessions" / "s" / "victim").read_text() == "here"


_BESIDE = ("catalogue.sqlite-wal", "catalogue.sqlite-shm")
