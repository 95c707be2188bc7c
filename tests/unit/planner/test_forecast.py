"""What operators will keep is calculated from the windows' widths and the streams' rates."""

from __future__ import annotations

from anabranch.algebra.operators import Operator, Window
from anabranch.algebra.triples import GraphPattern
from anabranch.algebra.walk import walk
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import planned
from anabranch.planner.forecast import OperatorForecast, forecast, size_words
from anabranch.syntax import languages

TEXT = """
REGISTER QUERY q STARTING AT '2022-01-01T00:00:00Z'
{ MATCH (a:A)-[:R]->(b:B) WITHIN PT10S MATCH (b)-[:S]->(c) WITHIN PT20S EMIT a.x AS x, count(c) AS n
  SNAPSHOT EVERY PT1S }
"""
COUNTED = """
REGISTER QUERY q AS PREFIX : <http://e/>
SELECT * FROM STREAM <http://s> [RANGE TRIPLES 500] WHERE { ?a :p ?b . ?b :p ?c }
"""


def kept(text: str, rate: float) -> list[tuple[Operator, OperatorForecast]]:
    (registration,) = languages.registrations(text)
    plan = planned(registration.plan, registration, EvaluationOptions(), {})

    def rate_of(window: Window) -> float:
        return rate

    found = forecast(plan, rate_of)
    return [(node, found[id(node)]) for node in walk(registration.plan) if id(node) in found]


def test_patterns_keep_the_facts_of_their_windows_and_what_is_above_follows() -> None:
    rows = {type(node).__name__ + str(getattr(node, "source", "")): one.rows for node, one in kept(TEXT, 100.0)}
    assert [round(count) for name, count in rows.items() if name.startswith("Pattern")] == [1000, 2000]
    assert round(rows["Join"]) == 3000
    assert round(rows["Aggregate"]) == 2000


def test_twice_the_rate_is_twice_the_state() -> None:
    once, twice = kept(TEXT, 50.0), kept(TEXT, 100.0)
    assert [2 * one.bytes for _, one in once] == [one.bytes for _, one in twice]


def test_a_window_by_count_holds_its_count_whatever_the_rate() -> None:
    found = kept(COUNTED, 1e6)
    assert [one.rows for node, one in found if isinstance(node, GraphPattern)] == [500]


def test_sizes_are_said_in_words() -> None:
    assert [size_words(count) for count in (12, 1500, 2_500_000, 3e9, 4.2e13)] == [
        "12 B",
        "1.5 kB",
        "2.5 MB",
        "3.0 GB",
        "42.0 TB",
    ]
