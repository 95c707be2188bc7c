"""Specs of operators that need no decision, made from the specs below them.

Invariant: a spec's columns are those of its operator's rows, in this order.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.delta.batch import NULL, REFUSED
from anabranch.delta.operators.copies import NumberedCopies
from anabranch.delta.operators.distinct import DistinctRows
from anabranch.delta.operators.rowwise import ColumnChoice, NetChanges, RowExtension, RowFilter, RowProjection, Unwound
from anabranch.model.compare import canonical_key
from anabranch.planner.flow.runtime import ListItems, RowPasses, RowValues, Runtime, unless_null
from anabranch.planner.flow.spec import FlowPart, Spec
from anabranch.planner.leaves.graph_facts import nothing_shared, path_values
from anabranch.planner.patterns.kinds import NamedPath
from anabranch.planner.specs.conditions import require_pure


def arranged(spec: Spec, columns: tuple[str, ...], about: op.Operator | None) -> Spec:
    """Return the same rows with exactly these columns, in this order."""
    if spec.columns == columns:
        return spec
    picks = [spec.index(name) for name in columns]
    return Spec(spec.name, lambda _: ColumnChoice(picks), columns, (spec,), about, picks=True)


def netted(spec: Spec, about: op.Operator | None) -> Spec:
    """Return the same rows; a row that leaves and enters in one instant is no change."""
    return Spec(spec.name, lambda _: NetChanges(spec.width), spec.columns, (spec,), about, picks=True)


def filled(spec: Spec, columns: tuple[str, ...], about: op.Operator) -> Spec:
    """Add a null column for each column that is not computed because no operator reads it."""
    lacking = [(name, ex.Constant(None)) for name in columns if name not in spec.columns]
    return extended(spec, lacking, about) if lacking else spec


def filtered(spec: Spec, condition: ex.Expression, about: op.Operator, settled: str | None = None) -> Spec:
    """Keep the rows for which a condition is true; it is known to be so for those with null in the column `settled`."""

    def make(runtime: Runtime) -> FlowPart:
        passes = RowPasses(condition, spec.columns, runtime)
        return RowFilter(spec.width, passes if settled is None else unless_null(spec.index(settled), passes))

    return Spec("Filtered", make, spec.columns, (spec,), about, says=(("", condition),))


def extended(spec: Spec, items: Sequence[tuple[str, ex.Expression]], about: op.Operator | None) -> Spec:
    for _, expression in items:
        require_pure(expression)
    return keyed(spec, items, about, REFUSED)


def keyed(
    spec: Spec, items: Sequence[tuple[str, ex.Expression]], about: op.Operator | None, failed: int = NULL
) -> Spec:
    """Add columns that a join compares; null, which joins nothing, where an expression fails."""

    def make(runtime: Runtime) -> FlowPart:
        return RowExtension(
            spec.width, [RowValues(expression, spec.columns, runtime, failed) for _, expression in items]
        )

    columns = (*spec.columns, *(name for name, _ in items))
    return Spec("Extended", make, columns, (spec,), about, says=tuple(items))


def projected(spec: Spec, items: Sequence[tuple[str, ex.Expression]], about: op.Operator) -> Spec:
    for _, expression in items:
        require_pure(expression)

    def make(runtime: Runtime) -> FlowPart:
        return RowProjection([RowValues(expression, spec.columns, runtime) for _, expression in items])

    return Spec("Projected", make, tuple(name for name, _ in items), (spec,), about, says=tuple(items))


def flattened(spec: Spec, column: str, columns: tuple[str, ...], about: op.Operator) -> Spec:
    """Replace a column of lists of one-item lists by the list of their items; null by the empty list."""
    item = " item"
    lists = ex.Call("coalesce", (ex.Variable(column), ex.ListOf(())))
    flat = ex.Comprehension(item, lists, None, ex.Subscript(ex.Variable(item), ex.Constant(0)))
    items = [(name, flat if name == column else ex.Variable(name)) for name in columns]
    return projected(spec, items, about)


def unwound(spec: Spec, column: str, expression: ex.Expression, about: op.Operator, place: str | None = None) -> Spec:
    """Return one row per item of a list; `place` names a column for the item's place in the list."""
    require_pure(expression)

    def make(runtime: Runtime) -> FlowPart:
        items = ListItems(expression, spec.columns, runtime)
        return Unwound(spec.width, items) if place is None else Unwound(spec.width, items, runtime.dictionary)

    columns = (*spec.columns, column) if place is None else (*spec.columns, column, place)
    return Spec("Unwound", make, columns, (spec,), about)


def numbered(spec: Spec, column: str, about: op.Operator) -> Spec:
    """Return the rows with a column that numbers the copies of each."""
    return Spec(
        "NumberedCopies",
        lambda runtime: NumberedCopies(spec.width, runtime.dictionary),
        (*spec.columns, column),
        (spec,),
        about,
    )


def distinct(spec: Spec, about: op.Operator, terms: bool) -> Spec:
    def make(runtime: Runtime) -> FlowPart:
        if terms:
            return DistinctRows(spec.width, None, None)
        decode_all = runtime.dictionary.decode_all
        return DistinctRows(
            spec.width, runtime.dictionary.identities, lambda row: tuple(map(canonical_key, decode_all(row)))
        )

    return Spec("Distinct", make, spec.columns, (spec,), about)


def apart(spec: Spec, one: str, other: str, about: op.Operator) -> Spec:
    """Keep the rows whose two columns are different relationships."""
    left, right = spec.index(one), spec.index(other)

    def make(runtime: Runtime) -> FlowPart:
        same = runtime.dictionary.identities
        return RowFilter(spec.width, lambda rows: same(rows[:, left]) != same(rows[:, right]))

    return Spec("Filtered", make, spec.columns, (spec,), about, says=_differ(one, other))


def disjoint(spec: Spec, one: str, other: str, about: op.Operator) -> Spec:
    """Keep the rows whose two columns, of relationships or trails, have no relationship in common."""

    def make(runtime: Runtime) -> FlowPart:
        return RowFilter(spec.width, nothing_shared(spec.index(one), spec.index(other), runtime.dictionary))

    return Spec("Filtered", make, spec.columns, (spec,), about, says=_differ(one, other))


def _differ(one: str, other: str) -> tuple[tuple[str, ex.Expression], ...]:
    return (("", ex.Compare("<>", ex.Variable(one), ex.Variable(other))),)


def with_path(spec: Spec, path: NamedPath, about: op.Operator) -> Spec:
    def make(runtime: Runtime) -> FlowPart:
        return RowExtension(spec.width, [path_values(path, spec.columns, runtime.dictionary)])

    says = ((path.name, ex.ListOf(tuple(map(ex.Variable, (*path.nodes, *path.relationships))))),)
    return Spec("Extended", make, (*spec.columns, path.name), (spec,), about, says=says)
