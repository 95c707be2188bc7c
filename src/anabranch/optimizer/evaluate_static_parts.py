"""Marks the parts of a query that static knowledge alone answers; they are evaluated once (C-SPARQL, section 4).

    q  =  StaticPart(q)                                      when q reads static graphs only
    q  =  StaticPart(q over the static graphs, otherwise q)  when its predicates are known to be in static graphs

Law: while no window holds a triple with one of the predicates, the default graph has the same matches for these
patterns as its static graphs; as soon as a window does, the part itself is evaluated. So knowledge only decides which
parts are worth a try.

A part is as large as possible: filters, projections, joins and whole subqueries belong to it, unless they read a
window, the clock or chance. But it must be connected, by variables or by the conditions of its filters, and its rows
must be few compared with the triples that it reads (`sizes`). Two patterns that nothing connects, or that frequent
values connect, are separate parts. Joins are ordered so that each side shares a column with those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from anabranch.algebra.operators import (
    Argument,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Project,
    Source,
    Static,
    Unit,
    Window,
)
from anabranch.algebra.triples import Describe, GraphPattern, Path, PluginQuery, StaticPart, Values
from anabranch.algebra.walk import conjuncts, is_volatile, only_picks, parts_of
from anabranch.model.terms import Iri
from anabranch.optimizer.merge_joined_patterns import is_plain_join
from anabranch.optimizer.narrow_sources import components, connected, is_static, joined
from anabranch.optimizer.support.columns import reads
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.property_paths import steps_needed
from anabranch.optimizer.support.rebuild import found, own_expressions, source_of, with_inputs
from anabranch.optimizer.support.sizes import is_small


def evaluate_static_parts(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []
    changed = _changed(plan, knowledge, notes)
    return Rewrite(changed, tuple(notes)) if notes else None


@dataclass(frozen=True, slots=True)
class StaticForm:
    """A plan over static graphs that answers a part of a query while no window holds one of the predicates `unless`.
    `graphs` are the graphs that it reads."""

    plan: Operator
    graphs: tuple[Static, ...] = ()
    unless: tuple[Iri, ...] = ()
    windows: tuple[Window, ...] = ()


def _changed(plan: Operator, knowledge: Knowledge, notes: list[str]) -> Operator:
    if isinstance(plan, StaticPart):
        return plan
    form = static_form(plan, knowledge)
    if form is None or not form.graphs:
        loose = _loose_leaves(plan, knowledge)
        if loose is not None:
            return joined([_changed(leaf, knowledge, notes) for leaf in loose])
        return with_inputs(plan, lambda below: _changed(below, knowledge, notes))
    if not _is_worth_a_part(form.plan, knowledge):
        leaves = _leaves(plan, knowledge)
        if len(leaves) > 1:
            return joined([_changed(leaf, knowledge, notes) for leaf in leaves])
        return with_inputs(plan, lambda below: _changed(below, knowledge, notes))
    graphs = ", ".join(dict.fromkeys(graph.name for graph in form.graphs))
    predicates = ", ".join(knowledge.speller().place(one) for one in form.unless)
    notes.append(f"once over {graphs}" + (f", unless a window holds {predicates}" if predicates else ""))
    if not form.unless:
        return StaticPart(plan, span=plan.span)
    return StaticPart(form.plan, plan, form.unless, form.windows, span=plan.span)


def _is_worth_a_part(plan: Operator, knowledge: Knowledge) -> bool:
    return len(components([one for one in _edges(plan) if one])) < 2 and is_small(plan, knowledge.sizes)


def _edges(plan: Operator) -> list[frozenset[str]]:
    """Return the sets of columns that patterns and conditions connect."""
    match plan:
        case GraphPattern(patterns=patterns):
            return [frozenset(one.variables) for one in patterns]
        case Join(left, right, condition) | LeftJoin(left, right, condition):
            return [*_edges(left), *_edges(right), *(reads(one) for one in conjuncts(condition))]
        case Filter(below, condition):
            return [*_edges(below), *(reads(one) for one in conjuncts(condition))]
        case Extend(below, column, expression):
            return [*_edges(below), reads(expression) | {column}]
        case Project(below):
            return _edges(below) if only_picks(plan) else [frozenset(plan.columns)]
        case _:
            return [frozenset(plan.columns)]


def _loose_leaves(plan: Operator, knowledge: Knowledge) -> list[Operator] | None:
    """Return the leaves of a tree of joins with static leaves, if one leaf shares no column with those before it; else
    None."""
    leaves = _leaves(plan, knowledge) if is_plain_join(plan) else []
    if not any((form := static_form(leaf, knowledge)) is not None and form.graphs for leaf in leaves):
        return None
    met: set[str] = set()
    for leaf in leaves:
        if met and met.isdisjoint(leaf.columns):
            return leaves
        met.update(leaf.columns)
    return None


def _leaves(plan: Operator, knowledge: Knowledge) -> list[Operator]:
    """Return the leaves of a tree of joins; static patterns that nothing connects are separate leaves."""
    if is_plain_join(plan):
        return [leaf for side in plan.inputs for leaf in _leaves(side, knowledge)]
    if isinstance(plan, GraphPattern) and static_form(plan, knowledge) is not None:
        pieces = connected(list(plan.patterns))
        return [replace(plan, patterns=piece) for piece in pieces] if len(pieces) > 1 else [plan]
    return [plan]


def static_form(plan: Operator, knowledge: Knowledge) -> StaticForm | None:
    """Return the static form of the plan; None where static knowledge does not answer it."""
    match plan:
        case GraphPattern(source=source, patterns=patterns):
            if not patterns:
                return StaticForm(plan)
            if not all(is_static(one, source, knowledge) for one in patterns) and _windows(parts_of(source)):
                return None
            predicates = [one.predicate for one in patterns if isinstance(one.predicate, Iri)]
            return _over_graphs(parts_of(source), predicates, lambda parts: replace(plan, source=source_of(parts)))
        case Path(source=source):
            steps = steps_needed(plan)
            graphs = _graphs(parts_of(source))
            if _windows(parts_of(source)) and (
                steps is None or not all(any(knowledge.holds(one, step) for one in graphs) for step in steps)
            ):
                return None
            return _over_graphs(parts_of(source), sorted(steps or ()), lambda p: replace(plan, source=source_of(p)))
        case Unit() | Values():
            return StaticForm(plan)
        case Argument() | StaticPart():
            return None
        case PluginQuery(default=default, named=named):
            read = (*parts_of(default), *(source for _, source in named))
            return None if _windows(read) else StaticForm(plan, _graphs(read))
        case _:
            return _inner(plan, knowledge)


def _over_graphs(
    parts: tuple[Source, ...], predicates: list[Iri], narrowed: Callable[[tuple[Source, ...]], Operator]
) -> StaticForm:
    graphs, windows = _graphs(parts), _windows(parts)
    unless = tuple(dict.fromkeys(predicates)) if windows else ()
    return StaticForm(narrowed(graphs), graphs, unless, windows)


def _inner(plan: Operator, knowledge: Knowledge) -> StaticForm | None:
    """Return the static form of an operator whose inputs and own expressions are all static; else None."""
    graphs: list[Static] = []
    if isinstance(plan, Describe):
        if _windows(parts_of(plan.source)):
            return None
        graphs += _graphs(parts_of(plan.source))
    for expression in own_expressions(plan):
        if is_volatile(expression) or next(found(expression, Window), None) is not None:
            return None
        graphs += found(expression, Static)
    forms = [static_form(below, knowledge) for below in plan.inputs]
    known = [form for form in forms if form is not None]
    if not known or len(known) != len(forms):
        return None
    replaced = iter(known)
    return StaticForm(
        with_inputs(plan, lambda _: next(replaced).plan),
        tuple(dict.fromkeys((*graphs, *(graph for form in known for graph in form.graphs)))),
        tuple(dict.fromkeys(one for form in known for one in form.unless)),
        tuple(dict.fromkeys(one for form in known for one in form.windows)),
    )


def _graphs(parts: tuple[Source, ...]) -> tuple[Static, ...]:
    return tuple(part for part in parts if isinstance(part, Static))


def _windows(parts: tuple[Source, ...]) -> tuple[Window, ...]:
    return tuple(part for part in parts if isinstance(part, Window))
