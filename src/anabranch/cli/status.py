"""The status line of a run: once a second, on a terminal only.

Invariant: it goes to stderr, is removed while other text is printed, and disappears when the run ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from anabranch.cli.summary import TransientLine
from anabranch.cli.values import clock
from anabranch.runner.outlet import RunProgress
from anabranch.sources.base import OpenedStream

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

_REFRESH = 1.0
_FARTHEST = 2**62


def _columns() -> Sequence[ProgressColumn]:
    from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn

    return SpinnerColumn(), BarColumn(bar_width=16), TaskProgressColumn(), TextColumn("{task.fields[said]}")


class StatusLine:
    def __init__(self, console: Console, shown: bool, beginning: str = "starting") -> None:
        self._beginning = beginning
        self._line = TransientLine(console, shown, _columns)
        self._streams: Sequence[OpenedStream] = ()
        self._lock = threading.RLock()
        self._drawn = 0.0
        self._progress = RunProgress()
        self._before = (0, time.monotonic())
        self._rate = 0.0

    def begin(self, streams: Sequence[OpenedStream]) -> None:
        self._streams = streams
        self._before = (0, time.monotonic())
        self.tick()

    def progress(self, progress: RunProgress) -> None:
        self._progress = progress

    def tick(self) -> None:
        """Draw the line if a second has passed."""
        now = time.monotonic()
        if not self._line.is_shown or now - self._drawn < _REFRESH:
            return
        with self._lock:
            self._drawn = now
            self._line.draw(*self._backlog(), self._said(now))

    def aside(self) -> None:
        """Remove the line from the screen until the next second."""
        with self._lock:
            self._line.hide()

    def close(self) -> None:
        self.aside()

    def _backlog(self) -> tuple[int, int | None]:
        offsets = self._progress.offset.get("streams", {})
        done, total = 0, 0
        for stream in self._streams:
            offset = offsets.get(stream.name)
            if offset is None or not stream.source.finite:
                return 0, None
            log = stream.source.backlog(offset)
            if log.total is None:
                return 0, None
            done += log.done
            total += log.total
        return done, total or None

    def _said(self, now: float) -> str:
        status = self._progress.status
        if not status:
            return self._beginning
        events = status.get("events", 0)
        before, then = self._before
        if now > then and events != before:
            self._rate = (events - before) / (now - then)
            self._before = (events, now)
        parts = [f"{events:,} events", f"{self._rate:,.0f}/s", f"{status.get('rows', 0):,} rows", *self._time(status)]
        return " · ".join([*parts, f"state {_size(status.get('bytes', 0))}"])

    def _time(self, status: dict[str, Any]) -> list[str]:
        open_streams = [one for one in status["streams"].values() if not one["closed"]]
        watermarks = [one["watermark"] for one in open_streams if abs(one["watermark"]) < _FARTHEST]
        if not watermarks:
            return []
        watermark = min(watermarks)
        said = [f"watermark {clock(watermark)}"]
        if any(not stream.source.finite for stream in self._streams):
            said.append(f"lag {max(0.0, time.time() - watermark / 1e6):,.1f} s")
        return said


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}"
        count //= 1000
    return f"{count:,} GB"
