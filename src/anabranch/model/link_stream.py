"""A stream of which queries ask nothing but who hangs together (`planner.link_streams` finds them)."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkStream:
    """What of a stream is asked. Each of `kinds` is a set of predicates, None all links; `borders` are instants that
    repeat: a period and one of them, in microseconds. What is `lateness` older than what came before is late."""

    kinds: tuple[tuple[str, ...] | None, ...]
    borders: tuple[tuple[int, int], ...]
    lateness: int

    @property
    def name(self) -> str:
        """The same for two that keep the same links of the same triples."""
        return json.dumps([self.kinds, self.borders])
