"""Lean loading of kernels from disk: the machine code alone, without numba's compiler.

It reaches into numba where numba promises nothing, so it is used with the version for which it was made (`cache`); with
any other, kernels are loaded as numba does it, which takes a second of a start and 50 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite.binding import add_symbol, parse_assembly  # type: ignore[import-untyped]
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.environment import Environment
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]


def load_lean(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let a kernel be loaded lean."""
    dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
    dispatcher._compilation_chain_init_hook = lambda: None  # kernels need no packages that extend numba


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
