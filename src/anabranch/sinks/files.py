"""Answers as lines of text: one growing file, or a folder with one file a batch.

The growing file finds its position by the ledger. Before a batch is appended, the ledger notes (batch, start, end): the
file's length now and the length that it will have. The same batch again cuts the file back to `start`; a later batch
means that the one before was written to its `end`, so with any other length the file was changed from outside and is
refused. Opening is batch -1, whose bytes are the CSV header.

Invariant: after `write` of a batch the file is what it was after the batch before, plus the batch's lines, on disk.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from anabranch.errors import EngineError, InternalError
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sinks.durable import refusing, sync_folder, write_all
from anabranch.sinks.forms import LineForm, LineTexts, needed, suffix_of
from anabranch.sinks.parts import PartFiles

_OPENING = -1
_AGAIN = "begin with a new checkpoint to compute the whole output again"


class _Note(NamedTuple):
    """The ledger's note about the file: the last batch, and the file's length before and after it."""

    batch: int
    start: int
    end: int


class LinesFile(Sink):
    """One growing file, gzip when its name ends with .gz. `header` is the first line of a CSV file."""

    def __init__(
        self,
        path: str | Path,
        form: LineForm = "json",
        header: bytes = b"",
        *,
        append: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self.forms = (needed(form),)
        self._texts = LineTexts(form)
        self._header = header
        self._append = append
        self._overwrite = overwrite
        self._zipped = self.path.name.endswith(".gz")
        self._key = f"file {os.path.abspath(self.path)}"
        self._ledger: Ledger | None = None
        self._file = -1

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger
        try:
            with refusing(f"write {self.path}"):
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._refuse_unwritable()
        last = self._last()
        size = self.path.stat().st_size if self.path.exists() else None
        if last is not None and last.batch == _OPENING and (size or 0) > last.end:
            last = None  # the run before wrote no answer: what stands there is not its output
        if last is not None and last.batch != _OPENING:
            if size is None:
                raise EngineError(f"{self.path} was removed since the last run\nhint: put it back, or {_AGAIN}")
            self._refuse_shorter(size, last.start)
            self._refuse_other_header()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        sync_folder(self.path.parent)
        if last is None:
            self._begin(size or 0)
        elif last.batch == _OPENING:
            # Torn or removed before the first batch: what was there before it is all that can be missed.
            self._refuse_shorter(size or 0, last.start)
            self._put(_OPENING, last.start, [] if last.start else [self._header])

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        chunks = self._texts.of(answers)
        if not chunks:
            return
        if self._file < 0:
            raise InternalError("a sink was written to before it was opened")
        with refusing(f"write {self.path}"):
            self._put(batch, self._start(batch), chunks)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    # --- where a batch begins -----------------------------------------------------------------------------------------

    def _begin(self, size: int) -> None:
        """The first run: the file is empty, or the user has said what becomes of its content."""
        if size and self._overwrite:
            size = 0
        elif size and self._append:
            self._refuse_other_header()
        elif size:
            raise EngineError(
                f"{self.path} exists already\n"
                "hint: name a new file, or add ?append=1 to go on behind its content or ?overwrite=1 to replace it"
            )
        self._put(_OPENING, size, [] if size else [self._header])

    def _start(self, batch: int) -> int:
        """Return the file's length before the batch, without the remains of a write that was cut off."""
        here = os.fstat(self._file)
        size = here.st_size
        if not self.path.exists() or not os.path.samestat(here, self.path.stat()):
            raise EngineError(f"{self.path} was removed or replaced while the run wrote to it\nhint: {_AGAIN}")
        last = self._last()
        if last is None:
            raise InternalError(f"the ledger has forgotten {self.path}")
        if batch < last.batch:
            raise EngineError(
                f"{self.path} already holds batch {last.batch}, and batch {batch} comes: the checkpoint is older than "
                f"its output\nhint: {_AGAIN}"
            )
        if batch == last.batch:
            self._refuse_shorter(size, last.start)
            return last.start
        self._refuse_shorter(size, last.end)
        if size > last.end:
            raise EngineError(
                f"something else has written to {self.path}: it has {size} bytes, and {last.end} were written here\n"
                "hint: give each run a file of its own"
            )
        return size

    def _refuse_shorter(self, size: int, needed: int) -> None:
        if size < needed:
            raise EngineError(
                f"{self.path} was shortened: it has {size} bytes, and {needed} were written\n"
                f"hint: put its content back, or {_AGAIN}"
            )

    def _refuse_unwritable(self) -> None:
        if not self.path.parent.is_dir():
            raise EngineError(
                f"cannot write {self.path}: there is no folder {self.path.parent}\nhint: mkdir -p {self.path.parent}"
            )
        if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
            raise EngineError(
                f"cannot write {self.path}: it is not a file that can be cut back after a crash\n"
                "hint: print to stdout where a pipe or a device is wanted"
            )

    def _refuse_other_header(self) -> None:
        if not self._header:
            return
        try:
            with gzip.open(self.path) if self._zipped else self.path.open("rb") as file:
                first = file.readline(len(self._header) + 2)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise EngineError(f"cannot append to {self.path}: it is not gzip\nhint: name a new file") from None
        if first.rstrip(b"\r\n") != self._header.rstrip(b"\r\n"):
            raise EngineError(
                f"cannot append to {self.path}: it has other columns than {self._header.decode().rstrip()}\n"
                "hint: name a new file"
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    def _put(self, batch: int, start: int, chunks: Sequence[bytes]) -> None:
        assert self._ledger is not None
        chunks = [chunk for chunk in chunks if chunk]
        if self._zipped and chunks:
            chunks = [gzip.compress(b"".join(chunks), compresslevel=6, mtime=0)]
        elif chunks and start and os.pread(self._file, 1, start - 1) != b"\n":
            chunks.insert(0, b"\n")  # appended to a file whose last line had no end
        self._ledger.put(self._key, _Note(batch, start, start + sum(map(len, chunks)))._asdict())
        os.ftruncate(self._file, start)
        os.lseek(self._file, start, os.SEEK_SET)
        write_all(self._file, chunks)
        os.fsync(self._file)

    def _last(self) -> _Note | None:
        assert self._ledger is not None
        noted: Any = self._ledger.get(self._key)
        return None if noted is None else _Note(**noted)


class LinesFolder(Sink):
    """A folder with one file a batch, each with the header of its own where there is one."""

    def __init__(
        self,
        path: str | Path,
        form: LineForm = "json",
        header: bytes = b"",
        *,
        append: bool = False,
        overwrite: bool = False,
        zipped: bool = False,
    ) -> None:
        self.forms = (needed(form),)
        self._texts = LineTexts(form)
        self._header = header
        self._zipped = zipped
        suffix = suffix_of(form) + (".gz" if zipped else "")
        self._parts = PartFiles(path, suffix, append=append, overwrite=overwrite)

    @property
    def path(self) -> Path:
        return self._parts.path

    def open(self, ledger: Ledger) -> None:
        self._parts.open(ledger)

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        chunks = self._texts.of(answers)
        if not chunks:
            return
        with self._parts.part(batch) as file:
            if self._zipped:
                file.write(gzip.compress(b"".join([self._header, *chunks]), compresslevel=6, mtime=0))
            else:
                file.writelines([self._header, *chunks])
