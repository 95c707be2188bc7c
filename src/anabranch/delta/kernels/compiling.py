"""Compilation of kernels, and their common tools: records by name, unsigned indices, prefetching.

A kernel is a function that Python calls; it has one signature. The functions that only kernels call need no wrappers,
which take as long to compile as the code itself, and no cache of their own.

numba lets a negative index count from an array's end, as Python does, and asks at each access whether it is one. In
loops that follow numbers from array to array this takes a fifth to a third of the time; there, places in arrays are
unsigned. An unsigned number with a signed one becomes a float, which is no index: such a mistake does not compile.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from anabranch.delta.kernels.cache import cached

Function = TypeVar("Function", bound=Callable[..., Any])

Int: TypeAlias = Any  # an integer of any type
Small: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
UnsignedPlaces: TypeAlias = npt.NDArray[np.uint64]
Records: TypeAlias = Any  # an array of a structured dtype
Record: TypeAlias = Any  # one of them: its fields are attributes in kernels

unsigned: Any = np.uint64

_jit: Any = njit
_MODEL: dict[str, Any] = {"error_model": "numpy"}
# Without counting references to arrays; what makes none needs no counting, which costs up to half of the time.
_UNCOUNTED: dict[str, Any] = _MODEL | {"_nrt": False}
_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile a kernel that makes no arrays."""
    return cached(function, **_UNCOUNTED)


def allocating_kernel(function: Function) -> Function:
    """Compile a kernel that makes arrays."""
    return cached(function, **_MODEL)


def compiled(function: Function) -> Function:
    """Compile a function that only kernels call and that makes no arrays."""
    return cast(Function, _jit(**_UNCOUNTED, **_WITHIN)(function))


def inlined(function: Function) -> Function:
    """Compile a function of inner loops: passing arrays would cost more than most of its work."""
    return cast(Function, _jit(forceinline=True, **_UNCOUNTED, **_WITHIN)(function))


def allocating(function: Function) -> Function:
    """Compile a function that only kernels call and that makes arrays."""
    return cast(Function, _jit(**_MODEL, **_WITHIN)(function))


def fields(names: str, kind: type = np.int64) -> list[tuple[str, type]]:
    """Return fields of a structured dtype, all of one type."""
    return [(name, kind) for name in names.split()]


def cells(records: Records) -> SimpleNamespace:
    """Return the fields of a single record, each as an array of one cell: Python reads them four times as fast as by
    name."""
    return SimpleNamespace(**{name: records[name] for name in records.dtype.names or ()})


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for an item of an array without waiting for it. Large windows do not fit into a processor's near memory, and
    the words of an arrival or a leaving entry lie anywhere: waiting for one after the other is most of the time."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), code


prefetch = cast(Callable[[Any, Any], None], intrinsic(_prefetch))
