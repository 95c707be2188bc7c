"""Functions of nodes, relationships, paths and maps.

Invariant: properties of an element are read from the element itself; only the ends of a relationship need the graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.model.temporal.refusals import kind_of, wrong_kind
from anabranch.model.values import ElementId, Node, Path, Relationship, Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.functions.support import strict


def _entries(value: Value, what: str) -> Mapping[str, Value]:
    match value:
        case Node() | Relationship():
            return value.properties
        case dict():
            return value
    raise wrong_kind(f"{what} of {kind_of(value)}", f"{what} takes a node, a relationship or a map")


@strict
def element_id(value: Value) -> Value:
    if isinstance(value, Node | Relationship):
        return value.id
    raise wrong_kind(f"id() of {kind_of(value)}", "only nodes and relationships have an id")


@strict
def node_id(value: Value) -> Value:
    if isinstance(value, Node):
        return value.id
    raise wrong_kind(f"connectivity of {kind_of(value)}", "only nodes are connected")


def node_id_or_null(value: Value) -> Value:
    return value.id if isinstance(value, Node) else None


@strict
def element_id_text(value: Value) -> Value:
    return str(element_id(value))


@strict
def labels(value: Value) -> Value:
    if isinstance(value, Node):
        return list(value.labels)
    raise wrong_kind(f"labels() of {kind_of(value)}", "only nodes have labels")


@strict
def relationship_type(value: Value) -> Value:
    if isinstance(value, Relationship):
        return value.type
    raise wrong_kind(f"type() of {kind_of(value)}", "only relationships have a type")


@strict
def keys(value: Value) -> Value:
    if isinstance(value, dict):
        return list(value)
    return [key for key, item in _entries(value, "keys()").items() if item is not None]


@strict
def properties(value: Value) -> Value:
    return dict(_entries(value, "properties()"))


def merge_maps(*maps: Value) -> Value:
    """Merge several maps; later entries win (map projection)."""
    merged: dict[str, Value] = {}
    for one in maps:
        if one is None:
            return None
        merged.update(_entries(one, "a map projection"))
    return merged


@strict
def nodes(value: Value) -> Value:
    if isinstance(value, Path):
        return list(value.nodes)
    raise wrong_kind(f"nodes() of {kind_of(value)}", "nodes() takes a path")


@strict
def relationships(value: Value) -> Value:
    if isinstance(value, Path):
        return list(value.relationships)
    raise wrong_kind(f"relationships() of {kind_of(value)}", "relationships() takes a path")


@strict
def length(value: Value) -> Value:
    if isinstance(value, Path):
        return len(value)
    raise wrong_kind(f"length() of {kind_of(value)}", "length() takes a path; size() takes a list or a string")


def exists(value: Value) -> Value:
    return value is not None


def start_node(context: Context, value: Value) -> Value:
    found = _relationship(value, "startNode()")
    return None if found is None else context.end_of(found, found.source)


def end_node(context: Context, value: Value) -> Value:
    found = _relationship(value, "endNode()")
    return None if found is None else context.end_of(found, found.target)


def start_among(value: Value, one: Value, other: Value) -> Value:
    """Return startNode() of a relationship whose ends are two given nodes."""
    found = _relationship(value, "startNode()")
    return None if found is None else _of_id(found.source, one, other)


def end_among(value: Value, one: Value, other: Value) -> Value:
    """Return endNode() of a relationship whose ends are two given nodes."""
    found = _relationship(value, "endNode()")
    return None if found is None else _of_id(found.target, one, other)


def _of_id(node_id: ElementId, one: Value, other: Value) -> Value:
    return one if isinstance(one, Node) and one.id == node_id else other


def _relationship(value: Value, what: str) -> Relationship | None:
    if value is None or isinstance(value, Relationship):
        return value
    raise wrong_kind(f"{what} of {kind_of(value)}", f"{what} takes a relationship")
