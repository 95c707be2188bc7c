"""Specs of the roots of CONSTRUCT and ASK queries.

Law: as in the plain evaluator: each triple once, and no row that is no triple; ASK always has one row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anabranch.algebra import triples as tr
from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.operators.distinct import DistinctRows
from anabranch.delta.trace import Trace
from anabranch.model.terms import FALSE, TRUE
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import FlowPart, Spec
from anabranch.snapshot.rdf.graphs import Template


class ConstructedTriples(DeltaOperator):
    """The triples of a template for every row.

    State: how often each row is present, because each copy of equal rows has its own blank nodes.
    Work: O(changes)."""

    width = 3

    def __init__(self, template: Template, source_width: int, runtime: Runtime) -> None:
        self._template = template
        self._dictionary = runtime.dictionary
        self._rows = Trace(source_width, tuple(range(source_width)))

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        touched = self._rows.add(batch)
        encode = self._dictionary.encode
        rows: list[list[int]] = []
        weights: list[int] = []
        counts = zip(touched.before.tolist(), touched.after.tolist(), strict=True)
        for row, (before, after) in zip(self._dictionary.rows(touched.rows), counts, strict=True):
            sign = 1 if after > before else -1
            for copy in range(min(before, after), max(before, after)):
                for triple in self._template.triples(row, copy):
                    rows.append([encode(term) for term in triple])
                    weights.append(sign)
        return Batch(np.array(rows, np.int64).reshape(len(rows), 3), np.array(weights, np.int64))

    def size(self) -> Size:
        return self._rows.size()


class Existence(DeltaOperator):
    """One row that is true while the input has a row, else false."""

    width = 1

    def __init__(self, runtime: Runtime) -> None:
        self._yes = runtime.dictionary.encode(TRUE)
        self._no = runtime.dictionary.encode(FALSE)
        self._count = 0
        self._told: int | None = None

    def apply(self, *inputs: Batch) -> Batch:
        (batch,) = inputs
        self._count += int(batch.weights.sum())
        before, self._told = self._told, self._yes if self._count else self._no
        if before == self._told:
            return Batch.empty(1)
        if before is None:
            return Batch.of([[self._told]], [1], 1)
        return Batch.of([[before], [self._told]], [-1, 1], 1)


def construct_spec(operator: tr.Construct, source: Spec) -> Spec:
    template = Template(operator)
    make: Callable[[Runtime], FlowPart] = lambda runtime: ConstructedTriples(template, source.width, runtime)  # noqa: E731
    triples = Spec("Constructed", make, operator.columns, (source,), operator)
    return Spec("Constructed", lambda _: DistinctRows(3, None, None), operator.columns, (triples,), operator)


def ask_spec(operator: tr.Ask, source: Spec) -> Spec:
    return Spec("Asked", Existence, operator.columns, (source,), operator)
