"""Shorthands for the tests of lowering: plans of short texts, with `:` and `xsd:` declared."""

from __future__ import annotations

from anabranch.algebra.operators import DEFAULT_GRAPH, Operator, Registration, Static
from anabranch.algebra.triples import GraphPattern, TermPlace, TriplePattern, Var
from anabranch.model.terms import XSD, XSD_INTEGER, Iri, Literal
from anabranch.syntax import sparql
from anabranch.syntax.sparql.tree import Dialect

PREFIXES = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "
HERE = Static(DEFAULT_GRAPH)


def plan(text: str, graphs: tuple[str, ...] | None = None) -> Operator:
    return sparql.plan(PREFIXES + text, graphs=graphs).plan


def registered(text: str, dialect: Dialect = "csparql") -> Registration:
    (only,) = sparql.statements(PREFIXES + text, dialect)
    return only


def iri(name: str) -> Iri:
    return Iri(f"http://e/{name}")


def number(value: int) -> Literal:
    return Literal(str(value), XSD_INTEGER)


def triple(text: str) -> TriplePattern:
    """`?x p ?y`: words are IRIs of the namespace of the tests."""
    subject, predicate, object_ = (_place(word) for word in text.split())
    return TriplePattern(subject, predicate, object_)


def basic(*texts: str, source: object = HERE) -> GraphPattern:
    return GraphPattern(source, tuple(triple(text) for text in texts))  # type: ignore[arg-type]


def _place(word: str) -> TermPlace:
    if word.startswith("?"):
        return Var(word[1:])
    if word.startswith("_:"):
        return Var(f" {word}")
    return number(int(word)) if word.isdigit() else iri(word)
