"""Seraph's syntax tree: the structure of the text, before names and types are resolved.

Invariant: two texts that mean the same to the parser give equal trees; spans are never compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from anabranch.errors import Span
from anabranch.model.temporal import Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    span: Span = field(default=Span(0, 0), compare=False, repr=False)


class Expr(TreeNode):
    """Anything that has a value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Name(TreeNode):
    """A name as the user wrote it, without backticks."""

    text: str


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiteralExpr(Expr):
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class VariableRef(Expr):
    name: str


@dataclass(frozen=True, slots=True)
class ParameterRef(Expr):
    name: str


@dataclass(frozen=True, slots=True)
class PropertyLookup(Expr):
    subject: Expr
    key: Name


@dataclass(frozen=True, slots=True)
class IndexExpr(Expr):
    subject: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class SliceExpr(Expr):
    subject: Expr
    start: Expr | None
    stop: Expr | None


@dataclass(frozen=True, slots=True)
class ListLiteral(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(Expr):
    entries: tuple[tuple[Name, Expr], ...]


@dataclass(frozen=True, slots=True)
class ProjectionEntry(TreeNode):
    """`.key`, `.*`, `key: value` or a variable inside a map projection."""

    kind: OneOf["property", "all", "entry", "variable"]
    name: Name | None = None
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class MapProjection(Expr):
    subject: VariableRef
    entries: tuple[ProjectionEntry, ...]


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """or, xor, and, add, subtract, multiply, divide, modulo, power, in, starts_with, ends_with, contains, matches."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """not, negate, plus."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """A chain such as `1 <= x < 10`."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class NullTest(Expr):
    operand: Expr
    negated: bool


@dataclass(frozen=True, slots=True)
class LabelTest(Expr):
    subject: Expr
    labels: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall(Expr):
    name: str
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    star: bool = False


@dataclass(frozen=True, slots=True)
class CaseExpr(Expr):
    subject: Expr | None
    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class ListComprehension(Expr):
    variable: Name
    source: Expr
    where: Expr | None
    result: Expr | None


@dataclass(frozen=True, slots=True)
class QuantifierExpr(Expr):
    kind: OneOf["all", "any", "none", "single"]
    variable: Name
    source: Expr
    where: Expr | None


@dataclass(frozen=True, slots=True)
class ReduceExpr(Expr):
    accumulator: Name
    initial: Expr
    variable: Name
    source: Expr
    step: Expr


@dataclass(frozen=True, slots=True)
class PatternExpr(Expr):
    """A pattern where an expression stands: true when it has a match."""

    path: PathTree


@dataclass(frozen=True, slots=True)
class PatternComprehension(Expr):
    variable: Name | None
    path: PathTree
    where: Expr | None
    result: Expr


@dataclass(frozen=True, slots=True)
class ExistsSubquery(Expr):
    query: QueryTree


# --- patterns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeTree(TreeNode):
    variable: Name | None = None
    labels: tuple[Name, ...] = ()
    properties: Expr | None = None


@dataclass(frozen=True, slots=True)
class RelationshipTree(TreeNode):
    direction: OneOf["out", "in", "both"]
    variable: Name | None = None
    types: tuple[Name, ...] = ()
    length: tuple[int | None, int | None] | None = None
    properties: Expr | None = None


@dataclass(frozen=True, slots=True)
class PathTree(TreeNode):
    nodes: tuple[NodeTree, ...]
    relationships: tuple[RelationshipTree, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternTree(TreeNode):
    path: PathTree
    variable: Name | None = None
    kind: OneOf["trail", "shortest", "all-shortest"] = "trail"


# --- clauses ------------------------------------------------------------------------------------------------------


class Clause(TreeNode):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class WithinTree(TreeNode):
    width: Duration


@dataclass(frozen=True, slots=True)
class MatchClause(Clause):
    patterns: tuple[PatternTree, ...]
    where: Expr | None = None
    within: WithinTree | None = None
    stream: Name | None = None
    graph: Name | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ProjectionItem(TreeNode):
    """One item of a projection. Without an alias the column is named by its text."""

    expression: Expr
    alias: Name | None
    text: str


@dataclass(frozen=True, slots=True)
class SortItem(TreeNode):
    expression: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Projection(TreeNode):
    items: tuple[ProjectionItem, ...]
    star: bool = False
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    skip: Expr | None = None
    limit: Expr | None = None


@dataclass(frozen=True, slots=True)
class WithClause(Clause):
    projection: Projection
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class ReturnClause(Clause):
    projection: Projection


@dataclass(frozen=True, slots=True)
class EmitClause(Clause):
    projection: Projection


@dataclass(frozen=True, slots=True)
class UnwindClause(Clause):
    expression: Expr
    variable: Name


@dataclass(frozen=True, slots=True)
class CreateClause(Clause):
    patterns: tuple[PatternTree, ...]


@dataclass(frozen=True, slots=True)
class SetItem(TreeNode):
    """`a.k = v`, `a = map`, `a += map` or `a:Label`; labels have no value."""

    kind: OneOf["replace", "merge", "labels"]
    target: Expr
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class SetClause(Clause):
    items: tuple[SetItem, ...]


@dataclass(frozen=True, slots=True)
class MergeClause(Clause):
    pattern: PatternTree
    on_create: tuple[SetItem, ...] = ()
    on_match: tuple[SetItem, ...] = ()


# --- queries ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SingleQuery(TreeNode):
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class QueryTree(TreeNode):
    """Single queries and, between two neighbours, whether UNION keeps duplicates (ALL)."""

    parts: tuple[SingleQuery, ...]
    keeps_duplicates: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class EmitOption(TreeNode):
    """ON ENTERING, ON EXIT, SNAPSHOT, EVERY with its duration, or INTO with the name of a stream."""

    kind: OneOf["entering", "exiting", "snapshot", "every", "into"]
    duration: Duration | None = None
    stream: Name | None = None


@dataclass(frozen=True, slots=True)
class RegisterTree(TreeNode):
    """`starting_at` None is NOW."""

    name: Name
    starting_at: int | None
    query: QueryTree
    options: tuple[EmitOption, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadStreamTree(TreeNode):
    uri: str
    variable: Name
    at: Expr | None
    stream: Name | None
    clauses: tuple[Clause, ...]


Statement = RegisterTree | LoadStreamTree


@dataclass(frozen=True, slots=True)
class ScriptTree(TreeNode):
    statements: tuple[Statement, ...]
