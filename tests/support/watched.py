"""A sink that watches a run from inside: it counts, does things between batches, and says when to stop.

Invariant: a run that waits for what never comes fails by its deadline, and says how far it got.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from anabranch.sinks.base import RenderedAnswer, Sink

PATIENCE = 180.0  # seconds, on a busy machine


class Watched(Sink):
    """Counts batches and answers. `after` are things to do, one after each of the first batches.

    A run that is stopped before its last batch is committed gets that batch again when it goes on: `before` is who
    watched it, and an answer that comes again counts once.
    """

    def __init__(self, *after: Callable[[], object], before: Watched | None = None) -> None:
        self.batches = 0
        self._answers: set[tuple[str, int]] = before._answers if before else set()
        self._after = list(after)
        self._deadline = time.monotonic() + PATIENCE

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        self.batches += 1
        self._answers.update((answer.query, answer.number) for answer in answers)
        if self._after:
            self._after.pop(0)()

    def reached(self, batches: int = 0, answers: int = 0) -> Callable[[], bool]:
        """Whether there are so many batches, and answers in all: a reason to stop."""

        def so_many() -> bool:
            came = f"only {self.batches} batches and {len(self._answers)} answers came"
            assert time.monotonic() < self._deadline, came
            return self.batches >= batches and len(self._answers) >= answers

        return so_many
