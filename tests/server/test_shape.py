"""Errors have one shape on every path, with the page mounted and without; and the interface describes itself."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from starlette.responses import HTMLResponse
from tests.server.conftest import Served


@pytest.fixture(params=[False, True], ids=["alone", "with the page"])
def open_server(request: pytest.FixtureRequest, serve: Callable[..., Served]) -> Served:
    return serve(page=HTMLResponse("<p>a page that answers to everything", 404) if request.param else None)


def error(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()["error"]["code"]


def test_unknown_paths_and_other_methods_are_told_in_the_one_shape(open_server: Served) -> None:
    http = open_server.http
    http.post("/sessions", json={"name": "s"})
    for path in ("/nope", "/", "", "/sessions/s/nope", f"{open_server.address}/api", f"{open_server.address}/api/v2/x"):
        for method in ("GET", "POST", "DELETE"):
            assert error(http.request(method, path)) == (404, "SRV-001"), (method, path)
    refused = http.put("/sessions/s")
    assert error(refused) == (405, "SRV-017")
    assert refused.headers["allow"] == "DELETE, GET"
    assert error(http.patch("/sessions/s/streams")) == (405, "SRV-017")


def test_a_body_that_does_not_say_what_it_is_is_told_which_header_to_send(open_server: Served) -> None:
    for sent in ({}, {"Content-Type": "text/plain"}):
        refused = open_server.http.post("/sessions", content=b'{"name": "s"}', headers=sent)
        assert error(refused) == (422, "SRV-003")
        assert "Content-Type: application/json" in refused.json()["error"]["hint"]


def test_the_interface_describes_its_token_its_parts_and_its_address(open_server: Served) -> None:
    said = open_server.http.get("/openapi.json").json()
    assert said["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert said["servers"] == [{"url": "/", "description": "This server."}]
    used = {tag for path in said["paths"].values() for one in path.values() for tag in one["tags"]}
    assert used == {one["name"] for one in said["tags"]}


def test_the_interface_can_be_read_as_a_page_that_loads_nothing(open_server: Served) -> None:
    page = open_server.http.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for path in open_server.http.get("/openapi.json").json()["paths"]:
        assert f"<code>{path}</code>" in page.text
    assert "http://" not in page.text.replace("http://127.0.0.1", "")
    assert "src=" not in page.text
