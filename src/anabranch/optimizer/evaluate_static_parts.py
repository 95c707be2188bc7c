"""Parts of the query that static knowledge alone answers are evaluated once (C-SPARQL, section 4).

    q  =  StaticPart(q)                                      when q reads static graphs only
    q  =  StaticPart(q over the static graphs, otherwise q)  when its predicates are known to be in static graphs

Law: while no window holds a triple with one of the predicates, the default graph has for these patterns what its static
graphs have; as soon as one does, the part itself is evaluated. So what is known only decides what is worth trying.

A part is as large as it can be: filters, projections, joins and whole subqueries belong to it, unless they read a
window, the clock or chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from anabranch.algebra.operators import Argument, Operator, Source, Static, Unit, Window
from anabranch.algebra.triples import Delegated, Describe, GraphPattern, Path, StaticPart, Values
from anabranch.algebra.walk import is_volatile, parts_of
from anabranch.model.terms import Iri
from anabranch.optimizer.knowledge import Knowledge, Rewrite
from anabranch.optimizer.narrow_sources import is_static
from anabranch.optimizer.property_paths import steps_needed
from anabranch.optimizer.rebuild import found, own_expressions, source_of, with_inputs


def evaluate_static_parts(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []
    changed = _changed(plan, knowledge, notes)
    return Rewrite(changed, tuple(notes)) if notes else None


@dataclass(frozen=True, slots=True)
class StaticForm:
    """How a plan is answered by static knowledge: a plan over static graphs alone, good while no window holds one of
    the predicates. `graphs` are those that it reads."""

    plan: Operator
    graphs: tuple[Static, ...] = ()
    unless: tuple[Iri, ...] = ()
    windows: tuple[Window, ...] = ()


def _changed(plan: Operator, knowledge: Knowledge, notes: list[str]) -> Operator:
    if isinstance(plan, StaticPart):
        return plan
    form = static_form(plan, knowledge)
    if form is None or not form.graphs:
        return with_inputs(plan, lambda below: _changed(below, knowledge, notes))
    graphs = ", ".join(dict.fromkeys(graph.name for graph in form.graphs))
    predicates = ", ".join(knowledge.speller().place(one) for one in form.unless)
    notes.append(f"once over {graphs}" + (f", unless a window holds {predicates}" if predicates else ""))
    if not form.unless:
        return StaticPart(plan, span=plan.span)
    return StaticPart(form.plan, plan, form.unless, form.windows, span=plan.span)


def static_form(plan: Operator, knowledge: Knowledge) -> StaticForm | None:
    """How static knowledge answers the plan; None where it does not."""
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
        case Delegated(default=default, named=named):
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
    """An operator over inputs that are all static, whose own expressions are static too."""
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
