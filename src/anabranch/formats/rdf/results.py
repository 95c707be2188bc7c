"""Answers in the result formats of SPARQL, and graphs in those of RDF.

    sparql-json  one document a line             sparql-xml   one document an answer
    tsv          header and rows for each answer sparql-csv   the same in CSV
    ntriples     triples                         nquads       one named graph an answer, with its time: again a stream
    turtle       triples, with prefixes          rdfxml       one document an answer
    jsonld       one document a line

The documents of several answers follow each other. SPARQL results name their answer by a `link` in the head, graphs
by the graph or a comment where the syntax has one: urn:anabranch:QUERY:INSTANT. Values that are no RDF terms are
written as the literals that stand for them, elements of property graphs as their IRIs.

Invariant: what is written here, a standard parser reads; a row becomes one solution, and null is an unbound variable.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from anabranch.errors import EngineError, closest
from anabranch.formats.answers import AnswerParts
from anabranch.formats.rdf.graph_results import GRAPH_FORMS, render_graph
from anabranch.formats.rdf.terms import legal_label, term_text
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import to_json
from anabranch.model.instants import format_instant
from anabranch.model.literals import literals_of
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.spelling import NUMBERS
from anabranch.model.terms import (
    TRUE,
    XSD_BOOLEAN,
    XSD_STRING,
    Blank,
    Iri,
    Literal,
    Term,
)
from anabranch.model.values import Node, Path, Relationship

TABLE_FORMS = ("sparql-json", "sparql-xml", "tsv", "sparql-csv")
FORMS = (*TABLE_FORMS, *GRAPH_FORMS)
GRAPH_COLUMNS = ("subject", "predicate", "object")

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EDGES = re.compile(r"^[ \t\n]+|[ \t\n]+$")
_XML_BEGIN = ('<?xml version="1.0"?>', '<sparql xmlns="http://www.w3.org/2005/sparql-results#">')
_XML_END = "</sparql>"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def render(form: str, parts: AnswerParts, prefixes: Mapping[str, str] | None = None) -> bytes:
    """The answer in a form of `FORMS`. `prefixes` shorten IRIs where the form has prefixes."""
    return ResultTexts(form, prefixes).render(parts)


class ResultTexts:
    """The answers of one query in a form of `FORMS`, one after the other. A row that the answer before had is not
    rendered again, where the form writes rows one by one."""

    def __init__(self, form: str, prefixes: Mapping[str, str] | None = None) -> None:
        self._form = form
        self._prefixes = prefixes or {}
        self._columns: tuple[str, ...] = ()
        self._terms: RenderedRows[_TermRow] = RenderedRows(_term_rows)
        self._rows: RenderedRows[bytes] = RenderedRows(self._row_texts)

    def render(self, parts: AnswerParts) -> bytes:
        check_form(self._form, parts.columns)
        name = answer_name(parts)
        if self._form in GRAPH_FORMS:
            triples = [[term for term in row if term is not None] for row in self._terms.of(parts.rows)]
            return render_graph(self._form, name, parts.at, triples, self._prefixes)
        said = _boolean(parts)
        if said is not None:
            return _said(self._form, name, said)
        if parts.columns != self._columns:
            self._columns = parts.columns
            self._rows = RenderedRows(self._row_texts)
        rows = self._rows.of(parts.rows)
        match self._form:
            case "sparql-json":
                return _json(name, parts.columns, rows)
            case "sparql-xml":
                return _xml(name, parts.columns, rows)
            case "tsv":
                return _encoded("\t".join(f"?{column}" for column in parts.columns) + "\n") + b"".join(rows)
        return _csv_row(parts.columns) + b"".join(rows)

    def _row_texts(self, rows: Iterable[AnswerRow]) -> list[bytes]:
        names = self._columns
        found = _term_rows(rows)
        match self._form:
            case "sparql-json":
                return [_json_row(names, row) for row in found]
            case "sparql-xml":
                return [_xml_row(names, row) for row in found]
            case "tsv":
                return [_tsv_row(row) for row in found]
        return [_csv_row(map(_csv_term, row)) for row in found]


def check_form(form: str, columns: Sequence[str]) -> None:
    """Refuse a form that does not exist, or that cannot hold answers with these columns."""
    if form not in FORMS:
        near = closest(form, FORMS)
        guess = f"did you mean {near[0]}?  " if near else ""
        raise EngineError(f"there is no form `{form}`\nhint: {guess}There are {', '.join(FORMS)}.")
    if form in GRAPH_FORMS and tuple(columns) != GRAPH_COLUMNS:
        shown = ", ".join(columns) or "none"
        raise EngineError(
            f"{form} holds triples, and the query's columns are {shown}\n"
            f"hint: CONSTRUCT and DESCRIBE give triples; rows fit into {', '.join(TABLE_FORMS)}"
        )


def answer_name(parts: AnswerParts) -> str:
    """Return the IRI of an answer, marked if it is a correction. A plain query's answer has none."""
    if not parts.query:
        return ""
    name = f"urn:anabranch:{quote(parts.query, safe='')}:{format_instant(parts.at)}"
    return f"{name}:{quote(parts.correction, safe='')}" if parts.correction else name


def term_of(value: Any) -> Term | None:
    """A value as an RDF term; None for null."""
    match value:
        case None | Iri() | Blank() | Literal():
            return value
        case Node():
            return ModelMapping().resource(value.id)
        case Relationship() | Path() | list() | tuple() | dict():
            return Literal(_encode(to_json(value)))
    return next(iter(literals_of(value)), None)


def _boolean(parts: AnswerParts) -> bool | None:
    """Return the result of an ASK; None for rows."""
    if parts.columns != ("ask",) or len(parts.rows) != 1:
        return None
    value = parts.rows[0][0]
    if isinstance(value, bool):
        return value
    if isinstance(value, Literal) and value.datatype == XSD_BOOLEAN:
        return value == TRUE or value.lexical == "1"
    return None


_TermRow = list[Term | None]


def _term_rows(rows: Iterable[AnswerRow]) -> list[_TermRow]:
    return [[term_of(value) for value in row] for row in rows]


def _said(form: str, name: str, said: bool) -> bytes:
    """The answer of an ASK."""
    word = "true" if said else "false"
    match form:
        case "sparql-json":
            return _encoded(_encode({"head": {"link": [name]} if name else {}, "boolean": said}) + "\n")
        case "sparql-xml":
            return _document([*_xml_head(name, ()), f"  <boolean>{word}</boolean>"])
        case "tsv":
            return f"{word}\n".encode()
    return f"{word}\r\n".encode()


# --- JSON and XML -----------------------------------------------------------------------------------------------------


def _json(name: str, columns: Sequence[str], rows: Sequence[bytes]) -> bytes:
    first = _encode(
        {"head": {"vars": list(columns), **({"link": [name]} if name else {})}, "results": {"bindings": []}}
    )
    return b"%s%s]}}\n" % (_encoded(first.removesuffix("]}}")), b",".join(rows))


def _json_row(columns: Sequence[str], row: _TermRow) -> bytes:
    bound = {column: _json_term(term) for column, term in zip(columns, row, strict=True) if term is not None}
    return _encoded(_encode(bound))


def _json_term(term: Term) -> dict[str, str]:
    match term:
        case Iri():
            return {"type": "uri", "value": term.value}
        case Blank():
            return {"type": "bnode", "value": legal_label(term)}
    found = {"type": "literal", "value": term.lexical}
    if term.language:
        found["xml:lang"] = term.language
    elif term.datatype != XSD_STRING:
        found["datatype"] = term.datatype
    return found


def _xml(name: str, columns: Sequence[str], rows: Sequence[bytes]) -> bytes:
    first = _lines([*_XML_BEGIN, *_xml_head(name, columns), "  <results>"])
    return first + b"".join(rows) + _lines(["  </results>", _XML_END])


def _document(lines: Sequence[str]) -> bytes:
    return _lines([*_XML_BEGIN, *lines, _XML_END])


def _xml_head(name: str, columns: Sequence[str]) -> list[str]:
    variables = [f"    <variable name={_attribute(column)}/>" for column in columns]
    return ["  <head>", *variables, *([f"    <link href={_attribute(name)}/>"] if name else []), "  </head>"]


def _xml_row(columns: Sequence[str], row: _TermRow) -> bytes:
    bound = [
        f"      <binding name={_attribute(column)}>{_xml_term(term)}</binding>"
        for column, term in zip(columns, row, strict=True)
        if term is not None
    ]
    return _lines(["    <result>", *bound, "    </result>"])


def _lines(lines: Sequence[str]) -> bytes:
    return _encoded("".join(f"{line}\n" for line in lines))


def _xml_term(term: Term) -> str:
    match term:
        case Iri():
            return f"<uri>{_text(term.value)}</uri>"
        case Blank():
            return f"<bnode>{legal_label(term)}</bnode>"
    about = ""
    if term.language:
        about = f" xml:lang={_attribute(term.language)}"
    elif term.datatype != XSD_STRING:
        about = f" datatype={_attribute(term.datatype)}"
    return f"<literal{about}>{_text(term.lexical)}</literal>"


def _text(text: str) -> str:
    # A bare carriage return would come back as a line feed, and some readers take blanks at the ends away;
    # characters that XML cannot say become U+FFFD.
    escaped = escape(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;"})
    return _EDGES.sub(lambda blanks: "".join(f"&#{ord(one)};" for one in blanks[0]), escaped)


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text))


# --- TSV and CSV ------------------------------------------------------------------------------------------------------


def _tsv_row(row: _TermRow) -> bytes:
    return _encoded("\t".join("" if term is None else _tsv_term(term) for term in row) + "\n")


def _tsv_term(term: Term) -> str:
    if isinstance(term, Literal):
        bare = NUMBERS.get(term.datatype)
        if bare is not None and bare.fullmatch(term.lexical):
            return term.lexical
    return term_text(term)


def _csv_row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return _encoded(text.getvalue())


def _csv_term(term: Term | None) -> str:
    match term:
        case None:
            return ""
        case Iri():
            return term.value
        case Blank():
            return f"_:{legal_label(term)}"
    return term.lexical


def _encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair, which it cannot hold, becomes a question mark."""
    return text.encode("utf-8", "replace")
