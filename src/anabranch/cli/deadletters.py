"""The file of malformed records that `convert` sets aside.

Invariant: the first record creates the file, so a conversion without malformed records leaves none.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from anabranch.errors import MalformedEventError
from anabranch.formats.deadletter import DeadLetters


class SetAside:
    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._letters: DeadLetters | None = None
        self.malformed = 0

    @property
    def paths(self) -> list[str]:
        return [] if self._file is None else [self._path]

    def add_malformed(self, error: MalformedEventError) -> None:
        self.malformed += 1
        if self._letters is None:
            self._file = Path(self._path).open("wb")  # noqa: SIM115  closed by close()
            self._letters = DeadLetters(self._file)
        self._letters.write(error)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
