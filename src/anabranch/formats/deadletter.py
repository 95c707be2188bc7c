"""Dead letters: records that could not be read, kept with their place and reason.

Invariant: a record that is not an event is counted and written here or raised; it is never dropped in silence.
"""

from __future__ import annotations

import json
from typing import BinaryIO

from anabranch.errors import MalformedEventError


class MalformedRecord(MalformedEventError):
    """A malformed event together with the text it came from."""

    def __init__(self, reason: str, line: int | None = None, raw: str = "") -> None:
        super().__init__(reason, line)
        self.raw = raw


class DeadLetters:
    """Writes malformed records as NDJSON: {"line", "reason", "raw"}. Without a file it only counts."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = file
        self.count = 0

    def write(self, error: MalformedEventError) -> None:
        self.count += 1
        if self._file is not None:
            raw = error.raw if isinstance(error, MalformedRecord) else ""
            record = {"line": error.line, "reason": error.reason, "raw": raw}
            self._file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
