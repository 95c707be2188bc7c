"""The buffer of one stream: the single copy of its events that all queries of an engine read.

The buffer is sorted by event time; events of one instant stand in the order of their splits, and events of one split in
the order of their arrival, so that nothing depends on how splits were interleaved. `progress` decides how far the
stream is, and which event is late. The buffer before `open_from` never changes again, except for corrections, so a
query may read it. A late event is counted and handed back, never lost silently. A lateness holds the watermark back
behind the newest event; the buffer is then also the reorder buffer.

A block is taken in unchanged where all of it is in time: no object is made per event, and blocks of one kind that
overlap are merged by columns.

Invariant: positions (counted from the first event that was ever accepted) of events before `open_from` are final until
a correction is inserted between them. Every accepted event at or after `complete_from` is still held. A block has the
same meaning as its events, pushed one by one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Literal

import numpy as np

from anabranch.engine.ahead import Doubts, Judgement
from anabranch.engine.held import HeldEvents, Run
from anabranch.engine.progress import BEGINNING, END, ONLY_SPLIT, Admission, LatePolicy, SplitProgress, Watermarks, rank
from anabranch.engine.timing import AheadBound, IdlePolicy
from anabranch.errors import EngineError
from anabranch.model.block import Times, TripleBlock
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, GraphBlock, Places, joined, times_of, with_ids
from anabranch.model.instants import subtract_duration
from anabranch.model.temporal import Duration
from anabranch.model.windows import Bounds

__all__ = ["BEGINNING", "END", "StreamBuffer", "StreamState"]

Origin = Literal["source", "named", "query"]
"""Who brings a stream's events: a source; nobody knows yet, for only queries have named it; or a query, INTO it."""

_TIME = "q"  # microseconds, as arrays have them
MOST_FOR_UNHEARD = 1_000_000
"""How many events are held at most for the sake of silent splits that have never brought one."""
_FEW = 200  # insertions into the middle of a list cost less than a sort up to about here


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of a stream in a checkpoint. `events` is None when they are kept elsewhere."""

    name: str
    lateness: Duration | None
    splits: tuple[SplitProgress, ...]
    marks: tuple[int, int, int, int]  # of its progress
    complete_from: int
    closed: bool
    late: int
    corrected: int
    first_event_time: int | None
    last_event_time: int | None
    events: tuple[Event, ...] | None
    event_splits: tuple[str, ...] = ()  # the split of each event
    origin: Origin = "source"
    ended: bool = False
    made_until: int | None = None
    ahead: int = 0
    doubts: tuple[tuple[str, tuple[Event, ...], int, int], ...] = ()  # by split: events, in a row, against
    jumps: tuple[int, tuple[int, int] | None] = (0, None)


class StreamBuffer:
    def __init__(
        self,
        name: str,
        lateness: Duration | None = None,
        late_policy: LatePolicy | None = None,
        idle: IdlePolicy | None = None,
        ahead: AheadBound | None = None,
    ) -> None:
        self.name = name
        self.origin: Origin = "source"
        self.ended = False  # of a derived stream: no more events come, as far as is known
        self.made_until: int | None = None  # of a derived stream: the last instant that may have brought an event
        self.size_of: Callable[[Event], int] = _count_triples
        self.complete_from = BEGINNING
        self.late = 0
        self.corrected = 0
        self.first_event_time: int | None = None
        self.last_event_time: int | None = None
        self._progress = Watermarks(name, lateness, late_policy or LatePolicy(), idle)
        self.ahead = ahead
        self.now: int | None = None  # the wall clock, where input is live
        self.set_aside = 0  # events that were too far ahead
        self._doubts: dict[str, Doubts] = {}
        self._events = HeldEvents()
        self._times = array(_TIME)
        self._splits: list[str] = []
        self._start = 0  # events before this index are forgotten; the lists are cut now and then
        self._sums: list[int] = [0]  # how many triples stand before each index, as far as it was needed
        # Events to be inserted before other events on the next read; one of the two lists is empty.
        self._waiting: list[tuple[int, str, Event]] = []
        self._waiting_blocks: list[tuple[str, EventBlock]] = []

    def __len__(self) -> int:
        waiting = len(self._waiting) + sum(len(block) for _, block in self._waiting_blocks)
        return len(self._times) - self._start + waiting

    @property
    def _base(self) -> int:
        """The position of index 0."""
        return self._events.base

    @property
    def lateness(self) -> Duration | None:
        return self._progress.lateness

    @property
    def open_from(self) -> int:
        """The watermark: the smallest event time that may still come without being late."""
        return END if self.ended else self._progress.open_from

    @property
    def answers_until(self) -> int:
        """The instant before which correctable queries are evaluated: the watermark, or later after silence."""
        return END if self.ended else self._progress.answers_until

    @property
    def answers_alone(self) -> int:
        """Like `answers_until`, for queries that read silent streams only."""
        return END if self.ended else self._progress.answers_alone

    @property
    def is_early(self) -> bool:
        """Whether silence has moved answers to instants at which events may still come."""
        return not self.ended and self._progress.is_early

    @property
    def idle(self) -> IdlePolicy:
        return self._progress.idle

    @property
    def reach(self) -> int:
        """The smallest event time that a correction may still bring."""
        return self._progress.reach

    @property
    def closed(self) -> bool:
        return self.ended or self._progress.closed

    @property
    def jumps(self) -> tuple[int, tuple[int, int] | None]:
        """How often time has jumped past the widest window, and the last jump: from when, to when."""
        return self._progress.jumps, self._progress.last_jump

    def set_readers(self, widest: int | None, can_be_corrected: bool) -> None:
        """Set the width of the widest window over the stream, and whether all queries that read it can be corrected."""
        self._progress.widest = widest
        self._progress.waits_for_unheard = can_be_corrected

    @property
    def clock(self) -> int | None:
        """The latest time that the stream has reached: of an event or, for a derived stream, of an answer, even an
        empty one.
        """
        return max((time for time in (self.last_event_time, self.made_until) if time is not None), default=None)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that count."""
        return tuple(split.name for split in self._progress.splits.values() if split.counts)

    @property
    def sequences(self) -> dict[str, int]:
        """By split, the sequence number that its next accepted event gets."""
        return {split.name: split.sequence for split in self._progress.splits.values()}

    @property
    def accepted(self) -> int:
        """How many events have been accepted."""
        return sum([split.sequence for split in self._progress.splits.values()])

    # --- input ------------------------------------------------------------------------------------------------------

    def push(self, event: Event, split: str = ONLY_SPLIT) -> bool:
        """Take in an event; return False when it is late."""
        admission, event = self.admit(event, split)
        if admission == "corrects":
            self.insert(event, split)
        return admission != "late"

    def judge(self, event: Event, split: str = ONLY_SPLIT) -> Judgement:
        """Decide whether an event's clock is believed, and about the events in doubt that it confirms or refutes."""
        if self.ahead is None:
            return Judgement([event])
        newest = self._progress.split(split).newest
        return self._doubts.setdefault(split, Doubts()).judge(event, newest, self.ahead, self.now)

    def settle_doubts(self, is_over: bool) -> dict[str, Judgement]:
        """Decide about the events in doubt, by split, when no event follows for the time being, or at all."""
        if self.ahead is None:
            return {}
        splits = self._progress.splits
        return {
            name: doubts.settle(splits[name].newest, self.ahead, is_over)
            for name, doubts in sorted(self._doubts.items())
            if doubts.held
        }

    @property
    def in_doubt(self) -> int:
        """How many events wait until others confirm their clock."""
        return sum(len(doubts.held) for doubts in self._doubts.values())

    @property
    def earliest_doubt(self) -> int | None:
        return min((one.event_time for doubts in self._doubts.values() for one in doubts.held), default=None)

    def admit(self, event: Event, split: str = ONLY_SPLIT) -> tuple[Admission, Event]:
        """Decide about an event; return the decision and the event as the buffer holds it.

        An event that corrects is not inserted yet.
        """
        if self._progress.closed:
            raise EngineError(f"stream `{self.name}` is closed: its input has ended")
        source = self._progress.split(split)
        event_time = event.event_time
        if source.newest is not None:
            self._progress.note_jump(source.newest, event_time)
        admission = self._progress.admit(source, event_time)
        if admission == "late":
            self.late += 1
            return admission, event
        event = with_ids(event, split, source.sequence)
        source.sequence += 1
        if self.first_event_time is None or event_time < self.first_event_time:
            self.first_event_time = event_time
        if self.last_event_time is None or event_time > self.last_event_time:
            self.last_event_time = event_time
        if admission == "corrects":
            self.corrected += 1
        else:
            self.insert(event, split)
        return admission, event

    def push_block(self, block: EventBlock, split: str = ONLY_SPLIT) -> bool:
        """Take in a block if all of it is in time; else change nothing and return False: push its events one by one."""
        if not len(block):
            return True
        if self._progress.closed:
            raise EngineError(f"stream `{self.name}` is closed: its input has ended")
        source = self._progress.split(split)
        if not _is_run(block) or not self._all_in_time(block, source) or self.may_doubt(block.times, split):
            return False
        earliest, latest = int(block.times.min()), int(block.times.max())
        self._note_jumps(block.times, source.newest)
        self._progress.admit(source, latest)
        block = _numbered(block, split, source.sequence)
        source.sequence += len(block)
        if self.first_event_time is None or earliest < self.first_event_time:
            self.first_event_time = earliest
        if self.last_event_time is None or latest > self.last_event_time:
            self.last_event_time = latest
        self._insert_block(block, split)
        return True

    def is_in_time(self, event_time: int, split: str = ONLY_SPLIT) -> bool:
        """Whether an event that came now would be neither late nor a correction."""
        return event_time >= max(self._progress.split(split).watermark, self._progress.answered_early)

    def _note_jumps(self, times: Times, newest: int | None) -> None:
        widest = self._progress.widest
        first = int(times[0]) if newest is None else newest
        if widest is not None and int(times.max()) - first > widest:
            reached = np.concatenate([[first], np.maximum(np.maximum.accumulate(times), first)])
            for place in np.flatnonzero(np.diff(reached) > widest):
                self._progress.note_jump(int(reached[place]), int(reached[place + 1]))

    def may_doubt(self, times: Times, split: str = ONLY_SPLIT) -> bool:
        """Whether one of these event times may be too far ahead, or others are in doubt."""
        if self.ahead is None or not len(times):
            return False
        if (held := self._doubts.get(split)) is not None and held.held:
            return True
        newest, latest = self._progress.split(split).newest, int(times.max())
        if self.now is not None and latest > self.now + self.ahead.clock:
            return True
        first = int(times[0]) if newest is None else newest
        reached = np.maximum(np.maximum.accumulate(times), first)
        return bool((np.diff(reached, prepend=first) > self.ahead.jump).any())

    def _all_in_time(self, block: EventBlock, source: SplitProgress) -> bool:
        if block.is_ordered:
            return int(block.times[0]) >= max(source.watermark, self._progress.answered_early)
        late = self._late_places(block.times, source)
        return late is not None and not len(late)

    def late_places(self, block: EventBlock, split: str = ONLY_SPLIT) -> Places | None:
        """Return which events of a block would be late or corrections if they were pushed one by one, and leave those
        between them to `push_block`; None where each event must be looked at.
        """
        if not _is_run(block) or self.may_doubt(block.times, split):
            return None
        return self._late_places(block.times, self._progress.split(split))

    def _late_places(self, times: Times, source: SplitProgress) -> Places | None:
        lateness = self._progress.lateness
        if lateness is not None and lateness.months:
            return None  # it must be computed for each event
        watermarks = np.maximum.accumulate(times) + (0 if lateness is None else subtract_duration(0, lateness))
        floor = max(source.watermark, self._progress.answered_early)
        return np.flatnonzero(times < np.maximum(watermarks, floor))

    def insert(self, event: Event, split: str) -> None:
        """Insert an event at its place, at the latest on the next read. An event before `complete_from` is dropped."""
        event_time = event.event_time
        if event_time < self.complete_from:
            return
        if self._waiting_blocks:
            self._loosen_waiting()
        if self._waiting or not self._comes_last(event_time, split):
            self._waiting.append((event_time, split, event))
        else:
            self._times.append(event_time)
            self._splits.append(split)
            self._events.append(event)

    def _insert_block(self, block: EventBlock, split: str) -> None:
        if not block.is_ordered:
            block = block.sorted_by(np.argsort(block.times, kind="stable"))
        block = block[int(np.searchsorted(block.times, self.complete_from)) :]
        if not len(block):
            return
        if self._waiting:
            self._settle()
        if self._waiting_blocks or not self._comes_last(int(block.times[0]), split):
            self._waiting_blocks.append((split, block))
        else:
            self._times.frombytes(block.times.tobytes())
            self._splits += [split] * len(block)
            self._events.append_block(block)

    def _comes_last(self, event_time: int, split: str) -> bool:
        """Return whether an event that comes now stands behind all events held."""
        if not self._times:
            return True
        last = self._times[-1]
        return event_time > last or (event_time == last and rank(split) >= rank(self._splits[-1]))

    def refill(self, split: str, first_sequence: int, events: Sequence[Event]) -> None:
        """Put back events that were accepted before, in their order, without moving the progress."""
        if isinstance(events, EventBlock) and _is_run(events):
            self._insert_block(_numbered(events, split, first_sequence), split)
        else:
            self._loosen_waiting()
            self._waiting += (
                (event.event_time, split, with_ids(event, split, sequence))
                for sequence, event in enumerate(events, first_sequence)
                if event.event_time >= self.complete_from
            )
        source = self._progress.splits.setdefault(split, SplitProgress(split, counts=False))
        source.sequence = max(source.sequence, first_sequence + len(events))

    def _settle(self) -> None:
        """Insert the waiting events."""
        if self._waiting_blocks:
            self._settle_blocks()
        if self._waiting:
            self._settle_events()

    def _settle_events(self) -> None:
        """Insert single events: few one by one, many by one stable sort of the events behind them."""
        times, splits, events = self._times, self._splits, self._events
        earliest = bisect_left(times, min(item[0] for item in self._waiting), self._start)
        del self._sums[earliest + 1 :]
        if len(self._waiting) < _FEW:
            events.loosen(earliest)
            for event_time, split, event in self._waiting:
                stop = bisect_right(times, event_time, self._start)
                first = bisect_left(times, event_time, self._start, stop)
                place = bisect_right(splits, rank(split), first, stop, key=rank)
                times.insert(place, event_time)
                splits.insert(place, split)
                events.insert(place, event)
        else:
            place = earliest
            behind = zip(times[place:], splits[place:], events.listed(place, len(events)), strict=True)
            tail = sorted([*behind, *self._waiting], key=lambda item: (item[0], rank(item[1])))
            times[place:] = array(_TIME, [item[0] for item in tail])
            splits[place:] = [item[1] for item in tail]
            events.cut_off(place, [item[2] for item in tail])
        self._waiting.clear()

    def _settle_blocks(self) -> None:
        """Merge the waiting blocks with the events behind their first event, by columns if all are of one kind."""
        earliest = bisect_left(self._times, min(int(block.times[0]) for _, block in self._waiting_blocks), self._start)
        behind = [_as_block(run) for run in self._events.runs(earliest, len(self._events))]
        blocks = [block for block in behind if block is not None]
        merged = (
            joined([*blocks, *(block for _, block in self._waiting_blocks)]) if len(blocks) == len(behind) else None
        )
        if merged is None:
            self._loosen_waiting()
            return
        splits = self._splits[earliest:]
        for split, block in self._waiting_blocks:
            splits += [split] * len(block)
        self._waiting_blocks.clear()
        names = sorted(set(splits), key=rank)
        numbers = {name: number for number, name in enumerate(names)}
        of_split = np.fromiter(map(numbers.__getitem__, splits), np.int64, len(splits))
        order = np.lexsort((of_split, merged.times))
        merged = merged.sorted_by(order)
        del self._sums[earliest + 1 :]
        self._times[earliest:] = array(_TIME, merged.times.tobytes())
        self._splits[earliest:] = map(names.__getitem__, of_split[order].tolist())
        self._events.cut_off(earliest, merged)

    def _loosen_waiting(self) -> None:
        """Turn the waiting blocks into single waiting events."""
        for split, block in self._waiting_blocks:
            self._waiting += ((event.event_time, split, event) for event in block)
        self._waiting_blocks.clear()

    def set_splits(self, names: Iterable[str], silent: Iterable[str] = ()) -> None:
        """Set the splits.

        A split without events holds the watermark back; a removed one no longer counts, and a silent one does not hold
        answers back.
        """
        self._progress.set_splits(names, silent)
        if len(self) > MOST_FOR_UNHEARD and self._progress.has_unheard:
            self._settle()
            self._progress.pass_unheard(self._times[-MOST_FOR_UNHEARD])

    def advance(self, instant: int) -> None:
        """Declare that no event at or before the instant will come any more."""
        self._progress.advance(instant)

    def begin_again(self, instant: int) -> None:
        """Forget all events and the progress: the next events are not before the instant."""
        self._waiting.clear()
        self._waiting_blocks.clear()
        self._events = HeldEvents()
        self._times = array(_TIME)
        self._splits = []
        self._start = 0
        self._sums = [0]
        self._doubts.clear()
        self.complete_from = instant
        self.first_event_time = self.last_event_time = self.made_until = None
        self.ended = False
        self._progress.begin_again(instant)

    def pass_silence(self, fellows: int, clock: int) -> None:
        """Let answers go on though no event comes: before `fellows`, which other streams have reached, and before
        `clock`.
        """
        self._progress.pass_silence(fellows, clock)

    def close(self) -> None:
        self._progress.close()

    # --- what queries look at ---------------------------------------------------------------------------------------

    def positions(self, bounds: Bounds) -> tuple[int, int]:
        """Return the half-open range of positions of a window's events."""
        self._settle()
        first = bisect_left(self._times, bounds.first, self._start)
        stop = bisect_left(self._times, bounds.stop, first)
        return self._base + first, self._base + stop

    def positions_of(self, firsts: Times, stops: Times) -> tuple[Times, Times]:
        """Return the ranges of positions of several windows, given by the smallest event times inside and behind."""
        self._settle()
        times = np.frombuffer(self._times, np.int64)[self._start :] if self._times else np.empty(0, np.int64)
        shift = self._base + self._start
        return np.searchsorted(times, firsts) + shift, np.searchsorted(times, stops) + shift

    @property
    def first_position(self) -> int:
        """The position of the first event that is still here."""
        return self._base + self._start

    def between(self, first: int, stop: int) -> list[Event]:
        """Return the events at these positions as single events."""
        self._settle()
        return self._events.listed(max(self._start, first - self._base), max(self._start, stop - self._base))

    def runs(self, first: int, stop: int) -> Iterator[Run]:
        """Yield the events at these positions as they are held: blocks, and lists of events."""
        self._settle()
        return self._events.runs(max(self._start, first - self._base), max(self._start, stop - self._base))

    def arrivals(self, first: int, stop: int) -> tuple[Times, Times]:
        """Return the event times at these positions, and the number of triples of each event."""
        times: list[Times] = [np.empty(0, np.int64)]
        counts: list[Times] = [np.empty(0, np.int64)]
        for run in self.runs(first, stop):
            if isinstance(run, TripleBlock):
                times.append(run.times)
                counts.append(np.ones(len(run), np.int64))
            else:
                times.append(times_of(run))
                counts.append(np.fromiter(map(self.size_of, run), np.int64, len(run)))
        return np.concatenate(times), np.concatenate(counts)

    def time_at(self, position: int) -> int | None:
        """Return the event time at a position; None after the last event."""
        self._settle()
        index = position - self._base
        return self._times[index] if index < len(self._times) else None

    def triples_before(self, stop: int) -> int:
        """Return how many triples the held events before a position have."""
        self._settle()
        sums, last = self._sums, max(self._start, stop - self._base)
        if len(sums) <= last:
            for run in self._events.runs(len(sums) - 1, last):
                total = sums[-1]
                if isinstance(run, TripleBlock):
                    sums += range(total + 1, total + len(run) + 1)
                else:
                    sums += islice(accumulate(map(self.size_of, run), initial=total), 1, None)
        return sums[last] - sums[self._start]

    def back(self, stop: int, count: int) -> tuple[int, int]:
        """Return where the last `count` triples before a position begin.

        The result is a position, and how many triples of the event there come before them. Where there are fewer, it is
        the first triple that is held.
        """
        outside = max(0, self.triples_before(stop) - count)
        sums, last = self._sums, max(self._start, stop - self._base)
        wanted = sums[self._start] + outside
        index = bisect_right(sums, wanted, self._start, last + 1) - 1
        return self._base + index, wanted - sums[index]

    def forget_before(self, instant: int) -> None:
        """Forget all events before an instant that no query will ask for again."""
        self._settle()
        keep = bisect_left(self._times, instant, self._start)
        if keep == self._start:
            return
        self.complete_from = max(self.complete_from, self._times[keep - 1] + 1)
        self._start = keep
        if keep * 2 > len(self._times):
            del self._times[:keep]
            del self._splits[:keep]
            self._events.forget(keep)
            self._sums = self._sums[keep:] or [0]
            self._start = 0

    # --- checkpoint -------------------------------------------------------------------------------------------------

    def state(self, events: bool = True) -> StreamState:
        self._settle()
        return StreamState(
            self.name,
            self.lateness,
            self._progress.copies(),
            self._progress.marks,
            self.complete_from,
            self._progress.closed,
            self.late,
            self.corrected,
            self.first_event_time,
            self.last_event_time,
            tuple(self._events.listed(self._start, len(self._events))) if events else None,
            tuple(self._splits[self._start :]) if events else (),
            self.origin,
            self.ended,
            self.made_until,
            self.set_aside,
            tuple(
                (name, tuple(one.held), one.in_a_row, one.against)
                for name, one in sorted(self._doubts.items())  # whichever split was looked at first
                if one.held
            ),
            self.jumps,
        )

    def load(self, state: StreamState, late_policy: LatePolicy) -> None:
        """Move to a state. If it has no events, the held events stay, except those that the state has forgotten."""
        if state.events is not None:
            self._waiting.clear()
            self._waiting_blocks.clear()
            self._events = HeldEvents(state.events)
            self._times = array(_TIME, [event.event_time for event in state.events])
            self._splits = list(state.event_splits)
            self._start = 0
            self._sums = [0]
        else:
            self.require_behind(state)
            self.forget_before(state.complete_from)
        widest = self._progress.widest
        self._progress = Watermarks(self.name, state.lateness, late_policy, self.idle)
        self._progress.widest = widest
        self._progress.jumps, self._progress.last_jump = state.jumps
        self._progress.load(state.splits, state.marks, state.closed)
        self.origin = state.origin
        self.ended = state.ended
        self.made_until = state.made_until
        self.set_aside = state.ahead
        self._doubts = {name: Doubts(list(held), *counts) for name, held, *counts in state.doubts}
        self.complete_from = state.complete_from
        self.late = state.late
        self.corrected = state.corrected
        self.first_event_time = state.first_event_time
        self.last_event_time = state.last_event_time

    def require_behind(self, state: StreamState) -> None:
        """Refuse a state of an earlier time: later changes cannot be undone."""
        known = {split.name: split.sequence for split in state.splits}
        ahead = [name for name, sequence in self.sequences.items() if sequence > known.get(name, 0)]
        if ahead or self.complete_from > state.complete_from:
            raise EngineError(
                f"stream `{self.name}` of this engine is ahead of the state; load the state into a new engine"
            )

    @classmethod
    def from_state(cls, state: StreamState, late_policy: LatePolicy | None = None) -> StreamBuffer:
        stream = cls(state.name)
        stream.load(state, late_policy or LatePolicy())
        return stream


def _count_triples(event: Event) -> int:
    return len(event.triples)


def _as_block(run: Run) -> EventBlock | None:
    return run if isinstance(run, EventBlock) else TripleBlock.of(run)


def _is_run(block: EventBlock) -> bool:
    """Whether the events of a block can be given consecutive sequence numbers as they are."""
    return not isinstance(block, GraphBlock) or block.is_run


def _numbered(block: EventBlock, split: str, first_sequence: int) -> EventBlock:
    """Return a block whose relationships without ids get them from the places of its events in the split."""
    return block.named(split, first_sequence) if isinstance(block, GraphBlock) else block
