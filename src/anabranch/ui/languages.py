"""Language support of the editor: detection of a text's language, and the keywords that Cypher and SPARQL do not have.

Invariant: this is used for colours only; `check` decides whether a text is correct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anabranch.errors import AnabranchError
from anabranch.syntax.languages import language_of

NAMES = {"seraph": "Seraph", "csparql": "C-SPARQL", "lupos": "LUPOS", "rspql": "RSP-QL", "sparql": "SPARQL"}
MODES = {"seraph": "Cypher"}

_SKIPPED = (
    r"(?P<skipped>//[^\n]*|(?<!\S)\#[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|<[^<>\s]*>|`[^`]*`)"
)
_SERAPH = (
    "REGISTER|QUERY|STARTING\\s+AT|WITHIN|EMIT|ON\\s+ENTERING|ON\\s+EXIT(?:ING)?|SNAPSHOT|EVERY"
    "|LOAD\\s+STREAM|ON\\s+STREAM|ON\\s+GRAPH|INTO"
)
_SPARQL = (
    "REGISTER|QUERY|STREAM|RSTREAM|ISTREAM|DSTREAM|FROM\\s+STREAM|FROM\\s+NAMED\\s+WINDOW|WINDOW|RANGE|STEP|TUMBLING|TRIPLES"
    "|COMPUTED\\s+EVERY|AGGREGATE|INTERMEDIATERESULT|DURATION|TYPE|SLIDINGDURATION|SLIDINGTRIPLES|ON(?=\\s+<)"
)
_SERAPH_WORDS = re.compile(rf"{_SKIPPED}|(?<![.\w:]){'(?:' + _SERAPH + ')'}(?![\w:])", re.IGNORECASE | re.DOTALL)
_SPARQL_WORDS = re.compile(rf"{_SKIPPED}|(?<![.\w:?$]){'(?:' + _SPARQL + ')'}(?![\w:])", re.IGNORECASE | re.DOTALL)


def language(text: str) -> str:
    """`seraph`, `csparql`, `lupos`, `rspql` or `sparql`."""
    try:
        return str(language_of(text, "<editor>"))
    except AnabranchError:
        return "seraph" if re.search(r"\b(MATCH|EMIT|WITHIN)\b", text) else "csparql"


def own_words(text: str, of: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of keywords that the streaming language has and its base language has not."""
    words = _SERAPH_WORDS if of == "seraph" else _SPARQL_WORDS
    for found in words.finditer(text):
        if found["skipped"] is None:
            yield found.span()
