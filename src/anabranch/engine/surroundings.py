"""The state that the queries of one engine share: streams, static graphs, window contents, and the mapping of models.

Invariant: a static graph is given in one model and seen in both; the other model is made on first use, once for each
version. The default graph always exists, and is empty unless it was set.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Names
from dataclasses import dataclass, field

from anabranch.algebra.operators import DEFAULT_GRAPH
from anabranch.engine.contents import Contents
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import InternalError
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.mapping import Mapping
from anabranch.model.triples import TripleGraph
from anabranch.optimizer.support.sizes import GraphSizes
from anabranch.planner.flow.flow import ClockReader
from anabranch.snapshot.plugin import Plugin


class StaticGraph:
    """A static graph, with a version that differs when the graph does."""

    __slots__ = ("_graph", "_mapping", "_sizes", "_triples", "given", "version")

    def __init__(self, version: int, given: PropertyGraph | TripleGraph, mapping: Mapping) -> None:
        self.version = version
        self.given = given
        self._mapping = mapping
        self._graph = given if isinstance(given, PropertyGraph) else None
        self._triples = given if isinstance(given, TripleGraph) else None
        self._sizes: GraphSizes | None = None

    def as_graph(self) -> PropertyGraph:
        if self._graph is None:
            assert self._triples is not None
            self._graph = PropertyGraph(*self._mapping.elements_of(Event(0, triples=tuple(self._triples))))
        return self._graph

    def as_triples(self) -> TripleGraph:
        if self._triples is None:
            assert self._graph is not None
            nodes, relationships = self._graph.nodes.values(), self._graph.relationships.values()
            self._triples = TripleGraph(self._mapping.triples_of(Event(0, tuple(nodes), tuple(relationships))))
        return self._triples

    def sizes(self) -> GraphSizes:
        """Return how many triples it has, by their terms."""
        if self._sizes is None:
            self._sizes = GraphSizes(self.as_triples())
        return self._sizes


StaticGraphs = dict[str, StaticGraph]

_NOTHING = StaticGraph(0, EMPTY_GRAPH, Mapping())


def static_graph(graphs: Names[str, StaticGraph], name: str) -> StaticGraph:
    """Return a static graph by name; the default graph is empty unless it was set."""
    found = graphs.get(name)
    if found is not None:
        return found
    if name == DEFAULT_GRAPH:
        return _NOTHING
    raise InternalError(f"a registered query reads the graph `{name}`, which nobody gave")


@dataclass(slots=True)
class SharedState:
    streams: dict[str, StreamBuffer] = field(default_factory=dict)
    static_graphs: StaticGraphs = field(default_factory=dict)
    contents: Contents = field(default_factory=Contents)
    mapping: Mapping = field(default_factory=Mapping)
    plugin: Plugin | None = None
    rules: tuple[str, ...] = ()
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    clock: ClockReader | None = None  # for timing operators
    check: Callable[[], None] | None = None  # called before and during evaluations; may raise, to end them

    def static(self, name: str) -> StaticGraph:
        return static_graph(self.static_graphs, name)

    def static_version(self, name: str) -> int:
        return self.static(name).version

    def size_of(self, event: Event) -> int:
        """Return how many triples an event has."""
        if event.nodes or event.relationships:
            return len(self.mapping.triples_of(event))
        return len(event.triples)
