"""Logical operators: the O-Graph. Each takes bags of rows and gives a bag of rows with named columns.

Invariant: operators are frozen, know their columns, and raise an error for invalid arguments. They describe the result,
not its computation: no operator depends on an index, an engine or a query language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from anabranch.algebra.expressions import AggregateCall, Expression
from anabranch.errors import InternalError, Span
from anabranch.model.temporal import Duration
from anabranch.model.terms import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        raise InternalError(f"{type(self).__name__} has no columns")

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()


# --- where elements come from -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream by name; None is the session's only stream."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The union of a stream's events in the window that ends at the evaluation instant.

    One of three fields limits its content: a `width` in time; a `count` of triples, the last that came; or `unbounded`,
    all that has come so far. Without any of them it is all given events: the graph of a plain query.

    With a `step`, the content moves only at multiples of it: at an instant between two of them it is still that of the
    last one. `keep` holds the only patterns that the query reads of it (summarisation); None keeps everything."""

    stream: Stream = Stream()
    width: Duration | None = None
    count: int | None = None
    unbounded: bool = False
    step: Duration | None = None
    keep: tuple[TripleFilter, ...] | None = None

    def __post_init__(self) -> None:
        if (self.width is not None) + (self.count is not None) + self.unbounded > 1:
            raise InternalError("a window reaches back by time, by count or without bound, not by two of them")


@dataclass(frozen=True, slots=True)
class Static:
    """A static graph, by name."""

    name: str


DEFAULT_GRAPH = "default"
"""The name of the static graph that SPARQL queries read when they name none; it is empty if none was given."""


@dataclass(frozen=True, slots=True)
class MergedSource:
    """Several windows and static graphs as one set of triples: the default graph of a SPARQL query."""

    parts: tuple[Window | Static, ...]


TripleFilter = tuple[Term | None, Term | None, Term | None]
"""A triple's terms that are known beforehand; None fits every term."""

Source = Window | Static
TripleSource = Window | Static | MergedSource


# --- leaves -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit(Operator):
    """One row without columns: the start of every query."""

    @property
    def columns(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Argument(Operator):
    """The enclosing row, inside the plan of an `Exists` or `CollectRows` expression."""

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@dataclass(frozen=True, slots=True)
class RowBag(Operator):
    """A bag of rows that an evaluation is given, in the place of a part of the plan that was computed before."""

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


class RuleRows:
    """The rows of a table by their numbers, which come and go while a plan runs; `revision` counts the changes."""

    __slots__ = ("held", "revision")

    def __init__(self) -> None:
        self.held: dict[int, tuple[Any, ...]] = {}
        self.revision = 0

    def add(self, number: int, constants: tuple[Any, ...]) -> None:
        self.held[number] = (number, *constants)
        self.revision += 1

    def remove(self, number: int) -> None:
        del self.held[number]
        self.revision += 1


@dataclass(frozen=True, slots=True)
class RuleTable(Operator):
    """The constants of queries that run as one plan, a row for each behind its number. No value is null."""

    names: tuple[str, ...]
    rows: RuleRows

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


Direction = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A node to find. Every node has a variable; anonymous ones begin with a space."""

    variable: str
    labels: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RelationshipPattern:
    """A relationship to find; with a `length`, a trail of them, and the variable holds their list.

    `direction` is read from the node on its left to the node on its right. `where` holds predicates over this one
    relationship (by its variable) that must hold during a shortest-path search; elsewhere predicates stand in filters.
    `once`: all trails between two ends give one match, which takes no relationship from the others and in which the
    variable is null."""

    variable: str
    types: tuple[str, ...] = ()
    direction: Direction = "both"
    length: tuple[int, int | None] | None = None
    where: Expression | None = None
    once: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.once and (self.length is None or self.length[0] > 1):
            raise InternalError("only trails of any length from no or one relationship on are found once")
        if self.once and self.direction == "both" and self.length is not None and self.length[1] is not None:
            raise InternalError("trails in any direction are found once when there is no bound to their length")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A chain of nodes and relationships, perhaps named, perhaps only the shortest between its two ends.

    `where` is a condition on a shortest path as a whole: the shortest are found among the paths that pass it. It may
    read the rest of the row, but no other shortest path."""

    nodes: tuple[NodePattern, ...]
    relationships: tuple[RelationshipPattern, ...] = ()
    variable: str | None = None
    kind: Literal["trail", "shortest", "all-shortest"] = "trail"
    where: Expression | None = None

    def __post_init__(self) -> None:
        if self.where is not None and self.kind == "trail":
            raise InternalError("only a shortest path has a condition of its own")
        if len(self.nodes) != len(self.relationships) + 1:
            raise InternalError("a path pattern has one node more than relationships")
        if self.kind != "trail" and len(self.relationships) != 1:
            raise InternalError("a shortest path has exactly one relationship pattern")


@dataclass(frozen=True, slots=True)
class Pattern(Operator):
    """All matches of the paths in the source's graph. Relationships of one match are pairwise different.

    `where` is the pattern's own condition on properties, `(n {key: value})`: it reads the elements of the source's
    graph."""

    source: Source
    paths: tuple[PathPattern, ...]
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for path in self.paths:
            for index, node in enumerate(path.nodes):
                names[node.variable] = None
                if index < len(path.relationships):
                    names[path.relationships[index].variable] = None
            if path.variable is not None:
                names[path.variable] = None
        return tuple(names)


# --- inner operators ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair(Operator):
    """The common part of the joins. `lenient`: null is an unbound variable, compatible with every value, as in SPARQL;
    a shared column has the value of the side that has one."""

    left: Operator
    right: Operator
    condition: Expression | None = None
    lenient: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        left = self.left.columns
        return left + tuple(name for name in self.right.columns if name not in left)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Join(_Pair):
    """Natural join on the columns that both sides have (null joins nothing), then the condition.

    Elements join by id. When they come from different windows or graphs, the joined element is their union: all
    labels, and of each property the right side's value, else the left's.
    """


@dataclass(frozen=True, slots=True)
class LeftJoin(_Pair):
    """As `Join`, but a left row without a partner stays, with nulls (OPTIONAL MATCH)."""


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """Bag union; the right side's columns are read by name."""

    left: Operator
    right: Operator

    def __post_init__(self) -> None:
        if set(self.left.columns) != set(self.right.columns):
            raise InternalError(f"union of {self.left.columns} with {self.right.columns}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class _Single(Operator):
    input: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Filter(_Single):
    """The rows for which the condition is true (not false, not null)."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend(_Single):
    """Every row with one more column (BIND)."""

    column: str
    expression: Expression

    def __post_init__(self) -> None:
        if self.column in self.input.columns:
            raise InternalError(f"{self.column} is a column already")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input.columns, self.column)


@dataclass(frozen=True, slots=True)
class Unwind(_Single):
    """One row per item of the list; null and the empty list give none, another value counts as a list of one."""

    column: str
    expression: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input.columns, self.column)


@dataclass(frozen=True, slots=True)
class Project(_Single):
    """New rows from old ones; every expression sees the input's columns."""

    items: tuple[tuple[str, Expression], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)


@dataclass(frozen=True, slots=True)
class Aggregate(_Single):
    """One row per group of equal keys. Without keys there is exactly one row, even for no input."""

    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys) + tuple(name for name, _ in self.aggregates)


@dataclass(frozen=True, slots=True)
class Annotate(_Single):
    """Every row with the aggregates of its group: C-SPARQL's AGGREGATE. No row is removed or added.

    Several annotations of one input are independent of each other; each sees the input's columns alone."""

    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input.columns, *(name for name, _ in self.aggregates))


@dataclass(frozen=True, slots=True)
class Distinct(_Single):
    """Each row once."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A sort key: in Cypher's order of values (null last), or in SPARQL's order of terms (unbound first)."""

    expression: Expression
    descending: bool = False
    of_terms: bool = False


@dataclass(frozen=True, slots=True)
class Order(_Single):
    """The rows in order; the sort is stable."""

    keys: tuple[OrderKey, ...]


@dataclass(frozen=True, slots=True)
class Slice(_Single):
    """Rows `skip` to `skip + limit` of the input's order. Neither expression sees a row."""

    skip: Expression | None
    limit: Expression | None


# --- registrations ------------------------------------------------------------------------------------------------

Output = Literal["snapshot", "entering", "exiting"]
ResultForm = Literal["bindings", "boolean", "graph"]


@dataclass(frozen=True, slots=True)
class Registration:
    """A continuous query: its plan, its evaluation instants, and which rows it emits.

    Instants are one of:
      - `starting_at` + k * `every`. `starting_at` None means the registration instant on the stream's clock; when
        `aligned`, it means the first multiple of `every` since the epoch whose windows can hold the first event.
      - with `arrivals` n: the instants at which each n-th triple came, counted over the streams that the query reads,
        and, where `final`, the last event's when the input has ended; 0 means that instant alone.
      - with neither `every` nor `arrivals`: once, at `starting_at` (RETURN).

    A query with `into` makes a stream of that name: each answer is an event at its instant. `unreadable` is the name of
    a stream that the text announces, but whose answers are tables that no other query can read. `delegation` makes the
    same query for the SPARQL plug-in, where plain SPARQL can express it: few queries need it.
    """

    name: str
    plan: Operator
    starting_at: int | None
    every: Duration | None
    output: Output = "snapshot"
    aligned: bool = False
    arrivals: int | None = None
    final: bool = True
    form: ResultForm = "bindings"
    into: str | None = None
    unreadable: str | None = None
    language: str = "seraph"
    prefixes: tuple[tuple[str, str], ...] = ()
    delegation: Callable[[], Operator | None] | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plan.columns

    @property
    def delegated(self) -> Operator | None:
        return None if self.delegation is None else self.delegation()
