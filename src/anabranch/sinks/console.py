"""Answers as lines on stdout.

A batch that was printed and not committed comes again. Into a regular file (`>> out.ndjson`) it is printed once: before
printing, the ledger notes which file stdout is, its length, and the length that it will have; the same batch into the
same file first cuts it back, unless something else was written behind it. Lines in a pipe or on a terminal cannot be
taken back: a batch that the ledger notes as done is not printed again, one that was only begun is, so that its lines
come at least once.

Invariant: no line is missing; into a file that nothing else writes to, none stands twice.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from anabranch.errors import InternalError
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sinks.durable import refusing, write_all
from anabranch.sinks.forms import LineForm, LineTexts, needed

_HEADER = "console header"
_BATCH = "console batch"


class _Note(NamedTuple):
    """One print: its batch, whether it came to its end, and the file it went to with its lengths before and after."""

    batch: int
    done: bool
    device: int | None = None
    inode: int | None = None
    start: int = 0
    end: int = 0


class Console(Sink):
    """Lines on stdout, or on a file descriptor, each batch at once. `header` is the first line of CSV."""

    def __init__(self, form: LineForm = "json", header: bytes = b"", descriptor: int | None = None) -> None:
        self.forms = (needed(form),)
        self._texts = LineTexts(form)
        self._header = header
        self._given = descriptor
        self._ledger: Ledger | None = None

    @property
    def _descriptor(self) -> int | None:
        """Return the descriptor of the output; None where stdout was replaced by an object without a file."""
        if self._given is not None:
            return self._given
        try:
            return sys.stdout.fileno()
        except (OSError, ValueError):
            return None

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger
        if self._given is None:
            sys.stdout.flush()  # text in Python's buffer comes before the answers
        if self._header and not self._has_header():
            self._print(_HEADER, 0, [self._header])

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        chunks = self._texts.of(answers)
        if not chunks:
            return
        last = self._last(_BATCH)
        if last is None or last.batch != batch or not last.done:
            self._print(_BATCH, batch, chunks)

    def _has_header(self) -> bool:
        """Return whether stdout is the file that an earlier run began with its header."""
        if self._descriptor is None:
            return False
        here = os.fstat(self._descriptor)
        last = self._last(_HEADER)
        return last is not None and last.done and _same_file(last, here) and here.st_size >= last.end

    def _print(self, key: str, batch: int, chunks: Sequence[bytes]) -> None:
        descriptor, note = self._descriptor, _Note(batch, False)
        with refusing("print the answers"):
            if descriptor is None:
                self._put(key, note)
                sys.stdout.buffer.writelines(chunks)
                sys.stdout.flush()
            else:
                here = os.fstat(descriptor)
                if stat.S_ISREG(here.st_mode):
                    start = self._start(descriptor, here, key, batch)
                    note = _Note(batch, False, here.st_dev, here.st_ino, start, start + sum(map(len, chunks)))
                self._put(key, note)
                write_all(descriptor, chunks)
                if note.inode is not None:
                    os.fsync(descriptor)
        self._put(key, note._replace(done=True))

    def _start(self, descriptor: int, here: os.stat_result, key: str, batch: int) -> int:
        """Return where the lines begin in a regular file: its end, after removing a cut-off print of the same batch."""
        last = self._last(key)
        torn = last is not None and last.batch == batch and not last.done
        if last is not None and torn and _same_file(last, here) and last.start <= here.st_size <= last.end:
            os.ftruncate(descriptor, last.start)
        return os.lseek(descriptor, 0, os.SEEK_END)

    def _last(self, key: str) -> _Note | None:
        noted: Any = self._opened().get(key)
        return None if noted is None else _Note(**noted)

    def _put(self, key: str, note: _Note) -> None:
        self._opened().put(key, note._asdict())

    def _opened(self) -> Ledger:
        if self._ledger is None:
            raise InternalError("a sink was written to before it was opened")
        return self._ledger


def _same_file(note: _Note, here: os.stat_result) -> bool:
    return stat.S_ISREG(here.st_mode) and (note.device, note.inode) == (here.st_dev, here.st_ino)
