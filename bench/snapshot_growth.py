"""How the plain evaluator's time grows with the snapshot: a two-hop pattern with a label and a property filter.

Beside it, the naive way in the same run: two nested loops over all relationships, on the sizes where that ends in time.
"""

from __future__ import annotations

import math
import time
from random import Random
from typing import Any

import anabranch
from anabranch import Node, PropertyGraph, Relationship

QUERY = """
MATCH (a:Person {city: 7})-[:KNOWS]->(b)-[:KNOWS]->(c:Person)
WHERE c.age > 90
RETURN count(*) AS matches
"""


def graph(relationships: int, seed: int = 7) -> PropertyGraph:
    """A third as many nodes as relationships; half of them people, of 100 cities and ages."""
    random = Random(seed)
    count = max(relationships // 3, 1)
    nodes = [
        Node(
            number,
            ("Person",) if number % 2 else ("Place",),
            {"city": random.randrange(100), "age": random.randrange(100)},
        )
        for number in range(count)
    ]
    ends = ((random.randrange(count), random.randrange(count)) for _ in range(relationships))
    edges = [Relationship(number, "KNOWS", source, target) for number, (source, target) in enumerate(ends)]
    return PropertyGraph(nodes, edges)


def naive(data: PropertyGraph) -> int:
    matches = 0
    edges = list(data.relationships.values())
    for first in edges:
        for second in edges:
            if first.target == second.source and first.id != second.id:
                start, end = data.nodes[first.source], data.nodes[second.target]
                if (
                    "Person" in start.labels
                    and start.properties["city"] == 7
                    and "Person" in end.labels
                    and end.properties["age"] > 90  # type: ignore[operator]
                ):
                    matches += 1
    return matches


def run(smoke: bool = False) -> dict[str, Any]:
    sizes = (300, 600) if smoke else (10_000, 30_000, 100_000, 300_000)
    naive_sizes = (300, 600) if smoke else (2_000, 4_000)
    plain = [_timed(lambda data: anabranch.evaluate(QUERY, data).rows[0][0], size) for size in sizes]
    loops = [_timed(naive, size) for size in naive_sizes]
    beside = [_timed(lambda data: anabranch.evaluate(QUERY, data).rows[0][0], size) for size in naive_sizes]
    for one, other in zip(loops, beside, strict=True):
        assert one["matches"] == other["matches"], "the naive way and the evaluator disagree"
    exponent = _exponent(plain)
    naive_exponent = _exponent(loops)
    ratio = loops[-1]["seconds"] / beside[-1]["seconds"]
    for name, series in (("evaluator", plain), ("naive loops", loops), ("evaluator beside them", beside)):
        for point in series:
            size, seconds, matches = point["relationships"], point["seconds"], point["matches"]
            print(f"{name:22} {size:>8,} relationships  {seconds:8.3f} s  {matches:,} matches")
    print(f"time grows as relationships^{exponent:.2f} (naive: ^{naive_exponent:.2f});", end=" ")
    print(f"{ratio:.0f} times faster than the naive way at {naive_sizes[-1]:,} relationships")
    return {
        "evaluator": plain,
        "naive": loops,
        "evaluator_beside_naive": beside,
        "growth_exponent": round(exponent, 3),
        "naive_growth_exponent": round(naive_exponent, 3),
        "ratio_naive_to_evaluator": round(ratio, 1),
    }


def _timed(evaluate: Any, size: int) -> dict[str, Any]:
    """The best of three, each on a new graph, so that its indexes are built inside the measured time."""
    best = math.inf
    matches = 0
    for _ in range(3):
        data = graph(size)
        started = time.perf_counter()
        matches = evaluate(data)
        best = min(best, time.perf_counter() - started)
    return {"relationships": size, "seconds": round(best, 4), "matches": matches}


def _exponent(series: list[dict[str, Any]]) -> float:
    first, last = series[0], series[-1]
    grown = max(last["seconds"], 1e-4) / max(first["seconds"], 1e-4)
    return math.log(grown) / math.log(last["relationships"] / first["relationships"])


if __name__ == "__main__":
    run()
