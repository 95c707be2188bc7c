"""The syntax tree of the SPARQL family: one base with the additions of C-SPARQL, LUPOS and RSP-QL.

Prefixed names and relative IRIs are resolved, strings unescaped, collections and blank node property lists spelled out
as triples. Additions of a dialect have fields that the others leave empty.

Invariant: a tree holds the content of the text and its spans (never compared); only the grammar is checked here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from anabranch.algebra.triples import PropertyPath
from anabranch.errors import Span
from anabranch.model.temporal import Duration
from anabranch.model.terms import Iri, Literal

Dialect: TypeAlias = OneOf["sparql", "csparql", "lupos", "rspql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePart:
    span: Span | None = field(default=None, compare=False, repr=False)


# --- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VarTree(TreePart):
    """`?name` or `$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class TermTree(TreePart):
    term: Iri | Literal


@dataclass(frozen=True, slots=True)
class BlankTree(TreePart):
    """`_:label` or `[]`; anonymous ones have labels that begin with a space."""

    label: str


NodeTree: TypeAlias = VarTree | TermTree | BlankTree


@dataclass(frozen=True, slots=True)
class PathTree(TreePart):
    """A property path that is more than one IRI."""

    path: PropertyPath


@dataclass(frozen=True, slots=True)
class TripleTree(TreePart):
    subject: NodeTree
    predicate: VarTree | TermTree | PathTree
    object: NodeTree


# --- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinaryTree(TreePart):
    operator: OneOf["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
    left: ExpressionTree
    right: ExpressionTree


@dataclass(frozen=True, slots=True)
class UnaryTree(TreePart):
    operator: OneOf["!", "+", "-"]
    operand: ExpressionTree


@dataclass(frozen=True, slots=True)
class InTree(TreePart):
    operand: ExpressionTree
    items: tuple[ExpressionTree, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class CallTree(TreePart):
    """A built-in by its name in upper case (BOUND, IF, COALESCE and TIMESTAMP among them), or a function by its IRI."""

    function: str | Iri
    arguments: tuple[ExpressionTree, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class AggregateTree(TreePart):
    """An aggregate; `argument` None is `*`. `function` is upper case: COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT."""

    function: str
    argument: ExpressionTree | None
    distinct: bool = False
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class ExistsTree(TreePart):
    group: GroupTree
    negated: bool


ExpressionTree: TypeAlias = VarTree | TermTree | BinaryTree | UnaryTree | InTree | CallTree | AggregateTree | ExistsTree


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriplesTree(TreePart):
    """A block of triples."""

    triples: tuple[TripleTree, ...]


@dataclass(frozen=True, slots=True)
class FilterTree(TreePart):
    condition: ExpressionTree


@dataclass(frozen=True, slots=True)
class BindTree(TreePart):
    expression: ExpressionTree
    variable: VarTree


@dataclass(frozen=True, slots=True)
class OptionalTree(TreePart):
    group: GroupTree


@dataclass(frozen=True, slots=True)
class UnionTree(TreePart):
    """Two groups or more with UNION between them."""

    groups: tuple[GroupTree, ...]


@dataclass(frozen=True, slots=True)
class MinusTree(TreePart):
    group: GroupTree


@dataclass(frozen=True, slots=True)
class GraphTree(TreePart):
    name: VarTree | TermTree
    group: GroupTree


@dataclass(frozen=True, slots=True)
class ServiceTree(TreePart):
    name: VarTree | TermTree
    group: GroupTree
    silent: bool


@dataclass(frozen=True, slots=True)
class ValuesTree(TreePart):
    """None stands for UNDEF."""

    variables: tuple[VarTree, ...]
    rows: tuple[tuple[TermTree | None, ...], ...]


@dataclass(frozen=True, slots=True)
class SubSelectTree(TreePart):
    query: QueryTree


@dataclass(frozen=True, slots=True)
class NamedWindowTree(TreePart):
    """RSP-QL: WINDOW :w { }."""

    name: VarTree | TermTree
    group: GroupTree


@dataclass(frozen=True, slots=True)
class LuposWindowTree(TreePart):
    """LUPOS: WINDOW TYPE SLIDINGTRIPLES 100 { } or SLIDINGDURATION 1000 { } (milliseconds)."""

    kind: OneOf["triples", "duration"]
    size: int
    group: GroupTree


ElementTree: TypeAlias = (
    "TriplesTree | FilterTree | BindTree | OptionalTree | UnionTree | MinusTree | GraphTree | ServiceTree "
    "| ValuesTree | SubSelectTree | NamedWindowTree | LuposWindowTree | GroupTree"
)


@dataclass(frozen=True, slots=True)
class GroupTree(TreePart):
    """`{ ... }`: its elements in the order of the text."""

    elements: tuple[ElementTree, ...]


# --- queries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeRangeTree(TreePart):
    """RANGE 10m STEP 1m; TUMBLING is a step that equals the range; no step is written as None."""

    width: Duration
    step: Duration | None = None


@dataclass(frozen=True, slots=True)
class CountRangeTree(TreePart):
    """RANGE TRIPLES 10, and STEP n triples where it is given."""

    count: int
    step: int | None = None


@dataclass(frozen=True, slots=True)
class FromTree(TreePart):
    """FROM <iri>, FROM NAMED <iri>."""

    iri: Iri
    named: bool


@dataclass(frozen=True, slots=True)
class FromStreamTree(TreePart):
    """C-SPARQL: FROM [NAMED] STREAM <iri> [RANGE ...]; RSP-QL: FROM NAMED WINDOW :w ON :s [RANGE ...]."""

    stream: Iri
    range: TimeRangeTree | CountRangeTree
    named: bool
    window: Iri | None = None  # RSP-QL's name for it


@dataclass(frozen=True, slots=True)
class ItemTree(TreePart):
    """`?v` (no expression) or `(expression AS ?v)` of SELECT and GROUP BY; GROUP BY may leave the variable out."""

    variable: VarTree | None
    expression: ExpressionTree | None = None


@dataclass(frozen=True, slots=True)
class OrderTree(TreePart):
    expression: ExpressionTree
    descending: bool


@dataclass(frozen=True, slots=True)
class SelectTree(TreePart):
    """`items` None is `*`."""

    items: tuple[ItemTree, ...] | None
    distinct: bool = False
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class AskTree(TreePart):
    pass


@dataclass(frozen=True, slots=True)
class ConstructTree(TreePart):
    """`template` None is CONSTRUCT WHERE: the pattern itself."""

    template: tuple[TripleTree, ...] | None


@dataclass(frozen=True, slots=True)
class DescribeTree(TreePart):
    """`resources` None is `*`."""

    resources: tuple[VarTree | TermTree, ...] | None


@dataclass(frozen=True, slots=True)
class AnnotateTree(TreePart):
    """C-SPARQL: AGGREGATE { (?v, COUNT, {?a, ?b}) FILTER (...) }."""

    variable: VarTree
    function: str  # upper case: COUNT SUM AVG MIN MAX
    argument: VarTree | None
    group: tuple[VarTree, ...]
    filters: tuple[ExpressionTree, ...] = ()


@dataclass(frozen=True, slots=True)
class IntermediateTree(TreePart):
    """LUPOS: STREAM INTERMEDIATERESULT DURATION 1000 (milliseconds), or TRIPLES 100."""

    kind: OneOf["duration", "triples"]
    size: int


@dataclass(frozen=True, slots=True)
class QueryTree(TreePart):
    """A query or, inside of a group, a subselect. `where` is None for a DESCRIBE without one."""

    form: SelectTree | AskTree | ConstructTree | DescribeTree
    where: GroupTree | None
    dataset: tuple[FromTree | FromStreamTree, ...] = ()
    group_by: tuple[ItemTree, ...] = ()
    having: tuple[ExpressionTree, ...] = ()
    order_by: tuple[OrderTree, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: ValuesTree | None = None
    annotations: tuple[AnnotateTree, ...] = ()
    intermediate: IntermediateTree | None = None
    dataset_at: int = field(default=0, compare=False)  # offset of the dataset clauses, or where they would be


@dataclass(frozen=True, slots=True)
class NameTree(TreePart):
    text: str


@dataclass(frozen=True, slots=True)
class StatementTree(TreePart):
    """One statement of a file. Without REGISTER (`name` None) it is a plain query.

    `kind`: C-SPARQL's query and stream; RSP-QL's rstream, istream and dstream (whose name is an IRI, resolved).
    """

    query: QueryTree
    name: NameTree | None = None
    kind: OneOf["query", "stream", "rstream", "istream", "dstream"] = "query"
    computed_every: Duration | None = None
    starting_at: int | None = None  # UTC microseconds
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str = ""


@dataclass(frozen=True, slots=True)
class ScriptTree(TreePart):
    statements: tuple[StatementTree, ...]
