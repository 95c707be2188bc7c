"""Seraph in colour: Cypher's keywords in blue and Seraph's own in green, as the paper prints them.

Invariant: only the style changes, never the text.
"""

from __future__ import annotations

import re

from rich.text import Text

_SERAPH = "REGISTER|QUERY|STARTING|AT|NOW|WITHIN|EMIT|ON|ENTERING|EXIT|SNAPSHOT|EVERY|STREAM|GRAPH|LOAD|FROM|INTO"
_CYPHER = (
    "MATCH|OPTIONAL|WHERE|WITH|UNWIND|RETURN|UNION|ORDER|BY|SKIP|LIMIT|DISTINCT|AS|AND|OR|XOR|NOT|IN|IS|NULL|CASE|WHEN"
    "|THEN|ELSE|END|ALL|ANY|NONE|SINGLE|EXISTS|CONTAINS|STARTS|ENDS|TRUE|FALSE|DESC|ASC|CREATE|MERGE|SET"
)
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<quoted>`[^`]*`)"
    r"|(?P<time>\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?|\bP(?=[\dT])[\dYMWDTHS.]+\b)"
    r"|(?P<label>(?<=[:|])[^\W\d]\w*)"
    rf"|(?P<seraph>(?<![.\w])(?:{_SERAPH})(?!\w))"
    rf"|(?P<cypher>(?<![.\w])(?:{_CYPHER})(?!\w))"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?)"
    r"|(?P<parameter>\$\w+)",
    re.IGNORECASE | re.DOTALL,
)
_STYLES = {
    "comment": "dim italic",
    "string": "yellow",
    "quoted": "",
    "time": "magenta",
    "label": "cyan",
    "seraph": "bold green",
    "cypher": "bold blue",
    "number": "magenta",
    "parameter": "yellow",
}


def highlight(query: str) -> Text:
    text = Text(query)
    for match in _TOKEN.finditer(query):
        text.stylize(_STYLES[match.lastgroup or "quoted"], match.start(), match.end())
    return text
