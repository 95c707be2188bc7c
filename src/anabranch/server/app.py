"""The web application: REST under /api/v1, live push and Prometheus figures, behind the `Guard` of `auth`.

    app = create_app(hub, token="...", host="127.0.0.1")
    make_server(app, "127.0.0.1", 8017).run()

The caller starts the hub before the application serves, and closes the hub afterwards.

Invariant: every request gets a well-formed answer: errors have one shape, and bad input is never a 5xx.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from anabranch import __version__
from anabranch.errors import AnabranchError
from anabranch.server import routes_queries, routes_sessions, routes_streams, uploads
from anabranch.server.auth import Guard, WithoutToken
from anabranch.server.hub import Hub
from anabranch.server.problems import BAD_REQUEST, INTERNAL, NO_METHOD, NOT_FOUND, ServerError, error_dict, status_of
from anabranch.server.recordings import Recordings
from anabranch.server.reference import reference_page
from anabranch.server.routes_insight import router as insight_router
from anabranch.server.routing import V1

if TYPE_CHECKING:
    import uvicorn

_log = logging.getLogger("anabranch.server")
_LOGGERS = ("anabranch.server", "uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "nicegui")
_DESCRIPTION = """\
Continuous graph queries over streams: sessions with streams, static graphs and queries, whose answers come as they are
found. Errors have one shape: `{"error": {"code", "message", "hint", "diagnostics"}}`.
"""


_TAGS = [
    {"name": "server", "description": "Health, and figures for Prometheus."},
    {"name": "sessions", "description": "Workspaces of streams, graphs and queries with one run each."},
    {"name": "streams", "description": "Where events come from, what was pushed, and what was set aside."},
    {"name": "graphs", "description": "What does not move."},
    {"name": "queries", "description": "Checking, explaining, registering, pausing, deleting."},
    {"name": "results", "description": "Answers, kept and live."},
    {"name": "insight", "description": "Operators, steps, windows, and why a row is there, left, or is not there."},
]
# Query names may contain slashes, so routes with a suffix after the name are matched first.
_ROUTERS = (routes_sessions.router, routes_streams.router, insight_router, routes_queries.router)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]


class AsciiJson(JSONResponse):
    """A JSON response in pure ASCII: every character can be sent, lone surrogates too."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def create_app(hub: Hub, *, token: str | None = None, origins: Iterable[str] = (), host: str = "127.0.0.1") -> FastAPI:
    """Create the application over a hub. `host` is the address that it will listen on: on the loopback interface the
    application answers to loopback names only. Pages of `origins` may use it besides its own pages."""
    app = FastAPI(
        title="Anabranch",
        version=__version__,
        description=_DESCRIPTION,
        servers=[{"url": "/", "description": "This server."}],
        openapi_tags=_TAGS,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # the scripts of those pages would come from another site
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=AsciiJson,
    )
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    app.state.hub = hub
    app.state.recordings = Recordings(hub.limits)
    for router in _ROUTERS:
        app.include_router(router)
    app.add_api_route(f"{V1}/docs", _reference, include_in_schema=False, response_class=HTMLResponse)
    app.add_route("/api", _nothing_here, _METHODS, include_in_schema=False)
    app.add_route("/api/{path:path}", _nothing_here, _METHODS, include_in_schema=False)
    app.add_exception_handler(AnabranchError, _refused)
    app.add_exception_handler(RecursionError, _refused)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _broken)
    if token is not None:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(WithoutToken(token))
    app.add_middleware(Guard, token=token, origins=tuple(origins), host=host, body_bytes=hub.limits.body_bytes)
    return app


def make_server(app: FastAPI, host: str, port: int, **more: Any) -> uvicorn.Server:
    """Create a uvicorn server, not running yet, that ends all live subscriptions before it shuts down."""
    import uvicorn

    hub: Hub = app.state.hub

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for session in hub.sessions():
                session.end_live("the server is stopping")
            await super().shutdown(sockets)

    return Server(uvicorn_config(app, host, port, **more))


def uvicorn_config(app: FastAPI, host: str, port: int, **more: Any) -> uvicorn.Config:
    """Return the uvicorn settings; WebSocket messages are not compressed, because compression of each costs more than
    it saves."""
    import uvicorn

    settings: dict[str, Any] = {
        "log_level": "warning",
        "access_log": False,
        "ws": "websockets-sansio",
        "ws_per_message_deflate": False,
        "ws_max_size": 1 << 20,
        "timeout_graceful_shutdown": 2,
        "server_header": False,
    }
    return uvicorn.Config(app, host=host, port=port, **{**settings, **more})


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the token that a server may require."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=app.openapi_tags,
            servers=app.servers,
        )
        scheme = {"type": "http", "scheme": "bearer", "description": "The token of the server, if it has one."}
        found.setdefault("components", {})["securitySchemes"] = {"token": scheme}
        found["security"] = [{"token": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema


def _reference(request: Request) -> HTMLResponse:
    return HTMLResponse(reference_page(_described(request.app)))


def _nothing_here(request: Request) -> Response:
    """Raise the error for an address without a route: 405 if the address has routes for other methods, else 404."""
    allowed = sorted(
        {
            method
            for router in _ROUTERS
            for route in router.routes
            if isinstance(route, APIRoute) and route.path_regex.match(request.url.path)
            for method in route.methods or ()
        }
    )
    if allowed:
        raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
    raise HTTPException(404)


def answer(error: dict[str, Any], status: int | None = None) -> JSONResponse:
    return AsciiJson({"error": error}, status_of(error) if status is None else status)


def _refused(request: Request, error: Exception) -> JSONResponse:
    said = error_dict(error)
    if said["code"] == INTERNAL:
        _log.error("a request broke", exc_info=error)
    return answer(said)


def _not_understood(request: Request, error: Exception) -> JSONResponse:
    found = cast(RequestValidationError, error).errors()
    sent = request.headers.get("content-type")
    if any(one["loc"] == ("body",) for one in found) and uploads.media_type(sent) != "application/json":
        was = "the body has no Content-Type" if sent is None else f"the body is {sent[:80]}"
        return answer(error_dict(ServerError(BAD_REQUEST, was, "send the header Content-Type: application/json")))
    said = [f"{'.'.join(str(part) for part in one['loc'][1:]) or one['loc'][0]}: {one['msg']}" for one in found[:5]]
    return answer(error_dict(ServerError(BAD_REQUEST, "; ".join(said)[:1000].encode("utf-8", "replace").decode())))


def _http(request: Request, error: Exception) -> JSONResponse:
    raised = cast(HTTPException, error)
    if isinstance(raised.__cause__, AnabranchError):
        return _refused(request, raised.__cause__)
    code = {404: NOT_FOUND, 405: NO_METHOD}.get(raised.status_code, BAD_REQUEST)
    message = {404: "there is nothing at this address", 405: "this address does not know that method"}
    found = ServerError(code, message.get(raised.status_code, str(raised.detail)), "/api/v1/openapi.json lists them")
    response = answer(error_dict(found), raised.status_code)
    response.headers.update(raised.headers or {})
    return response


def _left(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # the client has disconnected and cannot read it


def _broken(request: Request, error: Exception) -> JSONResponse:
    _log.error("a request broke", exc_info=error)
    return answer(error_dict(error), 500)
