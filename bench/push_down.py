"""What the rewrites save, as C-SPARQL's Figure 7 asks it: the broker query of section 3.4, with a window that grows and
with static knowledge that grows, under four sets of rules.

    none          the O-Graph of Figure 1 as it stands
    filters       filters pushed to their sources (Figure 6)
    static        the static part evaluated once
    all           every rule

One run measures all of them over the same events: seconds per evaluation, and the ratio to `none`. Windows hold noise
besides transactions, which summarisation keeps out of the indexes. The naive way of the same run is pyoxigraph asked
the plain query over window and static knowledge at every instant, loading included.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import XSD_INTEGER, Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.plugins.oxigraph import Oxigraph

MARKET = "http://stockexchange.org/market.trdf"
BROKERS = "http://brokerscentral.org/brokers.rdf"
B = "http://brokerscentral.org/accounts#"
X = "http://stockexchange.org/exchanges#"
PATTERN = """
  ?broker b:is_from ?country .
  ?broker x:does ?tx .
  ?tx x:with ?amount .
  FILTER (?country = 'CH' && ?amount >= 10)
"""
QUERY = f"""
REGISTER QUERY totals AS
PREFIX b: <{B}>
PREFIX x: <{X}>
SELECT DISTINCT ?broker ?total
FROM <{BROKERS}>
FROM STREAM <{MARKET}> [RANGE 100s STEP 10s]
WHERE {{ {PATTERN} }}
AGGREGATE {{ (?total, SUM(?amount), ?broker) }}
"""
PLAIN = f"PREFIX b: <{B}> PREFIX x: <{X}> SELECT ?broker (SUM(?amount) AS ?total) {{ {PATTERN} }} GROUP BY ?broker"
RULES: dict[str, str] = {
    "none": "none",
    "filters": "merge_joined_patterns,push_filter,push_projection",
    "static": "narrow_sources,merge_joined_patterns,evaluate_static_parts",
    "all": "all",
}
INSTANTS = 20
_SECOND = 1_000_000


def run(smoke: bool = False) -> dict[str, Any]:
    windows = [200, 400] if smoke else [2_000, 10_000, 50_000]
    brokers = [50, 100] if smoke else [1_000, 10_000, 100_000]
    growing_window = [_measured(size, brokers[0]) for size in windows]
    growing_static = [_measured(windows[0], size) for size in brokers]
    return {"growing_window": growing_window, "growing_static": growing_static}


def _measured(window: int, brokers: int) -> dict[str, Any]:
    events, static = _events(window, brokers), _brokers(brokers)
    seconds: dict[str, float] = {}
    answers: dict[str, Any] = {}
    for name, rules in RULES.items():
        seconds[name], answers[name] = _evaluated(events, static, rules)
    if any(answers[name] != answers["none"] for name in RULES):
        raise AssertionError("the rules change the answer")
    seconds["pyoxigraph"] = _naive(events, static)
    ratios = {name: round(seconds["none"] / took, 2) for name, took in seconds.items()}
    shown = ", ".join(f"{name} {took * 1000:.1f} ms ({ratios[name]}x)" for name, took in seconds.items())
    print(f"window {window:>7,} triples, {brokers:>7,} brokers: per evaluation {shown}")
    return {
        "window_triples": window,
        "brokers": brokers,
        "seconds_per_evaluation": {name: round(took, 6) for name, took in seconds.items()},
        "times_faster_than_none": ratios,
    }


def _evaluated(events: list[Event], static: list[Triple], rules: str) -> tuple[float, list[Any]]:
    session = Session.local([MARKET], rules=rules, evaluation=EvaluationOptions(force="recompute"))
    session.graph(BROKERS, TripleGraph(static))
    query = session.register(QUERY)
    warm = len(events) * 100 // (100 + 10 * INSTANTS)
    session.push(MARKET, events[:warm])
    query.poll()
    evaluated = query.evaluations
    begun = time.perf_counter()
    session.push(MARKET, events[warm:])
    took = time.perf_counter() - begun
    return took / max(1, query.evaluations - evaluated), [sorted(answer.rows) for answer in query.poll()]


def _naive(events: list[Event], static: list[Triple]) -> float:
    plugin = Oxigraph()
    last = events[-1].event_time
    content = [triple for event in events if event.event_time > last - 100 * _SECOND for triple in event.triples]
    begun = time.perf_counter()
    plugin.evaluate(PLAIN, TripleGraph([*static, *content]), {})
    return time.perf_counter() - begun


def _events(window: int, brokers: int) -> list[Event]:
    """So many triples in a window of 100 s, a third of them noise, for the window and 20 slides."""
    random = Random(7)
    per_second = window / 100
    count = int(per_second * (100 + 10 * INSTANTS) / 3)
    events = []
    for number in range(count):
        at = int((number * 3 / per_second) * _SECOND)
        tx = Iri(f"{X}t{number}")
        broker = Iri(f"{B}broker{random.randrange(brokers)}")
        amount = Literal(str(random.randint(1, 40)), XSD_INTEGER)
        noise = Triple(Iri(f"{X}sensor{number % 50}"), Iri(f"{X}reads"), Literal(str(number), XSD_INTEGER))
        triples = (Triple(broker, Iri(f"{X}does"), tx), Triple(tx, Iri(f"{X}with"), amount), noise)
        events.append(Event(at, triples=triples))
    return events


def _brokers(count: int) -> list[Triple]:
    countries = ("CH", "DE", "FR", "IT", "AT", "US", "JP", "GB", "ES", "SE")
    return [
        Triple(Iri(f"{B}broker{number}"), Iri(f"{B}is_from"), Literal(countries[number % len(countries)]))
        for number in range(count)
    ]
