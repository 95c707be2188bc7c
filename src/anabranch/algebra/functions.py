"""Signatures of every function that a query may call: names, arguments, result.

Invariant: a function is in this table or it does not exist; evaluators implement exactly these names (a test compares
the two). The types here are those that must be refused before a query runs; kinds that are known only at run time are
`any`.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.algebra.types import (
    ANY,
    BOOLEAN,
    DURATION,
    FLOAT,
    INTEGER,
    MAP,
    NODE,
    NUMBER,
    POINT,
    RELATIONSHIP,
    SCALAR,
    STRING,
    Type,
    list_of,
)

ValueKinds = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function. `parameters` are the kinds each argument may be; the first `required` must be given;
    `rest` repeats the last."""

    name: str
    parameters: tuple[ValueKinds, ...]
    result: Type
    required: int
    rest: bool = False
    aggregate: bool = False

    @property
    def most(self) -> int | None:
        return None if self.rest else len(self.parameters)

    def usage(self) -> str:
        names = ["|".join(kinds) if kinds != _ANY else "value" for kinds in self.parameters]
        shown = names[: self.required] + [f"[{name}]" for name in names[self.required :]]
        return f"{self.name}({', '.join(shown)}{', ...' if self.rest else ''})"


_ANY: ValueKinds = ("any",)
_NUMBER: ValueKinds = ("number",)
_STRING: ValueKinds = ("string",)
_LIST: ValueKinds = ("list",)
_INTEGER: ValueKinds = ("integer",)


def _f(name: str, result: Type, *parameters: ValueKinds, required: int | None = None, rest: bool = False) -> Signature:
    return Signature(name, parameters, result, len(parameters) if required is None else required, rest)


def _aggregate(name: str, result: Type, *parameters: ValueKinds) -> Signature:
    return Signature(name, parameters, result, len(parameters), aggregate=True)


def _temporal(name: str) -> list[Signature]:
    result = Type(name)
    return [
        _f(name, result, ("string", "map", "date", "time", "localtime", "datetime", "localdatetime"), required=0),
        *(_f(f"{name}.{clock}", result, _STRING, required=0) for clock in ("transaction", "statement", "realtime")),
        _f(f"{name}.truncate", result, _STRING, _ANY, ("map",), required=1),
    ]


_SIGNATURES: tuple[Signature, ...] = (
    # scalar
    _f("coalesce", ANY, _ANY, required=1, rest=True),
    _f("endNode", NODE, ("relationship",)),
    _f("startNode", NODE, ("relationship",)),
    _f("head", ANY, _LIST),
    _f("last", ANY, _LIST),
    _f("id", SCALAR, ("node", "relationship")),
    _f("elementId", STRING, ("node", "relationship")),
    _f("length", INTEGER, ("path",)),
    _f("size", INTEGER, ("list", "string")),
    _f("isEmpty", BOOLEAN, ("list", "string", "map")),
    _f("properties", MAP, ("node", "relationship", "map")),
    _f("type", STRING, ("relationship",)),
    _f("exists", BOOLEAN, _ANY),
    Signature("timestamp", (), INTEGER, 0),
    Signature("rand", (), FLOAT, 0),
    # connectivity
    _f("connected", BOOLEAN, ("node",), ("node",), _LIST, required=2),
    _f("component", SCALAR, ("node",), _LIST, required=1),
    _f("componentSize", INTEGER, ("node",), _LIST, required=1),
    # lists
    _f("keys", list_of(STRING), ("node", "relationship", "map")),
    _f("labels", list_of(STRING), ("node",)),
    _f("nodes", list_of(NODE), ("path",)),
    _f("relationships", list_of(RELATIONSHIP), ("path",)),
    _f("rels", list_of(RELATIONSHIP), ("path",)),
    _f("range", list_of(INTEGER), _ANY, _ANY, _ANY, required=2),
    _f("reverse", ANY, ("list", "string")),
    _f("tail", list_of(ANY), _LIST),
    # numbers
    _f("abs", NUMBER, _NUMBER),
    _f("ceil", FLOAT, _NUMBER),
    _f("floor", FLOAT, _NUMBER),
    _f("round", FLOAT, _NUMBER, _INTEGER, _STRING, required=1),
    _f("sign", INTEGER, _NUMBER),
    _f("isNaN", BOOLEAN, _NUMBER),
    *(
        _f(name, FLOAT, _NUMBER)
        for name in ("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "cot", "asin", "acos", "atan")
    ),
    *(_f(name, FLOAT, _NUMBER) for name in ("degrees", "radians", "haversin")),
    _f("atan2", FLOAT, _NUMBER, _NUMBER),
    _f("e", FLOAT),
    _f("pi", FLOAT),
    # strings
    _f("left", STRING, _STRING, _INTEGER),
    _f("right", STRING, _STRING, _INTEGER),
    _f("lTrim", STRING, _STRING),
    _f("rTrim", STRING, _STRING),
    _f("trim", STRING, _STRING),
    _f("replace", STRING, _STRING, _STRING, _STRING),
    _f("split", list_of(STRING), _STRING, ("string", "list")),
    _f("substring", STRING, _STRING, _INTEGER, _INTEGER, required=2),
    _f("toLower", STRING, _STRING),
    _f("toUpper", STRING, _STRING),
    _f("lower", STRING, _STRING),
    _f("upper", STRING, _STRING),
    # conversion
    _f("toString", STRING, _ANY),
    _f("toInteger", INTEGER, _ANY),
    _f("toFloat", FLOAT, _ANY),
    _f("toBoolean", BOOLEAN, _ANY),
    # space
    _f("point", POINT, ("map", "node", "relationship")),
    _f("distance", FLOAT, ("point",), ("point",)),
    _f("point.distance", FLOAT, ("point",), ("point",)),
    # time
    *_temporal("date"),
    *_temporal("time"),
    *_temporal("localtime"),
    *_temporal("datetime"),
    *_temporal("localdatetime"),
    _f("datetime.fromEpoch", Type("datetime"), _NUMBER, _NUMBER),
    _f("datetime.fromEpochMillis", Type("datetime"), _NUMBER),
    _f("duration", DURATION, ("string", "map", "duration")),
    *(_f(f"duration.{name}", DURATION, _ANY, _ANY) for name in ("between", "inMonths", "inDays", "inSeconds")),
    # aggregates
    _aggregate("avg", SCALAR, ("number", "duration")),
    _aggregate("collect", list_of(ANY), _ANY),
    _aggregate("count", INTEGER, _ANY),
    _aggregate("max", ANY, _ANY),
    _aggregate("min", ANY, _ANY),
    _aggregate("percentileCont", FLOAT, _NUMBER, _NUMBER),
    _aggregate("percentileDisc", NUMBER, _NUMBER, _NUMBER),
    _aggregate("stDev", FLOAT, _NUMBER),
    _aggregate("stDevP", FLOAT, _NUMBER),
    _aggregate("sum", SCALAR, ("number", "duration")),
)

FUNCTIONS: dict[str, Signature] = {signature.name.lower(): signature for signature in _SIGNATURES}

CONNECTIVITY: frozenset[str] = frozenset({"connected", "component", "componentsize"})
"""Functions about the graph of a window; in plans they are expressions of their own."""

OPERATORS: frozenset[str] = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "modulo", "power", "negate", "plus"),
        *("in", "starts_with", "ends_with", "contains", "matches", "merge_maps", "node_id", "node_id_or_null"),
        *("start_among", "end_among"),
    }
)
"""Names of `Call` that are operators of the language, not functions that a user can name."""
