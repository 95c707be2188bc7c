"""The outbox of a query: emitted answers that were not taken yet, warnings, and counters.

Invariant: an error that ended the query stays; answers leave in the order in which they were emitted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from anabranch.engine.answers import Answer
from anabranch.engine.kept import Disagreement
from anabranch.errors import QueryError
from anabranch.model.union import Conflict
from anabranch.snapshot.context import SkippedRows

MAX_WARNINGS = 1000  # warnings that were not asked for; older ones are dropped


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """A warning to the user about the answer at an instant."""

    query: str
    at: int
    about: Conflict | Disagreement

    def __str__(self) -> str:
        return str(self.about)


def _no_warnings() -> deque[QueryWarning]:
    return deque(maxlen=MAX_WARNINGS)


@dataclass(slots=True)
class QueryOutbox:
    pending: deque[Answer] = field(default_factory=deque)
    warnings: deque[QueryWarning] = field(default_factory=_no_warnings)
    failure: QueryError | None = None
    failure_told: bool = False
    instants_passed: int = 0
    evaluations: int = 0
    rows_told: int = 0
    verified: int = 0  # evaluations that the plain evaluator answered too
    differing: int = 0  # those at which its answer was different
    skipped: SkippedRows = field(default_factory=SkippedRows)

    def begun_again(self) -> QueryOutbox:
        """Return the outbox for its query when it begins again: answers and counts stay, failure and skips do not."""
        return QueryOutbox(
            self.pending,
            self.warnings,
            instants_passed=self.instants_passed,
            evaluations=self.evaluations,
            rows_told=self.rows_told,
            verified=self.verified,
            differing=self.differing,
        )
