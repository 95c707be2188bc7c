"""Arrow's arrays of numbers as numpy's. numpy's own way (`asarray`) makes Arrow load pandas, which takes a second.

Invariant: nothing is copied but arrays in several chunks and arrays of truth values; nobody writes into what is given.
"""

from __future__ import annotations

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
