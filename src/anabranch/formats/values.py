"""Values as JSON and as text: those of Cypher, and RDF terms.

Three forms: `to_json` is for people and programs that read answers (a date is its ISO text, an IRI its text, a number
a number); `to_typed_json` loses nothing and `from_typed_json` reads it back (a date is {"$date": "2015-07-21"}, an IRI
{"$iri": ..}); `cypher_text` prints values as the openCypher TCK does in its tables.

Invariant: from_typed_json(to_typed_json(value)) is the value again, its element ids and the order of its keys
included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from anabranch.errors import EvaluationError
from anabranch.model.literals import FLOAT_TYPES, INTEGER_TYPES, number_of
from anabranch.model.points import Point
from anabranch.model.spelling import Terms
from anabranch.model.temporal import (
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Time,
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)
from anabranch.model.terms import XSD_BOOLEAN, Blank, Iri, Literal, blank_label
from anabranch.model.values import Node, Path, Relationship, Value

Json = Any

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_TAGS: Mapping[type, str] = {
    Date: "$date",
    Time: "$time",
    LocalTime: "$localtime",
    DateTime: "$datetime",
    LocalDateTime: "$localdatetime",
    Duration: "$duration",
}
_PARSERS: Mapping[str, Callable[[str], Value]] = {
    "$date": parse_date,
    "$time": parse_time,
    "$localtime": parse_local_time,
    "$datetime": parse_date_time,
    "$localdatetime": parse_local_date_time,
    "$duration": parse_duration,
}
_PLAIN = frozenset((str, int, bool, type(None)))
_TERMS = Terms()


_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ValueFormatError(ValueError):
    """A typed value that cannot be read; the message is the reason in the user's words."""


# --- JSON for reading -------------------------------------------------------------------------------------------------


def to_json(value: Value) -> Json:
    """Plain JSON: temporal values as ISO text, elements as objects, numbers that JSON lacks as text."""
    if value.__class__ in _PLAIN:
        return value
    match value:
        case float():
            return value if math.isfinite(value) else _float_name(value)
        case Iri():
            return value.value
        case Blank():
            return f"_:{blank_label(value)}"
        case Literal():
            return _literal_to_json(value)
        case list() | tuple():
            return [to_json(item) for item in value]
        case Node():
            return node_to_json(value, to_json)
        case Relationship():
            return relationship_to_json(value, to_json)
        case Path():
            return {
                "nodes": [node_to_json(node, to_json) for node in value.nodes],
                "relationships": [relationship_to_json(one, to_json) for one in value.relationships],
            }
        case Point():
            return _point_to_json(value)
        case Mapping():
            return {key: to_json(item) for key, item in value.items()}
    return str(value)


def _literal_to_json(literal: Literal) -> Json:
    """A number or a truth where the literal is one that JSON can say; else its text."""
    lexical, datatype = literal.lexical, literal.datatype
    if datatype in INTEGER_TYPES:
        number = number_of(lexical, datatype)
        return number if isinstance(number, int) else lexical
    if datatype in FLOAT_TYPES:
        number = number_of(lexical, datatype)
        return number if number is not None and math.isfinite(number) else lexical
    if datatype == XSD_BOOLEAN and lexical in _TRUTHS:
        return _TRUTHS[lexical]
    return lexical


def node_to_json(node: Node, convert: Callable[[Value], Json]) -> dict[str, Json]:
    properties = {key: convert(value) for key, value in node.properties.items()}
    return {"id": node.id, "labels": list(node.labels), "properties": properties}


def relationship_to_json(relationship: Relationship, convert: Callable[[Value], Json]) -> dict[str, Json]:
    return {
        "id": relationship.id,
        "type": relationship.type,
        "from": relationship.source,
        "to": relationship.target,
        "properties": {key: convert(value) for key, value in relationship.properties.items()},
    }


def _point_to_json(point: Point) -> dict[str, Json]:
    return {**dict(zip(point.system.axes, point.coordinates, strict=True)), "crs": point.crs}


def _float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# --- JSON that can be read back ---------------------------------------------------------------------------------------


def to_typed_json(value: Value) -> Json:
    """JSON from which `from_typed_json` makes the same value again."""
    if value.__class__ in _PLAIN:
        return value
    tag = _TAGS.get(type(value))
    if tag is not None:
        return {tag: str(value)}
    match value:
        case float():
            return value if math.isfinite(value) else {"$float": _float_name(value)}
        case Iri():
            return {"$iri": value.value}
        case Blank():
            return {"$blank": list(value)}
        case Literal():
            return {"$literal": list(value)}
        case list() | tuple():
            return [to_typed_json(item) for item in value]
        case Node():
            return {"$node": node_to_json(value, to_typed_json)}
        case Relationship():
            return {"$relationship": relationship_to_json(value, to_typed_json)}
        case Path():
            return {"$path": [to_typed_json(list(value.nodes)), to_typed_json(list(value.relationships))]}
        case Point():
            return {"$point": _point_to_json(value)}
        case Mapping():
            entries = {key: to_typed_json(item) for key, item in value.items()}
            return {"$map": entries} if any(key.startswith("$") for key in entries) else entries
    raise TypeError(f"{type(value).__name__} is not a value of the model")


def from_typed_json(data: Json) -> Value:
    """The value of typed JSON; all tags, elements and paths included."""
    if isinstance(data, list):
        return [from_typed_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        ((tag, content),) = data.items()
        match tag:
            case "$node":
                return _node(content)
            case "$relationship":
                return _relationship(content)
            case "$path":
                nodes, relationships = content
                return Path(
                    tuple(_node(item["$node"]) for item in nodes),
                    tuple(_relationship(item["$relationship"]) for item in relationships),
                )
            case "$iri":
                return Iri(content)
            case "$blank":
                return Blank(*content)
            case "$literal":
                return Literal(*content)
            case "$map":
                return {key: from_typed_json(item) for key, item in content.items()}
            case _ if tag.startswith("$"):
                return tagged_value(tag, content)
    return {key: from_typed_json(item) for key, item in data.items()}


def tagged_value(tag: str, content: Json) -> Value:
    """The temporal value, point or number behind a tag such as `$date`."""
    try:
        if tag == "$point":
            if not isinstance(content, dict):
                raise ValueFormatError('$point needs an object such as {"x": 1, "y": 2}')
            return Point.from_map(content)
        if not isinstance(content, str):
            raise ValueFormatError(f"{tag} needs a text")
        if tag == "$float":
            if content not in _FLOATS:
                raise ValueFormatError(f"$float is one of {', '.join(_FLOATS)}; write other numbers as numbers")
            return _FLOATS[content]
        return _PARSERS[tag](content)
    except KeyError:
        known = ", ".join((*_PARSERS, "$point", "$float", "$map"))
        raise ValueFormatError(f"unknown typed value `{tag}`; there are {known}") from None
    except EvaluationError as error:
        raise ValueFormatError(error.diagnostic.message) from None


def _node(data: Json) -> Node:
    return Node(data["id"], tuple(data["labels"]), {k: from_typed_json(v) for k, v in data["properties"].items()})


def _relationship(data: Json) -> Relationship:
    properties = {key: from_typed_json(value) for key, value in data["properties"].items()}
    return Relationship(data["id"], data["type"], data["from"], data["to"], properties)


# --- text -------------------------------------------------------------------------------------------------------------


def cypher_text(value: Value) -> str:
    """The value as the openCypher TCK prints it: (:A {name: 'x'}), [:T], <(:A)-[:T]->(:B)>, 1.0, '2015-07-21'."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float_text(value)
        case str():
            return _quoted(value)
        case Iri() | Blank() | Literal():
            return _TERMS.term(value)
        case list() | tuple():
            return f"[{', '.join(map(cypher_text, value))}]"
        case Node():
            return _node_text(value)
        case Relationship():
            return f"[:{value.type}{_properties_text(value.properties)}]"
        case Path():
            return f"<{_path_text(value)}>"
        case Mapping():
            return "{" + ", ".join(f"{key}: {cypher_text(item)}" for key, item in value.items()) + "}"
        case Point():
            return str(value)
    return _quoted(str(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return _float_name(value)
    return repr(value)


def _properties_text(properties: Mapping[str, Value]) -> str:
    return f" {cypher_text(dict(properties))}" if properties else ""


def _node_text(node: Node) -> str:
    labels = "".join(f":{label}" for label in node.labels)
    properties = _properties_text(node.properties)
    return f"({labels}{properties if labels else properties.lstrip()})"


def _path_text(path: Path) -> str:
    parts = [_node_text(path.nodes[0])]
    for relationship, before, after in zip(path.relationships, path.nodes[:-1], path.nodes[1:], strict=True):
        text = cypher_text(relationship)
        forward = relationship.source == before.id and relationship.target == after.id
        parts.append(f"-{text}->" if forward else f"<-{text}-")
        parts.append(_node_text(after))
    return "".join(parts)
