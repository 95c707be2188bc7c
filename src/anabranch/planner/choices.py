"""Choices of a user or of the engine that planning follows: the matcher, the index, budgets, and what is known ahead.

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
    """What the planner is told. `slide` is how far the windows move from instant to instant, where that is known;
    `trails`: whether those of variable length may be kept, which there may be too many of."""

    matcher: MatcherName = "auto"
    slide: Duration | None = None
    max_matches: int | None = None
    max_bytes: int | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)
    trails: bool = True
    index: IndexName = "recency"
