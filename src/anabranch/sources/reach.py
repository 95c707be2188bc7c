"""The reach of addresses: everything that the user of this machine may read, or what a server lets its clients name.

One function makes the path of a file from its name, decoded and without links, and the same path is checked and opened:
a file is opened from its root on, folder by folder, so that a link that replaces it meanwhile leads nowhere.

Invariant: with roots, no byte of a file outside of them is read, no such file's name is shown, and no network is used.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

from anabranch.errors import StreamError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC  # a pipe in its place does not block


class OutOfReach(StreamError):
    """Something was named that the server's clients may not read."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The folders, without links, whose files may be read; None means any, and the network. `variables` of the
    environment may be named as secrets; None means any."""

    roots: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None

    @property
    def is_bounded(self) -> bool:
        return self.roots is not None

    def path(self, name: str, folder: str | Path = ".") -> Path:
        """The file that a name leads to: a path from `folder` on, or `file:` with its percent signs decoded."""
        return self.within(Path(folder) / file_path(name), name)

    def within(self, path: str | Path, shown: str | None = None) -> Path:
        """A path that may be read; with roots it is the real one, without links. Refuses one that leads outside."""
        if self.roots is None:
            return Path(path)
        real = os.path.realpath(path)
        if self._root_of(real) is None:
            raise OutOfReach(f"{shown or path} lies outside of the folders that this server may read")
        return Path(real)

    def contains(self, path: str | Path) -> bool:
        return self.roots is None or self._root_of(os.path.realpath(path)) is not None

    def open(self, path: str | Path, shown: str | None = None) -> BinaryIO:
        """The file at a path, for reading."""
        if self.roots is None:
            return Path(path).open("rb")
        real = str(self.within(path, shown))
        root = self._root_of(real)
        assert root is not None, "within one of them"
        return cast(BinaryIO, os.fdopen(_opened(root, real, shown or str(path)), "rb"))

    def refuse_network(self, shown: str) -> None:
        if self.roots is not None:
            raise OutOfReach(f"{shown} is elsewhere; this server reads its own folders only")

    def _root_of(self, real: str) -> str | None:
        return next((root for root in self.roots or () if Path(real).is_relative_to(root)), None)


ANYWHERE = Reach()


def file_path(name: str) -> str:
    """The path that a name says: `file:///a%20b.ttl` is `/a b.ttl`, all else is a path already."""
    if not name.lower().startswith("file:"):
        return name
    parts = urlsplit(name)
    if parts.netloc not in ("", "localhost"):
        raise StreamError(f"{name} names the computer `{parts.netloc}`\nhint: three slashes: file:///path")
    return unquote(parts.path)


def _opened(root: str, real: str, shown: str) -> int:
    """The file, opened from its root on without following any link."""
    *folders, last = Path(real).relative_to(root).parts or (".",)
    found = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=found)
            os.close(found)
            found = inner
        file = os.open(last, _FILE, dir_fd=found)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OutOfReach(f"{shown} has become a link while it was opened") from None
        raise
    finally:
        os.close(found)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise StreamError(f"{shown} is no file")
    return file
