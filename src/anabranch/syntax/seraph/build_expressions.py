"""Expressions from lark's parse tree: literals, operators, calls, comprehensions, CASE.

Invariant: a bracketed expression stays a `Bracket` until it is known whether it is a node of a pattern; `bare` takes
brackets off everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lark import Token, Transformer, v_args
from lark.tree import Meta

from anabranch.errors import Diagnostic, Span
from anabranch.model.temporal import Duration
from anabranch.syntax.seraph import literals
from anabranch.syntax.seraph import tree as t

_QUANTIFIERS = ("all", "any", "none", "single")
_Read = TypeVar("_Read")


class Bracket(t.Expr):
    """A bracketed expression, until it is known whether it is a node."""

    __slots__ = ("inner",)

    def __init__(self, inner: t.Expr, span: Span) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "span", span)


def bare(expression: Any) -> Any:
    """The expression without its brackets."""
    while isinstance(expression, Bracket):
        expression = expression.inner  # type: ignore[attr-defined]
    return expression


def span_of(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def token_span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _binary(operator: str) -> Callable[..., t.Expr]:
    """Two operands, or a chain of them, which leans to the left."""

    def build(self: ExpressionBuilder, meta: Meta, first: t.Expr, *rest: t.Expr) -> t.Expr:
        start = span_of(meta).start
        built: t.Expr = bare(first)
        for operand in rest:
            built = t.Binary(operator, built, bare(operand), span=Span(start, operand.span.end))
        return built

    return build


@v_args(meta=True, inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """Builds bottom-up; problems with literals and shapes are collected, not raised."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text
        self.problems: list[Diagnostic] = []

    def _problem(self, code: str, message: str, span: Span, label: str = "", hint: str = "") -> None:
        self.problems.append(Diagnostic(code, message, span, label, hint))

    def _read(self, reader: Callable[[str], _Read], token: Token, fallback: _Read) -> _Read:
        try:
            return reader(str(token))
        except literals.SeraphLiteralProblem as problem:
            self._problem(problem.code, problem.message, token_span(token), "", problem.hint)
            return fallback

    def _name(self, token: Token) -> t.Name:
        text = literals.read_name(str(token))
        return t.Name(text, span=token_span(token))

    # --- literals and names ---

    def name(self, meta: Meta, token: Token) -> t.Name:
        return self._name(token)

    def query_name(self, meta: Meta, token: Token) -> t.Name:
        return self._name(token)

    def variable(self, meta: Meta, token: Token) -> t.Expr:
        return t.VariableRef(literals.read_name(str(token)), span=token_span(token))

    def parameter(self, meta: Meta, token: Token) -> t.Expr:
        return t.ParameterRef(literals.read_name(str(token)[1:]), span=token_span(token))

    def integer(self, meta: Meta, token: Token) -> t.Expr:
        return t.LiteralExpr(literals.read_integer(str(token)), span=token_span(token))

    def float(self, meta: Meta, token: Token) -> t.Expr:
        return t.LiteralExpr(self._read(literals.read_float, token, 0.0), span=token_span(token))

    def string(self, meta: Meta, token: Token) -> t.Expr:
        return t.LiteralExpr(self._read(literals.read_string, token, ""), span=token_span(token))

    def true(self, meta: Meta) -> t.Expr:
        return t.LiteralExpr(True, span=span_of(meta))

    def false(self, meta: Meta) -> t.Expr:
        return t.LiteralExpr(False, span=span_of(meta))

    def null(self, meta: Meta) -> t.Expr:
        return t.LiteralExpr(None, span=span_of(meta))

    def time(self, meta: Meta, token: Token, argument: Token | None = None) -> tuple[int | None]:
        """An instant; None is NOW."""
        if token.type == "NAME":
            name = str(token).lower()
            if name == "now" or (name == "datetime" and argument is None):
                return (None,)
            if name == "datetime" and argument is not None:
                return (self._read(lambda text: literals.read_instant(literals.read_string(text)), argument, 0),)
            self._problem(
                "SER-005", f"`{token}` is no instant", token_span(token), "", "write a datetime, datetime() or NOW"
            )
            return (None,)
        if token.type == "STRING":
            return (self._read(lambda text: literals.read_instant(literals.read_string(text)), token, 0),)
        return (self._read(literals.read_instant, token, 0),)

    def duration(self, meta: Meta, token: Token, argument: Token | None = None) -> Duration:
        nothing = Duration(0, 0, 0, 0)
        if token.type == "NAME":
            if str(token).lower() != "duration" or argument is None:
                self._problem(
                    "SER-005", f"`{token}` is no duration", token_span(token), "", "write an ISO 8601 duration: PT5M"
                )
                return nothing
            token = argument
        if token.type == "STRING":
            return self._read(lambda text: literals.read_duration(literals.read_string(text)), token, nothing)
        return self._read(literals.read_duration, token, nothing)

    # --- operators ---

    or_ = _binary("or")
    xor = _binary("xor")
    and_ = _binary("and")
    starts_with = _binary("starts_with")
    ends_with = _binary("ends_with")
    contains = _binary("contains")
    matches = _binary("matches")
    in_ = _binary("in")
    add = _binary("add")
    subtract = _binary("subtract")
    multiply = _binary("multiply")
    divide = _binary("divide")
    modulo = _binary("modulo")
    power = _binary("power")

    def not_(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.Unary("not", bare(operand), span=span_of(meta))

    def plus(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.Unary("plus", bare(operand), span=span_of(meta))

    def negate(self, meta: Meta, operand: t.Expr) -> t.Expr:
        if isinstance(operand, t.LiteralExpr) and type(operand.value) in (int, float):
            value: Any = operand.value
            if value != 0 and not (isinstance(value, int) and value < 0):
                return t.LiteralExpr(-value, span=span_of(meta))
        return t.Unary("negate", bare(operand), span=span_of(meta))

    def comparator(self, meta: Meta, token: Token) -> str:
        return str(token)

    def comparison(self, meta: Meta, first: t.Expr, *rest: Any) -> t.Expr:
        pairs = tuple((rest[index], bare(rest[index + 1])) for index in range(0, len(rest), 2))
        return t.Comparison(bare(first), pairs, span=span_of(meta))

    def is_null(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.NullTest(bare(operand), False, span=span_of(meta))

    def is_not_null(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.NullTest(bare(operand), True, span=span_of(meta))

    def property(self, meta: Meta, subject: t.Expr, key: t.Name) -> t.Expr:
        return t.PropertyLookup(bare(subject), key, span=span_of(meta))

    def subscript(self, meta: Meta, subject: t.Expr, index: t.Expr) -> t.Expr:
        return t.IndexExpr(bare(subject), bare(index), span=span_of(meta))

    def sublist(self, meta: Meta, subject: t.Expr, start: t.Expr | None, stop: t.Expr | None) -> t.Expr:
        return t.SliceExpr(bare(subject), bare(start), bare(stop), span=span_of(meta))

    def has_labels(self, meta: Meta, subject: t.Expr, labels: tuple[t.Name, ...]) -> t.Expr:
        return t.LabelTest(bare(subject), labels, span=span_of(meta))

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

    def arguments(self, meta: Meta, *items: t.Expr) -> tuple[t.Expr, ...]:
        return items

    def call_star(self, meta: Meta, callee: t.Expr, _star: Token) -> t.Expr:
        return t.FunctionCall(self._function_name(callee), star=True, span=span_of(meta))

    def call(self, meta: Meta, callee: t.Expr, distinct: Token | None, arguments: tuple[t.Expr, ...] | None) -> t.Expr:
        name = self._function_name(callee)
        if name.lower() in _QUANTIFIERS and arguments is not None and len(arguments) == 1:
            bound = self._bound(arguments[0])
            if bound is not None:
                return self._quantifier(name.lower(), bound, None, meta)
        given = tuple(bare(argument) for argument in arguments or ())
        return t.FunctionCall(name, given, distinct is not None, span=span_of(meta))

    def _bound(self, expression: t.Expr) -> tuple[t.Name, t.Expr] | None:
        """`x IN source`, as the head of a comprehension."""
        match expression:
            case t.Binary("in", t.VariableRef(name) as variable, source):
                return t.Name(name, span=variable.span), source
            case _:
                return None

    def _quantifier(self, kind: Any, bound: tuple[t.Name, t.Expr], where: t.Expr | None, meta: Meta) -> t.Expr:
        return t.QuantifierExpr(kind, bound[0], bound[1], where, span=span_of(meta))

    def call_where(self, meta: Meta, callee: t.Expr, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if bound is None:
            self._problem(
                "SER-001", f"`{name}` needs `variable IN list` here", head.span, "", f"{name}(x IN xs WHERE ...)"
            )
            return t.LiteralExpr(None, span=span_of(meta))
        if name in _QUANTIFIERS and result is None:
            return self._quantifier(name, bound, where, meta)
        if name in ("filter", "extract"):
            return t.ListComprehension(bound[0], bound[1], where, bare(result), span=span_of(meta))
        self._problem("SER-001", f"`{name}` takes no WHERE", callee.span, "", "only all, any, none and single do")
        return t.LiteralExpr(None, span=span_of(meta))

    def call_map(self, meta: Meta, callee: t.Expr, head: t.Expr, result: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if name != "extract" or bound is None:
            self._problem("SER-001", f"`{name}` takes no `|`", callee.span, "", "[x IN xs | ...] maps a list")
            return t.LiteralExpr(None, span=span_of(meta))
        return t.ListComprehension(bound[0], bound[1], None, bare(result), span=span_of(meta))

    def call_reduce(self, meta: Meta, callee: t.Expr, head: t.Expr, over: t.Expr, step: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(over))
        match bare(head):
            case t.Comparison(t.VariableRef(accumulator) as variable, (("=", initial),)) if bound and name == "reduce":
                held = t.Name(accumulator, span=variable.span)
                return t.ReduceExpr(held, initial, bound[0], bound[1], bare(step), span=span_of(meta))
            case _:
                self._problem("SER-001", "this is no reduce", callee.span, "", "reduce(sum = 0, x IN xs | sum + x)")
                return t.LiteralExpr(None, span=span_of(meta))

    # --- lists, maps, case ---

    def list(self, meta: Meta, items: tuple[t.Expr, ...] | None) -> t.Expr:
        if items is not None and len(items) == 1:
            bound = self._bound(items[0])
            if bound is not None:
                return t.ListComprehension(bound[0], bound[1], None, None, span=span_of(meta))
        return t.ListLiteral(tuple(bare(item) for item in items or ()), span=span_of(meta))

    def _comprehension(self, meta: Meta, head: t.Expr, where: t.Expr | None, result: t.Expr | None) -> t.Expr:
        head = bare(head)
        span = span_of(meta)
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

    def list_where(self, meta: Meta, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        return self._comprehension(meta, head, where, bare(result))

    def list_map(self, meta: Meta, head: t.Expr, result: t.Expr) -> t.Expr:
        return self._comprehension(meta, head, None, bare(result))

    def entry(self, meta: Meta, name: t.Name, value: t.Expr) -> tuple[t.Name, t.Expr]:
        return name, bare(value)

    def map(self, meta: Meta, *entries: tuple[t.Name, t.Expr] | None) -> t.Expr:
        return t.MapLiteral(tuple(entry for entry in entries if entry is not None), span=span_of(meta))

    def project_property(self, meta: Meta, name: t.Name) -> t.ProjectionEntry:
        return t.ProjectionEntry("property", name, span=span_of(meta))

    def project_all(self, meta: Meta, _star: Token) -> t.ProjectionEntry:
        return t.ProjectionEntry("all", span=span_of(meta))

    def project_entry(self, meta: Meta, name: t.Name, value: t.Expr) -> t.ProjectionEntry:
        return t.ProjectionEntry("entry", name, bare(value), span=span_of(meta))

    def project_variable(self, meta: Meta, name: t.Name) -> t.ProjectionEntry:
        return t.ProjectionEntry("variable", name, span=span_of(meta))

    def map_projection(self, meta: Meta, subject: t.VariableRef, *entries: t.ProjectionEntry | None) -> t.Expr:
        return t.MapProjection(subject, tuple(entry for entry in entries if entry is not None), span=span_of(meta))

    def when(self, meta: Meta, condition: t.Expr, value: t.Expr) -> tuple[t.Expr, t.Expr]:
        return bare(condition), bare(value)

    def otherwise(self, meta: Meta, value: t.Expr) -> t.Expr:
        return bare(value)  # type: ignore[no-any-return]

    def case(self, meta: Meta, subject: t.Expr | None, *rest: Any) -> t.Expr:
        *branches, otherwise = rest
        return t.CaseExpr(bare(subject), tuple(branches), otherwise, span=span_of(meta))
