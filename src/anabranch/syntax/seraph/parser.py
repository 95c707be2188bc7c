"""Text to syntax tree, with errors that point at the text.

Invariant: a text either gives a tree or a `QuerySyntaxError` with at least one diagnostic inside the text; after an
error the rest of the text is parsed too, clause by clause, so that several mistakes are reported at once.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from anabranch.errors import MAX_DIAGNOSTICS, Diagnostic, QuerySyntaxError, Span
from anabranch.syntax.building import TooDeep
from anabranch.syntax.common import LiteralProblem, walk_tree
from anabranch.syntax.grammars import parser_of
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.build import Builder
from anabranch.syntax.seraph.hints import CLAUSE_START, hint_for
from anabranch.syntax.seraph.literals import INTEGER_MAX, INTEGER_MIN, check_integer

_WORD = re.compile(r"\w+")
_SPELLINGS = {
    "COMMA": "`,`", "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`",
    "COLON": "`:`", "DOT": "`.`", "EQUAL": "`=`", "VBAR": "`|`", "STAR": "`*`", "__ANON_0": "`..`",
    "NAME": "a name", "INTEGER": "an integer", "FLOAT": "a number", "STRING": "a string", "PARAMETER": "a parameter",
    "DATETIME": "a datetime", "DURATION": "a duration such as PT5M", "ANGLE_NAME": "a name", "$END": "the end",
    "_EXISTS_OPEN": "EXISTS {", "DESCENDING": "DESC", "ASCENDING": "ASC", "DISTINCT": "DISTINCT",
}  # fmt: skip
_EXPRESSION_START = {"NAME", "INTEGER", "FLOAT", "STRING", "LPAR", "PARAMETER", "LSQB"}
_OPERATORS = {
    "PLUS", "MINUS", "SLASH", "PERCENT", "CIRCUMFLEX", "LESSTHAN", "MORETHAN", "_AND", "_OR", "_XOR", "_IN", "_IS",
    "_STARTS", "_ENDS", "_CONTAINS", "DOT", "LSQB", "COLON", "EQUAL", "LPAR", "STAR",
}  # fmt: skip


@cache
def _parser() -> Lark:
    return parser_of("anabranch.syntax.seraph", ["grammar"], ["script", "plain"])


def parse_script(text: str, file_name: str = "<query>") -> t.ScriptTree:
    """A file of REGISTER QUERY and LOAD STREAM statements."""
    script = _parse(text, "script", file_name)
    assert isinstance(script, t.ScriptTree)
    if not script.statements:
        raise QuerySyntaxError(
            [
                Diagnostic(
                    "SER-002", "there is no query here", None, "", "begin with REGISTER QUERY name STARTING AT ..."
                )
            ],
            text,
            file_name,
        )
    return script


def parse_query(text: str, file_name: str = "<query>") -> t.QueryTree:
    """A plain query, without REGISTER."""
    query = _parse(text, "plain", file_name)
    assert isinstance(query, t.QueryTree)
    return query


def _parse(text: str, start: str, file_name: str) -> Any:
    try:
        raw = _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise QuerySyntaxError(_all_problems(text, start, error), text, file_name) from None
    builder = Builder(text)
    try:
        built = builder.build(raw)
    except TooDeep:
        raise too_deep(text, file_name) from None
    problems = builder.problems + _integer_problems(built)
    if problems:
        raise QuerySyntaxError(problems, text, file_name)
    return built


def too_deep(text: str, file_name: str) -> QuerySyntaxError:
    said = Diagnostic("SER-006", "this query is nested too deeply", None, "", "split it with WITH")
    return QuerySyntaxError([said], text, file_name)


def _integer_problems(built: Any) -> list[Diagnostic]:
    """Report integers outside 64 bits, once the sign is known."""
    problems: list[Diagnostic] = []
    for part in walk_tree(built):
        if isinstance(part, t.LiteralExpr) and type(part.value) is int and not INTEGER_MIN <= part.value <= INTEGER_MAX:
            try:
                check_integer(part.value)
            except LiteralProblem as problem:
                problems.append(Diagnostic(problem.code, problem.message, part.span, "", problem.hint))
    return problems


def _all_problems(text: str, start: str, error: UnexpectedInput) -> list[Diagnostic]:
    """The first problem, and those found when the clause that holds it is blanked out."""
    found: list[Diagnostic] = []
    while len(found) < MAX_DIAGNOSTICS:
        diagnostic = _diagnose(text, error)
        at_end = diagnostic.code == "SER-002"
        if found and (at_end or (diagnostic.span and found[-1].span and diagnostic.span.start <= found[-1].span.start)):
            break
        found.append(diagnostic)
        if at_end or diagnostic.span is None or "_REGISTER" in _accepts(error):
            break
        place = diagnostic.span.start
        starts = [match.start() for match in CLAUSE_START.finditer(text)]
        begin = max((offset for offset in starts if offset <= place), default=0)
        end = min((offset for offset in starts if offset > place), default=None)
        if end is None or re.match(r"REGISTER", text[begin:], re.IGNORECASE):
            break
        text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
        try:
            _parser().parse(text, start=start)
            break
        except UnexpectedInput as next_error:
            error = next_error
    return found


def _diagnose(text: str, error: UnexpectedInput) -> Diagnostic:
    if not text.strip():
        return Diagnostic("SER-002", "there is no query here", None, "", "begin with MATCH or RETURN")
    comma = _dangling_comma(text, error)
    if comma is not None:
        return comma
    expected = _expected(error)
    match error:
        case UnexpectedToken(token=Token(type="$END")):
            end = len(text.rstrip())
            return Diagnostic(
                "SER-002", "the query ends too early", Span(max(end - 1, 0), end), f"after this, {expected}"
            )
        case UnexpectedToken(token=token):
            span = Span(token.start_pos or 0, token.end_pos or 0)
            word = str(token)
        case UnexpectedCharacters():
            offset = error.pos_in_stream or 0
            word_match = _WORD.match(text, offset)
            word = word_match.group() if word_match else text[offset]
            span = Span(offset, offset + len(word))
            if word in "'\"`":
                return Diagnostic("SER-001", "this quote is never closed", span, "opens here", f"close it with {word}")
            if text.startswith("/*", offset):
                return Diagnostic(
                    "SER-001", "this comment is never closed", Span(offset, offset + 2), "", "close it with */"
                )
        case _:
            return Diagnostic("SER-001", "this cannot be read")
    shown = word if len(word) <= 30 else word[:27] + "..."
    return Diagnostic(
        "SER-001", f"unexpected `{shown}`", span, expected, hint_for(text, word, span.start, _accepts(error))
    )


def _dangling_comma(text: str, error: UnexpectedInput) -> Diagnostic | None:
    """`WITH a, MATCH (b)`: the clause after the comma was read as one more item."""
    starts = list(CLAUSE_START.finditer(text, 0, error.pos_in_stream or 0))
    if starts:
        before = text[: starts[-1].start()].rstrip()
        if before.endswith(","):
            span = Span(len(before) - 1, len(before))
            word = starts[-1].group().upper()
            return Diagnostic("SER-001", "a comma too many", span, f"{word} follows, not one more item", "take it away")
    return None


def _accepts(error: UnexpectedInput) -> set[str]:
    accepts = getattr(error, "accepts", None) or getattr(error, "allowed", None) or getattr(error, "expected", None)
    return set(accepts or ())


def _expected(error: UnexpectedInput) -> str:
    names = _accepts(error) - {"COMMENT", "WHITESPACE"}
    shown: list[str] = []
    if names >= _EXPRESSION_START:
        names = {name for name in names if name in ("RPAR", "RSQB", "RBRACE")}
        shown.append("an expression")
    elif len(names & _OPERATORS) >= 12:
        names -= _OPERATORS
        names = {name for name in names if not name.startswith("__ANON") and not name.startswith(("_ARROW", "_SHORT"))}
    for name in sorted(names):
        if name in _SPELLINGS:
            shown.append(_SPELLINGS[name])
        elif name.startswith("_") and not name.startswith("__"):
            if not name.startswith(("_ARROW", "_SHORT")):
                shown.append(name[1:])
            elif "a relationship" not in shown:
                shown.append("a relationship")
    shown = list(dict.fromkeys(shown))
    if len(shown) > 12:
        return "expected `,`, an operator or the next clause"
    if not shown:
        return ""
    return "expected " + (" or ".join(shown) if len(shown) < 3 else ", ".join(shown[:-1]) + " or " + shown[-1])
