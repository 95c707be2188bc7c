"""Expressions of the algebra: computations of values, independent of the spelling of any query language.

Invariant: expressions are frozen and compare by meaning; the span is the place in the text and is never compared. Names
of functions are those of `algebra.functions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from anabranch.errors import Span

if TYPE_CHECKING:
    from anabranch.algebra.operators import Operator, TripleSource, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A literal: null, boolean, integer, float or string."""

    value: object


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """A column of the row, or a variable bound by an enclosing comprehension, quantifier or reduction."""

    name: str


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class Property(Expression):
    """`subject.key` of a node, relationship, map, temporal value or point."""

    subject: Expression
    key: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """`subject[index]`: a list's item, a map's value, an element's property by computed name."""

    subject: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Sublist(Expression):
    """`subject[start..stop]`, either bound may be missing."""

    subject: Expression
    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True, slots=True)
class ListOf(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf(Expression):
    entries: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class And(Expression):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Expression):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Xor(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class HasLabels(Expression):
    """`n:A:B`; for a relationship, true if its type is the only named label."""

    subject: Expression
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A scalar function or operator. Operators are called by name: add, subtract, multiply, divide, modulo, power,
    negate, plus, in, starts_with, ends_with, contains, matches, merge_maps, node_id."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch with a true condition, else the default."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression


@dataclass(frozen=True, slots=True)
class Comprehension(Expression):
    """`[variable IN source WHERE where | result]`."""

    variable: str
    source: Expression
    where: Expression | None
    result: Expression | None


@dataclass(frozen=True, slots=True)
class Quantifier(Expression):
    kind: Literal["all", "any", "none", "single"]
    variable: str
    source: Expression
    where: Expression


@dataclass(frozen=True, slots=True)
class Reduce(Expression):
    accumulator: str
    initial: Expression
    variable: str
    source: Expression
    step: Expression


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """True when the plan has a row; the plan's `Argument` leaf is the current row."""

    plan: Operator


@dataclass(frozen=True, slots=True)
class CollectRows(Expression):
    """The list of `result` over the rows of a plan (pattern comprehension); the plan's `Argument` leaf is the current
    row."""

    plan: Operator
    result: Expression


@dataclass(frozen=True, slots=True)
class WindowBound(Expression):
    """The begin or end of a window at the evaluation instant, as answers report it; without a window, that of the
    query's widest window."""

    window: Window | None
    side: Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class AggregateCall(Expression):
    """An aggregate; occurs only in `Aggregate.aggregates`. No arguments means count(*)."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Links:
    """The edges that connect nodes, without direction: the relationships of a source, only those of the types in
    `kinds` if given. Of triples, `kinds` are predicates; without them, every triple whose object is a resource is a
    link, except for rdf:type and the triples that describe statements (rdf:subject, rdf:predicate, rdf:object)."""

    source: TripleSource
    kinds: tuple[str, ...] | None = None
    of_triples: bool = False


@dataclass(frozen=True, slots=True)
class Connected(Expression):
    """Whether a path of links leads from one node to the other; a node is connected to itself. The answer about null is
    null."""

    links: Links
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Component(Expression):
    """The component of a node: the id of one of its nodes (its term where links are triples), which depends only on the
    set of nodes; or the number of nodes."""

    links: Links
    subject: Expression
    asked: Literal["name", "size"]


@dataclass(frozen=True, slots=True)
class TripleTime(Expression):
    """The instant at which a triple last came, as UTC microseconds; null when it is no triple of a window of the
    source."""

    source: TripleSource
    subject: Expression
    predicate: Expression
    object: Expression
