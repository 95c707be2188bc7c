"""Text to syntax tree, with errors that point at the text.

A dialect's grammar is the base with what the dialect adds; each is made once.

Invariant: a text either gives a tree or a `QuerySyntaxError` with at least one diagnostic.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, UnexpectedInput

from anabranch.errors import Diagnostic, QuerySyntaxError, Span
from anabranch.syntax.building import TooDeep
from anabranch.syntax.grammars import parser_of
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.build import Builder
from anabranch.syntax.sparql.diagnose import all_problems, nothing_here
from anabranch.syntax.sparql.prologue import ASSUMED, Prologue
from anabranch.syntax.sparql.scan import ScannedText

_GRAMMARS: dict[t.Dialect, tuple[str, ...]] = {
    "sparql": ("grammar",),
    "csparql": ("grammar", "streams", "csparql"),
    "lupos": ("grammar", "streams", "lupos"),
    "rspql": ("grammar", "streams", "rspql"),
}


@cache
def _parser(dialect: t.Dialect) -> Lark:
    return parser_of("anabranch.syntax.sparql", _GRAMMARS[dialect], ["script", "single"])


def parse_script(text: str, dialect: t.Dialect, file_name: str = "<query>") -> t.ScriptTree:
    """A file of one statement or several."""
    script = _parse(text, dialect, "script", file_name)
    assert isinstance(script, t.ScriptTree)
    return script


def parse_query(text: str, file_name: str = "<query>") -> t.StatementTree:
    """Parse one plain SPARQL 1.1 query."""
    statement = _parse(text, "sparql", "single", file_name)
    assert isinstance(statement, t.StatementTree)
    return statement


def _parse(text: str, dialect: t.Dialect, start: str, file_name: str) -> Any:
    source = ScannedText(text)
    parser = _parser(dialect)
    try:
        raw = parser.parse(source.parsed, start=start)
    except UnexpectedInput as error:
        raise QuerySyntaxError(all_problems(parser, source, dialect, start, error), text, file_name) from None
    builder = Builder(source, Prologue(ASSUMED.get(dialect, {})))
    try:
        built = builder.build(raw)
    except TooDeep as deep:
        raise QuerySyntaxError([_too_deep(deep.span)], text, file_name) from None
    if builder.problems:
        ordered = sorted(builder.problems, key=lambda one: one.span.start if one.span else -1)
        raise QuerySyntaxError(ordered, text, file_name)
    if isinstance(built, t.ScriptTree) and not built.statements:
        raise QuerySyntaxError([nothing_here(dialect)], text, file_name)
    return built


def _too_deep(span: Span) -> Diagnostic:
    return Diagnostic(
        "SPQ-006", "this query is nested too deeply", span, "", "take parts out with BIND or into subqueries"
    )
