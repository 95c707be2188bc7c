"""The batch planner: decides how far each batch goes, over all streams of a job, as one JSON offset.

An offset holds the position of every stream and the engine's input besides events: the splits that are awake, how long
a stream has been silent, the wall clock, which streams have ended, the fingerprint of the queries, and the copies of
static graphs. All of it is in Spark's offset log before the batch runs, so a batch that is run again is the same batch.

Invariant: the content between two offsets never depends on the clock; only the choice of the next offset does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anabranch.engine.timing import StreamTiming
from anabranch.runner.refreshing import Refresher, copies
from anabranch.runner.source_settings import SourceSettings
from anabranch.sources.base import Limit, Offset, OpenedStream, Piece

Control = dict[str, Any]

_IDLE_STEP = 1_000_000  # microseconds: how often a silent stream moves on


class BatchPlanner:
    def __init__(
        self,
        streams: Sequence[OpenedStream],
        queries: str,
        limit: Limit,
        timings: Mapping[str, StreamTiming] | None = None,
        clock: Callable[[], float] = time.monotonic,
        refresher: Refresher | None = None,
        wall_clock: Callable[[], float] = time.time,
        clocks: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self._sources = {stream.name: stream.source for stream in streams}
        self._queries = queries
        self._limit = limit
        self._timings = timings or {}
        self._clock = clock
        self._refresher = refresher
        self._wall_clock = wall_clock
        self._clocks = {name: list(said) for name, said in (clocks or {}).items() if name in self._sources}
        self._seen: dict[tuple[str, str], float] = {}
        self._begun_at = clock()

    @classmethod
    def of(cls, settings: SourceSettings) -> BatchPlanner:
        refresher = None if settings.refresh is None else Refresher(settings.refresh)
        return cls(
            settings.streams,
            settings.queries,
            settings.limit,
            settings.timings,
            refresher=refresher,
            clocks=settings.clocks,
        )

    @property
    def batch_size(self) -> int:
        """How many bytes a batch reads of one stream, at most."""
        return self._limit.size

    @batch_size.setter
    def batch_size(self, size: int) -> None:
        self._limit = replace(self._limit, size=size)

    @staticmethod
    def initial() -> Offset:
        return {"streams": {}}

    def ahead(self, start: Offset) -> Offset:
        """Return the next offset, or `start` itself when there is nothing to do."""
        now = self._clock()
        moved = start.get("queries") != self._queries or not start["streams"].keys() <= self._sources.keys()
        end: Offset = {"streams": {}, "queries": self._queries, "begun": {}, "splits": {}, "silent": {}, "idle": {}}
        end["closed"] = []
        end["now"] = self._micros(self._wall_clock())
        end["clocks"] = self._clocks
        moved = moved or end["clocks"] != start.get("clocks", {})
        for name, source in self._sources.items():
            at = start["streams"].get(name)
            if at is None:
                at = end["begun"][name] = source.begin()
                moved = True
            to = source.ahead(at, self._limit)
            awake = {piece.split for piece in source.pieces(at, to)} if to != at else set()
            for split in awake:
                self._seen[name, split] = now
            moved = moved or to != at
            end["streams"][name] = to
            if source.ended(to):
                end["closed"].append(name)
            else:
                self._look_for_silence(name, source.splits(to), now, end)
        if self._refresher is not None:
            end["graphs"] = self._refresher.ahead(start.get("graphs"))
            moved = moved or end["graphs"] != start.get("graphs")
        end["end"] = len(end["closed"]) == len(self._sources)
        moved = moved or end["end"] != start.get("end", False) or end["closed"] != start.get("closed", [])
        return end if moved or self._silence_goes_on(start, end) else start

    def _look_for_silence(self, name: str, splits: list[str], now: float, end: Offset) -> None:
        """Note in the offset which splits, or the whole stream, have been silent for too long and no longer hold
        answers back.
        """
        end["splits"][name] = splits
        timing = self._timings.get(name, StreamTiming())
        if timing.idle_timeout is None:
            return
        silent = {split: self._micros(now - self._seen.get((name, split), self._begun_at)) for split in splits}
        awake = [split for split in splits if silent[split] < timing.idle_timeout]
        if not awake:
            end["idle"][name] = min(silent.values(), default=self._micros(now - self._begun_at)) - timing.idle_timeout
        elif timing.idle.policy == "advance":
            end["splits"][name] = awake
        elif timing.idle.corrects and len(awake) < len(splits):
            end["silent"][name] = [split for split in splits if split not in awake]

    def _silence_goes_on(self, start: Offset, end: Offset) -> bool:
        """Return whether silence changes anything. A stream with the policy `wait` is reported silent only once."""
        if start.get("splits") is not None and end["splits"] != start["splits"]:
            return True
        before = start.get("idle", {})
        if end["silent"] != start.get("silent", {}) or end["idle"].keys() != before.keys():
            return True
        moving = {name: idle for name, idle in end["idle"].items() if self._timings[name].idle.policy != "wait"}
        return any(idle - before.get(name, -_IDLE_STEP) >= _IDLE_STEP for name, idle in moving.items())

    @staticmethod
    def _micros(seconds: float) -> int:
        return int(seconds * 1_000_000)

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        found: list[Piece] = []
        for name, to in end["streams"].items():
            source = self._sources.get(name)
            at = start["streams"].get(name) or end["begun"].get(name)
            if source is not None and at is not None and at != to:
                found += source.pieces(at, to)
        return found

    @staticmethod
    def control(end: Offset) -> Control:
        """Return the engine's input besides events."""
        control = {key: end[key] for key in ("splits", "idle", "closed", "end")}
        control["silent"] = end.get("silent", {})
        control["now"] = end.get("now")
        control["clocks"] = end.get("clocks", {})
        return {**control, "graphs": copies(end.get("graphs", {}))}

    def commit(self, end: Offset) -> None:
        for name, offset in end["streams"].items():
            if name in self._sources:
                self._sources[name].commit(offset)
        if self._refresher is not None:
            self._refresher.commit(end.get("graphs", {}))

    def close(self) -> None:
        for source in self._sources.values():
            source.close()
