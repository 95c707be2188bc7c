"""RDF terms as text (N-Triples) and as pyoxigraph has them.

Most terms are plain enough for one regular expression, which costs a tenth of a parser; other texts (escapes, unusual
IRIs) go to pyoxigraph, which also reports what is wrong with a text.

Invariant: `parse_term(term_text(term), d)` is the term again, a blank node under the label that it has outside of its
document. Every parsed term is legal RDF: texts that the regular expressions accept, pyoxigraph accepts too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyoxigraph as ox

from anabranch.errors import MalformedEventError
from anabranch.model.remembered import LONGEST
from anabranch.model.terms import LANG_STRING, XSD_STRING, Blank, Iri, Literal, Term, Triple, blank_label

# ASCII without percent signs and brackets, and no authority with a port or a user: the rest is left to pyoxigraph.
_IRI_CHARACTERS = r"[!$&'()*+,\-./0-9:;=?@A-Z_a-z~]*"
_IRI_TEXT = rf"(?![^:/]*://[^/?#]*[:@])[A-Za-z][A-Za-z0-9+.\-]*:{_IRI_CHARACTERS}(?:#{_IRI_CHARACTERS})?"
_TERM = re.compile(
    rf"<(?P<iri>{_IRI_TEXT})>"
    r'|"(?P<lexical>[^"\\\n\r\ud800-\udfff]*)"'
    rf"(?:\^\^<(?P<datatype>{_IRI_TEXT})>|@(?P<language>[A-Za-z]{{2,3}}(?:-[A-Za-z]{{2}})?))?"
    r"|_:(?P<label>[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?)",
    re.ASCII,
)
_BARE_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]+")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ILLEGAL_IN_LABEL = re.compile(r"[^A-Za-z0-9_.\-]")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_\-]+")
_PLACE = re.compile(r"^Parser error (?:at|between) line .*?: ")
_MOST_TERMS = 1 << 18

_known: dict[str, Term] = {}
"""Terms by their text, without blank nodes and long texts: a stream says the same names again and again."""


# --- from text --------------------------------------------------------------------------------------------------------


def parse_term(text: str, document: str) -> Term:
    """The term of an N-Triples text such as `<http://a>`, `"x"@en` or `_:b`; raises MalformedEventError."""
    known = _known.get(text)
    if known is not None:
        return known
    found = _TERM.fullmatch(text)
    if found is None:
        term = _parsed_slowly(text, document)
    else:
        iri, lexical, datatype, language, label = found.groups()
        if iri is not None:
            term = Iri(iri)
        elif label is not None:
            return Blank(label, document)
        elif language is not None:
            term = Literal(lexical, LANG_STRING, language.lower())
        else:
            term = Literal(lexical, datatype or XSD_STRING)
    if term.__class__ is not Blank and len(text) <= LONGEST:
        if len(_known) >= _MOST_TERMS:
            _known.clear()
        _known[text] = term
    return term


def parse_cell(text: str, document: str, *, is_object: bool) -> Term:
    """The term of a table's cell: N-Triples, or bare: an absolute IRI, and in the object's column any other text."""
    if text.startswith(("<", '"', "_:")):
        return parse_term(text, document)
    if _BARE_IRI.fullmatch(text) is not None:
        try:
            return parse_term(f"<{text}>", document)
        except MalformedEventError:
            if not is_object:
                raise
    if is_object:
        return Literal(text)
    raise MalformedEventError(f"`{_short(text)}` is no IRI; write it like <http://example.org/a>")


def _parsed_slowly(text: str, document: str) -> Term:
    try:
        found = list(ox.parse(f"<a:a> <a:a> {text} .", ox.RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        raise MalformedEventError(f"`{_short(text)}` is no RDF term: {syntax_reason(error)[0]}") from None
    except ValueError as error:  # half a surrogate pair
        raise MalformedEventError(f"`{_short(text)}` is no RDF term: {error}") from None
    if len(found) != 1:
        raise MalformedEventError(f"`{_short(text)}` is no RDF term")
    return from_oxigraph(found[0].object, document)


def syntax_reason(error: SyntaxError) -> tuple[str, int | None, int | None]:
    """Return pyoxigraph's reason without its place; and the line and the column, where it knows them."""
    message, *rest = error.args
    place: Any = rest[0] if rest else (None,) * 6
    reason = _PLACE.sub("", str(message))
    if "LoadDocumentCallback" in reason:
        reason = "its @context is elsewhere, and remote contexts are not loaded; put the context into the document"
    return reason[:1].lower() + reason[1:], place[1], place[2]


# --- from pyoxigraph --------------------------------------------------------------------------------------------------


def from_oxigraph(term: Any, document: str) -> Term:
    """The term that pyoxigraph has read; triples as terms and directed texts (RDF 1.2) are refused."""
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return Blank(term.value, document)
        case ox.Literal():
            if term.direction is not None:
                raise MalformedEventError(f"{term}: texts with a direction (RDF 1.2) are not read")
            language = term.language
            return Literal(term.value, term.datatype.value if language is None else LANG_STRING, language or "")
    raise MalformedEventError(f"{term}: a triple inside a triple (RDF 1.2) is not read")


class BlankNames:
    """Terms of one document; its blank nodes are named b0, b1, ... in the order in which they come.

    pyoxigraph makes up a new name for each `[]` in every run; a name of ours is the same in every run.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self._names: dict[str, Blank] = {}

    def term(self, term: Any) -> Term:
        if isinstance(term, ox.BlankNode):
            known = self._names.get(term.value)
            if known is None:
                known = self._names[term.value] = Blank(f"b{len(self._names)}", self._document)
            return known
        return from_oxigraph(term, self._document)

    def triple(self, quad: Any) -> Triple:
        return Triple(self.term(quad.subject), self.term(quad.predicate), self.term(quad.object))


def to_oxigraph(term: Term) -> Any:
    """The term as pyoxigraph has it; raises ValueError for an IRI that it cannot hold."""
    match term:
        case Iri():
            return ox.NamedNode(term.value)
        case Blank():
            return ox.BlankNode(legal_label(term))
        case Literal():
            if term.language:
                return ox.Literal(term.lexical, language=term.language)
            return ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype))


# --- to text ----------------------------------------------------------------------------------------------------------


def term_text(term: Term) -> str:
    """The term in N-Triples."""
    match term:
        case Iri():
            return f"<{term.value}>"
        case Blank():
            return f"_:{legal_label(term)}"
        case Literal():
            quoted = f'"{_ESCAPED.sub(_escape, term.lexical)}"'
            if term.language:
                return f"{quoted}@{term.language}"
            return quoted if term.datatype == XSD_STRING else f"{quoted}^^<{term.datatype}>"


def triple_text(triple: Triple) -> str:
    """The triple in N-Triples, with its full stop and without a line end."""
    return f"{term_text(triple.subject)} {term_text(triple.predicate)} {term_text(triple.object)} ."


def triples_text(triples: Iterable[Triple]) -> Iterator[str]:
    for triple in triples:
        yield triple_text(triple) + "\n"


def legal_label(blank: Blank) -> str:
    """The label of a blank node outside of its document, of characters that every RDF syntax allows."""
    label = _ILLEGAL_IN_LABEL.sub(lambda found: f"-x{ord(found[0]):X}-", blank_label(blank))
    if not label or label[0] in ".-":
        label = f"b{label}"
    return label if label[-1] != "." else f"{label}_"


def document_of(stream: str, place: str) -> str:
    """The name of a document of a stream: the same in every run, and no two documents of a run share one."""
    if not stream:
        return place
    name = stream if _PLAIN_NAME.fullmatch(stream) else f"s{zlib.crc32(stream.encode('utf-8', 'replace')):08x}"
    return f"{name}.{place.replace('/', '_')}"


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
