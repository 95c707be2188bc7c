"""Random directed graphs over one predicate, where every triple fits every pattern: the hard end of the range.

Edges have independent uniform ends; with hubs, the ends are drawn with a square law, so that a few vertices have most
edges. Matches are homomorphisms, as in SPARQL: a loop is a triangle too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.base import Query, Stream, Terms, described

EX = "http://example.org/"
PREFIXES = {"ex": EX}
SHAPES = {
    "path2": [("?a", "ex:to", "?b"), ("?b", "ex:to", "?c")],
    "triangle": [("?a", "ex:to", "?b"), ("?b", "ex:to", "?c"), ("?c", "ex:to", "?a")],
    "square": [("?a", "ex:to", "?b"), ("?b", "ex:to", "?c"), ("?c", "ex:to", "?d"), ("?d", "ex:to", "?a")],
}


@dataclass(frozen=True, slots=True)
class RandomGraph:
    stream: Stream
    queries: tuple[Query, ...]


def generate(triples: int, vertices: int, hubs: bool = False, seed: int = 7) -> RandomGraph:
    """So many edges between so many vertices; path2, triangle and square (with hubs, the triangle alone)."""
    random = np.random.default_rng(seed)
    terms = Terms()
    to = terms.one(f"<{EX}to>")
    ids = terms.many(terms.kind(f"<{EX}v{{0}}>"), vertices, None)
    drawn = random.random((triples, 2))
    ends = ids[((drawn * drawn if hubs else drawn) * vertices).astype(np.int64)]
    facts = np.column_stack((ends[:, 0], np.full(triples, to), ends[:, 1]))
    shapes = {"triangle-hubs": SHAPES["triangle"]} if hubs else SHAPES
    queries = tuple(described(name, shape, {f"<{EX}to>": to}.__getitem__, PREFIXES) for name, shape in shapes.items())
    return RandomGraph(Stream("hubs" if hubs else "random", np.ascontiguousarray(facts), terms), queries)
