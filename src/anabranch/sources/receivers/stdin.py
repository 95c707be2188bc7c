"""Standard input: lines as they come, plain or gzip.

All available lines are taken together, up to a bound, so that a typed line is seen at once and a pipe that is always
full costs few syncs.

Invariant: the spool is finished only when the input was read to its end.
"""

from __future__ import annotations

import io
import select
from typing import BinaryIO, cast

from anabranch.sources.receivers.base import POLL_STOP, Receiver
from anabranch.sources.receivers.framing import LineBuffer, Unpacker

_READ = 1 << 16
_GROUP = 4 << 20


class StdinReceiver(Receiver):
    """Reads a file of bytes, such as `sys.stdin.buffer`, to its end. The file stays open."""

    finite = True

    def __init__(self, file: BinaryIO) -> None:
        super().__init__("stdin")
        # The raw file gives what is there; the buffered one would wait for a full block.
        self._file = cast(BinaryIO, getattr(file, "raw", file))
        self._number = _selectable(self._file)

    def _receive(self) -> None:
        self._accepted("reading stdin")
        unpacker, lines = Unpacker(self.name), LineBuffer(self.name)
        group: list[bytes] = []
        size = 0
        while not self._stopping.is_set():
            if group and (size >= _GROUP or not self._ready(0)):
                self._take(group)
                group, size = [], 0
            if not self._ready(POLL_STOP):
                continue
            data = self._file.read(_READ)
            if data is None:  # a file that does not block had nothing after all
                self._pause(POLL_STOP)
                continue
            if not data:
                last = lines.feed(unpacker.end())
                self._take([*group, *last, *lines.rest()])
                self.spool.finish()
                return
            for part in unpacker.feed(data):
                group += lines.feed(part)
                size += len(part)
                if size >= _GROUP:
                    self._take(group)
                    group, size = [], 0
        self._take(group)

    def _ready(self, wait: float) -> bool:
        """Whether reading gives something within a time. A file that cannot say so is read part by part."""
        if self._number is None:
            return wait > 0
        return bool(select.select([self._number], [], [], wait)[0])


def _selectable(file: BinaryIO) -> int | None:
    try:
        number = file.fileno()
        select.select([number], [], [], 0)
    except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
        return None
    return number
