"""Many instants of a query in one call: those of one window that moves by fixed steps over a matcher.

A query qualifies whose plan is one pattern over one window with a chain of operators above it, and whose instants and
window are of fixed lengths. Its operators take all slides in one call; an instant at which no event enters or leaves
the window changes nothing.

Law: the answers are those that `ContinuousQuery.step` gives instant by instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anabranch.algebra.operators import Window
from anabranch.delta.batch import Ids
from anabranch.engine.answers import Answer, AnswerRow
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.cursor import QueryCursor
from anabranch.engine.flows import QueryFlow
from anabranch.engine.surroundings import SharedState
from anabranch.errors import Cancelled
from anabranch.model.windows import WindowPolicy
from anabranch.planner.flow.feeds import WindowSlides

if TYPE_CHECKING:
    from anabranch.engine.query import ContinuousQuery

FIRST_AT_ONCE = 1 << 10
"""Instants that a query takes at once at first."""
_MOST_INSTANTS = 1 << 16
MOST_ALIKE = 5_000_000  # instants in a row at which no event enters or leaves, and each of which emits an answer
_SPARSE = 32  # one of so many instants, or fewer, at which something changes
_MOST_LISTED = 1 << 18  # rows of all answers of a call
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
    run = query.run
    left = last - query.cursor.next_index + 1
    if left > MOST_ALIKE and query.registration.output == "snapshot":
        return 0  # the same answer may be refused to be emitted so often
    count = min(left, query.at_once)
    steady, every = query.steady, _every(query.cursor)
    if steady is None or every is None or not run.is_planned(around) or around.evaluation.verify:
        return 0
    flow = run.flow
    assert flow is not None, "it is planned"
    model = flow.maintained.flow.slides_of
    if model is None or (model == "elements" and not run.skips_failing_rows(around)):
        return 0  # a row that ends the query must do so at its own instant
    flow.maintained.flow.runtime.context.steps = 0
    outbox, output = query.outbox, query.registration.output
    if output == "snapshot":
        count = min(count, max(1, _MOST_LISTED // max(1, len(run.kept))))
    index = query.cursor.next_index
    ats = query.cursor.started().instant(index) + every * np.arange(count, dtype=np.int64)
    ends = ats if not steady.step else steady.origin + (ats - steady.origin) // steady.step * steady.step
    stream = around.streams[query.cursor.stream_name(steady.window) or ""]
    shift = int(steady.is_trailing)
    firsts, stops = stream.positions_of(ends - steady.width + shift, ends + shift)
    moved = _moved(firsts, stops, flow.shown(steady.window))
    if len(moved) * _SPARSE < count and (output != "snapshot" or not len(run.kept)):
        query.at_once = max(_SPARSE, query.at_once // 4)
        return 0  # a single step goes straight on to the next change
    told = outbox.rows_told
    telling = _Telling(query, ats, ends - steady.width, ends, around.check)
    if len(moved):
        slides = flow.slides(steady.window, stream, firsts[moved], stops[moved], around.contents.encoded)
        try:
            _tell(telling, flow, slides, moved)
        except Cancelled:
            raise
        except Exception:
            return _go_on_by_steps(query, flow, telling.answered)
        outbox.evaluations += len(moved)
        run.settle(flow, bool(moved[-1] == count - 1))
    elif output == "snapshot":
        telling.repeat(run.kept.rows(), count)
        run.kept.stay()
    is_empty = firsts[-1] >= stops[-1]
    run.signature = ((None if is_empty else (int(firsts[-1]), int(stops[-1]), 0),), ())
    query.cursor.next_index = index + count
    query.cursor.passed = int(ats[-1])
    outbox.instants_passed += count
    is_much = outbox.rows_told - told > _MANY_ROWS
    query.at_once = max(1, query.at_once // 2) if is_much else min(_MOST_INSTANTS, query.at_once * 2)
    return count


def _every(cursor: QueryCursor) -> int | None:
    """Return the fixed time between two instants of a query; None where there is none."""
    instants = cursor.started()
    if isinstance(instants, ArrivalInstants) or instants.every is None:
        return None
    return instants.every.fixed_micros


def _go_on_by_steps(query: ContinuousQuery, flow: QueryFlow, answered: int) -> int:
    """Leave the instants from the first unanswered one on to single steps, so that an error ends the query at its own
    instant; return how many were answered. The operators are built again."""
    rows = [] if query.registration.output == "snapshot" else flow.maintained.rows()
    query.steady = None
    query.resume(query.cursor.next_index + answered, rows)
    if answered:
        query.cursor.passed = query.cursor.started().instant(query.cursor.next_index - 1)
        query.outbox.instants_passed += answered
    return answered


@dataclass(slots=True)
class _Telling:
    """The instants of a call, with the reported ends of their windows, and how many of them are answered."""

    query: ContinuousQuery
    ats: Ids
    opens: Ids
    closes: Ids
    check: Callable[[], None] | None
    answered: int = 0

    def tell(self, place: int, rows: list[AnswerRow]) -> None:
        """Emit the rows of an instant, if there are some; nothing is emitted at the instants before it."""
        if self.check is not None:
            self.check()
        if rows:
            asked, outbox = self.query.registration, self.query.outbox
            window = int(self.opens[place]), int(self.closes[place])
            outbox.pending.append(
                Answer.told(asked.name, int(self.ats[place]), asked.output, window, self.query.columns, rows)
            )
            outbox.rows_told += len(rows)
        self.answered = place + 1

    def repeat(self, rows: list[AnswerRow], stop: int) -> None:
        """Emit the same rows at all instants before a place that are not answered."""
        for place in range(self.answered, stop):
            self.tell(place, list(rows))


def _tell(telling: _Telling, flow: QueryFlow, slides: WindowSlides, moved: Ids) -> None:
    if telling.query.registration.output == "snapshot":
        _tell_snapshots(telling, flow, slides, moved)
    else:
        _tell_differences(telling, flow, slides, moved)


def _tell_differences(telling: _Telling, flow: QueryFlow, slides: WindowSlides, moved: Ids) -> None:
    answer, sign = flow.maintained, 1 if telling.query.registration.output == "entering" else -1
    for slide, rows in answer.differences(answer.advance_slides(slides), sign):
        telling.tell(int(moved[slide]), rows)


def _tell_snapshots(telling: _Telling, flow: QueryFlow, slides: WindowSlides, moved: Ids) -> None:
    """Emit all rows at each instant: those between two slides that changed something have the same rows."""
    rows = telling.query.run.kept.rows()
    for slide, changed in flow.maintained.snapshots(slides):
        telling.repeat(rows, int(moved[slide]))
        rows = changed
    telling.repeat(rows, len(telling.ats))


def _moved(firsts: Ids, stops: Ids, shown: tuple[int, int]) -> Ids:
    """Return the places of the slides at which an event enters or leaves."""
    first, stop = shown
    same = (np.diff(firsts, prepend=first) == 0) & (np.diff(stops, prepend=stop) == 0)
    return np.flatnonzero(~same)
