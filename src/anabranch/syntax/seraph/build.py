"""From lark's parse tree to Seraph's syntax tree.

Invariant: no names are resolved and no types are looked at here; what the grammar reads wider than the language
(brackets that are nodes, lists that are comprehensions, calls that are quantifiers) is narrowed, and literals are
read.
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
_SHORTEST = {"shortestpath": "shortest", "allshortestpaths": "all-shortest"}
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


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def _token_span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _binary(operator: str) -> Callable[..., t.Expr]:
    """Two operands, or a chain of them, which leans to the left."""

    def build(self: Builder, meta: Meta, first: t.Expr, *rest: t.Expr) -> t.Expr:
        start = _span(meta).start
        built: t.Expr = bare(first)
        for operand in rest:
            built = t.Binary(operator, built, bare(operand), span=Span(start, operand.span.end))
        return built

    return build


@v_args(meta=True, inline=True)
class Builder(Transformer[Token, Any]):
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
        except literals.LiteralProblem as problem:
            self._problem(problem.code, problem.message, _token_span(token), "", problem.hint)
            return fallback

    def _name(self, token: Token) -> t.Name:
        text = literals.read_name(str(token))
        return t.Name(text, span=_token_span(token))

    # --- literals and names ---

    def name(self, meta: Meta, token: Token) -> t.Name:
        return self._name(token)

    def query_name(self, meta: Meta, token: Token) -> t.Name:
        return self._name(token)

    def variable(self, meta: Meta, token: Token) -> t.Expr:
        return t.VariableRef(literals.read_name(str(token)), span=_token_span(token))

    def parameter(self, meta: Meta, token: Token) -> t.Expr:
        return t.ParameterRef(literals.read_name(str(token)[1:]), span=_token_span(token))

    def integer(self, meta: Meta, token: Token) -> t.Expr:
        return t.Literal(literals.read_integer(str(token)), span=_token_span(token))

    def float(self, meta: Meta, token: Token) -> t.Expr:
        return t.Literal(self._read(literals.read_float, token, 0.0), span=_token_span(token))

    def string(self, meta: Meta, token: Token) -> t.Expr:
        return t.Literal(self._read(literals.read_string, token, ""), span=_token_span(token))

    def true(self, meta: Meta) -> t.Expr:
        return t.Literal(True, span=_span(meta))

    def false(self, meta: Meta) -> t.Expr:
        return t.Literal(False, span=_span(meta))

    def null(self, meta: Meta) -> t.Expr:
        return t.Literal(None, span=_span(meta))

    def time(self, meta: Meta, token: Token, argument: Token | None = None) -> tuple[int | None]:
        """An instant; None is NOW."""
        if token.type == "NAME":
            name = str(token).lower()
            if name == "now" or (name == "datetime" and argument is None):
                return (None,)
            if name == "datetime" and argument is not None:
                return (self._read(lambda text: literals.read_instant(literals.read_string(text)), argument, 0),)
            self._problem(
                "SER-005", f"`{token}` is no instant", _token_span(token), "", "write a datetime, datetime() or NOW"
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
                    "SER-005", f"`{token}` is no duration", _token_span(token), "", "write an ISO 8601 duration: PT5M"
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
        return t.Unary("not", bare(operand), span=_span(meta))

    def plus(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.Unary("plus", bare(operand), span=_span(meta))

    def negate(self, meta: Meta, operand: t.Expr) -> t.Expr:
        if isinstance(operand, t.Literal) and type(operand.value) in (int, float):
            value: Any = operand.value
            if value != 0 and not (isinstance(value, int) and value < 0):
                return t.Literal(-value, span=_span(meta))
        return t.Unary("negate", bare(operand), span=_span(meta))

    def comparator(self, meta: Meta, token: Token) -> str:
        return str(token)

    def comparison(self, meta: Meta, first: t.Expr, *rest: Any) -> t.Expr:
        pairs = tuple((rest[index], bare(rest[index + 1])) for index in range(0, len(rest), 2))
        return t.Comparison(bare(first), pairs, span=_span(meta))

    def is_null(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.NullTest(bare(operand), False, span=_span(meta))

    def is_not_null(self, meta: Meta, operand: t.Expr) -> t.Expr:
        return t.NullTest(bare(operand), True, span=_span(meta))

    def property(self, meta: Meta, subject: t.Expr, key: t.Name) -> t.Expr:
        return t.PropertyLookup(bare(subject), key, span=_span(meta))

    def subscript(self, meta: Meta, subject: t.Expr, index: t.Expr) -> t.Expr:
        return t.Indexed(bare(subject), bare(index), span=_span(meta))

    def sublist(self, meta: Meta, subject: t.Expr, start: t.Expr | None, stop: t.Expr | None) -> t.Expr:
        return t.Sliced(bare(subject), bare(start), bare(stop), span=_span(meta))

    def has_labels(self, meta: Meta, subject: t.Expr, labels: tuple[t.Name, ...]) -> t.Expr:
        return t.LabelTest(bare(subject), labels, span=_span(meta))

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
        return t.FunctionCall(self._function_name(callee), star=True, span=_span(meta))

    def call(self, meta: Meta, callee: t.Expr, distinct: Token | None, arguments: tuple[t.Expr, ...] | None) -> t.Expr:
        name = self._function_name(callee)
        if name.lower() in _QUANTIFIERS and arguments is not None and len(arguments) == 1:
            bound = self._bound(arguments[0])
            if bound is not None:
                return self._quantifier(name.lower(), bound, None, meta)
        given = tuple(bare(argument) for argument in arguments or ())
        return t.FunctionCall(name, given, distinct is not None, span=_span(meta))

    def _bound(self, expression: t.Expr) -> tuple[t.Name, t.Expr] | None:
        """`x IN source`, as the head of a comprehension."""
        match expression:
            case t.Binary("in", t.VariableRef(name) as variable, source):
                return t.Name(name, span=variable.span), source
            case _:
                return None

    def _quantifier(self, kind: Any, bound: tuple[t.Name, t.Expr], where: t.Expr | None, meta: Meta) -> t.Expr:
        return t.QuantifierExpr(kind, bound[0], bound[1], where, span=_span(meta))

    def call_where(self, meta: Meta, callee: t.Expr, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if bound is None:
            self._problem(
                "SER-001", f"`{name}` needs `variable IN list` here", head.span, "", f"{name}(x IN xs WHERE ...)"
            )
            return t.Literal(None, span=_span(meta))
        if name in _QUANTIFIERS and result is None:
            return self._quantifier(name, bound, where, meta)
        if name in ("filter", "extract"):
            return t.ListComprehension(bound[0], bound[1], where, bare(result), span=_span(meta))
        self._problem("SER-001", f"`{name}` takes no WHERE", callee.span, "", "only all, any, none and single do")
        return t.Literal(None, span=_span(meta))

    def call_map(self, meta: Meta, callee: t.Expr, head: t.Expr, result: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(head))
        if name != "extract" or bound is None:
            self._problem("SER-001", f"`{name}` takes no `|`", callee.span, "", "[x IN xs | ...] maps a list")
            return t.Literal(None, span=_span(meta))
        return t.ListComprehension(bound[0], bound[1], None, bare(result), span=_span(meta))

    def call_reduce(self, meta: Meta, callee: t.Expr, head: t.Expr, over: t.Expr, step: t.Expr) -> t.Expr:
        name = self._function_name(callee).lower()
        bound = self._bound(bare(over))
        match bare(head):
            case t.Comparison(t.VariableRef(accumulator) as variable, (("=", initial),)) if bound and name == "reduce":
                held = t.Name(accumulator, span=variable.span)
                return t.ReduceExpr(held, initial, bound[0], bound[1], bare(step), span=_span(meta))
            case _:
                self._problem("SER-001", "this is no reduce", callee.span, "", "reduce(sum = 0, x IN xs | sum + x)")
                return t.Literal(None, span=_span(meta))

    # --- lists, maps, case ---

    def list(self, meta: Meta, items: tuple[t.Expr, ...] | None) -> t.Expr:
        if items is not None and len(items) == 1:
            bound = self._bound(items[0])
            if bound is not None:
                return t.ListComprehension(bound[0], bound[1], None, None, span=_span(meta))
        return t.ListLiteral(tuple(bare(item) for item in items or ()), span=_span(meta))

    def _comprehension(self, meta: Meta, head: t.Expr, where: t.Expr | None, result: t.Expr | None) -> t.Expr:
        head = bare(head)
        span = _span(meta)
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
                return t.Literal(None, span=span)

    def list_where(self, meta: Meta, head: t.Expr, where: t.Expr, result: t.Expr | None) -> t.Expr:
        return self._comprehension(meta, head, where, bare(result))

    def list_map(self, meta: Meta, head: t.Expr, result: t.Expr) -> t.Expr:
        return self._comprehension(meta, head, None, bare(result))

    def entry(self, meta: Meta, name: t.Name, value: t.Expr) -> tuple[t.Name, t.Expr]:
        return name, bare(value)

    def map(self, meta: Meta, *entries: tuple[t.Name, t.Expr] | None) -> t.Expr:
        return t.MapLiteral(tuple(entry for entry in entries if entry is not None), span=_span(meta))

    def project_property(self, meta: Meta, name: t.Name) -> t.ProjectionEntry:
        return t.ProjectionEntry("property", name, span=_span(meta))

    def project_all(self, meta: Meta, _star: Token) -> t.ProjectionEntry:
        return t.ProjectionEntry("all", span=_span(meta))

    def project_entry(self, meta: Meta, name: t.Name, value: t.Expr) -> t.ProjectionEntry:
        return t.ProjectionEntry("entry", name, bare(value), span=_span(meta))

    def project_variable(self, meta: Meta, name: t.Name) -> t.ProjectionEntry:
        return t.ProjectionEntry("variable", name, span=_span(meta))

    def map_projection(self, meta: Meta, subject: t.VariableRef, *entries: t.ProjectionEntry | None) -> t.Expr:
        return t.MapProjection(subject, tuple(entry for entry in entries if entry is not None), span=_span(meta))

    def when(self, meta: Meta, condition: t.Expr, value: t.Expr) -> tuple[t.Expr, t.Expr]:
        return bare(condition), bare(value)

    def otherwise(self, meta: Meta, value: t.Expr) -> t.Expr:
        return bare(value)  # type: ignore[no-any-return]

    def case(self, meta: Meta, subject: t.Expr | None, *rest: Any) -> t.Expr:
        *branches, otherwise = rest
        return t.CaseExpr(bare(subject), tuple(branches), otherwise, span=_span(meta))

    # --- patterns ---

    def bracket(self, meta: Meta, inner: t.Expr) -> t.Expr:
        return Bracket(inner, _span(meta))

    def labels(self, meta: Meta, *names: t.Name) -> tuple[t.Name, ...]:
        return names

    def types(self, meta: Meta, *names: t.Name) -> tuple[t.Name, ...]:
        return names

    def length_to(self, meta: Meta, upper: Token | None) -> tuple[int | None]:
        return (None if upper is None else literals.read_integer(str(upper)),)

    def length(self, meta: Meta, lower: Token | None, upper: tuple[int | None] | None) -> tuple[int | None, int | None]:
        low = None if lower is None else literals.read_integer(str(lower))
        return (low, low) if upper is None else (low, upper[0])

    def relationship_detail(self, meta: Meta, name: Any, types: Any, length: Any, properties: Any) -> tuple[Any, ...]:
        return name, types or (), length, properties

    def _relationship(self, direction: Any, meta: Meta, detail: tuple[Any, ...] = (None, (), None, None)) -> Any:
        return t.RelationshipTree(direction, *detail, span=_span(meta))

    def both_arrows(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("both", meta, detail)

    def arrow_in(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("in", meta, detail)

    def arrow_out(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("out", meta, detail)

    def arrow_none(self, meta: Meta, detail: tuple[Any, ...]) -> Any:
        return self._relationship("both", meta, detail)

    def short_both(self, meta: Meta) -> Any:
        return self._relationship("both", meta)

    def short_in(self, meta: Meta) -> Any:
        return self._relationship("in", meta)

    def short_out(self, meta: Meta) -> Any:
        return self._relationship("out", meta)

    def short_none(self, meta: Meta) -> Any:
        return self._relationship("both", meta)

    def node(self, meta: Meta, name: Any, labels: Any, properties: Any) -> t.NodeTree:
        return t.NodeTree(name, labels or (), properties, span=_span(meta))

    def path(self, meta: Meta, *parts: Any) -> t.PathTree:
        return t.PathTree(tuple(parts[0::2]), tuple(parts[1::2]), span=_span(meta))

    def shortest(self, meta: Meta, name: Token, path: t.PathTree) -> t.PatternTree:
        kind = _SHORTEST.get(str(name).lower())
        if kind is None:
            self._problem(
                "SER-001",
                f"`{name}` is no pattern function",
                _token_span(name),
                "",
                "patterns know shortestPath(...) and allShortestPaths(...)",
            )
        return t.PatternTree(path, None, kind or "trail", span=_span(meta))  # type: ignore[arg-type]

    def pattern(self, meta: Meta, name: t.Name | None, body: t.PathTree | t.PatternTree) -> t.PatternTree:
        if isinstance(body, t.PatternTree):
            return t.PatternTree(body.path, name, body.kind, span=_span(meta))
        return t.PatternTree(body, name, span=_span(meta))

    def patterns(self, meta: Meta, *patterns: t.PatternTree) -> tuple[t.PatternTree, ...]:
        return patterns

    def _as_node(self, inner: t.Expr, properties: t.Expr | None, span: Span) -> t.NodeTree:
        """A bracketed expression before or after a relationship, read as a node."""
        match inner:
            case t.VariableRef(name):
                return t.NodeTree(t.Name(name, span=inner.span), (), properties, span=span)
            case t.LabelTest(t.VariableRef(name) as variable, labels):
                return t.NodeTree(t.Name(name, span=variable.span), labels, properties, span=span)
            case t.MapLiteral() if properties is None:
                return t.NodeTree(None, (), inner, span=span)
            case t.MapProjection(subject, entries) if properties is None:
                pairs = []
                for entry in entries:
                    if entry.kind != "entry" or entry.name is None or entry.value is None:
                        self._problem("SER-001", "a node's properties are `key: value` pairs", entry.span)
                    else:
                        pairs.append((entry.name, entry.value))
                named = t.Name(subject.name, span=subject.span)
                return t.NodeTree(named, (), t.MapLiteral(tuple(pairs), span=inner.span), span=span)
            case _:
                self._problem(
                    "SER-001", "a node of a pattern is expected here", span, "", "(n), (n:Label) or (n {key: value})"
                )
                return t.NodeTree(span=span)

    def node_with_map(self, meta: Meta, inner: t.Expr, properties: t.Expr) -> t.NodeTree:
        return self._as_node(inner, properties, _span(meta))

    def node_labels(self, meta: Meta, labels: tuple[t.Name, ...], properties: t.Expr | None) -> t.NodeTree:
        return t.NodeTree(None, labels, properties, span=_span(meta))

    def node_empty(self, meta: Meta) -> t.NodeTree:
        return t.NodeTree(span=_span(meta))

    def chain(self, meta: Meta, *parts: Any) -> t.Expr:
        nodes = tuple(
            self._as_node(part.inner, None, part.span) if isinstance(part, Bracket) else part  # type: ignore[attr-defined]
            for part in parts[0::2]
        )
        span = _span(meta)
        return t.PatternExpr(t.PathTree(nodes, tuple(parts[1::2]), span=span), span=span)

    # --- clauses ---

    def where(self, meta: Meta, condition: t.Expr) -> t.Expr:
        return bare(condition)  # type: ignore[no-any-return]

    def within(self, meta: Meta, width: Duration) -> t.WithinTree:
        return t.WithinTree(width, span=_span(meta))

    def on_stream(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "stream", name

    def on_graph(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "graph", name

    def _match(self, meta: Meta, patterns: tuple[t.PatternTree, ...], options: Any, optional: bool) -> t.MatchClause:
        found: dict[str, Any] = {}
        for option in options:
            match option:
                case t.WithinTree():
                    kind, value, place = "within", option, option.span
                case ("stream" | "graph" as kind, value):
                    place = value.span
                case _:
                    kind, value, place = "where", option, option.span
            if kind in found:
                self._problem("SER-010", f"{kind.upper()} stands twice in one MATCH", place, "the second one")
            found[kind] = value
        return t.MatchClause(patterns, optional=optional, span=_span(meta), **found)

    def match(self, meta: Meta, patterns: Any, *options: Any) -> t.Clause:
        return self._match(meta, patterns, options, False)

    def optional_match(self, meta: Meta, patterns: Any, *options: Any) -> t.Clause:
        return self._match(meta, patterns, options, True)

    def item(self, meta: Meta, expression: t.Expr, alias: t.Name | None) -> t.Item:
        span = expression.span
        return t.Item(
            bare(expression), alias, "" if alias else self.text[span.start : span.end].strip(), span=_span(meta)
        )

    def star(self, meta: Meta, token: Token) -> Token:
        return token

    def items(self, meta: Meta, *items: Any) -> tuple[Any, ...]:
        return items

    def sort(self, meta: Meta, expression: t.Expr, order: Token | None) -> t.SortItem:
        descending = order is not None and order.type == "DESCENDING"
        return t.SortItem(bare(expression), descending, span=_span(meta))

    def order(self, meta: Meta, *items: t.SortItem) -> tuple[t.SortItem, ...]:
        return items

    def skip(self, meta: Meta, expression: t.Expr) -> t.Expr:
        return bare(expression)  # type: ignore[no-any-return]

    limit = skip

    def projection(self, meta: Meta, distinct: Token | None, items: Any, order: Any, skip: Any, limit: Any) -> Any:
        stars = [item for item in items if isinstance(item, Token)]
        plain = tuple(item for item in items if isinstance(item, t.Item))
        if len(stars) > 1 or (stars and not isinstance(items[0], Token)):
            self._problem("SER-001", "`*` stands once, as the first item", _token_span(stars[-1]))
        return t.Projection(plain, bool(stars), distinct is not None, order or (), skip, limit, span=_span(meta))

    def with_(self, meta: Meta, projection: t.Projection, where: t.Expr | None) -> t.Clause:
        return t.WithClause(projection, where, span=_span(meta))

    def return_(self, meta: Meta, projection: t.Projection) -> t.Clause:
        return t.ReturnClause(projection, span=_span(meta))

    def emit(self, meta: Meta, projection: t.Projection) -> t.Clause:
        return t.EmitClause(projection, span=_span(meta))

    def unwind(self, meta: Meta, expression: t.Expr, name: t.Name) -> t.Clause:
        return t.UnwindClause(bare(expression), name, span=_span(meta))

    def create(self, meta: Meta, patterns: tuple[t.PatternTree, ...]) -> t.Clause:
        return t.CreateClause(patterns, span=_span(meta))

    def set_value(self, meta: Meta, target: t.Expr, value: t.Expr) -> t.SetItem:
        return t.SetItem("replace", bare(target), bare(value), span=_span(meta))

    def set_merge(self, meta: Meta, target: t.Expr, value: t.Expr) -> t.SetItem:
        return t.SetItem("merge", bare(target), bare(value), span=_span(meta))

    def set_labels(self, meta: Meta, target: t.Expr) -> t.SetItem:
        return t.SetItem("labels", bare(target), span=_span(meta))

    def set(self, meta: Meta, *items: t.SetItem) -> t.SetClause:
        return t.SetClause(items, span=_span(meta))

    def on_create(self, meta: Meta, clause: t.SetClause) -> tuple[str, t.SetClause]:
        return "create", clause

    def on_match(self, meta: Meta, clause: t.SetClause) -> tuple[str, t.SetClause]:
        return "match", clause

    def merge(self, meta: Meta, pattern: t.PatternTree, *actions: tuple[str, t.SetClause]) -> t.Clause:
        on_create = tuple(item for kind, clause in actions if kind == "create" for item in clause.items)
        on_match = tuple(item for kind, clause in actions if kind == "match" for item in clause.items)
        return t.MergeClause(pattern, on_create, on_match, span=_span(meta))

    # --- queries ---

    def single_query(self, meta: Meta, *clauses: t.Clause) -> t.SingleQuery:
        return t.SingleQuery(clauses, span=_span(meta))

    def union_all(self, meta: Meta) -> bool:
        return True

    def union_distinct(self, meta: Meta) -> bool:
        return False

    def query(self, meta: Meta, *parts: Any) -> t.QueryTree:
        return t.QueryTree(tuple(parts[0::2]), tuple(parts[1::2]), span=_span(meta))

    def exists_body(self, meta: Meta, *parts: Any) -> t.QueryTree:
        span = _span(meta)
        if isinstance(parts[0], tuple):
            parts = (t.MatchClause(parts[0], parts[1], span=span),)
        return t.QueryTree((t.SingleQuery(tuple(parts), span=span),), span=span)

    def exists(self, meta: Meta, query: t.QueryTree) -> t.Expr:
        return t.ExistsSubquery(query, span=_span(meta))

    def plain(self, meta: Meta, query: t.QueryTree) -> t.QueryTree:
        return query

    def on_entering(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("entering", span=_span(meta))

    def on_exit(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("exiting", span=_span(meta))

    def on_snapshot(self, meta: Meta) -> t.EmitOption:
        return t.EmitOption("snapshot", span=_span(meta))

    def every(self, meta: Meta, duration: Duration) -> t.EmitOption:
        return t.EmitOption("every", duration, span=_span(meta))

    def register(
        self, meta: Meta, name: t.Name, time: tuple[int | None] | None, query: t.QueryTree, *options: t.EmitOption
    ) -> t.RegisterTree:
        return t.RegisterTree(name, None if time is None else time[0], query, options, span=_span(meta))

    def load_name(self, meta: Meta, name: t.Name) -> tuple[str, t.Name]:
        return "into", name

    def load_stream(self, meta: Meta, uri: Token, variable: Token, at: t.Expr | None, *rest: Any) -> t.LoadStreamTree:
        stream: t.Name | None = None
        if rest and isinstance(rest[0], tuple):
            stream, rest = rest[0][1], rest[1:]
        source = self._read(literals.read_string, uri, "")
        return t.LoadStreamTree(source, self._name(variable), bare(at), stream, tuple(rest), span=_span(meta))

    def script(self, meta: Meta, *statements: t.Statement) -> t.Script:
        return t.Script(statements, span=_span(meta))
