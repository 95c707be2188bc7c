"""Writes, or checks, docs/reference/functions.md: every function with its meaning and an example that was run.

    python tools/function_reference.py           writes
    python tools/function_reference.py --check   exits with 1 where the page is not what this version would write

Signatures come from `anabranch.algebra.functions`, results from `anabranch.evaluate`. A function that is missing
below, or stands in another order than there, stops the run.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import anabranch
from anabranch.algebra.functions import FUNCTIONS, Signature
from anabranch.formats.values import cypher_text

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "functions.md"
WIDTH = 120
NOW = "2024-02-29T12:30:15Z"
GRAPH = {
    "nodes": [
        {"id": 1, "labels": ["Bike", "EBike"], "properties": {"name": "Rosinante", "price": 900}},
        {"id": 2, "labels": ["Station"], "properties": {"latitude": 45.46, "longitude": 9.19}},
        {"id": 3, "labels": ["Station"]},
    ],
    "relationships": [
        {"id": "r1", "type": "rentedAt", "from": 1, "to": 2, "properties": {"user": 1234}},
        {"id": "r2", "type": "returnedAt", "from": 1, "to": 3},
    ],
}

HEAD = """\
# Functions

Every function that a query may call. Names are not case-sensitive; `[...]` is an argument that may be left out, `...`
one that may be repeated. Unless the text says otherwise, null as an argument gives null. The wrong number of arguments
and a kind that can never work are refused before the query runs ([SER-021](../errors.md#ser-021),
[SER-022](../errors.md#ser-022)).

This page is written by `tools/function_reference.py`: the signatures are those of the code, and every result was
computed. Where an example has a MATCH, its graph is this:

```text
(:Bike:EBike {name: 'Rosinante', price: 900})-[:rentedAt {user: 1234}]->(:Station {latitude: 45.46, longitude: 9.19})
(:Bike:EBike {name: 'Rosinante', price: 900})-[:returnedAt]->(:Station)
```

In a continuous query the clock of `datetime()` and its kin is the evaluation instant, so that an answer does not depend
on when it was computed; on this page it is 2024-02-29T12:30:15Z. `shortestPath`, `allShortestPaths`, the quantifiers
`all`, `any`, `none`, `single`, and `reduce` look like functions and are described in [Seraph](seraph.md#expressions).
"""

Entry = tuple[str, str]
"""What it gives, in one line, and an example: an expression, or a query of one column."""

BIKE = "MATCH (b:Bike) RETURN "
RENTAL = "MATCH ()-[r:rentedAt]->() RETURN "
PATH = "MATCH p = (:Bike)-[:rentedAt]->() RETURN "
UNWIND = "UNWIND [4, 1, null, 3] AS x RETURN "


def _temporal(name: str, what: str, text: str, parts: str, units: str, unit: str) -> dict[str, Entry]:
    meaning = f"{what}: from ISO 8601 text, from a map of its parts, or taken from a temporal value; else the clock's"
    clock = f"`{name}()`, perhaps in a time zone; the three clocks are one"
    cut = f"the value, or the clock's, cut down to a unit ({units}); the map then sets smaller parts"
    return {
        name: (meaning, f"[{name}(), {name}('{text}'), {name}({parts})]"),
        f"{name}.transaction": (clock, f"{name}.transaction()"),
        f"{name}.statement": (clock, f"{name}.statement('Europe/Rome')"),
        f"{name}.realtime": (clock, f"{name}.realtime('Asia/Tokyo')"),
        f"{name}.truncate": (cut, f"{name}.truncate('{unit}', {name}('{text}'))"),
    }


_DATE_UNITS = "`'millennium'` ... `'year'`, `'quarter'`, `'month'`, `'week'`, `'day'`"
_TIME_UNITS = "`'day'`, `'hour'`, `'minute'`, `'second'`, `'millisecond'`, `'microsecond'`"
_ALL_UNITS = "`'millennium'` ... `'day'`, `'hour'` ... `'microsecond'`"

GROUPS: dict[str, dict[str, Entry]] = {
    "Scalars": {
        "coalesce": ("the first argument that is not null", "coalesce(null, 'b', 'c')"),
        "endNode": ("the node that a relationship leads to", RENTAL + "labels(endNode(r))"),
        "startNode": ("the node that a relationship comes from", RENTAL + "labels(startNode(r))"),
        "head": ("the first item; null of an empty list", "head([1, 2, 3])"),
        "last": ("the last item; null of an empty list", "last([1, 2, 3])"),
        "id": ("the element's id as the events give it: a number or a text", RENTAL + "id(r)"),
        "elementId": ("the element's id as text", BIKE + "elementId(b)"),
        "length": ("how many relationships a path has", PATH + "length(p)"),
        "size": ("how many items or characters there are", "size('anabranch')"),
        "isEmpty": ("whether there are no items, characters or entries", "isEmpty([])"),
        "properties": ("the properties as a map", BIKE + "properties(b)"),
        "type": ("a relationship's type", RENTAL + "type(r)"),
        "exists": ("whether the value is not null; also takes a pattern", BIKE + "exists(b.owner)"),
        "timestamp": ("milliseconds since 1970 on the clock", "timestamp()"),
        "rand": (
            "a number from 0 up to 1, by chance; in a continuous query a rerun draws the same numbers again",
            "0 <= rand() < 1",
        ),
    },
    "Connectivity": {
        "connected": (
            "whether a path of relationships, in whatever directions, leads from one node to the other in the window "
            "of the last MATCH; along some types alone, where a list names them. A node is connected to itself",
            "MATCH (s:Station), (t:Station) WHERE id(s) < id(t) RETURN connected(s, t)",
        ),
        "component": (
            "the id of one of the nodes that hang together with a node: the same for all of them, and the same again "
            "whenever the same nodes hang together",
            "MATCH (s:Station), (t:Station) WHERE id(s) < id(t) RETURN component(s) = component(t)",
        ),
        "componentSize": ("how many nodes hang together with a node, itself included", BIKE + "componentSize(b)"),
    },
    "Lists": {
        "keys": ("the property keys of an element, or the keys of a map", BIKE + "keys(b)"),
        "labels": ("a node's labels", BIKE + "labels(b)"),
        "nodes": ("the nodes of a path, in its order", PATH + "[n IN nodes(p) | id(n)]"),
        "relationships": ("the relationships of a path, in its order", PATH + "[r IN relationships(p) | type(r)]"),
        "rels": ("the same as `relationships`", PATH + "[r IN rels(p) | type(r)]"),
        "range": ("the integers from the first to the second, both included, perhaps in steps", "range(0, 10, 5)"),
        "reverse": ("the items or characters backwards", "reverse([1, 2, 3])"),
        "tail": ("all items but the first", "tail([1, 2, 3])"),
    },
    "Numbers": {
        "abs": ("the number without its sign", "abs(-3)"),
        "ceil": ("the next whole number up, as a float", "ceil(2.1)"),
        "floor": ("the next whole number down, as a float", "floor(2.9)"),
        "round": (
            "the nearest whole number, halves up; or to some decimals, in a mode (`'UP'`, `'DOWN'`, `'CEILING'`, "
            "`'FLOOR'`, `'HALF_UP'`, `'HALF_DOWN'`, `'HALF_EVEN'`)",
            "[round(2.5), round(2.345, 2), round(2.345, 2, 'DOWN')]",
        ),
        "sign": ("-1, 0 or 1", "sign(-0.5)"),
        "isNaN": ("whether the number is NaN", "isNaN(0.0 / 0.0)"),
        "exp": ("e to the power of the number", "exp(0)"),
        "log": ("the natural logarithm; outside of its domain NaN", "[log(1), log(-1)]"),
        "log10": ("the logarithm to base 10", "log10(1000)"),
        "sqrt": ("the square root", "sqrt(16)"),
        "sin": ("the sine of an angle in radians", "sin(0)"),
        "cos": ("the cosine", "cos(0)"),
        "tan": ("the tangent", "tan(0)"),
        "cot": ("the cotangent", "round(cot(1), 3)"),
        "asin": ("the angle with this sine", "round(asin(1), 3)"),
        "acos": ("the angle with this cosine", "acos(1)"),
        "atan": ("the angle with this tangent", "round(atan(1), 3)"),
        "degrees": ("radians as degrees", "degrees(pi())"),
        "radians": ("degrees as radians", "round(radians(180), 3)"),
        "haversin": ("half of the versine: (1 - cos x) / 2", "haversin(pi())"),
        "atan2": ("the angle of the point (second, first)", "round(atan2(1, 1), 3)"),
        "e": ("Euler's number", "e()"),
        "pi": ("pi", "pi()"),
    },
    "Strings": {
        "left": ("the first characters", "left('anabranch', 3)"),
        "right": ("the last characters", "right('anabranch', 6)"),
        "lTrim": ("without white space at the beginning", "lTrim('  a ')"),
        "rTrim": ("without white space at the end", "rTrim('  a ')"),
        "trim": ("without white space at both ends", "trim('  a ')"),
        "replace": ("every occurrence of the second in the first becomes the third", "replace('branch', 'an', 'un')"),
        "split": (
            "the parts between delimiters, of which there may be a list; an empty one splits into characters",
            "[split('a,b;c', ','), split('a,b;c', [',', ';'])]",
        ),
        "substring": ("the characters from a position on, counted from 0, or so many", "substring('anabranch', 3, 4)"),
        "toLower": ("in lower case", "toLower('AnaBranch')"),
        "toUpper": ("in upper case", "toUpper('AnaBranch')"),
        "lower": ("the same as `toLower`", "lower('A')"),
        "upper": ("the same as `toUpper`", "upper('a')"),
    },
    "Conversion": {
        "toString": ("a number, a boolean, a temporal value or a point as text", "[toString(1.0), toString(true)]"),
        "toInteger": (
            "an integer from a number (cut off), a text (null where it spells none) or a boolean",
            "[toInteger('42'), toInteger(2.9), toInteger('x')]",
        ),
        "toFloat": ("a float from a number or a text (null where it spells none)", "[toFloat('1.5'), toFloat('x')]"),
        "toBoolean": (
            "a boolean from a text (null where it spells none) or an integer (0 is false)",
            "[toBoolean('true'), toBoolean(0), toBoolean('x')]",
        ),
    },
    "Space": {
        "point": (
            "from a map (`x`, `y`, perhaps `z`; or `latitude`, `longitude`, perhaps `height`; `crs` or `srid`), "
            "or from an element with such properties",
            "point({latitude: 45.46, longitude: 9.19})",
        ),
        "distance": (
            "the distance of two points: in their own unit, or in metres on the globe; null between different systems",
            "distance(point({x: 0, y: 0}), point({x: 3, y: 4}))",
        ),
        "point.distance": ("the same as `distance`", "point.distance(point({x: 0, y: 0}), point({x: 3, y: 4}))"),
    },
    "Time": {
        **_temporal("date", "a day of the calendar", "2015-07-21", "{year: 2015, week: 30}", _DATE_UNITS, "month"),
        **_temporal(
            "time",
            "a time of day with an offset",
            "21:40:32+01:00",
            "{hour: 12, timezone: '+02:00'}",
            _TIME_UNITS,
            "hour",
        ),
        **_temporal(
            "localtime", "a time of day without an offset", "21:40:32", "{hour: 12, minute: 31}", _TIME_UNITS, "minute"
        ),
        **_temporal(
            "datetime",
            "a date and time with a zone",
            "2015-07-21T21:40:32Z",
            "{year: 2015, timezone: 'Europe/Rome'}",
            _ALL_UNITS,
            "hour",
        ),
        **_temporal(
            "localdatetime",
            "a date and time without a zone",
            "2015-07-21T21:40:32",
            "{year: 2015, month: 7}",
            _ALL_UNITS,
            "day",
        ),
        "datetime.fromEpoch": (
            "so many seconds and nanoseconds after 1970",
            "datetime.fromEpoch(416779, 500)",
        ),
        "datetime.fromEpochMillis": (
            "so many milliseconds after 1970",
            "datetime.fromEpochMillis(237821673987)",
        ),
        "duration": (
            "a duration from ISO 8601 text or a map of its parts",
            "[duration('P1DT12H'), duration({minutes: 90})]",
        ),
        "duration.between": (
            "from the first value to the second, in months, days and seconds",
            "duration.between(date('2024-01-31'), date('2024-03-01'))",
        ),
        "duration.inMonths": ("the same in whole months", "duration.inMonths(date('2024-01-31'), date('2024-03-01'))"),
        "duration.inDays": ("the same in days", "duration.inDays(date('2024-01-31'), date('2024-03-01'))"),
        "duration.inSeconds": ("the same in seconds", "duration.inSeconds(date('2024-01-31'), date('2024-03-01'))"),
    },
    "Aggregates": {
        "avg": ("the mean; null of nothing", UNWIND + "avg(x)"),
        "collect": ("all values as a list", UNWIND + "collect(x)"),
        "count": ("how many values are not null; `count(*)` counts rows", UNWIND + "[count(x), count(*)]"),
        "max": ("the greatest value, in the order of ORDER BY; null of nothing", UNWIND + "max(x)"),
        "min": ("the least value", UNWIND + "min(x)"),
        "percentileCont": (
            "the value below which a share lies, interpolated",
            UNWIND + "percentileCont(x, 0.25)",
        ),
        "percentileDisc": ("the same, the nearest value that exists", UNWIND + "percentileDisc(x, 0.25)"),
        "stDev": ("the standard deviation of a sample; 0 of fewer than two values", UNWIND + "round(stDev(x), 3)"),
        "stDevP": ("the standard deviation of the whole population", UNWIND + "round(stDevP(x), 3)"),
        "sum": ("the sum of numbers or of durations; 0 of nothing", UNWIND + "sum(x)"),
    },
}

NOTES = {
    "Numbers": "Outside of its domain a function is NaN, past the floats an infinity; none fails on a number.",
    "Strings": "Positions count characters (code points) from 0.",
    "Aggregates": "Aggregates stand in WITH, RETURN and EMIT. They leave out nulls; with DISTINCT each value counts "
    "once: `count(DISTINCT b)`. Over no rows and without grouping columns they still give one row.",
}


def result_of(example: str) -> str:
    """What the example gives, as Cypher writes it."""
    query = example if example.split(" ", 1)[0] in ("MATCH", "UNWIND") else f"RETURN {example}"
    table = anabranch.evaluate(f"{query} AS result", GRAPH, now=NOW, seed=1)
    [[value]] = table.rows
    return cypher_text(value)


def entry(signature: Signature, text: Entry) -> str:
    meaning, example = text
    usage = signature.usage().replace("|", " or ")
    result = str(signature.result).removeprefix("a ").removeprefix("an ")
    head = f"`{usage}` → {result}: {meaning}."
    return f"### {signature.name}\n\n{_fill(head)}\n\n    {example}\n    = {result_of(example)}\n"


def _fill(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    described = [name.lower() for group in GROUPS.values() for name in group]
    if described != list(FUNCTIONS):
        wrong = next((pair for pair in zip(described, FUNCTIONS, strict=False) if pair[0] != pair[1]), None)
        raise SystemExit(f"the functions here and in algebra/functions.py differ: {wrong or (described, FUNCTIONS)}")
    links = _fill(" · ".join(f"[{title}](#{title.lower()})" for title in GROUPS))
    parts = [HEAD, f"{links}\n"]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        if title in NOTES:
            parts.append(_fill(NOTES[title]) + "\n")
        parts += [entry(FUNCTIONS[name.lower()], text) for name, text in group.items()]
    return "\n".join(parts)


def main() -> int:
    new = page()
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == new else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
