"""Ingestion: the steps of LOAD STREAM, which turn a record into an event; each maps a table of rows to a table of rows.

Invariant: an ingestion reads nothing but its record, and writes one event per record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from anabranch.algebra.expressions import Expression
from anabranch.algebra.operators import Operator
from anabranch.errors import Span

ROWS = " rows"
"""The one column of a `Reshape` plan's argument: the rows so far, as a list of lists."""

TIME_FIELDS = ("at", "time", "timestamp", "event_time")
"""The fields of a record that say when it happened, where its LOAD STREAM does not: the first that is there."""


@dataclass(frozen=True, slots=True)
class ElementTemplate:
    """A node or relationship to write. A node that is `bound` is already in the row."""

    variable: str
    labels: tuple[str, ...] = ()
    properties: tuple[tuple[str, Expression], ...] = ()
    bound: bool = False
    reverse: bool = False
    """Whether a relationship points from the node on its right to the node on its left."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`variable.key = value`; without a key a whole map, replacing or merging; without a value, labels to add."""

    variable: str
    key: str | None = None
    value: Expression | None = None
    labels: tuple[str, ...] = ()
    merges: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reshape:
    """UNWIND or WITH: a plan over the rows so far."""

    plan: Operator


@dataclass(frozen=True, slots=True)
class Write:
    """CREATE (`merges` false) or MERGE of a chain of nodes and relationships."""

    nodes: tuple[ElementTemplate, ...]
    relationships: tuple[ElementTemplate, ...]
    columns: tuple[str, ...]
    merges: bool = False
    on_create: tuple[Assignment, ...] = ()
    on_match: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Assign:
    assignments: tuple[Assignment, ...]


Step = Reshape | Write | Assign


@dataclass(frozen=True, slots=True)
class Ingestion:
    """LOAD STREAM FROM `uri` AS `variable`: the elements that each record of the source writes into the stream."""

    uri: str
    stream: str
    variable: str
    at: Expression | None
    steps: tuple[Step, ...]


def last_part(uri: str) -> str:
    """Return the part of an address after its last slash, without its options."""
    parts = urlsplit(uri)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.netloc or uri
