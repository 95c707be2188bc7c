"""Expressions from lark's parse tree: operators, calls, aggregates.

Chains of `||` and `&&` lean to the left as they are written; very long ones are halved, which means the same and keeps
the tree flat.

Invariant: a built-in function has as many arguments as SPARQL gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lark import Token

from anabranch.algebra.sparql_functions import SPARQL_FUNCTIONS
from anabranch.errors import Span
from anabranch.model.terms import Iri
from anabranch.syntax.building import TooDeep, always, listed, node, same
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.build_triples import TriplesBuilder

EVERYTHING = "*"
_LONG_CHAIN = 32
_LONGEST_SUM = 100
_ARGUMENTS: dict[str, tuple[int, int | None]] = {
    "BOUND": (1, 1),
    "IF": (3, 3),
    "COALESCE": (0, None),
    "IRI": (1, 1),
    "URI": (1, 1),
    "TIMESTAMP": (1, 2),
}


class ExpressionBuilder(TriplesBuilder):
    """Expressions."""

    in_ = node(t.InTree, negated=False)
    not_in = node(t.InTree, negated=True)
    exists = node(t.ExistsTree, negated=False)
    not_exists = node(t.ExistsTree, negated=True)
    expressions = listed
    everything = always(EVERYTHING)
    separator = same

    def _chain(self, operator: Any, operands: Sequence[t.ExpressionTree]) -> t.ExpressionTree:
        if len(operands) > _LONG_CHAIN:
            half = len(operands) // 2
            operands = (self._chain(operator, operands[:half]), self._chain(operator, operands[half:]))
        built = operands[0]
        for operand in operands[1:]:
            built = t.BinaryTree(operator, built, operand, span=_joined(built, operand))
        return built

    def disjunction(self, span: Span, *operands: t.ExpressionTree) -> t.ExpressionTree:
        return self._chain("||", operands)

    def conjunction(self, span: Span, *operands: t.ExpressionTree) -> t.ExpressionTree:
        return self._chain("&&", operands)

    def compare(self, span: Span, left: t.ExpressionTree, operator: Token, right: t.ExpressionTree) -> t.ExpressionTree:
        return t.BinaryTree(cast(Any, str(operator)), left, right, span=span)

    def sum(self, span: Span, first: t.ExpressionTree, *rest: Any) -> t.ExpressionTree:
        if sum(not isinstance(part, Token) for part in rest) >= _LONGEST_SUM:
            raise TooDeep(span)
        built = first
        parts = iter(rest)
        for part in parts:
            match part:
                case Token():
                    operator, operand = str(part), next(parts)
                case (operator, operand):
                    pass
            built = t.BinaryTree(cast(Any, operator), built, operand, span=_joined(built, operand))
        return built

    def signed_product(self, span: Span, number: Token, *rest: Any) -> tuple[str, t.ExpressionTree]:
        """`-1 * ?y` in `?x -1 * ?y`: the sign is an operator there."""
        start = (number.start_pos or 0) + 1
        unsigned = Token("NUMBER", str(number)[1:], start_pos=start, end_pos=number.end_pos)
        return str(number)[0], self.product(span, self.number(self._token_span(unsigned), unsigned), *rest)

    def product(self, span: Span, first: t.ExpressionTree, *rest: Any) -> t.ExpressionTree:
        if len(rest) // 2 >= _LONGEST_SUM:
            raise TooDeep(span)
        built = first
        for operator, operand in zip(rest[0::2], rest[1::2], strict=True):
            built = t.BinaryTree(cast(Any, str(operator)), built, operand, span=_joined(built, operand))
        return built

    def unary(self, span: Span, operator: Token, operand: t.ExpressionTree) -> t.ExpressionTree:
        return t.UnaryTree(cast(Any, str(operator)), operand, span=span)

    # --- calls ---

    def arguments(self, span: Span, distinct: Token | None = None, *items: t.ExpressionTree) -> tuple[Any, ...]:
        return distinct, items

    def function_call(self, span: Span, function: t.TermTree, arguments: tuple[Any, Any]) -> t.ExpressionTree:
        assert isinstance(function.term, Iri)
        return t.CallTree(function.term, arguments[1], arguments[0] is not None, span=span)

    def builtin(self, span: Span, function: Token, arguments: tuple[Any, Any]) -> t.ExpressionTree:
        name = str(function).upper()
        distinct, items = arguments
        if distinct is not None:
            self._problem(
                "SPQ-009", f"{name} takes no DISTINCT", self._token_span(distinct), "", "only aggregates and IRIs do"
            )
        self._count_arguments(name, len(items), span)
        if name in ("BOUND", "TIMESTAMP") and items and not isinstance(items[0], t.VarTree):
            self._problem("SPQ-009", f"{name} takes a variable", items[0].span, "", f"{name}(?x)")
        if name == "TIMESTAMP" and len(items) == 2 and not _names_stream(items[1]):
            self._problem("SPQ-009", "the second argument of TIMESTAMP is a stream: its IRI or ?g", items[1].span)
        return t.CallTree(name, items, span=span)

    def _count_arguments(self, name: str, count: int, span: Span) -> None:
        if name in _ARGUMENTS:
            least, most = _ARGUMENTS[name]
        else:
            function = SPARQL_FUNCTIONS[f"sparql:{name.lower()}"]
            least, most = function.least, function.most
        if count < least or (most is not None and count > most):
            wanted = "at least " * (most is None) + str(least) + (f" or {most}" if most not in (None, least) else "")
            self._problem(
                "SPQ-007",
                f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, and is given {count or 'none'}",
                span,
            )

    def aggregate(
        self, span: Span, function: Token, distinct: Token | None, argument: Any, separator: str | None
    ) -> t.ExpressionTree:
        name = str(function).upper()
        if argument == EVERYTHING and name != "COUNT":
            self._problem(
                "SPQ-009", f"{name} takes an expression, not `*`", span, "", "only COUNT counts rows: COUNT(*)"
            )
        if separator is not None and name != "GROUP_CONCAT":
            self._problem("SPQ-009", f"{name} takes no SEPARATOR", span, "", "only GROUP_CONCAT does")
        return t.AggregateTree(
            name, None if argument == EVERYTHING else argument, distinct is not None, separator, span=span
        )


def _joined(left: t.ExpressionTree, right: t.ExpressionTree) -> Span | None:
    return left.span.join(right.span) if left.span and right.span else None


def _names_stream(expression: t.ExpressionTree) -> bool:
    match expression:
        case t.VarTree() | t.TermTree(Iri()):
            return True
        case _:
            return False
