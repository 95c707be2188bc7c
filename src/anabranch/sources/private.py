"""Private files and folders: other users of the machine can read neither streams nor their addresses.

Invariant: a file made here can be read by its user alone from the first moment on; the same holds for the content of an
existing folder, unless it belongs to another user or was made for other things.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
_OTHERS = 0o077


def private_folder(path: Path, *marks: str) -> None:
    """Make a folder for one user, and its missing parents.

    An existing folder is closed to others with its content, if it is empty or one of the `marks` in it says that it is
    ours.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(FOLDER, exist_ok=True)
    names = os.listdir(path)
    if not names or any(mark in names for mark in marks):
        _close(path)
        for place, folders, files in os.walk(path):
            for name in (*folders, *files):
                _close(Path(place, name))


def private_file(path: Path) -> None:
    """Make a file for one user; an existing file is closed to others.

    SQLite's files beside a database get its rights.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))
    _close(path)


@contextmanager
def private_umask() -> Iterator[None]:
    """Make all files private that are created inside, also by processes that are started there."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def _close(path: Path) -> None:
    with suppress(PermissionError, FileNotFoundError):  # another user's, or gone
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
