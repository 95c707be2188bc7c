"""Windows and evaluation instants: which events a query sees at an instant, and at which instants it looks.

Three policies, for an evaluation instant w, a width a, a start w0 and a slide b:

    trailing     (w - a, w]     Seraph's Tables 5 and 6, C-SPARQL section 3.2; the default
    right-open   [w - a, w)     the convention of RSP-QL engines
    formal       Seraph Def. 5.9-5.11: of the windows [w0 + i*b, w0 + i*b + a), i >= 0, that contain w, the earliest;
                 the stream at w is what has arrived by w, so the content ends at w while `win_end` is the window's end

A window without a width (a count of triples, or all that came) has only an end: that of the policy.

Invariant: both ends of a window never move back as the instant moves on, for calendar durations too; engines slide
forward only. The k-th instant is always start + k * every, never the (k-1)-th plus every: months do not add up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from anabranch.model.instants import add_duration, subtract_duration
from anabranch.model.temporal import Duration

WindowPolicy = Literal["trailing", "right-open", "formal"]
WINDOW_POLICIES: tuple[str, ...] = get_args(WindowPolicy)

_EVER = -(2**63)
_MICROS_PER_SECOND = 1_000_000
_MICROS_PER_DAY = 86_400 * _MICROS_PER_SECOND
_MICROS_PER_AVERAGE_MONTH = 2_629_746 * _MICROS_PER_SECOND


class Bounds(NamedTuple):
    """The ends of one window's content, which of them belong to it, and the ends that a row reports.

    A formal window that does not exist (the instant lies in a gap between windows, or before the first) is empty: it
    opens and closes at the instant, has neither end, and reports the instant twice."""

    opens_at: int
    closes_at: int
    includes_opening: bool
    includes_closing: bool
    win_start: int
    win_end: int

    @property
    def first(self) -> int:
        """The smallest event time inside; instants are whole microseconds."""
        return self.opens_at if self.includes_opening else self.opens_at + 1

    @property
    def stop(self) -> int:
        """The smallest event time after the window."""
        return self.closes_at + 1 if self.includes_closing else self.closes_at

    def contains(self, event_time: int) -> bool:
        return self.first <= event_time < self.stop


def require_positive(duration: Duration, what: str) -> None:
    """Refuse a duration that does not move time forward; `what` names it in the user's words."""
    if duration.is_negative or (not duration.months and duration.micros < 1):
        raise ValueError(f"{what} must be longer than nothing, and no part of it negative; got {duration}")


def bounds(
    policy: WindowPolicy, instant: int, width: Duration, starting_at: int, every: Duration | None = None
) -> Bounds:
    """Return the window of a width at an instant. `starting_at` and `every` matter to the formal policy only."""
    length = _length(width)
    opens_at = instant - length if length is not None else subtract_duration(instant, width)
    match policy:
        case "trailing":
            return Bounds(opens_at, instant, False, True, opens_at, instant)
        case "right-open":
            return Bounds(opens_at, instant, True, False, opens_at, instant)
        case "formal":
            return _formal_bounds(instant, width, EvaluationInstants(starting_at, every))
    raise ValueError(f"no window policy `{policy}`; there are {', '.join(WINDOW_POLICIES)}")


@lru_cache(maxsize=1024)
def _length(width: Duration) -> int | None:
    """Return the length of a window's width; None where a calendar decides it."""
    require_positive(width, "WITHIN")
    return width.fixed_micros


def bounds_without_width(policy: WindowPolicy, instant: int) -> Bounds:
    """Return the bounds of a window of all events so far; the actual begin of the content is known only to its
    owner."""
    return Bounds(_EVER, instant, True, policy != "right-open", instant, instant)


def _formal_bounds(instant: int, width: Duration, openings: EvaluationInstants) -> Bounds:
    def closes_after_instant(index: int) -> bool:
        return add_duration(openings.instant(index), width) > instant

    if openings.every is None:
        index = 0
        exists = closes_after_instant(0)
    else:
        index = openings.search(closes_after_instant, 0, openings.index_at_or_after(subtract_duration(instant, width)))
        exists = True
    opens_at = openings.instant(index)
    if not exists or opens_at > instant:
        return Bounds(instant, instant, False, False, instant, instant)
    return Bounds(opens_at, instant, True, True, opens_at, add_duration(opens_at, width))


def last_multiple(step: Duration, micros: int, origin: int = 0) -> int:
    """The latest of the instants origin + k * step, k a whole number of either sign, that is not after `micros`."""
    fixed = step.fixed_micros
    if fixed:
        return micros - (micros - origin) % fixed
    return add_duration(origin, step, _multiples_until(step, micros, origin))


def first_multiple(step: Duration, micros: int, origin: int = 0) -> int:
    """The earliest of these instants that is not before `micros`."""
    return add_duration(origin, step, _multiples_until(step, micros - 1, origin) + 1)


def _multiples_until(step: Duration, micros: int, origin: int) -> int:
    """The greatest k with origin + k * step not after `micros`."""
    nanos = (step.months * _MICROS_PER_AVERAGE_MONTH + step.days * _MICROS_PER_DAY) * 1000 + step.time_nanos
    index = (micros - origin) * 1000 // nanos
    while add_duration(origin, step, index) > micros:
        index -= 1
    while add_duration(origin, step, index + 1) <= micros:
        index += 1
    return index


class EvaluationInstants:
    """The instants start + k * every, k = 0, 1, ...; without `every` there is only the start (RETURN)."""

    __slots__ = ("_step", "every", "once", "starting_at")

    def __init__(self, starting_at: int, every: Duration | None) -> None:
        if every is not None:
            require_positive(every, "EVERY")
        self.starting_at = starting_at
        self.every = every
        self.once = every is None
        self._step = 0 if every is None else every.fixed_micros or 0

    def instant(self, index: int) -> int:
        if self._step:
            return self.starting_at + index * self._step
        if self.every is None:
            return self.starting_at
        return add_duration(self.starting_at, self.every, index)

    def index_at_or_after(self, micros: int) -> int:
        """Return the smallest index with an instant not before `micros`; with one instant only, index 1 means none."""
        if micros <= self.starting_at:
            return 0
        if self.every is None:
            return 1
        if self._step:
            return -((self.starting_at - micros) // self._step)
        guess = (micros - self.starting_at) // approximate_micros(self.every)
        return self.search(lambda index: self.instant(index) >= micros, 0, guess)

    def search(self, holds: Callable[[int], bool], low: int, guess: int) -> int:
        """The smallest index >= low for which a monotone condition holds, found by doubling steps from a guess."""
        guess = max(low, guess)
        step = 1
        if holds(guess):
            high = guess
            while high > low and holds(max(low, high - step)):
                high = max(low, high - step)
                step *= 2
            low = max(low, high - step)
        else:
            low = guess + 1
            high = low
            while not holds(high):
                low = high + 1
                high += step
                step *= 2
        while low < high:
            middle = (low + high) // 2
            if holds(middle):
                high = middle
            else:
                low = middle + 1
        return low


def approximate_micros(duration: Duration) -> int:
    """Return about how long a duration is, with average months: good for guesses and for comparing widths."""
    return max(1, duration.months * _MICROS_PER_AVERAGE_MONTH + duration.micros)
