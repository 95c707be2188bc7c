"""The windows that hold an edge: trailing windows (w - a, w] at the instants start + k * slide, by time or by count.

Window k holds an edge of time t from the first k whose instant is not before t until the first k that opens at t or
later. The second number never falls as time rises, and is all that an index of connectivity needs to know about an
edge: it is the edge's tick, and window k holds the edges with a tick of at least k + 1. So an index sees numbers of
windows and no instants, whatever the widths are, months included, and a tick lives for as many slides as the window
has.

A window by count is the same over places: the n-th edge has the time n, and the first instant is one slide.

Invariant: `closing` and `leaving` of a time depend on that time alone, and both rise with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.errors import EngineError, EvaluationError
from anabranch.model.instants import MICROS_PER_DAY, Instant, subtract_duration
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.windows import EvaluationInstants, approximate_micros, first_multiple, require_positive

Extent = Duration | int
"""How long a window or a slide is: a duration, or a number of edges."""
ExtentLike = Duration | timedelta | str | int

_COUNT = re.compile(r"\s*(\d+)\s*(?:e|edges?)?\s*", re.IGNORECASE)
_SHORTEST_MONTH, _LONGEST_MONTH = 28, 31
_MOST_WINDOWS = (1 << 31) - 8  # the ticks of edges that live at a time have 31 bits


def extent(value: ExtentLike, what: str) -> Extent:
    """A duration from ISO 8601 text or a timedelta; a number of edges from a whole number, or text such as `1000e`."""
    match value:
        case int() | Duration():
            found: Extent = value
        case timedelta():
            found = Duration(0, 0, 0, (value // timedelta(microseconds=1)) * 1000)
        case _ if count := _COUNT.fullmatch(value):
            found = int(count[1])
        case _:
            try:
                found = parse_duration(value.strip())
            except EvaluationError as error:
                raise EngineError(
                    f"{what}: {error.diagnostic.message}\n"
                    "hint: write a duration such as PT1H or P7D, or a number of edges such as 1000e"
                ) from None
    try:
        if isinstance(found, Duration):
            require_positive(found, what)
        elif found < 1:
            raise ValueError(f"{what} must be at least one edge; got {found}")
    except ValueError as error:
        raise EngineError(f"{error}\nhint: write a duration such as PT1M, or a number of edges such as 50e") from None
    return found


class WindowSequence(Protocol):
    def closing(self, times: Ids) -> Ids:
        """Return, for each time, the first window whose instant is not before it."""

    def leaving(self, times: Ids) -> Ids:
        """Return, for each time, the first window that opens at it or later."""

    def at(self, number: int) -> int:
        """Return the instant of a window."""

    def opens_at(self, number: int) -> int:
        """Return the time at which a window opens; this time itself is outside."""


@dataclass(frozen=True, slots=True)
class WindowShape:
    """A width and a slide of the same kind."""

    width: Extent
    slide: Extent

    @classmethod
    def of(cls, window: ExtentLike, slide: ExtentLike) -> WindowShape:
        shape = cls(extent(window, "the window"), extent(slide, "the slide"))
        if isinstance(shape.width, int) != isinstance(shape.slide, int):
            raise EngineError(
                f"a window of {_said(shape.width)} does not go with a slide of {_said(shape.slide)}\n"
                "hint: give both as durations, or both as numbers of edges"
            )
        if shape.widest > _MOST_WINDOWS:
            raise EngineError(
                f"a window of {_said(shape.width)} has too many slides of {_said(shape.slide)}\n"
                f"hint: one edge may be in {_MOST_WINDOWS:,} windows at most; make the slide longer"
            )
        return shape

    @property
    def counts(self) -> bool:
        return isinstance(self.width, int)

    @property
    def widest(self) -> int:
        """The largest number of windows that an edge can be in."""
        match self.width, self.slide:
            case int() as width, int() as slide:
                return -(-width // slide)
            case Duration() as long, Duration() as step:
                most = long.micros + long.months * _LONGEST_MONTH * MICROS_PER_DAY
                return -(-most // max(1, step.micros + step.months * _SHORTEST_MONTH * MICROS_PER_DAY))
        raise AssertionError

    @property
    def has_gaps(self) -> bool:
        """Whether edges between two windows may be in neither."""
        match self.width, self.slide:
            case int() as width, int() as slide:
                return width < slide
            case Duration() as long, Duration() as step:
                return approximate_micros(long) < approximate_micros(step)
        raise AssertionError

    def windows(self, first: int, starting_at: int | None) -> WindowSequence:
        """Return the windows from an instant on.

        Without an instant, they begin at the first multiple of the slide since the epoch that is not before the first
        edge.
        """
        match self.width, self.slide:
            case int() as width, int() as slide:
                return FixedWindows(slide, width, slide)
            case Duration() as long, Duration() as step:
                start = first_multiple(step, first) if starting_at is None else starting_at
                fixed = long.fixed_micros, step.fixed_micros
                if fixed[0] and fixed[1]:
                    return FixedWindows(start, fixed[0], fixed[1], Instant)
                return CalendarWindows(start, long, step)
        raise AssertionError


@dataclass(frozen=True, slots=True)
class FixedWindows:
    """Windows whose width and slide have a fixed length."""

    start: int
    width: int
    slide: int
    kind: type[int] = int

    def closing(self, times: Ids) -> Ids:
        return np.maximum(-((self.start - times) // self.slide), 0)

    def leaving(self, times: Ids) -> Ids:
        return np.maximum(-((self.start - self.width - times) // self.slide), 0)

    def at(self, number: int) -> int:
        return self.kind(self.start + number * self.slide)

    def opens_at(self, number: int) -> int:
        return self.kind(self.start + number * self.slide - self.width)


class CalendarWindows:
    """Windows whose width or slide is in months, which differ in length. Work: a step per window, not per time."""

    __slots__ = ("_instants", "_width")

    def __init__(self, start: int, width: Duration, slide: Duration) -> None:
        self._instants = EvaluationInstants(start, slide)
        self._width = width

    def closing(self, times: Ids) -> Ids:
        return self._first_not_before(times, self.at)

    def leaving(self, times: Ids) -> Ids:
        return self._first_not_before(times, self.opens_at)

    def _first_not_before(self, times: Ids, instant_of: Callable[[int], int]) -> Ids:
        """Return, for each time, the first window whose instant is not before it; instants rise with the window."""
        found, order = np.empty(len(times), np.int64), np.argsort(times, kind="stable")
        rising, done, number = times[order], 0, 0
        while done < len(rising):
            time = int(rising[done])
            number = self._instants.search(lambda k, t=time: instant_of(k) >= t, number, number)  # type: ignore[misc]
            last = int(np.searchsorted(rising, instant_of(number), "right"))
            found[order[done:last]] = number
            done = last
        return found

    def at(self, number: int) -> int:
        return Instant(self._instants.instant(number))

    def opens_at(self, number: int) -> int:
        return Instant(subtract_duration(self._instants.instant(number), self._width))


def _said(length: Extent) -> str:
    return f"{length:,} edge{'' if length == 1 else 's'}" if isinstance(length, int) else str(length)
