"""The anatomy of a plan: the core that matches patterns, and the chain of operators above it that reshapes its rows.

The rows of a core still have every variable of its patterns, so each row shows which elements it was made of. The chain
can be run again over any rows of the core, so a core row can be followed upwards.

Invariant: core and chain together are the plan: the chain over the core's rows gives the plan's rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import parts_of, read_by, walk
from anabranch.engine.answers import AnswerRow, row_key
from anabranch.errors import QueryError
from anabranch.insight.elements import ElementUnit
from anabranch.insight.minimal import Budget, smallest
from anabranch.insight.replay import Replay
from anabranch.model.compare import identity_key, row_order_key
from anabranch.model.terms import Iri, Term, Triple
from anabranch.model.values import Node, Path, Relationship, Value
from anabranch.snapshot import Context, compile_plan
from anabranch.snapshot.expressions import compile_expression

NUMBER = "  row"
"""The column that numbers a core's rows on their way up."""

_CORE = (
    op.Pattern,
    op.Join,
    op.LeftJoin,
    op.Union,
    op.Unit,
    tr.GraphPattern,
    tr.Path,
    tr.Minus,
    tr.Values,
)
_LINKS = (ex.Connected, ex.Component)
_PICKING = frozenset(("min", "max", "sample"))  # aggregates whose value is that of one row


def is_core(plan: op.Operator) -> bool:
    """Return whether a plan's rows have all variables of its patterns."""
    if isinstance(plan, op.Filter):
        return is_core(plan.input)
    return isinstance(plan, _CORE)


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A plan split into its core and its chain; `chain` lists the operators above the core, the lowest first."""

    core: op.Operator
    chain: tuple[op.Operator, ...]

    @property
    def grouping(self) -> int | None:
        """The index in the chain of the lowest operator that computes a row from many rows."""
        for place, one in enumerate(self.chain):
            if isinstance(one, op.Aggregate | op.Annotate):
                return place
        return None

    def over(self, rows: Sequence[AnswerRow]) -> op.Operator:
        """Return the plan with these rows in place of its core."""
        plan: op.Operator = tr.Values(self.core.columns, tuple(rows))  # type: ignore[arg-type]
        for one in self.chain:
            plan = _on(one, plan)
        return plan

    def numbered(self, rows: Sequence[AnswerRow], until: int) -> op.Operator:
        """Return the lower part of the chain over these rows, with each row's number passed through as a column."""
        numbered = tuple((*row, number) for number, row in enumerate(rows))
        plan: op.Operator = tr.Values((*self.core.columns, NUMBER), numbered)  # type: ignore[arg-type]
        for one in self.chain[:until]:
            if isinstance(one, op.Project):
                one = replace(one, items=(*one.items, (NUMBER, ex.Variable(NUMBER))))
            plan = _on(one, plan)
        return plan


def _on(operator: op.Operator, below: op.Operator) -> op.Operator:
    return cast(op.Operator, replace(cast(Any, operator), input=below))


def anatomy(plan: op.Operator) -> Anatomy:
    chain: list[op.Operator] = []
    while not is_core(plan) and len(plan.inputs) == 1 and not isinstance(plan, tr.StaticPart | tr.Describe):
        chain.append(plan)
        (plan,) = plan.inputs
    return Anatomy(plan, tuple(reversed(chain)))


def nested(core: op.Operator) -> Iterator[op.Operator]:
    """Yield the leaves of a core: patterns, and nested plans whose rows have lost variables. The right sides of MINUS
    and the subqueries of conditions are left out."""
    match core:
        case op.Join() | op.LeftJoin() | op.Union():
            yield from nested(core.left)
            yield from nested(core.right)
        case tr.Minus(left, _):
            yield from nested(left)
        case op.Filter(input_):
            yield from nested(input_)
        case _:
            yield core


@dataclass(frozen=True, slots=True)
class Lineage:
    """The elements of a row. `counted`: all of its `rows` of the core count in an aggregate; without any one of them
    the aggregate would be computed from different rows, though its value might be equal."""

    units: frozenset[ElementUnit]
    counted: bool
    rows: int


class RowFinder:
    """Finds the elements that rows are made of, at one instant of a replay."""

    def __init__(
        self, replay: Replay, context: Context, windows: Mapping[op.Window, frozenset[ElementUnit]], budget: Budget
    ) -> None:
        self._replay = replay
        self._context = context
        self._budget = budget
        self._windows = windows  # the content of each window of the query

    # --- rows of cores ---

    def core_rows(self, found: Anatomy) -> list[AnswerRow]:
        rows = self._replay.rows_of(found.core, self._context)
        rows.sort(key=row_order_key)
        return rows

    def surviving(self, found: Anatomy, rows: Sequence[AnswerRow]) -> list[AnswerRow]:
        """Return the rows of a core that pass the tests on single rows, before any operator combines several rows."""
        until = 0
        while until < len(found.chain) and isinstance(found.chain[until], op.Project | op.Extend | op.Filter):
            until += 1
        if not any(isinstance(one, op.Filter) for one in found.chain[:until]):
            return list(rows)
        plan = found.numbered(rows, until)
        place = plan.columns.index(NUMBER)
        passed = {cast(int, row[place]) for row in self._replay.rows_of(plan, self._context)}
        return [row for number, row in enumerate(rows) if number in passed]

    def groups(self, found: Anatomy, rows: Sequence[AnswerRow]) -> list[list[AnswerRow]]:
        """Return the rows of a core by the groups that they fall into; one group per row where nothing groups them."""
        place = found.grouping
        if place is None:
            return [[row] for row in rows]
        grouping = found.chain[place]
        plan = found.numbered(rows, place)
        keys: Iterable[ex.Expression]
        if isinstance(grouping, op.Aggregate):
            keys = [expression for _, expression in grouping.keys]
        else:
            assert isinstance(grouping, op.Annotate)
            keys = [ex.Variable(name) for name in grouping.keys]
        computed = [compile_expression(key, plan.columns) for key in keys]
        number = plan.columns.index(NUMBER)
        members: dict[Hashable, dict[int, None]] = {}
        for row in compile_plan(plan).run(self._context):
            key = tuple(identity_key(one(row, self._context)) for one in computed)
            members.setdefault(key, {})[cast(int, row[number])] = None
        return [[rows[one] for one in sorted(numbers)] for numbers in members.values()]

    # --- elements of rows ---

    def elements(self, plan: op.Operator, bindings: Mapping[str, Value]) -> frozenset[ElementUnit] | None:
        """Return the elements of a core's row, possibly with further ones; None where they cannot be determined."""
        found: set[ElementUnit] = set()
        for leaf in nested(plan):
            units = self.leaf(leaf, bindings)
            if units is None:
                return None
            found.update(units)
        for one in _looked_for(plan):
            found |= self.near(one)
        return frozenset(found)

    def leaf(self, leaf: op.Operator, bindings: Mapping[str, Value]) -> Iterable[ElementUnit] | None:
        """Return the elements of a row of one pattern, or of a plan nested in a core."""
        match leaf:
            case op.Pattern(source=source):
                if not isinstance(source, op.Window):
                    return ()
                if any(path.kind != "trail" or _hides(path) for path in leaf.paths):
                    return self.near(leaf)
                stream = self._replay.query.cursor.stream_name(source) or ""
                return self._of_values(stream, [bindings.get(name) for name in leaf.columns])
            case tr.GraphPattern(source, patterns):
                triples = [instance for one in patterns if (instance := instantiated(one, bindings)) is not None]
                return self._of_triples(source, triples)
            case tr.Path():
                return self.near(leaf)
            case op.Unit() | tr.Values():
                return ()
        found = self.lineage(leaf, tuple(bindings.get(name) for name in leaf.columns))
        return None if found is None else found.units

    def matched(self, plan: op.Operator, most: int) -> set[ElementUnit]:
        """Return the elements of matches that pass the tests on single rows; at most the first `most` matches count.
        Elements along a property path are not included: its rows do not contain them."""
        found = anatomy(plan)
        units: set[ElementUnit] = set()
        if not is_core(found.core):
            for below in found.core.inputs:
                units |= self.matched(below, most)
            return units
        leaves = list(nested(found.core))
        rows = self.surviving(found, self.core_rows(found))[:most]
        for one in leaves:
            if isinstance(one, op.Pattern) and isinstance(one.source, op.Window):
                stream = self._replay.query.cursor.stream_name(one.source) or ""
                places = [found.core.columns.index(name) for name in one.columns]
                for row in rows:
                    units.update(self._of_values(stream, [row[place] for place in places]))
            elif isinstance(one, tr.GraphPattern):
                for row in rows:
                    units.update(self.leaf(one, dict(zip(found.core.columns, row, strict=True))) or ())
            elif not is_core(one):
                units |= self.matched(one, most)
        return units

    def lineage(self, plan: op.Operator, row: AnswerRow) -> Lineage | None:
        """Return the lineage of a plan's row: the core rows that produce it, and their elements. None where it cannot
        be determined."""
        found = anatomy(plan)
        if not is_core(found.core):
            return None
        key = row_key(row)

        def holds(groups: Sequence[Sequence[AnswerRow]]) -> bool:
            self._budget.spend()
            rows = [one for group in groups for one in group]
            try:
                return any(row_key(one) == key for one in self._replay.rows_of(found.over(rows), self._context))
            except QueryError:
                return False  # the query fails over too few rows

        groups = self.groups(found, self.core_rows(found))
        if not holds(groups):
            return None
        groups = smallest(groups, holds)
        counted = any(map(_counts_all, found.chain))
        if found.grouping is not None and not counted:
            groups = smallest([[one] for group in groups for one in group], holds)
        units: set[ElementUnit] = set()
        for one in (one for group in groups for one in group):
            own = self.elements(found.core, dict(zip(found.core.columns, one, strict=True)))
            if own is None:
                return None
            units |= own
        for expression in (each for part in found.chain for each in _expressions(part)):
            for asked in looking(expression):
                units |= self.near(asked)
        return Lineage(frozenset(units), counted, sum(map(len, groups)))

    def _of_values(self, stream: str, values: Iterable[Value]) -> Iterator[ElementUnit]:
        for value in values:
            match value:
                case Node():
                    yield ElementUnit(stream, "node", value.id)
                case Relationship():
                    yield ElementUnit(stream, "relationship", value.id)
                    yield ElementUnit(stream, "node", value.source)
                    yield ElementUnit(stream, "node", value.target)
                case Path():
                    yield from self._of_values(stream, (*value.nodes, *value.relationships))
                case list():
                    yield from self._of_values(stream, value)

    def _of_triples(self, source: op.TripleSource, triples: Iterable[Triple]) -> Iterator[ElementUnit]:
        for part in parts_of(source):
            if isinstance(part, op.Window):
                window = replace(part, keep=None)
                stream = self._replay.query.cursor.stream_name(window) or ""
                held = self._windows[window]
                yield from (unit for one in triples if (unit := ElementUnit(stream, "triple", one)) in held)

    def near(self, node: op.Operator | ex.Expression) -> frozenset[ElementUnit]:
        """Return all elements that a part of the plan may read."""
        found: set[ElementUnit] = set()
        for one in walk(node):
            for source in read_by(one):
                if isinstance(source, op.Window):
                    held = self._windows[replace(source, keep=None)]
                    found |= held if not isinstance(one, tr.GraphPattern | tr.Path) else _fitting(one, held)
        return frozenset(found)


def _counts_all(operator: op.Operator) -> bool:
    """Return whether an operator has aggregates to which every row of a group contributes."""
    if not isinstance(operator, op.Aggregate | op.Annotate):
        return False
    return any(call.function.rpartition(":")[2].lower() not in _PICKING for _, call in operator.aggregates)


def _expressions(operator: op.Operator) -> Iterator[ex.Expression]:
    match operator:
        case op.Filter(condition=condition):
            yield condition
        case op.Extend(expression=expression) | op.Unwind(expression=expression):
            yield expression
        case op.Project(items=items) | op.Aggregate(keys=items):
            yield from (expression for _, expression in items)


def instantiated(pattern: tr.TriplePattern, bindings: Mapping[str, Value]) -> Triple | None:
    """Return a pattern's triple under bindings; None when a variable is unbound."""
    terms = [bindings.get(place.name) if isinstance(place, tr.Var) else place for place in pattern.places]
    return None if any(term is None for term in terms) else Triple(*cast(list[Term], terms))


def _hides(path: op.PathPattern) -> bool:
    return any(one.once for one in path.relationships)


def _looked_for(plan: op.Operator) -> Iterator[ex.Expression]:
    """Yield the parts of a core's conditions that read windows themselves."""
    match plan:
        case op.Join() | op.LeftJoin() | op.Union():
            yield from _looked_for(plan.left)
            yield from _looked_for(plan.right)
        case tr.Minus(left, _):
            yield from _looked_for(left)
        case op.Filter(input_):
            yield from looking(plan.condition)
            yield from _looked_for(input_)


def looking(expression: ex.Expression) -> Iterator[ex.Expression]:
    """Yield the subqueries of an expression, and its connectivity calls."""
    for one in walk(expression):
        if isinstance(one, (ex.Exists, ex.CollectRows, *_LINKS)):
            yield one


def _fitting(node: tr.GraphPattern | tr.Path, held: frozenset[ElementUnit]) -> set[ElementUnit]:
    """Return the triples that match one of the patterns by its constants."""
    if isinstance(node, tr.GraphPattern):
        wanted = [[None if isinstance(place, tr.Var) else place for place in one.places] for one in node.patterns]
    else:
        predicates = _predicates(node.path)
        if predicates is None:
            return set(held)
        wanted = [[None, one, None] for one in predicates]
    return {
        unit
        for unit in held
        if any(
            all(term is None or term == own for term, own in zip(terms, cast(Triple, unit.key), strict=True))
            for terms in wanted
        )
    }


def _predicates(path: tr.PropertyPath) -> frozenset[Iri] | None:
    """Return the predicates that a path may follow; None means all."""
    match path:
        case tr.PathLink(iri):
            return frozenset((iri,))
        case tr.Inverse(inner) | tr.Repeat(inner):
            return _predicates(inner)
        case tr.Sequence(paths) | tr.Alternative(paths):
            found = [_predicates(one) for one in paths]
            return None if any(one is None for one in found) else frozenset().union(*(one for one in found if one))
    return None
