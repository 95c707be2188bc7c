"""Queries: checking, explaining, registering, pausing, deleting; and their results, kept and live."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from anabranch.server.live import EventStream
from anabranch.server.models import (
    CheckReport,
    DiagnosticModel,
    ExplainReport,
    NewQuery,
    QueryModel,
    QueryTextModel,
    Results,
    query_model,
)
from anabranch.server.problems import BAD_REQUEST, ServerError
from anabranch.server.routing import PROBLEMS, V1, After, Some, TheHub, TheSession

router = APIRouter(prefix=f"{V1}/sessions/{{session}}", responses=PROBLEMS, tags=["queries"])

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Results as they come."}
}


@router.get("/queries", summary="All queries")
def queries(found: TheSession) -> list[QueryModel]:
    return [query_model(one) for one in found.queries()]


@router.post("/queries", summary="Register the queries of a text", status_code=201)
def register(found: TheSession, new: NewQuery) -> list[QueryModel]:
    """A text that is refused changes nothing: 422 with its diagnostics. A new query begins with what windows hold."""
    added = found.register(
        new.text,
        parameters=new.parameters,
        replace=new.replace,
        language=new.language,
        windows=new.windows,
        conflicts=new.conflicts,
        on_error=new.on_error,
    )
    return [query_model(one) for one in added]


@router.post("/queries/check", summary="What is wrong with a text")
def check(found: TheSession, asked: QueryTextModel) -> CheckReport:
    """200 whatever is wrong: an editor asks this with every pause of the writer."""
    diagnostics = found.check(asked.text, asked.language)
    return CheckReport(ok=not diagnostics, diagnostics=[DiagnosticModel(**one) for one in diagnostics])


@router.post("/queries/explain", summary="What a text will do", response_model=ExplainReport)
def explain(found: TheSession, asked: QueryTextModel) -> JSONResponse:
    return JSONResponse(found.explain(asked.text, asked.language))


@router.post("/queries/{query:path}/pause", summary="Pause a query")
def pause(found: TheSession, query: str) -> QueryModel:
    return query_model(found.pause_query(query))


@router.post("/queries/{query:path}/resume", summary="Let a query go on")
def resume(found: TheSession, query: str) -> QueryModel:
    """One that failed, too. It begins with what the windows hold."""
    return query_model(found.resume_query(query))


@router.get("/queries/{query:path}/results", summary="Results that are kept", response_model=Results, tags=["results"])
def results(found: TheSession, query: str, after: After = -1, limit: Some = 100) -> Response:
    """In the order of their numbers. 410 when the one behind `after` is no longer kept; the error names the oldest."""
    found.require([query])
    bodies = b", ".join(one.body for one in found.log.read(query, after, limit))
    last = str(found.log.last(query)).encode()
    return Response(b'{"results": [' + bodies + b'], "last_seq": ' + last + b"}", media_type="application/json")


@router.get(
    "/queries/{query:path}/results/live",
    summary="Results as they come (server-sent events)",
    response_class=Response,
    responses=_EVENTS,
    tags=["results"],
)
async def live(
    hub: TheHub,
    found: TheSession,
    query: str,
    after: Annotated[int | None, Query(ge=-1, le=2**53)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Events `result` with the number as id. `Last-Event-ID` or `after` goes on behind a number; without them it begins
    with the next result. An event `error` ends it."""
    begin = _begin(last_event_id, after)
    await run_in_threadpool(found.require, [query])
    return EventStream(found, found.listen([query], begin), hub.limits)


def _begin(last_event_id: str | None, after: int | None) -> int | None:
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) <= 15):
        raise ServerError(BAD_REQUEST, "Last-Event-ID is the number of a result")
    return int(last_event_id)


@router.get("/queries/{query:path}", summary="A query and how it stands")
def query(found: TheSession, query: str) -> QueryModel:
    return query_model(found.query(query))


@router.delete("/queries/{query:path}", summary="Delete a query and its results", status_code=204)
def delete(found: TheSession, query: str) -> None:
    found.delete_query(query)
