"""Files and folders that are one user's own: what streams hold and how they are reached is nobody else's business.

Invariant: what is made here can be read by its user alone from the first moment on; of a folder that was there before,
so can all that is in it, unless it is somebody else's or was made for other things.
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
    """Make a folder for one user, and those above it that are missing. One that is there is closed to others with all
    that it holds, if it is empty or one of the `marks` in it says that it is ours."""
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
    """Make a file for one user, unless it is there; then it is closed to others. What SQLite puts beside a database has
    the rights of the database."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))
    _close(path)


@contextmanager
def private_umask() -> Iterator[None]:
    """Whatever is made inside, also by processes that are started there, is for one user."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def _close(path: Path) -> None:
    with suppress(PermissionError, FileNotFoundError):  # somebody else's, or gone
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
