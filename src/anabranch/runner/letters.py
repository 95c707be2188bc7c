"""Dead letters of a run on Spark: records set aside, in a file of their stream, each once.

Invariant: a file is made when the first record needs it; a batch that comes again leaves no record twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.formats.deadletter import file_for
from anabranch.runner.rows import CellRow
from anabranch.sinks.base import Ledger, RenderedAnswer
from anabranch.sinks.files import LinesFile


class LetterFiles:
    """`path` is one file for all streams; without it each stream has `NAME.dead.ndjson`."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._ledger: Ledger | None = None
        self._files: dict[str, LinesFile] = {}

    @property
    def paths(self) -> list[str]:
        return list(self._files)

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def write_rows(self, batch: int, rows: Sequence[CellRow]) -> None:
        by_path: dict[str, list[RenderedAnswer]] = {}
        for row in rows:
            path = self._path or file_for(row.query)
            by_path.setdefault(path, []).append(RenderedAnswer(row.query, 0, 0, row.rows, json=row.data))
        for path, letters in by_path.items():
            self._of(path).write(batch, letters)

    def _of(self, path: str) -> LinesFile:
        file = self._files.get(path)
        if file is None:
            assert self._ledger is not None, "opened before it is written to"
            file = LinesFile(path, overwrite=True)
            file.open(self._ledger)
            self._files[path] = file
        return file

    def close(self) -> None:
        for file in self._files.values():
            file.close()
