"""The parts of a query's pattern, each as a small plan, and the conditions on their joint matches.

A part is a triple pattern, a property path, a relationship with its two nodes, a single node, a whole path if it has a
name or is a shortest path, constant rows of the query, or a subquery. Each side of a union is a branch.

Invariant: the matches of a branch before its conditions are the combinations of one row of each part that agree on
shared variables, and that have different relationships where one pattern has several. Optional patterns are not parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import conjuncts
from anabranch.errors import Span
from anabranch.insight.anatomy import is_core
from anabranch.snapshot.variables import free_variables

_MOST_BRANCHES = 16


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A part of a pattern. `relationships` are the columns that must differ from those of the parts with the same
    `pattern`."""

    plan: op.Operator
    text: str
    span: Span | None
    pattern: int = 0
    relationships: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plan.columns


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a pattern: parts and conditions. `taken_away` are plans whose compatible rows remove matches
    (MINUS)."""

    parts: tuple[PlanPart, ...] = ()
    conditions: tuple[ex.Expression, ...] = ()
    taken_away: tuple[op.Operator, ...] = ()

    def __add__(self, other: Branch) -> Branch:
        return Branch(self.parts + other.parts, self.conditions + other.conditions, self.taken_away + other.taken_away)


class Parting:
    """Splits cores into parts. Texts are those of the query where it has them."""

    def __init__(self, text: str, speller: Speller) -> None:
        self._text = text
        self._speller = speller

    def branches(self, core: op.Operator) -> list[Branch]:
        match core:
            case op.Join():
                more = Branch(conditions=conjuncts(core.condition))
                return [left + right + more for left, right in product(*self._sides(core))][:_MOST_BRANCHES]
            case op.LeftJoin():
                return self.branches(core.left)
            case op.Union():
                return [*self.branches(core.left), *self.branches(core.right)][:_MOST_BRANCHES]
            case tr.Minus(left, right):
                return [one + Branch(taken_away=(right,)) for one in self.branches(left)]
            case op.Filter(input_, condition=condition):
                return [one + Branch(conditions=conjuncts(condition)) for one in self.branches(input_)]
            case op.Pattern():
                return [self._of_paths(core)]
            case tr.GraphPattern():
                return [Branch(tuple(self._of_triples(core)))]
            case op.Unit():
                return [Branch()]
            case op.Extend(input_, expression=ex.Constant(None)):
                return self.branches(input_)
            case op.Project(input_, items) if all(_pads(*item) for item in items):
                return self.branches(input_)
        return self._whole(core)

    def _sides(self, join: op.Join) -> tuple[list[Branch], list[Branch]]:
        """Return the branches of both sides. A side whose inner variables share a name with variables of the other side
        is not split."""
        left, right = join.left, join.right
        if isinstance(right, op.Pattern):
            left = _bound(left, frozenset(right.columns))
        on_left, on_right = self.branches(left), self.branches(right)
        names, others = _names(on_left), _names(on_right)
        if (names - frozenset(left.columns)) & others:
            on_left = self._whole(left)
        if (others - frozenset(right.columns)) & names:
            on_right = self._whole(right)
        return on_left, on_right

    def _whole(self, core: op.Operator) -> list[Branch]:
        return [Branch((PlanPart(core, self._said(core), core.span),))]

    def said(self, node: op.Operator | ex.Expression) -> str:
        """Return the text of the query for a node; without a span, the spelling of the algebra."""
        if node.span is not None:
            return " ".join(self._text[node.span.start : node.span.end].split())
        return self._speller.spell(node) if isinstance(node, ex.Expression) else type(node).__name__

    def _said(self, leaf: op.Operator) -> str:
        match leaf:
            case tr.Path(_, subject, path, object_):
                spell = self._speller
                return f"{spell.place(subject)} {spell.property_path(path)} {spell.place(object_)}"
            case tr.Values(names):
                return f"VALUES {', '.join(map(self._speller.name, names))}"
        return self.said(leaf) if is_core(leaf) else f"subquery {self.said(leaf)}"

    def _of_triples(self, pattern: tr.GraphPattern) -> Iterator[PlanPart]:
        for one in pattern.patterns:
            yield PlanPart(replace(pattern, patterns=(one,)), self._speller.triple(one), one.span or pattern.span)

    def _of_paths(self, pattern: op.Pattern) -> Branch:
        parts: list[PlanPart] = []
        left = list(conjuncts(pattern.where))
        for path in pattern.paths:
            for piece in _pieces(path):
                own = op.Pattern(pattern.source, (piece,))
                tests = [one for one in left if free_variables(one) <= frozenset(own.columns)]
                left = [one for one in left if one not in tests]
                where = None if not tests else tests[0] if len(tests) == 1 else ex.And(tuple(tests))
                span = _span(piece) or pattern.span
                text = self._speller.path(piece) if span is None else self._text[span.start : span.end]
                names = tuple(one.variable for one in piece.relationships)
                parts.append(PlanPart(replace(own, where=where), " ".join(text.split()), span, id(pattern), names))
        return Branch(tuple(parts), tuple(left))


def _names(branches: Sequence[Branch]) -> frozenset[str]:
    return frozenset(name for one in branches for part in one.parts for name in part.columns)


def _bound(plan: op.Operator, names: frozenset[str]) -> op.Operator:
    """Return a plan in which these variables are bound: an optional pattern that binds one of them becomes mandatory,
    because null joins nothing."""
    match plan:
        case op.LeftJoin(left, right, condition) if (frozenset(right.columns) - frozenset(left.columns)) & names:
            return op.Join(left, right, condition)
        case op.LeftJoin(left) | op.Join(left):
            return replace(plan, left=_bound(left, names))
        case op.Filter(input_):
            return replace(plan, input=_bound(input_, names))
        case op.Project(input_, items) if all(_pads(*item) for item in items):
            return replace(plan, input=_bound(input_, names & frozenset(plan.columns)))
    return plan


def _pads(name: str, expression: ex.Expression) -> bool:
    """Return whether a column is passed on unchanged, or is null as padding for the other side of a union."""
    return expression in (ex.Variable(name), ex.Constant(None))


def _pieces(path: op.PathPattern) -> Iterator[op.PathPattern]:
    """Split a path into its relationships; a path that must be matched as a whole is yielded unchanged."""
    if path.kind != "trail" or path.variable is not None or len(path.relationships) < 2:
        yield path
        return
    for place, one in enumerate(path.relationships):
        yield op.PathPattern(path.nodes[place : place + 2], (one,))


def _span(path: op.PathPattern) -> Span | None:
    spans = [*(one.span for one in path.nodes), *(one.span for one in path.relationships)]
    found: Span | None = None
    for span in spans:
        if span is None:
            return None
        found = span if found is None else found.join(span)
    return found
