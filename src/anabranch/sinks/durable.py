"""Durable writing: whole blocks, replaced files, and refusals instead of tracebacks.

Invariant: a file that `replacing` makes is seen whole or not at all, whenever the machine stops; an unfinished file is
a hidden file that `sweep` removes.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from anabranch.errors import EngineError

_BLOCK = 1 << 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
MAKE_ROOM = (
    "make room where the output, the dead letters and the checkpoint go; with --checkpoint the same command goes on"
)


def write_all(file_number: int, chunks: Iterable[bytes]) -> None:
    """Write every byte, in blocks; waits where the other side is slow."""
    for block in _blocks(chunks):
        rest = memoryview(block)
        while rest:
            try:
                rest = rest[os.write(file_number, rest) :]
            except BlockingIOError:
                # A terminal or pipe that another process has set to non-blocking.
                select.select([], [file_number], [])


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Answers are often small and many: one system call for each would cost more than the bytes."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= _BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces its target, durably, when the block ends well; else nothing changes."""
    hidden = path.with_name(f".{path.name}.tmp")
    try:
        with open(hidden, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make new and changed names of a folder last."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sweep(folder: Path, names: str = "") -> None:
    """Remove the remains of `replacing` files, whose names begin so, after a crash."""
    for left in folder.glob(f".{names}*.tmp"):
        left.unlink(missing_ok=True)


@contextmanager
def refusing(doing: str) -> Iterator[None]:
    """Turn errors of the operating system into refusals that name the operation.

    A reader that has closed its end of a pipe is no failure: the caller must be able to tell it apart.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        hint = f"\nhint: {MAKE_ROOM}" if error.errno in NO_ROOM else ""
        raise EngineError(f"cannot {doing}: {reason[:1].lower()}{reason[1:]}{hint}") from error
