"""The columns that an expression reads, and the conjuncts of a condition.

Invariant: `free_variables` never misses a column that evaluation reads; it may return one that is not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Argument, Operator


def free_variables(expression: ex.Expression) -> frozenset[str]:
    """The names that must be bound before the expression can be evaluated."""
    return frozenset(_free(expression))


def _free(expression: ex.Expression) -> Iterator[str]:
    match expression:
        case ex.Variable(name):
            yield name
        case ex.Comprehension(variable, source, where, result):
            yield from _free(source)
            inner = {name for part in (where, result) if part is not None for name in _free(part)}
            yield from inner - {variable}
        case ex.Quantifier(_, variable, source, where):
            yield from _free(source)
            yield from set(_free(where)) - {variable}
        case ex.Reduce(accumulator, initial, variable, source, step):
            yield from _free(initial)
            yield from _free(source)
            yield from set(_free(step)) - {accumulator, variable}
        case ex.Exists(plan) | ex.CollectRows(plan):
            yield from argument_names(plan)
        case _:
            for child in children(expression):
                yield from _free(child)


def argument_names(plan: Operator) -> Iterator[str]:
    """The columns of the enclosing row that a nested plan is given."""
    if isinstance(plan, Argument):
        yield from plan.names
    for one in plan.inputs:
        yield from argument_names(one)


def children(expression: ex.Expression) -> Iterator[ex.Expression]:
    """The direct parts of an expression that binds no variables."""
    match expression:
        case ex.Property(subject) | ex.HasLabels(subject):
            yield subject
        case ex.Subscript(subject, index):
            yield from (subject, index)
        case ex.Sublist(subject, start, stop):
            yield from (part for part in (subject, start, stop) if part is not None)
        case ex.ListOf(items):
            yield from items
        case ex.MapOf(entries):
            yield from (value for _, value in entries)
        case ex.And(operands) | ex.Or(operands):
            yield from operands
        case ex.Xor(left, right) | ex.Compare(_, left, right):
            yield from (left, right)
        case ex.Not(operand) | ex.IsNull(operand):
            yield operand
        case ex.Call(_, arguments) | ex.AggregateCall(_, arguments):
            yield from arguments
        case ex.Connected(_, left, right):
            yield from (left, right)
        case ex.Component(_, subject):
            yield subject
        case ex.TripleTime(_, subject, predicate, object_):
            yield from (subject, predicate, object_)
        case ex.Case(branches, default):
            for condition, value in branches:
                yield from (condition, value)
            yield default
