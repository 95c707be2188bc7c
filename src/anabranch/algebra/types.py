"""Static types: the kinds that a value can have, known before the query runs.

Invariant: a type is a promise about every value the expression can have, `any` promises nothing, and null belongs to
every type; so a refusal by type is never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """`element` is the type of a list's items or of a map's values, as far as it is known."""

    kind: str
    element: Type | None = None

    def __str__(self) -> str:
        if self.kind == "list" and self.element is not None and self.element.kind != "any":
            return f"a list of {self.element.kind}s"
        return _SPOKEN.get(self.kind, f"a {self.kind}")

    def may_hold_elements(self) -> bool:
        """Return whether some value of this type is, or holds, a node, a relationship or a path."""
        if self.kind == "any":
            return self.element is None
        if self.kind in ("list", "map"):
            return self.element is None or self.element.may_hold_elements()
        return self.kind in ("node", "relationship", "path")

    def item(self) -> Type:
        """What the items of such a value are, be it a list, a map, or something with properties."""
        if self.kind == "list" and self.element is not None:
            return self.element
        return SCALAR if self.kind in ("node", "relationship") or not self.may_hold_elements() else ANY

    def may_be(self, kinds: Iterable[str]) -> bool:
        """Return whether some value of this type can be of one of the kinds."""
        if self.kind in ("any", "null"):
            return True
        return self.kind in kinds or (self.kind in ("integer", "float") and "number" in kinds)


_SPOKEN = {
    "any": "any value", "integer": "an integer", "null": "null", "list": "a list", "map": "a map", "date": "a date",
    "localdatetime": "a local datetime", "localtime": "a local time",
}  # fmt: skip

ANY = Type("any")
SCALAR = Type("any", Type("scalar"))
"""Any value that holds no node, relationship or path, as that of a property."""
NULL = Type("null")
BOOLEAN = Type("boolean")
INTEGER = Type("integer")
FLOAT = Type("float")
NUMBER = Type("number")
STRING = Type("string")
MAP = Type("map")
NODE = Type("node")
RELATIONSHIP = Type("relationship")
PATH = Type("path")
POINT = Type("point")
DURATION = Type("duration")
DATETIME = Type("datetime")
TEMPORALS = ("date", "time", "localtime", "datetime", "localdatetime", "duration")


def list_of(element: Type) -> Type:
    return Type("list", element)


def map_of(value: Type) -> Type:
    return Type("map", value)


def common(types: Iterable[Type]) -> Type:
    """Return the narrowest type that holds values of all these types."""
    distinct = {given for given in types if given.kind != "null"}
    if not distinct:
        return NULL
    if len(distinct) == 1:
        return next(iter(distinct))
    if all(given.kind in ("integer", "float", "number") for given in distinct):
        return NUMBER
    kinds = {given.kind for given in distinct}
    if kinds in ({"list"}, {"map"}):
        return Type(kinds.pop(), common(given.element or ANY for given in distinct))
    return ANY if any(given.may_hold_elements() for given in distinct) else SCALAR
