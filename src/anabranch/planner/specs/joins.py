"""Joins, unions and differences as specs.

Invariant: an equality between both sides only saves work; the conditions are tested all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.delta.operators.anti_join import AntiJoin
from anabranch.delta.operators.join import SymmetricHashJoin
from anabranch.delta.operators.left_join import SymmetricHashLeftJoin
from anabranch.delta.operators.threshold import ThresholdJoin
from anabranch.delta.operators.union import BagUnion
from anabranch.planner.flow.runtime import RowNumbers, RowPasses, Runtime, all_of
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.planner.specs.building import arranged, keyed
from anabranch.planner.specs.conditions import ThresholdTest, equalities
from anabranch.planner.specs.values import united
from anabranch.snapshot.rdf.certain import certain_columns
from anabranch.snapshot.variables import free_variables


def hash_join(
    left: Spec,
    right: Spec,
    lenient: bool,
    conditions: Sequence[ex.Expression],
    sure: tuple[set[str] | frozenset[str], set[str] | frozenset[str]] | None,
    about: op.Operator | None,
    outer: bool,
) -> Spec:
    """Return the spec of a join on the columns that both sides have; `sure` are the columns of each side that are never
    null."""
    names = [name for name in left.columns if name in right.columns]
    shared = [
        (left.index(name), right.index(name), sure is None or (name in sure[0] and name in sure[1])) for name in names
    ]
    columns = (*left.columns, *(name for name in right.columns if name not in names))

    def make(runtime: Runtime) -> FlowPart:
        condition = all_of(RowPasses(one, columns, runtime) for one in conditions)
        same = None if lenient else runtime.dictionary.identities
        combine = None if lenient else united(runtime)
        kind = SymmetricHashLeftJoin if outer else SymmetricHashJoin
        return kind(left.width, right.width, shared, lenient, same, combine, condition)

    return Spec("SymmetricHashLeftJoin" if outer else "SymmetricHashJoin", make, columns, (left, right), about)


def threshold_join(rows: Spec, threshold: Spec, test: ThresholdTest, about: op.Operator) -> Spec:
    """Return the spec of pairs of rows and thresholds that a comparison can accept."""

    def make(runtime: Runtime) -> FlowPart:
        number = RowNumbers(test.row, rows.columns, runtime)
        limit = RowNumbers(test.threshold, threshold.columns, runtime)
        return ThresholdJoin(rows.width, threshold.width, number, limit, test.above)

    return Spec("ThresholdJoin", make, (*rows.columns, *threshold.columns), (rows, threshold), about)


def with_keys(
    left: Spec, right: Spec, pairs: Sequence[tuple[ex.Expression, ex.Expression]], about: op.Operator
) -> tuple[Spec, Spec]:
    """Add columns of the same names to both sides, for values that are equal in every joined row."""
    if not pairs:
        return left, right
    keys = [f" key {at}" for at in range(len(pairs))]
    ones, others = ([*zip(keys, values, strict=True)] for values in zip(*pairs, strict=True))
    return keyed(left, ones, about), keyed(right, others, about)


def combined(
    parts: Sequence[Spec],
    conditions: Sequence[ex.Expression],
    about: op.Operator,
    alike: Sequence[tuple[ex.Expression, ex.Expression]] = (),
) -> Spec:
    """Join the parts of a pattern, which share no variable, in their order."""
    spec = parts[0]
    for part in parts[1:]:
        spec = _joined(spec, part, conditions, about, alike)
    return spec


def _joined(
    left: Spec,
    right: Spec,
    conditions: Sequence[ex.Expression],
    about: op.Operator,
    alike: Sequence[tuple[ex.Expression, ex.Expression]],
) -> Spec:
    """Join every row with every row, except pairs that an equality excludes."""
    sides = frozenset(left.columns), frozenset(right.columns)
    pairs = list(equalities(conditions, *sides))
    for pair in alike:
        for one, other in (pair, pair[::-1]):
            if free_variables(one) <= sides[0] and free_variables(other) <= sides[1]:
                pairs.append((one, other))
    columns = (*left.columns, *right.columns)
    joined = hash_join(*with_keys(left, right, pairs, about), False, (), None, about, outer=False)
    return arranged(joined, columns, about)


def union(operator: op.Union, left: Spec, right: Spec) -> Spec:
    columns = left.columns
    if set(columns) != set(right.columns):
        raise NotIncremental("only one side of a union depends on the row outside")
    picks = [right.index(name) for name in columns]
    return Spec("Union", lambda _: BagUnion(picks), columns, (left, right), operator)


def minus(operator: tr.Minus, left: Spec, right: Spec) -> Spec:
    sure = certain_columns(operator.left) & certain_columns(operator.right)
    names = [name for name in operator.left.columns if name in operator.right.columns]
    if any(name.startswith(" asked ") for name in set(left.columns) & set(right.columns)):
        raise NotIncremental("both sides of MINUS depend on the row outside")
    shared = [(left.index(name), right.index(name), name in sure) for name in names]
    return Spec("AntiJoin", lambda _: AntiJoin(left.width, right.width, shared), left.columns, (left, right), operator)
