"""Functions about terms: their kind, their parts, and the creation of new ones.

Invariant: randomness comes from the context only, so that an evaluation can be repeated.
"""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

from anabranch.model.terms import FALSE, LANG_STRING, TRUE, XSD_DOUBLE, XSD_STRING, Blank, Iri, Literal, tagged
from anabranch.model.values import Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.iris import resolve
from anabranch.snapshot.rdf.values import number_of, text_of

GENERATED = "new"  # the document of blank nodes that a query makes
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


def is_iri(term: Value) -> bool:
    return isinstance(term, Iri)


def is_blank(term: Value) -> bool:
    return isinstance(term, Blank)


def is_literal(term: Value) -> bool:
    return isinstance(term, Literal)


def is_numeric(term: Value) -> bool:
    """A literal with a numeric datatype and a form that the datatype has."""
    return number_of(term) is not None


def as_term(value: Value) -> Value:
    """A truth value as an xsd:boolean; a term is one already."""
    match value:
        case True:
            return TRUE
        case False:
            return FALSE
    return value


def text(term: Value) -> Literal | None:
    """STR: the IRI, or the lexical form as it is."""
    match term:
        case Iri(value):
            return Literal(value)
        case Literal(lexical):
            return Literal(lexical)
    return None


def language(term: Value) -> Literal | None:
    return Literal(term.language) if isinstance(term, Literal) else None


def datatype(term: Value) -> Iri | None:
    return Iri(term.datatype) if isinstance(term, Literal) else None


def iri(term: Value, base: Value | None = None) -> Iri | None:
    """IRI(): a string is resolved against the base of the query."""
    match term:
        case Iri():
            return term
        case Literal(lexical, kind) if kind == XSD_STRING:
            known = base.value if isinstance(base, Iri) else base.lexical if isinstance(base, Literal) else None
            found = resolve(lexical, known)
            return None if found is None else Iri(found)
    return None


def with_datatype(term: Value, kind: Value) -> Literal | None:
    """STRDT."""
    if not isinstance(term, Literal) or term.datatype != XSD_STRING or not isinstance(kind, Iri):
        return None
    return None if kind.value == LANG_STRING else Literal(term.lexical, kind.value)


def with_language(term: Value, tag: Value) -> Literal | None:
    """STRLANG."""
    match term, tag:
        case Literal(lexical, kind), Literal(name, tag_kind) if kind == tag_kind == XSD_STRING:
            return tagged(lexical, name) if _TAG.fullmatch(name) else None
    return None


# --- chance -----------------------------------------------------------------------------------------------------------


def blank(context: Context, label: Value | None = None, identity: Value = None) -> Blank | None:
    """BNODE: a new node; with a label, the same one for the same label and the same identity of the solution."""
    if label is None:
        return Blank(f"n{context.random.getrandbits(96):024x}", GENERATED)
    if not isinstance(label, Literal) or label.datatype != XSD_STRING:
        return None
    seed = repr((label.lexical, identity)).encode("utf-8", "backslashreplace")
    return Blank(f"b{hashlib.blake2b(seed, digest_size=12).hexdigest()}", GENERATED)


def _uuid(context: Context) -> str:
    return str(UUID(int=context.random.getrandbits(128), version=4))


def uuid_iri(context: Context) -> Iri:
    return Iri(f"urn:uuid:{_uuid(context)}")


def uuid_text(context: Context) -> Literal:
    return Literal(_uuid(context))


def rand(context: Context) -> Literal:
    return Literal(text_of(context.random.random()), XSD_DOUBLE)
