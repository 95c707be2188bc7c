"""A plain query on operators on changes: its graph comes piece by piece, stays for a while, and goes again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from anabranch.algebra.operators import Operator, Source, Window
from anabranch.delta.dictionary import Dictionary
from anabranch.engine.answers import AnswerRow
from anabranch.engine.encoded_graphs import EncodedGraph
from anabranch.engine.maintained import IncrementalAnswer
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.mapping import Mapping as GraphMapping
from anabranch.model.union import ElementChanges, WindowContent
from anabranch.model.values import Value
from anabranch.planner.choices import Choices
from anabranch.planner.flow.feeds import GraphSlide, RelationshipSlide, Tick, TripleSlide
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.queries import QueryPlan, plan_query
from anabranch.snapshot import Context


def planned(plan: Operator, parameters: Mapping[str, Value]) -> QueryPlan:
    return plan_query(plan, Choices(parameters=parameters))


class PieceByPiece:
    """The rows of a plan over a property graph that changes. Sources are all the one graph."""

    def __init__(self, query: QueryPlan, parameters: Mapping[str, Value], now: int) -> None:
        self._runtime = Runtime(Dictionary(), parameters)
        self._maintained = IncrementalAnswer(query, self._runtime, listed=True)
        self._encoded = EncodedGraph(self._runtime.dictionary, GraphMapping())
        self._inside: list[Event] = []
        self._left = 0
        self._parameters = parameters
        self._now = now
        self._content = WindowContent(track=True)
        self._changes = ElementChanges()
        self._version = 0

    def tick(self, events: Iterable[Event], forget_before: int = 0) -> list[AnswerRow]:
        events = list(events)
        for event in events:
            self._content.add(event)
        self._content.evict(forget_before)
        for window_properties in self._runtime.properties.values():
            self._encoded.ask(tuple(window_properties))
        nodes, links = self._encoded._of_events(events, self._left + len(self._inside))
        self._inside += events
        while self._inside and self._inside[0].event_time < forget_before:
            self._inside.pop(0)
            self._left += 1
        encoded = self._encoded
        slide = GraphSlide(nodes, links, self._left, encoded.label_sets, encoded.types, encoded.columns)
        self._version += 1
        self._changes = self._content.changes()
        graph = self._content.graph()
        context = Context(graph=lambda source: graph, parameters=self._parameters, clock=self._now)
        self._maintained.advance(
            Tick(
                context,
                self._no_triples,
                lambda window: self._changes,
                self._no_relationships,
                self._signature,
                graph=lambda window: slide,
            )
        )
        return self._maintained.rows()

    def _no_triples(self, window: Window) -> TripleSlide:
        raise AssertionError("a query over property graphs asked for triples")

    def _no_relationships(self, window: Window) -> RelationshipSlide:
        raise AssertionError("no query asks about connectivity here")

    def _signature(self, sources: Sequence[Source]) -> int:
        return self._version

    def kept(self) -> int:
        """How many rows all operators keep together."""
        return sum(size.rows for _, size in self._maintained.sizes())


def pieces(graph: PropertyGraph, random: Random) -> list[Event]:
    """The graph as events of a few elements each, at 0, 1, 2, ..., some elements in two of them."""
    nodes, relationships = list(graph.nodes.values()), list(graph.relationships.values())
    count = random.randint(1, 4)
    homes = {id(one): random.randrange(count) for one in (*nodes, *relationships)}
    again = {id(one) for one in (*nodes, *relationships) if random.random() < 0.3}

    def here(one: object, place: int) -> bool:
        return homes[id(one)] == place or (id(one) in again and (homes[id(one)] + 1) % count == place)

    return [
        Event(
            place,
            tuple(node for node in nodes if here(node, place)),
            tuple(one for one in relationships if here(one, place)),
        )
        for place in range(count)
    ]
