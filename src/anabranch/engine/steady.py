"""Many instants of a query in one call: those of one window that moves by fixed steps over a matcher.

A query qualifies whose answers are differences, whose plan is one pattern over one window of triples with operators on
single rows above it, and whose instants and window are of fixed lengths. The matcher takes all slides at once, and an
instant at which no event enters or leaves the window is not visited at all.

Law: the answers are those that `ContinuousQuery.step` gives instant by instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anabranch.algebra.operators import Window
from anabranch.delta.batch import Ids
from anabranch.engine.answers import Answer
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.cursor import QueryCursor
from anabranch.engine.flows import WindowViews
from anabranch.engine.surroundings import SharedState
from anabranch.model.windows import WindowPolicy

if TYPE_CHECKING:
    from anabranch.engine.query import ContinuousQuery

FEWEST = 1
"""Instants from which on it pays to take them at once."""
FIRST_AT_ONCE = 1 << 10
"""Instants that a query takes at once at first."""
_MOST_INSTANTS = 1 << 16
_MANY_ROWS = 1 << 14  # changes of one call, above which the next takes fewer instants


class SteadyWindow(NamedTuple):
    """A window of fixed width that moves by fixed steps: its ends lie at fixed distances from the instant. `step` and
    `origin` say to which multiples instants are rounded down; 0: not at all."""

    window: Window
    width: int
    step: int
    origin: int
    is_trailing: bool


def steady_window(cursor: QueryCursor, policy: WindowPolicy, origin: int) -> SteadyWindow | None:
    """Return the only window of a query; None where there are several, or it does not move by fixed steps."""
    if len(cursor.windows) != 1 or policy == "formal":
        return None
    (window,) = cursor.windows
    if window.width is None or window.count is not None:
        return None
    width, step = window.width.fixed_micros, 0 if window.step is None else window.step.fixed_micros
    if width is None or step is None:
        return None
    return SteadyWindow(window, width, step, origin, policy == "trailing")


def run_ahead(query: ContinuousQuery, around: SharedState, last: int) -> int:
    """Evaluate instants up to the index `last`; return how many. 0: this query goes step by step for now."""
    cursor, run = query.cursor, query.run
    instants = cursor.started()
    steady, flow = query.steady, run.flow
    if steady is None or flow is None or isinstance(instants, ArrivalInstants) or instants.every is None:
        return 0
    every = instants.every.fixed_micros
    if every is None or not flow.takes_slides or not run.is_planned(around) or around.evaluation.verify:
        return 0
    index = cursor.next_index
    count = min(last - index + 1, query.at_once)
    if count < FEWEST:
        return 0
    ats = instants.instant(index) + every * np.arange(count, dtype=np.int64)
    ends = ats if not steady.step else steady.origin + (ats - steady.origin) // steady.step * steady.step
    stream = around.streams[cursor.stream_name(steady.window) or ""]
    shift = int(steady.is_trailing)
    firsts, stops = stream.positions_of(ends - steady.width + shift, ends + shift)
    moved = _moved(firsts, stops, flow.shown(steady.window))
    views = WindowViews({}, around.contents.encoded, around.mapping, lambda name: 0)
    found = flow.advance_slides(steady.window, stream, firsts[moved], stops[moved], views)
    query.outbox.evaluations += len(moved)
    output, columns = query.registration.output, query.registration.columns
    for slide, rows in found.differences(1 if output == "entering" else -1):
        end = int(ends[moved[slide]])
        answer = Answer.told(query.name, int(ats[moved[slide]]), output, (end - steady.width, end), columns, rows)
        query.outbox.rows_told += len(rows)
        query.outbox.pending.append(answer)
    run.settle(flow, bool(len(moved)) and int(moved[-1]) == count - 1)
    is_empty = firsts[-1] >= stops[-1]
    run.signature = ((None if is_empty else (int(firsts[-1]), int(stops[-1]), 0),), ())
    cursor.next_index = index + count
    cursor.passed = int(ats[-1])
    query.outbox.instants_passed += count
    is_much = found.rows > _MANY_ROWS
    query.at_once = max(FEWEST, query.at_once // 2) if is_much else min(_MOST_INSTANTS, query.at_once * 2)
    return count


def _moved(firsts: Ids, stops: Ids, shown: tuple[int, int]) -> Ids:
    """Return the places of the slides at which an event enters or leaves."""
    first, stop = shown
    same = (np.diff(firsts, prepend=first) == 0) & (np.diff(stops, prepend=stop) == 0)
    return np.flatnonzero(~same)
