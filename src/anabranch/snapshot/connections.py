"""connected(), component() and componentSize(): the connected components of a window's content.

A union-find forest over the links, built once per evaluation for each kind of links that the query names; O(links) to
build, and almost O(1) per lookup.

Law: two nodes are connected when a path of links leads from one to the other, in any direction; every node is connected
to itself, also one that is not in the window. The name of a component depends on its nodes only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from anabranch.algebra import expressions as ex
from anabranch.errors import EvaluationError, Span
from anabranch.model.mapping import STATEMENT_ROLES
from anabranch.model.scrambled import scrambled
from anabranch.model.terms import Blank, Iri
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, Row
from anabranch.snapshot.context import Context
from anabranch.snapshot.functions.graph import node_id
from anabranch.snapshot.rdf.values import integer


class ConnectedNodes:
    """The connected components of some links, by node."""

    def __init__(self, links: Iterable[tuple[Hashable, Hashable]]) -> None:
        self._parents: dict[Hashable, Hashable] = {}
        self._sizes: dict[Hashable, int] = {}
        for one, other in links:
            self._link(one, other)
        self._names: dict[Hashable, Hashable] | None = None

    def _link(self, one: Hashable, other: Hashable) -> None:
        for node in (one, other):
            if node not in self._parents:
                self._parents[node] = node
                self._sizes[node] = 1
        left, right = self.root(one), self.root(other)
        if left == right:
            return
        if self._sizes[left] < self._sizes[right]:
            left, right = right, left
        self._parents[right] = left
        self._sizes[left] += self._sizes.pop(right)

    def root(self, node: Hashable) -> Hashable:
        parents = self._parents
        if node not in parents:
            return node
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    def size(self, node: Hashable) -> int:
        return self._sizes.get(self.root(node), 1)

    def name(self, node: Hashable) -> Hashable:
        """Return the node that represents the component."""
        if self._names is None:
            self._names = {}
            for member in self._parents:
                root = self.root(member)
                best = self._names.get(root)
                if best is None or scrambled(member) > scrambled(best):
                    self._names[root] = member
        return self._names.get(self.root(node), node)


def compile_connected(
    links: ex.Links, left: ExpressionEvaluator, right: ExpressionEvaluator, span: Span | None
) -> ExpressionEvaluator:
    node_of = _node_of(links, span)

    def evaluate(row: Row, context: Context) -> Value:
        one, other = node_of(left(row, context)), node_of(right(row, context))
        if one is None or other is None:
            return None
        components = _components(links, context)
        return components.root(one) == components.root(other)

    return evaluate


def compile_component(
    links: ex.Links, subject: ExpressionEvaluator, asked: str, span: Span | None
) -> ExpressionEvaluator:
    node_of = _node_of(links, span)

    def evaluate(row: Row, context: Context) -> Value:
        node = node_of(subject(row, context))
        if node is None:
            return None
        components = _components(links, context)
        if asked == "name":
            return components.name(node)
        size = components.size(node)
        return integer(size) if links.of_triples else size

    return evaluate


def _components(links: ex.Links, context: Context) -> ConnectedNodes:
    key = ("components", links)
    found = context.memory.get(key)
    if found is None:
        found = context.memory[key] = ConnectedNodes(_linked(links, context))
    assert isinstance(found, ConnectedNodes)
    return found


def _linked(links: ex.Links, context: Context) -> Iterator[tuple[Hashable, Hashable]]:
    if not links.of_triples:
        for relationship in context.index(links.source).graph.relationships.values():  # type: ignore[arg-type]
            if links.kinds is None or relationship.type in links.kinds:
                yield relationship.source, relationship.target
        return
    graph = context.triples(links.source)
    if links.kinds is None:
        for subject, predicate, object_ in graph:
            if isinstance(object_, Iri | Blank) and predicate not in STATEMENT_ROLES:
                yield subject, object_
        return
    for kind in links.kinds:
        for subject, _, object_ in graph.match(None, Iri(kind), None):
            yield subject, object_


def _node_of(links: ex.Links, span: Span | None) -> Callable[[Value], Hashable]:
    """Return a function from a value to its node: an element's id, or the term itself; null of null."""

    def id_of(value: Value) -> Hashable:
        try:
            return node_id(value)
        except EvaluationError as error:
            raise error.located(span) from None

    return (lambda term: term) if links.of_triples else id_of
