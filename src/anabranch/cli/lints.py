"""Lints: warnings about legal queries that probably do not mean what their author intended.

Invariant: a lint is a warning, never a refusal, and each can be silenced by another way to write the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.algebra import expressions as x
from anabranch.algebra import operators as o
from anabranch.algebra.triples import GraphPattern, Path
from anabranch.algebra.walk import read_by, reads_triples, walk
from anabranch.errors import Diagnostic, Span
from anabranch.model.windows import approximate_micros

Base = tuple[int, str]
"""A variable where a pattern first binds it: the pattern's number and the name."""


def lint(query: o.Registration | o.Operator) -> list[Diagnostic]:
    """Return all warnings of a query, in the order of the text."""
    plan = query.plan if isinstance(query, o.Registration) else query
    found = [*_unlinked(plan), *_boundless(plan)]
    if isinstance(query, o.Registration):
        found += [*_gaps(query), *_unordered_limits(query)]
    return sorted(dict.fromkeys(found), key=lambda one: (one.span.start if one.span else 0, one.code))


def _gaps(query: o.Registration) -> Iterator[Diagnostic]:
    """LINT-001: windows with gaps between them."""
    if query.every is None:
        return
    sparql = query.language != "seraph"
    for node in walk(query.plan):
        for window in read_by(node):
            if not isinstance(window, o.Window) or window.width is None:
                continue
            slide = window.step or query.every
            if approximate_micros(window.width) < approximate_micros(slide):
                width, rhythm = ("RANGE", "STEP") if sparql else ("WITHIN", "EVERY")
                yield Diagnostic(
                    "LINT-001",
                    f"{width} {window.width} is narrower than {rhythm} {slide}",
                    node.span,
                    "events between two windows are never seen",
                    f"make the window at least as wide as the slide: {width} {slide}",
                )


def _boundless(plan: o.Operator) -> Iterator[Diagnostic]:
    """LINT-003: trails over everything, of any length."""
    for pattern in _patterns(plan):
        for path in pattern.paths:
            for one in path.relationships:
                if path.kind == "trail" and one.length is not None and one.length[1] is None and not one.types:
                    yield Diagnostic(
                        "LINT-003",
                        "a variable-length relationship without types or an upper bound",
                        pattern.span,
                        "the number of trails grows exponentially with the window",
                        "name types or a bound: -[:TYPE*..5]-, or use shortestPath",
                    )


def _unordered_limits(query: o.Registration) -> Iterator[Diagnostic]:
    """LINT-004: SKIP or LIMIT without ORDER BY, compared from instant to instant."""
    if query.every is None or query.output == "snapshot":
        return
    for node in walk(query.plan):
        if isinstance(node, o.Slice) and not any(isinstance(below, o.Order) for below in walk(node.input)):
            yield Diagnostic(
                "LINT-004",
                "SKIP or LIMIT without ORDER BY",
                node.span,
                "the first rows in the order of their values are taken, so a row that comes can push another one out",
                "say by ORDER BY which rows are meant",
            )


def _patterns(plan: o.Operator) -> list[o.Pattern]:
    return [node for node in walk(plan) if isinstance(node, o.Pattern)]


# --- LINT-002: products -----------------------------------------------------------------------------------------------


def _unlinked(plan: o.Operator) -> Iterator[Diagnostic]:
    links = _Links()
    what = "their variables in a FILTER" if reads_triples(plan) else "their properties in WHERE"
    links.visit(plan)
    for span, left, right in links.products:
        if not links.meet(left, right):
            yield Diagnostic(
                "LINT-002",
                "a Cartesian product: these patterns share no variable, and no condition relates them",
                span,
                "every match of one meets every match of the other",
                f"connect the patterns, or compare {what}",
            )


class _Links:
    """The variables of a plan that are related: by a pattern, by a shared name, or by a condition over both."""

    def __init__(self) -> None:
        self._parents: dict[Base, Base] = {}
        self._patterns = 0
        self.products: list[tuple[Span | None, frozenset[Base], frozenset[Base]]] = []

    def meet(self, left: frozenset[Base], right: frozenset[Base]) -> bool:
        return bool({self._root(base) for base in left} & {self._root(base) for base in right})

    def visit(self, plan: o.Operator) -> dict[str, frozenset[Base]]:
        """Return the base variables of each column of the plan."""
        match plan:
            case o.Pattern():
                return self._parts(plan, [o.Pattern(plan.source, (path,)).columns for path in plan.paths])
            case GraphPattern(patterns=patterns):
                return self._parts(plan, [pattern.variables for pattern in patterns])
            case Path():
                return self._parts(plan, [plan.columns])
            case o.Join(left, right, condition) | o.LeftJoin(left, right, condition):
                before, after = self.visit(left), self.visit(right)
                for name in before.keys() & after.keys():
                    self._link(before[name] | after[name])
                if any(before.values()) and any(after.values()):
                    self.products.append((plan.span, _all(before), _all(after)))
                merged = {**after, **before}
                self._condition(condition, merged)
                return merged
            case o.Filter(below, condition):
                made = self.visit(below)
                self._condition(condition, made)
                return made
            case o.Unwind(below, column, expression):
                made = self.visit(below)
                return {**made, column: _bases(expression, made)}
            case o.Project(below, items):
                made = self.visit(below)
                return {name: _bases(expression, made) for name, expression in items}
            case o.Aggregate(below, keys, aggregates):
                made = self.visit(below)
                return {name: _bases(expression, made) for name, expression in (*keys, *aggregates)}
            case o.Union(left, right):
                one, other = self.visit(left), self.visit(right)
                return {name: one[name] | other.get(name, frozenset()) for name in one}
            case _:
                return self.visit(plan.inputs[0]) if plan.inputs else {}

    def _parts(self, pattern: o.Operator, variables: Sequence[Sequence[str]]) -> dict[str, frozenset[Base]]:
        """Visit a pattern: paths or triples that share a variable are related; those without variables only filter."""
        self._patterns += 1
        made: dict[str, frozenset[Base]] = {}
        seen: frozenset[Base] = frozenset()
        for names in filter(None, variables):
            bases = frozenset((self._patterns, name) for name in names)
            self._link(bases)
            made.update({name: frozenset({(self._patterns, name)}) for name in names})
            if seen:
                self.products.append((pattern.span, seen, bases))
            seen |= bases
        return made

    def _condition(self, condition: x.Expression | None, made: dict[str, frozenset[Base]]) -> None:
        if condition is None:
            return
        for part in condition.operands if isinstance(condition, x.And) else (condition,):
            self._link(_bases(part, made))

    def _link(self, bases: frozenset[Base]) -> None:
        roots = sorted({self._root(base) for base in bases})
        for root in roots[1:]:
            self._parents[root] = roots[0]

    def _root(self, base: Base) -> Base:
        while base in self._parents:
            base = self._parents[base]
        return base


def _all(made: dict[str, frozenset[Base]]) -> frozenset[Base]:
    return frozenset().union(*made.values())


def _bases(expression: x.Expression, made: dict[str, frozenset[Base]]) -> frozenset[Base]:
    """Return the base variables of an expression. A name bound inside of it may hide a column; the lint then warns
    less."""
    names = (node.name for node in walk(expression) if isinstance(node, x.Variable))
    return frozenset().union(*(made.get(name, frozenset()) for name in names))
