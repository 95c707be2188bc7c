"""The memory of sinks between runs: one JSON file a key, or memory where a run has no checkpoint.

Invariant: `get` gives the value of the last `put` that returned, or of one that was cut off, never a mixture.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anabranch.errors import EngineError
from anabranch.sinks.durable import refusing, replacing, sweep, sync_folder
from anabranch.sources.private import FILE, private_folder

_LONGEST_NAME = 180  # of a file system's 255 bytes; the hidden name is longer


class FileLedger:
    """A ledger in a folder of its own, which is made when it is not there."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._known: dict[str, str] = {}
        with refusing(f"use {self._directory} to remember what was written"):
            if not self._directory.is_dir():
                private_folder(self._directory)
                sync_folder(self._directory.parent)
            sweep(self._directory)

    def get(self, key: str) -> Any:
        """The value, or None where there is none."""
        if key not in self._known:
            path = self._path(key)
            try:
                with refusing(f"read {path}"):
                    entry = json.loads(path.read_bytes()) if path.exists() else {"key": key, "value": None}
                if entry["key"] != key:
                    raise ValueError(entry["key"])
            except (ValueError, KeyError, TypeError):
                raise EngineError(
                    f"{path} is damaged: it does not say what was written for `{key}`\n"
                    "hint: take the checkpoint from a backup, or begin with a new checkpoint and a new output"
                ) from None
            self._known[key] = json.dumps(entry["value"])
        return json.loads(self._known[key])

    def put(self, key: str, value: object) -> None:
        """Remember a value of plain JSON; it is on disk when this returns."""
        text = json.dumps(value)
        path = self._path(key)
        # Cut off, the file may hold either value: only the file can say which.
        self._known.pop(key, None)
        with refusing(f"write {path}"), replacing(path, FILE) as file:
            file.write(json.dumps({"key": key, "value": value}).encode())
        self._known[key] = text

    def _path(self, key: str) -> Path:
        name = quote(key, safe=" ,@+=", errors="surrogateescape")  # a path may hold bytes that are no text
        if len(name) > _LONGEST_NAME:
            name = f"{name[:80]}~{sha256(name.encode()).hexdigest()}"
        return self._directory / f"{name}.json"


class MemoryLedger:
    """A ledger that lasts as long as the process."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, key: str) -> Any:
        return json.loads(self._values.get(key, "null"))

    def put(self, key: str, value: object) -> None:
        self._values[key] = json.dumps(value)
