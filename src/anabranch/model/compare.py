"""Comparison of values: Cypher's four notions of equality, order, equivalence and sameness, side by side.

`equals` and `compare` are three-valued (`=`, `<`): None is "unknown". `order_key` is the total order of ORDER BY, min
and max. `identity_key` is equivalence (DISTINCT, grouping, joins): null is null, NaN is NaN, an element is its id.
`content_key` is the content that an answer shows: as `identity_key`, but elements with everything they carry.

Where a query defines no order, rows are sorted in the canonical one: by `order_key`, and values that are equal by it (1
and 1.0, two contents of one node) by their looks. So no answer depends on the order of arrival.

Invariant: `equals(a, b) is True` implies `identity_key(a) == identity_key(b)`, so a hash index never loses a match.
Values with the same `canonical_key` look the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from anabranch.model.points import Point
from anabranch.model.temporal import Date, DateTime, Duration, LocalDateTime, LocalTime, Time
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Node, Path, Relationship, Value

_SCALARS = frozenset((str, int, float, bool))
_NUMBERS = frozenset((int, float))

TemporalInstant: TypeAlias = DateTime | LocalDateTime | Date | Time | LocalTime
_INSTANTS = (DateTime, LocalDateTime, Date, Time, LocalTime)


def equals(left: Value, right: Value) -> bool | None:
    """Evaluate `left = right`: None when a null decides it. Values of different kinds differ; numbers compare by
    value."""
    if left is None or right is None:
        return None
    kind = left.__class__
    if kind is right.__class__:
        if kind in _SCALARS:
            return bool(left == right)
        if isinstance(left, list) and isinstance(right, list):
            return _equal_items(left, right)
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            return _equal_items(list(left.values()), [right[key] for key in left])
        return bool(left == right)
    if kind in _NUMBERS and right.__class__ in _NUMBERS:
        return bool(left == right)
    return False


def _equal_items(left: Sequence[Value], right: Sequence[Value]) -> bool | None:
    if len(left) != len(right):
        return False
    answer: bool | None = True
    for one, other in zip(left, right, strict=True):
        same = equals(one, other)
        if same is False:
            return False
        if same is None:
            answer = None
    return answer


def compare(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1 as `left` is less than, equal to or greater than `right`; None when they cannot be compared.

    Comparable are numbers, strings, booleans, lists (item by item) and temporal values of one kind, durations
    excepted."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:
            return None
        return _sign(left, right)
    if kind is not other:
        return None
    if kind is str or kind is bool:
        return _sign(left, right)
    if isinstance(left, list) and isinstance(right, list):
        for one, another in zip(left, right, strict=False):
            if equals(one, another) is True:
                continue
            return compare(one, another)
        return _sign(len(left), len(right))
    if isinstance(left, _INSTANTS) and isinstance(right, _INSTANTS):
        return _sign(left.order_key(), right.order_key())
    return None


def _sign(left: object, right: object) -> int:
    return -1 if left < right else 1 if left > right else 0  # type: ignore[operator]


# --- the total order ------------------------------------------------------------------------------------------------

_TERM, _MAP, _NODE, _RELATIONSHIP, _LIST, _PATH, _POINT = range(-1, 6)
_TERM_RANKS: Mapping[type, int] = {Blank: 0, Iri: 1, Literal: 2}
_TEMPORAL_RANKS: Mapping[type, int] = {
    kind: 6 + position for position, kind in enumerate((DateTime, LocalDateTime, Date, Time, LocalTime, Duration))
}
_STRING, _BOOLEAN, _NUMBER, _NAN, _NULL = range(12, 17)


def order_key(value: Value) -> tuple[object, ...]:
    """Return a sort key of the order across all kinds: RDF terms by their texts (SPARQL has an order of its own), maps,
    nodes, relationships, lists, paths, points, temporal values, strings, booleans, numbers, NaN, null."""
    match value:
        case None:
            return (_NULL,)
        case bool():
            return (_BOOLEAN, value)
        case int():
            return (_NUMBER, value)
        case float():
            return (_NUMBER, value) if value == value else (_NAN,)
        case str():
            return (_STRING, value)
        case list():
            return (_LIST, tuple(map(order_key, value)))
        case dict():
            names = sorted(value)
            return (_MAP, len(names), tuple(names), tuple(order_key(value[name]) for name in names))
        case Node():
            return (_NODE, *_id_order(value.id))
        case Relationship():
            return (_RELATIONSHIP, *_id_order(value.id))
        case Path():
            steps = tuple(
                _id_order(one.id) + _id_order(to.id)
                for one, to in zip(value.relationships, value.nodes[1:], strict=True)
            )
            return (_PATH, _id_order(value.nodes[0].id), steps)
        case Point():
            return (_POINT, value.order_key())
        case DateTime() | LocalDateTime() | Date() | Time() | LocalTime() | Duration():
            return (_TEMPORAL_RANKS[type(value)], value.order_key())
        case Iri() | Blank() | Literal():
            return (_TERM, _TERM_RANKS[type(value)], tuple(value))
    raise TypeError(f"{type(value).__name__} is not a value of the model")


def _id_order(element_id: object) -> tuple[object, ...]:
    """Numbers before texts, so that ids of both kinds can stand in one graph."""
    return (1, element_id) if isinstance(element_id, str) else (0, element_id)


# --- the canonical order ----------------------------------------------------------------------------------------------

SortKey: TypeAlias = tuple[object, ...]

_SELF_EVIDENT = frozenset((str, int, bool, Iri, Literal, Blank))
"""Kinds of which two equivalent values look the same."""


def canonical_key(value: Value) -> SortKey:
    """Return `order_key` with the looks of a value, which order values with equal keys."""
    kind = value.__class__
    if kind is str:
        return (_STRING, value), ()
    if kind is int:
        return (_NUMBER, value), 0
    if kind is float and value == value and value:
        return (_NUMBER, value), 1
    return order_key(value), _look(value)


def _look(value: Value) -> object:
    """Looks of values with the same `order_key` compare; 1 comes before 1.0, and that before -0.0 among zeros."""
    match value:
        case int():
            return 0
        case float():
            return 2 if value == 0 and math.copysign(1.0, value) < 0 else 1
        case list():
            return tuple(map(_look, value))
        case dict():
            return tuple(value), tuple(_look(value[name]) for name in sorted(value))
        case Node():
            return value.labels, canonical_key(dict(value.properties))
        case Relationship():
            ends = _id_order(value.source), _id_order(value.target)
            return value.type, ends, canonical_key(dict(value.properties))
        case Path():
            return tuple(map(_look, value.nodes)), tuple(map(_look, value.relationships))
        case Point():
            return tuple(map(_look, value.coordinates))
    return ()


def row_order_key(row: Sequence[Value]) -> SortKey:
    """Return the key of a row in the canonical order, value by value."""
    return tuple([canonical_key(value) for value in row])


def row_order(columns: Sequence[str]) -> Callable[[Sequence[Value]], SortKey]:
    """Return the canonical order of rows with these columns. Columns count in the order of their names: rewrites that
    change the places of columns do not change it."""
    picks = sorted(range(len(columns)), key=columns.__getitem__)
    if picks == list(range(len(columns))):
        return row_order_key
    return lambda row: tuple([canonical_key(row[pick]) for pick in picks])


def looks_same(one: Value, other: Value) -> bool:
    """Return whether two equivalent values look the same."""
    kind = one.__class__
    if one is other or (kind is other.__class__ and kind in _SELF_EVIDENT):
        return True
    return canonical_key(one) == canonical_key(other)


def first_of(row: tuple[Value, ...], other: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the one of two equivalent rows that stands for both: the first in the canonical order."""
    for one, another in zip(row, other, strict=True):
        if not looks_same(one, another):
            return min(row, other, key=row_order_key)
    return row


class Descending:
    """A reversed sort key, so that rows can be sorted by several keys in both directions at once."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(("descending", self.key))


# --- sameness -------------------------------------------------------------------------------------------------------

_NAN_KEY = ("NaN", None)  # no term: terms are tuples of texts
_TRUE_KEY = ("boolean", True)
_FALSE_KEY = ("boolean", False)


def identity_key(value: Value) -> Hashable:
    """Return a hashable key: two values are equivalent exactly when their keys are equal."""
    kind = value.__class__
    if kind is str or kind is int or value is None or kind is Iri or kind is Literal:
        return value
    match value:
        case Node():
            return ("node", value.id)
        case Relationship():
            return ("relationship", value.id)
        case Path():
            return (
                "path",
                tuple(node.id for node in value.nodes),
                tuple(relationship.id for relationship in value.relationships),
            )
    return _deep_key(value, identity_key)


def content_key(value: Value) -> Hashable:
    """Return a key as `identity_key`, but with the labels, type, ends and properties of nodes and relationships."""
    kind = value.__class__
    if kind is str or kind is int or value is None or kind is Iri or kind is Literal:
        return value
    match value:
        case Node():
            return ("node", value.id, frozenset(value.labels), _map_key(value.properties, content_key))
        case Relationship():
            ends = (value.source, value.target)
            return ("relationship", value.id, value.type, ends, _map_key(value.properties, content_key))
        case Path():
            return ("path", tuple(map(content_key, value.nodes)), tuple(map(content_key, value.relationships)))
    return _deep_key(value, content_key)


def _deep_key(value: Value, key: Callable[[Value], Hashable]) -> Hashable:
    match value:
        case bool():
            return _TRUE_KEY if value else _FALSE_KEY
        case float() if value != value:
            return _NAN_KEY
        case list():
            return ("list", tuple(map(key, value)))
        case dict():
            return ("map", _map_key(value, key))
        case None | int() | float() | str():
            return value
        case Hashable():
            return (type(value).__name__, value)
    raise TypeError(f"{type(value).__name__} is not a value of the model")


def _map_key(entries: Mapping[str, Value], key: Callable[[Value], Hashable]) -> Hashable:
    return frozenset((name, key(item)) for name, item in entries.items())
