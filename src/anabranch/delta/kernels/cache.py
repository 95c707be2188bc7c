"""Disk cache of kernels: they are compiled at the first call, and loaded from disk afterwards.

numba checks whether a kernel's own file has changed, but not the files of the functions that it calls. So compiled
kernels are kept in a folder named by a digest of all kernels' sources: a change in any of them starts a new folder.
Then the folders of other sources that were not used for a month are removed; the new folder's own time stamp is the
present time.

Invariant: every kernel loaded from the disk was compiled from the present sources. Where no folder can be written,
numba decides where to keep the compiled code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
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
    """Return the folder of compiled kernels: beside their sources, or in NUMBA_CACHE_DIR."""
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
    """Update the folder's time stamp; skipped without permission."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def _remove_unused(base: str, now: float) -> None:
    """Remove old folders; those that another process removes at the same time, or that may not be removed, are
    skipped."""
    for entry in list(os.scandir(base)):
        if _NAMED.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                if now - entry.stat().st_mtime > _KEPT_DAYS * _DAY:
                    shutil.rmtree(entry.path, ignore_errors=True)


_FOLDER = _folder()
_IS_LEAN = numba.__version__.startswith(
    "0.68."
)  # `lean_cache` was made for this one; others load kernels as numba does


def cached(function: Kernel, **options: Any) -> Kernel:
    """Compile a function as a kernel with numba's options."""
    before = config.CACHE_DIR
    try:
        if _FOLDER:
            config.CACHE_DIR = _FOLDER
        dispatcher: Any = njit(cache=not _IS_LEAN, **options)(function)
        if _IS_LEAN and not config.DISABLE_JIT:
            from anabranch.delta.kernels.lean_cache import load_lean

            load_lean(dispatcher, function)
        return cast(Kernel, dispatcher)
    finally:
        config.CACHE_DIR = before
