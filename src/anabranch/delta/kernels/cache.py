"""Kernels that Python calls: compiled when first called, and kept on disk from then on.

numba asks whether a kernel's own file has changed, and not whether those of the kernels that it calls have. So all of
them are kept in a folder named by what all kernels' sources say: a change in any of them begins a new one. When one
begins, those of other sources that nobody used for a month are removed; its own age is what says how late it is now.

Invariant: what is loaded from the disk was compiled from the sources as they are. Where no folder can be written, numba
decides where to keep it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import config as _numba_config
from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

config: Any = _numba_config
_HERE = os.path.dirname(__file__)
_STEM = "kernels-"
_NAMED = re.compile(_STEM + "[0-9a-f]{12}")
_DAY = 86_400
_KEPT_DAYS = 30


def _folder() -> str:
    """Where compiled kernels lie: beside their sources, or where NUMBA_CACHE_DIR says."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(_HERE)):
        if name.endswith(".py"):
            with open(os.path.join(_HERE, name), "rb") as file:
                digest.update(file.read())
    digest.update(str(config.BOUNDSCHECK).encode())  # an option that changes the code, and not numba's own key
    base = config.CACHE_DIR or os.path.join(_HERE, "__pycache__")
    folder = os.path.join(base, f"{_STEM}{digest.hexdigest()[:12]}")
    try:
        if os.path.isdir(folder):
            _say_in_use(folder)
        else:
            os.makedirs(folder, exist_ok=True)
            _remove_unused(base, os.stat(folder).st_mtime)
    except OSError:
        return ""
    return folder if os.access(folder, os.W_OK) else ""


def _say_in_use(folder: str) -> None:
    """Where the folder is somebody else's, nothing is said."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def _remove_unused(base: str, now: float) -> None:
    """Those that another process removes at the same time, or that may not be removed, are left to it."""
    for entry in list(os.scandir(base)):
        if _NAMED.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                if now - entry.stat().st_mtime > _KEPT_DAYS * _DAY:
                    shutil.rmtree(entry.path, ignore_errors=True)


_FOLDER = _folder()


def cached(function: Kernel, **options: Any) -> Kernel:
    """A function as a kernel with numba's options."""
    before = config.CACHE_DIR
    try:
        if _FOLDER:
            config.CACHE_DIR = _FOLDER
        return cast(Kernel, njit(cache=True, **options)(function))
    finally:
        config.CACHE_DIR = before
