"""Elements of events: their names, their display form, and the reduction of an event to some of its elements.

A unit is an element by its identity: a triple, or a node or relationship by its id, in one stream. It stands for all of
its arrivals.

Invariant: a relationship is never without its ends: a set that keeps a relationship keeps the nodes at its ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from anabranch.algebra.spell import Speller
from anabranch.formats.values import to_json
from anabranch.insight.shapes import Element, ElementKind, Json
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.spelling import Terms
from anabranch.model.terms import Iri, Literal, Term, Triple
from anabranch.model.values import ElementId, Node, Path, Relationship, Value

Thing: TypeAlias = Triple | Node | Relationship
_PLAIN = Terms()


class ElementUnit(NamedTuple):
    stream: str
    kind: ElementKind
    key: ElementId | Triple | None


class Things:
    """Reads events in the query's data model, and names their elements."""

    def __init__(self, of_triples: bool, mapping: ModelMapping, prefixes: tuple[tuple[str, str], ...]) -> None:
        self.of_triples = of_triples
        self._mapping = mapping
        self._terms = Terms(prefixes)
        self.speller = Speller(prefixes, sparql=of_triples)

    def read(self, event: Event, skip: int = 0) -> Event:
        """Return the event in the query's data model, without its first `skip` triples."""
        if self.of_triples:
            triples = self._mapping.triples_of(event)
            return Event(event.event_time, triples=tuple(triples[skip:]))
        return Event(event.event_time, *self._mapping.elements_of(event)) if event.triples else event

    def all_of(self, event: Event) -> Iterator[Thing]:
        """Yield the elements of an event that was returned by `read`."""
        yield from event.triples
        yield from event.nodes
        yield from event.relationships

    def unit(self, stream: str, thing: Thing) -> ElementUnit:
        match thing:
            case Node():
                return ElementUnit(stream, "node", thing.id)
            case Relationship():
                return ElementUnit(stream, "relationship", thing.id)
        return ElementUnit(stream, "triple", thing)

    def only(self, stream: str, event: Event, kept: Collection[ElementUnit]) -> Event:
        """Return the event reduced to the kept elements."""
        if event.triples:
            return Event(
                event.event_time,
                triples=tuple(one for one in event.triples if ElementUnit(stream, "triple", one) in kept),
            )
        nodes = tuple(one for one in event.nodes if ElementUnit(stream, "node", one.id) in kept)
        relationships = tuple(one for one in event.relationships if ElementUnit(stream, "relationship", one.id) in kept)
        return Event(event.event_time, nodes, relationships)

    # --- display ---

    def element(self, stream: str, thing: Thing, at: int) -> Element:
        match thing:
            case Node():
                return Element(
                    node_name(thing.id),
                    stream,
                    at,
                    "node",
                    f"({_node_text(thing)})",
                    label=":".join(thing.labels),
                    properties=_properties(thing),
                )
            case Relationship():
                body = f":{thing.type}{_properties_text(_properties(thing))}"
                return Element(
                    f"r{thing.id}",
                    stream,
                    at,
                    "relationship",
                    f"({thing.source})-[{body}]->({thing.target})",
                    node_name(thing.source),
                    node_name(thing.target),
                    thing.type,
                    _properties(thing),
                )
        subject, predicate, object_ = thing
        is_value = isinstance(object_, Literal)
        return Element(
            triple_name(thing),
            stream,
            at,
            "triple",
            self.triple_text(thing),
            term_name(subject),
            None if is_value else term_name(object_),
            self._terms.predicate(predicate),
            {"value": to_json(object_)} if is_value else {},
        )

    def triple_text(self, triple: Triple) -> str:
        terms = self._terms
        return f"{terms.term(triple.subject)} {terms.predicate(triple.predicate)} {terms.term(triple.object)}"

    def term_text(self, term: Term) -> str:
        return self._terms.term(term)

    def means(self, value: Value, wanted: Json) -> bool:
        """Return whether a value equals the JSON that a user wrote; an IRI may be written with a prefix."""
        if isinstance(value, Iri) and self.term_text(value) == wanted:
            return True
        return _alike(to_json(value), wanted)

    def row_text(self, columns: Iterable[str], row: Iterable[Value]) -> str:
        """Return a binding as readable text: names with short values, without unbound variables."""
        said = []
        for name, value in zip(columns, row, strict=True):
            if value is not None and not name.startswith(" "):
                said.append(f"{self.speller.name(name)}={self.value_text(value)}")
        return "{" + ", ".join(said) + "}"

    def value_text(self, value: Value) -> str:
        match value:
            case Node():
                return f"({_node_text(value)})"
            case Relationship():
                return f"[{value.id}:{value.type}]"
            case Path():
                return f"path of {len(value.relationships)}"
            case list():
                shown = ", ".join(self.value_text(one) for one in value[:5])
                return f"[{shown}{', ...' if len(value) > 5 else ''}]"
            case str():
                return f'"{value}"'
            case tuple():
                return self._terms.term(value)  # type: ignore[arg-type]
        return str(to_json(value))


def _alike(one: Json, other: Json) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true is not 1."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case list(), list():
            return len(one) == len(other) and all(map(_alike, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_alike(value, other[key]) for key, value in one.items())
    return one == other


def node_name(node_id: ElementId) -> str:
    return f"n{node_id}"


def term_name(term: Term) -> str:
    return _PLAIN.term(term)


def triple_name(triple: Triple) -> str:
    return " ".join(map(term_name, triple))


def unit_name(unit: ElementUnit) -> str:
    """Return the id that the elements of a unit have."""
    match unit.key:
        case Triple():
            return triple_name(unit.key)
        case _:
            return f"{'n' if unit.kind == 'node' else 'r'}{unit.key}"


def _node_text(node: Node) -> str:
    return f"{node.id}{''.join(f':{label}' for label in node.labels)}{_properties_text(_properties(node))}"


def _properties(thing: Node | Relationship) -> dict[str, Json]:
    return {key: to_json(value) for key, value in thing.properties.items()}


def _properties_text(properties: dict[str, Json]) -> str:
    if not properties:
        return ""
    said = ", ".join(f"{key}: {_short(value)}" for key, value in properties.items())
    return f" {{{said}}}"


def _short(value: Json) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
