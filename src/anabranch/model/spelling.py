"""RDF terms as short text, as Turtle and SPARQL write them.

Invariant: different terms have different text under the same prefixes; nothing reads it back.
"""

from __future__ import annotations

import re

from anabranch.model.terms import (
    RDF,
    RDF_TYPE,
    RDFS,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    Blank,
    Iri,
    Literal,
    Term,
    blank_label,
)

_COMMON = (("rdf", RDF), ("rdfs", RDFS), ("xsd", XSD))
_LOCAL = re.compile(r"\w([\w.-]*[\w-])?|")
NUMBERS = {
    XSD_INTEGER: re.compile(r"[+-]?[0-9]+"),
    XSD_DECIMAL: re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD_DOUBLE: re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
}
"""By datatype, the numbers that need neither quotes nor a datatype."""
_BARE = {**NUMBERS, XSD_BOOLEAN: re.compile(r"true|false")}


class Terms:
    """Spells terms with the prefixes of a query, and with well-known ones."""

    def __init__(self, prefixes: tuple[tuple[str, str], ...] = ()) -> None:
        taken = {name for name, _ in prefixes}
        known = [*prefixes, *(one for one in _COMMON if one[0] not in taken)]
        self._prefixes = sorted(known, key=lambda one: -len(one[1]))

    def term(self, term: Term) -> str:
        match term:
            case Iri(value):
                return self.iri(value)
            case Blank():
                return f"_:{blank_label(term)}"
            case Literal(lexical, datatype, language):
                bare = _BARE.get(datatype)
                if bare is not None and bare.fullmatch(lexical):
                    return lexical
                quoted = _quoted(lexical)
                if language:
                    return f"{quoted}@{language}"
                return quoted if datatype == XSD_STRING else f"{quoted}^^{self.iri(datatype)}"

    def iri(self, value: str) -> str:
        for name, namespace in self._prefixes:
            if namespace and value.startswith(namespace) and _LOCAL.fullmatch(value[len(namespace) :]):
                return f"{name}:{value[len(namespace) :]}"
        return f"<{value}>"

    def predicate(self, term: Term) -> str:
        return "a" if term == RDF_TYPE else self.term(term)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
