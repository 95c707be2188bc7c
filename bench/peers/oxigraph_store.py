"""pyoxigraph: a store of triples whose terms are IRIs made of the ids, asked in SPARQL.

A window is loaded in bulk and asked. `Kept` is the other way: one store that follows the window by adding and removing
triples, and is asked again at every slide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyoxigraph as ox

from peers.jobs import Ids, Plan, Slides, Window

VERSION = ox.__version__


def prepare(plan: Plan, window: Window) -> Any:
    return _quads(window.triples), _sparql(plan)


def evaluate(plan: Plan, prepared: Any) -> Any:
    quads, text = prepared
    store = ox.Store()
    store.bulk_extend(quads)
    return list(store.query(text))


def rows(plan: Plan, answer: Any) -> Ids:
    found = [[int(term.value[2:]) for term in solution] for solution in answer]
    return np.array(found, np.int64).reshape(len(found), plan.variables)


class Kept:
    def __init__(self, plan: Plan, slides: Slides) -> None:
        triples, weights, numbers = slides.triples
        self._quads = _quads(triples)
        self._weights = weights.tolist()
        self._ends = np.searchsorted(numbers, np.arange(slides.count), side="right").tolist()
        self._text = _sparql(plan)
        self._store = ox.Store()
        self._store.bulk_extend(self._quads[: self._ends[0]])

    def slide(self, number: int) -> Any:
        add, remove = self._store.add, self._store.remove
        for place in range(self._ends[number - 1], self._ends[number]):
            if self._weights[place] > 0:
                add(self._quads[place])
            else:
                remove(self._quads[place])
        return list(self._store.query(self._text))


def _quads(triples: Ids) -> list[ox.Quad]:
    nodes = {one: ox.NamedNode(f"i:{one}") for one in np.unique(triples).tolist()}
    return [ox.Quad(nodes[s], nodes[p], nodes[o]) for s, p, o in triples.tolist()]


def _sparql(plan: Plan) -> str:
    terms = [" ".join(f"?v{-1 - one}" if one < 0 else f"<i:{one}>" for one in places) for places in plan.places]
    variables = " ".join(f"?v{one}" for one in range(plan.variables))
    return f"SELECT {variables} {{ {' . '.join(terms)} }}"
