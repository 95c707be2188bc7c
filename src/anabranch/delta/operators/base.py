"""What every operator on changes has in common.

Law: let A(t) be the bag that an operator's input is at instant t. After any sequence of `apply`, the sum of all batches
given out is the operator's plain meaning of A(t), whatever the batching.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from anabranch.delta.batch import Batch, Ids, Mask

RowFunction: TypeAlias = Callable[[Ids], Ids]
"""From a matrix of rows to one id per row. The same row always gives the same id."""
RowTest: TypeAlias = Callable[[Ids], Mask]
"""From a matrix of rows to whether each passes. The same row always gives the same."""
SameAs: TypeAlias = Callable[[Ids], Ids]
"""From ids to the ids of their classes: two values are equivalent (DISTINCT, grouping, joins) when these are equal."""


class Size(NamedTuple):
    """What an operator keeps."""

    rows: int
    bytes: int


NOTHING_KEPT = Size(0, 0)


class DeltaOperator(ABC):
    """`width` is the number of columns of what it gives."""

    width: int

    @abstractmethod
    def apply(self, *inputs: Batch) -> Batch:
        """One batch per input, of one instant; the change that follows from them."""

    def size(self) -> Size:
        return NOTHING_KEPT
