"""Records that were set aside during a run: malformed ones and late ones, each in a file of its stream.

Invariant: a file is made when the first record needs it, so a clean run leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from anabranch.errors import MalformedEventError
from anabranch.formats.deadletter import DeadLetters, ahead, file_for, late
from anabranch.model.event import Event


class SetAside:
    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._files: dict[str, BinaryIO] = {}
        self._letters: dict[str, DeadLetters] = {}
        self.malformed = 0
        self.late = 0
        self.ahead = 0

    @property
    def paths(self) -> list[str]:
        return list(self._files)

    def add_malformed(self, stream: str, error: MalformedEventError) -> None:
        self.malformed += 1
        self._of(stream).write(error)

    def add_late(self, stream: str, event: Event) -> None:
        self.late += 1
        self._of(stream).write(late(event))

    def add_ahead(self, stream: str, event: Event) -> None:
        self.ahead += 1
        self._of(stream).write(ahead(event))

    def _of(self, stream: str) -> DeadLetters:
        path = self._path or file_for(stream)
        if path not in self._letters:
            self._files[path] = Path(path).open("wb")  # noqa: SIM115  closed by close()
            self._letters[path] = DeadLetters(self._files[path])
        return self._letters[path]

    def close(self) -> None:
        for file in self._files.values():
            file.close()
