"""What REST takes and gives, as OpenAPI describes it.

Invariant: every answer of the interface is one of these, or a file; instants are ISO 8601 texts in UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from anabranch.model.instants import format_instant
from anabranch.server.queries import QueryStatus
from anabranch.server.session import LiveSession
from anabranch.server.streams import StreamInfo

QUERY_EXAMPLE = (
    "REGISTER QUERY busy STARTING AT 2022-10-14T14:45 {\n"
    "  MATCH (b:Bike)-[r:rentedAt]->(s:Station) WITHIN PT1H\n"
    "  EMIT s.id AS station, count(*) AS rentals SNAPSHOT EVERY PT5M\n"
    "}"
)


InstantText = Annotated[str, BeforeValidator(format_instant)]


class RequestModel(BaseModel):
    """What is taken holds nothing that would be overlooked."""

    model_config = ConfigDict(extra="forbid")


class DiagnosticModel(BaseModel):
    code: str
    message: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    start: int | None = None
    stop: int | None = None
    label: str = ""
    hint: str = ""


class ErrorModel(BaseModel):
    model_config = ConfigDict(extra="allow")

    code: str = Field(examples=["SRV-001"])
    message: str = Field(examples=["there is no session `auction`"])
    hint: str = Field("", examples=["did you mean `auctions`?"])
    diagnostics: list[DiagnosticModel] = []


class Problem(BaseModel):
    """Every error has this shape."""

    error: ErrorModel


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str
    engine: Literal["spark", "local"]


class NewSession(RequestModel):
    name: str = Field(examples=["auctions"], description="Letters, digits, `.`, `-` and `_`, at most 64.")
    state: Literal["running", "paused", "stopped"] = "running"


class SessionModel(BaseModel):
    name: str
    state: Literal["running", "paused", "stopped", "failed"]
    ended: bool = Field(description="Whether all streams have ended and everything was answered.")
    error: ErrorModel | None = None
    streams: list[str]
    queries: list[str]
    failing_queries: list[str] = Field([], description="Those that have failed and are not evaluated any more.")
    skipping_queries: list[str] = Field([], description="Those that have skipped rows on which an expression failed.")
    figures: dict[str, Any]
    notes: list[str] = []


class NewStream(RequestModel):
    name: str = Field(examples=["rides"], description="A name, or the IRI by which queries call it.")
    address: str | None = Field(
        None, examples=["gen:bikes?rate=20"], description="Where it comes from; none: events are pushed here."
    )
    lateness: str | None = Field(None, examples=["PT5S"], description="How far out of order its events may come.")
    idle_timeout: str | None = Field(
        None, examples=["PT30S"], description="How long it may be silent before it is idle; none: as the server says."
    )
    idle: str | None = Field(
        None,
        examples=["correct"],
        description="What answers do when it is idle: `correct` (or `correct:PT1H`), `wait` or `advance`.",
    )
    ahead: str | None = Field(
        None,
        examples=["PT1H"],
        description="How far ahead an event may be without others that confirm it, or `none`; else as the server says.",
    )
    follow: bool = Field(False, description="Whether files are watched for what comes.")
    replace: bool = Field(False, description="Whether it takes the place of a stream that has its name.")


class StreamModel(BaseModel):
    name: str
    address: str | None
    kind: str = Field(description="push, gen, file, kafka, ...; query: a query makes it.")
    rate: float = Field(description="Events per second over the last five seconds.")
    watermark: InstantText | None
    newest: InstantText | None
    events: int
    held: int = Field(description="Events that windows still need.")
    late: int
    ahead: int = Field(description="Events whose clock was too far ahead to be believed.")
    in_doubt: int = Field(description="Events that wait until others confirm their clock.")
    jumps: int = Field(description="How often its time jumped past the widest window.")
    last_jump: list[InstantText] | None = Field(description="The last jump: from when, to when.")
    malformed: int
    closed: bool
    lateness: str | None = None
    state: str = ""
    idle_timeout: str | None = None
    idle: str = Field("", description="What answers do when it is idle.")
    ahead_bound: str = Field("", description="How far ahead an event may be without others that confirm it.")
    is_idle: bool = Field(False, description="Whether it has been silent for longer than that.")
    answered: InstantText | None = Field(
        None, description="How far answers are, where they went on without the idle stream; what comes is corrected."
    )
    behind: float = Field(0.0, description="Seconds since the first event came that is not answered yet.")
    growing: bool = Field(False, description="Whether that was less some seconds ago.")


class NewClock(RequestModel):
    at: str = Field(examples=["2022-10-14T14:45:00Z"], description="Events from this instant on follow.")


class PushedModel(BaseModel):
    accepted: int = Field(description="Events that will be seen, and those of earlier pushes that these confirm.")
    late: int = Field(0, description="Events that come too late.")
    ahead: int = Field(0, description="Events whose clock is too far ahead to be believed.")
    in_doubt: int = Field(0, description="Events that wait until others confirm their clock.")
    malformed: int = Field(0, description="Records that are no events.")
    received: int = Field(
        0, description="Records of which only the run will know what becomes: LOAD STREAM reads them."
    )


class GraphModel(BaseModel):
    name: str
    media_type: str


class QueryTextModel(RequestModel):
    text: str = Field(examples=[QUERY_EXAMPLE])
    language: Literal["seraph", "csparql", "lupos", "rspql"] | None = Field(
        None, description="Told by the text if left out."
    )


class NewQuery(QueryTextModel):
    parameters: dict[str, Any] = Field({}, examples=[{}])
    replace: bool = Field(False, description="Whether it takes the place of a query that has its name.")
    windows: Literal["trailing", "formal", "right-open"] = "trailing"
    conflicts: Literal["latest", "strict"] = "latest"
    on_error: Literal["skip", "fail"] = Field(
        "skip", description="A row on which an expression fails is skipped and counted, or ends its query."
    )


class QueryModel(BaseModel):
    name: str
    text: str
    language: str
    state: Literal["running", "paused", "failed", "waiting"]
    columns: list[str]
    output: str
    form: str
    last_seq: int = Field(description="The number of its newest result; -1 while there is none.")
    parameters: dict[str, Any]
    windows: str
    conflicts: str
    streams: list[str]
    graphs: list[str]
    into: str | None
    prefixes: dict[str, str]
    error: ErrorModel | None
    warnings: list[str]
    evaluated_at: InstantText | None = Field(description="The last instant that was evaluated since the run began.")
    rows_now: int | None = Field(description="How many rows the plain query has at that instant.")
    on_error: str
    skipped: int = Field(description="How many rows were skipped because an expression failed on them.")
    last_skipped: ErrorModel | None = Field(description="The error of the last of them.")


class CheckReport(BaseModel):
    ok: bool
    diagnostics: list[DiagnosticModel]


class ExplainReport(BaseModel):
    text: str
    json_: list[dict[str, Any]] = Field(alias="json")
    drawings: dict[str, str] = Field(description="SVG: `before` and `after` the rules, and the D-Graph.")


class ResultModel(BaseModel):
    """One answer of a query."""

    seq: int = Field(examples=[17], description="Its number within the query, for ever.")
    query: str
    at: str
    op: str
    correction: str | None = None
    win_start: str
    win_end: str
    columns: list[str]
    rows: list[list[Any]]
    total: int = Field(description="How many rows there are, also those that were cut off.")
    truncated: bool


class Results(BaseModel):
    results: list[ResultModel]
    last_seq: int


class RowModel(RequestModel):
    row: dict[str, Any] | list[Any] = Field(examples=[{"station": 3}], description="The row, or some of its columns.")
    at: str | None = Field(None, description="The instant of the answer; the newest that has the row if left out.")


class ValuesModel(RequestModel):
    values: dict[str, Any] = Field(examples=[{"station": 3}])
    at: str | None = None


def session_model(session: LiveSession) -> SessionModel:
    return SessionModel(
        name=session.name,
        state=session.state,
        ended=session.ended,
        error=None if session.error is None else ErrorModel(**session.error),
        streams=[one.name for one in session.streams()],
        queries=session.query_names(),
        failing_queries=session.failing_queries(),
        skipping_queries=session.skipping_queries(),
        figures=session.metrics(),
        notes=session.notes,
    )


def stream_model(info: StreamInfo) -> StreamModel:
    return StreamModel.model_validate(info, from_attributes=True)


def query_model(query: QueryStatus) -> QueryModel:
    return QueryModel.model_validate(query, from_attributes=True)
