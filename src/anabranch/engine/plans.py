"""The plan that a query runs: its text's plan after the rewrites, made again when static knowledge changes.

Rules may use the content of static graphs (a pattern that no static triple fits is asked of the windows alone), so a
plan belongs to one version of the graphs that it reads.

Invariant: whatever the rules, the rows are those of the plan as the text has it; scheduling uses that plan alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from anabranch.algebra.operators import Operator, Registration, Window
from anabranch.algebra.walk import asks_graph, read_by, reads_triples, walk
from anabranch.engine.contents import Model
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.errors import EngineError, closest
from anabranch.model.terms import Iri
from anabranch.model.values import Value
from anabranch.optimizer import RULES, Knowledge, OptimizedPlan, optimize
from anabranch.planner.choices import Choices
from anabranch.planner.queries import QueryPlan, plan_query, recomputed
from anabranch.snapshot import CompiledPlan, compile_plan

if TYPE_CHECKING:
    from anabranch.engine.surroundings import SharedState

Evaluator = Literal["own", "plugin"]
"""Who answers at an instant: our algebra, or the SPARQL plug-in over the windows' content."""
EVALUATORS: tuple[Evaluator, ...] = get_args(Evaluator)

StaticPartsMode = Literal["apart", "together", "anew"]
"""How parts over static graphs are answered: each by itself, with the rest of the query, or again at each instant."""

PARTING = frozenset({"narrow_sources", "evaluate_static_parts"})
"""The rules that set parts of a query apart."""

ALL_RULES: tuple[str, ...] = tuple(rule.__name__ for rule in RULES)
_BY_NAME = {rule.__name__: rule for rule in RULES}


def rule_names(rules: str | Iterable[str]) -> tuple[str, ...]:
    """Return rule names from `all`, `none`, or names, as a text with commas or one by one."""
    if rules == "all":
        return ALL_RULES
    if rules == "none":
        return ()
    names = [name.strip() for name in rules.split(",")] if isinstance(rules, str) else list(rules)
    for name in names:
        if name not in _BY_NAME:
            near = closest(name, ALL_RULES, limit=1)
            guess = f"did you mean {near[0]}?  " if near else ""
            raise EngineError(f"there is no rule `{name}`; {guess}There are all, none, {', '.join(ALL_RULES)}")
    return tuple(name for name in ALL_RULES if name in names)


def optimized(
    registration: Registration, static_names: Iterable[str], around: SharedState, apart: bool = True
) -> OptimizedPlan:
    """Return a query's plan after the rules, for the present static graphs. `apart`: parts may be set apart."""
    graphs = {name: around.static(name) for name in (static_names if reads_triples(registration.plan) else ())}
    known = {
        name: frozenset(term for term in graph.as_triples().predicates() if isinstance(term, Iri))
        for name, graph in graphs.items()
    }
    sizes = {name: graph.sizes() for name, graph in graphs.items()}
    rules = [_BY_NAME[name] for name in around.rules if apart or name not in PARTING]
    return optimize(registration.plan, Knowledge(known, registration.prefixes, sizes), rules)


def models_of(plan: Operator) -> tuple[tuple[Window, Model], ...]:
    """Return the windows of a plan, each with the model in which it is read."""
    found: dict[tuple[Window, Model], None] = {}
    for node in walk(plan):
        model: Model = "graph" if asks_graph(node) else "triples"
        found |= dict.fromkeys((source, model) for source in read_by(node) if isinstance(source, Window))
    return tuple(found)


class Plans:
    """One query's plan for the present static graphs, compiled for the plain evaluator and planned on changes.

    `models` are the windows that the plan reads, each with its model. `most_matches` limits its patterns, beside the
    limit that the options set.
    """

    __slots__ = (
        "_compiled",
        "_parts",
        "_plain",
        "_plan",
        "_planned",
        "_registration",
        "_static_names",
        "_trails",
        "_versions",
        "models",
        "most_matches",
    )

    def __init__(self, registration: Registration, static_names: tuple[str, ...], evaluator: Evaluator = "own") -> None:
        if evaluator == "plugin":
            delegated = registration.delegated
            assert delegated is not None, "registration refuses what cannot be delegated"
            registration = replace(registration, plan=delegated)
        self._registration = registration
        self._static_names = static_names
        self._versions: tuple[int, ...] | None = None
        self._plan: Operator | None = None
        self._compiled: CompiledPlan | None = None
        self._planned: QueryPlan | None = None
        self._plain: CompiledPlan | None = None
        self._trails = True
        self._parts: StaticPartsMode = "apart"
        self.models = models_of(registration.plan)
        self.most_matches: int | None = None

    def plan(self, around: SharedState) -> Operator:
        versions = tuple([around.static(name).version for name in self._static_names])
        if self._plan is None or versions != self._versions:
            plan = optimized(self._registration, self._static_names, around, self._parts == "apart").plan
            self._versions = versions
            if plan != self._plan:
                self._plan, self._compiled, self._planned = plan, None, None
                self.models = models_of(plan)
        assert self._plan is not None
        return self._plan

    def compiled(self, around: SharedState) -> CompiledPlan:
        plan = self.plan(around)
        if self._compiled is None:
            self._compiled = compile_plan(plan)
        return self._compiled

    def plain(self) -> CompiledPlan:
        """Return the plan as the text has it, without any rule."""
        if self._plain is None:
            self._plain = compile_plan(self._registration.plan)
        return self._plain

    def planned(self, around: SharedState, parameters: Mapping[str, Value]) -> QueryPlan:
        plan = self.plan(around)
        if self._planned is None:
            if self._parts == "anew":
                self._planned = recomputed(plan, "a part over static graphs is too large to be kept")
            else:
                evaluation = around.evaluation
                if self.most_matches is not None:
                    limits = [one for one in (evaluation.max_matches, self.most_matches) if one is not None]
                    evaluation = replace(evaluation, max_matches=min(limits))
                self._planned = planned(plan, self._registration, evaluation, parameters, self._trails)
        return self._planned

    def without_parts(self, around: SharedState) -> None:
        """Stop setting parts over static graphs apart, because one of them is too large to be kept.

        From now on patterns are matched together with the rest of the query and, where they still have too many rows,
        found again at each instant.
        """
        before, self._plan = self._plan, None
        self._compiled = self._planned = None
        self._parts = "together" if self._parts == "apart" else "anew"
        if self.plan(around) == before:  # no part of the plan had been set apart
            self._parts = "anew"

    def without_trails(self) -> None:
        """Stop keeping trails, because there are too many: from now on they are searched for at each instant."""
        self._trails = False
        self._planned = None


def planned(
    plan: Operator,
    registration: Registration,
    evaluation: EvaluationOptions,
    parameters: Mapping[str, Value],
    trails: bool = True,
) -> QueryPlan:
    """Decide which parts of a plan run on changes, and which are recomputed."""
    if evaluation.force == "recompute":
        return recomputed(plan, "asked for by --force recompute")
    if registration.every is None and registration.arrivals is None:
        return recomputed(plan, "there is one answer")
    choices = Choices(
        evaluation.matcher,
        registration.every,
        evaluation.max_matches,
        evaluation.max_state,
        registration.prefixes,
        parameters,
        trails,
        evaluation.index,
    )
    return plan_query(plan, choices, listed=registration.output == "snapshot")
