"""Shortest paths on changes beside the plain evaluator, over two streams.

    routers   links of a network report themselves every few minutes and fail now and then: few of them change between
              instants, and few of the racks' routes to the exits are concerned
    rides     every ride is a relationship of its own, which leaves with its window: much changes between instants, and
              most stations are concerned

The plain evaluator has a part of each stream; the ratio is of the same part. The answers are compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.values import Node, Relationship

SECOND = 1_000_000
START = 1_665_758_400_000_000  # 2022-10-14T14:40
PUSHED = 200
ROUTERS = """REGISTER QUERY routes STARTING AT 2022-10-14T14:40Z {
  MATCH p = shortestPath((rack:Rack)-[:LINK*]-(exit:Exit)) WITHIN PT10M
  EMIT id(rack) AS rack, id(exit) AS exit, length(p) AS hops, [n IN nodes(p) | id(n)] AS route
  ON ENTERING EVERY PT10S }"""
RIDES = """REGISTER QUERY chains STARTING AT 2022-10-14T14:40Z {
  MATCH p = allShortestPaths((one:Depot)-[:RIDE*..6]->(other:Depot)) WITHIN PT10M
  EMIT id(one) AS one, id(other) AS other, length(p) AS rides, [r IN relationships(p) | id(r)] AS by
  ON ENTERING EVERY PT10S }"""


def run(smoke: bool = False) -> dict[str, Any]:
    routers, minutes, part = (60, 12, 12) if smoke else (2_000, 60, 20)
    stations, rides, some = (20, 200, 200) if smoke else (300, 20_000, 4_000)
    network = list(heartbeats(routers, minutes))
    few = [event for event in network if event.event_time < START + part * 60 * SECOND]
    driven = list(trips(stations, rides))
    return {
        "routers": compared("routers", ROUTERS, network, few),
        "rides": compared("rides", RIDES, driven, driven[:some]),
    }


def compared(name: str, text: str, events: list[Event], part: list[Event]) -> dict[str, Any]:
    answered(text, events[:200], EvaluationOptions())  # loads the kernels
    whole, found = answered(text, events, EvaluationOptions())
    ours, rows = answered(text, part, EvaluationOptions())
    anew, same = answered(text, part, EvaluationOptions(force="recompute"))
    if rows != same:
        raise AssertionError("the two ways tell different answers")
    print(
        f"{name}: {len(events) / whole:,.0f} events/s over {len(events):,} events, {len(found):,} rows; over "
        f"{len(part):,} events {ours:.2f} s beside {anew:.2f} s of the plain evaluator: {anew / ours:.1f} times faster"
    )
    return {
        "events": len(events),
        "seconds": round(whole, 2),
        "events_per_second": round(len(events) / whole),
        "rows": len(found),
        "part": len(part),
        "part_seconds": round(ours, 3),
        "part_seconds_recomputed": round(anew, 2),
        "ratio": round(anew / ours, 1),
    }


def heartbeats(routers: int, minutes: int) -> Iterator[Event]:
    """Routers in a ring with cables across it, each cable heard of every 4 to 8 minutes; one in 50 falls silent for
    the next quarter of an hour. One in 40 routers is that of a rack, and there are five exits."""
    random = Random(7)
    labels = dict.fromkeys(range(0, routers, 40), ("Rack",))
    labels |= dict.fromkeys(range(7, routers, routers // 5), ("Exit",))
    cables = [(one, (one + 1) % routers) for one in range(routers)]
    cables += [(random.randrange(routers), random.randrange(routers)) for _ in range(routers)]
    due = [(random.randrange(8 * 60), at) for at in range(len(cables))]
    beats = []
    for second, cable in due:
        while second < minutes * 60:
            beats.append((second, cable))
            second += 15 * 60 if random.random() < 0.02 else random.randrange(4 * 60, 8 * 60)
    for second, cable in sorted(beats):
        ends = cables[cable]
        nodes = tuple(Node(one, ("Router", *labels.get(one, ()))) for one in dict.fromkeys(ends))
        yield Event(START + second * SECOND, nodes, (Relationship(cable, "LINK", *ends),))


def trips(stations: int, rides: int) -> Iterator[Event]:
    """A ride a second between stations near each other; one in ten stations is a depot."""
    random = Random(7)
    for ride in range(rides):
        one = random.randrange(stations)
        other = (one + random.randrange(1, 12)) % stations
        nodes = tuple(Node(at, ("Station", "Depot") if at % 10 == 0 else ("Station",)) for at in (one, other))
        yield Event(START + ride * SECOND, nodes, (Relationship(ride, "RIDE", one, other),))


def answered(text: str, events: list[Event], evaluation: EvaluationOptions) -> tuple[float, list[object]]:
    session = Session.local(evaluation=evaluation)
    query = session.register(text)
    rows: list[object] = []
    began = time.process_time()  # of one thread
    for first in range(0, len(events), PUSHED):
        session.push("network", events[first : first + PUSHED])
        rows += [(answer.at, row) for answer in query.poll() for row in answer.rows]
    session.finish()
    rows += [(answer.at, row) for answer in query.poll() for row in answer.rows]
    return time.process_time() - began, rows
