"""Analyses conditions for operators: bounds of numbers, equalities that a join can hash, subqueries to mark.

Invariant: every result is only a short cut; the condition itself is tested on the rows that come out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Operator
from anabranch.algebra.walk import is_volatile, reads_clock, walk
from anabranch.errors import EvaluationError
from anabranch.model.values import Value
from anabranch.planner.flow.spec import NotIncremental
from anabranch.planner.patterns.safety import is_about_the_row_alone, no_graph
from anabranch.planner.patterns.triple_patterns import NumberBounds
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.rdf.values import number_of, to_float
from anabranch.snapshot.variables import free_variables

_READS_GRAPH = frozenset({"startnode", "endnode"})


def require_pure(expression: ex.Expression) -> None:
    """Raise NotIncremental for an expression that depends on more than the row."""
    if is_volatile(expression):
        raise NotIncremental("it reads the clock or chance")
    for node in walk(expression):
        match node:
            case ex.TripleTime():
                raise NotIncremental("it reads the time of a triple")
            case ex.Call(function) if function.lower() in _READS_GRAPH:
                raise NotIncremental(f"{function}() looks up a node in the window")
            case ex.Connected() | ex.Component():
                raise NotIncremental("connectivity is asked where its answer cannot be marked on the row")
            case ex.Exists() | ex.CollectRows():
                raise NotIncremental("a subquery stands where its answer cannot be marked on the row")


def can_be_pure(expression: ex.Expression, parameters: Mapping[str, Value]) -> bool:
    """Return whether an expression depends on the row only, once its subqueries and readings of the clock are columns
    of the row."""
    marks = {id(one): ex.Constant(None) for one in (*clock_readings(expression, parameters), *subqueries(expression))}
    try:
        require_pure(marked(expression, marks))
    except NotIncremental:
        return False
    return True


def looks_up_nodes(plan: Operator) -> bool:
    """Return whether expressions of a plan ask the window for the node at the end of a relationship."""
    return any(isinstance(node, ex.Call) and node.function.lower() in _READS_GRAPH for node in walk(plan))


def number_bounds(conditions: Iterable[ex.Expression]) -> dict[str, NumberBounds]:
    """Return the ranges of variables' numbers outside of which the conditions cannot hold."""
    found: dict[str, NumberBounds] = {}

    def narrow(name: str, low: float, high: float) -> None:
        before = found.get(name, (-math.inf, math.inf))
        found[name] = (max(before[0], low), min(before[1], high))

    for condition in conditions:
        match condition:
            case ex.Call("sparql:less" | "sparql:less_or_equal", (ex.Variable(name), ex.Constant(value))):
                if (limit := _float_of(value)) is not None:
                    narrow(name, -math.inf, limit)
            case ex.Call("sparql:less" | "sparql:less_or_equal", (ex.Constant(value), ex.Variable(name))):
                if (limit := _float_of(value)) is not None:
                    narrow(name, limit, math.inf)
    return found


def _float_of(value: object) -> float | None:
    number = number_of(value)
    if number is None:
        return None
    limit = to_float(number)
    return None if math.isnan(limit) else limit


def number_as_float(value: object) -> float:
    """Return the number of a term or a value as a float; NaN where it is no number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number: object = value
    else:
        number = number_of(value)
    if number is None:
        return math.nan
    try:
        return to_float(number)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf if number > 0 else -math.inf  # type: ignore[operator]


def equalities(
    conditions: Iterable[ex.Expression], left: frozenset[str], right: frozenset[str]
) -> Iterator[tuple[ex.Expression, ex.Expression]]:
    """Yield pairs of expressions, one over each side's columns, that must be equal (by the equality of property
    graphs)."""
    for condition in conditions:
        if isinstance(condition, ex.Compare) and condition.operator == "=":
            for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if _is_of(one, left) and _is_of(other, right):
                    yield one, other
                    break


class ThresholdTest(NamedTuple):
    """A comparison of an expression over rows with one over a threshold; `above`: only the rows whose number is at
    least the threshold's can pass, else those whose number is at most that."""

    row: ex.Expression
    threshold: ex.Expression
    above: bool


def threshold_test(
    conditions: Iterable[ex.Expression], rows: frozenset[str], threshold: frozenset[str]
) -> ThresholdTest | None:
    """Return the first condition that compares rows with a threshold by their order, given the columns of both."""
    for condition in conditions:
        match condition:
            case ex.Compare("<" | "<=", low, high) | ex.Compare(">" | ">=", high, low):
                pass
            case ex.Call("sparql:less" | "sparql:less_or_equal", (low, high)):
                pass
            case _:
                continue
        for row, limit, above in ((high, low, True), (low, high, False)):
            if _reads_only(row, rows) and _reads_only(limit, threshold):
                return ThresholdTest(row, limit, above)
    return None


def _reads_only(expression: ex.Expression, columns: frozenset[str]) -> bool:
    names = free_variables(expression)
    return bool(names) and names <= columns and is_about_the_row_alone(expression)


def _is_of(expression: ex.Expression, columns: frozenset[str]) -> bool:
    names = free_variables(expression)
    if not names or not names <= columns:
        return False
    try:
        require_pure(expression)
    except NotIncremental:
        return False
    # Expressions may fail on complete rows only: only property access and variables are computed before the join.
    return all(isinstance(node, ex.Variable | ex.Property) for node in walk(expression))


Subquery: TypeAlias = ex.Exists | ex.CollectRows | ex.Connected | ex.Component | ex.TripleTime


def subqueries(expression: ex.Expression) -> tuple[Subquery, ...]:
    """Return the subqueries, connectivity questions and times of triples of an expression, each once, that read only
    the row and no variable that the expression binds."""
    found: dict[int, Subquery] = {}
    bound = {
        name
        for node in walk(expression)
        for name in (
            (node.variable,)
            if isinstance(node, ex.Comprehension | ex.Quantifier)
            else (node.accumulator, node.variable)
            if isinstance(node, ex.Reduce)
            else ()
        )
    }
    for node in _own(expression):
        if isinstance(node, Subquery) and not free_variables(node) & bound:
            found[id(node)] = node
    return tuple(found.values())


def _own(expression: ex.Expression) -> Iterator[ex.Expression]:
    """Yield the expression and its parts, without the parts of a subquery's plan."""
    yield expression
    if isinstance(expression, Subquery):
        return
    for part in _parts(expression):
        yield from _own(part)


def _parts(item: object) -> Iterator[ex.Expression]:
    values = item if isinstance(item, tuple) else [getattr(item, one.name) for one in fields(item)]  # type: ignore[arg-type]
    for value in values:
        if isinstance(value, ex.Expression):
            yield value
        elif isinstance(value, tuple):
            yield from _parts(value)


def clock_readings(expression: ex.Expression, parameters: Mapping[str, Value]) -> Iterator[ex.Expression]:
    """Yield the parts of an expression, outside of its subqueries, that depend on the instant only and never fail."""
    if reads_clock(expression) and not free_variables(expression) and _succeeds(expression, parameters):
        yield expression
    elif not isinstance(expression, Subquery):
        for part in _parts(expression):
            yield from clock_readings(part, parameters)


def _succeeds(reading: ex.Expression, parameters: Mapping[str, Value]) -> bool:
    """Return whether a reading of the clock has a value at one instant, and therefore at all of them."""
    arguments = [node for node in walk(reading) if node is not reading]
    if any(isinstance(node, Subquery | Operator) or is_volatile(node) for node in arguments):
        return False
    context = Context(graph=no_graph, parameters=parameters, bounds=lambda window: (0, 0))
    try:
        compile_expression(reading, ())((), context)
    except EvaluationError:
        return False
    return True


def marked(expression: ex.Expression, marks: Mapping[int, ex.Expression]) -> ex.Expression:
    """Replace the subqueries and the readings of the clock in an expression."""
    if id(expression) in marks:
        return replace(marks[id(expression)], span=expression.span)
    changed: dict[str, Any] = {}
    for one in fields(expression):
        value = getattr(expression, one.name)
        new = _marked(value, marks)
        if new is not value:
            changed[one.name] = new
    return replace(expression, **changed) if changed else expression


def _marked(value: object, marks: Mapping[int, ex.Expression]) -> object:
    if isinstance(value, ex.Expression):
        return marked(value, marks)
    if isinstance(value, tuple) and not is_dataclass(value):
        new = tuple(_marked(one, marks) for one in value)
        return new if any(one is not other for one, other in zip(new, value, strict=True)) else value
    return value


# --- connectivity -----------------------------------------------------------------------------------------------------


def subjects_of(asked: ex.Connected | ex.Component, is_asked: bool = True) -> tuple[ex.Expression, ...]:
    """Return the nodes of a connectivity question, as expressions. With `is_asked` false, a variable that is no node
    gives null instead of an error."""
    subjects = (asked.left, asked.right) if isinstance(asked, ex.Connected) else (asked.subject,)
    if asked.links.of_triples:
        return subjects
    return tuple(
        ex.Call(
            "node_id_or_null" if isinstance(one, ex.Variable) and not is_asked else "node_id", (one,), span=asked.span
        )
        for one in subjects
    )


def is_always_asked(asked: ex.Connected | ex.Component, expression: ex.Expression) -> bool:
    """Return whether an expression evaluates a question, which is the expression or a part of it, for each row."""
    match expression:
        case ex.Not(operand):
            return is_always_asked(asked, operand)
        case ex.Compare(_, left, right):
            return is_always_asked(asked, left) or is_always_asked(asked, right)
    return expression is asked


def guarded(asked: ex.Connected | ex.Component, answer: ex.Expression) -> ex.Expression:
    """Return the answer to a connectivity question, with an error where a row evaluates the question for a value that
    is no node. The answer is computed for all rows, but behind OR or CASE not every row evaluates the question."""
    if asked.links.of_triples:
        return answer
    fails = ex.IsNull(ex.ListOf(subjects_of(asked)))  # never true
    return ex.Case(((fails, ex.Constant(None)),), answer)
