"""The results of insight as data: operator graphs, their load, elements, messages, scenes, and reasons.

Invariant: times are UTC microseconds, values are JSON values, and REST sends and the page draws the `to_json` of these
shapes; nothing here refers to an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonRow: TypeAlias = tuple[Json, ...]

BoxKind: TypeAlias = Literal["window", "static", "streaming", "recomputed", "result"]
ElementKind: TypeAlias = Literal["node", "relationship", "triple"]
MessageKind: TypeAlias = Literal[
    "start of evaluation",
    "element added",
    "element deleted",
    "binding added",
    "binding deleted",
    "compute result",
]


@dataclass(frozen=True, slots=True)
class OperatorBox:
    """One operator of a running query; `detail` describes its subject, and the reason if it is recomputed."""

    id: int
    name: str
    detail: str
    inputs: tuple[int, ...]
    kind: BoxKind
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """A query's operators, each after its inputs; the result is the last."""

    query: str
    boxes: tuple[OperatorBox, ...]


@dataclass(frozen=True, slots=True)
class OperatorLoad:
    """The work of one box so far, and the size of its state."""

    id: int
    rows_in: int
    rows_out: int
    held_rows: int
    held_bytes: int
    seconds: float
    calls: int


@dataclass(frozen=True, slots=True)
class Element:
    """A node, relationship or triple as one event brought it. `source` and `target` are ids of nodes.

    The id of a node or relationship is that of the stream, written `n1` or `r1`; that of a triple is its text.
    """

    id: str
    stream: str
    at: int
    kind: ElementKind
    text: str
    source: str | None = None
    target: str | None = None
    label: str = ""
    properties: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """A message from one operator to the next, as in LUPOS: one binding or element each."""

    number: int
    at: int
    kind: MessageKind
    operator: int
    text: str
    row: JsonRow | None = None
    element: Element | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The current output of an operator (given and not taken back): its first rows, and their number."""

    rows: tuple[JsonRow, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class StepState:
    """The state of all operators right after a message."""

    message: Message
    memory: Mapping[int, Memory]
    result: Memory


@dataclass(frozen=True, slots=True)
class Scene:
    """A query's windows as one graph at an instant.

    `elements` holds at most 400, matched and recent ones first; `total` counts all. `entered` and `matched` are ids of
    elements; `left` are the elements that were there at the instant before.
    """

    at: int
    elements: tuple[Element, ...]
    entered: tuple[str, ...]
    left: tuple[Element, ...]
    matched: tuple[str, ...]
    total: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Why:
    """Why a row is in an answer.

    `minimal`: without any one of `elements` the row would not be there. `leaves_at` is the first instant at which the
    row is gone if no further event comes; None if it stays.
    """

    columns: tuple[str, ...]
    row: JsonRow
    at: int
    elements: tuple[Element, ...]
    completed_by: Element | None
    entered_at: int | None
    leaves_at: int | None
    minimal: bool
    note: str


@dataclass(frozen=True, slots=True)
class Departure:
    """Why a row left an answer. `at` is the last instant at which it was there, `left_at` the one after it; None means
    that it is still there.

    `gone` are the elements of the row that left the windows, `changed` those that an event changed, each before and
    after; `came` are elements that keep the row out. `instead` is the row that replaced it: one that differs only in
    its numbers.
    """

    columns: tuple[str, ...]
    row: JsonRow
    at: int
    left_at: int | None
    gone: tuple[Element, ...]
    changed: tuple[tuple[Element, Element], ...]
    came: tuple[Element, ...]
    instead: JsonRow | None
    note: str


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A part of the query's pattern; `span` is its place in the text, (start, stop); `elements` are the elements that
    match it in the nearest match."""

    text: str
    span: tuple[int, int] | None
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """A condition of the query with its value on the nearest match."""

    text: str
    value: Json
    passed: bool


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why no row has these values: the nearest match, the parts that it lacks, and the conditions that reject it."""

    values: Mapping[str, Json]
    at: int
    matched: tuple[PatternPart, ...]
    missing: tuple[PatternPart, ...]
    bindings: Mapping[str, Json]
    filters: tuple[FilterVerdict, ...]
    note: str


def to_json(shape: object) -> Json:
    """Convert a shape, or anything made of shapes, to JSON."""
    match shape:
        case None | bool() | int() | float() | str():
            return shape
        case Mapping():
            return {str(key): to_json(value) for key, value in shape.items()}
        case list() | tuple():
            return [to_json(one) for one in shape]
        case _ if is_dataclass(shape):
            return {one.name: to_json(getattr(shape, one.name)) for one in fields(shape)}
    raise TypeError(f"no JSON of {type(shape).__name__}")
