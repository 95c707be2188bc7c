"""The file of records that a command sets aside.

Invariant: the first record creates the file, so a command that sets nothing aside leaves none.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from anabranch.errors import MalformedEventError
from anabranch.formats.deadletter import letter


class DeadLetterFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0
        self._file: BinaryIO | None = None

    def add(self, error: MalformedEventError) -> None:
        self.count += 1
        if self._file is None:
            self._file = Path(self.path).open("wb")  # noqa: SIM115  closed by close()
        self._file.write(letter(error))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
