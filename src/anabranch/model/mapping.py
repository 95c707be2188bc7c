"""The declared mapping between the two models: RDF triples read as a property graph, and the other way round.

    node            an IRI or a blank node; the node's id is its text
    label           rdf:type with an IRI
    property        a triple with a literal; several values of one event are a list, in their order
    relationship    any other triple; its id is the triple's text, so the same triple again is the same relationship

A relationship with properties is a triple and an rdf:Statement about it that carries the properties.

Law: what both models can say survives there and back: `elements_of` of what `triples_of` gave has the same nodes,
labels, properties and relationships. Not both can say: parallel relationships without properties, bare nodes, languages
of strings, lists of one item, and IRIs of names that were cut where there is no vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

from anabranch.model.event import Event
from anabranch.model.literals import literals_of, value_of
from anabranch.model.terms import RDF, RDF_TYPE, Blank, Iri, Literal, Term, Triple, blank_label
from anabranch.model.values import ElementId, Node, Relationship, Value

DEFAULT_VOCABULARY = "urn:anabranch:vocabulary:"
DEFAULT_RESOURCES = "urn:anabranch:node:"

Elements: TypeAlias = tuple[tuple[Node, ...], tuple[Relationship, ...]]

_STATEMENT = Iri(f"{RDF}Statement")
_ROLES = tuple(Iri(f"{RDF}{name}") for name in ("subject", "predicate", "object"))
STATEMENT_ROLES: frozenset[Term] = frozenset((RDF_TYPE, *_ROLES))
_ABSOLUTE = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*')
_ILLEGAL = re.compile(r'[\x00-\x20<>"{}|^`\\%]')
_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
_RELATIONSHIP = "relationship/"


@dataclass(frozen=True, slots=True)
class Mapping:
    """How names and ids become IRIs. With a `vocabulary`, IRIs that begin with it lose it and all others stay whole;
    without, a name is what follows the last `#`, `/` or `:` of its IRI. Ids that are no IRIs stand behind `resources`.
    """

    vocabulary: str | None = None
    resources: str = DEFAULT_RESOURCES

    # --- to triples -------------------------------------------------------------------------------------------------

    def triples_of(self, event: Event) -> tuple[Triple, ...]:
        """The event as triples, in its order."""
        if not event.nodes and not event.relationships:
            return event.triples
        found: dict[Triple, None] = {}
        for node in event.nodes:
            found |= dict.fromkeys(self._node_triples(node))
        for relationship in event.relationships:
            found |= dict.fromkeys(self._relationship_triples(relationship))
        return event.triples + tuple(found)

    def _node_triples(self, node: Node) -> Iterator[Triple]:
        subject = self.resource(node.id)
        for label in node.labels:
            yield Triple(subject, RDF_TYPE, self.term_of_name(label))
        for key, value in node.properties.items():
            predicate = self.term_of_name(key)
            for literal in literals_of(value):
                yield Triple(subject, predicate, literal)

    def _relationship_triples(self, one: Relationship) -> Iterator[Triple]:
        triple = Triple(self.resource(one.source), self.term_of_name(one.type), self.resource(one.target))
        yield triple
        if one.properties and one.id is not None:
            statement = Iri(f"{self.resources}{_RELATIONSHIP}{_encoded(one.id)}")
            yield Triple(statement, RDF_TYPE, _STATEMENT)
            for role, term in zip(_ROLES, triple, strict=True):
                yield Triple(statement, role, term)
            for key, value in one.properties.items():
                for literal in literals_of(value):
                    yield Triple(statement, self.term_of_name(key), literal)

    def resource(self, element_id: ElementId) -> Iri | Blank:
        """The term of a node."""
        if isinstance(element_id, str):
            if element_id.startswith("_:") and len(element_id) > 2:
                return Blank(element_id[2:])
            if _ABSOLUTE.fullmatch(element_id) and not element_id.startswith(self.resources):
                return Iri(element_id)
        return Iri(f"{self.resources}{_encoded(element_id)}")

    def term_of_name(self, name: str) -> Iri:
        """The IRI of a label, a type or a property key."""
        if self.vocabulary is not None and _ABSOLUTE.fullmatch(name) and not name.startswith(self.vocabulary):
            return Iri(name)
        return Iri((self.vocabulary or DEFAULT_VOCABULARY) + _escaped(name))

    # --- to elements --------------------------------------------------------------------------------------------------

    def elements_of(self, event: Event) -> Elements:
        """The event as nodes and relationships; nodes stand in the order in which its triples first name them."""
        if not event.triples:
            return event.nodes, event.relationships
        triples = dict.fromkeys(event.triples)
        statements = self._statements(triples)
        reified = {one.triple for one in statements.values()}
        graph = _Graph(self)
        for triple in triples:
            subject, predicate, object_ = triple
            statement = statements.get(subject)
            if statement is not None:
                if predicate not in STATEMENT_ROLES and isinstance(object_, Literal):
                    statement.properties.add(self.name_of(predicate), object_)
            elif isinstance(object_, Literal):
                graph.node(subject).properties.add(self.name_of(predicate), object_)
            elif predicate == RDF_TYPE and isinstance(object_, Iri):
                graph.node(subject).labels[self.name_of(object_)] = None
            else:
                graph.node(subject)
                graph.node(object_)
                if triple not in reified:
                    graph.relationships.append(self._relationship(triple))
        for statement in statements.values():
            graph.node(statement.triple.subject)
            graph.node(statement.triple.object)
            graph.relationships.append(self._relationship(statement.triple, statement.id, statement.properties))
        return event.nodes + graph.nodes(), event.relationships + tuple(graph.relationships)

    def _statements(self, triples: Iterable[Triple]) -> dict[Term, _Statement]:
        """The statements about triples that `triples_of` makes of relationships with properties."""
        prefix = self.resources + _RELATIONSHIP
        parts: dict[Term, dict[Term, Term]] = {}
        for subject, predicate, object_ in triples:
            if isinstance(subject, Iri) and subject.value.startswith(prefix) and predicate in STATEMENT_ROLES:
                parts.setdefault(subject, {})[predicate] = object_
        return {
            subject: _Statement(_decoded(subject.value[len(prefix) :]), Triple(*(found[role] for role in _ROLES)))
            for subject, found in parts.items()
            if isinstance(subject, Iri) and found.get(RDF_TYPE) == _STATEMENT and all(role in found for role in _ROLES)
        }

    def _relationship(
        self, triple: Triple, element_id: ElementId | None = None, properties: _Properties | None = None
    ) -> Relationship:
        subject, predicate, object_ = triple
        return Relationship(
            " ".join(_text(term) for term in triple) if element_id is None else element_id,
            self.name_of(predicate),
            self.id_of(subject),
            self.id_of(object_),
            {} if properties is None else properties.values(),
        )

    def id_of(self, term: Term) -> ElementId:
        """The id of the node that an IRI or a blank node is."""
        if isinstance(term, Iri) and term.value.startswith(self.resources):
            return _decoded(term.value[len(self.resources) :])
        return _text(term)

    def name_of(self, term: Term) -> str:
        """The label, type or property key that an IRI is."""
        text = _text(term)
        vocabulary = self.vocabulary or DEFAULT_VOCABULARY
        if len(text) > len(vocabulary) and text.startswith(vocabulary):
            return unquote(text[len(vocabulary) :])
        if self.vocabulary is not None:
            return text
        return text[max(text.rfind("#"), text.rfind("/"), text.rfind(":")) + 1 :] or text


class _Properties:
    """The values of each key, in the order of the triples."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, list[Value]] = {}

    def add(self, key: str, literal: Literal) -> None:
        self._values.setdefault(key, []).append(value_of(literal))

    def values(self) -> dict[str, Value]:
        return {key: found[0] if len(found) == 1 else found for key, found in self._values.items()}


@dataclass(slots=True)
class _Statement:
    id: ElementId
    triple: Triple
    properties: _Properties

    def __init__(self, element_id: ElementId, triple: Triple) -> None:
        self.id = element_id
        self.triple = triple
        self.properties = _Properties()


class _NodeParts:
    __slots__ = ("labels", "properties")

    def __init__(self) -> None:
        self.labels: dict[str, None] = {}
        self.properties = _Properties()


class _Graph:
    """Nodes and relationships in the making."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._nodes: dict[Term, _NodeParts] = {}
        self.relationships: list[Relationship] = []

    def node(self, term: Term) -> _NodeParts:
        found = self._nodes.get(term)
        if found is None:
            found = self._nodes[term] = _NodeParts()
        return found

    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            Node(self._mapping.id_of(term), tuple(parts.labels), parts.properties.values())
            for term, parts in self._nodes.items()
        )


# --- text -----------------------------------------------------------------------------------------------------------


def _text(term: Term) -> str:
    match term:
        case Iri():
            return term.value
        case Blank():
            return f"_:{blank_label(term)}"
        case Literal():
            return term.lexical


def _escaped(text: str) -> str:
    """Text without the characters that no IRI may have."""
    return _ILLEGAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


def _encoded(element_id: ElementId) -> str:
    """Return the text of an id for use behind a prefix. Numbers are their digits; in a text that looks like a number,
    or like a relationship's name, the first character is escaped."""
    if not isinstance(element_id, str):
        return str(element_id)
    if _NUMBER.fullmatch(element_id) or element_id.startswith(_RELATIONSHIP):
        return f"%{ord(element_id[0]):02X}{_escaped(element_id[1:])}"
    return _escaped(element_id)


def _decoded(text: str) -> ElementId:
    return int(text) if _NUMBER.fullmatch(text) else unquote(text)
