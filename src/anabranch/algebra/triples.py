"""Operators over RDF triples: the leaves and roots that the SPARQL family has beyond the common ones.

A row's values are RDF terms; null is an unbound variable, or the result of an expression that fails. Columns that begin
with a space are blank nodes of the pattern and other things that no query can name.

Invariant: as for all operators: frozen, with known columns, free of any engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.algebra.expressions import Expression
from anabranch.algebra.operators import Operator, Static, TripleSource, Window, _Single
from anabranch.errors import InternalError, Span
from anabranch.model.terms import Iri, Term

# --- property paths ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathLink:
    iri: Iri


@dataclass(frozen=True, slots=True)
class Inverse:
    path: PropertyPath


@dataclass(frozen=True, slots=True)
class Sequence:
    paths: tuple[PropertyPath, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    paths: tuple[PropertyPath, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`path*` (from 0), `path+` (from 1), `path?` (from 0, at most 1): each pair of ends once."""

    path: PropertyPath
    least: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class NegatedStep:
    """`!(a|^b)`: one step by a predicate that is none of `forward`, or backward by one that is none of `backward`.

    None means that the direction is not walked at all.
    """

    forward: tuple[Iri, ...] | None
    backward: tuple[Iri, ...] | None


PropertyPath: TypeAlias = PathLink | Inverse | Sequence | Alternative | Repeat | NegatedStep


# --- leaves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A variable in a pattern: a column."""

    name: str


TermPlace: TypeAlias = Var | Term


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple with variables. `times` names columns that get the instant (UTC microseconds) at which the matched
    triple last came, in one window or, for None, in any of the source's windows; null for static knowledge."""

    subject: TermPlace
    predicate: TermPlace
    object: TermPlace
    times: tuple[tuple[str, Window | None], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def places(self) -> tuple[TermPlace, TermPlace, TermPlace]:
        return (self.subject, self.predicate, self.object)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.name for place in self.places if isinstance(place, Var)))


@dataclass(frozen=True, slots=True)
class GraphPattern(Operator):
    """All matches of a basic graph pattern: a triple of the source for each of the patterns. Without patterns, one
    row."""

    source: TripleSource
    patterns: tuple[TriplePattern, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for pattern in self.patterns:
            names |= dict.fromkeys(pattern.variables)
        for pattern in self.patterns:
            names |= dict.fromkeys(name for name, _ in pattern.times)
        return tuple(names)


@dataclass(frozen=True, slots=True)
class Path(Operator):
    """All pairs of ends of a path of any length (`*`, `+`, `?`), each once. An end that is a term may stand outside of
    the graph: a path of no steps leads from it to itself."""

    source: TripleSource
    subject: TermPlace
    path: PropertyPath
    object: TermPlace

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.name for place in (self.subject, self.object) if isinstance(place, Var)))


@dataclass(frozen=True, slots=True)
class Values(Operator):
    """Rows that the query text contains."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@dataclass(frozen=True, slots=True)
class StaticPart(Operator):
    """A part of the query that static knowledge alone answers: `plan` is evaluated once for each version of its static
    graphs, and the rows are kept.

    Where the part reads the default graph, stream triples may belong to it too: when one of the windows holds a triple
    with one of the predicates of `unless`, `otherwise` is evaluated instead.
    """

    plan: Operator
    otherwise: Operator | None = None
    unless: tuple[Iri, ...] = ()
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        if self.otherwise is not None and set(self.otherwise.columns) != set(self.plan.columns):
            raise InternalError("both ways of a static part have the same columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plan.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.plan,) if self.otherwise is None else (self.plan, self.otherwise)


@dataclass(frozen=True, slots=True)
class PluginQuery(Operator):
    """A whole plain SPARQL query, answered by the SPARQL plug-in over these graphs: the default one, and the named."""

    text: str
    names: tuple[str, ...]
    default: TripleSource
    named: tuple[tuple[Iri, Window | Static], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


# --- inner operators and roots ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Minus(Operator):
    """The left rows that are compatible with no right row with which they share a bound column."""

    left: Operator
    right: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


TRIPLE_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True, slots=True)
class Construct(_Single):
    """The triples of a template for every row, each once; triples with unbound places, and invalid ones, are left out.

    Blank nodes of the template (`Var`s whose names begin with " _:") are new for every row. They are named by the row's
    values, so that the same row gives the same triples at every instant."""

    template: tuple[TriplePattern, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return TRIPLE_COLUMNS


@dataclass(frozen=True, slots=True)
class Describe(_Single):
    """The concise bounded descriptions of resources: all triples that have them as subject, and those of the blank
    nodes met on the way. Resources are constants and the values of variables."""

    source: TripleSource
    resources: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return TRIPLE_COLUMNS


@dataclass(frozen=True, slots=True)
class Ask(_Single):
    """One row with one column, `ask`: whether the input has a row, as an xsd:boolean."""

    @property
    def columns(self) -> tuple[str, ...]:
        return ("ask",)
