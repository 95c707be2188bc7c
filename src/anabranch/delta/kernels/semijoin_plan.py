"""Plan of semi-joins: a conjunction as records, and the hash that separates facts of different kinds."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Floats, Records, Small, fields

Flags: TypeAlias = npt.NDArray[np.bool_]

# A pattern: its group of kinds (0: all facts), where its parts begin in other arrays (they end at the next one's), and
# how many join variables it has. There is one more behind the last.
PATTERN = np.dtype(fields("group fixed equal range part joins"))
# A variable of a pattern, those that join first: its column, its number among the join variables or -1, and itself.
PART = np.dtype(fields("column join variable"))


class KindHash(NamedTuple):
    """A perfect hash from the kinds that patterns name to groups from 1 on. `has_any`: some pattern matches facts of
    any kind."""

    kinds: Ids
    groups: Small
    multiplier: np.uint64
    shift: np.uint64
    has_any: bool


class SemijoinPlan(NamedTuple):
    """A conjunction: `fixed` are (column, id), `equal` (column, column), `ranges` columns with `bounds`; `different`
    are pairs of variables; `joins` and `variables` say how many there are."""

    patterns: Records
    fixed: Ids
    equal: Ids
    ranges: Ids
    bounds: Floats
    parts: Records
    different: Ids
    joins: int
    variables: int
