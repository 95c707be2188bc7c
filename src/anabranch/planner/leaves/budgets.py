"""Budgets of leaves: how many matches and bytes a leaf may keep, and the error when it needs more.

Invariant: a refusal names the part of the query and the option that allows more.
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.delta.operators.base import Size
from anabranch.delta.patterns import BudgetExceeded
from anabranch.errors import EvaluationError, Span
from anabranch.snapshot.rdf.static import PartTooLarge


class Budgets:
    """The limits of a leaf, and its name in the error: a pattern, unless `what` is given. `part`: how many matches it
    may have as a part that is evaluated apart from the rest of the query."""

    def __init__(
        self,
        max_matches: int | None,
        max_bytes: int | None,
        said: str,
        span: Span | None,
        what: str = "the pattern",
        part: int | None = None,
    ) -> None:
        self._part = part if max_matches is None or (part is not None and part < max_matches) else None
        self.max_matches = max_matches if self._part is None else self._part
        self.max_bytes = max_bytes
        self._called = f"{what} {said}"
        self._span = span

    def check(self, size: Callable[[], Size]) -> None:
        """Raise an error if the state takes more bytes than allowed. Without a limit, its size is not computed."""
        if self.max_bytes is not None and size().bytes > self.max_bytes:
            raise self.refusal(BudgetExceeded("bytes", self.max_bytes))

    def refusal(self, error: BudgetExceeded) -> EvaluationError | PartTooLarge:
        if self._part is not None and error.what == "matches":
            return PartTooLarge(self._part)
        option = "--max-matches" if error.what == "matches" else "--max-state"
        return EvaluationError(
            "SER-308",
            f"{self._called} needs {error}",
            f"name more labels, types or constants, narrow the window, or allow more by {option}",
            self._span,
        )
