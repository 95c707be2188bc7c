"""RDF terms and triples.

Terms are tuples of different lengths: they hash and compare as fast as Python can, and no two kinds are ever equal.

Invariant: terms are equal exactly when they are the same RDF term. "1" and "01" are two literals with one value; what
values mean is the evaluator's business.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV_TIME = "http://www.w3.org/ns/prov#generatedAtTime"

XSD_STRING = f"{XSD}string"
XSD_BOOLEAN = f"{XSD}boolean"
XSD_INTEGER = f"{XSD}integer"
XSD_DECIMAL = f"{XSD}decimal"
XSD_DOUBLE = f"{XSD}double"
XSD_FLOAT = f"{XSD}float"
XSD_LONG = f"{XSD}long"
XSD_DATE_TIME = f"{XSD}dateTime"
XSD_DATE = f"{XSD}date"
XSD_TIME = f"{XSD}time"
XSD_DURATION = f"{XSD}duration"
XSD_DAY_TIME_DURATION = f"{XSD}dayTimeDuration"
LANG_STRING = f"{RDF}langString"


class Iri(NamedTuple):
    value: str


class Blank(NamedTuple):
    """A blank node: its label means something only inside its document, so the document is part of its name."""

    label: str
    document: str = ""


class Literal(NamedTuple):
    """A lexical form with its datatype; the language is lower case, and empty but for language-tagged strings."""

    lexical: str
    datatype: str = XSD_STRING
    language: str = ""


Term: TypeAlias = Iri | Blank | Literal

RDF_TYPE = Iri(f"{RDF}type")
RDF_FIRST = Iri(f"{RDF}first")
RDF_REST = Iri(f"{RDF}rest")
RDF_NIL = Iri(f"{RDF}nil")
TRUE = Literal("true", XSD_BOOLEAN)
FALSE = Literal("false", XSD_BOOLEAN)


class Triple(NamedTuple):
    subject: Term
    predicate: Term
    object: Term


def tagged(lexical: str, language: str) -> Literal:
    """A language-tagged string; tags compare without regard to case, so they are kept in lower case."""
    return Literal(lexical, LANG_STRING, language.lower())


def blank_label(blank: Blank) -> str:
    """The label of a blank node outside of its document: as N-Triples writes it, without `_:`."""
    return f"{blank.document}.{blank.label}" if blank.document else blank.label
