"""RDF in case files: Turtle with the prefixes of the case, and terms in short form.

    --- options
    prefix c: http://linkedurbandata.org/city#

    --- events tollgates
    10:01 c:gate1 t:registers "156" .

Invariant: `term_short` writes a term as Turtle that gives the same term, except for blank nodes, whose document is left
out.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyoxigraph as ox

from anabranch.formats.rdf.terms import BlankNames, syntax_reason
from anabranch.model.spelling import Terms
from anabranch.model.terms import RDF, RDFS, XSD, Blank, Term, Triple
from anabranch.testing.notation import NotationError

KNOWN_PREFIXES: Mapping[str, str] = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD}


def read_triples(text: str, prefixes: Mapping[str, str], document: str) -> tuple[Triple, ...]:
    """Parse the triples of a piece of Turtle, each once, in their order."""
    declared = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in {**KNOWN_PREFIXES, **prefixes}.items())
    names = BlankNames(document)
    try:
        found = [names.triple(quad) for quad in ox.parse(declared + text, ox.RdfFormat.TURTLE)]
    except SyntaxError as error:
        raise NotationError(f"no Turtle: {syntax_reason(error)[0]}, in: {text.strip()}") from None
    return tuple(dict.fromkeys(found))


def term_short(term: Term, prefixes: Mapping[str, str]) -> str:
    """Format a term as Turtle: with a prefix where one fits, numbers and truth values bare; blank nodes by their label
    only."""
    if isinstance(term, Blank):
        return f"_:{term.label}"
    return Terms(tuple(prefixes.items())).term(term)
