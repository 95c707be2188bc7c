"""The status of a query in a session, as clients see it.

Invariant: a status is derived from the catalogue, the results and the run; it stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import static_graphs, windows
from anabranch.errors import QueryError
from anabranch.formats.values import to_json
from anabranch.server.catalogue import StoredQuery
from anabranch.server.problems import error_dict

QueryState: TypeAlias = Literal["running", "paused", "failed", "waiting"]


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """The status of a query. `last_seq` is the number of its newest result, -1 while there is none. `state` is
    `waiting` while the session is not running, or has no stream. `evaluated_at` is the last instant that was evaluated
    since the run began, and `rows_now` the number of rows that the plain query has there; both are known even if the
    instant had no rows and so no result. `skipped` counts the rows on which an expression failed; `last_skipped` is the
    error of the last of them."""

    name: str
    text: str
    language: str
    state: QueryState
    columns: tuple[str, ...]
    output: str
    form: str
    last_seq: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    windows: str = "trailing"
    conflicts: str = "latest"
    streams: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    into: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    evaluated_at: int | None = None
    rows_now: int | None = None
    on_error: str = "skip"
    skipped: int = 0
    last_skipped: Mapping[str, Any] | None = None


class QueryStanding(NamedTuple):
    """The position of a query in its run: the last instant and its rows, the skipped rows and the error of the last of
    them, and the number of its newest result."""

    evaluated_at: int | None
    rows_now: int | None
    skipped: int
    last_skipped: QueryError | None
    last_seq: int


def query_status(
    stored: StoredQuery, found: Registration, standing: QueryStanding, warnings: Iterable[str], is_running: bool
) -> QueryStatus:
    state: QueryState = "running" if is_running else "waiting"
    if stored.error is not None:
        state = "failed"
    if stored.paused:
        state = "paused"
    return QueryStatus(
        stored.name,
        stored.text,
        stored.language,
        state,
        found.columns,
        found.output,
        found.form,
        standing.last_seq,
        {key: to_json(value) for key, value in stored.parameters.items()},
        stored.windows,
        stored.conflicts,
        tuple(dict.fromkeys(one.stream.name for one in windows(found.plan) if one.stream.name is not None)),
        tuple(dict.fromkeys(one.name for one in static_graphs(found.plan))),
        found.into,
        dict(found.prefixes),
        stored.error,
        tuple(warnings),
        standing.evaluated_at,
        standing.rows_now,
        stored.on_error,
        standing.skipped,
        None if standing.last_skipped is None else error_dict(standing.last_skipped),
    )
