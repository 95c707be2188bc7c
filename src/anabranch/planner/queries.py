"""Plans a whole query: its operators, and how a snapshot lists its rows.

Invariant: whatever is decided, the rows are those of the plan, and a snapshot lists them in the order of the query's
ORDER BY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import only_picks, reads_triples, root_order, sources, walk, windows
from anabranch.planner.choices import Choices
from anabranch.planner.flow.spec import NotIncremental, Spec
from anabranch.planner.patterns.questions import links_of
from anabranch.planner.plan import Mode, Planner, incremental
from anabranch.planner.reads import needed_reads
from anabranch.planner.specs.building import distinct
from anabranch.planner.subqueries import SubqueryScope


@dataclass(frozen=True, slots=True)
class Listing:
    """How a snapshot lists its rows in the order of ORDER BY: the operator that has them in order, the positions of the
    columns to show, and whether equal rows are shown once."""

    ordered: Spec
    picks: tuple[int, ...]
    distinct: bool


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The operators of a query. `root` is None when the plain evaluator answers the whole query."""

    plan: op.Operator
    root: Spec | None
    listing: Listing | None
    modes: Mapping[int, Mode]
    terms: bool

    def mode(self, operator: op.Operator) -> Mode | None:
        return self.modes.get(id(operator))

    def way(self, operator: op.Operator) -> tuple[str, str] | None:
        """Return how an operator is executed, as EXPLAIN shows it."""
        mode = self.modes.get(id(operator))
        if mode is None:
            return None
        execution = "once per version" if mode.execution == "once" else mode.execution
        return execution, mode.detail or execution

    @property
    def is_incremental(self) -> bool:
        """Whether no part that reads a window is recomputed."""
        return not any(mode.execution == "recompute" for mode in self.modes.values())


def plan_query(plan: op.Operator, choices: Choices, listed: bool = True) -> QueryPlan:
    """Plan the operators of a whole query. `listed`: all rows will be listed, in order."""
    planner = Planner(choices, reads_triples(plan), needed_reads(plan), len(sources(plan)) > 1)
    try:
        root, listing = _root(planner, plan, listed)
    except NotIncremental as reason:
        planner.modes.clear()
        planner.recomputed(plan, Mode("recompute", str(reason)))
        return QueryPlan(plan, None, None, planner.modes, planner.terms)
    if root.name == "Recomputed" and root.about is plan:
        return QueryPlan(plan, None, None, planner.modes, planner.terms)
    _name_indexes(planner, plan)
    return QueryPlan(plan, root, listing, planner.modes, planner.terms)


def _name_indexes(planner: Planner, plan: op.Operator) -> None:
    """Add the name of the connectivity index to the mode of each operator that uses one."""
    links = planner.subqueries.links
    for node in walk(plan):
        if not isinstance(node, op.Operator):
            continue
        mode = planner.modes.get(id(node))
        names = dict.fromkeys(links[one].name for one in links_of(node) if one in links)
        if mode is not None and mode.execution == "incremental" and names:
            planner.modes[id(node)] = Mode("incremental", ", ".join((mode.detail, *names)))


def recomputed(plan: op.Operator, reason: str) -> QueryPlan:
    """Return a plan that leaves the whole query to the plain evaluator."""
    modes = {id(node): Mode("recompute") for node in walk(plan) if isinstance(node, op.Operator)}
    modes[id(plan)] = Mode("recompute", reason)
    return QueryPlan(plan, None, None, modes, reads_triples(plan))


def _root(planner: Planner, plan: op.Operator, listed: bool) -> tuple[Spec, Listing | None]:
    scope = SubqueryScope()
    tops: list[op.Project | op.Distinct] = []
    below = plan
    while isinstance(below, op.Distinct) or (isinstance(below, op.Project) and only_picks(below)):
        tops.append(below)
        below = below.input
    if not listed or root_order(below) is None or not windows(below):
        return planner.build(plan, scope), None
    if isinstance(below, op.Slice):
        spec = planner.build(below, scope)
        ordered = spec
        while ordered.name != "OrderedSlice" or ordered.picks:
            if len(ordered.inputs) != 1 or ordered.name == "RecomputedOverRows":
                raise NotIncremental("its rows are asked for in an order that an operator above loses")
            (ordered,) = ordered.inputs
    else:
        assert isinstance(below, op.Order)
        spec = ordered = planner.ordered(None, below, planner.build(below.input, scope))
        while ordered.picks:
            (ordered,) = ordered.inputs
        planner.modes[id(below)] = incremental(below, spec.name)
    if any(isinstance(top, op.Distinct) for top in tops[1:]):
        raise NotIncremental("its rows are asked for in an order that an operator above loses")
    for top in reversed(tops):
        if isinstance(top, op.Distinct):
            spec = distinct(spec, top, planner.terms)
        else:
            spec = planner.project(top, spec, top.items, scope)
        planner.modes[id(top)] = incremental(top, spec.name)
    once = bool(tops) and isinstance(tops[0], op.Distinct)
    return spec, Listing(ordered, _picks(plan, ordered.columns), once)


def _picks(plan: op.Operator, columns: tuple[str, ...]) -> tuple[int, ...]:
    """Return the positions of a plan's columns in the rows of the ordered operator below its projections."""
    names = list(plan.columns)
    while not isinstance(plan, op.Order):
        if isinstance(plan, op.Project):
            sources = {name: one.name for name, one in plan.items if isinstance(one, ex.Variable)}
            names = [sources[name] for name in names]
        (plan,) = plan.inputs
    return tuple(columns.index(name) for name in names)
