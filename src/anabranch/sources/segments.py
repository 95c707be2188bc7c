"""The layout of a spool on disk: its segments, its end, and the mark up to which readers may go.

Invariant: the mark is replaced as a whole; a reader that reads it while it is being written reads it again.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 1 << 20
_SUFFIX = ".ndjson"
_PLACE = struct.Struct(">QQQ")  # segment, at, and how many lines of the segment these bytes are
_CHECKSUM = struct.Struct(">I")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two records."""

    segment: int = 0
    at: int = 0


def segment_path(directory: Path, segment: int) -> Path:
    return directory / f"{segment:08}{_SUFFIX}"


def segments(directory: Path) -> list[int]:
    """The numbers of the segments on disk, ascending."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def last_position(directory: Path) -> Position:
    """The end of the last segment."""
    found = segments(directory)
    return Position(found[-1], segment_path(directory, found[-1]).stat().st_size) if found else Position()


def is_finished(directory: Path) -> bool:
    """Return whether the writer has declared the end."""
    return (directory / "end").exists()


def mark_path(directory: Path) -> Path:
    return directory / "durable"


def mark_bytes(position: Position, lines: int) -> bytes:
    place = _PLACE.pack(position.segment, position.at, lines)
    return place + _CHECKSUM.pack(zlib.crc32(place))


def durable_position(directory: Path) -> Position:
    """Return the position up to which a reader may go."""
    if is_finished(directory):  # all was synced before, and the mark may be older than a crash of the machine
        return last_position(directory)
    return promise(directory)[0]


def promise(directory: Path) -> tuple[Position, int]:
    """Return how far records were acknowledged, by the mark, and how many lines of its segment that are."""
    for _ in range(3):  # read while it was being written its sum is wrong; the next reading finds it whole
        with suppress(FileNotFoundError, struct.error):
            data = mark_path(directory).read_bytes()
            place, checksum = data[: _PLACE.size], data[_PLACE.size :]
            if _CHECKSUM.unpack(checksum)[0] == zlib.crc32(place):
                segment, at, lines = _PLACE.unpack(place)
                return Position(segment, at), lines
    return Position(), 0


def count_lines(path: Path) -> int:
    """How many whole lines a segment has."""
    lines = 0
    with suppress(FileNotFoundError), path.open("rb") as file:
        while block := file.read(_BLOCK):
            lines += block.count(b"\n")
    return lines


def whole_lines(file: io.BufferedRandom, size: int) -> int:
    """How many of a file's first bytes are whole lines."""
    stop = size
    while stop > 0:
        start = max(0, stop - _BLOCK)
        file.seek(start)
        end = file.read(stop - start).rfind(b"\n")
        if end >= 0:
            return start + end + 1
        stop = start
    return 0
