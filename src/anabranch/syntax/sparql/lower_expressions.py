"""Expressions of the SPARQL family to the algebra's, by the conventions of `algebra.sparql_functions`.

There are two sorts: terms, and truths (true, false, or null for an error). Logic works on truths, everything else on
terms; where one sort stands in the other's place it is wrapped in `sparql:ebv` or `sparql:term`.

Invariant: a variable that no column stands for is null, as an unbound variable is; it is never an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.algebra.expressions import (
    AggregateCall,
    And,
    Call,
    Case,
    Connected,
    Constant,
    Exists,
    Expression,
    IsNull,
    Not,
    Or,
    Variable,
)
from anabranch.algebra.operators import Operator
from anabranch.algebra.sparql_functions import SPARQL_FUNCTIONS
from anabranch.errors import Span
from anabranch.model.terms import FALSE, TRUE, Iri, Literal
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_functions import (
    ANABRANCH,
    cast_or_unknown,
    connectivity,
    is_connectivity,
    lupos_aggregate,
    timestamp,
)
from anabranch.syntax.sparql.lower_times import is_timestamp
from anabranch.syntax.sparql.scope import SOLUTION_STEM, Scope, StatementSettings, is_visible

_ARITHMETIC = {"+": "sparql:add", "-": "sparql:subtract", "*": "sparql:multiply", "/": "sparql:divide"}
_SIGNS = {"+": "sparql:plus", "-": "sparql:negate"}
_FORMS = {"IF": 3, "BOUND": 1}  # no functions of the table: they are spelled out
_HIDDEN_SECOND = frozenset({"IRI", "URI", "BNODE"})  # lowering itself gives them one more argument
_NOT_CALLED = frozenset(
    f"sparql:{name}"
    for name in ("equal", "less", "less_or_equal", "add", "subtract", "multiply", "divide", "negate", "plus", "ebv",
                 "term", "moment")
)  # fmt: skip

CheckedExpression = tuple[Expression, bool]
"""An expression, and whether it is a truth."""


def as_term(lowered: CheckedExpression) -> Expression:
    expression, is_truth = lowered
    if not is_truth:
        return expression
    if isinstance(expression, Constant) and expression.value is not None:
        return Constant(TRUE if expression.value else FALSE, span=expression.span)
    return Call("sparql:term", (expression,), span=expression.span)


def as_truth(lowered: CheckedExpression) -> Expression:
    expression, is_truth = lowered
    if is_truth:
        return expression
    if isinstance(expression, Constant) and expression.value in (None, TRUE, FALSE):
        value = None if expression.value is None else expression.value == TRUE
        return Constant(value, span=expression.span)
    return Call("sparql:ebv", (expression,), span=expression.span)


class ExpressionLowering:
    """Lowers expressions of one statement; `exists` lowers the group of an EXISTS for the rows of a scope."""

    def __init__(self, settings: StatementSettings, exists: Callable[[t.GroupTree, Scope], Operator]) -> None:
        self._settings = settings
        self._problems = settings.problems
        self._exists = exists

    def term(self, tree: t.ExpressionTree, scope: Scope) -> Expression:
        return as_term(self._lower(tree, scope))

    def truth(self, tree: t.ExpressionTree, scope: Scope) -> Expression:
        return as_truth(self._lower(tree, scope))

    def _lower(self, tree: t.ExpressionTree, scope: Scope) -> CheckedExpression:
        match tree:
            case t.TermTree(term):
                return Constant(term, span=tree.span), False
            case t.VarTree():
                return self._variable(tree, scope), False
            case t.BinaryTree():
                return self._binary(tree, scope)
            case t.UnaryTree("!", operand):
                return Not(self.truth(operand, scope), span=tree.span), True
            case t.UnaryTree(operator, operand):
                return Call(_SIGNS[operator], (self.term(operand, scope),), span=tree.span), False
            case t.InTree():
                return self._in(tree, scope), True
            case t.CallTree():
                return self._call(tree, scope)
            case t.AggregateTree():
                return self._aggregate(tree, scope), False
            case t.ExistsTree(group, negated):
                found: Expression = Exists(self._exists(group, scope), span=tree.span)
                return Not(found, span=tree.span) if negated else found, True

    # --- variables ---

    def _variable(self, tree: t.VarTree, scope: Scope) -> Expression:
        name, span = tree.name, tree.span
        if name in scope.columns:
            return Variable(name, span=span)
        if name in scope.aliases:
            return scope.aliases[name]
        grouping = scope.grouping
        if grouping is None:
            return Constant(None, span=span)
        if scope.ungrouped == "refuse":
            self.ungrouped(name, span, scope)
            return Constant(None, span=span)
        if name not in grouping.inner.columns:
            return Constant(None, span=span)
        return Variable(grouping.calls.column(AggregateCall("sparql:sample", (Variable(name),))), span=span)

    def ungrouped(self, name: str, span: Span | None, scope: Scope) -> None:
        keys = ", ".join(f"?{key}" for key in scope.columns if is_visible(key))
        hint = f"group by it, or aggregate it: SAMPLE(?{name})."
        self._problems.add(
            "SPQ-103",
            f"`?{name}` differs within a group",
            span,
            "neither a GROUP BY variable nor inside an aggregate",
            f"{hint}  Grouped by: {keys}." if keys else f"{hint}  All rows are one group here.",
        )

    # --- operators ---

    def _binary(self, tree: t.BinaryTree, scope: Scope) -> CheckedExpression:
        span = tree.span
        match tree.operator:
            case "||" | "&&":
                operands = tuple(self.truth(one, scope) for one in _chain(tree, tree.operator))
                return (Or if tree.operator == "||" else And)(operands, span=span), True
        left, right = self.term(tree.left, scope), self.term(tree.right, scope)
        match tree.operator:
            case "=":
                return Call("sparql:equal", (left, right), span=span), True
            case "!=":
                return Not(Call("sparql:equal", (left, right), span=span), span=span), True
            case "<":
                return Call("sparql:less", (left, right), span=span), True
            case ">":
                return Call("sparql:less", (right, left), span=span), True
            case "<=":
                return Call("sparql:less_or_equal", (left, right), span=span), True
            case ">=":
                return Call("sparql:less_or_equal", (right, left), span=span), True
            case sign:
                return Call(_ARITHMETIC[sign], (left, right), span=span), False

    def _in(self, tree: t.InTree, scope: Scope) -> Expression:
        operand = self.term(tree.operand, scope)
        tests = tuple(
            Call("sparql:equal", (operand, self.term(item, scope)), span=item.span or tree.span) for item in tree.items
        )
        found: Expression
        if not tests:
            return Constant(tree.negated, span=tree.span)
        found = tests[0] if len(tests) == 1 else Or(tests, span=tree.span)
        return Not(found, span=tree.span) if tree.negated else found

    # --- calls ---

    def _call(self, tree: t.CallTree, scope: Scope) -> CheckedExpression:
        if is_timestamp(tree):
            return timestamp(tree, lambda argument: self.term(argument, scope), scope, self._settings), False
        if isinstance(tree.function, Iri):
            if is_connectivity(tree.function):
                terms = tuple(self.term(argument, scope) for argument in tree.arguments)
                name = tree.function.value.removeprefix(ANABRANCH)
                asked = connectivity(tree, name, terms, scope, self._settings)
                return asked, isinstance(asked, Connected)
            return self._named_call(tree, tree.function, scope), False
        name, span, arguments = tree.function, tree.span, tree.arguments
        if name in _FORMS and not self._counts(tree, _FORMS[name], _FORMS[name]):
            return Constant(None, span=span), False
        match name:
            case "BOUND":
                return self._bound(tree, scope), True
            case "IF":
                condition = self.truth(arguments[0], scope)
                yes, no = self.term(arguments[1], scope), self.term(arguments[2], scope)
                failed = IsNull(condition, span=condition.span)
                return Case(((failed, Constant(None)), (condition, yes)), no, span=span), False
            case "COALESCE":
                terms = tuple(self.term(argument, scope) for argument in arguments)
                return (Call("coalesce", terms, span=span) if terms else Constant(None, span=span)), False
        function = SPARQL_FUNCTIONS.get(f"sparql:{name.lower()}")
        if function is None or function.name in _NOT_CALLED:
            self._problems.add("SPQ-105", f"no function `{name}`", span)
            return Constant(None, span=span), False
        if not self._counts(tree, function.least, 1 if name in _HIDDEN_SECOND else function.most):
            return Constant(None, span=span), False
        terms = tuple(self.term(argument, scope) for argument in arguments)
        if name == "BNODE" and terms:
            rows = [column for column in scope.columns if column.startswith(f" {SOLUTION_STEM}")]
            terms = (*terms, *(Variable(column) for column in rows[:1]))
        if name in ("IRI", "URI") and self._settings.base and len(terms) == 1:
            terms = (*terms, Constant(Iri(self._settings.base)))
        return Call(function.name, terms, span=span), function.truth

    def _named_call(self, tree: t.CallTree, iri: Iri, scope: Scope) -> Expression:
        aggregate = lupos_aggregate(iri, self._settings.dialect)
        if aggregate is None:
            terms = tuple(self.term(argument, scope) for argument in tree.arguments)
            return cast_or_unknown(tree, iri, terms, self._settings)
        if scope.annotations is None:
            self._problems.add(
                "SPQ-104",
                "an aggregate of LUPOS stands in SELECT or ORDER BY of a query without GROUP BY",
                tree.span,
                "it adds a column to every row of the answer",
                "inside WHERE, use a subselect",
            )
            return Constant(None, span=tree.span)
        if not self._counts(tree, 0 if aggregate == "sparql:count" else 1, 1):
            return Constant(None, span=tree.span)
        inner = replace(scope, annotations=None)
        call = AggregateCall(aggregate, tuple(self.term(argument, inner) for argument in tree.arguments))
        return Variable(scope.annotations.column(replace(call, span=tree.span)), span=tree.span)

    def _bound(self, tree: t.CallTree, scope: Scope) -> Expression:
        (argument,) = tree.arguments
        if not isinstance(argument, t.VarTree):
            self._problems.add("SPQ-106", "BOUND takes a variable", argument.span, "", "BOUND(?x)")
            return Constant(None, span=tree.span)
        variable = self._variable(argument, scope)
        if isinstance(variable, Constant) and variable.value is None:
            return Constant(False, span=tree.span)
        return Not(IsNull(variable, span=tree.span), span=tree.span)

    def _counts(self, tree: t.CallTree, least: int, most: int | None) -> bool:
        """Check the number of arguments; reports a problem and returns False if it is wrong."""
        given = len(tree.arguments)
        if given >= least and (most is None or given <= most):
            return True
        name = tree.function.value if isinstance(tree.function, Iri) else tree.function
        if most is None:
            wanted = f"at least {least}"
        elif most == least:
            wanted = "none" if least == 0 else str(least)
        else:
            wanted = f"{least} to {most}" if least else f"at most {most}"
        arguments = "argument" if most == 1 else "arguments"
        self._problems.add("SPQ-106", f"{name} takes {wanted} {arguments}", tree.span, f"{given} given")
        return False

    # --- aggregates ---

    def _aggregate(self, tree: t.AggregateTree, scope: Scope) -> Expression:
        if scope.in_aggregate:
            self._problems.add(
                "SPQ-104",
                "an aggregate inside of an aggregate",
                tree.span,
                "its group is not known yet",
                "compute the inner one in a subselect",
            )
            return Constant(None, span=tree.span)
        if scope.grouping is None:
            self._problems.add(
                "SPQ-104",
                f"{tree.function} belongs in SELECT, HAVING or ORDER BY",
                tree.span,
                "there is no group of rows here",
                "compute it in a subselect: { SELECT ?x (COUNT(?y) AS ?n) WHERE { ... } GROUP BY ?x }",
            )
            return Constant(None, span=tree.span)
        call = self._aggregate_call(tree, replace(scope.grouping.inner, in_aggregate=True))
        return Variable(scope.grouping.calls.column(call), span=tree.span)

    def _aggregate_call(self, tree: t.AggregateTree, inner: Scope) -> AggregateCall:
        function = f"sparql:{tree.function.lower()}"
        arguments: tuple[Expression, ...]
        if tree.argument is not None:
            arguments = (self.term(tree.argument, inner),)
        elif tree.distinct:
            visible = tuple(Variable(name) for name in inner.columns if is_visible(name))
            arguments = visible or (Constant(TRUE),)  # rows without columns are all alike
        else:
            arguments = ()
        if function == "sparql:group_concat":
            separator = " " if tree.separator is None else tree.separator
            arguments = (*arguments, Constant(Literal(separator)))
        return AggregateCall(function, arguments, tree.distinct, span=tree.span)


def _chain(tree: t.ExpressionTree, operator: str) -> list[t.ExpressionTree]:
    """The operands of a chain of one operator, in their order, without recursion: such chains can be long."""
    operands: list[t.ExpressionTree] = []
    pending = [tree]
    while pending:
        match pending.pop():
            case t.BinaryTree(same, left, right) if same == operator:
                pending.extend((right, left))
            case operand:
                operands.append(operand)
    return operands
