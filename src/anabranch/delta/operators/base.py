"""Interface of incremental operators.

Law: let A(t) be the bag that an operator's input is at instant t. After any sequence of `apply`, the sum of all batches
given out is the operator's plain meaning of A(t), whatever the batching.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from anabranch.delta.batch import Batch, Ids, Mask, concatenated
from anabranch.delta.patterns import Changes

RowFunction: TypeAlias = Callable[[Ids], Ids]
"""From a matrix of rows to one id per row. The same row always gives the same id."""
RowTest: TypeAlias = Callable[[Ids], Mask]
"""From a matrix of rows to whether each passes. The same row always gives the same result."""
SameAs: TypeAlias = Callable[[Ids], Ids]
"""From ids to the ids of their classes: two values are equivalent (DISTINCT, grouping, joins) when these are equal."""


class Size(NamedTuple):
    """Size of an operator's state."""

    rows: int
    bytes: int


NOTHING_KEPT = Size(0, 0)


class DeltaOperator(ABC):
    """An incremental operator. `width` is the number of columns of its output. `linear`: it works on single rows and
    keeps no state, so its output for a piece is a piece of its output for the whole."""

    width: int
    linear: ClassVar[bool] = False

    @abstractmethod
    def apply(self, *inputs: Batch) -> Batch:
        """Take one batch per input, all of one instant; return the resulting change."""

    def apply_pieces(self, pieces: Iterator[Batch]) -> Batch:
        """Take all pieces of the only input at one instant, leaving rows before entering ones; return the resulting
        change. An operator that keeps less than its input processes piece by piece."""
        if self.linear:
            return concatenated([self.apply(piece) for piece in pieces], self.width)
        whole = list(pieces)
        return self.apply(concatenated(whole, whole[0].rows.shape[1]))

    def apply_slides(self, changes: Changes) -> Changes:
        """Take the changes of several slides of the only input; return the resulting change at each."""
        whole, ends = changes
        if self.linear:
            # Operators on single rows keep the weight of each row, and their order: here it is the row's number.
            batch = self.apply(Batch(whole.rows, np.arange(len(whole), dtype=np.int64)))
            numbers = batch.weights
            return Changes(Batch(batch.rows, whole.weights[numbers]), np.searchsorted(numbers, ends))
        parts = [self.apply(part) if len(part) else Batch.empty(self.width) for part in changes.slides()]
        return Changes(concatenated(parts, self.width), np.cumsum([len(part) for part in parts], dtype=np.int64))

    def given_in_pieces(self, *inputs: Batch) -> Iterator[Batch]:
        """Yield the result of `apply`, in pieces where it may be far larger than the inputs."""
        yield self.apply(*inputs)

    def size(self) -> Size:
        return NOTHING_KEPT
