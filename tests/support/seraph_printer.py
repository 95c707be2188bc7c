"""Syntax tree to text, laid out the way the papers' listings are.

Invariant: parsing the printed text gives an equal tree. Brackets are written only where the grammar needs them.
"""

from __future__ import annotations

import re

from anabranch.model.instants import format_instant
from anabranch.syntax.seraph import tree as t

_OR, _XOR, _AND, _NOT, _COMPARISON, _PREDICATE, _SUM, _PRODUCT, _POWER, _UNARY, _POSTFIX = range(1, 12)
_BINARY = {
    "or": (_OR, "OR"),
    "xor": (_XOR, "XOR"),
    "and": (_AND, "AND"),
    "in": (_PREDICATE, "IN"),
    "starts_with": (_PREDICATE, "STARTS WITH"),
    "ends_with": (_PREDICATE, "ENDS WITH"),
    "contains": (_PREDICATE, "CONTAINS"),
    "matches": (_PREDICATE, "=~"),
    "add": (_SUM, "+"),
    "subtract": (_SUM, "-"),
    "multiply": (_PRODUCT, "*"),
    "divide": (_PRODUCT, "/"),
    "modulo": (_PRODUCT, "%"),
    "power": (_POWER, "^"),
}
_ARROWS = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*\Z")


def print_script(script: t.ScriptTree) -> str:
    return "\n\n".join(print_statement(statement) for statement in script.statements) + "\n"


def print_statement(statement: t.Statement) -> str:
    match statement:
        case t.RegisterTree(name, starting_at, query, options):
            start = "NOW" if starting_at is None else format_instant(starting_at)
            body = _indent(print_query(query) + "".join("\n" + _option(option) for option in options))
            return f"REGISTER QUERY {write_name(name.text)} STARTING AT {start} {{\n{body}\n}}"
        case t.LoadStreamTree(uri, variable, at, stream, clauses):
            head = f"LOAD STREAM FROM {write_string(uri)} AS {write_name(variable.text)}"
            head += "" if at is None else f" AT {_expression(at)}"
            head += "" if stream is None else f" INTO {write_name(stream.text)}"
            return "\n".join([head, *(_clause(clause) for clause in clauses)])


def _option(option: t.EmitOption) -> str:
    match option.kind:
        case "entering":
            return "ON ENTERING"
        case "exiting":
            return "ON EXIT"
        case "snapshot":
            return "SNAPSHOT"
        case "into":
            assert option.stream is not None
            return f"INTO {write_name(option.stream.text)}"
        case _:
            return f"EVERY {option.duration}"


def print_query(query: t.QueryTree) -> str:
    parts = [_single(query.parts[0])]
    for part, keeps_duplicates in zip(query.parts[1:], query.keeps_duplicates, strict=True):
        parts.append("UNION ALL" if keeps_duplicates else "UNION")
        parts.append(_single(part))
    return "\n".join(parts)


def _single(query: t.SingleQuery) -> str:
    return "\n".join(_clause(clause) for clause in query.clauses)


def _indent(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


# --- clauses ---


def _clause(clause: t.Clause) -> str:
    match clause:
        case t.MatchClause():
            return _match(clause)
        case t.WithClause(projection, where):
            return f"WITH {_projection(projection)}" + _where(where)
        case t.ReturnClause(projection):
            return f"RETURN {_projection(projection)}"
        case t.EmitClause(projection):
            return f"EMIT {_projection(projection)}"
        case t.UnwindClause(expression, variable):
            return f"UNWIND {_expression(expression)} AS {write_name(variable.text)}"
        case t.CreateClause(patterns):
            return "CREATE " + ", ".join(_pattern(pattern) for pattern in patterns)
        case t.SetClause(items):
            return _set(items)
        case t.MergeClause(pattern, on_create, on_match):
            text = "MERGE " + _pattern(pattern)
            text += f"\n  ON CREATE {_set(on_create)}" if on_create else ""
            return text + (f"\n  ON MATCH {_set(on_match)}" if on_match else "")
        case _:
            raise AssertionError(f"no spelling for {type(clause).__name__}")


def _where(where: t.Expr | None) -> str:
    return "" if where is None else f"\n  WHERE {_expression(where)}"


def _match(clause: t.MatchClause) -> str:
    text = "OPTIONAL MATCH " if clause.optional else "MATCH "
    text += ",\n  ".join(_pattern(pattern) for pattern in clause.patterns)
    options = []
    if clause.within is not None:
        options.append(f"WITHIN {clause.within.width}")
    if clause.stream is not None:
        options.append(f"ON STREAM {write_name(clause.stream.text)}")
    if clause.graph is not None:
        options.append(f"ON GRAPH {write_name(clause.graph.text)}")
    if options:
        text += "\n  " + " ".join(options)
    return text + _where(clause.where)


def _set(items: tuple[t.SetItem, ...]) -> str:
    spelled = []
    for item in items:
        target = _expression(item.target, _POSTFIX)
        sign = "+=" if item.kind == "merge" else "="
        spelled.append(target if item.value is None else f"{target} {sign} {_expression(item.value)}")
    return "SET " + ", ".join(spelled)


def _projection(projection: t.Projection) -> str:
    items = ["*"] if projection.star else []
    items += [_item(item) for item in projection.items]
    text = ("DISTINCT " if projection.distinct else "") + ", ".join(items)
    if projection.order:
        keys = [_expression(sort.expression) + (" DESC" if sort.descending else "") for sort in projection.order]
        text += "\n  ORDER BY " + ", ".join(keys)
    text += "" if projection.skip is None else f"\n  SKIP {_expression(projection.skip)}"
    return text + ("" if projection.limit is None else f"\n  LIMIT {_expression(projection.limit)}")


def _item(item: t.ProjectionItem) -> str:
    """Without an alias the column's name is the text itself, so it is kept to the letter."""
    return item.text if item.alias is None else f"{_expression(item.expression)} AS {write_name(item.alias.text)}"


# --- patterns ---


def _pattern(pattern: t.PatternTree) -> str:
    path = _path(pattern.path)
    if pattern.kind != "trail":
        path = f"{'shortestPath' if pattern.kind == 'shortest' else 'allShortestPaths'}({path})"
    return path if pattern.variable is None else f"{write_name(pattern.variable.text)} = {path}"


def _path(path: t.PathTree) -> str:
    text = _node(path.nodes[0])
    for relationship, node in zip(path.relationships, path.nodes[1:], strict=True):
        text += _relationship(relationship) + _node(node)
    return text


def _node(node: t.NodeTree) -> str:
    head = "" if node.variable is None else write_name(node.variable.text)
    head += "".join(f":{write_name(label.text)}" for label in node.labels)
    properties = "" if node.properties is None else _expression(node.properties)
    return f"({' '.join(part for part in (head, properties) if part)})"


def _relationship(relationship: t.RelationshipTree) -> str:
    left, right = _ARROWS[relationship.direction]
    head = "" if relationship.variable is None else write_name(relationship.variable.text)
    if relationship.types:
        head += ":" + "|".join(write_name(name.text) for name in relationship.types)
    if relationship.length is not None:
        lower, upper = relationship.length
        if lower is not None and lower == upper:
            head += f"*{lower}"
        elif lower is None and upper is None:
            head += "*"
        else:
            head += f"*{'' if lower is None else lower}..{'' if upper is None else upper}"
    properties = "" if relationship.properties is None else _expression(relationship.properties)
    return f"{left}[{' '.join(part for part in (head, properties) if part)}]{right}"


# --- expressions ---


def _expression(expression: t.Expr, level: int = 0) -> str:
    """The expression's text, in brackets when it binds more loosely than `level`."""
    own, text = _spelled(expression)
    return f"({text})" if own < level else text


def _many(items: tuple[t.Expr, ...]) -> str:
    return ", ".join(_expression(item) for item in items)


def _spelled(expression: t.Expr) -> tuple[int, str]:
    atom = _POSTFIX + 1
    match expression:
        case t.LiteralExpr(value):
            return _literal(value)
        case t.VariableRef(name):
            return atom, write_name(name)
        case t.ParameterRef(name):
            return atom, "$" + (name if name.isdigit() else write_name(name))
        case t.PropertyLookup(subject, key):
            return _POSTFIX, f"{_expression(subject, _POSTFIX)}.{write_name(key.text)}"
        case t.IndexExpr(subject, index):
            return _POSTFIX, f"{_expression(subject, _POSTFIX)}[{_expression(index)}]"
        case t.SliceExpr(subject, start, stop):
            bounds = f"{'' if start is None else _expression(start)}..{'' if stop is None else _expression(stop)}"
            return _POSTFIX, f"{_expression(subject, _POSTFIX)}[{bounds}]"
        case t.LabelTest(subject, labels):
            held = _expression(subject, atom if isinstance(subject, t.LabelTest) else _POSTFIX)
            return _POSTFIX, held + "".join(f":{write_name(label.text)}" for label in labels)
        case t.ListLiteral((t.Binary("in", t.VariableRef(), _) as only,)):
            return atom, f"[({_expression(only)})]"
        case t.ListLiteral(items):
            return atom, f"[{_many(items)}]"
        case t.MapLiteral(entries):
            return atom, "{" + ", ".join(
                f"{write_name(key.text)}: {_expression(value)}" for key, value in entries
            ) + "}"
        case t.MapProjection(subject, entries):
            return atom, f"{write_name(subject.name)} {{{', '.join(_projected(entry) for entry in entries)}}}"
        case t.Binary(operator, left, right):
            own, sign = _BINARY[operator]
            return own, f"{_expression(left, own)} {sign} {_expression(right, own + 1)}"
        case t.Unary("not", operand):
            return _NOT, f"NOT {_expression(operand, _NOT)}"
        case t.Unary(operator, operand):
            held = _expression(operand, atom if isinstance(operand, t.LiteralExpr | t.Unary) else _UNARY)
            held = f"({held})" if isinstance(operand, t.LiteralExpr) and not held.startswith("(") else held
            return _UNARY, ("-" if operator == "negate" else "+") + held
        case t.Comparison(first, rest):
            chain = "".join(f" {operator} {_expression(operand, _PREDICATE)}" for operator, operand in rest)
            return _COMPARISON, _expression(first, _PREDICATE) + chain
        case t.NullTest(operand, negated):
            return _PREDICATE, f"{_expression(operand, _PREDICATE)} IS {'NOT ' if negated else ''}NULL"
        case t.FunctionCall(name, arguments, distinct, star):
            called = ".".join(write_name(part) for part in name.split("."))
            return atom, f"{called}({'*' if star else ('DISTINCT ' if distinct else '') + _many(arguments)})"
        case t.CaseExpr(subject, branches, otherwise):
            text = "CASE" + ("" if subject is None else f" {_expression(subject)}")
            text += "".join(f" WHEN {_expression(when)} THEN {_expression(then)}" for when, then in branches)
            return atom, text + ("" if otherwise is None else f" ELSE {_expression(otherwise)}") + " END"
        case t.ListComprehension(variable, source, where, result):
            return atom, f"[{_comprehended(variable, source, where)}{_result(result)}]"
        case t.QuantifierExpr(kind, variable, source, where):
            return atom, f"{kind}({_comprehended(variable, source, where)})"
        case t.ReduceExpr(accumulator, initial, variable, source, step):
            begun = f"{write_name(accumulator.text)} = {_expression(initial, _PREDICATE)}"
            return atom, f"reduce({begun}, {_comprehended(variable, source, None)} | {_expression(step)})"
        case t.PatternExpr(path):
            return atom, _path(path)
        case t.PatternComprehension(variable, path, where, mapped):
            head = "" if variable is None else f"{write_name(variable.text)} = "
            kept = "" if where is None else f" WHERE {_expression(where)}"
            return atom, f"[{head}{_path(path)}{kept}{_result(mapped)}]"
        case t.ExistsSubquery(query):
            return atom, "EXISTS {\n" + _indent(print_query(query)) + "\n}"
        case _:
            raise AssertionError(f"no spelling for {type(expression).__name__}")


def _literal(value: object) -> tuple[int, str]:
    match value:
        case None:
            return _POSTFIX + 1, "null"
        case bool():
            return _POSTFIX + 1, "true" if value else "false"
        case int() | float():
            return (_UNARY if value < 0 else _POSTFIX + 1), write_number(value)
        case _:
            return _POSTFIX + 1, write_string(str(value))


def _comprehended(variable: t.Name, source: t.Expr, where: t.Expr | None) -> str:
    test = "" if where is None else f" WHERE {_expression(where)}"
    return f"{write_name(variable.text)} IN {_expression(source, _SUM)}{test}"


def _result(result: t.Expr | None) -> str:
    return "" if result is None else f" | {_expression(result)}"


def _projected(entry: t.ProjectionEntry) -> str:
    name = "" if entry.name is None else write_name(entry.name.text)
    match entry.kind:
        case "all":
            return ".*"
        case "property":
            return f".{name}"
        case "variable":
            return name
        case _:
            assert entry.value is not None
            return f"{name}: {_expression(entry.value)}"


def write_string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for character, escape in (("\b", "b"), ("\f", "f"), ("\n", "n"), ("\r", "r"), ("\t", "t")):
        escaped = escaped.replace(character, "\\" + escape)
    return f"'{escaped}'"


def write_name(name: str) -> str:
    """The name, in backticks unless it can stand alone."""
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def write_number(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    return text if "e" not in text or "." in text else text.replace("e", ".0e")
