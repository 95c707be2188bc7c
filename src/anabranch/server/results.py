"""The result log of a session: results are rendered once, kept within bounds, and read again by number.

The log is a sink of the session's run. A result is rendered to JSON bytes when it arrives, and all listeners share
these bytes. The newest results stay in memory; the kept results are also in SQLite, beside the checkpoint, so that
after a restart of the server a client can continue from the last number that it saw. A result that has most of its rows
from an earlier one is stored as its change (`result_changes`).

State: per query at most `results_kept` results on disk, and per session `result_bytes_kept` bytes. The same bounds hold
in memory, plus the results of the last seconds, so that a burst reaches the listeners.

A run that starts from scratch counts its answers from zero; `begin_anew` stores the offset at which its numbers
continue here. The last number of a query is stored separately: it outlives the results, and the query.

Invariant: results of a query have consecutive numbers; a repeated batch adds nothing; a result is on disk before
listeners are notified.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from anabranch.errors import EngineError
from anabranch.formats.answers import TypedAnswers, head, json_text
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import to_json
from anabranch.server.limits import Limits
from anabranch.server.problems import NOT_FOUND, NOT_KEPT, ServerError
from anabranch.server.result_changes import ResultGroup, ResultParts, may_begin, packed, restored, unpacked
from anabranch.sinks.base import RenderedAnswer, Sink
from anabranch.sources.private import private_file

FORMAT = 2  # 1: every result is stored whole
FRESH = 5.0  # seconds during which a result stays in memory, however many follow
_MEMORY = 16 << 20  # bytes of results that are older than that
_TABLES = """
    CREATE TABLE IF NOT EXISTS results (
        id INTEGER PRIMARY KEY, query TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL,
        whole INTEGER, UNIQUE (query, seq));
    CREATE TABLE IF NOT EXISTS wholes (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
    CREATE INDEX IF NOT EXISTS changes ON results (whole) WHERE whole IS NOT NULL;
    CREATE TABLE IF NOT EXISTS bases (query TEXT PRIMARY KEY, base INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS lasts (query TEXT PRIMARY KEY, seq INTEGER NOT NULL, gone INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One result as it is sent. `order` is its place among all results of the session since the server began."""

    query: str
    seq: int
    at: int
    body: bytes
    order: int = 0
    came: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Rendering:
    """Renders the answers of one query as JSON, each with its first rows. A row that the previous answer had is not
    rendered again."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._answers = TypedAnswers()
        self._rows: RenderedRows[bytes] = RenderedRows(_row_texts)

    def render(self, seq: int, told: RenderedAnswer) -> ResultParts:
        answer = self._answers.read(told.typed, self._most_rows)
        shown = self._rows.of(answer.rows)
        begin = json_text({"seq": seq, **head(*answer[:6]), "columns": list(answer.columns)})
        end = json_text({"total": told.rows, "truncated": len(shown) < told.rows})
        return ResultParts(begin[:-1] + b', "rows": [', shown, b"], " + end[1:])


def _row_texts(rows: Iterable[AnswerRow]) -> list[bytes]:
    return [json_text([to_json(value) for value in row]) for row in rows]


class ResultLog(Sink):
    """The results of all queries of a session, written by the run's thread and read by any thread."""

    forms = ("typed",)

    def __init__(
        self,
        path: Path,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        on_gap: Callable[[str, int, int], None] = lambda query, first, last: None,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._on_gap = on_gap  # called with missing numbers: the file was damaged
        self._lock = threading.Lock()  # guards the memory; never held during disk work
        self._writing = threading.Lock()
        self._tails: dict[str, deque[Result]] = {}
        self._last: dict[str, int] = {}
        self._gone: dict[str, int] = {}  # the last numbers of deleted queries
        self._renderings: dict[str, Rendering] = {}
        self._groups: dict[str, ResultGroup] = {}  # by query: the last one, if it has one
        self._bytes = 0
        self._orders = 0
        self._listeners: list[Callable[[], None]] = []
        self._is_shut = False
        self.batch = -1
        """The last batch that brought results since the server, or the run, began."""
        try:
            self._disk = _opened(path)
            self._reading = _opened(path)
            self._disk_lock = threading.Lock()
            self._read_lock = threading.Lock()
            self._disk.execute("INSERT OR IGNORE INTO lasts SELECT query, max(seq), 0 FROM results GROUP BY query")
            for query, seq, gone in self._disk.execute("SELECT query, seq, gone FROM lasts"):
                (self._gone if gone else self._last)[query] = seq
            self._bases: dict[str, int] = dict(self._disk.execute("SELECT query, base FROM bases"))
            self._disk_bytes = self._counted_bytes()
        except sqlite3.Error as error:
            raise EngineError(f"cannot keep results in {path}: {error}") from error

    def shut(self) -> None:
        """Close the files at the end of the session. The end of a run closes only the sink, which has no effect
        here."""
        with self._disk_lock, self._read_lock:
            self._is_shut = True
            self._disk.close()
            self._reading.close()

    # --- writing --------------------------------------------------------------------------------------------------

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        with self._writing:
            numbered = [(self._number(told), told) for told in answers]
            rendered = [
                (told.query, seq, told.at, self._rendering(told.query).render(seq, told))
                for seq, told in numbered
                if seq > self._last.get(told.query, -1)
            ]
            if not rendered:
                return
            self._look_for_gaps([(query, seq) for query, seq, _, _ in rendered])
            self._put(rendered)
            came = [(query, seq, at, parts.body) for query, seq, at, parts in rendered]
            now = self._clock()
            with self._lock:
                for query, seq, at, body in came:
                    self._orders += 1
                    self._tails.setdefault(query, deque()).append(Result(query, seq, at, body, self._orders, now))
                    self._last[query] = seq
                    self._bytes += len(body)
                self._trim(now)
                self.batch = batch
        self._tell()

    def _look_for_gaps(self, came: Sequence[tuple[str, int]]) -> None:
        firsts: dict[str, int] = {}
        for query, seq in came:
            firsts.setdefault(query, seq)
        for query, seq in firsts.items():
            expected = max(self._last.get(query, -1), self._gone.get(query, -1)) + 1
            if seq > expected:
                self._on_gap(query, expected, seq - 1)

    def _rendering(self, query: str) -> Rendering:
        return self._renderings.setdefault(query, Rendering(self._limits.rows_per_result))

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _number(self, told: RenderedAnswer) -> int:
        """Return the number of an answer in this log. A query that was deleted and registered again may restart at a
        number that is already used; then it continues after its last number."""
        seq = told.number + self._bases.get(told.query, 0)
        gone = self._gone.get(told.query, -1)
        if seq <= gone and told.query not in self._last:
            self._bases[told.query] = gone + 1 - told.number
            return gone + 1
        return seq

    def _put(self, rows: Sequence[tuple[str, int, int, ResultParts]]) -> None:
        limits = self._limits
        with self._changing() as disk:
            for query, seq, at, parts in rows:
                stored = self._stored(disk, query, parts)
                disk.execute(
                    "INSERT OR REPLACE INTO results (query, seq, at, body, whole) VALUES (?, ?, ?, ?, ?)",
                    (query, seq, at, *stored),
                )
                self._disk_bytes += len(stored[0])
            newest = {row[0]: row[1] for row in rows}
            disk.executemany("INSERT OR REPLACE INTO lasts VALUES (?, ?, 0)", list(newest.items()))
            based = [one for one in self._bases.items() if one[0] in newest and one[0] not in self._last]
            disk.executemany("INSERT OR REPLACE INTO bases VALUES (?, ?)", based)
            for query, seq in newest.items():
                self._drop("query = ? AND seq <= ?", query, seq - limits.results_kept)
            if self._disk_bytes > limits.result_bytes_kept:
                self._drop_oldest(self._disk_bytes - limits.result_bytes_kept)

    def _stored(self, disk: sqlite3.Connection, query: str, parts: ResultParts) -> tuple[bytes, int | None]:
        """Return a result's body, or its change with the number of the whole that it is a change of."""
        group = self._groups.get(query)
        change = None if group is None else group.change(parts)
        if group is not None and change is not None:
            return change, group.number
        self._groups.pop(query, None)
        if not may_begin(parts):
            return parts.body, None
        whole = packed(parts)
        number = disk.execute("INSERT INTO wholes (body) VALUES (?)", (whole,)).lastrowid
        assert number is not None
        self._disk_bytes += len(whole)
        begun = self._groups[query] = ResultGroup(number, parts)
        change = begun.change(parts)
        assert change is not None
        return change, number

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: commit it, or roll it back on an error, so that a full disk leaves no transaction open."""
        with self._disk_lock:
            try:
                self._disk.execute("BEGIN")
                yield self._disk
                self._disk.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if self._disk.in_transaction:
                        self._disk.execute("ROLLBACK")
                    self._disk_bytes = self._counted_bytes()
                    self._groups.clear()
                if isinstance(error, sqlite3.Error):
                    raise EngineError(f"cannot keep results: {error}") from error
                raise

    def _counted_bytes(self) -> int:
        counted = "SELECT coalesce(sum(length(body)), 0) FROM"
        return sum(self._disk.execute(f"{counted} {table}").fetchone()[0] for table in ("results", "wholes"))

    def _drop(self, which: str, *values: Any) -> None:
        found = self._disk.execute(f"SELECT length(body), whole FROM results WHERE {which}", values).fetchall()
        self._disk_bytes -= sum(size for size, _ in found)
        self._disk.execute(f"DELETE FROM results WHERE {which}", values)
        for number in {whole for _, whole in found if whole is not None}:
            self._drop_unused(number)

    def _drop_unused(self, number: int) -> None:
        """Drop a whole if no result is a change of it any more."""
        if self._disk.execute("SELECT 1 FROM results WHERE whole = ? LIMIT 1", (number,)).fetchone() is None:
            (size,) = self._disk.execute("SELECT length(body) FROM wholes WHERE id = ?", (number,)).fetchone()
            self._disk_bytes -= size
            self._disk.execute("DELETE FROM wholes WHERE id = ?", (number,))
            self._groups = {query: one for query, one in self._groups.items() if one.number != number}

    def _drop_oldest(self, surplus: int) -> None:
        """Drop the oldest results; a whole goes with the last of its changes."""
        last = 0
        lasts = dict(self._disk.execute("SELECT whole, max(id) FROM results WHERE whole IS NOT NULL GROUP BY whole"))
        sizes = dict(self._disk.execute("SELECT id, length(body) FROM wholes"))
        for number, size, whole in self._disk.execute("SELECT id, length(body), whole FROM results ORDER BY id"):
            last = number
            surplus -= size + (sizes[whole] if lasts.get(whole) == number else 0)
            if surplus <= 0:
                break
        self._drop("id <= ?", last)

    def _trim(self, now: float) -> None:
        """Drop results from memory to meet its bounds: per query, the oldest first, and fresh ones only above
        `result_bytes_kept`."""
        limits = self._limits
        room = min(_MEMORY, limits.result_bytes_kept)
        for tail in self._tails.values():
            while tail and (
                ((len(tail) > limits.results_kept or self._bytes > room) and tail[0].came < now - FRESH)
                or self._bytes > limits.result_bytes_kept
            ):
                self._bytes -= len(tail.popleft().body)

    def forget(self, query: str) -> None:
        """Drop all results of a query. If it is registered again, its numbers continue."""
        with self._writing:
            self._renderings.pop(query, None)
            self._groups.pop(query, None)
            last = max(self._last.get(query, -1), self._gone.get(query, -1))
            with self._changing() as disk:
                self._drop("query = ?", query)
                disk.execute("INSERT OR REPLACE INTO lasts VALUES (?, ?, 1)", (query, last))
            with self._lock:
                self._bytes -= sum(len(one.body) for one in self._tails.pop(query, ()))
                self._last.pop(query, None)
                self._gone[query] = last
        self._tell()

    def begin_anew(self) -> None:
        """Prepare for a run that counts from zero: its results get the numbers after those in use."""
        with self._writing, self._changing() as disk:
            given = {**self._gone, **self._last}
            self._bases |= {query: max(seq + 1, self._bases.get(query, 0)) for query, seq in given.items()}
            disk.executemany("INSERT OR REPLACE INTO bases VALUES (?, ?)", list(self._bases.items()))
            self.batch = -1

    # --- reading --------------------------------------------------------------------------------------------------

    def queries(self) -> list[str]:
        with self._lock:
            return list(self._last)

    def last(self, query: str) -> int:
        """Return the newest number of a query, or -1."""
        with self._lock:
            return self._last.get(query, -1)

    def lasts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._last)

    def forgotten(self, queries: Iterable[str]) -> dict[str, int]:
        """Return the last numbers of deleted queries that have no result since."""
        with self._lock:
            return {one: self._gone[one] for one in queries if one in self._gone and one not in self._last}

    def oldest(self, query: str) -> int | None:
        """Return the oldest number that is kept."""
        with self._lock:
            tail = self._tails.get(query)
            in_memory = tail[0].seq if tail else None
        on_disk = self._rows("SELECT min(seq) FROM results WHERE query = ?", query)[0][0]
        found = [one for one in (in_memory, on_disk) if one is not None]
        return min(found, default=None)

    def fresh(self, query: str, after: int, limit: int) -> list[Result] | None:
        """Return the results after a number, at most `limit`, if they are in memory; None means that they must be read
        from disk."""
        with self._lock:
            if after >= self._last.get(query, -1):
                return []
            tail = self._tails.get(query)
            if not tail or tail[0].seq > after + 1:
                return None
            start = after + 1 - tail[0].seq
            if start > len(tail) // 2:  # a deque is walked from its nearer end
                behind = list(islice(reversed(tail), len(tail) - start))
                behind.reverse()
                return behind[:limit]
            return list(islice(tail, start, start + limit))

    def read(self, query: str, after: int = -1, limit: int = 100) -> list[Result]:
        """Read the results after a number, in order. -1 begins with the oldest that is kept; a number whose successor
        is no longer kept is refused."""
        found = self.fresh(query, after, limit)
        if found is not None:
            return found
        found = self._stored_results(query, after, limit)
        if not found:
            found = self._newest(query, after, limit)
        if after >= 0 and (not found or found[0].seq > after + 1):
            raise not_kept(query, after, self.oldest(query))
        return found

    def _stored_results(self, query: str, after: int, limit: int) -> list[Result]:
        question = "SELECT query, seq, at, body, whole FROM results WHERE query = ? AND seq > ? ORDER BY seq LIMIT ?"
        with self._reader() as disk:
            disk.execute("BEGIN")  # a change and its whole are read as of one moment
            try:
                rows = disk.execute(question, (query, after, limit)).fetchall()
                found = []
                known, whole = None, ResultParts(b"", (), b"")
                for name, seq, at, body, number in rows:
                    if number is not None and number != known:
                        (stored,) = disk.execute("SELECT body FROM wholes WHERE id = ?", (number,)).fetchone()
                        known, whole = number, unpacked(stored)
                    found.append(Result(name, seq, at, body if number is None else restored(body, whole)))
                return found
            finally:
                disk.execute("COMMIT")

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock:
            if self._is_shut:
                raise ServerError(NOT_FOUND, "the session has ended")
            yield self._reading

    def _rows(self, question: str, *values: Any) -> list[Any]:
        with self._reader() as disk:
            return disk.execute(question, values).fetchall()

    def _newest(self, query: str, after: int, limit: int) -> list[Result]:
        with self._lock:
            return [one for one in self._tails.get(query, ()) if one.seq > after][:limit]

    # --- listening ------------------------------------------------------------------------------------------------

    def listen(self, listener: Callable[[], None]) -> None:
        """Register a callback that the run's thread calls after each batch with results, and when a query was
        forgotten."""
        self._listeners = [*self._listeners, listener]


def not_kept(query: str, after: int, oldest: int | None) -> ServerError:
    kept = "no result is kept" if oldest is None else f"the oldest that is kept is {oldest}"
    hint = "begin anew with after=-1" if oldest is None else f"go on with after={oldest - 1}"
    return ServerError(NOT_KEPT, f"result {after + 1} of `{query}` is gone: {kept}", hint, oldest=oldest)


def _opened(path: Path) -> sqlite3.Connection:
    private_file(path)
    opened = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    opened.execute("PRAGMA journal_mode = WAL")
    opened.execute("PRAGMA synchronous = NORMAL")
    found = opened.execute("PRAGMA user_version").fetchone()[0]
    if found not in (0, 1, FORMAT):
        raise EngineError(f"{path} has format {found}; this version of Anabranch reads {FORMAT}")
    if found == 1:
        opened.execute("ALTER TABLE results ADD COLUMN whole INTEGER")
    opened.executescript(_TABLES)
    opened.execute(f"PRAGMA user_version = {FORMAT}")
    return opened
