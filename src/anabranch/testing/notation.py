"""The short notation of case files: events as Cypher-like patterns, instants as times of a day.

    14:45 (5:Bike:EBike {id: 5})-[r1:rentedAt {user_id: 1234}]->(1:Station {id: 1}), (2:Station)

The word before the first colon is the element's id (an integer when it looks like one). An end of a relationship that
has neither labels nor properties is only named, not described. A relationship without an id is one of its own.

Invariant: the notation of an event gives the same event as its NDJSON.
"""

from __future__ import annotations

import re

from anabranch.formats.events import value_from_json
from anabranch.model.event import Event
from anabranch.model.instants import format_instant, parse_instant
from anabranch.model.values import ElementId, Node, Relationship, Value

INSTANT = r"(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?)Z?"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w])|(?P<text>'(?:[^'\\]|\\.)*')|"
    r"(?P<name>[^\W\d][\w.]*|`[^`]+`|~[\w.]+|\$\w+)|(?P<sign><-|->|[-()\[\]{}:,]))"
)
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}


class NotationError(ValueError):
    """A case file that cannot be parsed; the message names the place."""


def read_instant(text: str, date: str | None) -> int:
    """Parse an instant: full, a date, or a time of the case's day."""
    if re.fullmatch(r"\d\d:\d\d.*", text):
        if date is None:
            raise NotationError(f"`{text}` needs a day: add `date: 2022-10-14` to the options")
        text = f"{date}T{text}"
    return parse_instant(text)


def write_instant(instant: int, date: str | None) -> str:
    """Return the shortest text that `read_instant` parses as the instant."""
    day, _, time = format_instant(instant).removesuffix("Z").partition("T")
    time = time.removesuffix(":00")
    if day == date:
        return time
    return day if time == "00:00" else f"{day}T{time}"


def read_graph_line(line: str) -> Event:
    """Parse elements without an instant, for static graphs."""
    return _Reader(line, 0).event(0)


def read_event(line: str, date: str | None) -> Event:
    """Parse one event of the short notation."""
    head = re.match(rf"\s*({INSTANT})(?=\s|$)", line)
    if head is None:
        raise NotationError(f"an event begins with its instant: {line.strip()}")
    return _Reader(line, head.end()).event(read_instant(head[1], date))


class _Reader:
    """A parser of patterns with one token of look-ahead."""

    def __init__(self, line: str, position: int) -> None:
        self._line = line
        self._position = position
        self._nodes: dict[ElementId, Node] = {}
        self._relationships: list[Relationship] = []

    def event(self, event_time: int) -> Event:
        while self._peek():
            self._path()
            if not self._skip(","):
                break
        if self._peek():
            raise self._error("expected `,` or the end of the event")
        return Event(event_time, tuple(self._nodes.values()), tuple(self._relationships))

    def _path(self) -> None:
        left = self._node()
        if self._peek() not in ("-", "<-"):
            self._nodes.setdefault(left, Node(left))
        while (sign := self._peek()) in ("-", "<-"):
            self._expect(sign)
            self._expect("[")
            element_id = self._id() if self._peek() != ":" else None
            self._expect(":")
            kind = self._name()
            properties = self._map() if self._peek() == "{" else {}
            self._expect("]")
            self._expect("->" if sign == "-" else "-")
            right = self._node()
            source, target = (left, right) if sign == "-" else (right, left)
            self._relationships.append(Relationship(element_id, kind, source, target, properties))
            left = right

    def _node(self) -> ElementId:
        self._expect("(")
        node_id = self._id()
        labels = []
        while self._skip(":"):
            labels.append(self._name())
        properties = self._map() if self._peek() == "{" else {}
        self._expect(")")
        if labels or properties:
            self._nodes[node_id] = Node(node_id, tuple(labels), properties)
        return node_id

    def _map(self) -> dict[str, Value]:
        self._expect("{")
        entries = {}
        while self._peek() != "}":
            key = self._name()
            self._expect(":")
            entries[key] = self._value()
            if not self._skip(","):
                break
        self._expect("}")
        return {key: value for key, value in entries.items() if value is not None}

    def _value(self) -> Value:
        token = self._peek()
        if token == "[":
            self._expect("[")
            items = []
            while self._peek() != "]":
                items.append(self._value())
                if not self._skip(","):
                    break
            self._expect("]")
            return items
        kind, text = self._take()
        if kind == "number":
            return float(text) if re.search(r"[.eE]", text) else int(text)
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind == "name" and text in _WORDS:
            return _WORDS[text]
        if kind == "name":
            return self._call(text)
        raise self._error(f"`{text}` is no value")

    def _call(self, function: str) -> Value:
        """Parse a call such as date('2015-07-21')."""
        self._expect("(")
        kind, text = self._take()
        if kind != "text":
            raise self._error(f"{function}() takes a text here")
        self._expect(")")
        return value_from_json({f"${function}": text[1:-1]})

    def _id(self) -> ElementId:
        kind, text = self._take()
        if kind == "number":
            return int(text)
        if kind == "text":
            return text[1:-1]
        if kind == "name":
            return text.strip("`")
        raise self._error("expected an id")

    def _name(self) -> str:
        kind, text = self._take()
        if kind != "name":
            raise self._error("expected a name")
        return text.strip("`")

    def _peek(self) -> str:
        match = _TOKEN.match(self._line, self._position)
        return match[0].strip() if match else self._line[self._position :].strip()

    def _take(self) -> tuple[str, str]:
        match = _TOKEN.match(self._line, self._position)
        if match is None or match.lastgroup is None:
            raise self._error("cannot read on")
        self._position = match.end()
        return match.lastgroup, match[match.lastgroup]

    def _skip(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._take()
        return True

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self._error(f"expected `{sign}`")

    def _error(self, message: str) -> NotationError:
        return NotationError(f"{message} at `{self._line[self._position :].strip()[:40]}` in: {self._line.strip()}")
