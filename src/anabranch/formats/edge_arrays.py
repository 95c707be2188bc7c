"""Arrow arrays from numbers and texts of Python. Arrow's own way (`pa.array`) loads pandas, which takes half a second.

Invariant: nothing is copied but texts; the numbers of an array that was handed over are not changed after.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def taken(array: pa.Array, places: npt.NDArray[np.int64]) -> pa.Array:
    """What stands at these places."""
    buffer = pa.py_buffer(np.ascontiguousarray(places, np.int64))
    return array.take(pa.Array.from_buffers(pa.int64(), len(places), [None, buffer]))


def texts(values: Sequence[str]) -> pa.Array:
    """An array of texts."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
