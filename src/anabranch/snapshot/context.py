"""The context of one evaluation: graphs, parameters, the clock, randomness, and the budget of work.

Invariant: an answer depends only on the plan and the context; graphs are fetched once and do not change meanwhile.
`memory` caches facts about them, for this evaluation only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from anabranch.algebra.operators import MergedSource, Source, TripleSource, Window
from anabranch.errors import EvaluationError, InternalError, LimitExceeded, QueryError, Span
from anabranch.model.graph import PropertyGraph
from anabranch.model.triples import MergedGraph, Triples
from anabranch.model.values import ElementId, Node, Relationship, Value
from anabranch.snapshot.index import GraphIndex
from anabranch.snapshot.plugin import Plugin

OUTSIDE = "what the query keeps"
"""Named where memory runs out in no operator: in windows, or in rows to be emitted."""
MAX_STEPS = 50_000_000
MAX_HELD = 1 << 30  # bytes that rows of one evaluation may take at once
_ROW_WORDS = 7  # of a tuple, besides its columns
_STRETCH = 1 << 16  # steps between two checks for cancellation


def _no_triples(source: Source) -> Triples:
    raise InternalError(f"this evaluation was given no triples for {source}")


def _no_windows(window: Window | None) -> tuple[int, int]:
    raise InternalError("this evaluation was given no windows")


@dataclass(slots=True)
class SkippedRows:
    """The rows that evaluations skipped because an expression failed on them: their number, and the errors of the first
    and of the last."""

    count: int = 0
    first: QueryError | None = None
    last: QueryError | None = None

    def note(self, error: EvaluationError) -> None:
        self.count += 1
        self.first = self.first or error
        self.last = error


@dataclass(slots=True)
class Context:
    """One evaluation at one instant. `clock` is UTC microseconds; `steps` counts the used part of the budget.

    `skipped` counts the rows on which an expression fails; without it, the first such row ends the evaluation. `check`
    is called repeatedly, and may raise to end the evaluation. `graph` and `triple_graph` are the two views of a source.
    `static_version` numbers the versions of a static graph: equal numbers mean equal triples; without it nothing that
    is cached about static graphs outlives the evaluation. `bounds` are a window's win_start and win_end, or those of
    the answer. `given` are the rows of a plan's `RowBag`.
    """

    graph: Callable[[Source], PropertyGraph]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    clock: int = 0
    seed: int | str | bytes = 0
    max_steps: int = MAX_STEPS
    steps: int = 0
    skipped: SkippedRows | None = None
    check: Callable[[], None] | None = None
    triple_graph: Callable[[Source], Triples] = _no_triples
    bounds: Callable[[Window | None], tuple[int, int]] = _no_windows
    static_version: Callable[[str], int] | None = None
    plugin: Plugin | None = None
    given: Sequence[tuple[Value, ...]] = ()
    memory: dict[object, Any] = field(default_factory=dict, repr=False)
    look_at: int = 0
    _random: Random | None = field(default=None, repr=False)
    _indexes: dict[Source, GraphIndex] = field(default_factory=dict, repr=False)
    _triples: dict[TripleSource, Triples] = field(default_factory=dict, repr=False)
    # the same by the source object's id: hashing a window takes longer than the rest of a lookup
    _known: dict[int, tuple[TripleSource, Triples]] = field(default_factory=dict, repr=False)

    @property
    def random(self) -> Random:
        """The random numbers of this evaluation: the same seed gives the same numbers. Few queries ask for them."""
        if self._random is None:
            self._random = Random(self.seed)
        return self._random

    def index(self, source: Source) -> GraphIndex:
        """Return the graph of a source with its indexes, which live as long as this context."""
        found = self._indexes.get(source)
        if found is None:
            found = self._indexes[source] = GraphIndex(self.graph(source))
        return found

    def triples(self, source: TripleSource) -> Triples:
        """Return the triples of a source, or of several as one set."""
        known = self._known.get(id(source))
        if known is not None:
            return known[1]
        found = self._triples.get(source)
        if found is None:
            if isinstance(source, MergedSource):
                found = MergedGraph([self.triples(part) for part in dict.fromkeys(source.parts)])
            else:
                found = self.triple_graph(source)
            self._triples[source] = found
        self._known[id(source)] = (source, found)
        return found

    def spend(self, steps: int) -> None:
        """Count steps of patterns, joins and lists; raise LimitExceeded when the budget is used up."""
        self.steps += steps
        if self.steps > self.look_at:
            self._look()

    def _look(self) -> None:
        if self.steps > self.max_steps:
            raise LimitExceeded(
                "SER-306",
                f"the query needs more than {self.max_steps:,} steps over this window",
                "bound the variable-length relationships, name labels and types, connect the parts of the pattern, or "
                "allow more by --max-steps",
            )
        if self.check is not None:
            self.check()
        self.look_at = min(self.max_steps, self.steps + _STRETCH)

    def hold(self, rows: int, width: int) -> None:
        """Refuse to hold more rows at once than memory allows."""
        if rows * (width + _ROW_WORDS) * 8 > MAX_HELD:
            raise LimitExceeded(
                "SER-306",
                f"the query has more than {rows:,} rows over this window",
                "connect the parts of the pattern, narrow the window, or aggregate",
            )
        if self.check is not None:
            self.check()

    def begin(self) -> None:
        """Reset the budget."""
        self.steps = self.look_at = 0

    def skip(self, error: EvaluationError) -> None:
        """Skip the row on which an expression failed, and count it; raise the error if rows are not skipped or if it
        concerns more than a row."""
        if self.skipped is None or isinstance(error, LimitExceeded):
            raise error
        self.skipped.note(error)

    def find_node(self, node_id: ElementId) -> Node | None:
        """Return a node of any graph that the plan has used."""
        for index in self._indexes.values():
            node = index.graph.nodes.get(node_id)
            if node is not None:
                return node
        return None

    def end_of(self, relationship: Relationship, node_id: ElementId) -> Node:
        """Return the node at an end of a relationship, from the graph that the relationship came from."""
        for index in self._indexes.values():
            if index.graph.relationships.get(relationship.id) is relationship:
                return index.graph.nodes[node_id]
        return self.find_node(node_id) or Node(node_id)


def out_of_memory(what: str, span: Span | None = None, needs: str = "") -> LimitExceeded:
    """Return the error of a query whose operator `what` does not have enough memory."""
    return LimitExceeded(
        "SER-311",
        f"{what} needs {needs} at once" if needs else f"the memory ran out in {what}",
        "narrow the window, name more labels, types or constants, connect the parts of the pattern, or let it end "
        "earlier by --max-steps or --max-state",
        span,
    )
