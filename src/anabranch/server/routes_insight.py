"""Looking inside: operators with their counts, steps, the window as a graph, why a row is there and why one is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from anabranch.insight.recording import Recording
from anabranch.insight.shapes import to_json
from anabranch.server.models import RowModel, ValuesModel
from anabranch.server.problems import BAD_REQUEST, NOT_FOUND, ServerError
from anabranch.server.recordings import Recordings
from anabranch.server.routing import PROBLEMS, V1, Some, TheSession, instant
from anabranch.server.session import LiveSession
from anabranch.server.slices import SCENES, STEPS, reaching, with_instants

if TYPE_CHECKING:
    from anabranch.insight.scenes import Scenes
    from anabranch.insight.steps import RecordedSteps

router = APIRouter(prefix=f"{V1}/sessions/{{session}}/queries/{{query:path}}", responses=PROBLEMS, tags=["insight"])

_Wanted = Annotated[str | None, Query(max_length=40, description="The id of a recording; a new one if left out.")]
_Events = Annotated[
    int | None,
    Query(ge=1, le=20_000, description="Of a new recording: at most so many events; as many as it takes if left out."),
]
_At = Annotated[str | None, Query(description="An instant; the last one if left out.")]


def _recordings(request: Request) -> Recordings:
    found: Recordings = request.app.state.recordings
    return found


def _some(session: LiveSession, query: str, events: int | None, instants: int, at: int | None = None) -> Recording:
    """Make a recording: of `events` events if the request names a number, else a short one that suffices."""
    if events is not None:
        return session.recording(query, events)
    return with_instants(session, query, instants) if at is None else reaching(session, query, at)


@router.get("/operators", summary="The operators of a query and what they have done")
def operators(found: TheSession, query: str) -> dict[str, Any]:
    return {"graph": to_json(found.operators(query)), "load": to_json(found.load(query))}


@router.get("/steps", summary="Step by step: the messages between operators")
def steps(
    request: Request,
    found: TheSession,
    query: str,
    start: Annotated[int, Query(alias="from", ge=0, le=2**31)] = 0,
    limit: Some = 100,
    recording: _Wanted = None,
    events: _Events = None,
) -> dict[str, Any]:
    """Of a recording of the last events. Its id, given again, leafs through the same one."""
    recordings = _recordings(request)
    kept = recordings.find(found, query, recording, lambda: _some(found, query, events, STEPS))

    def look(made: RecordedSteps) -> dict[str, Any]:
        return {
            "recording": kept.id,
            "graph": to_json(made.graph),
            "total": len(made.messages),
            "instants": to_json(list(made.instants)),
            "messages": to_json(list(made.messages[start : start + limit])),
        }

    return recordings.within(lambda: kept.in_steps(look))


@router.get("/steps/{number}", summary="How things stood after a message")
def step(request: Request, found: TheSession, query: str, number: int, recording: _Wanted = None) -> dict[str, Any]:
    recordings = _recordings(request)
    kept = recordings.find(found, query, recording, lambda: with_instants(found, query, STEPS))

    def look(made: RecordedSteps) -> dict[str, Any]:
        if not 0 <= number < len(made.messages):
            raise ServerError(NOT_FOUND, f"the recording has {len(made.messages)} messages", "they count from 0")
        return {"recording": kept.id, "state": to_json(made.state(number))}

    return recordings.within(lambda: kept.in_steps(look))


@router.get("/scene", summary="The windows as one graph at an instant")
def scene(
    request: Request,
    found: TheSession,
    query: str,
    at: _At = None,
    recording: _Wanted = None,
    events: _Events = None,
) -> dict[str, Any]:
    """Of the last instant at or before `at`."""
    wanted = instant(at)
    recordings = _recordings(request)
    kept = recordings.find(found, query, recording, lambda: _some(found, query, events, SCENES, wanted))

    def look(scenes: Scenes) -> dict[str, Any]:
        instants = [one for one in scenes.instants if wanted is None or one <= wanted]
        drawn = to_json(scenes.scene(instants[-1])) if instants else None
        return {"recording": kept.id, "instants": to_json(list(scenes.instants)), "scene": drawn}

    return recordings.within(lambda: kept.in_scenes(look))


@router.post("/why", summary="Why a row is there")
def why(request: Request, found: TheSession, query: str, asked: RowModel, recording: _Wanted = None) -> dict[str, Any]:
    """The elements that it is made of, what completed it, and when it will leave."""
    from anabranch.insight.why import why as find_why

    return _of_row(request, found, query, asked, recording, "why", find_why)


@router.post("/why-left", summary="Why a row is no longer there")
def why_left(
    request: Request, found: TheSession, query: str, asked: RowModel, recording: _Wanted = None
) -> dict[str, Any]:
    """Of a row that was there at `at`: which of its elements left the windows or changed, or what came that keeps it
    out, and at which instant."""
    from anabranch.insight.why import why_left as find_why_left

    return _of_row(request, found, query, asked, recording, "why_left", find_why_left)


def _of_row(
    request: Request,
    found: LiveSession,
    query: str,
    asked: RowModel,
    recording: str | None,
    name: str,
    find: Callable[[Recording, Mapping[str, Any], int | None], object],
) -> dict[str, Any]:
    at = instant(asked.at)
    recordings = _recordings(request)
    kept = recordings.find(found, query, recording, lambda: reaching(found, query, at))
    columns = found.query(query).columns
    row = dict(zip(columns, asked.row, strict=False)) if isinstance(asked.row, list) else asked.row
    if len(row) < len(asked.row) or not row or not set(row) <= set(columns):
        raise ServerError(BAD_REQUEST, "that is no row of the query", f"its columns are {', '.join(columns)}")
    return {"recording": kept.id, name: to_json(recordings.within(lambda: find(kept.recording, row, at)))}


@router.post("/why-not", summary="Why no row has these values")
def why_not(
    request: Request, found: TheSession, query: str, asked: ValuesModel, recording: _Wanted = None
) -> dict[str, Any]:
    """The nearest match, which parts of the pattern it lacks, and which conditions refuse it."""
    from anabranch.insight.why_not import why_not as find_why_not

    at = instant(asked.at)
    recordings = _recordings(request)
    kept = recordings.find(found, query, recording, lambda: reaching(found, query, at))
    told = recordings.within(lambda: find_why_not(kept.recording, asked.values, at))
    return {"recording": kept.id, "why_not": to_json(told)}
