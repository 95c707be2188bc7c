"""The status of a query in a session, as clients see it.

Invariant: a status is derived from the catalogue, the results and the run; it stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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
