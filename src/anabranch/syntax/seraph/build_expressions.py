"""Expressions from lark's parse tree: literals, operators, calls, comprehensions, CASE.

Invariant: a bracketed expression stays a `Bracket` until it is known whether it is a node of a pattern; `bare` takes
brackets off everywhere else.
"""

from __future__ import annotations

from typing import Any

from lark import Token

from anabranch.errors import Span
from anabranch.model.temporal import Duration
from anabranch.syntax.building import GrammarRule, TreeBuilder, listed, node, pair, same
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t

_QUANTIFIERS = ("all", "any", "none", "single")


class Bracket(t.Expr):
    """A bracketed expression, until it is known whether it is a node."""

    __slots__ = ("inner",)

    def __init__(self, inner: t.Expr, span: Span) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "span", span)


def bare(part: Any) -> Any:
    """The part without its brackets."""
    while isinstance(part, Bracket):
        part = part.inner  # type: ignore[attr-defined]
    return part


def _binary(operator: str) -> GrammarRule:
    """Two operands, or a chain of them, which leans to the left."""

    def build(self: ExpressionBuilder, span: Span, first: t.Expr, *rest: t.Expr) -> t.Expr:
        built: t.Expr = bare(first)
        for operand in rest:
            built = t.Binary(operator, built, bare(operand), span=Span(span.start, operand.span.end))
        return built

    return build


class ExpressionBuilder(TreeBuilder):
    """Builds bottom-up; problems with literals and shapes are collected, not raised."""

    true = node(t.LiteralExpr, True)
    false = node(t.LiteralExpr, False)
    null = node(t.LiteralExpr, None)
    or_ = _binary("or")
    xor = _binary("xor")
    and_ = _binary("and")
    not_ = node(t.Unary, "not")
    starts_with = _binary("starts_with")
    ends_with = _binary("ends_with")
    contains = _binary("contains")
    matches = _binary("matches")
    in_ = _binary("in")
    is_null = node(t.NullTest, negated=False)
    is_not_null = node(t.NullTest, negated=True)
    add = _binary("add")
    subtract = _binary("subtract")
    multiply = _binary("multiply")
    divide = _binary("divide")
    modulo = _binary("modulo")
    power = _binary("power")
    plus = node(t.Unary, "plus")
    property = node(t.PropertyLookup)
    subscript = node(t.IndexExpr)
    sublist = node(t.SliceExpr)
    has_labels = node(t.LabelTest)
    arguments = listed
    project_property = node(t.ProjectionEntry, "property")
    project_entry = node(t.ProjectionEntry, "entry")
    project_variable = node(t.ProjectionEntry, "variable")
    entry = when = pair
    otherwise = same

    max_depth = 480
    bare = staticmethod(bare)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    # --- literals and names ---

    def name(self, span: Span, token: Token) -> t.Name:
        return t.Name(literals.read_name(str(token)), span=self._token_span(token))

    query_name = name

    def variable(self, span: Span, token: Token) -> t.Expr:
        return t.VariableRef(literals.read_name(str(token)), span=self._token_span(token))

    def parameter(self, span: Span, token: Token) -> t.Expr:
        return t.ParameterRef(literals.read_name(str(token)[1:]), span=self._token_span(token))

    def integer(self, span: Span, token: Token) -> t.Expr:
        return t.LiteralExpr(literals.read_integer(str(token)), span=self._token_span(token))

    def float(self, span: Span, token: Token) -> t.Expr:
        return t.LiteralExpr(self._read(literals.read_float, token, 0.0), span=self._token_span(token))

    def string(self, span: Span, token: Token) -> t.Expr:
        return t.LiteralExpr(self._read(literals.read_string, token, ""), span=self._token_span(token))

    def time(self, span: Span, token: Token, argument: Token | None = None) -> tuple[int | None]:
        """An instant; None is NOW."""
        if token.type == "NAME":
            name = str(token).lower()
            if name == "now" or (name == "datetime" and argument is None):
                return (None,)
            if name == "datetime" and argument is not None:
                return (self._read(lambda text: literals.read_instant(literals.read_string(text)), argument, 0),)
            self._problem(
                "SER-005",
                f"`{token}` is no instant",
                self._token_span(token),
                "",
                "write a datetime, datetime() or NOW",
            )
            return (None,)
        if token.type == "STRING":
            return (self._read(lambda text: literals.read_instant(literals.read_string(text)), token, 0),)
        return (self._read(literals.read_instant, token, 0),)

    def duration(self, span: Span, token: Token, argument: Token | None = None) -> Duration:
        nothing = Duration(0, 0, 0, 0)
        if token.type == "NAME":
            if str(token).lower() != "duration" or argument is None:
                self._problem(
                    "SER-005",
                    f"`{token}` is no duration",
                    self._token_span(token),
                    "",
                    "write an ISO 8601 duration: PT5M",
                )
                return nothing
            token = argument
        if token.type == "STRING":
            return self._read(lambda text: literals.read_duration(literals.read_string(text)), token, nothing)
        return self._read(literals.read_duration, token, nothing)

    # --- operators ---

    def negate(self, span: Span, operand: t.Expr) -> t.Expr:
        if isinstance(operand, t.LiteralExpr) and type(operand.value) in (int, float):
            value: Any = operand.value
            if value != 0 and not (isinstance(value, int) and value < 0):
                return t.LiteralExpr(-value, span=span)
        return t.Unary("negate", bare(operand), span=span)

    def comparator(self, span: Span, token: Token) -> str:
        return str(token)

    def comparison(self, span: Span, first: t.Expr, *rest: Any) -> t.Expr:
        pairs = tuple((rest[index], bare(rest[index + 1])) for index in range(0, len(rest), 2))
        return t.Comparison(bare(first), pairs, span=span)

    # --- calls ---

    def _function_name(self, callee: t.Expr) -> str:
        parts: list[str] = []
        walk = callee
        while isinstance(walk, t.PropertyLookup):
            parts.append(walk.key.text)
            walk = walk.subject
        if isinstance(walk, t.VariableRef):
            parts.append(walk.name)
            return ".".join(reversed(parts))
        self._problem("SER-001", "this cannot be called", callee.span, "not the name of a function")
        return ""

    def call_star(self, span: Span, callee: t.Expr, _star: Token) -> t.Expr:
        return t.FunctionCall(self._function_name(callee), star=True, span=span)

    def call(self, span: Span, callee: t.Expr, distinct: Token | None, arguments: tuple[t.Expr, ...] | None) -> t.Expr:
        name = self._function_name(callee)
        if name.lower() in _QUANTIFIERS and arguments is not None and len(arguments) == 1:
            bound = self._bound(arguments[0])
            if bound is not None:
                return self._quantifier(name.lower(), bound, None, span)
        given = tuple(bare(argument) for argument in arguments or ())
        return t.FunctionCall(name, given, distinct is not None, span=span)

    def _bound(self, expression: t.Expr) -> tuple[t.Name, t.Expr] | None:
        """`x IN source`, as the head of a comprehension."""
        match expression:
            case t.Binary("in", t.VariableRef(name) as variable, source):
                return t.Name(name, span=variable.span), source
            case _:
                return None

    def _quantifier(self, kind: Any, bound: tuple[t.Name, t.Expr], where: t.Expr | None, span: Span) -> t.Expr:
        return t.QuantifierExpr(kind, bound[0], bound[1], where, span=span)

    def call_where(self, span: Span, callee: t.Expr, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if bound is None:
            self._problem(
                "SER-001", f"`{name}` needs `variable IN list` here", head.span, "", f"{name}(x IN xs WHERE ...)"
            )
            return t.LiteralExpr(None, span=span)
        if name in _QUANTIFIERS and result is None:
            return self._quantifier(name, bound, where, span)
        if name in ("filter", "extract"):
            return t.ListComprehension(bound[0], bound[1], where, bare(result), span=span)
        self._problem("SER-001", f"`{name}` takes no WHERE", callee.span, "", "only all, any, none and single do")
        return t.LiteralExpr(None, span=span)

    def call_map(self, span: Span, callee: t.Expr, head: t.Expr, result: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if name != "extract" or bound is None:
            self._problem("SER-001", f"`{name}` takes no `|`", callee.span, "", "[x IN xs | ...] maps a list")
            return t.LiteralExpr(None, span=span)
        return t.ListComprehension(bound[0], bound[1], None, bare(result), span=span)

    def call_reduce(self, span: Span, callee: t.Expr, head: t.Expr, over: t.Expr, step: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(over))
        match bare(head):
            case t.Comparison(t.VariableRef(accumulator) as variable, (("=", initial),)) if bound and name == "reduce":
                held = t.Name(accumulator, span=variable.span)
                return t.ReduceExpr(held, initial, bound[0], bound[1], bare(step), span=span)
            case _:
                self._problem("SER-001", "this is no reduce", callee.span, "", "reduce(sum = 0, x IN xs | sum + x)")
                return t.LiteralExpr(None, span=span)

    # --- lists, maps, case ---

    def list(self, span: Span, items: tuple[t.Expr, ...] | None) -> t.Expr:
        if items is not None and len(items) == 1:
            bound = self._bound(items[0])
            if bound is not None:
                return t.ListComprehension(bound[0], bound[1], None, None, span=span)
        return t.ListLiteral(tuple(bare(item) for item in items or ()), span=span)

    def _comprehension(self, span: Span, head: t.Expr, where: t.Expr | None, result: t.Expr | None) -> t.Expr:
        head = bare(head)
        bound = self._bound(head)
        if bound is not None:
            return t.ListComprehension(bound[0], bound[1], where, result, span=span)
        match head:
            case t.PatternExpr(path) if result is not None:
                return t.PatternComprehension(None, path, where, result, span=span)
            case t.Comparison(t.VariableRef(name) as variable, (("=", t.PatternExpr(path)),)) if result is not None:
                return t.PatternComprehension(t.Name(name, span=variable.span), path, where, result, span=span)
            case _:
                self._problem("SER-001", "this is no list comprehension", span, "", "[x IN xs WHERE ... | ...]")
                return t.LiteralExpr(None, span=span)

    def list_where(self, span: Span, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        return self._comprehension(span, head, where, bare(result))

    def list_map(self, span: Span, head: t.Expr, result: t.Expr) -> t.Expr:
        return self._comprehension(span, head, None, bare(result))

    def map(self, span: Span, *entries: tuple[t.Name, t.Expr] | None) -> t.Expr:
        return t.MapLiteral(tuple(entry for entry in entries if entry is not None), span=span)

    def project_all(self, span: Span, _star: Token) -> t.ProjectionEntry:
        return t.ProjectionEntry("all", span=span)

    def map_projection(self, span: Span, subject: t.VariableRef, *entries: t.ProjectionEntry | None) -> t.Expr:
        return t.MapProjection(subject, tuple(entry for entry in entries if entry is not None), span=span)

    def case(self, span: Span, subject: t.Expr | None, *rest: Any) -> t.Expr:
        *branches, otherwise = rest
        return t.CaseExpr(bare(subject), tuple(branches), otherwise, span=span)
