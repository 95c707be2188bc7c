"""Detection of a text's language by its content.

Invariant: comments, strings and IRIs are ignored; every text gets a language, and the parser of that language reports
its errors.
"""

from __future__ import annotations

import re
from typing import Literal as OneOf

from anabranch.syntax.sparql.scan import code_of

_RSPQL = re.compile(r"\bREGISTER\s+[RID]STREAM\b|\bFROM\s+NAMED\s+WINDOW\b", re.IGNORECASE)
_LUPOS = re.compile(r"\bSTREAM\s+INTERMEDIATERESULT\b|\bWINDOW\s+TYPE\b", re.IGNORECASE)
_SERAPH = re.compile(
    r"\bREGISTER\s+QUERY\s+(?:`[^`]*`|<[^<>{}]*>|(?!STARTING\b|AS\b)[^\s{]+)?\s*(?:STARTING\s+AT\b(?:(?!\bAS\b)[^{}])*)?\{"
    r"|\bLOAD\s+STREAM\b",
    re.IGNORECASE,
)
_CSPARQL = re.compile(r"\bREGISTER\s+(?:QUERY|STREAM)\b|\bFROM\s+(?:NAMED\s+)?STREAM\b|\bAGGREGATE\s*\{", re.IGNORECASE)
_SPARQL = re.compile(r"(?:\bPREFIX\b[^:]*:|\bBASE\s|\b(?:SELECT|ASK|CONSTRUCT|DESCRIBE)\b)", re.IGNORECASE)
_CYPHER = re.compile(r"\b(?:OPTIONAL\s+MATCH|MATCH|UNWIND|RETURN|EMIT|WITH|CREATE|MERGE)\b", re.IGNORECASE)
_SLASHES = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)


def detect(text: str) -> OneOf["seraph", "csparql", "lupos", "rspql", "sparql"]:
    """The language of a text."""
    code = code_of(text)
    if _RSPQL.search(code):
        return "rspql"
    if _LUPOS.search(code):
        return "lupos"
    slashed = code_of(_SLASHES.sub(" ", text))
    if _SERAPH.search(slashed):
        return "seraph"
    if _CSPARQL.search(code):
        return "csparql"
    sparql, cypher = _SPARQL.search(code), _CYPHER.search(slashed)
    if sparql and (cypher is None or sparql.start() < cypher.start()):
        return "sparql"
    return "seraph" if cypher else "sparql"
