"""Recordings of a run: the marks of its batches, and the slice of each stream between two marks, read again from its
source.

A source gives the same records between two offsets at every read, so a recording stores offsets only, no copy of the
stream. Where a source no longer has the records (a spool whose segments were answered), the slice begins later.

State: at most `_MOST` marks; above that, every second old one is dropped.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows as windows_of
from anabranch.engine.query_options import QueryOptions
from anabranch.errors import StreamError
from anabranch.insight.chained import makers_of, streams_named
from anabranch.insight.recording import Recording
from anabranch.model.event import Event
from anabranch.model.instants import add_duration
from anabranch.runner.job import Job
from anabranch.sources.base import Offset, OpenedStream

_MOST = 2_000
OUT_OF_REACH = 2**62
"""An instant after all others: none can be shown of a stream that cannot be read back."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The position after a batch: the offset of each stream, its number of events so far, and the watermark of each
    open stream."""

    batch: int
    streams: dict[str, Offset]
    events: dict[str, int]
    watermarks: dict[str, int | None]


class Marks:
    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._marks: list[Mark] = []
        self._begun: dict[str, Offset] = {}

    def note(
        self, batch: int, offset: dict[str, Any], events: dict[str, int], watermarks: dict[str, int | None]
    ) -> None:
        with self._lock:
            for name, begun in offset.get("begun", {}).items():
                self._begun.setdefault(name, begun)
            if self._marks and self._marks[-1].batch >= batch:
                return
            self._marks.append(Mark(batch, dict(offset.get("streams", {})), dict(events), dict(watermarks)))
            if len(self._marks) > _MOST:
                half = len(self._marks) // 2
                self._marks = self._marks[:half:2] + self._marks[half:]
            self._lock.notify_all()

    def clear(self) -> None:
        with self._lock:
            self._marks = []
            self._begun = {}

    def reach(self, batch: int, seconds: float) -> None:
        """Wait until a batch is marked, at most so many seconds."""
        with self._lock:
            self._lock.wait_for(lambda: batch < 0 or (self._marks and self._marks[-1].batch >= batch), seconds)

    def newest(self) -> Mark | None:
        with self._lock:
            return self._marks[-1] if self._marks else None

    def before(self, stream: str, events: int) -> list[Offset]:
        """Return offsets from which at most `events` events lead to the newest mark, the earliest offset first; the
        stream's beginning is among them if it is known and near enough. If the last batch alone brought more events,
        the list starts with the beginning of that batch."""
        with self._lock:
            marks = [one for one in self._marks if stream in one.streams]
            begun = self._begun.get(stream)
        if not marks:
            return []
        total = marks[-1].events.get(stream, 0)
        near = [one for one in marks if total - one.events.get(stream, 0) <= events]
        starts = [one.streams[stream] for one in near]
        if begun is not None and total <= events:
            return [begun, *starts]
        if all(one.events.get(stream, 0) == total for one in near):
            before = marks[len(marks) - len(near) - 1].streams[stream] if len(near) < len(marks) else begun
            return starts if before is None else [before, *starts]
        return starts


@dataclass(frozen=True, slots=True)
class RecordedEvents:
    """Events of a stream in their order of arrival; `is_whole` says that the stream has none before them."""

    events: tuple[Event, ...]
    is_whole: bool


def read_back(stream: OpenedStream, marks: Marks, most: int) -> RecordedEvents:
    """Read the last events that a run has read of a stream, at most `most`."""
    newest = marks.newest()
    if newest is None or stream.name not in newest.streams:
        return RecordedEvents((), True)
    end = newest.streams[stream.name]
    starts = marks.before(stream.name, most)
    for start in starts:
        try:
            events = _events(stream, start, end)
        except (StreamError, OSError):
            continue  # these records were answered and deleted: try a later start
        whole = start == starts[0] and newest.events.get(stream.name, 0) <= len(events)
        return RecordedEvents(tuple(events[-most:]), whole and len(events) <= most)
    return RecordedEvents((), False)


def _events(stream: OpenedStream, start: Offset, end: Offset) -> list[Event]:
    if start == end:
        return []
    decode = stream.decoding.decoder()
    found: list[Event] = []
    for piece in stream.source.pieces(start, end):
        found += [one for one in stream.source.read(piece, decode) if isinstance(one, Event)]
    return found


def recorded(job: Job, registration: Registration, options: QueryOptions, marks: Marks, most: int) -> Recording:
    """Record a query over the last events that the run has read, at most `most` of all streams together.

    If a slice does not reach back to its stream's beginning, the first instants would have incomplete windows: the
    recording shows instants from where the widest window lies within all slices. It ends at the watermark of the
    streams, because the windows of later instants are not complete yet.
    """
    unnamed = any(one.stream.name is None for one in windows_of(registration.plan))
    own, given = streams_named(registration), {one.name for one in job.streams}
    chain = [] if own <= given else makers_of(registration, job.queries)
    asked = [registration, *(one.registration for one in chain)]
    named = own.union(*map(streams_named, asked))
    read = [one for one in job.streams if one.name in named or (unnamed and not own) or len(job.streams) == 1]
    slices = {one.name: read_back(one, marks, max(1, most // max(1, len(read)))) for one in read}
    cut = [one for one in slices.values() if not one.is_whole]
    begins_at = None
    if cut:
        begins_at = max(min((event.event_time for event in one.events), default=OUT_OF_REACH) for one in cut)
    if begins_at is not None and begins_at < OUT_OF_REACH:
        for one in asked:  # windows over derived streams are full later by their width
            widths = [window.width for window in windows_of(one.plan) if window.width is not None]
            begins_at = max((add_duration(begins_at, width) for width in widths), default=begins_at)
    newest = marks.newest()
    reached = {} if newest is None else {name: at for name, at in newest.watermarks.items() if name in slices}
    return Recording.of(
        options,
        {name: one.events for name, one in slices.items()},
        graphs=job.graphs,
        begins_at=begins_at,
        ends_at=min((at - 1 for at in reached.values() if at is not None), default=None),  # `at` is still open
        rules=job.options.rules,
        mapping=job.options.mapping,
        evaluation=job.options.evaluation,
        only_stream=read[0].name if unnamed and read else None,
        makers=tuple(one.options for one in chain),
    )
