"""Graph results: the answers of CONSTRUCT and DESCRIBE as N-Triples, N-Quads, Turtle, RDF/XML and JSON-LD.

Invariant: a standard parser reads the output as the same triples, blank nodes under names that hold for the whole
output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pyoxigraph as ox

from anabranch.errors import EngineError, MalformedEventError
from anabranch.formats.rdf.documents import graph_quads
from anabranch.formats.rdf.records import triple_of
from anabranch.formats.rdf.terms import legal_label, term_text, to_oxigraph, triples_text
from anabranch.model.terms import Blank, Iri, Literal, Term, Triple

GRAPH_FORMS = ("ntriples", "nquads", "turtle", "rdfxml", "jsonld")

_LOCAL_NAME = re.compile(r"[^\W\d][\w.\-]*$")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PREFIX = re.compile(r"(?:[A-Za-z](?:[\w.\-]*[\w\-])?)?", re.ASCII)


def render_graph(form: str, name: str, at: int, rows: Sequence[Sequence[Term]], prefixes: Mapping[str, str]) -> bytes:
    """The triples of one answer, whose IRI is `name`, in a form of `GRAPH_FORMS`."""
    triples = [_triple(row) for row in rows]
    match form:
        case "nquads" if name:
            return graph_quads(name, at, triples)
        case "ntriples" | "nquads":
            return "".join(triples_text(triples)).encode("utf-8", "replace")
        case "turtle":
            head = f"# {name}\n" if name else ""
            return head.encode() + _serialized(triples, ox.RdfFormat.TURTLE, prefixes)
        case "rdfxml":
            return _serialized([_for_xml(one) for one in triples], ox.RdfFormat.RDF_XML, prefixes) + b"\n"
    data = _serialized(triples, ox.RdfFormat.JSON_LD, {})
    return json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _triple(row: Sequence[Term]) -> Triple:
    if len(row) != 3:
        raise EngineError("a triple lacks one of its terms\nhint: bind all variables of the CONSTRUCT template")
    try:
        return triple_of(*row)
    except MalformedEventError as error:
        raise EngineError(f"no triple: {error.reason}") from None


def _serialized(triples: Sequence[Triple], form: ox.RdfFormat, prefixes: Mapping[str, str]) -> bytes:
    try:
        found = [ox.Triple(*map(to_oxigraph, triple)) for triple in triples]
    except ValueError as error:
        raise EngineError(f"an answer holds an IRI that {form.name} cannot: {error}\nhint: ntriples holds it") from None
    data = ox.serialize(found, format=form, prefixes=_usable(prefixes))
    assert data is not None
    return data


def _usable(prefixes: Mapping[str, str]) -> dict[str, str]:
    """The prefixes that a serializer takes; without the others IRIs are only longer."""
    found = {}
    for prefix, iri in prefixes.items():
        try:
            ox.NamedNode(iri)
        except ValueError:
            continue
        if _PREFIX.fullmatch(prefix):
            found[prefix] = iri
    return found


def _for_xml(triple: Triple) -> Triple:
    """The triple within what RDF/XML can say: predicates end with a name, node ids begin with a letter."""
    subject, predicate, object_ = triple
    if isinstance(predicate, Iri) and _LOCAL_NAME.search(predicate.value) is None:
        raise EngineError(
            f"RDF/XML cannot hold the predicate {term_text(predicate)}: it does not end with a name\n"
            "hint: write turtle or ntriples"
        )
    return Triple(_xml_node(subject), predicate, _xml_node(object_))


def _xml_node(term: Term) -> Term:
    match term:
        case Blank():
            label = legal_label(term)
            return term if label[0].isalpha() or label[0] == "_" else Blank(f"n{label}")
        case Literal():
            return term._replace(lexical=_NOT_XML.sub("\ufffd", term.lexical))
    return term
