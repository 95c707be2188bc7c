"""Evaluation options: incrementally or from scratch, by which matcher, within which limits, and verified how often.

Invariant: no option changes an answer, except `on_error`, which decides about rows that fail. A limit may turn an
answer into an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from anabranch.planner.choices import IndexName, MatcherName
from anabranch.snapshot.context import MAX_STEPS

Force = Literal["auto", "recompute"]
OnError = Literal["skip", "fail"]
"""What becomes of a row on which an expression fails: it is skipped and counted, or it ends the query."""
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
MATCHERS: tuple[MatcherName, ...] = get_args(MatcherName)
INDEXES: tuple[IndexName, ...] = get_args(IndexName)


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The options by which queries are evaluated.

    `verify` n: at every n-th evaluation the plain evaluator answers too, and the two answers are compared; 0: never.
    `max_matches` limits how many matches one pattern may keep or emit at once, `max_state` how many bytes one pattern,
    path or index of connectivity may take, `max_steps` how many steps one evaluation may need. `index` answers
    questions about connectivity. `on_error` is the default for queries that do not set it themselves. `sharing`:
    queries of the same meaning run once, and many that differ in constants run as one plan.
    """

    force: Force = "auto"
    matcher: MatcherName = "auto"
    max_matches: int | None = None
    max_state: int | None = None
    verify: int = 0
    index: IndexName = "recency"
    on_error: OnError = "skip"
    max_steps: int = MAX_STEPS
    sharing: bool = True
