"""Changes of windows at an instant, in the form that the leaves of a flow read.

Invariant: a feed belongs to one query and one window, and is read once per instant. The sum of its changes is the
content of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from anabranch.algebra.operators import Source, Window
from anabranch.delta.batch import Ids
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.errors import InternalError
from anabranch.model.union import ElementChanges
from anabranch.snapshot.context import Context


class TripleSlide(NamedTuple):
    """Triples that arrived, as a matrix of ids, and how many of all triples that ever arrived have left by now."""

    arrived: Ids
    left: int


class TripleSlides(NamedTuple):
    """Triples that arrived in several slides. Of all triples that ever arrived, `ends` is how many had arrived at each
    slide, and `lefts` how many had left."""

    arrived: Ids
    ends: Ids
    lefts: Ids


class RelationshipSlide(NamedTuple):
    """Relationships of the arrived events as (source, type, target), once per arrival; how many of all arrivals so far
    have left by now; and whether a relationship arrived twice in this slide with different ends."""

    arrived: Ids
    left: int
    moved: bool


class GraphSlide(NamedTuple):
    """Elements of the arrived events, and the position before which events have left by now. `label_sets` and `types`
    have the names behind the numbers in the rows, `keys` the properties whose values are there. `is_void`: events
    disagree, and the union of the window is empty."""

    nodes: NodeRows
    links: LinkRows
    first: int
    label_sets: Sequence[tuple[str, ...]]
    types: Sequence[str]
    keys: tuple[str, ...]
    is_void: bool = False


class GraphSlides(NamedTuple):
    """Elements of the events that arrived in several slides: at slide i those before position `stops[i]` have arrived,
    and those before `firsts[i]` have left. The rest is as in `GraphSlide`."""

    nodes: NodeRows
    links: LinkRows
    firsts: Ids
    stops: Ids
    label_sets: Sequence[tuple[str, ...]]
    types: Sequence[str]
    keys: tuple[str, ...]


WindowSlides: TypeAlias = TripleSlides | GraphSlides


def _no_times(window: Window) -> Ids:
    raise InternalError("this instant was given no times of triples")


def _no_elements(window: Window) -> GraphSlide:
    raise InternalError("this instant was given no elements on arrays")


class Tick(NamedTuple):
    """One instant of a flow. `triples`, `elements` and `relationships` return the changes of a window. `signature`
    returns a value that differs when the content of a source may differ. `strict`: events that disagree make the union
    empty. `context` is that of the plain evaluator. `settled`: the windows have the content of the instant; before
    that, recomputed parts wait. `times` returns the event times of the triples that `triples` returns as arrived;
    `graph` the elements of arrived events, with the values of `Runtime.properties`."""

    context: Context
    triples: Callable[[Window], TripleSlide]
    elements: Callable[[Window], ElementChanges]
    relationships: Callable[[Window], RelationshipSlide]
    signature: Callable[[Sequence[Source]], Hashable]
    strict: bool = False
    settled: bool = True
    times: Callable[[Window], Ids] = _no_times
    graph: Callable[[Window], GraphSlide] = _no_elements
