"""Rows of a bag told apart: the copies of a row are numbered.

Law: {(r, 0), ..., (r, w - 1) : r in A with the weight w}.

State: every distinct row with its weight. Work per batch: O(changes).
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Batch, Weights
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.trace import Trace


class NumberedCopies(DeltaOperator):
    """Every copy of a row with its number, as an id, in a last column."""

    def __init__(self, width: int, dictionary: Dictionary) -> None:
        self.width = width + 1
        self._dictionary = dictionary
        self._rows = Trace(width, tuple(range(width)))

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        touched = self._rows.add(batch)
        low, high = np.minimum(touched.before, touched.after), np.maximum(touched.before, touched.after)
        counts = high - low
        owners = np.repeat(np.arange(len(counts)), counts)
        numbers = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts) + low[owners]
        weights: Weights = np.where(touched.after > touched.before, 1, -1).astype(np.int64)[owners]
        most = int(numbers.max()) + 1 if len(numbers) else 0
        ids = self._dictionary.encode_all(range(most))
        return Batch(np.column_stack((touched.rows[owners], ids.take(numbers))), weights)

    def size(self) -> Size:
        return self._rows.size()
