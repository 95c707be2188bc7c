"""Finds the streams of which queries use nothing but connectivity, and the links that these queries need.

Where every use of a stream is in connected(), component() or componentSize() over its triples, a window may hold fewer
triples than arrived: a spanning forest of the links between two neighbouring borders. Borders are the instants at which
the windows of all queries begin and end, over all their evaluation instants; no window begins or ends between two of
them. The borders are not known before the run for windows by count, for evaluation instants that depend on arrivals or
on the first event, and for durations by the calendar.

Law: with the links that `LinkStream` keeps, each query answers at each instant as with all triples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Registration, Window
from anabranch.algebra.walk import read_by, walk
from anabranch.model.temporal import Duration
from anabranch.model.windows import WindowPolicy


@dataclass(frozen=True, slots=True)
class LinkStream:
    """The part of a stream that queries need. Each of `kinds` is a set of predicates; None: all links. `borders` are
    instants that repeat: a period and one of them, in microseconds. `lateness` is how much older than those before it a
    triple may be, in microseconds."""

    kinds: tuple[tuple[str, ...] | None, ...]
    borders: tuple[tuple[int, int], ...]
    lateness: int

    @property
    def name(self) -> str:
        """A key that is equal for two link streams that keep the same links of the same triples."""
        return json.dumps([self.kinds, self.borders])


def link_streams(
    queries: Iterable[tuple[Registration, WindowPolicy]], lateness_of: Callable[[str], Duration | None]
) -> dict[str, LinkStream]:
    """Return, by name, the streams of which queries need only links; `lateness_of` gives how late their events may
    be."""
    kinds: dict[str, dict[tuple[str, ...] | None, None]] = {}
    borders: dict[str, set[tuple[int, int]]] = {}
    whole: set[str] = set()
    for registration, policy in queries:
        for window, links in _uses(registration):
            name = window.stream.name
            if name is None:  # whichever stream there is
                return {}
            ends = _borders(registration, policy, window)
            if links is None or not links.of_triples or ends is None:
                whole.add(name)
            else:
                kinds.setdefault(name, {})[links.kinds] = None
                borders.setdefault(name, set()).update(ends)
    found: dict[str, LinkStream] = {}
    for name, asked in kinds.items():
        lateness = lateness_of(name)
        allowed = 0 if lateness is None else lateness.fixed_micros
        if name not in whole and allowed is not None:
            found[name] = LinkStream(tuple(sorted(asked, key=repr)), tuple(sorted(borders[name])), allowed)
    return found


def _uses(registration: Registration) -> Iterator[tuple[Window, ex.Links | None]]:
    for node in walk(registration.plan):
        links = node.links if isinstance(node, ex.Connected | ex.Component) else None
        for source in read_by(node):
            if isinstance(source, Window):
                yield source, links


def _borders(registration: Registration, policy: WindowPolicy, window: Window) -> set[tuple[int, int]] | None:
    """Return the borders of a window over the instants of a query; None when they are not known before the query
    runs."""
    width = None if window.width is None else window.width.fixed_micros
    every = None if registration.every is None else registration.every.fixed_micros
    begin = registration.starting_at
    if begin is None and registration.aligned:
        begin = 0
    if not width or not every or begin is None or registration.arrivals is not None:
        return None
    period, at = every, begin
    if window.step is not None:
        step = window.step.fixed_micros
        if not step:
            return None
        period, at = step, registration.starting_at or 0
    match policy:
        case "trailing":
            ends = {(period, at - width + 1), (period, at + 1)}
        case "right-open":
            ends = {(period, at - width), (period, at)}
        case "formal":
            ends = {(every, begin), (period, at + 1)}
    return {(each, place % each) for each, place in ends}
