"""Expressions and patterns of the algebra as short text, in no query language's spelling.

    ∀ e ∈ rels: e.user_id = r.user_id ∧ (e.duration is null ∨ e.duration < 20)
    [n.id | n ∈ nodes(q), 'Station' ∈ labels(n)]
    ?country = "CH" ∧ ?amount ≥ 10

Invariant: equal plans have equal text, and no text holds a raw anonymous name (` node1` is written `_n1`). The text is
for people; nothing reads it back.
"""

from __future__ import annotations

import re

from anabranch.algebra import expressions as x
from anabranch.algebra.ingestion import Assignment, ElementTemplate
from anabranch.algebra.operators import (
    Argument,
    Join,
    NodePattern,
    Operator,
    OrderKey,
    PathPattern,
    Pattern,
    RelationshipPattern,
    TripleFilter,
)
from anabranch.algebra.spell_paths import path_text
from anabranch.algebra.triples import GraphPattern, PropertyPath, TermPlace, TriplePattern, Var
from anabranch.model.spelling import Terms
from anabranch.model.terms import Blank, Iri, Literal

_IMPLIES, _OR, _XOR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _POWER, _SIGN, _ATOM = range(11)
_INFIX = {
    "in": (_COMPARE, "∈"),
    "starts_with": (_COMPARE, "starts with"),
    "ends_with": (_COMPARE, "ends with"),
    "contains": (_COMPARE, "contains"),
    "matches": (_COMPARE, "matches"),
    "add": (_SUM, "+"),
    "subtract": (_SUM, "-"),
    "multiply": (_PRODUCT, "*"),
    "divide": (_PRODUCT, "/"),
    "modulo": (_PRODUCT, "%"),
    "power": (_POWER, "^"),
}
_SPARQL_INFIX = {
    "sparql:equal": (_COMPARE, "="),
    "sparql:less": (_COMPARE, "<"),
    "sparql:less_or_equal": (_COMPARE, "≤"),
    "sparql:add": (_SUM, "+"),
    "sparql:subtract": (_SUM, "-"),
    "sparql:multiply": (_PRODUCT, "*"),
    "sparql:divide": (_PRODUCT, "/"),
}
_TURNED = {"=": "=", "<": ">", "≤": "≥"}
_COMPARISONS = {"=": "=", "<>": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥"}
_QUANTIFIERS = {"all": "∀", "any": "∃", "none": "∄", "single": "∃!"}
_ARROWS = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def short_name(column: str) -> str:
    """Return a column's name for people: anonymous ones as `_n1`, unusual ones in backticks."""
    if column.startswith(" "):
        stem = column.strip()
        return f"_{stem[:1]}{stem.lstrip('abcdefghijklmnopqrstuvwxyz_')}"
    return column if _PLAIN_NAME.fullmatch(column) else f"`{column}`"


class Speller:
    """Spells expressions; plans inside of them that do not fit into a line are collected as `subplans`.

    With `sparql`, columns are written as variables, `?v`, and IRIs with the prefixes."""

    def __init__(self, prefixes: tuple[tuple[str, str], ...] = (), sparql: bool = False) -> None:
        self.subplans: list[Operator] = []
        self._terms = Terms(prefixes)
        self._sparql = sparql

    def name(self, column: str) -> str:
        """Return a column's name as in expressions."""
        if not self._sparql:
            return short_name(column)
        if column.startswith(" _:"):
            return f"_:{column[3:].strip()}"
        return short_name(column) if column.startswith(" ") else f"?{column}"

    def spell(self, expression: x.Expression, level: int = 0) -> str:
        """Return the text of an expression, in brackets when it binds more loosely than `level`."""
        own, text = self._spelled(expression)
        return f"({text})" if own < level else text

    def item(self, name: str, expression: x.Expression) -> str:
        """Return the text of a computed column: its name and its expression; the name alone where both are the same."""
        text = self.spell(expression)
        shown = self.name(name)
        if text in (shown, name):
            return text
        return f"{shown} = {text}"

    def order_key(self, key: OrderKey) -> str:
        return self.spell(key.expression) + (" descending" if key.descending else "")

    # --- patterns -----------------------------------------------------------------------------------------------------

    def path(self, path: PathPattern) -> str:
        text = _node(path.nodes[0])
        for relationship, node in zip(path.relationships, path.nodes[1:], strict=True):
            text += self._relationship(relationship) + _node(node)
        if path.kind != "trail":
            text = f"{path.kind} {text}"
        if path.where is not None:
            text += f" if {self.spell(path.where)}"
        return text if path.variable is None else f"{short_name(path.variable)} = {text}"

    def place(self, place: TermPlace) -> str:
        return self.name(place.name) if isinstance(place, Var) else self._terms.term(place)

    def triple(self, pattern: TriplePattern) -> str:
        """Return the text of a triple pattern, and of the columns with the times of its triple."""
        predicate = pattern.predicate
        middle = self.place(predicate) if isinstance(predicate, Var) else self._terms.predicate(predicate)
        text = f"{self.place(pattern.subject)} {middle} {self.place(pattern.object)}"
        times = [self.name(column) for column, _ in pattern.times]
        return f"{text}  came at {', '.join(times)}" if times else text

    def kept(self, kept: TripleFilter) -> str:
        """Return the text of a window's filter; `*` is any term."""
        subject, predicate, object_ = kept
        middle = "*" if predicate is None else self._terms.predicate(predicate)
        ends = ["*" if term is None else self._terms.term(term) for term in (subject, object_)]
        return f"{ends[0]} {middle} {ends[1]}"

    def property_path(self, path: PropertyPath) -> str:
        return path_text(path, self._terms)

    def written(self, nodes: tuple[ElementTemplate, ...], relationships: tuple[ElementTemplate, ...]) -> str:
        """Return the text of the elements that LOAD STREAM writes, as a chain."""
        text = f"({self._template(nodes[0])})"
        for one, node in zip(relationships, nodes[1:], strict=True):
            left, right = _ARROWS["in" if one.reverse else "out"]
            text += f"{left}[{self._template(one)}]{right}({self._template(node)})"
        return text

    def _template(self, one: ElementTemplate) -> str:
        name = "" if one.variable.startswith(" ") else one.variable
        entries = ", ".join(f"{key}: {self.spell(value)}" for key, value in one.properties)
        head = name + "".join(f":{label}" for label in one.labels)
        return " ".join(part for part in (head, f"{{{entries}}}" if entries else "") if part)

    def assigned(self, one: Assignment) -> str:
        if one.value is None:
            return one.variable + "".join(f":{label}" for label in one.labels)
        target = one.variable if one.key is None else f"{one.variable}.{one.key}"
        return f"{target} {'+=' if one.merges else '='} {self.spell(one.value)}"

    def _relationship(self, pattern: RelationshipPattern) -> str:
        left, right = _ARROWS[pattern.direction]
        text = short_name(pattern.variable)
        if pattern.types:
            text += ":" + "|".join(pattern.types)
        if pattern.length is not None:
            low, high = pattern.length
            text += f"*{low}" if low == high else f"*{low}..{'' if high is None else high}"
        if pattern.once:
            text += " once"
        if pattern.where is not None:
            text += f" if {self.spell(pattern.where)}"
        return f"{left}[{text}]{right}"

    # --- expressions --------------------------------------------------------------------------------------------------

    def _spelled(self, expression: x.Expression) -> tuple[int, str]:
        match expression:
            case x.Constant(value=Iri() | Blank() | Literal() as term):
                return _ATOM, self._terms.term(term)
            case x.Constant(value):
                return _ATOM, constant(value)
            case x.Variable(name):
                return _ATOM, self.name(name)
            case x.Parameter(name):
                return _ATOM, f"${name}"
            case x.WindowBound(_, side):
                return _ATOM, f"win_{side}"
            case x.Property(subject, key):
                return _ATOM, f"{self.spell(subject, _ATOM)}.{short_name(key)}"
            case x.Subscript(subject, index):
                return _ATOM, f"{self.spell(subject, _ATOM)}[{self.spell(index)}]"
            case x.Sublist(subject, start, stop):
                low = "" if start is None else self.spell(start)
                high = "" if stop is None else self.spell(stop)
                return _ATOM, f"{self.spell(subject, _ATOM)}[{low}..{high}]"
            case x.ListOf(items):
                return _ATOM, f"[{self._many(items)}]"
            case x.MapOf(entries):
                return _ATOM, "{" + ", ".join(f"{short_name(k)}: {self.spell(v)}" for k, v in entries) + "}"
            case x.HasLabels(subject, labels):
                return _ATOM, self.spell(subject, _ATOM) + "".join(f":{label}" for label in labels)
            case x.Call():
                return self._call(expression)
            case x.AggregateCall(function, arguments, distinct):
                inner = ("distinct " if distinct else "") + self._many(arguments) if arguments else "*"
                return _ATOM, f"{function.removeprefix('sparql:')}({inner})"
            case x.Case(((x.IsNull(asked), x.Constant(None)), (when, then)), default) if asked == when:
                return _ATOM, f"if({self.spell(when)}, {self.spell(then)}, {self.spell(default)})"
            case x.Case(branches, default):
                cases = [f"{self.spell(when)} → {self.spell(then)}" for when, then in branches]
                return _ATOM, f"case({', '.join(cases)}, else {self.spell(default)})"
            case _:
                return self._logic(expression)

    def _logic(self, expression: x.Expression) -> tuple[int, str]:
        match expression:
            case x.And(operands):
                return _AND, " ∧ ".join(self.spell(operand, _AND + 1) for operand in operands)
            case x.Or(operands):
                return _OR, " ∨ ".join(self.spell(operand, _OR + 1) for operand in operands)
            case x.Xor(left, right):
                return _XOR, f"{self.spell(left, _XOR)} ⊕ {self.spell(right, _XOR + 1)}"
            case x.Not(x.Not(x.IsNull() as test)) if self._sparql:
                return self._logic(test)
            case x.Not(x.IsNull(operand)):
                bound = "is bound" if self._sparql else "is not null"
                return _COMPARE, f"{self.spell(operand, _COMPARE + 1)} {bound}"
            case x.Not(x.Call("sparql:equal", (left, right))):
                return _COMPARE, f"{self.spell(left, _COMPARE + 1)} ≠ {self.spell(right, _COMPARE + 1)}"
            case x.Not(operand):
                return _NOT, f"¬{self.spell(operand, _NOT if isinstance(operand, x.Not) else _SIGN)}"
            case x.Compare(operator, left, right):
                sides = self.spell(left, _COMPARE + 1), self.spell(right, _COMPARE + 1)
                return _COMPARE, f"{sides[0]} {_COMPARISONS[operator]} {sides[1]}"
            case x.IsNull(operand):
                unbound = "is unbound" if self._sparql else "is null"
                return _COMPARE, f"{self.spell(operand, _COMPARE + 1)} {unbound}"
            case _:
                return self._binding(expression)

    def _binding(self, expression: x.Expression) -> tuple[int, str]:
        """Expressions that bind a variable of their own, or a whole plan."""
        match expression:
            case x.Quantifier(kind, variable, source, where):
                drawn = f"{short_name(variable)} ∈ {self.spell(source, _SUM)}"
                return _IMPLIES, f"{_QUANTIFIERS[kind]} {drawn}: {self.spell(where)}"
            case x.Comprehension(variable, source, where, result):
                name = short_name(variable)
                test = "" if where is None else f", {self.spell(where)}"
                head = name if result is None else self.spell(result)
                return _ATOM, f"[{head} | {name} ∈ {self.spell(source, _SUM)}{test}]"
            case x.Reduce(accumulator, initial, variable, source, step):
                start = f"{short_name(accumulator)} = {self.spell(initial)}"
                drawn = f"{short_name(variable)} ∈ {self.spell(source, _SUM)}"
                return _ATOM, f"fold({start}; {drawn}: {self.spell(step)})"
            case x.Exists(plan):
                return _SIGN, f"∃ {self._plan(plan)}"
            case x.CollectRows(plan, result):
                return _ATOM, f"[{self.spell(result)} | {self._plan(plan)}]"
            case x.Connected(links, left, right):
                return _ATOM, f"connected({self.spell(left)}, {self.spell(right)}{self._along(links)})"
            case x.Component(links, subject, asked):
                name = "component" if asked == "name" else "componentSize"
                return _ATOM, f"{name}({self.spell(subject)}{self._along(links)})"
            case x.TripleTime(_, subject, predicate, object_):
                return _ATOM, f"time of ({self.spell(subject)} {self.spell(predicate)} {self.spell(object_)})"
            case _:
                return _ATOM, type(expression).__name__.lower()

    def _along(self, links: x.Links) -> str:
        """Return the kinds of links of a connectivity question, where they are named."""
        if links.kinds is None:
            return ""
        kinds = [self._terms.iri(kind) if links.of_triples else kind for kind in links.kinds]
        return f" along {', '.join(kinds)}"

    def _plan(self, plan: Operator) -> str:
        """Return the text of a plan inside an expression: its pattern if it is nothing else, else the number of a
        subplan."""
        match plan:
            case Join(left=Argument(), right=Pattern(paths=paths, where=where), condition=condition):
                text = ", ".join(self.path(path) for path in paths)
                tests = [self.spell(test) for test in (where, condition) if test is not None]
                return f"{{{text} if {' ∧ '.join(tests)}}}" if tests else text
            case Join(left=Argument(), right=GraphPattern(patterns=patterns), condition=None):
                return f"{{{' . '.join(self.triple(one) for one in patterns)}}}"
        self.subplans.append(plan)
        return f"#{len(self.subplans)}"

    def _call(self, call: x.Call) -> tuple[int, str]:
        match call.function, call.arguments:
            case "negate", (operand,):
                return _SIGN, f"-{self.spell(operand, _ATOM)}"
            case "plus", (operand,):
                return _SIGN, f"+{self.spell(operand, _ATOM)}"
            case name, (left, right) if name in _INFIX:
                own, sign = _INFIX[name]
                tight = own if own != _COMPARE else own + 1
                return own, f"{self.spell(left, tight)} {sign} {self.spell(right, own + 1)}"
            case name, arguments if name.startswith("sparql:"):
                return self._sparql_call(name, arguments)
            case name, arguments:
                return _ATOM, f"{name}({self._many(arguments)})"

    def _sparql_call(self, name: str, arguments: tuple[x.Expression, ...]) -> tuple[int, str]:
        match name, arguments:
            case "sparql:ebv" | "sparql:term", (operand,):
                return self._spelled(operand)
            case "sparql:negate" | "sparql:plus", (operand,):
                return _SIGN, f"{'-' if name == 'sparql:negate' else '+'}{self.spell(operand, _ATOM)}"
            case "sparql:cast", (operand, x.Constant(Iri(datatype))):
                return _ATOM, f"{self._terms.iri(datatype)}({self.spell(operand)})"
            case _, (left, right) if name in _SPARQL_INFIX:
                own, sign = _SPARQL_INFIX[name]
                if own == _COMPARE and isinstance(left, x.Constant) and not isinstance(right, x.Constant):
                    left, right, sign = right, left, _TURNED[sign]
                return own, f"{self.spell(left, own + (own == _COMPARE))} {sign} {self.spell(right, own + 1)}"
            case "sparql:moment", _:
                return _ATOM, f"timestamp({self._many(arguments)})"
            case _:
                return _ATOM, f"{name.removeprefix('sparql:')}({self._many(arguments)})"

    def _many(self, items: tuple[x.Expression, ...]) -> str:
        return ", ".join(self.spell(item) for item in items)


def constant(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
        case _:
            return str(value)


def _node(pattern: NodePattern) -> str:
    return f"({short_name(pattern.variable)}{''.join(f':{label}' for label in pattern.labels)})"
