"""EXPLAIN of planned queries: what works on changes and by which algorithm, what is computed anew, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anabranch.algebra.explain import Explanation, explain
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import planned
from anabranch.optimizer import Knowledge, optimize
from anabranch.syntax.languages import registrations

from .brokers import QUERY, optimized

CARS = """\
REGISTER QUERY cars STARTING AT NOW {
  MATCH (gate:Gate)-[s:seen]->(car:Car) WITHIN PT5M
  WHERE NOT exists((car)-[:left]->())
  EMIT gate.id AS gate, collect(car.id) AS cars ORDER BY gate LIMIT 3 SNAPSHOT EVERY PT1M
}"""

CARS_EXPLAINED = """\
query cars
  instants    the first event's instant + k * PT1M, k = 0, 1, ...
  output      snapshot: all rows, at every instant
  reads       the only stream within PT5M; trailing: (w - PT5M, w]
  columns     gate, cars; each answer has win_start, win_end
  execution   incremental: operators on changes, when an event has entered or left a window
              on Spark in one cell

  Emit  snapshot
  └─ Slice  limit 3  [incremental: OrderedSlice]
     └─ Order  gate  [incremental: OrderedSlice]
        └─ Project  gate, cars = _a3  [incremental: Projected]
           └─ Aggregate  by gate = gate.id  [incremental: GroupedAggregates]
              │          _a3 = collect(car.id)
              └─ Filter  ¬∃ (car)-[_r1:left]->(_n2)  [incremental: Filtered]
                 └─ Pattern  (gate:Gate)-[s:seen]->(car:Car)  [incremental: LogMatcher]
                    └─ Window  trailing: (w - PT5M, w]
                       └─ Stream  the only stream"""

REACHED = """\
REGISTER QUERY reached AS
PREFIX : <http://ex.org/>
SELECT ?a ?c FROM STREAM <http://ex.org/s> [RANGE 10m STEP 1m] FROM STREAM <http://ex.org/t> [RANGE 10m STEP 1m]
WHERE { ?a :next+ ?b . ?b :seen ?c }"""

REACHED_EXPLAINED = """\
  Emit  snapshot
  └─ Project  ?a, ?c  [incremental: Projected]
     └─ Join  on ?b  [incremental: SymmetricHashJoin]
        ├─ Path  ?a :next+ ?b  [incremental: PathTrees]
        │  └─ Merged  as one set of triples
        │     ├─ Static  graph default
        │     ├─ Window  trailing: (w - PT10M, w]
        │     │  │       keeps * :next *, * :seen *
        │     │  └─ Stream  stream http://ex.org/s
        │     └─ Window  trailing: (w - PT10M, w]
        │        │       keeps * :next *, * :seen *
        │        └─ Stream  stream http://ex.org/t
        └─ GraphPattern  ?b :seen ?c  [incremental: LogMatcher]
           └─ Merged  as one set of triples
              ├─ Static  graph default
              ├─ Window  trailing: (w - PT10M, w]
              │  │       keeps * :next *, * :seen *
              │  └─ Stream  stream http://ex.org/s
              └─ Window  trailing: (w - PT10M, w]
                 │       keeps * :next *, * :seen *
                 └─ Stream  stream http://ex.org/t"""

FAR = REACHED.replace(":next+", f"({'/'.join([':next'] * 300)})+")
FAR_REASON = "a path of more than 256 steps"
CLOCK = "REGISTER QUERY t STARTING AT NOW { MATCH (a:A) WITHIN PT5M EMIT a.id AS id, datetime() AS now EVERY PT1M }"
ONCE = "REGISTER QUERY t STARTING AT NOW { MATCH (a:A) WITHIN PT5M RETURN a.id AS id }"
ROOMS = """REGISTER QUERY t STARTING AT NOW { MATCH (s:Sensor) WITHIN PT5M MATCH (s)-[:IN]->(room) ON GRAPH rooms
EMIT room.name AS room EVERY PT1M }"""
AUTO = EvaluationOptions()
ALL = "REGISTER QUERY t STARTING AT NOW { MATCH (a:A) WITHIN PT5M EMIT a.id AS id EVERY PT1M }"


def explained(text: str, name: str = "query.seraph", evaluation: EvaluationOptions = AUTO) -> Explanation:
    (query,) = registrations(text, name)
    rewritten = optimize(query.plan, Knowledge.of({}, query.prefixes))
    return explain(query, optimized=rewritten, ways=planned(rewritten.plan, query, evaluation, {}).way)


def steps(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [step, *(one for below in step.get("inputs", ()) for one in steps(below))]


def test_every_operator_on_changes_names_its_algorithm_to_the_letter() -> None:
    assert explained(CARS).text() == CARS_EXPLAINED


def test_a_path_through_several_windows_is_incremental_to_the_letter() -> None:
    assert explained(REACHED, "query.csparql").text().endswith(f"\n\n{REACHED_EXPLAINED}")


def test_a_part_that_is_computed_anew_says_why_and_leaves_the_others_incremental() -> None:
    text = explained(FAR, "query.csparql").text()
    assert "\n  execution   incremental where it can be: operators on changes, when an event has entered" in text
    assert f"\n              recompute below: {FAR_REASON}\n" in text


def test_the_dictionary_has_the_algorithm_or_the_reason_of_every_operator() -> None:
    data = explained(FAR, "query.csparql").to_dict()
    execution = data["execution"]
    assert (execution["recompute"], execution["reasons"]) == (1, [FAR_REASON])
    found = {step["operator"]: step for step in steps(data["plan"])}
    assert (found["Join"]["execution"], found["Join"]["algorithm"]) == ("incremental", "SymmetricHashJoin")
    assert (found["Path"]["execution"], found["Path"]["reason"]) == ("recompute", FAR_REASON)
    assert "algorithm" not in found["Path"]
    assert json.loads(json.dumps(data)) == data


def test_static_parts_stay_what_they_are_and_the_rest_is_incremental() -> None:
    rewritten = optimized()
    text = explain(QUERY, optimized=rewritten, ways=planned(rewritten.plan, QUERY, AUTO, {}).way).text()
    assert "├─ StaticPart  once for each version of http://brokerscentral.org/brokers.rdf\n" in text
    assert "└─ Filter  ?amount ≥ 10  [incremental: Filtered]\n" in text
    assert "└─ Annotate  every row, by ?broker  [incremental: AnnotatedRows]\n" in text
    assert "[recompute" not in text


def test_only_the_plan_that_runs_is_marked() -> None:
    rewritten = optimized()
    explanation = explain(QUERY, optimized=rewritten, ways=planned(rewritten.plan, QUERY, AUTO, {}).way)
    assert "[incremental" not in explanation.text(stage="before")
    assert "[incremental" in explanation.text(stage="after")


@pytest.mark.parametrize(
    ("text", "evaluation", "reason"),
    [
        (ONCE, AUTO, "there is one answer"),
        (ALL, EvaluationOptions(force="recompute"), "asked for by --force recompute"),
    ],
)
def test_a_query_that_is_computed_anew_as_a_whole_says_why(
    text: str, evaluation: EvaluationOptions, reason: str
) -> None:
    explanation = explained(text, evaluation=evaluation)
    assert f"\n              because: {reason}\n" in explanation.text()
    assert f"[recompute: {reason}]" in explanation.text()
    assert "incremental" not in explanation.text()
    assert explanation.to_dict()["execution"]["recompute"] == "all"


def test_a_query_that_reads_chance_says_so_once_of_itself() -> None:
    explanation = explained(CLOCK.replace("datetime()", "rand()"))
    head, _, tree = explanation.text().partition("\n\n")
    assert head.count("it reads the clock or chance") == 1
    assert "[recompute: it reads the clock or chance]" in tree


def test_what_reads_the_clock_is_computed_at_each_instant_over_rows_that_are_kept() -> None:
    head, _, tree = explained(CLOCK).text().partition("\n\n")
    assert "incremental: operators on changes, at every instant, because it reads the clock" in head
    assert "[incremental: Projected, at each instant]" in tree
    assert "Pattern  (a:A)  [incremental: LogMatcher]" in tree


def test_what_is_computed_once_per_version_is_not_called_incremental() -> None:
    execution = explained(ROOMS).to_dict()["execution"]
    assert (execution["incremental"], execution["recompute"], execution["once"]) == (3, 0, 1)
