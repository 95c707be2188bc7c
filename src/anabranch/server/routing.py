"""Helpers shared by the routes: the hub of a request, names in addresses, bodies, and the errors that OpenAPI lists."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from starlette.requests import HTTPConnection

from anabranch.errors import EvaluationError
from anabranch.model.instants import parse_instant
from anabranch.server.hub import Hub
from anabranch.server.models import Problem
from anabranch.server.problems import BAD_REQUEST, ServerError
from anabranch.server.session import LiveSession

V1 = "/api/v1"
_STATUSES = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Another site's page, another host, or a file out of reach.",
    404: "There is no such thing.",
    409: "It exists already, there are too many, or it is too early.",
    410: "The result is no longer kept.",
    413: "The body or the text is too large.",
    415: "The content type is not one that is read.",
    422: "The request is refused, with diagnostics where it is a query.",
    429: "Too many clients, or the server is busy.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text} for status, text in _STATUSES.items()
}


def hub_of(connection: HTTPConnection) -> Hub:
    hub: Hub = connection.app.state.hub
    return hub


def session_of(connection: HTTPConnection, session: Annotated[str, Path(examples=["auctions"])]) -> LiveSession:
    return hub_of(connection).session(session)


async def body_of(request: Request) -> bytes:
    return await request.body()


TheHub = Annotated[Hub, Depends(hub_of)]
TheSession = Annotated[LiveSession, Depends(session_of)]
Body = Annotated[bytes, Depends(body_of)]
After = Annotated[int, Query(ge=-1, le=2**53, description="The last number that was seen; -1: from the oldest kept.")]
Some = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]


def instant(text: str | None, what: str = "at") -> int | None:
    """Parse an instant of a request: ISO 8601, or UTC microseconds."""
    if text is None:
        return None
    if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 18:
        return int(text)
    try:
        return parse_instant(text)
    except EvaluationError as error:
        hint = "write it like 2022-10-14T14:45:00Z; a + in an address is %2B"
        raise ServerError(BAD_REQUEST, f"{what}: {error.diagnostic.message}", hint) from None


def bodies(types: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of a body that is not the JSON of a model."""
    content = {
        media: {"schema": {"type": "string"}, **({"example": one} if one else {})} for media, one in types.items()
    }
    return {"requestBody": {"required": True, "content": content}}
