"""The catalogue: the contents of all sessions in one SQLite file, so that a restarted server continues where it was.

    sessions  name, wanted state (running, paused, stopped)
    streams   session, name, address (none: pushed through REST), lateness and other timing, the name that queries use,
              whether it was stopped
    graphs    session, name, file, media type
    queries   session, name, text, language, parameters (typed JSON), policies, whether it is paused

Invariant: a change is on disk when its method returns; rows are read in the order in which they were made.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from anabranch.engine.evaluation_options import OnError
from anabranch.errors import EngineError
from anabranch.formats.values import from_typed_json, to_typed_json
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import WindowPolicy
from anabranch.sources.private import private_file

FORMAT = 1
Wish: TypeAlias = Literal["running", "paused", "stopped"]

_TABLES = """
    CREATE TABLE IF NOT EXISTS sessions (
        id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, wish TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS streams (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, address TEXT, lateness TEXT,
        meant TEXT NOT NULL, follow INTEGER NOT NULL, stopped INTEGER NOT NULL, timing TEXT NOT NULL DEFAULT '{}',
        UNIQUE (session, name));
    CREATE TABLE IF NOT EXISTS graphs (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, media_type TEXT NOT NULL,
        UNIQUE (session, name));
    CREATE TABLE IF NOT EXISTS queries (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, language TEXT NOT NULL,
        parameters TEXT NOT NULL, windows TEXT NOT NULL, conflicts TEXT NOT NULL, paused INTEGER NOT NULL,
        error TEXT NOT NULL, tries INTEGER NOT NULL, on_error TEXT NOT NULL DEFAULT 'skip', UNIQUE (session, name));
"""
_ADDED = (  # columns that catalogues of older versions lack
    ("queries", "on_error", "TEXT NOT NULL DEFAULT 'skip'"),
    ("streams", "timing", "TEXT NOT NULL DEFAULT '{}'"),
)


@dataclass(frozen=True, slots=True)
class StoredTiming:
    """The timing settings of one stream, as texts; None means the server's setting."""

    idle_timeout: str | None = None
    idle: str | None = None
    ahead: str | None = None
    clock: tuple[int, int] | None = None  # the clock as last set by a client: number of the change, instant

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredTiming:
        clock = data.get("clock")
        return cls(**{**data, "clock": None if clock is None else tuple(clock)})


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream of the catalogue. `meant` is the name that queries use: an IRI, where `name` is its last part."""

    name: str
    address: str | None = None
    lateness: str | None = None
    meant: str = ""
    follow: bool = False
    stopped: bool = False
    timing: StoredTiming = StoredTiming()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredStream:
        """Create a stream from the output of `asdict`."""
        return cls(**{**data, "timing": StoredTiming.from_json(data.get("timing", {}))})


@dataclass(frozen=True, slots=True)
class StoredGraph:
    name: str
    file: str
    media_type: str


@dataclass(frozen=True, slots=True)
class StoredQuery:
    name: str
    text: str
    language: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    windows: WindowPolicy = "trailing"
    conflicts: ConflictPolicy = "latest"
    paused: bool = False
    error: Mapping[str, Any] | None = None
    tries: int = 0
    on_error: OnError = "skip"

    @property
    def file_name(self) -> str:
        """The file name that diagnostics show; its ending is the query's language."""
        return f"{self.name}.{self.language}"


class Catalogue:
    """The catalogue; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            private_file(path)
            self._open = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._open.execute("PRAGMA journal_mode = WAL")
            self._open.execute("PRAGMA synchronous = FULL")
            found = self._open.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, FORMAT):
                raise EngineError(f"{path} has format {found}; this version of Anabranch reads {FORMAT}")
            self._open.executescript(_TABLES)
            for table, column, kind in _ADDED:
                if column not in {row[1] for row in self._open.execute(f"PRAGMA table_info({table})")}:
                    self._open.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
            self._open.execute(f"PRAGMA user_version = {FORMAT}")
        except (sqlite3.Error, OSError) as error:
            raise EngineError(f"cannot keep the catalogue in {path}: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._open.close()

    # --- sessions -----------------------------------------------------------------------------------------------------

    def sessions(self) -> list[tuple[str, Wish]]:
        rows = self._all("SELECT name, wish FROM sessions ORDER BY id")
        return [(name, cast(Wish, wish)) for name, wish in rows]

    def put_session(self, name: str, wish: Wish) -> None:
        said = "INSERT INTO sessions (name, wish) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET wish = excluded.wish"
        self._do(said, name, wish)

    def remove_session(self, name: str) -> None:
        with self._at_once():
            for table in ("streams", "graphs", "queries"):
                self._open.execute(f"DELETE FROM {table} WHERE session = ?", (name,))
            self._open.execute("DELETE FROM sessions WHERE name = ?", (name,))

    # --- streams ------------------------------------------------------------------------------------------------------

    def streams(self, session: str) -> list[StoredStream]:
        columns = "name, address, lateness, meant, follow, stopped, timing"
        rows = self._all(f"SELECT {columns} FROM streams WHERE session = ? ORDER BY id", session)
        return [
            StoredStream(
                name, address, lateness, meant, bool(follow), bool(stopped), StoredTiming.from_json(json.loads(timing))
            )
            for name, address, lateness, meant, follow, stopped, timing in rows
        ]

    def put_stream(self, session: str, one: StoredStream) -> None:
        """Add a stream, or replace the stream of that name."""
        self._do(
            "INSERT INTO streams (session, name, address, lateness, meant, follow, stopped, timing) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session, name) "
            "DO UPDATE SET address = excluded.address, lateness = excluded.lateness, meant = excluded.meant, "
            "follow = excluded.follow, stopped = excluded.stopped, timing = excluded.timing",
            *(session, one.name, one.address, one.lateness, one.meant, one.follow, one.stopped),
            json.dumps(asdict(one.timing)),
        )

    def remove_stream(self, session: str, name: str) -> None:
        self._do("DELETE FROM streams WHERE session = ? AND name = ?", session, name)

    # --- graphs -------------------------------------------------------------------------------------------------------

    def graphs(self, session: str) -> list[StoredGraph]:
        rows = self._all("SELECT name, file, media_type FROM graphs WHERE session = ? ORDER BY id", session)
        return [StoredGraph(*row) for row in rows]

    def put_graph(self, session: str, one: StoredGraph) -> None:
        self._do(
            "INSERT INTO graphs (session, name, file, media_type) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (session, name) DO UPDATE SET file = excluded.file, media_type = excluded.media_type",
            *(session, one.name, one.file, one.media_type),
        )

    def remove_graph(self, session: str, name: str) -> None:
        self._do("DELETE FROM graphs WHERE session = ? AND name = ?", session, name)

    # --- queries ------------------------------------------------------------------------------------------------------

    def queries(self, session: str) -> list[StoredQuery]:
        columns = "name, text, language, parameters, windows, conflicts, paused, error, tries, on_error"
        rows = self._all(f"SELECT {columns} FROM queries WHERE session = ? ORDER BY id", session)
        return [
            StoredQuery(
                *(name, text, language, _unpacked(given), windows, conflicts, bool(paused), json.loads(error)),
                *(tries, on_error),
            )
            for name, text, language, given, windows, conflicts, paused, error, tries, on_error in rows
        ]

    def put_query(self, session: str, one: StoredQuery) -> None:
        self._do(
            "INSERT INTO queries "
            "(session, name, text, language, parameters, windows, conflicts, paused, error, tries, on_error) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session, name) DO UPDATE SET text = excluded.text, "
            "language = excluded.language, parameters = excluded.parameters, windows = excluded.windows, "
            "conflicts = excluded.conflicts, paused = excluded.paused, error = excluded.error, "
            "tries = excluded.tries, on_error = excluded.on_error",
            *(session, one.name, one.text, one.language, _packed(one.parameters), one.windows, one.conflicts),
            *(one.paused, json.dumps(one.error), one.tries, one.on_error),
        )

    def forget_failures(self, session: str) -> None:
        self._do("UPDATE queries SET error = ? WHERE session = ?", json.dumps(None), session)

    def note_failure(self, session: str, name: str, error: Mapping[str, Any]) -> None:
        self._do("UPDATE queries SET error = ? WHERE session = ? AND name = ?", json.dumps(error), session, name)

    def remove_query(self, session: str, name: str) -> None:
        self._do("DELETE FROM queries WHERE session = ? AND name = ?", session, name)

    # --- SQLite -------------------------------------------------------------------------------------------------------

    def _do(self, statement: str, *values: Any) -> None:
        with self._lock:
            self._open.execute(statement, values)

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        with self._lock:
            self._open.execute("BEGIN")
            try:
                yield
                self._open.execute("COMMIT")
            finally:
                if self._open.in_transaction:
                    self._open.execute("ROLLBACK")

    def _all(self, question: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._open.execute(question, values).fetchall()


def _packed(parameters: Mapping[str, Value]) -> str:
    return json.dumps({name: to_typed_json(value) for name, value in parameters.items()})


def _unpacked(text: str) -> dict[str, Value]:
    return {name: from_typed_json(value) for name, value in json.loads(text).items()}
