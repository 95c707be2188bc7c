"""Compilation of operators to generators of rows: each reads its inputs' rows and yields its own.

A `Pattern` on the right of a join is matched row by row from the bindings of the left; other joins hash. Joins of
triple patterns and joins in which null is an unbound variable are conjunctions (`snapshot.rdf.conjunction`).

Rows without an order defined by the query are a bag: an operator that takes some of them, lists them, or shows one for
many uses the canonical order of rows (`model.compare.row_order`).

Invariant: a compiled operator keeps no state between runs; its rows have exactly the operator's columns. Its bag of
rows does not depend on the order in which a graph holds its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from heapq import nsmallest
from itertools import groupby, islice
from operator import itemgetter

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import depends_on_order, keeps_lists, keeps_order, lists_in_order, walk
from anabranch.errors import EvaluationError, InternalError, LimitExceeded
from anabranch.model.compare import SortKey, first_of, identity_key, order_key, row_order
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, RowSource, kind_of, truth, wrong_kind, wrong_value
from anabranch.snapshot.context import Context, out_of_memory
from anabranch.snapshot.expressions import ColumnNames, compile_expression, position
from anabranch.snapshot.grouping import compile_aggregate, compile_annotate
from anabranch.snapshot.matcher import PatternMatcher
from anabranch.snapshot.rdf.conjunction import compile_conjunction, compile_left_join, joins_terms, table_source
from anabranch.snapshot.rdf.graphs import compile_ask, compile_construct, compile_delegated, compile_describe
from anabranch.snapshot.rdf.joins import compile_minus
from anabranch.snapshot.rdf.ordering import order_key as term_order_key
from anabranch.snapshot.rdf.static import StaticRows
from anabranch.snapshot.rdf.tables import picker
from anabranch.snapshot.variables import free_variables

ValueRows = Iterator[tuple[Value, ...]]
Partners = Callable[[Context, tuple[Value, ...]], Callable[[tuple[Value, ...]], ValueRows]]
"""The right side of a join: prepared once per run, then asked with each left row for the joined rows."""


def compile_operator(operator: op.Operator, argument: ColumnNames) -> RowSource:
    """Compile an operator; `argument` names the columns of the row for its `Argument` leaf. An error about the budget
    or the memory names the operator."""
    source = _compile(operator, argument)
    return source if isinstance(operator, _SMALL) else _named(operator, source)


_SMALL = (op.Unit, op.Argument, op.RowBag, tr.Values)


def _named(operator: op.Operator, source: RowSource) -> RowSource:
    at = _unfiltered(operator)
    inside = (one.span for one in walk(at) if isinstance(one, op.Operator))
    span = next((one for one in inside if one is not None), None)

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        try:
            yield from source(context, row)
        except MemoryError:
            raise out_of_memory(type(at).__name__, span) from None
        except LimitExceeded as error:
            raise error.located(span) from None

    return rows


def _compile(operator: op.Operator, argument: ColumnNames) -> RowSource:
    match operator:
        case op.Unit():
            return lambda context, row: iter([()])
        case op.RowBag():
            return lambda context, row: iter(context.given)
        case op.Argument(names):
            picks = tuple(position(name, argument) for name in names)
            return lambda context, row: iter([tuple([row[pick] for pick in picks])])
        case tr.GraphPattern() | tr.Path():
            return compile_conjunction(operator, argument, compile_operator)
        case op.Filter() | op.Join() if isinstance(base := _unfiltered(operator), _CONJUNCTIONS) and joins_terms(base):
            return compile_conjunction(operator, argument, compile_operator)
        case op.LeftJoin() if joins_terms(operator):
            return compile_left_join(operator, argument, compile_operator)
        case op.Pattern() | op.Filter(op.Pattern() | op.Filter() | op.Join()):
            return _matched(operator, argument)
        case op.Join(left, right, condition):
            return _join(left, _partners(left, right, condition, argument), argument)
        case op.LeftJoin(left, right, condition):
            width = len(operator.columns) - len(left.columns)
            return _left_join(compile_operator(left, argument), _partners(left, right, condition, argument), width)
        case op.Union(left, right):
            return _union(left, right, argument)
        case tr.Minus(left, right):
            taken = table_source(right, argument, compile_operator)
            return compile_minus(compile_operator(left, argument), left.columns, taken, right.columns)
        case tr.Values(_, values):
            return lambda context, row: iter(values)
        case op.RuleTable(_, table):
            return lambda context, row: iter(table.held.values())
        case tr.StaticPart(plan, otherwise):
            instead = None if otherwise is None else compile_operator(otherwise, argument)
            return StaticRows(operator, compile_operator(plan, argument), instead)
        case tr.PluginQuery():
            return compile_delegated(operator)
    if isinstance(operator, op.Aggregate | op.Annotate) and any(
        depends_on_order(one) for _, one in operator.aggregates
    ):
        operator = replace(operator, input=lists_in_order(operator.input))
    inputs = operator.inputs
    if len(inputs) != 1:
        raise InternalError(f"{type(operator).__name__} has no plain evaluation")
    return _compile_single(operator, compile_operator(inputs[0], argument), inputs[0].columns)


_CONJUNCTIONS = (op.Join, tr.GraphPattern, tr.Path)


def _unfiltered(operator: op.Operator) -> op.Operator:
    while isinstance(operator, op.Filter):
        operator = operator.input
    return operator


def _compile_single(operator: op.Operator, source: RowSource, columns: ColumnNames) -> RowSource:
    """Compile an operator with one input."""
    match operator:
        case op.Filter(_, condition):
            return _filter(source, compile_expression(condition, columns), operator)
        case op.Extend(_, _, expression):
            return _extend(source, compile_expression(expression, columns))
        case op.Unwind(_, _, expression):
            return _unwind(source, compile_expression(expression, columns))
        case op.Project(_, items):
            return _project(source, columns, items)
        case op.Aggregate(_, keys, aggregates):
            return compile_aggregate(source, columns, keys, aggregates, keeps_lists(operator.input))
        case op.Annotate(_, names, aggregates):
            return compile_annotate(source, columns, names, aggregates, keeps_lists(operator.input))
        case op.Distinct():
            return _distinct(source)
        case op.Order(below, order):
            return _order(source, columns, order, keeps_order(below))
        case op.Slice(below, skip, limit):
            return _slice(source, columns, skip, limit, keeps_order(below))
        case tr.Construct():
            return compile_construct(operator, source)
        case tr.Describe(_, _, resources):
            return compile_describe(operator, source, [compile_expression(one, columns) for one in resources])
        case tr.Ask():
            return compile_ask(source)
    raise InternalError(f"{type(operator).__name__} has no plain evaluation")


# --- patterns and joins ---------------------------------------------------------------------------------------------


def _matched(operator: op.Operator, argument: ColumnNames) -> RowSource:
    """A pattern, perhaps under filters, perhaps under a join: the filters become the matcher's condition."""
    conditions: list[ex.Expression] = []
    below = operator
    while isinstance(below, op.Filter):
        conditions.insert(0, below.condition)
        below = below.input
    if isinstance(below, op.Pattern):
        matcher = PatternMatcher(below, (), _all_of(conditions))
        return lambda context, row: matcher.matches(context, ())
    if isinstance(below, op.Join):
        if below.condition is not None:
            conditions.insert(0, below.condition)
        partners = _partners(below.left, below.right, _all_of(conditions), argument)
        return _join(below.left, partners, argument)
    assert isinstance(operator, op.Filter)
    condition = compile_expression(operator.condition, operator.input.columns)
    return _filter(compile_operator(operator.input, argument), condition, operator)


def _all_of(conditions: list[ex.Expression]) -> ex.Expression | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return ex.And(tuple(conditions))


def _partners(
    left: op.Operator, right: op.Operator, condition: ex.Expression | None, argument: ColumnNames
) -> Partners:
    pattern, conditions = right, [condition] if condition is not None else []
    while isinstance(pattern, op.Filter) and not free_variables(pattern.condition) & frozenset(left.columns):
        conditions.insert(0, pattern.condition)
        pattern = pattern.input
    if isinstance(pattern, op.Pattern):
        matcher = PatternMatcher(pattern, left.columns, _all_of(conditions))
        return lambda context, row: lambda given: matcher.matches(context, given)
    return _hashed(left, right, condition, argument)


def _hashed(left: op.Operator, right: op.Operator, condition: ex.Expression | None, argument: ColumnNames) -> Partners:
    shared = [name for name in right.columns if name in left.columns]
    left_keys = [left.columns.index(name) for name in shared]
    right_keys = [right.columns.index(name) for name in shared]
    added = [index for index, name in enumerate(right.columns) if name not in left.columns]
    columns = left.columns + tuple(right.columns[index] for index in added)
    rows = compile_operator(right, argument)
    test = compile_expression(condition, columns) if condition is not None else None

    def prepare(context: Context, row: tuple[Value, ...]) -> Callable[[tuple[Value, ...]], ValueRows]:
        groups: dict[Hashable, list[tuple[Value, ...]]] = {}
        for one in rows(context, row):
            key = _join_key(one, right_keys)
            if key is not None:
                groups.setdefault(key, []).append(tuple([one[index] for index in added]))

        def partners(given: tuple[Value, ...]) -> ValueRows:
            found = groups.get(_join_key(given, left_keys), ())
            context.spend(len(found))
            for one in found:
                joined = given + one
                try:
                    passed = test is None or truth(test(joined, context)) is True
                except EvaluationError as error:
                    context.skip(error)
                    continue
                if passed:
                    yield joined

        return partners

    return prepare


def _join_key(row: tuple[Value, ...], picks: list[int]) -> Hashable:
    """The values that must be the same on both sides; None when one is null, which joins nothing."""
    values = [row[pick] for pick in picks]
    return None if any(value is None for value in values) else tuple(map(identity_key, values))


def _join(left: op.Operator, right: Partners, argument: ColumnNames) -> RowSource:
    if isinstance(left, op.Unit):
        return lambda context, row: right(context, row)(())
    source = compile_operator(left, argument)

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        partners = right(context, row)
        for given in source(context, row):
            yield from partners(given)

    return rows


def _left_join(left: RowSource, right: Partners, width: int) -> RowSource:
    nothing = (None,) * width

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        partners = right(context, row)
        for given in left(context, row):
            alone = True
            for joined in partners(given):
                alone = False
                yield joined
            if alone:
                yield given + nothing

    return rows


def _union(left: op.Operator, right: op.Operator, argument: ColumnNames) -> RowSource:
    first, second = compile_operator(left, argument), compile_operator(right, argument)
    picks = [right.columns.index(name) for name in left.columns]

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        yield from first(context, row)
        for one in second(context, row):
            yield tuple([one[pick] for pick in picks])

    return rows


# --- one input ------------------------------------------------------------------------------------------------------


def _filter(source: RowSource, condition: ExpressionEvaluator, operator: op.Filter) -> RowSource:
    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        for one in source(context, row):
            try:
                value = condition(one, context)
                if value is not True and value is not False and value is not None:
                    truth(value)
            except EvaluationError as error:
                context.skip(error.located(operator.condition.span))
                continue
            if value is True:
                yield one

    return rows


def _extend(source: RowSource, expression: ExpressionEvaluator) -> RowSource:
    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        for one in source(context, row):
            try:
                value = expression(one, context)
            except EvaluationError as error:
                context.skip(error)
                continue
            yield (*one, value)

    return rows


def _unwind(source: RowSource, expression: ExpressionEvaluator) -> RowSource:
    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        for one in source(context, row):
            try:
                value = expression(one, context)
            except EvaluationError as error:
                context.skip(error)
                continue
            if value is None:
                continue
            items = value if isinstance(value, list) else [value]
            context.spend(len(items))
            for item in items:
                yield (*one, item)

    return rows


def _project(source: RowSource, columns: ColumnNames, items: tuple[tuple[str, ex.Expression], ...]) -> RowSource:
    if all(isinstance(expression, ex.Variable) for _, expression in items):
        cut = picker([position(one.name, columns) for _, one in items if isinstance(one, ex.Variable)])
        return lambda context, row: map(cut, source(context, row))
    evaluators = [compile_expression(expression, columns) for _, expression in items]

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        for one in source(context, row):
            try:
                shown = tuple([evaluate(one, context) for evaluate in evaluators])
            except EvaluationError as error:
                context.skip(error)
                continue
            yield shown

    return rows


def _distinct(source: RowSource) -> RowSource:
    """Of equivalent rows the first in the canonical order is shown."""

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        shown: dict[Hashable, tuple[Value, ...]] = {}
        for one in source(context, row):
            key = tuple(map(identity_key, one))
            known = shown.get(key)
            shown[key] = one if known is None else first_of(known, one)
        return iter(shown.values())

    return rows


def _order(source: RowSource, columns: ColumnNames, keys: tuple[op.OrderKey, ...], in_order: bool) -> RowSource:
    """Rows with equal keys stay in the order in which they come, where that is one; else they come canonically. A key
    that fails counts as null."""
    evaluators = [
        (compile_expression(key.expression, columns), term_order_key if key.of_terms else order_key, key.descending)
        for key in keys
    ]
    tie_key = row_order(columns)

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        found = [
            (one, [key_of(or_null(evaluate, one, context)) for evaluate, key_of, _ in evaluators])
            for one in source(context, row)
        ]
        for at, (_, _, descending) in reversed(list(enumerate(evaluators))):
            found.sort(key=lambda pair: pair[1][at], reverse=descending)
        if in_order:
            return iter([one for one, _ in found])
        return _ties_sorted(found, tie_key)

    return rows


def or_null(evaluate: ExpressionEvaluator, row: tuple[Value, ...], context: Context) -> Value:
    """The value of an expression; null where it fails and the row is not to end the evaluation."""
    try:
        return evaluate(row, context)
    except EvaluationError as error:
        context.skip(error)
        return None


def _ties_sorted(
    found: list[tuple[tuple[Value, ...], list[SortKey]]], tie_key: Callable[[tuple[Value, ...]], SortKey]
) -> ValueRows:
    for _, tied in groupby(found, key=itemgetter(1)):
        rows = [one for one, _ in tied]
        if len(rows) > 1:
            rows.sort(key=tie_key)
        yield from rows


def _slice(
    source: RowSource, columns: ColumnNames, skip: ex.Expression | None, limit: ex.Expression | None, in_order: bool
) -> RowSource:
    """Rows without an order are taken in the canonical one."""
    first, most = (part and compile_expression(part, ()) for part in (skip, limit))
    place = row_order(columns)

    def rows(context: Context, row: tuple[Value, ...]) -> ValueRows:
        start = row_count(first((), context), "SKIP", skip) if first else 0
        count = row_count(most((), context), "LIMIT", limit) if most else None
        found = source(context, row)
        if not in_order:
            found = iter(sorted(found, key=place) if count is None else nsmallest(start + count, found, key=place))
        return islice(islice(found, start, None), count)

    return rows


def row_count(value: Value, what: str, expression: ex.Expression | None) -> int:
    """The value of SKIP or LIMIT, if it is one."""
    span = expression.span if expression is not None else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_kind(f"{what} takes an integer, and this is {kind_of(value)}").located(span)
    if value < 0:
        raise wrong_value(f"{what} {value} is negative", "counts begin at 0").located(span)
    return value
