"""Conversion of Arrow's arrays to and from numpy's and Python's, without pandas.

Arrow's own functions import pandas, which takes a second.

Invariant: nothing is copied but texts, truth values and arrays in several chunks; no array is written after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers(array: Any) -> npt.NDArray[Any]:
    """An array of numbers without nulls, in one chunk or several."""
    if isinstance(array, pa.ChunkedArray):
        dtype = np.dtype(array.type.to_pandas_dtype())
        return np.concatenate([np.empty(0, dtype), *(numbers(chunk) for chunk in array.chunks)])
    dtype = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def truths(array: Any) -> npt.NDArray[np.bool_]:
    """An array of truth values without nulls."""
    return numbers(array.cast(pa.uint8())).view(np.bool_)


def taken(array: pa.Array, places: npt.NDArray[np.int64]) -> pa.Array:
    """Return the values at these places."""
    buffer = pa.py_buffer(np.ascontiguousarray(places, np.int64))
    return array.take(pa.Array.from_buffers(pa.int64(), len(places), [None, buffer]))


def text_buffers(array: Any, spare: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of an array of texts (string or large_string) without nulls, with spare zeros behind them, and
    the ends of the texts: text i lies between end i and end i + 1."""
    _, offsets, data = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.zeros(1, np.int64)
    if offsets is not None and len(array):
        said = np.frombuffer(offsets, width, len(array) + 1, array.offset * np.dtype(width).itemsize)
        ends = said.astype(np.int64)
    first, last = int(ends[0]), int(ends[-1])
    padded = np.empty(last - first + spare, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    padded[last - first :] = 0
    return padded, ends - first


def texts(values: Sequence[str]) -> pa.Array:
    """An array of texts."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
