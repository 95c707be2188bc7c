"""Diagnostics for texts that the grammar refuses: the message, the place, the accepted tokens, and a hint.

Invariant: at least one diagnostic, and each of them inside the user's text; after an error the rest of the text is
parsed too, pattern by pattern and statement by statement, and errors there are reported if they are on later lines.
"""

from __future__ import annotations

import re

from lark import Lark, Token, UnexpectedInput, UnexpectedToken

from anabranch.errors import MAX_DIAGNOSTICS, Diagnostic, Span
from anabranch.syntax.sparql.hints import expected, hint_for, refusal_of_word
from anabranch.syntax.sparql.scan import ScannedText, code_of, unclosed
from anabranch.syntax.sparql.tree import Dialect

_WORD = re.compile(r"[^\W\d]\w*")
_STATEMENT = re.compile(r"\bREGISTER\b", re.IGNORECASE)
_SENTENCE = re.compile(
    r"[{}]|\.(?=\s)|\b(?:FILTER|BIND|OPTIONAL|MINUS|GRAPH|SERVICE|VALUES|UNION|WINDOW)\b", re.IGNORECASE
)
_BEGIN = {
    "sparql": "begin with SELECT, ASK, CONSTRUCT or DESCRIBE",
    "csparql": "begin with REGISTER QUERY name AS SELECT ...",
    "lupos": "begin with SELECT ... STREAM INTERMEDIATERESULT DURATION 1000 WHERE { ... }",
    "rspql": "begin with REGISTER RSTREAM <name> AS SELECT ...",
}


def nothing_here(dialect: Dialect) -> Diagnostic:
    return Diagnostic("SPQ-002", "there is no query here", None, "", _BEGIN[dialect])


def all_problems(
    parser: Lark, source: ScannedText, dialect: Dialect, start: str, error: UnexpectedInput
) -> list[Diagnostic]:
    """The first problem, and those that are left when what holds it is blanked out."""
    text = source.parsed
    found: list[Diagnostic] = []
    last = 0
    while len(found) < MAX_DIAGNOSTICS:
        place = _place(text, error)
        diagnostic = _diagnose(text, dialect, error)
        if found and (diagnostic.code == "SPQ-002" or "\n" not in text[last:place]):
            break
        found.append(_in_users_text(diagnostic, source))
        last = place
        blanked = _without(text, place, start) if diagnostic.code != "SPQ-002" else None
        if blanked is None:
            break
        text = blanked
        try:
            parser.parse(text, start=start)
            break
        except UnexpectedInput as next_error:
            error = next_error
    return found


def _in_users_text(diagnostic: Diagnostic, source: ScannedText) -> Diagnostic:
    span = diagnostic.span
    if span is None:
        return diagnostic
    moved = source.span(span.start, span.end)
    return Diagnostic(diagnostic.code, diagnostic.message, moved, diagnostic.label, diagnostic.hint)


def _without(text: str, place: int, start: str) -> str | None:
    """The text without the pattern that holds a place, or without its whole statement."""
    code = code_of(text)
    if code.count("{", 0, place) > code.count("}", 0, place):
        borders = [match.start() for match in _SENTENCE.finditer(code)]
        begin = max((border for border in borders if border < place), default=0)
        begin += code[begin] in "{}."
        ends = (border for border in borders if border > place or (border == place and code[border] in "}."))
        end = min(ends, default=None)
        if end is not None:
            end += code[end] == "."
            return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
    statements = [match.start() for match in _STATEMENT.finditer(code)] if start == "script" else []
    following = min((offset for offset in statements if offset > place), default=None)
    if following is None:
        return None
    begin = max((offset for offset in statements if offset <= place), default=0)
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:following]) + text[following:]


def _place(text: str, error: UnexpectedInput) -> int:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return len(text)
    return error.pos_in_stream or 0


def accepted(error: UnexpectedInput) -> set[str]:
    """The terminals that could stand where the error is."""
    interactive = getattr(error, "interactive_parser", None)
    if interactive is not None:
        return set(interactive.accepts())
    return set(getattr(error, "allowed", None) or getattr(error, "expected", None) or ())


def _diagnose(text: str, dialect: Dialect, error: UnexpectedInput) -> Diagnostic:
    if not code_of(text).strip(" \t\r\n\ufeff"):
        return nothing_here(dialect)
    accepts = accepted(error)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return _ends_early(text, accepts, dialect)
    offset = error.pos_in_stream or 0
    special = _unreadable(text, offset, accepts)
    if special is not None:
        return special
    terminal, word = _word_at(text, offset, error)
    span = Span(offset, offset + len(word))
    refused = refusal_of_word(text, terminal, word, span, accepts, dialect)
    if refused is not None:
        return refused
    shown = word if len(word) <= 40 else word[:37] + "..."
    return Diagnostic(
        "SPQ-001",
        f"unexpected `{shown}`",
        span,
        expected(accepts, dialect),
        hint_for(text, terminal, word, span, accepts, dialect),
    )


def _word_at(text: str, offset: int, error: UnexpectedInput) -> tuple[str, str]:
    """Return the word at a place: its terminal in other contexts, if any, and its text."""
    bare = _WORD.match(text, offset)
    if isinstance(error, UnexpectedToken):
        token: Token = error.token
        if token.type in ("DURATION", "DATETIME"):
            return token.type, str(token).split()[0]
        if bare is None or ":" in token or len(token) > len(bare.group()):
            return token.type, str(token)
        return ("" if token.type == "QUERY_NAME" else token.type), bare.group()
    return "", bare.group() if bare else text[offset]


def _ends_early(text: str, accepts: set[str], dialect: Dialect) -> Diagnostic:
    opened = unclosed(text)
    if opened is not None:
        bracket = text[opened.start]
        closing = {"(": ")", "[": "]", "{": "}"}[bracket]
        return Diagnostic(
            "SPQ-002", f"this `{bracket}` is never closed", opened, "opens here", f"close it with `{closing}`"
        )
    end = len(text.rstrip())
    label = expected(accepts, dialect)
    hint = ""
    if "_SELECT" in accepts:
        hint = "declarations alone are no query: go on with SELECT, ASK, CONSTRUCT or DESCRIBE"
    elif "LBRACE" in accepts:
        hint = "the pattern stands in braces: WHERE { ?s ?p ?o }"
    return Diagnostic(
        "SPQ-002", "the query ends too early", Span(max(end - 1, 0), end), f"after this, {label}" if label else "", hint
    )


def _unreadable(text: str, offset: int, accepts: set[str]) -> Diagnostic | None:
    """Strings and IRIs that are never closed, and escapes that stand nowhere."""
    rest = text[offset:]
    quotes = re.match(r"\"{3}|'{3}|[\"']", rest)
    if quotes is not None and _is_open(rest, quotes.group()):
        quote = quotes.group()
        more = "" if len(quote) == 3 else f"; text over several lines stands in {quote * 3}"
        return Diagnostic(
            "SPQ-001",
            "this string is never closed",
            Span(offset, offset + len(quote)),
            "opens here",
            f"close it with {quote}{more}",
        )
    before = text[:offset].rstrip()
    if (
        re.match(r"[\"']", rest)
        and before.endswith(("''", '""'))
        and before[-3:-2] not in "\\"
        and before[-2:] == rest[0] * 2
    ):
        start = len(before) - 2
        return Diagnostic(
            "SPQ-001",
            "this string is never closed",
            Span(start, offset + 1),
            "opens here",
            f"close it with {rest[0] * 3}",
        )
    if rest.startswith("<") and "IRIREF" in accepts and not re.match(r"<[^<>\"{}|^`\\\x00-\x20]*>", rest):
        return _broken_iri(rest, offset)
    if rest.startswith("\\"):
        escape = re.match(r"\\[uU]?[0-9A-Fa-f]*", rest)
        length = len(escape.group()) if escape else 1
        return Diagnostic(
            "SPQ-004",
            f"`{rest[:length]}` is no character",
            Span(offset, offset + length),
            "",
            "escapes are \\uXXXX and \\UXXXXXXXX with hexadecimal digits",
        )
    if rest[0].isspace() or rest[0] in "\u200b\u00ad":
        return Diagnostic(
            "SPQ-001", f"a hidden character, U+{ord(rest[0]):04X}", Span(offset, offset + 1), "", "write a plain space"
        )
    return None


def _is_open(rest: str, quote: str) -> bool:
    if len(quote) == 3:
        return (
            re.match(r"(?:\"{3}(?:\"{0,2}(?:[^\"\\]|\\.))*\"{3}|'{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3})", rest, re.DOTALL)
            is None
        )
    return re.match(rf"{quote}(?:[^{quote}\\\n\r]|\\[^\n\r])*{quote}", rest) is None


def _broken_iri(rest: str, offset: int) -> Diagnostic | None:
    line = re.match(r"<[^\r\n>]*>?", rest)
    assert line is not None
    whole = line.group()
    if whole.endswith(">"):
        wrong = re.search(r"[<\"{}|^`\\\x00-\x20]", whole[1:-1])
        if wrong is None:
            return None
        character = "a space" if wrong.group() == " " else f"`{wrong.group()}`"
        place = offset + 1 + wrong.start()
        return Diagnostic(
            "SPQ-004",
            f"an IRI cannot hold {character}",
            Span(place, place + 1),
            "",
            f"percent-encode it: %{ord(wrong.group()):02X}",
        )
    address = re.match(r"<[^\s<>\"{}|^`\\]*", rest)
    assert address is not None
    if len(address.group()) < 2:
        return None
    span = Span(offset, offset + len(address.group()))
    return Diagnostic("SPQ-001", "this IRI is never closed", span, "opens here", "close it with >")
