"""How queries are run: on changes or anew, by which matcher, within which limits, and checked how often.

Invariant: none of this changes an answer. It may turn one into an error, where a limit is passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from anabranch.planner.connections import Index
from anabranch.planner.plan import Matcher

Force = Literal["auto", "recompute"]
MATCHERS: tuple[Matcher, ...] = get_args(Matcher)
INDEXES: tuple[Index, ...] = get_args(Index)


@dataclass(frozen=True, slots=True)
class Running:
    """`verify` n: at every n-th evaluation the plain evaluator answers too, and the two are compared; 0: never.

    `max_matches` is how many matches one pattern may keep or tell at once, `max_state` how many bytes one pattern,
    path or index of connectivity may take. `index` answers questions about connectivity.
    """

    force: Force = "auto"
    matcher: Matcher = "auto"
    max_matches: int | None = None
    max_state: int | None = None
    verify: int = 0
    index: Index = "recency"
