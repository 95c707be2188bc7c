"""Prefixes and the base: from names and references of a text to IRIs.

References are resolved by RFC 3986, section 5.2, for any scheme and without normalisation. Without a base they stay as
they are written.

Invariant: declarations that stand before REGISTER hold for the rest of the file, those after AS for their statement
only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from anabranch.model.terms import RDF, RDFS, XSD

WELL_KNOWN: dict[str, str] = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "fn": "http://www.w3.org/2005/xpath-functions#",
}
MORE_KNOWN: dict[str, str] = WELL_KNOWN | {
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "schema": "http://schema.org/",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "wgs84": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "saref": "https://saref.etsi.org/core/",
    "time": "http://www.w3.org/2006/time#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "lupos": "http://www.luposdate.org/",
    "anb": "urn:anabranch:function:",
    "c": "http://linkedurbandata.org/city#",
    "t": "http://linkedurbandata.org/traffic#",
}
"""For hints; some of these hold without a declaration in C-SPARQL."""

CSPARQL_PREFIXES: dict[str, str] = WELL_KNOWN | {name: MORE_KNOWN[name] for name in ("c", "t", "anb")}
"""The C-SPARQL papers leave these out; `anb:` is ours."""

ASSUMED: dict[str, dict[str, str]] = {
    "csparql": CSPARQL_PREFIXES,
    "rspql": {"anb": MORE_KNOWN["anb"]},
    "lupos": {"anb": MORE_KNOWN["anb"]},
}
"""The prefixes that hold without a declaration, by dialect."""

_PARTS = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)


@dataclass(slots=True)
class Prologue:
    """The declarations that hold at a place of the text."""

    assumed: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    base: str = ""

    def copy(self) -> Prologue:
        return Prologue(self.assumed, dict(self.prefixes), self.base)

    def declare(self, prefix: str, namespace: str) -> None:
        self.prefixes[prefix] = self.resolve(namespace)

    def namespace(self, prefix: str) -> str | None:
        found = self.prefixes.get(prefix)
        return self.assumed.get(prefix) if found is None else found

    def resolve(self, reference: str) -> str:
        return resolve(reference, self.base) if self.base else reference


def resolve(reference: str, base: str) -> str:
    """The IRI that a reference means, seen from a base."""
    there, here = _PARTS.fullmatch(reference), _PARTS.fullmatch(base)
    assert there is not None
    assert here is not None
    if there["scheme"] is not None:
        return reference
    authority, path, query = here["authority"], here["path"], here["query"]
    if there["authority"] is not None:
        authority, path, query = there["authority"], _without_dots(there["path"]), there["query"]
    elif there["path"]:
        path, query = _without_dots(_merged(here, there["path"])), there["query"]
    elif there["query"] is not None:
        query = there["query"]
    return "".join(
        (
            "" if here["scheme"] is None else f"{here['scheme']}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if there["fragment"] is None else f"#{there['fragment']}",
        )
    )


def _merged(base: re.Match[str], path: str) -> str:
    if path.startswith("/"):
        return path
    if base["authority"] is not None and not base["path"]:
        return f"/{path}"
    return base["path"][: base["path"].rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """RFC 3986, section 5.2.4: `.` and `..` are taken out."""
    rooted = path.startswith("/")
    kept: list[str] = []
    segments = path.split("/")[1:] if rooted else path.split("/")
    for position, segment in enumerate(segments):
        last = position == len(segments) - 1
        if segment == ".":
            kept += [""] * last
        elif segment == "..":
            if kept:
                kept.pop()
            kept += [""] * last
        else:
            kept.append(segment)
    return ("/" if rooted else "") + "/".join(kept)
