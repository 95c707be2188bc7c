"""Seraph's expressions to the algebra's: names become columns, calls are checked, sugar is taken off.

Invariant: whatever is returned is well formed, even after a problem (then it is null of any type), so that the rest
of the query can still be checked. Types are only used to refuse what can never work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.algebra import expressions as x
from anabranch.algebra.functions import CONNECTIVITY, FUNCTIONS, Signature
from anabranch.algebra.operators import Operator, Source, Window
from anabranch.algebra.types import (
    ANY,
    BOOLEAN,
    DATETIME,
    FLOAT,
    INTEGER,
    NULL,
    NUMBER,
    PATH,
    SCALAR,
    STRING,
    TEMPORALS,
    Type,
    common,
    list_of,
    map_of,
)
from anabranch.errors import Span, closest
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.scope import Binding, Problems, Scope
from anabranch.syntax.seraph.walk import outside_of_subqueries

TypedExpression = tuple[x.Expression, Type]

_ELEMENTS = ("node", "relationship")
_NOT_NUMERIC = ("boolean", "string", "list", "map", "node", "relationship", "path", "point")
_SPELLED = {
    "or": "OR", "xor": "XOR", "and": "AND", "not": "NOT", "add": "+", "subtract": "-", "multiply": "*", "divide": "/",
    "modulo": "%", "power": "^", "negate": "-", "plus": "+", "in": "IN", "starts_with": "STARTS WITH",
    "ends_with": "ENDS WITH", "contains": "CONTAINS", "matches": "=~",
}  # fmt: skip


def is_aggregate(call: object) -> bool:
    return isinstance(call, t.FunctionCall) and (
        call.star or ((known := FUNCTIONS.get(call.name.lower())) is not None and known.aggregate)
    )


def has_aggregate(expression: t.Expr) -> bool:
    """Return whether an expression aggregates the rows of its own clause; aggregates of a subquery belong to the
    subquery."""
    return any(is_aggregate(part) for part in outside_of_subqueries(expression))


@dataclass
class AggregateSink:
    """Collects the aggregates of a projection; their arguments are evaluated on the rows before grouping."""

    before: Scope
    calls: list[tuple[str, x.AggregateCall]] = field(default_factory=list)


LowerPattern = Callable[..., tuple[Operator, Scope]]


class ExpressionLowering:
    """Lowers expressions; patterns inside them are passed to `match_pattern`, subqueries to `subquery`. `source`
    returns the graph for functions of the whole graph, `bound` resolves a name of a window's bounds."""

    def __init__(
        self,
        problems: Problems,
        match_pattern: LowerPattern,
        subquery: Callable[[t.QueryTree, Scope], Operator],
        source: Callable[[], Source | None],
        bound: Callable[[str, Span], x.Expression | None] = lambda name, span: None,
    ) -> None:
        self.problems = problems
        self._match_pattern = match_pattern
        self._subquery = subquery
        self._source = source
        self._bound = bound

    def condition(self, expression: t.Expr, scope: Scope) -> x.Expression:
        """A WHERE: must be boolean, may be a pattern."""
        lowered, kind = self.lower(expression, scope, predicate=True)
        if not kind.may_be(("boolean",)):
            self._wrong_type("WHERE needs a boolean", expression.span, kind)
        return lowered

    def lower(
        self, expression: t.Expr, scope: Scope, sink: AggregateSink | None = None, *, predicate: bool = False
    ) -> TypedExpression:
        span = expression.span
        for replacement in scope.replacements:
            if replacement.expression == expression:
                return x.Variable(replacement.column, span=span), replacement.type

        def sub(part: t.Expr) -> TypedExpression:
            return self.lower(part, scope, sink)

        match expression:
            case t.LiteralExpr(value):
                return x.Constant(value, span=span), _literal_type(value)
            case t.VariableRef(name):
                return self._variable(name, span, scope)
            case t.ParameterRef(name):
                return x.Parameter(name, span=span), ANY
            case t.PropertyLookup(subject, key):
                lowered, kind = sub(subject)
                if not kind.may_be((*_ELEMENTS, "map", "point", *TEMPORALS)):
                    self._wrong_type(f"`.{key.text}` needs a node, a relationship or a map", subject.span, kind)
                return x.Property(lowered, key.text, span=span), kind.item()
            case t.IndexExpr(subject, index):
                lowered, kind = sub(subject)
                if not kind.may_be((*_ELEMENTS, "map", "list")):
                    self._wrong_type("only lists, maps, nodes and relationships have items", subject.span, kind)
                return x.Subscript(lowered, sub(index)[0], span=span), kind.item()
            case t.SliceExpr(subject, start, stop):
                lowered, kind = sub(subject)
                if not kind.may_be(("list",)):
                    self._wrong_type("only lists have slices", subject.span, kind)
                bounds = [None if bound is None else sub(bound)[0] for bound in (start, stop)]
                return x.Sublist(lowered, bounds[0], bounds[1], span=span), kind
            case t.ListLiteral(items):
                pairs = [sub(item) for item in items]
                return (
                    x.ListOf(tuple(pair[0] for pair in pairs), span=span),
                    list_of(common(pair[1] for pair in pairs) if pairs else ANY),
                )
            case t.MapLiteral(entries):
                pairs = [sub(value) for _, value in entries]
                named = tuple((key.text, pair[0]) for (key, _), pair in zip(entries, pairs, strict=True))
                return x.MapOf(named, span=span), map_of(common(pair[1] for pair in pairs))
            case t.MapProjection():
                return self._map_projection(expression, scope, sink)
            case t.Binary("and" | "or" | "xor"):
                return self._logic(expression, scope, sink, predicate)
            case t.Binary(operator, left, right):
                return self._binary(operator, left, right, span, sub)
            case t.Unary("not", operand):
                lowered, kind = self.lower(operand, scope, sink, predicate=predicate)
                if not kind.may_be(("boolean",)):
                    self._wrong_type("NOT needs a boolean", operand.span, kind)
                return x.Not(lowered, span=span), BOOLEAN
            case t.Unary(operator, operand):
                lowered, kind = sub(operand)
                if kind.kind in _NOT_NUMERIC:
                    self._wrong_type(f"`{_SPELLED[operator]}` needs a number", operand.span, kind)
                return x.Call(operator, (lowered,), span=span), kind
            case t.Comparison(first, rest):
                return self._comparison(first, rest, span, sub)
            case t.NullTest(operand, negated):
                test = x.IsNull(sub(operand)[0], span=span)
                return (x.Not(test, span=span) if negated else test), BOOLEAN
            case t.LabelTest(subject, labels):
                lowered, kind = sub(subject)
                if not kind.may_be(_ELEMENTS):
                    self._wrong_type("only nodes have labels", subject.span, kind)
                return x.HasLabels(lowered, tuple(label.text for label in labels), span=span), BOOLEAN
            case t.FunctionCall():
                return self._call(expression, scope, sink)
            case t.CaseExpr(subject, branches, otherwise):
                return self._case(subject, branches, otherwise, span, scope, sink)
            case t.ListComprehension(variable, source, where, result):
                inner, held, origin = self._local(variable, source, scope, sink)
                kept = None if where is None else self.lower(where, inner, sink, predicate=True)[0]
                mapped = None if result is None else self.lower(result, inner, sink)
                element = inner.bindings[variable.text].type if mapped is None else mapped[1]
                lowered = x.Comprehension(held, origin, kept, mapped and mapped[0], span=span)
                return lowered, list_of(element)
            case t.QuantifierExpr(kind_name, variable, source, where):
                inner, held, origin = self._local(variable, source, scope, sink)
                if where is None:
                    held_test, kind = self._variable(variable.text, variable.span, inner)
                else:
                    held_test, kind = self.lower(where, inner, sink, predicate=True)
                if not kind.may_be(("boolean",)):
                    self._wrong_type(f"{kind_name}() needs a boolean condition", (where or source).span, kind)
                return x.Quantifier(kind_name, held, origin, held_test, span=span), BOOLEAN
            case t.ReduceExpr(accumulator, initial, variable, source, step):
                started, started_type = sub(initial)
                inner, held, origin = self._local(variable, source, scope, sink)
                sum_column = self._local_column(accumulator.text, inner)
                so_far = ANY if started_type.may_hold_elements() else SCALAR
                inner = inner.bind_inside(accumulator.text, Binding(sum_column, so_far, True))
                stepped, stepped_type = self.lower(step, inner, sink)
                lowered = x.Reduce(sum_column, started, held, origin, stepped, span=span)
                return lowered, common((started_type, stepped_type))
            case t.PatternExpr(path):
                if not predicate:
                    self.problems.add(
                        "SER-028",
                        "a pattern cannot be a value here",
                        span,
                        "patterns stand in WHERE",
                        "wrap it: exists(...), or collect it: [(a)-->(b) | b]",
                    )
                return self._exists(path, scope, span)
            case t.PatternComprehension(variable, path, where, result):
                pattern = t.PatternTree(path, variable, span=path.span)
                plan, inner = self._match_pattern(pattern, where, scope, may_bind=True)
                lowered, kind = self.lower(result, inner)
                return x.CollectRows(plan, lowered, span=span), list_of(kind)
            case t.ExistsSubquery(query):
                return x.Exists(self._subquery(query, scope), span=span), BOOLEAN
            case _:
                raise AssertionError(f"no lowering for {type(expression).__name__}")

    # --- names ---

    def _variable(self, name: str, span: Span, scope: Scope) -> TypedExpression:
        binding = scope.get(name)
        if binding is None:
            end = self._bound(name, span)
            if end is not None:
                return end, DATETIME
            if not self.problems.unusable(name, span, scope):
                self.problems.undefined(name, span, scope)
            return x.Constant(None, span=span), ANY
        return x.Variable(binding.column, span=span), binding.type

    def _local_column(self, name: str, scope: Scope) -> str:
        return self.problems.fresh(name) if name in scope.columns else name

    def _local(
        self, variable: t.Name, source: t.Expr, scope: Scope, sink: AggregateSink | None
    ) -> tuple[Scope, str, x.Expression]:
        """The scope inside a comprehension, the column of its variable, and the list."""
        lowered, kind = self.lower(source, scope, sink)
        if not kind.may_be(("list",)):
            self._wrong_type("a list is needed after IN", source.span, kind)
        column = self._local_column(variable.text, scope)
        return scope.bind_inside(variable.text, Binding(column, kind.item(), True)), column, lowered

    # --- operators ---

    def _wrong_type(self, message: str, span: Span, kind: Type, hint: str = "") -> None:
        self.problems.add("SER-022", message, span, f"this is {kind}", hint)

    def _logic(
        self, expression: t.Binary, scope: Scope, sink: AggregateSink | None, predicate: bool
    ) -> TypedExpression:
        operator = expression.operator
        parts: list[t.Expr] = []
        walk: t.Expr = expression
        while isinstance(walk, t.Binary) and walk.operator == operator and (operator != "xor" or not parts):
            parts.append(walk.right)
            walk = walk.left
        parts.append(walk)
        operands = []
        for part in reversed(parts):
            lowered, kind = self.lower(part, scope, sink, predicate=predicate)
            if not kind.may_be(("boolean",)):
                self._wrong_type(f"{_SPELLED[operator]} needs booleans", part.span, kind)
            operands.append(lowered)
        if operator == "and":
            return x.And(tuple(operands), span=expression.span), BOOLEAN
        if operator == "or":
            return x.Or(tuple(operands), span=expression.span), BOOLEAN
        return x.Xor(operands[0], operands[1], span=expression.span), BOOLEAN

    def _binary(
        self, operator: str, left: t.Expr, right: t.Expr, span: Span, sub: Callable[[t.Expr], TypedExpression]
    ) -> TypedExpression:
        (first, first_type), (second, second_type) = sub(left), sub(right)
        call = x.Call(operator, (first, second), span=span)
        sides = ((left, first_type), (right, second_type))
        if operator == "in":
            if not second_type.may_be(("list",)):
                self._wrong_type("IN needs a list on its right", right.span, second_type)
            return call, BOOLEAN
        if operator in ("starts_with", "ends_with", "contains", "matches"):
            return call, BOOLEAN
        if operator == "add":
            if not any(kind.kind in ("any", "null", "list", "string") for _, kind in sides):
                for part, kind in sides:
                    if kind.kind in _NOT_NUMERIC:
                        self._wrong_type("`+` needs numbers, strings or lists", part.span, kind)
            return call, _sum_type(first_type, second_type)
        for part, kind in sides:
            if kind.kind in _NOT_NUMERIC:
                self._wrong_type(f"`{_SPELLED[operator]}` needs numbers", part.span, kind)
        if operator == "power":
            return call, FLOAT
        return call, _number_type(first_type, second_type)

    def _comparison(
        self, first: t.Expr, rest: tuple[tuple[str, t.Expr], ...], span: Span, sub: Callable[[t.Expr], TypedExpression]
    ) -> TypedExpression:
        parts: list[x.Expression] = []
        left = sub(first)[0]
        for operator, operand in rest:
            right = sub(operand)[0]
            parts.append(x.Compare(operator, left, right, span=span))  # type: ignore[arg-type]
            left = right
        return (parts[0] if len(parts) == 1 else x.And(tuple(parts), span=span)), BOOLEAN

    def _case(
        self,
        subject: t.Expr | None,
        branches: tuple[tuple[t.Expr, t.Expr], ...],
        otherwise: t.Expr | None,
        span: Span,
        scope: Scope,
        sink: AggregateSink | None,
    ) -> TypedExpression:
        compared = None if subject is None else self.lower(subject, scope, sink)[0]
        lowered: list[tuple[x.Expression, x.Expression]] = []
        kinds: list[Type] = []
        for when, then in branches:
            test, test_type = self.lower(when, scope, sink, predicate=compared is None)
            if compared is not None:
                test = x.Compare("=", compared, test, span=when.span)
            elif not test_type.may_be(("boolean",)):
                self._wrong_type("WHEN needs a boolean", when.span, test_type)
            value, kind = self.lower(then, scope, sink)
            lowered.append((test, value))
            kinds.append(kind)
        default: TypedExpression = (x.Constant(None), NULL) if otherwise is None else self.lower(otherwise, scope, sink)
        return x.Case(tuple(lowered), default[0], span=span), common((*kinds, default[1]))

    def _map_projection(self, expression: t.MapProjection, scope: Scope, sink: AggregateSink | None) -> TypedExpression:
        subject, kind = self.lower(expression.subject, scope, sink)
        if not kind.may_be((*_ELEMENTS, "map")):
            self._wrong_type("a map projection needs a node, a relationship or a map", expression.subject.span, kind)
        maps: list[x.Expression] = []
        values: list[Type] = []
        for entry in expression.entries:
            match entry.kind, entry.name, entry.value:
                case "all", _, _:
                    maps.append(x.Call("properties", (subject,), span=entry.span))
                    values.append(kind.item())
                case "property", t.Name(key), _:
                    maps.append(x.MapOf(((key, x.Property(subject, key, span=entry.span)),), span=entry.span))
                    values.append(kind.item())
                case "variable", t.Name(key) as name, _:
                    shown, value_type = self._variable(key, name.span, scope)
                    maps.append(x.MapOf(((key, shown),), span=entry.span))
                    values.append(value_type)
                case _, t.Name(key), t.Expr() as value:
                    shown, value_type = self.lower(value, scope, sink)
                    maps.append(x.MapOf(((key, shown),), span=entry.span))
                    values.append(value_type)
        merged = x.Call("merge_maps", tuple(maps), span=expression.span) if maps else x.MapOf((), span=expression.span)
        null_test = (x.IsNull(subject, span=expression.span), x.Constant(None))
        return x.Case((null_test,), merged, span=expression.span), map_of(common(values))

    # --- calls ---

    def _call(self, call: t.FunctionCall, scope: Scope, sink: AggregateSink | None) -> TypedExpression:
        name = call.name.lower()
        if name in ("shortestpath", "allshortestpaths"):
            return self._shortest(call, name, scope)
        signature = FUNCTIONS.get(name)
        if signature is None:
            self._unknown_function(call)
            return x.Constant(None, span=call.span), ANY
        if name == "exists" and len(call.arguments) == 1 and isinstance(call.arguments[0], t.PatternExpr):
            return self._exists(call.arguments[0].path, scope, call.span)
        if call.star and name != "count":
            self.problems.add("SER-021", f"only count takes `*`, {signature.name} does not", call.span)
            return x.Constant(None, span=call.span), ANY
        if not self._count_fits(call, signature):
            return x.Constant(None, span=call.span), ANY
        if signature.aggregate:
            return self._aggregate(call, signature, sink, scope)
        if call.distinct:
            self.problems.add("SER-023", f"DISTINCT stands only in aggregates, {signature.name} is none", call.span)
        pairs = [self.lower(argument, scope, sink) for argument in call.arguments]
        self._check_arguments(call, signature, [kind for _, kind in pairs])
        arguments = tuple(lowered for lowered, _ in pairs)
        if name in CONNECTIVITY:
            return self._connectivity(call, name, arguments), signature.result
        if name == "exists":
            return x.Not(x.IsNull(arguments[0], span=call.span), span=call.span), BOOLEAN
        return x.Call(name, arguments, span=call.span), _result_type(signature, [kind for _, kind in pairs])

    def _connectivity(self, call: t.FunctionCall, name: str, arguments: tuple[x.Expression, ...]) -> x.Expression:
        """connected(a, b), component(n), componentSize(n), each perhaps along some types of relationships alone."""
        source = self._source()
        if source is None:
            self.problems.add(
                "SER-040", f"{call.name} has no window", call.span, "", "a MATCH ... WITHIN must come before it"
            )
        nodes = 2 if name == "connected" else 1
        kinds: tuple[str, ...] | None = None
        if len(arguments) > nodes:
            listed = arguments[nodes]
            items = listed.items if isinstance(listed, x.ListOf) else ()
            kinds = tuple(item.value for item in items if isinstance(item, x.Constant) and isinstance(item.value, str))
            if not kinds or len(kinds) < len(items):
                self.problems.add(
                    "SER-022", f"{call.name} goes along types that are written out", call.arguments[nodes].span,
                    "not a list of texts", f"{FUNCTIONS[name].name}({'a, b' if nodes == 2 else 'n'}, ['KNOWS'])",
                )  # fmt: skip
        links = x.Links(source or Window(), kinds)
        if name == "connected":
            return x.Connected(links, arguments[0], arguments[1], span=call.span)
        return x.Component(links, arguments[0], "name" if name == "component" else "size", span=call.span)

    def _unknown_function(self, call: t.FunctionCall) -> None:
        near = closest(call.name, [signature.name for signature in FUNCTIONS.values()])
        hint = (
            f"did you mean {FUNCTIONS[near[0].lower()].usage()}?" if near else "docs/reference/functions.md lists them"
        )
        self.problems.add("SER-020", f"there is no function `{call.name}`", call.span, "", hint)

    def _count_fits(self, call: t.FunctionCall, signature: Signature) -> bool:
        given = len(call.arguments)
        if call.star or (given >= signature.required and (signature.most is None or given <= signature.most)):
            return True
        wanted = str(signature.required) if signature.most == signature.required else f"at least {signature.required}"
        if signature.most is not None and signature.most != signature.required:
            wanted = f"{signature.required} to {signature.most}"
        plural = "" if wanted == "1" else "s"
        self.problems.add(
            "SER-021",
            f"{signature.name} takes {wanted} argument{plural}, not {given}",
            call.span,
            "",
            signature.usage(),
        )
        return False

    def _check_arguments(self, call: t.FunctionCall, signature: Signature, kinds: list[Type]) -> None:
        for index, (argument, kind) in enumerate(zip(call.arguments, kinds, strict=True)):
            allowed = signature.parameters[min(index, len(signature.parameters) - 1)]
            if allowed != ("any",) and not kind.may_be(allowed):
                wanted = " or ".join(str(Type(one)) for one in allowed)
                self._wrong_type(f"{signature.name} needs {wanted}", argument.span, kind, signature.usage())

    def _aggregate(
        self, call: t.FunctionCall, signature: Signature, sink: AggregateSink | None, scope: Scope
    ) -> TypedExpression:
        if sink is None or any(binding.local for binding in scope.bindings.values()):
            self.problems.add(
                "SER-023",
                f"the aggregate {signature.name} cannot stand here",
                call.span,
                "aggregates stand in WITH, RETURN and EMIT",
                "aggregate in a WITH first, then use its alias",
            )
            return x.Constant(None, span=call.span), ANY
        pairs = [self.lower(argument, sink.before) for argument in call.arguments]
        for argument in call.arguments:
            for part in outside_of_subqueries(argument):
                if isinstance(part, t.FunctionCall) and part.name.lower() == "rand":
                    self.problems.add("SER-023", "rand() cannot be aggregated", part.span, "differs at each look")
        self._check_arguments(call, signature, [kind for _, kind in pairs])
        aggregate = x.AggregateCall(
            signature.name.lower(), tuple(lowered for lowered, _ in pairs), call.distinct, span=call.span
        )
        kind = _result_type(signature, [kind for _, kind in pairs])
        for column, known in sink.calls:
            if known == aggregate:
                return x.Variable(column, span=call.span), kind
        column = self.problems.fresh("aggregate")
        sink.calls.append((column, aggregate))
        return x.Variable(column, span=call.span), kind

    # --- patterns ---

    def _exists(self, path: t.PathTree, scope: Scope, span: Span) -> TypedExpression:
        plan, _ = self._match_pattern(t.PatternTree(path, span=path.span), None, scope, may_bind=False)
        return x.Exists(plan, span=span), BOOLEAN

    def _shortest(self, call: t.FunctionCall, name: str, scope: Scope) -> TypedExpression:
        match call.arguments:
            case (t.PatternExpr(path),):
                column = self.problems.fresh("path")
                kind = "shortest" if name == "shortestpath" else "all-shortest"
                pattern = t.PatternTree(path, t.Name(column, span=call.span), kind, span=path.span)  # type: ignore[arg-type]
                plan, _ = self._match_pattern(pattern, None, scope, may_bind=False, path_column=column)
                rows = x.CollectRows(plan, x.Variable(column), span=call.span)
                if kind == "shortest":
                    return x.Call("head", (rows,), span=call.span), PATH
                return rows, list_of(PATH)
            case _:
                self.problems.add(
                    "SER-021", f"{call.name} takes one pattern", call.span, "", "shortestPath((a)-[*]-(b))"
                )
                return x.Constant(None, span=call.span), ANY


def _literal_type(value: object) -> Type:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return FLOAT
        case _:
            return STRING


def _number_type(left: Type, right: Type) -> Type:
    kinds = {left.kind, right.kind}
    if kinds == {"integer"}:
        return INTEGER
    if kinds <= {"integer", "float"}:
        return FLOAT
    if kinds <= {"integer", "float", "number"}:
        return NUMBER
    return SCALAR


def _sum_type(left: Type, right: Type) -> Type:
    if left.kind == "list" or right.kind == "list":
        return list_of(common(side.item() if side.kind in ("list", "any") else side for side in (left, right)))
    if left.kind == right.kind == "string":
        return STRING
    return ANY if left.may_hold_elements() or right.may_hold_elements() else _number_type(left, right)


def _result_type(signature: Signature, kinds: list[Type]) -> Type:
    """Return the result type of the signature, narrowed where the argument decides."""
    match signature.name:
        case "coalesce":
            return common(kinds)
        case "head" | "last":
            return kinds[0].item()
        case "reverse" | "min" | "max":
            return kinds[0]
        case "tail":
            return list_of(kinds[0].item())
        case "properties":
            return map_of(kinds[0].item())
        case "collect":
            return list_of(kinds[0])
        case "sum" if kinds[0].kind in ("integer", "float", "duration"):
            return kinds[0]
        case "abs" if kinds[0].kind in ("integer", "float"):
            return kinds[0]
        case _:
            return signature.result
