"""The openCypher TCK on operators on changes: each scenario's graph comes piece by piece and goes again.

A scenario is counted as incremental when nothing of it that reads the graph is computed anew.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.support.on_changes import PieceByPiece, pieces, planned

import anabranch
from anabranch.algebra.operators import Pattern
from anabranch.algebra.walk import is_volatile, walk
from anabranch.errors import EvaluationError, QueryError
from anabranch.model.event import Event
from anabranch.syntax import languages

from . import tck

LEAST_INCREMENTAL = 0.98

SCENARIOS = [one for one in tck.scenarios() if one["streamable"] and one["id"] not in tck.exceptions()]


def _plan(scenario: dict[str, Any]) -> Any:
    try:
        return languages.plan(scenario["query"], "<query>", ()).plan
    except QueryError:
        return None


def _parameters(scenario: dict[str, Any]) -> dict[str, Any]:
    return {name: tck._value(text) for name, text in scenario["params"] or ()}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_scenario_on_changes(scenario: dict[str, Any]) -> None:
    plan = _plan(scenario)
    parameters = _parameters(scenario)
    query = planned(plan, parameters)
    if query.root is None:
        return  # the plain evaluator answers all of it: test_tck has seen that
    events = pieces(tck.graph_of(scenario), Random(scenario["id"]))
    run = PieceByPiece(query, parameters, tck.NOW)
    try:
        rows = [run.tick([event]) for event in events][-1]
    except EvaluationError:  # half of a graph may be what the query refuses
        run = PieceByPiece(query, parameters, tck.NOW)
        rows = run.tick(events)
    problem = tck._compare(scenario["expect"], anabranch.Table(plan.columns, rows))
    assert problem is None, f"{scenario['name']}\n{scenario['query']}\n{problem}"
    if not is_volatile(plan):
        fresh = PieceByPiece(query, parameters, tck.NOW)
        nothing = fresh.tick([])
        try:
            emptied = run.tick([Event(10)], forget_before=10)
        except EvaluationError:
            return
        assert emptied == nothing, "an empty house"
        assert run.kept() == fresh.kept(), "an empty house keeps nothing"


@pytest.mark.skipif(not SCENARIOS, reason=f"the TCK is not at {tck.suites_folder()}")
def test_nearly_all_scenarios_with_a_pattern_are_incremental() -> None:
    found: Counter[str] = Counter()
    for scenario in SCENARIOS:
        plan = _plan(scenario)
        if plan is not None and any(isinstance(node, Pattern) for node in walk(plan)):
            query = planned(plan, _parameters(scenario))
            reasons = {mode.detail for mode in query.modes.values() if mode.execution == "recompute" and mode.detail}
            found["incremental" if query.is_incremental else min(reasons, default="?")] += 1
    share = found["incremental"] / found.total()
    assert share >= LEAST_INCREMENTAL, f"{share:.1%} incremental; {found.most_common()}"
    print(f"TCK on changes: {found['incremental']} of {found.total()} scenarios with a pattern are fully incremental")
