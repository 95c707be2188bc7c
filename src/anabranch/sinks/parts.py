"""A folder that grows by one file a batch, such as `part-00000012.ndjson`.

Invariant: a batch that comes again replaces its own file and no other; no name that a reader sees is half written; the
order of names is the order of batches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from anabranch.errors import EngineError, InternalError
from anabranch.sinks.base import Ledger
from anabranch.sinks.durable import refusing, replacing, sweep, sync_folder

_NUMBER = re.compile(r"part-(\d{8,})\.")


class PartFiles:
    """The files of one run in a folder; `suffix` is how their names end, such as `.csv.gz`."""

    def __init__(self, path: str | Path, suffix: str, *, append: bool = False, overwrite: bool = False) -> None:
        self.path = Path(path)
        self._suffix = suffix
        self._append = append
        self._overwrite = overwrite
        self._first: int | None = None

    def open(self, ledger: Ledger) -> None:
        """Go on in a folder that the ledger knows, or begin in an empty one."""
        key = f"folder {os.path.abspath(self.path)}"
        with refusing(f"write to the folder {self.path}"):
            noted: Any = ledger.get(key)
            if noted is None:
                first = self._begin()
                ledger.put(key, {"first": first})
            elif not self.path.is_dir():
                raise EngineError(
                    f"the folder {self.path} was removed since the last run\n"
                    "hint: put it back, or begin with a new checkpoint to compute the whole output again"
                )
            else:
                first = noted["first"]
            for folder in self._folders():
                sweep(folder, "part-")
        self._first = first

    def _begin(self) -> int:
        """Return the number of the first part; the folder exists afterwards."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            sync_folder(self.path.parent)
            return 0
        found = [file for folder in self._folders() for file in sorted(folder.iterdir()) if _visible(file)]
        if not found:
            return 0
        ours = [file for file in found if _NUMBER.match(file.name)]
        if self._append:
            return 1 + max((_number(file) for file in ours), default=-1)
        if self._overwrite:
            self._clear(found, ours)
            return 0
        raise EngineError(
            f"the folder {self.path} holds files already, such as {found[0].relative_to(self.path)}\n"
            "hint: name a new folder, or add ?append=1 to keep them or ?overwrite=1 to replace them"
        )

    def _clear(self, found: list[Path], ours: list[Path]) -> None:
        foreign = [file for file in found if file not in set(ours)]
        if foreign:
            raise EngineError(
                f"the folder {self.path} is not overwritten: {foreign[0].relative_to(self.path)} is not the output of "
                "a query\nhint: name a new folder, or move the file away"
            )
        for file in ours:
            file.unlink()
        for folder in self._folders():
            if folder != self.path:
                with suppress(OSError):  # another program's hidden files keep it
                    folder.rmdir()

    def _folders(self) -> list[Path]:
        return [self.path, *sorted(one for one in self.path.glob("query=*") if one.is_dir())]

    @contextmanager
    def part(self, batch: int, within: str = "") -> Iterator[BinaryIO]:
        """Open the file of a batch, perhaps in a subfolder; it appears whole when the block has ended."""
        path = self._path(batch, within)
        with refusing(f"write {path}"):
            if not path.parent.is_dir():
                if not self.path.is_dir():
                    raise EngineError(f"the folder {self.path} was removed while the run wrote to it")
                path.parent.mkdir()
                sync_folder(self.path)
            with replacing(path) as file:
                yield file

    def _path(self, batch: int, within: str) -> Path:
        if self._first is None:
            raise InternalError("a sink was written to before it was opened")
        return self.path / within / f"part-{self._first + batch:08d}{self._suffix}"


def _visible(path: Path) -> bool:
    # Readers of such folders leave out the same names; `_SUCCESS` and `_metadata` are no data.
    return not path.name.startswith((".", "_")) and not (path.is_dir() and path.name.startswith("query="))


def _number(path: Path) -> int:
    match = _NUMBER.match(path.name)
    assert match is not None
    return int(match[1])
