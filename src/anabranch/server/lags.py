"""How far a run is behind its streams, in seconds: the age of the first event that came and is not answered yet.

Sources tell how much has come and how much was read of it, in units of their own; when it came is what was seen here.

State: per stream at most `_MOST` sightings; when they are too many every second one goes. Work: O(log sightings).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.sources.base import Backlog

_MOST = 1_000
_LOOKED_BACK = 5.0  # seconds: what is more than it was then is growing
_NOTABLE = 1.0  # seconds


@dataclass(slots=True)
class _Seen:
    """How much had come by when, and how far behind the run was."""

    times: list[float] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    behind: list[tuple[float, float]] = field(default_factory=list)


class Lags:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def note(self, stream: str, log: Backlog | None) -> tuple[float, bool]:
        """Take note of how a stream stands; gives how many seconds the run is behind it, and whether that grows."""
        if log is None or log.total is None:
            self._seen.pop(stream, None)
            return 0.0, False
        now, seen = self._clock(), self._seen.setdefault(stream, _Seen())
        if seen.totals and log.total < seen.totals[-1]:  # another stream, or its beginning was let go
            seen.times, seen.totals = [], []
        if not seen.totals or log.total > seen.totals[-1]:
            seen.times.append(now)
            seen.totals.append(log.total)
            if len(seen.times) > _MOST:
                half = _MOST // 2
                seen.times = seen.times[:half:2] + seen.times[half:]
                seen.totals = seen.totals[:half:2] + seen.totals[half:]
        place = bisect_right(seen.totals, log.done)
        behind = now - seen.times[place] if place < len(seen.times) else 0.0
        seen.behind = [one for one in seen.behind if one[0] >= now - 2 * _LOOKED_BACK] + [(now, behind)]
        before = next((lag for at, lag in reversed(seen.behind) if at <= now - _LOOKED_BACK), seen.behind[0][1])
        return behind, behind > before + _NOTABLE
