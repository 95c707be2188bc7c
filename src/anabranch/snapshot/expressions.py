"""Compilation of expressions to nested closures: names become positions, literals values, functions calls.

A variable that an expression binds itself (comprehension, quantifier, reduction) is appended to the row it sees.

Invariant: an error carries the span of the innermost expression that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Operator, TripleSource
from anabranch.algebra.walk import keeps_lists, lists_in_order
from anabranch.errors import EvaluationError, InternalError, Span
from anabranch.model.compare import canonical_key
from anabranch.model.temporal.functions import now
from anabranch.model.terms import Triple
from anabranch.model.values import Node, Relationship, Value
from anabranch.snapshot.access import carries_labels, item_of, property_of, slice_of
from anabranch.snapshot.compiled import ExpressionEvaluator, Row, RowSource, kind_of, truth, wrong_kind
from anabranch.snapshot.connections import compile_component, compile_connected
from anabranch.snapshot.context import Context
from anabranch.snapshot.functions import CONTEXT_FUNCTIONS, FUNCTIONS
from anabranch.snapshot.limits import NESTED, check_nested
from anabranch.snapshot.logic import COMPARISONS, QUANTIFIERS, conjunction, disjunction, exclusive, negation
from anabranch.snapshot.rdf.functions import compile_call
from anabranch.snapshot.variables import argument_names

ColumnNames = tuple[str, ...]

_HASHED = frozenset((str, int))  # types whose equality in Python is their equality in a query
_HASHED_FROM = 8
_SHORT = 64  # characters or items
_GROWING = frozenset({"replace", "split", "range", "reverse", "tail"})  # functions that make texts and lists
_GROWING_TERMS = frozenset({"sparql:concat", "sparql:replace", "sparql:encode_for_uri"})
_STRETCH = 4096  # items
_PRICE = 2  # of an item that a comprehension makes


def compile_expression(expression: ex.Expression, columns: ColumnNames) -> ExpressionEvaluator:
    """Compile an expression to a function from a row with these columns to its value."""

    def compiled(part: ex.Expression) -> ExpressionEvaluator:
        return compile_expression(part, columns)

    def optional(part: ex.Expression | None) -> ExpressionEvaluator | None:
        return None if part is None else compile_expression(part, columns)

    match expression:
        case ex.Constant(value):
            return lambda row, context: value
        case ex.Variable(name):
            index = position(name, columns)
            return lambda row, context: row[index]
        case ex.Parameter(name):
            return _parameter(name, expression.span)
        case ex.Property(subject, key):
            return _property(compiled(subject), key, expression.span)
        case ex.Subscript(subject, index_expression):
            return _applied(item_of, (compiled(subject), compiled(index_expression)), expression.span)
        case ex.Sublist(subject, start, stop):
            return _sublist(compiled(subject), optional(start), optional(stop), expression.span)
        case ex.ListOf(items):
            return _list(items, tuple(map(compiled, items)), expression.span)
        case ex.MapOf(entries):
            return _map(tuple((name, compiled(value)) for name, value in entries), expression.span)
        case ex.And(operands):
            return _located(conjunction(tuple(map(compiled, operands))), expression.span)
        case ex.Or(operands):
            return _located(disjunction(tuple(map(compiled, operands))), expression.span)
        case ex.Xor(left, right):
            return _applied(exclusive, (compiled(left), compiled(right)), expression.span)
        case ex.Not(operand):
            return _applied(negation, (compiled(operand),), expression.span)
        case ex.Compare(operator, left, right):
            return _comparison(COMPARISONS[operator], compiled(left), compiled(right))
        case ex.IsNull(operand):
            tested = compiled(operand)
            return lambda row, context: tested(row, context) is None
        case ex.HasLabels(subject, labels):
            return _applied(lambda value: carries_labels(value, labels), (compiled(subject),), expression.span)
        case ex.Call("coalesce", arguments):
            return _coalesce(tuple(map(compiled, arguments)))
        case ex.Call("in", (item, container)):
            return _membership(compiled(item), compiled(container), expression.span)
        case ex.Call(function, arguments) if function.startswith("sparql:"):
            call = compile_call(function, list(map(compiled, arguments)))
            return _located(call, expression.span) if function in _GROWING_TERMS else call
        case ex.WindowBound(window, side):
            at = 0 if side == "start" else 1
            return lambda row, context: now(context.bounds(window)[at])
        case ex.Connected(links, left, right):
            return compile_connected(links, compiled(left), compiled(right), expression.span)
        case ex.Component(links, subject, asked):
            return compile_component(links, compiled(subject), asked, expression.span)
        case ex.TripleTime(triples, subject, predicate, object_):
            return _triple_time(triples, compiled(subject), compiled(predicate), compiled(object_))
        case ex.Call(function, arguments):
            return _call(function, tuple(map(compiled, arguments)), expression.span)
        case ex.Case(branches, default):
            return _case(tuple((compiled(one), compiled(two)) for one, two in branches), compiled(default))
        case ex.Comprehension(variable, source, where, result):
            inner = (*columns, variable)
            return _comprehension(
                compiled(source),
                None if where is None else compile_expression(where, inner),
                None if result is None else compile_expression(result, inner),
                expression.span,
            )
        case ex.Quantifier(kind, variable, source, condition):
            test = compile_expression(condition, (*columns, variable))
            return _quantifier(kind, compiled(source), test, expression.span)
        case ex.Reduce(accumulator, initial, variable, source, step):
            following = compile_expression(step, (*columns, accumulator, variable))
            return _reduction(compiled(initial), compiled(source), following, expression.span)
        case ex.Exists(plan):
            rows, argument = _nested(plan, columns)
            return lambda row, context: next(rows(context, argument(row)), None) is not None
        case ex.CollectRows(plan, result):
            return _collection(plan, compile_expression(result, plan.columns), columns)
    raise InternalError(f"{type(expression).__name__} cannot stand here")


def position(name: str, columns: ColumnNames) -> int:
    """Return the position of a name in the row; the innermost of two bindings wins."""
    for index in range(len(columns) - 1, -1, -1):
        if columns[index] == name:
            return index
    raise InternalError(f"no column `{name}` among {', '.join(columns) or 'none'}")


# --- leaves and access ----------------------------------------------------------------------------------------------


def _parameter(name: str, span: Span | None) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        try:
            return context.parameters[name]
        except KeyError:
            given = ", ".join(f"${one}" for one in context.parameters) or "none"
            raise EvaluationError("SER-305", f"no parameter `${name}`", f"given: {given}", span) from None

    return evaluate


def _property(subject: ExpressionEvaluator, key: str, span: Span | None) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        value = subject(row, context)
        kind = value.__class__
        if kind is Node or kind is Relationship:
            return value.properties.get(key)  # type: ignore[attr-defined]
        try:
            return property_of(value, key)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _sublist(
    subject: ExpressionEvaluator, start: ExpressionEvaluator | None, stop: ExpressionEvaluator | None, span: Span | None
) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        value = subject(row, context)
        first = start(row, context) if start else None
        last = stop(row, context) if stop else None
        try:
            return slice_of(value, first, last, start is not None, stop is not None)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _map(named: tuple[tuple[str, ExpressionEvaluator], ...], span: Span | None) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        value = {name: part(row, context) for name, part in named}
        return _flat_enough(value, value.values(), span)

    return evaluate


def _list(
    items: tuple[ex.Expression, ...], evaluators: tuple[ExpressionEvaluator, ...], span: Span | None
) -> ExpressionEvaluator:
    if all(isinstance(item, ex.Constant) for item in items):
        constant: Value = [item.value for item in items if isinstance(item, ex.Constant)]
        return lambda row, context: constant

    def evaluate(row: Row, context: Context) -> Value:
        value = [item(row, context) for item in evaluators]
        return _flat_enough(value, value, span)

    return evaluate


def _flat_enough(value: Value, parts: Iterable[Value], span: Span | None) -> Value:
    """Return a list or map, or refuse it if it is nested too deeply or too large."""
    for part in parts:
        if part.__class__ in NESTED:
            try:
                check_nested(value)
            except EvaluationError as error:
                raise error.located(span) from None
            break
    return value


# --- calls ----------------------------------------------------------------------------------------------------------


def _located(evaluator: ExpressionEvaluator, span: Span | None) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        try:
            return evaluator(row, context)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _paid(evaluator: ExpressionEvaluator, span: Span | None, makes_items: bool) -> ExpressionEvaluator:
    """Wrap an expression whose texts and lists count against the budget; if it also creates the items, they cost more
    than their places in a list."""

    def evaluate(row: Row, context: Context) -> Value:
        value = evaluator(row, context)
        kind = value.__class__
        if kind is list:
            size = len(value)  # type: ignore[arg-type]
            _pay(_PRICE * size if makes_items else 1 + (size >> 2), context, span)
        elif kind is str:
            _pay(1 + (len(value) >> 5), context, span)  # type: ignore[arg-type]
        return value

    return evaluate


def _added(left: ExpressionEvaluator, right: ExpressionEvaluator, span: Span | None) -> ExpressionEvaluator:
    """Compile a sum; a long text or list counts against the budget."""
    add = FUNCTIONS["add"]

    def evaluate(row: Row, context: Context) -> Value:
        one, other = left(row, context), right(row, context)
        try:
            value: Any = add(one, other)
            kind = value.__class__
            if (kind is str or kind is list) and len(value) > _SHORT:
                context.spend(len(value) >> (2 if kind is list else 5))
        except EvaluationError as error:
            raise error.located(span) from None
        return value

    return evaluate


def _applied(
    function: Callable[..., Value], arguments: tuple[ExpressionEvaluator, ...], span: Span | None
) -> ExpressionEvaluator:
    """Compile a call of a function on its arguments, with special cases for small arities for speed."""
    match arguments:
        case (only,):

            def evaluate(row: Row, context: Context) -> Value:
                value = only(row, context)
                try:
                    return function(value)
                except EvaluationError as error:
                    raise error.located(span) from None

        case (left, right):

            def evaluate(row: Row, context: Context) -> Value:
                one, other = left(row, context), right(row, context)
                try:
                    return function(one, other)
                except EvaluationError as error:
                    raise error.located(span) from None

        case _:

            def evaluate(row: Row, context: Context) -> Value:
                values = [argument(row, context) for argument in arguments]
                try:
                    return function(*values)
                except EvaluationError as error:
                    raise error.located(span) from None

    return evaluate


def _call(name: str, arguments: tuple[ExpressionEvaluator, ...], span: Span | None) -> ExpressionEvaluator:
    folded = name.lower()
    function = FUNCTIONS.get(folded)
    if function is not None:
        if folded == "add":
            return _added(arguments[0], arguments[1], span)
        applied = _applied(function, arguments, span)
        return _paid(applied, span, folded == "range") if folded in _GROWING else applied
    contextual = CONTEXT_FUNCTIONS.get(folded)
    if contextual is None:
        raise InternalError(f"no function `{name}` in the snapshot evaluator")

    def evaluate(row: Row, context: Context) -> Value:
        values = [argument(row, context) for argument in arguments]
        try:
            return contextual(context, *values)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _triple_time(
    source: TripleSource, subject: ExpressionEvaluator, predicate: ExpressionEvaluator, object_: ExpressionEvaluator
) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        terms: tuple[Any, ...] = (subject(row, context), predicate(row, context), object_(row, context))
        return None if None in terms else context.triples(source).time_of(Triple(*terms))

    return evaluate


def _comparison(
    test: Callable[[Value, Value], bool | None], left: ExpressionEvaluator, right: ExpressionEvaluator
) -> ExpressionEvaluator:
    return lambda row, context: test(left(row, context), right(row, context))


def _membership(item: ExpressionEvaluator, container: ExpressionEvaluator, span: Span | None) -> ExpressionEvaluator:
    """Compile `item IN container`. A list that is tested repeatedly, row by row, is hashed the first time."""
    test = FUNCTIONS["in"]
    hashed: tuple[list[Value], frozenset[Value]] | None = None

    def evaluate(row: Row, context: Context) -> Value:
        nonlocal hashed
        value, values = item(row, context), container(row, context)
        if value.__class__ in _HASHED and isinstance(values, list) and len(values) > _HASHED_FROM:
            if hashed is None or hashed[0] is not values:
                plain = all(one.__class__ in _HASHED for one in values)
                hashed = (values, frozenset(values) if plain else frozenset())
            if hashed[1]:
                return value in hashed[1]
        try:
            return test(value, values)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _coalesce(arguments: tuple[ExpressionEvaluator, ...]) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        for argument in arguments:
            value = argument(row, context)
            if value is not None:
                return value
        return None

    return evaluate


def _case(
    branches: tuple[tuple[ExpressionEvaluator, ExpressionEvaluator], ...], default: ExpressionEvaluator
) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        for condition, value in branches:
            if condition(row, context) is True:
                return value(row, context)
        return default(row, context)

    return evaluate


# --- expressions that bind a variable -------------------------------------------------------------------------------


def _items(value: Value, span: Span | None) -> list[Value] | None:
    if value is None or isinstance(value, list):
        return value
    raise wrong_kind(f"items of {kind_of(value)}", "only a list can be gone through").located(span)


def _comprehension(
    source: ExpressionEvaluator,
    where: ExpressionEvaluator | None,
    result: ExpressionEvaluator | None,
    span: Span | None,
) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        items = _items(source(row, context), span)
        if items is None:
            return None
        found: list[Value] = []
        for part in _stretches(items, _PRICE, context, span):
            for item in part:
                inner = (*row, item)
                if where is None or _true(where(inner, context), span):
                    found.append(item if result is None else result(inner, context))
        if found and (found[0].__class__ in NESTED or found[-1].__class__ in NESTED):
            return _flat_enough(found, found, span)
        return found

    return evaluate


def _stretches(items: list[Value], price: int, context: Context, span: Span | None) -> Iterable[list[Value]]:
    """Yield the items in parts that are charged one by one, so that a long list neither exceeds the budget unnoticed
    nor delays a cancellation."""
    if len(items) > _STRETCH:
        return _long_stretches(items, price, context, span)
    context.steps += price * len(items)
    if context.steps > context.look_at:
        _pay(0, context, span)
    return (items,)


def _long_stretches(items: list[Value], price: int, context: Context, span: Span | None) -> Iterator[list[Value]]:
    for start in range(0, len(items), _STRETCH):
        part = items[start : start + _STRETCH]
        _pay(price * len(part), context, span)
        yield part


def _pay(steps: int, context: Context, span: Span | None) -> None:
    try:
        context.spend(steps)
    except EvaluationError as error:
        raise error.located(span) from None


def _true(value: Value, span: Span | None) -> bool:
    if value is True or value is False or value is None:
        return value is True
    try:
        return truth(value) is True
    except EvaluationError as error:
        raise error.located(span) from None


def _quantifier(
    kind: str, source: ExpressionEvaluator, test: ExpressionEvaluator, span: Span | None
) -> ExpressionEvaluator:
    quantify = QUANTIFIERS[kind]

    def evaluate(row: Row, context: Context) -> Value:
        items = _items(source(row, context), span)
        if items is None:
            return None
        context.steps += len(items)
        if context.steps > context.look_at:
            _pay(0, context, span)
        try:
            return quantify(truth(test((*row, item), context)) for item in items)
        except EvaluationError as error:
            raise error.located(span) from None

    return evaluate


def _reduction(
    initial: ExpressionEvaluator, source: ExpressionEvaluator, step: ExpressionEvaluator, span: Span | None
) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        accumulated = initial(row, context)
        items = _items(source(row, context), span)
        if items is None:
            return None
        for part in _stretches(items, 1, context, span):
            for item in part:
                accumulated = step((*row, accumulated, item), context)
        return accumulated

    return evaluate


# --- expressions that hold a plan -----------------------------------------------------------------------------------


def _collection(plan: Operator, shown: ExpressionEvaluator, columns: ColumnNames) -> ExpressionEvaluator:
    """Compile a list with an expression's value for each row of a plan; rows on which it fails are skipped."""
    rows, argument = _nested(lists_in_order(plan), columns)
    in_order = keeps_lists(plan)

    def evaluate(row: Row, context: Context) -> Value:
        found: list[Value] = []
        for one in rows(context, argument(row)):
            try:
                found.append(shown(one, context))
            except EvaluationError as error:
                context.skip(error)
        if not in_order:
            found.sort(key=canonical_key)
        return found

    return evaluate


def _nested(plan: Operator, columns: ColumnNames) -> tuple[RowSource, Callable[[Row], tuple[Value, ...]]]:
    """Return the plan's rows, and a function that extracts the row of its `Argument` leaf from the enclosing row."""
    from anabranch.snapshot.operators import compile_operator  # operators hold expressions and these hold operators

    names = tuple(dict.fromkeys(argument_names(plan)))
    picks = tuple(position(name, columns) for name in names)
    return compile_operator(plan, names), lambda row: tuple([row[pick] for pick in picks])
