"""Corrections: take in events that come after the answers that should hold them, retract the answers that change, and
emit them again.

Such events are late events under `correct`, and events in order whose instants were answered early because their stream
was silent. An event at t affects a query at the instants whose windows hold t and, where differences are emitted, at
the next instant. Affected instants that have passed are evaluated again over the buffer without and with these events,
by copies of the query that step as it did; an instant whose rows differ gives an answer `retracted` and an answer
`corrected`.

Law: at every instant, the emitted rows less the retracted plus the corrected ones are, as bags, the rows that the query
would have emitted had all events come in the order of time.

Work: that of evaluating the affected instants twice; instants between events that lie far apart are left alone, and so
are stretches in which no event enters or leaves. Two answers are equal when their rows are equal as bags and, for
snapshots with an order, stand in the same order too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.engine.answers import Answer, row_key
from anabranch.engine.contents import Contents
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.surroundings import SharedState
from anabranch.errors import QueryError
from anabranch.model.event import Event

IndexRange = tuple[int, int]
"""Indices of instants, from the first up to and including the last."""


def correct(
    queries: Iterable[ContinuousQuery], around: SharedState, stream: StreamBuffer, split: str, late: Sequence[Event]
) -> None:
    """Insert events that were admitted as corrections, and let every query emit the corrected answers.

    Queries that cannot be corrected have not answered early.
    """
    readers = [query for query in queries if stream.name in query.cursor.stream_names()]
    event_times = sorted({event.event_time for event in late if event.event_time >= stream.complete_from})
    touched = [(query, found) for query in readers if (found := list(_touched(query, stream.name, event_times)))]
    before = [[_Retelling.of(query, around, *one) for one in found] for query, found in touched]
    for event in late:
        stream.insert(event, split)
    around.contents.drop_stream(stream.name)
    for query in readers:
        query.resume(query.cursor.next_index, query.previous)
    for (query, found), tellings in zip(touched, before, strict=True):
        for one, told in zip(found, tellings, strict=True):
            if query.outbox.failure is None:
                _tell_again(query, told, _Retelling.of(query, around, *one))


def reachable(
    queries: Iterable[ContinuousQuery], streams: Mapping[str, StreamBuffer], corrects_late: bool
) -> dict[ContinuousQuery, int]:
    """Return, by query, the first index that it may still have to evaluate, for a correction or for the first time."""
    found = {}
    for query in queries:
        if corrects_late or may_be_early(query, streams):
            index = _reachable_index(query, streams)
        else:
            index = None if query.cursor.done else query.cursor.next_index
        if index is not None:
            found[query] = index
            if query.past_graphs:
                query.past_graphs = [past for past in query.past_graphs if past[0] > index]
    return found


def may_be_early(query: ContinuousQuery, streams: Mapping[str, StreamBuffer]) -> bool:
    """Return whether silence has moved, or may move, the query's answers on: then the events they look back to are
    kept.
    """
    if query.registration.output == "snapshot":  # needs nothing of the instants that were answered in time
        return is_early(query, streams)
    if not query.can_be_corrected:
        return False
    read = [streams[name] for name in query.cursor.stream_names() if name in streams]
    return True in [stream.idle.corrects or stream.is_early for stream in read]


def is_early(query: ContinuousQuery, streams: Mapping[str, StreamBuffer]) -> bool:
    """Return whether silence has moved the query's answers to instants at which events may still come."""
    return query.can_be_corrected and any(
        streams[name].is_early for name in query.cursor.stream_names() if name in streams
    )


def _reachable_index(query: ContinuousQuery, streams: Mapping[str, StreamBuffer]) -> int | None:
    if query.outbox.failure is not None:
        return None
    if query.cursor.instants is None:
        return query.cursor.next_index
    reaches = [
        (window, stream.reach)
        for window in query.windows
        if (stream := streams.get(query.cursor.stream_name(window) or "")) is not None and not stream.closed
    ]
    if query.cursor.instants.once:
        open_to_correction = any(query.cursor.bounds_at(window, 0).stop > reach for window, reach in reaches)
        return 0 if open_to_correction or not query.cursor.done else None
    first = query.cursor.first_index
    entered = min(
        (query.cursor.enters(window, reach, first) for window, reach in reaches), default=query.cursor.next_index
    )
    # A difference at the first instant that may change looks one back.
    return min(query.cursor.next_index, max(first, entered - 1))


def _touched(query: ContinuousQuery, stream_name: str, event_times: Sequence[int]) -> Iterator[IndexRange]:
    """Yield the ranges of passed instants whose answers the events may change: disjoint, in order."""
    last = query.cursor.next_index - 1
    if (
        query.outbox.failure is not None
        or query.cursor.instants is None
        or last < query.cursor.first_index
        or not query.can_be_corrected
    ):
        return
    windows = [window for window in query.windows if query.cursor.stream_name(window) == stream_name]
    if query.cursor.instants.once:
        if any(query.cursor.bounds_at(window, 0).contains(time) for window in windows for time in event_times):
            yield 0, 0
        return
    looks_back = 0 if query.registration.output == "snapshot" else 1
    ranges = []
    for window in windows:
        for time in event_times:
            enters = query.cursor.enters(window, time, query.cursor.first_index)
            if enters <= last:
                leaves = query.cursor.leaves(window, time, enters)
                if leaves > enters:
                    ranges.append((enters, min(last, leaves - 1 + looks_back)))
    yield from _joined(sorted(ranges))


def _joined(ranges: Sequence[IndexRange]) -> Iterator[IndexRange]:
    """Merge ranges that overlap or touch; they come sorted."""
    if not ranges:
        return
    first, last = ranges[0]
    for begin, end in ranges[1:]:
        if begin > last + 1:
            yield first, last
            first, last = begin, end
        else:
            last = max(last, end)
    yield first, last


@dataclass(frozen=True, slots=True)
class _Retelling:
    """The answers that a copy of a query emits over a range of instants that the query has passed."""

    copy: ContinuousQuery
    range: IndexRange
    answers: Mapping[int, Answer]

    @classmethod
    def of(cls, query: ContinuousQuery, around: SharedState, first: int, last: int) -> _Retelling:
        assert query.cursor.instants is not None, "a query that has passed instants has begun"
        begin = first if query.registration.output == "snapshot" else max(query.cursor.first_index, first - 1)
        copy = query.rewound(begin)
        contents = Contents()
        for until, graphs in query.graphs_over_time(around.static_graphs):
            stop = min(last, until - 1)
            while not copy.cursor.done and copy.cursor.next_index <= stop:
                copy.step(replace(around, static_graphs=graphs, contents=contents), stop)
        begins_at = query.cursor.instants.instant(first)
        return cls(copy, (first, last), {answer.at: answer for answer in copy.outbox.pending if answer.at >= begins_at})

    @property
    def failure(self) -> QueryError | None:
        return self.copy.outbox.failure


def _tell_again(query: ContinuousQuery, before: _Retelling, after: _Retelling) -> None:
    """Emit the differences, and give the query the corrected rows. If the copy failed, the query fails."""
    assert query.cursor.instants is not None
    stop = query.cursor.instants.instant(after.copy.cursor.next_index) if after.failure is not None else None
    for at in sorted({*before.answers, *after.answers}):
        if stop is None or at < stop:
            _correct_answer(query, before.answers.get(at), after.answers.get(at))
    query.outbox.evaluations += before.copy.outbox.evaluations + after.copy.outbox.evaluations
    query.outbox.warnings.extend(
        warning for warning in after.copy.outbox.warnings if warning not in before.copy.outbox.warnings
    )
    if after.failure is not None:
        query.outbox.failure, query.cursor.done = after.failure, True
    elif after.range[1] == query.cursor.next_index - 1:
        query.resume(query.cursor.next_index, after.copy.previous)


def _correct_answer(query: ContinuousQuery, before: Answer | None, after: Answer | None) -> None:
    keys_before, keys_after = _keys(before), _keys(after)
    if keys_before == keys_after or (not query.is_ordered and Counter(keys_before) == Counter(keys_after)):
        return
    once = query.once  # RETURN emits its one answer, with or without rows
    if before is not None and (before.rows or once):
        query.outbox.pending.append(replace(before, correction="retracted"))
    if after is not None and (after.rows or once):
        query.outbox.rows_told += len(after.rows)
        query.outbox.pending.append(replace(after, correction="corrected"))


def _keys(answer: Answer | None) -> list[Hashable]:
    return [] if answer is None else [row_key(row) for row in answer.rows]
