"""The SPARQL family: plain SPARQL 1.1, C-SPARQL, LUPOS and RSP-QL. Text in, algebra out.

Invariant: the output is checked: names, groups, windows and rhythms are right, or a `QueryError` with every problem was
raised.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.algebra.operators import Operator, Registration
from anabranch.errors import (
    Diagnostic,
    QueryError,
    QueryNameError,
    QuerySyntaxError,
    QueryTypeError,
    Span,
    UnsupportedQueryError,
)
from anabranch.syntax.common import LoweringProblems, PlainQuery
from anabranch.syntax.sparql import tree
from anabranch.syntax.sparql.lower_registration import lower_plain, lower_registration
from anabranch.syntax.sparql.parser import parse_query, parse_script

__all__ = ["parse_query", "parse_script", "plan", "statements"]

_CLASSES: dict[str, type[QueryError]] = {
    "SPQ-101": QueryNameError,
    "SPQ-103": QueryNameError,
    "SPQ-105": QueryNameError,
    "SPQ-106": QueryTypeError,
    "SPQ-107": QueryNameError,
    "SPQ-108": QueryNameError,
    "SPQ-109": QueryNameError,
    "SPQ-110": UnsupportedQueryError,
    "SPQ-111": QueryNameError,
    "SPQ-112": QueryTypeError,
    "SPQ-113": QueryTypeError,
    "SPQ-114": QueryTypeError,
    "SPQ-115": QueryNameError,
    "SPQ-116": QueryNameError,
    "SPQ-117": QueryNameError,
}


MAX_DEPTH = 160
"""Operators above one another: evaluation walks down a plan by recursion."""


def _check_depth(plan: Operator, text: str, file_name: str) -> None:
    """Refuse a plan that is too deep to be walked, rather than fail while it runs."""
    level: list[Operator] = [plan]
    for _ in range(MAX_DEPTH):
        level = [one for operator in level for one in operator.inputs]
        if not level:
            return
    raise _too_deep(level[0].span, text, file_name)


def _too_deep(span: Span | None, text: str, file_name: str) -> QuerySyntaxError:
    hint = "split the query: fewer parts in one group, or a stream made by REGISTER STREAM in between"
    return QuerySyntaxError(
        [Diagnostic("SPQ-006", "this query has too many parts that build on each other", span, "", hint)],
        text,
        file_name,
    )


def plan(text: str, file_name: str = "<query>", graphs: tuple[str, ...] | None = None) -> PlainQuery:
    """Return the algebra of a plain SPARQL query over the default graph and named graphs.

    `graphs` are the names of all existing graphs: GRAPH ?g ranges over them, and GRAPH with another name finds nothing.
    None means that they are not known, so GRAPH <name> reads the static graph of that name.
    """
    problems = LoweringProblems()
    statement = parse_query(text, file_name)
    try:
        operator, form = lower_plain(statement, problems, graphs)
    except RecursionError:
        raise _too_deep(statement.span, text, file_name) from None
    problems.refuse(_CLASSES, text, file_name)
    _check_depth(operator, text, file_name)
    return PlainQuery(operator, form, statement.prefixes)


def statements(text: str, dialect: tree.Dialect, file_name: str = "<query>") -> tuple[Registration, ...]:
    """Return the statements of a file, in its order, all of them checked.

    The meaning of a statement depends on its text only: GRAPH ?g ranges over the graphs that the query names, never
    over the static graphs that a session happens to have.
    """
    problems = LoweringProblems()
    found: list[Registration] = []
    script = parse_script(text, dialect, file_name).statements
    taken = {statement.name.text for statement in script if statement.name is not None}
    used: set[str] = set()
    for statement in script:
        name = statement.name
        if name is not None and name.text in used:
            problems.add("SPQ-116", f"there is a query `{name.text}` already", name.span, "", "names are unique")
        text_of_name = name.text if name is not None else _free_name(taken | used)
        used.add(text_of_name)
        try:
            found.append(lower_registration(statement, text_of_name, dialect, problems, text))
        except RecursionError:
            raise _too_deep(None if name is None else name.span, text, file_name) from None
    problems.refuse(_CLASSES, text, file_name)
    return tuple(_shallow(one, text, file_name) for one in found)


def _shallow(registration: Registration, text: str, file_name: str) -> Registration:
    """Delegate a query whose plan is too deep for the evaluator to the plug-in, if it is plain SPARQL."""
    try:
        _check_depth(registration.plan, text, file_name)
    except QuerySyntaxError:
        delegated = registration.delegated
        if delegated is None:
            raise
        return replace(registration, plan=delegated)
    return registration


def _free_name(taken: set[str]) -> str:
    """`query` for a statement that has no name, or the next that is free."""
    name, number = "query", 1
    while name in taken:
        number += 1
        name = f"query{number}"
    return name
