"""Streams: making them, pushing events into them, what was set aside; and static graphs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from anabranch.server import uploads
from anabranch.server.catalogue import StoredTiming
from anabranch.server.models import GraphModel, NewClock, NewStream, PushedModel, StreamModel, stream_model
from anabranch.server.problems import BAD_DATA, ServerError
from anabranch.server.routing import PROBLEMS, V1, Body, TheHub, TheSession, bodies, instant
from anabranch.server.session import LetterKind, LiveSession

router = APIRouter(prefix=f"{V1}/sessions/{{session}}", responses=PROBLEMS, tags=["streams"])

EVENT = '{"at": "2022-10-14T14:45:00Z", "nodes": [{"id": 1, "labels": ["Bike"]}], "relationships": []}'
_EVENTS = bodies(
    {
        "application/x-ndjson": EVENT,
        "application/json": "",
        "text/tab-separated-values": "",
        "application/n-quads": "",
        "application/trig": "",
        "application/ld+json": "",
        "text/turtle": "",
        "application/n-triples": "",
    }
)
_FILE = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_LINES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}, "description": "Lines of JSON."}
}
_BLOCK = 1 << 16
_At = Annotated[str | None, Query(description="The instant of triples that do not say theirs.")]


@router.get("/streams", summary="All streams, with their figures")
def streams(found: TheSession) -> list[StreamModel]:
    return [stream_model(one) for one in found.streams()]


@router.post("/streams", summary="Add a stream", status_code=201)
def add_stream(found: TheSession, new: NewStream) -> StreamModel:
    """From an address, or (without one) a stream whose events are pushed to `/streams/{name}/events`."""
    timing = StoredTiming(new.idle_timeout, new.idle, new.ahead)
    added = found.add_stream(
        new.name, new.address, lateness=new.lateness, timing=timing, follow=new.follow, replace=new.replace
    )
    return stream_model(added)


@router.post("/streams/{name:path}/events", summary="Push events", openapi_extra=_EVENTS)
def push(request: Request, hub: TheHub, found: TheSession, name: str, body: Body, at: _At = None) -> PushedModel:
    """An event, a list of events or lines of them as JSON; RDF by its content type. What is acknowledged is on disk.
    Records that are no events are counted, and kept for `/streams/{name}/malformed`."""
    data = uploads.unpacked(body, hub.limits.body_bytes)
    pushed = found.push(name, data, request.headers.get("content-type"), instant(at))
    return PushedModel(**asdict(pushed))


@router.post("/streams/{name:path}/upload", summary="Push the events of a file", openapi_extra=_FILE)
async def upload(request: Request, hub: TheHub, found: TheSession, name: str, at: _At = None) -> PushedModel:
    """As a form with a `file`, or the file itself; its name or content type tells the format. gzip is unpacked."""
    said = request.headers.get("content-type")
    if uploads.media_type(said) == "multipart/form-data":
        async with request.form(max_files=1, max_fields=10) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise ServerError(BAD_DATA, "the form has no file", "name the field `file`")
            body, media = await file.read(), uploads.type_of_file(file.filename or "", file.content_type)
    else:
        body, media = await request.body(), uploads.type_of_file("", said)

    def work() -> PushedModel:
        pushed = found.push(name, uploads.unpacked(body, hub.limits.body_bytes), media, instant(at))
        return PushedModel(**asdict(pushed))

    return await run_in_threadpool(work)


@router.post("/streams/{name:path}/stop", summary="Let a stream end where it is")
def stop_stream(found: TheSession, name: str) -> StreamModel:
    """Its last instants are answered; nothing more is taken."""
    found.stop_stream(name)
    return stream_model(found.stream(name))


@router.post("/streams/{name:path}/clock", summary="Set a stream's clock")
def set_clock(found: TheSession, name: str, new: NewClock) -> StreamModel:
    """Forward: what comes before the instant is late. Back, after an event with a wrong clock: the stream begins again
    at the instant, without events, and so do the queries that read it; numbers of results go on."""
    at = instant(new.at)
    assert at is not None, "a text was given"
    return stream_model(found.set_clock(name, at))


@router.get("/streams/{name:path}/late", summary="Events that came too late", response_class=Response, responses=_LINES)
def late(found: TheSession, name: str) -> Response:
    return _letters(found, name, "late")


@router.get(
    "/streams/{name:path}/ahead",
    summary="Events whose clock is too far ahead",
    response_class=Response,
    responses=_LINES,
)
def ahead(found: TheSession, name: str) -> Response:
    return _letters(found, name, "ahead")


@router.get(
    "/streams/{name:path}/malformed", summary="Records that are no events", response_class=Response, responses=_LINES
)
def malformed(found: TheSession, name: str) -> Response:
    return _letters(found, name, "malformed")


def _letters(session: LiveSession, name: str, kind: LetterKind) -> Response:
    path = session.letters(name, kind)
    headers = {"Content-Disposition": f'attachment; filename="{session.name}-{kind}.ndjson"'}
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Response(b"", media_type="application/x-ndjson")
    return StreamingResponse(_blocks(file), media_type="application/x-ndjson", headers=headers)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Read the file up to its present length: the run may append to it meanwhile."""
    with file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (block := file.read(min(left, _BLOCK))):
            left -= len(block)
            yield block


@router.get("/streams/{name:path}", summary="A stream and its figures")
def stream(found: TheSession, name: str) -> StreamModel:
    return stream_model(found.stream(name))


@router.delete("/streams/{name:path}", summary="Remove a stream", status_code=204)
def remove_stream(found: TheSession, name: str) -> None:
    """Queries that read it must go first."""
    found.remove_stream(name)


# --- static graphs ----------------------------------------------------------------------------------------------------

_GRAPH = bodies(
    {"text/turtle": "<http://a> <http://b> <http://c> .", "application/json": "", "application/n-triples": ""}
)


@router.get("/graphs", summary="All static graphs", tags=["graphs"])
def graphs(found: TheSession) -> list[GraphModel]:
    return [GraphModel(name=one.name, media_type=one.media_type) for one in found.graphs()]


@router.put("/graphs", summary="Put the default graph in place", tags=["graphs"], openapi_extra=_GRAPH)
def put_default_graph(request: Request, found: TheSession, body: Body) -> GraphModel:
    """The graph that SPARQL queries see without naming it."""
    return _put(request, found, "", body)


@router.put("/graphs/{name:path}", summary="Put a static graph in place", tags=["graphs"], openapi_extra=_GRAPH)
def put_graph(request: Request, found: TheSession, name: str, body: Body) -> GraphModel:
    """RDF by its content type, or JSON with nodes and relationships. Seen from the next evaluation on."""
    return _put(request, found, name, body)


def _put(request: Request, session: LiveSession, name: str, body: bytes) -> GraphModel:
    stored = session.add_graph(name, body, request.headers.get("content-type") or "application/json")
    return GraphModel(name=stored.name, media_type=stored.media_type)


@router.get("/graphs/{name:path}", summary="A static graph as it was given", tags=["graphs"], response_class=Response)
def graph(found: TheSession, name: str) -> Response:
    stored, data = found.graph(name)
    return Response(data, media_type=stored.media_type)


@router.delete("/graphs/{name:path}", summary="Remove a static graph", tags=["graphs"], status_code=204)
def remove_graph(found: TheSession, name: str) -> None:
    found.remove_graph(name)
