"""The TCK's notation for values, read into something that can be compared with what the evaluator gives.

Nodes, relationships and paths are compared by labels, types and properties: the notation has no ids.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

from anabranch.model.points import Point
from anabranch.model.temporal import TEMPORAL_TYPES
from anabranch.model.values import Node, Path, Relationship

_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>-?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>`[^`]*`|[^\W\d][\w]*|-?Infinity)|(?P<sign><-|->|[-\[\](){}<>:,|]))"
)


def shape_of(value: Any, *, unordered_lists: bool = False) -> Hashable:
    """A hashable form of a value of ours."""

    def shape(part: Any) -> Hashable:
        match part:
            case None | str():
                return part
            case bool():
                return ("boolean", part)
            case int():
                return ("integer", part)
            case float():
                return ("float", "NaN" if math.isnan(part) else part)
            case list():
                items = [shape(item) for item in part]
                return ("list", tuple(sorted(items, key=repr) if unordered_lists else items))
            case dict():
                return ("map", frozenset((key, shape(item)) for key, item in part.items()))
            case Node():
                return ("node", frozenset(part.labels), shape(dict(part.properties)))
            case Relationship():
                return ("relationship", part.type, shape(dict(part.properties)))
            case Path():
                steps: list[Hashable] = [shape(part.nodes[0])]
                for relationship, before, after in zip(
                    part.relationships, part.nodes[:-1], part.nodes[1:], strict=True
                ):
                    forward = relationship.source == before.id
                    steps += [("step", forward, shape(relationship)), shape(after)]
                return ("path", tuple(steps))
            case Point():
                return str(part)
            case _ if isinstance(part, TEMPORAL_TYPES):
                return str(part)
            case _:
                raise TypeError(f"no TCK notation for {type(part).__name__}")

    return shape(value)


class Notation:
    """Reads one expected value."""

    def __init__(self, text: str, *, unordered_lists: bool = False) -> None:
        self.text = text
        self.unordered_lists = unordered_lists
        self.tokens = list(_TOKEN.finditer(text))
        self.at = 0

    def read(self) -> Hashable:
        value = self._value()
        if self.at != len(self.tokens):
            raise ValueError(f"cannot read the expected value {self.text!r}")
        return value

    def _peek(self) -> str:
        return self.tokens[self.at].group().strip() if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.at += 1
        return token

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise ValueError(f"cannot read the expected value {self.text!r}")

    def _value(self) -> Hashable:
        token = self.tokens[self.at]
        text = token.group().strip()
        if token.group("string") is not None:
            self.at += 1
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if token.group("number") is not None:
            self.at += 1
            return ("float", float(text)) if re.search(r"[.eE]", text) else ("integer", int(text))
        if token.group("word") is not None:
            self.at += 1
            constants: dict[str, Hashable] = {
                "null": None, "true": ("boolean", True), "false": ("boolean", False), "NaN": ("float", "NaN"),
                "Infinity": ("float", math.inf), "-Infinity": ("float", -math.inf),
            }  # fmt: skip
            return constants[text]
        match text:
            case "[":
                return self._list_or_relationship()
            case "{":
                return self._map()
            case "(":
                return self._node()
            case _:
                return self._path()

    def _list_or_relationship(self) -> Hashable:
        self._take("[")
        if self._peek() == ":":
            self.at -= 1
            return self._relationship()
        items: list[Hashable] = []
        while self._peek() != "]":
            items.append(self._value())
            if self._peek() == ",":
                self._next()
        self._take("]")
        return ("list", tuple(sorted(items, key=repr) if self.unordered_lists else items))

    def _relationship(self) -> Hashable:
        self._take("[")
        self._take(":")
        kind = self._next().strip("`")
        properties = self._map() if self._peek() == "{" else ("map", frozenset())
        self._take("]")
        return ("relationship", kind, properties)

    def _map(self) -> Hashable:
        self._take("{")
        entries: list[tuple[str, Hashable]] = []
        while self._peek() != "}":
            key = self._next().strip("`")
            self._take(":")
            entries.append((key, self._value()))
            if self._peek() == ",":
                self._next()
        self._take("}")
        return ("map", frozenset(entries))

    def _node(self) -> Hashable:
        self._take("(")
        labels = []
        while self._peek() == ":":
            self._next()
            labels.append(self._next().strip("`"))
        properties = self._map() if self._peek() == "{" else ("map", frozenset())
        self._take(")")
        return ("node", frozenset(labels), properties)

    def _path(self) -> Hashable:
        self._take("<")
        steps: list[Hashable] = [self._node()]
        while self._peek() != ">":
            backward = self._next() == "<-"
            relationship = self._relationship()
            self._next()
            steps += [("step", not backward, relationship), self._node()]
        self._take(">")
        return ("path", tuple(steps))


def expected_shape(text: str, *, unordered_lists: bool = False) -> Hashable:
    return Notation(text, unordered_lists=unordered_lists).read()
