"""Hints for texts in the style of other languages: the equivalent in Seraph.

Invariant: a hint depends on the text around the mistake and on the terminals that are accepted there; it never changes
which texts are refused.
"""

from __future__ import annotations

import re
from collections.abc import Set

from anabranch.errors import closest

CLAUSE_START = re.compile(
    r"\b(OPTIONAL\s+MATCH|MATCH|WITH|UNWIND|RETURN|EMIT|CREATE|MERGE|SET|REGISTER|LOAD|UNION|ON\s+ENTERING|ON\s+EXIT|SNAPSHOT"
    r"|EVERY)\b",
    re.IGNORECASE,
)
_PLAIN_LENGTH = re.compile(r"(?P<count>\d+)\s*(?P<unit>w|d|h|m(?!s|o)|s|week|day|hour|min|sec)", re.IGNORECASE)
_KEYWORDS = {"within", "where", "starting", "at", "query", "every", "snapshot", "stream", "graph"}
_GROWS = "is not allowed here: a stream only grows; elements leave with their window"
_WORDS = {
    "delete": f"`DELETE` {_GROWS}",
    "detach": f"`DETACH` {_GROWS}",
    "remove": f"`REMOVE` {_GROWS}",
    "foreach": "`FOREACH` is not allowed here: use UNWIND",
    "having": "`HAVING` is not allowed here: use WITH ... WHERE",
    "select": "Seraph says MATCH ... RETURN; SQL is spoken elsewhere",
    "limit": "LIMIT stands after the projected items and ORDER BY",
    "like": "texts are compared by STARTS WITH, ENDS WITH, CONTAINS, or by a regular expression: name =~ 'A.*'",
    "ilike": "texts are compared by a regular expression: name =~ '(?i)a.*'",
    "between": "write 1 <= n.x <= 2",
    "group": "rows are grouped by the columns that do not aggregate: RETURN n.kind, count(*)",
    "let": "name a value with WITH: WITH *, n.x AS x",
    "filter": "filter with WITH ... WHERE: WITH * WHERE n.x > 1",
    "offset": "rows are passed over by SKIP",
    "shortest": "shortest paths are written shortestPath((a)-[*]-(b)) or allShortestPaths((a)-[*]-(b))",
}
_QUOTED = "a name with other signs than letters, digits and _ needs backticks: "


def hint_for(text: str, word: str, start: int, accepts: Set[str]) -> str:
    """Return a hint for a word that could not be parsed; `accepts` are the terminals that are accepted there."""
    lowered = word.lower()
    keywords = {name[1:] for name in accepts if re.fullmatch(r"_[A-Z]+", name)}
    said = _said_elsewhere(text, lowered, start, accepts)
    if said:
        return said
    near = closest(word, keywords)
    if near and len(word) > 2 and not CLAUSE_START.fullmatch(word) and lowered not in _KEYWORDS:
        return f"did you mean {near[0]}?"
    if lowered == "register":
        return "this is a continuous query: register it (session.register, anabranch run)"
    if keywords >= {"REGISTER", "LOAD"} and CLAUSE_START.fullmatch(word):
        return "wrap the query, REGISTER QUERY name STARTING AT NOW { ... }, or evaluate it plainly (anabranch eval)"
    if "DURATION" in accepts and (length := _PLAIN_LENGTH.match(text, start)):
        unit = length["unit"][0].upper()
        return f"durations are written as ISO 8601: {'P' if unit in 'DW' else 'PT'}{length['count']}{unit}"
    if word == "=" and text[:start].endswith("="):
        return "equality is written `=`"
    if word in ("!", "!="):
        return "inequality is written `<>`"
    if word in ("&", "&&"):
        return "write AND"
    if word == "{" and "WITHIN" in accepts:
        return "close the pattern first"
    if re.match(r"\d+[^\W\d]", text[start:]) or re.match(r"\d+[^\W\d]", word):
        return "a name that begins with a digit needs backticks: `10minAvg`"
    return ""


def _said_elsewhere(text: str, word: str, start: int, accepts: Set[str]) -> str:
    """A hint for what Cypher's relatives, SQL or ISO 8601 say otherwise; empty where the text says no such thing."""
    before, rest = text[:start], text[start:]
    if word in _WORDS:
        return _WORDS[word]
    if "DATETIME" in accepts and re.match(r"\d", rest):
        return "a date is written 2024-05-01, a time of it 2024-05-01T10:00"
    if re.match(r"P\d{4}-\d\d-\d\d", before[before.rfind("P") :]) and word == ":":
        return "durations are written with units: PT10M, P1DT2H"
    if "DURATION" in accepts and word.startswith("$"):
        return "a duration is part of the query's text and cannot be a parameter"
    if word == "call":
        if re.match(r"call\s*(\([^)]*\)\s*)?\{", rest, re.IGNORECASE):
            return "Seraph has subqueries in EXISTS { ... } alone; go on with WITH and MATCH, or OPTIONAL MATCH"
        return "`CALL` is not allowed here: procedures are not part of Seraph"
    counted = re.search(r"\b(count|collect)\s*\{\s*(?:match\s*)?$", before, re.IGNORECASE)
    if counted is not None:
        one = "size([(a)-->(b) | b])" if counted[1].lower() == "count" else "[(a)-->(b) | b]"
        return f"what a pattern finds is a list here: {one}; or use OPTIONAL MATCH and {counted[1].lower()}(b)"
    if word == "shortest" or re.search(r"\bshortest\s*$", before, re.IGNORECASE):
        return _WORDS["shortest"]
    return _in_pattern(before, rest, word)


def _in_pattern(before: str, rest: str, word: str) -> str:
    """A hint for what stands inside of a node or a relationship, or behind one."""
    inside = max(before.rfind("("), before.rfind("[")) > max(before.rfind(")"), before.rfind("]"))
    if inside and word == "where":
        return "a condition stands behind the pattern: MATCH (n) WHERE n.x > 1"
    label = re.search(r":\s*(\w+)$", before)
    if inside and label is not None and word == "-" and (more := re.match(r"(-\w+)+", rest)):
        return f"{_QUOTED}`{label[1]}{more[0]}`"
    if inside and label is not None and word in ("|", "&"):
        other = re.match(r"[|&]\s*:?\s*(\w+)", rest)
        name = other[1] if other is not None else "B"
        return f"labels are asked for in WHERE: n:{label[1]} {'OR' if word == '|' else 'AND'} n:{name}"
    if (
        word in ("{", "+", "*")
        and re.search(r"(->|-|\]\s*-\s*>?)\s*$", before)
        and re.match(r"\{\s*\d*\s*,|[+*]\s*\(", rest)
    ):
        bounds = re.match(r"\{\s*(\d*)\s*,\s*(\d*)", rest)
        shown = f"{bounds[1]}..{bounds[2]}" if bounds is not None else "" if word == "+" else "0.."
        return f"variable length is written inside of the relationship: -[:R*{shown}]->"
    return ""
