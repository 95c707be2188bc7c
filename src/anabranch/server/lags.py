"""The lag of a run behind its streams, in seconds: the age of the oldest event that has arrived and is not answered
yet.

Sources report how much has arrived and how much was read, in units of their own; arrival times are the times at which
these reports were seen here.

State: per stream at most `_MOST` sightings; above that, every second old one is dropped. Work: O(log sightings).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.sources.base import Backlog

_MOST = 1_000
_LOOKED_BACK = 5.0  # seconds; a lag that is larger than so long ago is growing
_NOTABLE = 1.0  # seconds


@dataclass(slots=True)
class _Seen:
    """Sightings of one stream: the total at each time, and the lag at each recent time."""

    times: list[float] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    behind: list[tuple[float, float]] = field(default_factory=list)


class Lags:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def note(self, stream: str, log: Backlog | None) -> tuple[float, bool]:
        """Record the backlog of a stream; returns by how many seconds the run is behind it, and whether that grows."""
        if log is None or log.total is None:
            self._seen.pop(stream, None)
            return 0.0, False
        now, seen = self._clock(), self._seen.setdefault(stream, _Seen())
        if seen.totals and log.total < seen.totals[-1]:  # another stream of that name, or its beginning was dropped
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
