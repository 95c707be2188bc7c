"""Health, figures, and sessions with what they shall do."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from anabranch import __version__
from anabranch.server.exposition import exposition
from anabranch.server.live import serve_socket
from anabranch.server.models import Health, NewSession, SessionModel, session_model
from anabranch.server.problems import ServerError, error_dict
from anabranch.server.routing import PROBLEMS, V1, TheHub, TheSession, hub_of

router = APIRouter(responses=PROBLEMS)
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get(f"{V1}/health", summary="Whether the server is there", tags=["server"])
def health(hub: TheHub) -> Health:
    return Health(version=__version__, engine=hub.engine)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    tags=["server"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(hub: TheHub) -> Response:
    return Response(exposition(hub), media_type=_TYPE)


@router.get(f"{V1}/sessions", summary="All sessions", tags=["sessions"])
def sessions(hub: TheHub) -> list[SessionModel]:
    return [session_model(one) for one in hub.sessions()]


@router.post(f"{V1}/sessions", summary="Make a session", tags=["sessions"], status_code=201)
def create(hub: TheHub, new: NewSession) -> SessionModel:
    """It runs as soon as it has a stream and a query, unless its state says otherwise."""
    return session_model(hub.create(new.name, new.state))


@router.get(f"{V1}/sessions/{{session}}", summary="A session and how it stands", tags=["sessions"])
def session(found: TheSession) -> SessionModel:
    return session_model(found)


@router.delete(
    f"{V1}/sessions/{{session}}", summary="Stop a session and remove all of it", tags=["sessions"], status_code=204
)
def delete(hub: TheHub, session: str) -> None:
    """Also one that could not be opened."""
    hub.delete(session)


@router.post(f"{V1}/sessions/{{session}}/start", summary="Run", tags=["sessions"])
def start(found: TheSession) -> SessionModel:
    """Also after a failure: the run is tried again."""
    found.start()
    return session_model(found)


@router.post(f"{V1}/sessions/{{session}}/pause", summary="Pause between two batches", tags=["sessions"])
def pause(found: TheSession) -> SessionModel:
    """What is pushed or received meanwhile waits."""
    found.pause()
    return session_model(found)


@router.post(f"{V1}/sessions/{{session}}/stop", summary="Stop between two batches", tags=["sessions"])
def stop(found: TheSession) -> SessionModel:
    """Receivers stop too. Nothing is forgotten."""
    found.stop()
    return session_model(found)


@router.websocket(f"{V1}/sessions/{{session}}/live")
async def live(websocket: WebSocket, session: str) -> None:
    hub = hub_of(websocket)
    try:
        found = await run_in_threadpool(hub.session, session)
    except ServerError as error:
        await websocket.accept()
        await websocket.send_json({"type": "error", "error": error_dict(error)})
        await websocket.close(1008, error.message[:120])
        return
    await serve_socket(websocket, found, hub.limits)
