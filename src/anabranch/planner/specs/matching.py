"""Specs of the matchers of patterns: which matcher, over which windows, and its name in EXPLAIN.

The work of the log matcher (SPECTRA) follows the arrivals and departures. Where a slide replaces most of the window,
evaluating the whole window costs less. The planner decides by the width and the slide, unless `Choices.matcher` forces
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import parts_of
from anabranch.planner.choices import Choices
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.planner.leaves.array_matches import ArrayMatch, reason_for_objects
from anabranch.planner.leaves.asked_pairs import AskedPairs, EndColumns
from anabranch.planner.leaves.budgets import Budgets
from anabranch.planner.leaves.given import ConstantRows
from anabranch.planner.leaves.matches import ElementMatch, MergedMatch, SlidingMatch, WindowMatch
from anabranch.planner.leaves.triple_times import TripleTimes
from anabranch.planner.patterns.kinds import GraphMatch, PatternComponent, ShortestKind, TrailKind
from anabranch.planner.patterns.questions import seconds
from anabranch.planner.patterns.triple_patterns import NumberBounds, TripleComponent, components
from anabranch.planner.specs.joins import hash_join
from anabranch.snapshot.rdf.static import MOST_ROWS

_MOST_PATTERNS = 64
_ENDS = {"both": "ComponentPairs", "out": "PathTrees", "in": "PathTrees"}  # for trails that are found once
_REPLACED = 0.5  # from this share of the window per slide on, evaluating all of it costs less


def triples_spec(
    operator: tr.GraphPattern, bounds: Mapping[str, NumberBounds], choices: Choices, apart: bool = False
) -> list[Spec]:
    """Return the matchers of a basic graph pattern, one for each part that shares no variable with the others. `apart`:
    the pattern is evaluated apart from the rest of the query, and its number of matches is limited."""
    if not operator.patterns:
        return [Spec("Given", partial(ConstantRows, [()], 0), (), about=operator)]
    bare = [replace(pattern, times=()) for pattern in operator.patterns]
    return [_component_spec(operator, one, bounds, choices, apart) for one in components(bare)]


def _component_spec(
    operator: tr.GraphPattern,
    component: TripleComponent,
    bounds: Mapping[str, NumberBounds],
    choices: Choices,
    apart: bool,
) -> Spec:
    if len(component.patterns) > _MOST_PATTERNS:
        raise NotIncremental(f"more than {_MOST_PATTERNS} patterns hang together")
    parts = parts_of(operator.source)
    speller = Speller(choices.prefixes, sparql=True)
    said = " . ".join(map(speller.triple, component.patterns))
    part = MOST_ROWS if apart and len(component.patterns) > 1 else None
    budgets = Budgets(choices.max_matches, choices.max_bytes, said, operator.span, part=part)
    if len(parts) > 1 or not isinstance(parts[0], op.Window):
        name = "LogMatcher"

        def make(runtime: Runtime) -> FlowPart:
            return MergedMatch(parts, component.conjunction(runtime.dictionary, bounds), budgets, runtime)
    else:
        window = parts[0]
        name = _chosen(window, choices)

        def make(runtime: Runtime) -> FlowPart:
            conjunction = component.conjunction(runtime.dictionary, bounds)
            matcher = SlidingMatch if name == "LogMatcher" else WindowMatch
            return matcher(window, conjunction, budgets, runtime)

    return Spec(name, make, component.columns, about=operator)


def with_times(spec: Spec, pattern: tr.TriplePattern, source: op.TripleSource, about: op.Operator) -> Spec:
    """Add the time columns of a pattern to the matches that contain its triple."""
    windows = [part for part in parts_of(source) if isinstance(part, op.Window)]
    for column, asked in pattern.times:
        read = windows if asked is None else [asked]
        times = times_spec(read, pattern.places, column, about)
        sure = (set(spec.columns), set(times.columns))
        outer = not set(parts_of(source)) <= set(read)  # a triple may come from elsewhere, and has no time then
        spec = hash_join(spec, times, True, (), sure, about, outer)
    return spec


def times_spec(
    windows: Sequence[op.Window], places: Sequence[tr.TermPlace], column: str, about: op.Operator | None
) -> Spec:
    """Return the spec of the times of triples that fit a pattern; its columns are the pattern's variables and the
    time."""
    read = tuple(dict.fromkeys(windows))
    names = dict.fromkeys(place.name for place in places if isinstance(place, tr.Var))
    return Spec("TripleTimes", partial(TripleTimes, read, places), (*names, column), about=about, reads=read)


def _chosen(window: op.Window, choices: Choices) -> Literal["LogMatcher", "SemiJoins"]:
    match choices.matcher:
        case "log":
            return "LogMatcher"
        case "semijoin":
            return "SemiJoins"
    slide = window.step or choices.slide
    if window.width is not None and slide is not None and seconds(slide) >= _REPLACED * seconds(window.width):
        return "SemiJoins"
    return "LogMatcher"


def elements_spec(operator: op.Pattern, match: GraphMatch, choices: Choices, asking: Spec | None = None) -> list[Spec]:
    """Return the matchers of a property-graph pattern, one for each part that shares no node with the others. `asking`
    are the rows that limit the search for shortest paths."""
    if not isinstance(operator.source, op.Window):
        raise NotIncremental("a graph that does not move")
    said = ", ".join(Speller().path(path) for path in operator.paths)
    budgets = Budgets(choices.max_matches, choices.max_bytes, said, operator.span)
    return [_element_spec(operator, operator.source, one, match, budgets, asking) for one in match.components]


def _element_spec(
    operator: op.Pattern,
    window: op.Window,
    component: PatternComponent,
    match: GraphMatch,
    budgets: Budgets,
    asking: Spec | None,
) -> Spec:
    if len(component.conjunction.patterns) > _MOST_PATTERNS:
        raise NotIncremental(f"more than {_MOST_PATTERNS} patterns hang together")
    shortest = [kind for kind in match.kinds if isinstance(kind, ShortestKind) and kind.number in component.kinds]
    asks = {} if asking is None else {one.asked: _asks(asking, one.asked) for one in shortest if any(one.asked)}

    on_arrays = reason_for_objects(match, component) is None

    def make(runtime: Runtime) -> FlowPart:
        if on_arrays:
            return ArrayMatch(window, match, component, budgets, runtime)
        asked = {columns: runtime.shared[spec] for columns, spec in asks.items()}
        return ElementMatch(window, match, component, budgets, runtime, asked)

    ends = {_ENDS[kind.direction] for kind in match.kinds if isinstance(kind, TrailKind) and _is_once(kind, component)}
    names = ("LogMatcher", *sorted(ends), *(("ShortestPaths",) if shortest else ()))
    return Spec(", ".join(names), make, component.names, tuple(asks.values()), operator)


def _asks(asking: Spec, columns: EndColumns) -> Spec:
    """Return the spec of the counter of the path ends that rows ask about; at run time it is found in `shared` by this
    spec."""
    places = [None if name is None else asking.index(name) for name in columns]

    def make(runtime: Runtime) -> FlowPart:
        found = AskedPairs(columns, places, runtime.dictionary)
        runtime.shared[spec] = found
        return found

    spec = Spec("AskedPairs", make, (), (asking,))
    return spec


def _is_once(kind: TrailKind, component: PatternComponent) -> bool:
    return kind.once and kind.number in component.kinds
