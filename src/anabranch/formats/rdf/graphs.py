"""Static RDF graphs: Turtle, N-Triples, RDF/XML, JSON-LD, and the default graphs of TriG and N-Quads.

Invariant: a document is read whole or refused with the place of its mistake; its blank nodes have the same names in
every run.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pyoxigraph as ox

from anabranch.errors import MalformedEventError, StreamError
from anabranch.formats.rdf.quads import document_error, parse_quads
from anabranch.model.terms import Triple

_BY_EXTENSION = {
    "ttl": ox.RdfFormat.TURTLE,
    "turtle": ox.RdfFormat.TURTLE,
    # .n3 files usually hold Turtle; rules and variables have no meaning here.
    "n3": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "rdf": ox.RdfFormat.RDF_XML,
    "rdfs": ox.RdfFormat.RDF_XML,
    "owl": ox.RdfFormat.RDF_XML,
    "xml": ox.RdfFormat.RDF_XML,
    "nq": ox.RdfFormat.N_QUADS,
    "nquads": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "jsonld": ox.RdfFormat.JSON_LD,
}
EXTENSIONS = tuple(_BY_EXTENSION)
ACCEPT = (
    "text/turtle, application/n-triples;q=0.9, application/rdf+xml;q=0.8, application/ld+json;q=0.7, "
    "application/trig;q=0.6, application/n-quads;q=0.6, */*;q=0.1"
)
_VAGUE = ("text/plain", "application/octet-stream", "application/xml", "text/xml", "application/json", "text/html")
_BOM = b"\xef\xbb\xbf"


def format_of(name: str, content_type: str | None = None) -> ox.RdfFormat | None:
    """Return the syntax of a document, by its content type and by its name; None when neither tells."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    by_name = _BY_EXTENSION.get(extension_of(name))
    if media_type in ("text/n3", "text/rdf+n3"):
        return ox.RdfFormat.TURTLE
    said = ox.RdfFormat.from_media_type(media_type) if media_type else None
    if said is not None and media_type not in _VAGUE:
        return said
    return by_name if by_name is not None else said


def extension_of(name: str) -> str:
    """The extension of a path or an address without .gz, in lower case."""
    path = urlsplit(name).path if "://" in name else name
    return PurePosixPath(path.removesuffix(".gz")).suffix.lower().removeprefix(".")


def read_triples(
    data: bytes, name: str, *, content_type: str | None = None, base: str | None = None, document: str = ""
) -> list[Triple]:
    """Return the triples of a document.

    `name` (a path or an address) tells its syntax unless `content_type` does; `base` is the base of relative IRIs;
    `document` is part of the names of its blank nodes.
    """
    form = format_of(name, content_type)
    if form is None:
        given = f" of the type {content_type}" if content_type else ""
        known = ", ".join(f".{one}" for one in EXTENSIONS)
        raise StreamError(f"{name}{given} does not say its syntax\nhint: RDF files end with {known}")
    try:
        graphs = parse_quads(data.removeprefix(_BOM), form, document, base)
    except SyntaxError as error:
        raise StreamError(f"{name}: {document_error(error, form.name)}{_hint(data, form)}") from None
    except MalformedEventError as error:
        raise StreamError(f"{name}: {error.reason}") from None
    except ValueError as error:
        raise StreamError(f"{name}: {error}") from None
    if not graphs[None] and len(graphs) > 1:
        raise StreamError(
            f"{name}: its default graph is empty, and it has {len(graphs) - 1} named graphs\n"
            "hint: a static graph is the default graph of a document; named graphs with times are a stream"
        )
    return list(graphs[None])


def _hint(data: bytes, form: ox.RdfFormat) -> str:
    """Return a hint of what the document may be instead."""
    start = data.removeprefix(_BOM).lstrip()[:200].lower()
    if form != ox.RdfFormat.RDF_XML and start.startswith((b"<?xml", b"<rdf:rdf")):
        return "\nhint: it looks like RDF/XML; name it .rdf"
    if start.startswith((b"<!doctype html", b"<html")):
        return "\nhint: it is a web page, and no RDF"
    if form != ox.RdfFormat.JSON_LD and start.startswith((b"{", b"[{")):
        return "\nhint: it looks like JSON-LD; name it .jsonld"
    if form == ox.RdfFormat.N_TRIPLES and start.startswith((b"@prefix", b"prefix", b"@base")):
        return "\nhint: it looks like Turtle; name it .ttl"
    return ""
