"""The figures of a session's streams: progress, rate, lag, and the number of records that were set aside.

Invariant: figures come from the run's last progress report and the letter files; reading them never waits for the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.engine import checkpoint
from anabranch.engine.timing import StreamTiming, spelled
from anabranch.errors import QueryError, StreamError
from anabranch.runner.outlet import RunProgress
from anabranch.server.catalogue import StoredStream
from anabranch.server.lags import Lags
from anabranch.server.streams import Feeds, LineCounts, Rates, RunMarks, StreamInfo, letter_file, timing_of
from anabranch.sources.address import parse_address
from anabranch.sources.base import Source

TOTALS = ("events", "rows", "malformed", "late", "ahead", "corrected", "instants", "evaluations", "skipped")


class Figures:
    def __init__(self, letters: Path, feeds: Feeds, timing: StreamTiming) -> None:
        self._letters = letters
        self._timing = timing
        self._feeds = feeds
        self._counts = LineCounts()
        self._rates = Rates()
        self.progress = RunProgress()
        self._lags = Lags()
        self.sources: Mapping[str, Source] = {}
        """The sources of the run by their inner names."""

    def moved(self, progress: RunProgress) -> dict[str, int]:
        """Store the run's progress; returns the number of events that each stream has brought."""
        self.progress = progress
        streams = progress.status.get("streams", {})
        events = {name: said.get("events", 0) for name, said in streams.items()}
        self._rates.note(events)
        for name in self.sources:
            self._behind(name)
        return events

    def _behind(self, inner: str) -> tuple[float, bool]:
        """Return by how many seconds the run is behind a stream, and whether that grows."""
        source, offset = self.sources.get(inner), self.progress.offset.get("streams", {}).get(inner)
        try:
            return self._lags.note(inner, None if source is None or offset is None else source.waiting(offset))
        except (StreamError, OSError):
            return 0.0, False  # the source is being removed

    def watermarks(self) -> dict[str, int | None]:
        """Return, for each open stream, the instant up to which answers may exist: its watermark, or a later one if it
        is idle."""
        streams = self.progress.status.get("streams", {})
        return {
            name: _instant(said.get("answered", said.get("watermark")))
            for name, said in streams.items()
            if not said.get("closed", False)
        }

    def letters(self, inner: str, kind: str) -> Path:
        return letter_file(self._letters, inner, kind)

    def streams(self, stored: list[StoredStream]) -> list[StreamInfo]:
        """Return the streams that were added, and the streams that queries produce."""
        said = self.progress.status.get("streams", {})
        known = {one.meant or one.name for one in stored}
        made = [name for name in said if name not in known]
        return [self._info(one.name, one, said) for one in stored] + [self._info(name, None, said) for name in made]

    def _info(self, name: str, stored: StoredStream | None, said: Mapping[str, Any]) -> StreamInfo:
        inner = name if stored is None else stored.meant or stored.name
        figures = said.get(inner, {})
        timing = None if stored is None else timing_of(stored.timing, self._timing)
        behind, growing = self._behind(inner)
        address = None if stored is None or stored.address is None else parse_address(stored.address)
        return StreamInfo(
            name,
            None if address is None else address.shown,
            "query" if stored is None else "push" if address is None else address.scheme,
            round(self._rates.of(inner), 3),
            _instant(figures.get("watermark")),
            _instant(figures.get("newest")),
            figures.get("events", 0),
            self._counts.of(self.letters(inner, "late")),
            self._counts.of(self.letters(inner, "malformed")),
            bool(figures.get("closed", False)) or (stored is not None and stored.stopped),
            figures.get("held", 0),
            inner,
            None if stored is None else stored.lateness,
            self._feeds.state(inner),
            None if timing is None else spelled(timing.idle_timeout),
            "" if timing is None else str(timing.idle),
            bool(figures.get("idle", False)),
            _instant(figures.get("answered")) if figures.get("answered") != figures.get("watermark") else None,
            self._counts.of(self.letters(inner, "ahead")),
            figures.get("in_doubt", 0),
            "" if timing is None else "none" if timing.ahead is None else str(timing.ahead),
            figures.get("jumps", 0),
            None if figures.get("last_jump") is None else tuple(figures["last_jump"]),
            round(behind, 1),
            growing,
        )

    def marks(self, stored: StoredStream) -> RunMarks:
        """Return the run's progress on a stream since the stream's clock was last set."""
        said = self.progress.status.get("streams", {}).get(stored.meant or stored.name, {})
        if said.get("clock", 0) != (stored.timing.clock or (0, 0))[0]:
            return RunMarks()
        return RunMarks(_instant(said.get("newest")), _instant(said.get("watermark")))

    def standing(self, query: str) -> tuple[int | None, int | None]:
        """Return the last instant at which a query was evaluated, and its number of rows there."""
        said = self.progress.status.get("queries", {}).get(query, {})
        passed = said.get("passed")
        return passed, None if passed is None else said["rows"]

    def failed_at(self, query: str) -> int | None:
        """Return the instant at which a query failed."""
        found: int | None = self.progress.status.get("queries", {}).get(query, {}).get("failed_at")
        return found

    def skipped(self, query: str) -> tuple[int, QueryError | None]:
        """Return the number of skipped rows of a query, and the error of the last one."""
        said = self.progress.status.get("queries", {}).get(query, {})
        last = said.get("last_skipped")
        if last is None:
            return 0, None
        return said["skipped"], checkpoint.unpack_error(last["diagnostics"], last["text"], last["file_name"])

    def totals(self) -> dict[str, Any]:
        status, progress = self.progress.status, self.progress
        return {
            **{name: status.get(name, 0) for name in TOTALS},
            "batch": progress.batch,
            "batch_seconds": progress.batch_seconds,
            "state_bytes": progress.state_bytes,
            "window_bytes": status.get("bytes", 0),
            "restarts": progress.restarts,
            "behind": round(max((self._behind(name)[0] for name in self.sources), default=0.0), 1),
        }


def _instant(micros: int | None) -> int | None:
    """Return an instant, or None for the beginning and the end of time."""
    return micros if micros is not None and abs(micros) < 2**60 else None
