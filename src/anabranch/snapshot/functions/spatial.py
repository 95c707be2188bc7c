"""point() and distance().

Invariant: coordinates mean what `model.points` says; here is only how a query hands them over.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.model.points import Point
from anabranch.model.points import distance as distance_between
from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot.functions.support import strict

_SHORT = {"lat": "latitude", "lon": "longitude"}
_READ_FROM_ELEMENTS = ("x", "y", "z", "longitude", "latitude", "height", "crs", "srid")


@strict
def point(value: Value) -> Value:
    """A point from a map, or from the coordinates that a node or relationship has among its properties."""
    match value:
        case Point():
            return value
        case dict():
            return Point.from_map(_spelled_out(value))
        case Node() | Relationship():
            known = _spelled_out(value.properties)
            fields = {key: known[key] for key in _READ_FROM_ELEMENTS if key in known}
            return Point.from_map(fields) if fields else None
    raise wrong_kind(f"point() of {kind_of(value)}", "point({x: 1, y: 2}) or point({latitude: 1, longitude: 2})")


def _spelled_out(fields: Mapping[str, Value]) -> dict[str, Value]:
    return {_SHORT.get(key, key): item for key, item in fields.items()}


def distance(first: Value, second: Value) -> Value:
    """The distance of two points; null for anything else, as between points of different systems."""
    return distance_between(first, second) if isinstance(first, Point) and isinstance(second, Point) else None
