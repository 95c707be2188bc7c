"""Choices that a user or the engine makes before planning: the matcher, the index, budgets, known parameters.

Invariant: no choice changes the rows of a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.model.temporal import Duration
from anabranch.model.values import Value

MatcherName: TypeAlias = Literal["auto", "log", "semijoin"]
IndexName: TypeAlias = Literal["recency", "bic"]


@dataclass(frozen=True, slots=True)
class Choices:
    """Options of the planner. `slide` is how far the windows move between two instants, where that is known. `trails`:
    whether paths of variable length may be kept; false after there were too many of them."""

    matcher: MatcherName = "auto"
    slide: Duration | None = None
    max_matches: int | None = None
    max_bytes: int | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)
    trails: bool = True
    index: IndexName = "recency"
