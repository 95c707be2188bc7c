"""Blocks of triples and property paths from lark's parse tree.

Collections and blank node property lists are spelled out: the triple that names them comes first, then their own.

Invariant: a path of one IRI is a plain predicate; `PathTree` always holds more than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token

from anabranch.algebra.triples import Alternative, Inverse, NegatedStep, PathLink, PropertyPath, Repeat, Sequence
from anabranch.errors import Span
from anabranch.model.terms import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, Iri
from anabranch.syntax.building import always, listed, same
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.build_terms import TermBuilder


@dataclass(slots=True)
class _Complex:
    """A collection or `[ ... ]`: the node that stands for it, and the triples about it."""

    node: t.NodeTree
    triples: list[t.TripleTree]
    span: Span


@dataclass(slots=True)
class _Property:
    verb: t.VarTree | t.TermTree | t.PathTree
    objects: tuple[t.NodeTree | _Complex, ...]


class TriplesBuilder(TermBuilder):
    """Triples and paths."""

    property_list = object_list = listed
    link_type = always(PathLink(RDF_TYPE))
    negated_one = same

    def triples(self, span: Span, *blocks: list[t.TripleTree]) -> t.TriplesTree:
        return t.TriplesTree(tuple(triple for block in blocks for triple in block), span=span)

    def subject_node(self, span: Span, subject: t.NodeTree, properties: tuple[_Property, ...]) -> list[t.TripleTree]:
        return self._about(subject, properties)

    def subject_complex(
        self, span: Span, subject: _Complex, properties: tuple[_Property, ...] = ()
    ) -> list[t.TripleTree]:
        return subject.triples + self._about(subject.node, properties)

    def property(self, span: Span, verb: Any, objects: tuple[Any, ...]) -> _Property:
        return _Property(verb, objects)

    def _about(self, subject: t.NodeTree, properties: tuple[_Property, ...]) -> list[t.TripleTree]:
        triples: list[t.TripleTree] = []
        for one in properties:
            for target in one.objects:
                node = target.node if isinstance(target, _Complex) else target
                span = _joined(subject.span, one.verb.span, target.span)
                triples.append(t.TripleTree(subject, one.verb, node, span=span))
                if isinstance(target, _Complex):
                    triples += target.triples
        return triples

    def blank_properties(self, span: Span, properties: tuple[_Property, ...]) -> _Complex:
        node = self.anonymous(span)
        return _Complex(node, self._about(node, properties), span)

    def collection(self, span: Span, *members: t.NodeTree | _Complex) -> _Complex:
        cells = [self.anonymous(span) for _ in members]
        triples: list[t.TripleTree] = []
        for position, (cell, member) in enumerate(zip(cells, members, strict=True)):
            node = member.node if isinstance(member, _Complex) else member
            following: t.NodeTree = t.TermTree(RDF_NIL, span=span)
            if position + 1 < len(cells):
                following = cells[position + 1]
            triples.append(t.TripleTree(cell, t.TermTree(RDF_FIRST, span=span), node, span=span))
            if isinstance(member, _Complex):
                triples += member.triples
            triples.append(t.TripleTree(cell, t.TermTree(RDF_REST, span=span), following, span=span))
        return _Complex(cells[0], triples, span)

    # --- paths ---

    def path(self, span: Span, path: PropertyPath) -> t.TermTree | t.PathTree:
        match path:
            case PathLink(iri):
                return t.TermTree(iri, span=span)
            case _:
                return t.PathTree(path, span=span)

    def path_alternative(self, span: Span, *paths: PropertyPath) -> PropertyPath:
        return Alternative(paths)

    def path_sequence(self, span: Span, *paths: PropertyPath) -> PropertyPath:
        return Sequence(paths)

    def inverse(self, span: Span, path: PropertyPath) -> PropertyPath:
        return Inverse(path)

    negated_inverse = inverse

    def repeat(self, span: Span, path: PropertyPath, how: Token) -> PropertyPath:
        return Repeat(path, 1 if how.type == "PLUS" else 0, 1 if how.type == "QUESTION" else None)

    def link(self, span: Span, iri: t.TermTree) -> PathLink:
        assert isinstance(iri.term, Iri)
        return PathLink(iri.term)

    def negated(self, span: Span, *steps: PathLink | Inverse) -> PropertyPath:
        forward = tuple(step.iri for step in steps if isinstance(step, PathLink))
        backward = tuple(
            step.path.iri for step in steps if isinstance(step, Inverse) and isinstance(step.path, PathLink)
        )
        return NegatedStep(forward if forward or not steps else None, backward or None)


def _joined(*spans: Span | None) -> Span | None:
    known = [span for span in spans if span is not None]
    return Span(min(span.start for span in known), max(span.end for span in known)) if known else None
