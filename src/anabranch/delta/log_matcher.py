"""Incremental matches of a conjunction over a sliding window or a changing set: gives the entering and leaving matches.

The algorithm is SPECTRA's (its sections 4 and 5), with a log and a table of nodes in place of its views. Matches are
found when a fact comes. When a fact goes, its matches are known from their oldest fact (its timelist), or found again
by a join that begins at the leaving facts. `kernels/log` has the algorithm; this file makes room for it and checks its
input.

Law: after each slide, the sum of all changes is the set of matches among the facts of the window.
State: one entry per arrival in the window that fits a pattern (per pattern), one row per value of a shared variable,
and, when matches are kept, one record per living match; arrays grow and shrink with them.
Work: per slide O(arrivals + leaving entries + candidates met by the join), never O(window) except for growing and
shrinking, which is amortised. A call costs some ten microseconds: pass many slides at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import PIECE, Batch, Ids
from anabranch.delta.kernels import log, log_join, log_store
from anabranch.delta.kernels import log_records as rec
from anabranch.delta.kernels.compiling import cells
from anabranch.delta.kernels.log_records import Arrivals, ChangeBounds, LogTables, MatchArrays, SlideBounds
from anabranch.delta.log_plan import plan_of
from anabranch.delta.operators.base import Size
from anabranch.delta.patterns import BudgetExceeded, Changes, Conjunction, MatchTelling
from anabranch.errors import InternalError

IdNumbers: TypeAlias = npt.NDArray[np.float64]
Deletion: TypeAlias = Literal["auto", "kept", "joined"]

_FUEL = 1 << 24  # steps after which a kernel returns, so that an interrupt is handled
_LEAST = 64  # capacity to begin with
_ENOUGH = 1 << 12  # capacity up to which an array stays as it is, however little is used
_SPARE = 8  # an array of which less than the eighth part is used shrinks


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Figures for EXPLAIN and metrics."""

    facts: int
    """Living facts, counted once per pattern that they fit."""
    entries: int
    """Entries of the log, copies of facts that came again included."""
    rows: int
    """Rows of the node table in use: values of shared variables."""
    matches: int
    """Living matches."""
    kept: int
    """Matches stored with their oldest entry; none when deletion is by join."""
    deletion: Literal["kept", "joined"]
    hashed: int
    """Patterns whose facts are hashed, since walking their chains took too long."""


class LogMatcher:
    """The log matcher; it is driven either by `slide` or by `change`, never by both.

    `numbers` are the numbers of ids for ranges; each call may bring a longer array. `max_matches` limits the matches
    given out in one slide or change, and those kept; with deletion "auto", keeping gives way to joining before that.
    `max_bytes` limits all arrays together. Past a limit BudgetExceeded is raised, and every later call fails.
    `telling` says what is told of matches; by default all variables. With comparisons it is driven by `change`."""

    piece: ClassVar[int] = PIECE

    def __init__(
        self,
        conjunction: Conjunction,
        numbers: IdNumbers | None = None,
        *,
        deletion: Deletion = "auto",
        max_matches: int | None = None,
        max_bytes: int | None = None,
        telling: MatchTelling | None = None,
    ) -> None:
        self.conjunction = conjunction
        self._telling = MatchTelling(tuple(range(conjunction.variables))) if telling is None else telling
        self._deletion = deletion
        self._max_matches = max_matches
        self._max_bytes = max_bytes
        self._numbers = np.empty(0, np.float64) if numbers is None else np.ascontiguousarray(numbers, np.float64)
        self._driven: Literal["slide", "change"] | None = None
        self._broken = False
        self._arrivals = 0
        self._tail = 0
        self._only = SlideBounds(*np.zeros((3, 1), np.int64))
        self._begin(linked=False)

    def _begin(self, linked: bool) -> None:
        self._plan = plan = plan_of(self.conjunction, self._telling, linked=linked)
        self._last = plan.plans["last"]
        self._linked = linked
        self._entry_size, self._row_size = plan.entry_size, plan.row_size
        self._match_size = len(self.conjunction.patterns) + 1
        self._told_size = len(self._telling.told) + 1
        self._states = np.zeros(1, rec.STATE)
        self._figures = self._states["figures"][0]
        self._state = state = cells(self._states)
        state.rows_free[0] = state.pool_free[0] = state.free_entry[0] = state.depth[0] = -1
        state.limit[0] = rec.NEVER if self._max_matches is None else self._max_matches
        state.is_kept[0] = not linked and self._deletion != "joined"
        state.is_auto[0] = not linked and self._deletion == "auto"
        state.empty[0] = len(self.conjunction.patterns)
        for pattern in plan.hashed:
            self._figures["hashed"][pattern] = rec.HASHED
            state.hashing[0] = 1
        self._last[0] = _LEAST - 1
        self._ring = np.zeros(_LEAST * self._entry_size, np.int64)
        self._rows = np.zeros(_LEAST * self._row_size, np.int64)
        self._slots = np.zeros(2 * _LEAST, np.int64)
        self._hashes = np.zeros(_LEAST, np.int64)
        self._pool = np.zeros(0, np.int64)
        self._lists = np.zeros(_LEAST, np.int64)
        self._out = np.zeros(_LEAST * self._told_size, np.int64)

    # Made for each call of a kernel, since making room replaces arrays.

    def _tables(self) -> LogTables:
        return LogTables(self._states, self._plan.plans, self._ring, self._rows, self._slots, self._hashes)

    def _found(self) -> MatchArrays:
        return MatchArrays(self._lists, self._pool, self._out)

    # --- driving ---

    def slide(self, facts: Ids, ends: Ids, tails: Ids, numbers: IdNumbers | None = None) -> Changes:
        """Add arrivals and move the window, slide by slide.

        Arrivals are numbered from 0 over the matcher's life. Slide i adds those before number `ends[i]`, and then its
        window holds exactly those from `tails[i]` on. A fact that comes again while it lives is refreshed."""
        marks = np.empty(len(ends), np.int64)
        ends, tails = np.ascontiguousarray(ends, np.int64), np.ascontiguousarray(tails, np.int64)
        (batch,) = self._slid(facts, ends, tails, marks, numbers, None)
        return Changes(batch, marks)

    def slide_once(self, facts: Ids, tail: int, numbers: IdNumbers | None = None) -> Iterator[Batch]:
        """Make one slide, after which the window holds the arrivals from number `tail` on. The changes come in pieces,
        leaving matches before entering ones; no other method may be called before the last piece has been taken."""
        ends, tails, marks = self._only
        ends[0], tails[0] = self._arrivals + len(facts), tail
        return self._slid(facts, ends, tails, marks, numbers, self.piece)

    def _slid(
        self, facts: Ids, ends: Ids, tails: Ids, marks: Ids, numbers: IdNumbers | None, most: int | None
    ) -> Iterator[Batch]:
        flat = self._ready("slide", facts, numbers)
        self._check_slides(len(facts), ends, tails)
        arrivals, slides = Arrivals(flat, self._numbers), SlideBounds(ends, tails, marks)
        intake, walk = self._plan.intake, self._plan.walk

        def run() -> int:
            return int(log.run_slides(self._tables(), intake, walk, self._found(), arrivals, slides))

        yield from self._told_in_pieces(run, most)
        self._arrivals += len(facts)
        if len(tails):
            self._tail = int(tails[-1])
        yield self._finished()

    def change(self, removed: Ids, added: Ids, numbers: IdNumbers | None = None) -> Batch:
        """Remove and add facts: each removed fact must be present, and no added fact may be, after the removals."""
        (batch,) = self._changed(removed, added, self._whole(removed, added), numbers, None)
        return batch

    def change_in_pieces(self, removed: Ids, added: Ids, numbers: IdNumbers | None = None) -> Iterator[Batch]:
        """Do the same as `change`, with the result in pieces as in `slide_once`."""
        return self._changed(removed, added, self._whole(removed, added), numbers, self.piece)

    def change_slides(self, removed: Ids, added: Ids, removed_ends: Ids, added_ends: Ids) -> Changes:
        """Do the same as `change` for several slides: slide i has the facts before `removed_ends[i]`, and those before
        `added_ends[i]`, that no slide before it has."""
        ends = np.ascontiguousarray(removed_ends, np.int64), np.ascontiguousarray(added_ends, np.int64)
        slides = ChangeBounds(*ends, np.empty(len(removed_ends), np.int64))
        (batch,) = self._changed(removed, added, slides, None, None)
        return Changes(batch, slides.marks)

    def _whole(self, removed: Ids, added: Ids) -> ChangeBounds:
        """Return the bounds of a single slide."""
        slides = ChangeBounds(*self._only)
        slides.removed[0], slides.added[0] = len(removed), len(added)
        return slides

    def _changed(
        self, removed: Ids, added: Ids, slides: ChangeBounds, numbers: IdNumbers | None, most: int | None
    ) -> Iterator[Batch]:
        self._check_changes(len(removed), len(added), slides)
        gone = Arrivals(self._ready("change", removed, numbers), self._numbers)
        new = Arrivals(self._ready("change", added, None), self._numbers)
        intake, walk = self._plan.intake, self._plan.walk

        def run() -> int:
            return int(log.run_changes(self._tables(), intake, walk, self._found(), gone, new, slides))

        yield from self._told_in_pieces(run, most)
        self._arrivals += len(added)
        yield self._finished()

    def _told_in_pieces(self, run: Callable[[], int], most: int | None) -> Iterator[Batch]:
        """Run a kernel to its end; yield its output whenever it has `most` rows, except the last piece."""
        state = self._state
        code = self._start()
        while code != rec.DONE:
            if code == rec.OUT_FULL and most is not None and state.out[0] >= most:
                yield self._taken()
                state.out_start[0] -= state.out[0]  # limits count from the beginning of the slide
                state.out[0] = 0
            else:
                self._make_room(code)
            code = run()

    def matches(self) -> Ids:
        """Return all living matches, one row each. Limits do not apply here."""
        self._check_sound()
        state = self._state
        if state.is_kept[0]:
            known = np.empty((int(state.pool_used[0]), len(self._telling.told)), np.int64)
            found = MatchArrays(self._lists, self._pool, known.reshape(-1))
            log_join.run_all(self._tables(), self._plan.walk, found, rec.ROLE_LIST)
            return known
        self._broken = True
        limit = int(state.limit[0])
        state.limit[0] = rec.NEVER
        state.out[0] = state.out_start[0] = 0
        kept, self._out = self._out, np.empty((int(state.matches[0]) + 1) * self._told_size, np.int64)
        self._enumerate(rec.ROLE_LIST)
        state.limit[0] = limit
        told, self._out = self._told(), kept
        self._broken = False
        return np.repeat(told[:, :-1], told[:, -1], axis=0)

    # --- what it holds ---

    def size(self) -> Size:
        return Size(int(self._state.living[0]), self._bytes())

    def statistics(self) -> LogStatistics:
        state = self._state
        living = int(state.living[0])
        return LogStatistics(
            facts=living,
            entries=self._entries(),
            rows=int(state.rows_used[0]),
            matches=int(state.matches[0]),
            kept=int(state.pool_used[0]),
            deletion="kept" if state.is_kept[0] else "joined",
            hashed=int((self._figures["hashed"] == rec.HASHED).sum()),
        )

    def _entries(self) -> int:
        return int(self._state.living[0] if self._linked else self._state.end[0] - self._state.tail[0])

    def _bytes(self) -> int:
        kept = self._ring.nbytes + self._rows.nbytes + self._slots.nbytes + self._hashes.nbytes + self._pool.nbytes
        return int(kept + self._lists.nbytes + self._out.nbytes + self._states.nbytes + self._plan.plans.nbytes)

    # --- calls ---

    def _ready(self, way: Literal["slide", "change"], facts: Ids, numbers: IdNumbers | None) -> Ids:
        """Check that the matcher may be driven this way; return the facts as a flat vector."""
        self._check_sound()
        if self._driven is None:
            self._driven = way
            if way == "change":
                self._begin(linked=True)
        if way == "slide" and self._telling.tests:
            raise InternalError("a matcher that compares ranks is driven by change")
        if self._driven != way:
            raise InternalError(f"a matcher that was driven by {self._driven} cannot be driven by {way}")
        if numbers is not None:
            self._numbers = np.ascontiguousarray(numbers, np.float64)
        facts = np.ascontiguousarray(facts, np.int64)
        if facts.ndim != 2 or facts.shape[1] != self.conjunction.width:
            raise InternalError(f"facts of {self.conjunction.width} columns are wanted, not shape {facts.shape}")
        return facts.reshape(-1)

    def _check_sound(self) -> None:
        if self._broken:
            raise InternalError("a matcher that exceeded its budget, or was interrupted, cannot go on")

    def _check_slides(self, arrivals: int, ends: Ids, tails: Ids) -> None:
        """Check the slides: kernels do not check for numbers out of range, so every error must be found here."""
        if len(ends) != len(tails):
            raise InternalError(f"{len(ends)} ends but {len(tails)} tails")
        last = int(ends[-1]) if len(ends) else self._arrivals
        if last != self._arrivals + arrivals:
            raise InternalError(f"the slides end at arrival {last}, but {self._arrivals + arrivals} came")
        several = len(ends) > 1
        if len(ends) and (ends[0] < self._arrivals or (several and (ends[1:] < ends[:-1]).any())):
            raise InternalError("the ends of slides go back")
        if len(tails) and (tails[0] < self._tail or (several and (tails[1:] < tails[:-1]).any())):
            raise InternalError("the tails of slides go back")

    def _check_changes(self, removed: int, added: int, slides: ChangeBounds) -> None:
        """Check the slides of changes, as `_check_slides` does."""
        for ends, count in ((slides.removed, removed), (slides.added, added)):
            if len(ends) != len(slides.marks) or (ends[-1] if len(ends) else 0) != count:
                raise InternalError(f"the slides do not end with the {count} facts that they have")
            if len(ends) and (ends[0] < 0 or (np.diff(ends) < 0).any()):
                raise InternalError("the ends of slides go back")

    def _start(self) -> int:
        """Reset the state for a call; return the code with which its loop begins. The matcher is broken until the call
        ends."""
        state = self._state
        state.base[0] = state.next[0] = self._arrivals
        state.bound[0] = self._arrivals << 8
        state.slide[0] = state.marked[0] = state.out[0] = state.out_start[0] = state.list_base[0] = 0
        self._broken = True
        return rec.PAUSED

    def _finished(self) -> Batch:
        """Return the remaining output, and shrink arrays that have become too large."""
        batch = self._taken()
        self._shrink()
        self._broken = False
        return batch

    def _taken(self) -> Batch:
        if not self._state.out[0]:
            return Batch.empty(len(self._telling.told))
        table = self._told()
        return Batch(table[:, :-1].copy(), table[:, -1].copy())

    def _told(self) -> Ids:
        """Return rows and weights of the output; valid until the next call."""
        told = int(self._state.out[0])
        return self._out[: told * self._told_size].reshape(told, self._told_size)

    def _enumerate(self, role: int) -> None:
        if len(self._lists) < _ENOUGH:
            self._lists = np.zeros(_ENOUGH, np.int64)
        code = rec.PAUSED
        while code != rec.DONE:
            self._make_room(code)
            code = int(log_join.run_all(self._tables(), self._plan.walk, self._found(), role))

    # --- room ---

    def _make_room(self, code: int) -> None:
        """Do what a kernel needs before it is called again."""
        match code:
            case rec.TOO_MANY:
                raise BudgetExceeded("matches", int(self._state.limit[0]))
            case rec.OUT_FULL:
                self._out = _grown(self._out)
            case rec.LOG_FULL:
                self._resize_log(2 * (int(self._last[0]) + 1))
            case rec.ROWS_FULL:
                self._rows = _grown(self._rows)
                self._hash_rows()
            case rec.LISTS_FULL:
                self._lists = _grown(self._lists)
            case rec.HASH_WANTED:
                self._hash_facts()
            case rec.POOL_FULL:
                self._pool = _grown(self._pool) if len(self._pool) else np.zeros(_LEAST * self._match_size, np.int64)
            case rec.KEEP_AGAIN:
                self._keep_all()
        if self._max_bytes is not None and self._bytes() > self._max_bytes:
            raise BudgetExceeded("bytes", self._max_bytes)
        self._state.fuel[0] = _FUEL

    def _resize_log(self, capacity: int) -> None:
        """Resize the log: positions stay, places change; the place of a position is its remainder."""
        state, size = self._state, self._entry_size
        positions = np.arange(state.tail[0], state.end[0])
        ring = np.zeros((capacity, size), np.int64)
        ring[positions & (capacity - 1)] = self._ring.reshape(-1, size)[positions & self._last[0]]
        self._ring = ring.reshape(-1)
        self._last[0] = capacity - 1

    def _hash_rows(self) -> None:
        self._slots = np.zeros(_power_of_two(len(self._rows) // self._row_size * 3 // 2), np.int64)
        log_store.place_slots(self._tables())

    def _hash_facts(self) -> None:
        self._hashes = np.zeros(_power_of_two(4 * (self._hashed_facts() + rec.MOST_PATTERNS)), np.int64)
        log_store.place_hashes(self._tables())

    def _hashed_facts(self) -> int:
        return int(self._figures["living"][self._figures["hashed"] != rec.NOT_HASHED].sum())

    def _keep_all(self) -> None:
        """Find and store every living match once: to switch from deletion by join back to keeping, or for a smaller
        pool."""
        state = self._state
        state.is_kept[0] = 1
        state.pool_free[0] = -1
        state.pool_end[0] = state.pool_used[0] = state.since_switch[0] = 0
        self._pool = np.zeros(0, np.int64)
        self._ring.reshape(-1, self._entry_size)[:, rec.HANGS] &= ~rec.LOW
        self._enumerate(rec.ROLE_HANG)

    def _shrink(self) -> None:
        """Shrink, between calls, arrays of which less than an eighth is used."""
        state = self._state
        capacity = len(self._ring) // self._entry_size
        if capacity > _ENOUGH and self._entries() * _SPARE < capacity:
            if self._linked:
                self._pack_entries(_power_of_two(2 * self._entries()))
            else:
                self._resize_log(_power_of_two(2 * self._entries()))
        if len(self._lists) > _ENOUGH and state.most_listed[0] * _SPARE < len(self._lists):
            self._lists = np.zeros(max(_LEAST, 2 * int(state.most_listed[0])), np.int64)
        state.most_listed[0] = 0
        capacity = len(self._rows) // self._row_size
        if capacity > _ENOUGH and state.rows_used[0] * _SPARE < capacity:
            packed = np.zeros(max(_LEAST, 2 * int(state.rows_used[0])) * self._row_size, np.int64)
            log_store.renumber_rows(self._tables(), packed, np.zeros(capacity, np.int64))
            self._rows = packed
            self._hash_rows()
            self._hash_facts()  # facts are hashed by their rows' numbers
        if len(self._hashes) > 4 * _ENOUGH and self._hashed_facts() * 4 * _SPARE < len(self._hashes):
            self._hash_facts()
        if len(self._pool) > _ENOUGH * self._match_size:
            if not state.is_kept[0]:
                self._pool = np.zeros(0, np.int64)
            elif state.pool_used[0] * _SPARE * self._match_size < len(self._pool):
                self._keep_all()
        if len(self._out) > _ENOUGH * self._told_size and state.out[0] * _SPARE * self._told_size < len(self._out):
            self._out = np.empty(_LEAST * self._told_size, np.int64)

    def _pack_entries(self, capacity: int) -> None:
        packed = np.zeros(capacity * self._entry_size, np.int64)
        mapping = np.zeros(int(self._state.end[0]), np.int64)
        log_store.renumber_entries(self._tables(), packed, mapping)
        self._ring = packed
        self._last[0] = capacity - 1
        self._hash_facts()


def _grown(array: Ids) -> Ids:
    grown = np.empty(len(array) * 3 // 2, np.int64)
    grown[: len(array)] = array
    return grown


def _power_of_two(least: int) -> int:
    return 1 << max(6, (least - 1).bit_length())
