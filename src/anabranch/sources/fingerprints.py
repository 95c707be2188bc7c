"""Fingerprints of files by their first and last bytes: they recognise a renamed file, and tell a file that was
rewritten under the same name from one that has grown.

Invariant: a file that only grew keeps its fingerprint for the same number of bytes.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import BinaryIO

from anabranch.errors import StreamError
from anabranch.sources.filesystems import FileEntry, FoundPath, opened
from anabranch.sources.lines import exactly

FEWEST = 64
"""So many bytes are the beginning of a file: one that was cut off behind them still begins alike."""

_ENDS = 1024
_BEGINNING = 8  # characters of a fingerprint


def fingerprint(content: BinaryIO, size: int) -> str:
    """The fingerprint of a file's first `size` bytes."""
    ends = exactly(content, 0, min(size, _ENDS)) + exactly(content, max(0, size - _ENDS), min(size, _ENDS))
    return _digest(ends[:FEWEST], _BEGINNING) + _digest(ends, 12)


def begin_alike(one: str, other: str) -> bool:
    """Whether two fingerprints of at least `FEWEST` bytes are those of files with the same beginning."""
    return one[:_BEGINNING] == other[:_BEGINNING]


def fingerprint_at(place: FoundPath, entry: FileEntry, size: int) -> str | None:
    """Return the fingerprint of the first bytes of a listed file; None when the file is shorter."""
    return None if entry.size < size else _remembered(place, entry, size)


@lru_cache(maxsize=4096)
def _remembered(place: FoundPath, entry: FileEntry, size: int) -> str | None:
    # A file that changes again and again is read once for each change: its entry says when it changed.
    try:
        path = place.path(entry.name)
        with opened(place.base, path, path, place.reach) as content:
            return fingerprint(content, size)
    except StreamError:
        return None


def _digest(data: bytes, characters: int) -> str:
    return blake2b(data, digest_size=characters // 2).hexdigest()
