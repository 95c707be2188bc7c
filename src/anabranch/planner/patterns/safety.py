"""Decides which conditions can be tested early: on one element as soon as it arrives, before it is part of a match.

The plain evaluator raises an error only where a complete match is tested. So a condition that might raise one may be
tested early, but must be tested again on the match; one that can raise none needs no second test.

Invariant: a condition that `never_fails` accepts gives true, false or null for every element, whatever its properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Operator, Source
from anabranch.algebra.walk import is_volatile, walk
from anabranch.errors import EvaluationError, InternalError
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Value
from anabranch.snapshot.bounded_regex import is_always_answered
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.variables import free_variables

_NEEDS_A_GRAPH = frozenset({"startnode", "endnode"})
_TRUTHS = frozenset({"starts_with", "ends_with", "contains", "exists"})  # of any values, and never an error
_OF_ANY_VALUES = _TRUTHS | {"coalesce"}
_OF_ELEMENTS = frozenset({"id", "elementid", "keys", "properties"})


def is_about_the_row_alone(expression: ex.Expression) -> bool:
    """Return whether the row determines the value: the expression reads no graph, clock, chance or nested plan."""
    if is_volatile(expression):
        return False
    return not any(
        isinstance(
            node, Operator | ex.Exists | ex.CollectRows | ex.TripleTime | ex.AggregateCall | ex.Connected | ex.Component
        )
        or (isinstance(node, ex.Call) and node.function.lower() in _NEEDS_A_GRAPH)
        for node in walk(expression)
    )


def never_fails(condition: ex.Expression, elements: frozenset[str], parameters: Mapping[str, Value]) -> bool:
    """Return whether a condition on elements (named by their variables, never null) has a truth value in every case."""
    return _Certainty(elements, parameters).of_truth(condition)


class _Certainty:
    def __init__(self, elements: frozenset[str], parameters: Mapping[str, Value]) -> None:
        self._elements = elements
        self._parameters = parameters

    def of_truth(self, expression: ex.Expression) -> bool:
        """Return whether evaluation succeeds and gives true, false or null."""
        match expression:
            case ex.And(operands) | ex.Or(operands):
                return all(map(self.of_truth, operands))
            case ex.Xor(left, right):
                return self.of_truth(left) and self.of_truth(right)
            case ex.Not(operand):
                return self.of_truth(operand)
            case ex.Compare(_, left, right):
                return self.of_value(left) and self.of_value(right)
            case ex.IsNull(operand):
                return self.of_value(operand)
            case ex.HasLabels(subject):
                return self._is_element(subject)
            case ex.Call("in", (item, container)):
                return self.of_value(item) and self._is_list(container)
            case ex.Call("matches", (whole, pattern)):
                tried = self._known(ex.Call("matches", (ex.Constant(""), pattern)))
                given = self._known(pattern)
                if tried is None or given is None or not self.of_value(whole):
                    return False
                return not isinstance(given[0], str) or is_always_answered(given[0])
            case ex.Call(function, arguments) if function in _TRUTHS:
                return all(map(self.of_value, arguments))
            case ex.Case(branches, default):
                conditions, results = [one for one, _ in branches], [two for _, two in branches]
                return all(map(self.of_value, conditions)) and all(map(self.of_truth, (*results, default)))
        known = self._known(expression)
        return known is not None and (known[0] is None or isinstance(known[0], bool))

    def of_value(self, expression: ex.Expression) -> bool:
        """Return whether evaluation succeeds."""
        match expression:
            case ex.Variable(name):
                return name in self._elements
            case ex.Property(subject):
                if self._is_element(subject):
                    return True
            case ex.ListOf(items):
                return all(map(self.of_value, items))
            case ex.MapOf(entries):
                return all(self.of_value(value) for _, value in entries)
            case ex.Call(function, arguments) if function in _OF_ANY_VALUES:
                return all(map(self.of_value, arguments))
            case ex.Call(function, (argument,)) if function.lower() in _OF_ELEMENTS and self._is_element(argument):
                return True
            case ex.Case(branches, default):
                return all(map(self.of_value, (*(part for branch in branches for part in branch), default)))
        return self._known(expression) is not None or self.of_truth(expression)

    def _is_element(self, expression: ex.Expression) -> bool:
        return isinstance(expression, ex.Variable) and expression.name in self._elements

    def _is_list(self, expression: ex.Expression) -> bool:
        if isinstance(expression, ex.ListOf):
            return self.of_value(expression)
        known = self._known(expression)
        return known is not None and (known[0] is None or isinstance(known[0], list))

    def _known(self, expression: ex.Expression) -> tuple[Value] | None:
        """Return the value of an expression that reads no row, in a tuple; None where it has none."""
        if free_variables(expression) or not is_about_the_row_alone(expression):
            return None
        try:
            return (compile_expression(expression, ())((), Context(graph=no_graph, parameters=self._parameters)),)
        except EvaluationError:
            return None


def no_graph(source: Source) -> PropertyGraph:
    raise InternalError(f"a condition about one element asked for the graph of {source}")
