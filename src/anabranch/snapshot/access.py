"""Access to parts of values: properties, items, slices, labels.

Invariant: a part of null is null, a missing part is null, a part of a value that has no parts is an error.
"""

from __future__ import annotations

from anabranch.model.points import Point
from anabranch.model.temporal import Date, DateTime, Duration, LocalDateTime, LocalTime, Time
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot.compiled import kind_of, wrong_kind


def property_of(subject: Value, key: str) -> Value:
    """`subject.key`."""
    match subject:
        case None:
            return None
        case Node() | Relationship():
            return subject.properties.get(key)
        case dict():
            return subject.get(key)
        case Date() | DateTime() | LocalDateTime() | LocalTime() | Time() | Duration() | Point():
            return subject.component(key)
    raise wrong_kind(
        f"`.{key}` of {kind_of(subject)}",
        "only nodes, relationships, maps, points and temporal values have properties",
    )


def item_of(subject: Value, index: Value) -> Value:
    """`subject[index]`: lists by integer (negative from the end), maps and elements by string."""
    match subject:
        case None:
            return None
        case list():
            if index is None:
                return None
            if not isinstance(index, int) or isinstance(index, bool):
                raise wrong_kind(f"a list's item by {kind_of(index)}", "items are counted by integers, from 0")
            return subject[index] if -len(subject) <= index < len(subject) else None
        case dict() | Node() | Relationship():
            if index is None:
                return None
            if not isinstance(index, str):
                raise wrong_kind(f"a property by {kind_of(index)}", "properties are named by strings")
            return property_of(subject, index)
        case Date() | DateTime() | LocalDateTime() | LocalTime() | Time() | Duration() | Point() if isinstance(
            index, str
        ):
            return property_of(subject, index)
    raise wrong_kind(f"an item of {kind_of(subject)}", "only lists, maps, nodes and relationships have items")


def slice_of(subject: Value, start: Value, stop: Value, has_start: bool, has_stop: bool) -> Value:
    """`subject[start..stop]`; a bound that is written and null gives null."""
    if subject is None or (has_start and start is None) or (has_stop and stop is None):
        return None
    if not isinstance(subject, list):
        raise wrong_kind(f"a slice of {kind_of(subject)}", "only lists can be sliced")
    return subject[_bound(start) : _bound(stop)]


def _bound(value: Value) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong_kind(f"a slice bounded by {kind_of(value)}", "bounds are integers")


def carries_labels(subject: Value, labels: tuple[str, ...]) -> bool | None:
    """Evaluate `subject:A:B`; for a relationship, whether its type equals every named label."""
    match subject:
        case None:
            return None
        case Node():
            return all(label in subject.labels for label in labels)
        case Relationship():
            return all(label == subject.type for label in labels)
    raise wrong_kind(f"labels of {kind_of(subject)}", "only nodes have labels, only relationships have a type")
