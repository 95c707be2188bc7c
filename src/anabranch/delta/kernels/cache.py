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
from functools import cache
from typing import Any, TypeVar, cast

from llvmlite.binding import add_symbol, parse_assembly  # type: ignore[import-untyped]
from numba import config as _numba_config
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.environment import Environment
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

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


def cached(function: Kernel, **options: Any) -> Kernel:
    """Compile a function as a kernel with numba's options."""
    before = config.CACHE_DIR
    try:
        if _FOLDER:
            config.CACHE_DIR = _FOLDER
        dispatcher: Any = njit(**options)(function)
        if not config.DISABLE_JIT:
            dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
            dispatcher._compilation_chain_init_hook = lambda: None  # kernels need no packages that extend numba
        return cast(Kernel, dispatcher)
    finally:
        config.CACHE_DIR = before


class _KernelCode(CompileResultCacheImpl):
    """A kernel as it lies on disk: the machine code, and as little else as a call needs.

    numba also keeps the code for compilers, which callers of the function could inline, and names the modules of all
    functions that were compiled into it, which it imports before it loads them. A kernel has no callers but Python, and
    its code reads no module. To parse the one and to import the other took longer than all else of a load.
    """

    def reduce(self, compiled: Any) -> Any:
        payload = super().reduce(compiled)  # type: ignore[no-untyped-call]
        (name, kind, (code, _)), description, environment, *rest, environments = payload
        stub = parse_assembly(f'define void @"{description.llvm_cpython_wrapper_name}"() {{ ret void }}')
        library = name, kind, (code, stub.as_bitcode())
        return library, description, environment, *rest, tuple(map(_without_module, environments))

    def rebuild(self, context: Any, payload: Any) -> Any:
        compiled = super().rebuild(context, payload)  # type: ignore[no-untyped-call]
        compiled.library._shared_module = None  # the stub: numba refuses to link what has no code for compilers
        return compiled


def _without_module(environment: Any) -> Any:
    """Return an environment of the same name and constants that belongs to this module."""
    made: Any = Environment(globals())
    made.consts[:] = environment.consts
    made.env_name = environment.env_name
    return made


@cache
def _offer_memory() -> None:
    """Make numba's functions that allocate memory known to loaded code. numba would also compile the counting of
    references here, which is part of each kernel that needs it."""
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _KernelCache(FunctionCache):
    """numba's cache of one kernel, which loads code without numba's library.

    numba prepares itself to compile before it loads anything: it imports its implementations of Python, numpy and
    scipy, which takes longer than most runs. Loaded code needs only the memory that kernels allocate from. A kernel
    that is not in the cache is compiled, and the compiler prepares itself.
    """

    _impl_class = _KernelCode

    def load_overload(self, signature: Any, context: Any) -> Any:
        _offer_memory()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)  # type: ignore[no-untyped-call]
        return None  # the block swallowed an error
