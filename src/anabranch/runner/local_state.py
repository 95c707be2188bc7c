"""The state of a run without Spark: a cell's state and the offsets of its batches, in one SQLite file.

A batch is two transactions. The first notes how far the batch goes, before anything of it is read. The second holds the
cell's new state and the commit of the batch; the sinks are written before it ends. After a crash in between, the
planned offset and the previous state are there, so the same batch is run again under the same number.

Invariant: the state is that of the committed batch, whole; a planned batch is never planned differently.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import EngineError
from anabranch.sources.base import Offset
from anabranch.sources.private import private_file

_TABLES = """
    CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, until TEXT NOT NULL, committed INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS head (one INTEGER PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS chunks (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS parts (name TEXT PRIMARY KEY, data BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class RunPosition:
    """The position of a run: its next batch, the answered offset, and the next offset when it is planned."""

    number: int = 0
    answered: Offset | None = None
    planned: Offset | None = None


class LocalState:
    """The state file, used only by the thread that opened it.

    Without `durable` no run goes on from it: a machine crash may lose all of it.
    """

    def __init__(self, path: Path, durable: bool = True) -> None:
        self._path = path
        self.durable = durable
        with self._failing():
            private_file(path)
            self._open = sqlite3.connect(path, isolation_level=None)
            self._open.execute("PRAGMA journal_mode = WAL")
            self._open.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
            self._open.executescript(_TABLES)

    def close(self) -> None:
        self._open.close()

    # --- batches ------------------------------------------------------------------------------------------------------

    def standing(self) -> RunPosition:
        with self._failing():
            return _standing(self._open)

    def plan(self, number: int, until: Offset) -> None:
        """Store how far a batch goes: it is on disk when this returns."""
        self._do("INSERT INTO batches VALUES (?, ?, 0)", number, json.dumps(until))

    @contextmanager
    def batch(self, number: int) -> Iterator[None]:
        """Run a block as one transaction with the commit of the batch: if it fails, nothing is stored."""
        self._do("BEGIN IMMEDIATE")
        try:
            yield
            self._do("UPDATE batches SET committed = 1 WHERE number = ?", number)
            self._do("DELETE FROM batches WHERE number < ?", number)
            self._do("COMMIT")
        except BaseException:
            if self._open.in_transaction:
                self._open.execute("ROLLBACK")
            raise

    @property
    def size(self) -> int:
        """Bytes of the file."""
        pages, page, free = (self._get(f"PRAGMA {name}")[0] for name in ("page_count", "page_size", "freelist_count"))
        return int((pages - free) * page)

    # --- the cell's state ---------------------------------------------------------------------------------------------

    def head(self) -> bytes | None:
        return self._blob("SELECT data FROM head")

    def put_head(self, data: bytes) -> None:
        self._do("REPLACE INTO head VALUES (0, ?)", data)

    def chunk(self, number: int) -> bytes | None:
        return self._blob("SELECT data FROM chunks WHERE number = ?", number)

    def chunks(self) -> Iterable[tuple[int, bytes]]:
        with self._failing():
            return self._open.execute("SELECT number, data FROM chunks").fetchall()

    def put_chunk(self, number: int, data: bytes) -> None:
        self._do("REPLACE INTO chunks VALUES (?, ?)", number, data)

    def remove_chunk(self, number: int) -> None:
        self._do("DELETE FROM chunks WHERE number = ?", number)

    def parts(self) -> Iterable[tuple[str, bytes]]:
        with self._failing():
            return self._open.execute("SELECT name, data FROM parts").fetchall()

    def put_part(self, name: str, data: bytes) -> None:
        self._do("REPLACE INTO parts VALUES (?, ?)", name, data)

    def remove_part(self, name: str) -> None:
        self._do("DELETE FROM parts WHERE name = ?", name)

    # --- SQLite -------------------------------------------------------------------------------------------------------

    def _do(self, statement: str, *values: Any) -> None:
        with self._failing():
            self._open.execute(statement, values)

    def _get(self, question: str, *values: Any) -> Any:
        with self._failing():
            return self._open.execute(question, values).fetchone()

    def _blob(self, question: str, *values: Any) -> bytes | None:
        found = self._get(question, *values)
        return None if found is None else bytes(found[0])

    @contextmanager
    def _failing(self) -> Iterator[None]:
        with refusing(self._path):
            yield


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(
            f"cannot keep the state of the run in {path}: {error}\n"
            "hint: the folder must be writable and have room for what the windows hold"
        ) from error


def local_offsets(path: Path) -> tuple[Offset | None, Offset | None]:
    """Return the committed and the last planned offset of a stopped run; equal when all batches are committed."""
    with refusing(path):
        opened = sqlite3.connect(path)
        try:
            opened.executescript(_TABLES)  # none yet when the run was killed as it began
            standing = _standing(opened)
        finally:
            opened.close()
    return standing.answered, standing.planned or standing.answered


def _standing(opened: sqlite3.Connection) -> RunPosition:
    found = opened.execute("SELECT number, until, committed FROM batches ORDER BY number").fetchall()
    answered = [(number, json.loads(until)) for number, until, committed in found if committed]
    planned = [json.loads(until) for _, until, committed in found if not committed]
    number, until = answered[-1] if answered else (-1, None)
    return RunPosition(number + 1, until, planned[-1] if planned else None)
