"""Descriptions of the accepted tokens at a place, and hints for common mistakes.

Invariant: a hint is built from the tokens that the grammar accepts there, or from a known mistake that the text
resembles; otherwise there is none.
"""

from __future__ import annotations

import re

from anabranch.algebra.sparql_functions import SPARQL_FUNCTIONS
from anabranch.errors import Diagnostic, Span, closest
from anabranch.syntax.sparql.tree import Dialect

_SPELLINGS = {
    "COMMA": "`,`", "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`",
    "DOT": "`.`", "SEMICOLON": "`;`", "EQUAL": "`=`", "STAR": "`*`", "VBAR": "`|`", "CIRCUMFLEX": "`^`", "SLASH": "`/`",
    "BANG": "`!`", "QUESTION": "`?`", "PLUS": "`+`", "MINUS": "`-`", "TYPED": "`^^`", "LANGTAG": "a language tag",
    "VAR": "a variable", "IRIREF": "an IRI", "PNAME": "an IRI", "PNAME_NS": "a prefix such as `ex:`",
    "INTEGER": "a whole number", "NUMBER": "a number", "SIGNED": "a number", "STRING": "a string",
    "BOOLEAN": "true or false",
    "BLANK": "a blank node", "A": "`a`", "BUILTIN": "a function", "AGGREGATE_NAME": "an aggregate", "$END": "the end",
    "QUERY_NAME": "a name", "DATETIME": "a date and time", "DURATION": "a time such as 10s",
    "AND": "`&&`", "OR": "`||`", "UNEQUAL": "`!=`", "LESS": "`<`", "MORE": "`>`", "AT_MOST": "`<=`", "AT_LEAST": "`>=`",
    "EVERY_WHAT": "DURATION or TRIPLES", "SLIDING": "SLIDINGTRIPLES or SLIDINGDURATION",
}  # fmt: skip
_ELEMENTS = "_OPTIONAL _MINUS _GRAPH _SERVICE _FILTER _BIND _VALUES _WINDOW LBRACE"
_NODES = "VAR IRIREF PNAME BLANK STRING NUMBER SIGNED BOOLEAN LPAR LSQB"
_CALLS = "LPAR BUILTIN AGGREGATE_NAME _EXISTS _NOT IRIREF PNAME"
_SETS: tuple[tuple[str, frozenset[str], int], ...] = tuple(
    (label, frozenset(members.split()), least)
    for label, members, least in (
        ("an expression", f"BANG PLUS MINUS VAR NUMBER SIGNED STRING BOOLEAN {_CALLS}", 12),
        ("a pattern", f"{_ELEMENTS} {_NODES}", 15),
        ("a pattern", _ELEMENTS, 7),
        ("an operator", "EQUAL UNEQUAL LESS MORE AT_MOST AT_LEAST PLUS MINUS SIGNED STAR SLASH _IN _NOT AND OR", 10),
        ("a term", _NODES, 9),
        ("a value", "IRIREF PNAME STRING NUMBER SIGNED BOOLEAN UNDEF", 6),
        ("a predicate", "A VAR IRIREF PNAME BANG CIRCUMFLEX LPAR", 6),
        ("a path", "A IRIREF PNAME BANG CIRCUMFLEX LPAR", 5),
        ("a condition in brackets", _CALLS, 7),
        ("a function", "BUILTIN AGGREGATE_NAME _EXISTS _NOT", 4),
    )
)
"""A name for each set of terminals, told when so many of them are accepted."""
_STATEMENTS = frozenset(
    {"_ASK", "_BASE", "_CONSTRUCT", "_DESCRIBE", "_PREFIX", "_SELECT", "_REGISTER", "_FROM", "SEMICOLON"}
)
_KINDS = {"sparql": "", "csparql": "QUERY or STREAM", "lupos": "QUERY", "rspql": "RSTREAM, ISTREAM, DSTREAM or QUERY"}
_READ_ONLY = "streams and graphs are read only here; REGISTER STREAM name AS CONSTRUCT ... makes a new stream"
_WORDS = {
    **dict.fromkeys(("insert", "delete", "load", "clear", "drop", "create", "copy", "move", "add"), _READ_ONLY),
    "match": "MATCH is Cypher: SPARQL says SELECT ... WHERE { ?s ?p ?o }; queries in Seraph are files *.seraph",
    "return": "RETURN is Cypher: SPARQL says SELECT ?x WHERE { ... }",
    "emit": "EMIT is Seraph: SPARQL says SELECT ?x WHERE { ... }",
    "and": "and is written `&&`",
    "or": "or is written `||`",
    "not": "not is written `!`; NOT stands before IN and EXISTS",
    "like": 'use REGEX(?x, "...") or CONTAINS(?x, "...")',
    "between": "write ?x >= low && ?x <= high",
    "null": "there is no null: ask with BOUND(?x)",
    "is": "ask with BOUND(?x), isIRI(?x), isLiteral(?x) or isBlank(?x)",
    "case": "write IF(condition, then, else)",
    "bindings": "BINDINGS is now called VALUES",
    "let": "write BIND(expression AS ?x)",
    "join": "patterns that stand side by side in { } are joined",
    "skip": "SKIP is called OFFSET",
    "top": "write LIMIT n at the end",
    "every": "how often stands before the query: REGISTER QUERY name COMPUTED EVERY 5m AS ...",
    "now": "write a date and time, or leave STARTING AT out",
    "within": "the length of a window stands in FROM STREAM <iri> [RANGE 10m STEP 1m]",
}
_CONTINUOUS = {
    "register": "this is a continuous query: register it (session.register, anabranch run)",
    "stream": "streams need a continuous query: REGISTER QUERY q AS SELECT ... FROM STREAM <iri> [RANGE 10m STEP 1m]",
    "window": "windows belong to RSP-QL and LUPOS queries",
    "aggregate": "AGGREGATE { } belongs to C-SPARQL; SPARQL says GROUP BY and (COUNT(?x) AS ?n)",
}
_FUNCTIONS = tuple(name.removeprefix("sparql:").upper() for name in SPARQL_FUNCTIONS)
_CALLABLE = (
    *_FUNCTIONS,
    "BOUND",
    "IF",
    "COALESCE",
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "SAMPLE",
    "GROUP_CONCAT",
    "EXISTS",
)
_BARE = re.compile(r"[^\W\d]\w*\Z")
_GROUPS = {"WHERE", "OPTIONAL", "UNION", "MINUS", "EXISTS"}
_MODIFIERS = {"_GROUP", "_HAVING", "_ORDER", "_LIMIT", "_OFFSET"}
_TERMS = {"VAR", "IRIREF", "PNAME", "PNAME_NS", "BLANK", "STRING", "NUMBER", "INTEGER", "SIGNED", "BOOLEAN", "A"}


def expected(accepts: set[str], dialect: Dialect) -> str:
    """`expected ...`: the accepted terminals, whole sets of them by one name."""
    names = accepts - {"COMMENT", "WHITESPACE"}
    shown: list[str] = []
    if "$END" in names and len(names & _STATEMENTS) > 5:
        names -= _STATEMENTS
        shown.append("the next statement")
    for label, members, least in _SETS:
        if len(names & members) >= least:
            shown.append(label)
            names -= members
    for name in sorted(names, key=lambda one: (one == "$END", one not in _SPELLINGS, one)):
        if name == "KIND":
            shown.append(_KINDS[dialect])
        elif name in _SPELLINGS:
            shown.append(_SPELLINGS[name])
        else:
            shown.append(name.lstrip("_"))
    shown = list(dict.fromkeys(shown))
    if len(shown) > 12:
        shown = [*shown[:11], "..."]
        return "expected " + ", ".join(shown)
    if not shown:
        return ""
    return "expected " + (" or ".join(shown) if len(shown) < 3 else ", ".join(shown[:-1]) + " or " + shown[-1])


def refusal_of_word(
    text: str, terminal: str, word: str, span: Span, accepts: set[str], dialect: Dialect
) -> Diagnostic | None:
    """Mistakes that deserve a message of their own."""
    if terminal == "BLANK" or (word == "[" and "IRIREF" in accepts and "LSQB" not in accepts):
        return Diagnostic(
            "SPQ-001", "a blank node cannot stand here", span, expected(accepts, dialect), "use a variable"
        )
    bare = _BARE.match(word) is not None
    if bare and word.lower() in ("insert", "delete") and "_SELECT" in accepts:
        return Diagnostic("SPQ-001", f"`{word}` would change data", span, "", _READ_ONLY)
    called = bare and not terminal and re.match(r"\s*\(", text[span.end :]) and "BUILTIN" in accepts
    if called and word.lower() not in _WORDS:
        near = closest(word, _CALLABLE)
        hint = f"did you mean {near[0]}?" if near else "functions of your own are called by IRI: <http://...>(?x)"
        return Diagnostic("SPQ-001", f"there is no function `{word}`", span, "", hint)
    nothing = word == "{" or word.lower() in ("from", "where")
    if nothing and {"STAR", "VAR", "LPAR"} <= accepts and "BANG" not in accepts:
        return Diagnostic(
            "SPQ-001",
            "SELECT selects nothing",
            span,
            "before this, variables or `*`",
            "write SELECT * or SELECT ?x ?y",
        )
    return None


def hint_for(text: str, terminal: str, word: str, span: Span, accepts: set[str], dialect: Dialect) -> str:
    """The next thing to try, or nothing."""
    lowered = word.lower()
    if _BARE.match(word):
        hint = _hint_for_word(text, terminal, word, lowered, span, accepts, dialect)
        if hint:
            return hint
    by_place = _hint_by_place(text, terminal, word, span, accepts)
    if by_place:
        return by_place
    return _hint_by_looks(text, terminal, word, span, accepts, dialect)


def _hint_for_word(
    text: str, terminal: str, word: str, lowered: str, span: Span, accepts: set[str], dialect: Dialect
) -> str:
    keywords = {name.lstrip("_") for name in accepts if re.fullmatch(r"_?[A-Z]{2,}", name) and name not in _SPELLINGS}
    if lowered in _CONTINUOUS and (dialect == "sparql" or lowered in ("window", "aggregate")):
        return _CONTINUOUS[lowered]
    if lowered == "stream" and dialect == "lupos":
        return "LUPOS windows stand in the pattern: WHERE { WINDOW TYPE SLIDINGTRIPLES 100 { ... } }"
    near = closest(word, keywords)
    if near and len(word) > 2 and not terminal and lowered not in _WORDS:
        return f"did you mean {near[0]}?"
    if accepts == {"PNAME_NS"}:
        return f"a prefix ends in a colon: PREFIX {word}: <http://...>"
    if lowered in _WORDS:
        return _WORDS[lowered]
    if terminal == "AGGREGATE_NAME" and {"VAR", "LPAR"} <= accepts:
        return f"put it in brackets and name it: ({word.upper()}(?x) AS ?n)"
    if {"_AS", "_COMPUTED"} <= accepts and terminal:
        return f"AS stands between the name and the query: REGISTER QUERY name AS {word.upper()} ..."
    if re.match(r"\d\s*\Z", text[max(span.start - 1, 0) : span.start]) and dialect == "lupos":
        return "a plain number stands here, of milliseconds or triples"
    if "QUERY_NAME" in accepts:
        return "the query needs a name: REGISTER QUERY name AS ..."
    if not terminal and accepts and accepts <= {"IRIREF", "PNAME", "_NAMED", "_STREAM"}:
        return f"IRIs stand in angle brackets or have a prefix: <{word}>, ex:{word}"
    if not terminal and "VAR" in accepts and lowered not in ("true", "false"):
        if "PNAME" in accepts and text[span.end : span.end + 1] != "(":
            return f"variables begin with `?`: ?{word}; names of things are IRIs: ex:{word}"
        return f"variables begin with `?`: ?{word}"
    return ""


def _hint_by_place(text: str, terminal: str, word: str, span: Span, accepts: set[str]) -> str:
    if "DURATION" in accepts and re.match(r"\d", word):
        triples = f"; or a number of triples: TRIPLES {word}" if "_TRIPLES" in accepts else ""
        return f"a time needs its unit: {word}s, {word}m, {word}h{triples}"
    if "_RANGE" in accepts and re.match(r"\d", word):
        return f"write [RANGE {word} STEP ...] or [RANGE {word} TUMBLING]"
    if accepts == {"LSQB"}:
        return "say which part of the stream: [RANGE 10m STEP 1m]"
    if word == "." and "_PREFIX" in accepts:
        return "declarations have no `.` at the end"
    before = re.search(r"(\w+)\s*$", text[: span.start])
    keyword = before.group(1).upper() if before else ""
    if "LBRACE" in accepts and not {"RBRACE", "VAR"} & accepts and word != "}":
        shown = keyword if keyword in _GROUPS else "WHERE"
        return f"the pattern stands in braces: {shown} {{ ?s ?p ?o }}"
    if {"DOT", "SEMICOLON", "COMMA"} <= accepts and (terminal in _TERMS or word in "[("):
        return "end the triple before this with `.`; `;` goes on with the same subject, `,` with the same predicate too"
    if word in "}.;," and ({"LSQB", "STRING"} <= accepts or {"A", "VAR"} <= accepts) and "_FILTER" not in accepts:
        return "a triple has three parts: subject, predicate, object"
    if {"LPAR", "BUILTIN"} <= accepts and "VAR" not in accepts and keyword in ("FILTER", "HAVING"):
        return f"put the condition in brackets: {keyword} (...)"
    if word == ")" and "_AS" in accepts:
        return "name the expression: (... AS ?name)"
    if word == "," and "VAR" in accepts and {"_WHERE", "_HAVING", "$END"} & accepts:
        return "variables stand side by side, without commas"
    if terminal in _MODIFIERS and "$END" in accepts:
        return "these stand once each, in the order GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET, VALUES"
    if accepts == {"IRIREF"}:
        return "an IRI stands here, in angle brackets: <http://...>"
    return ""


def _hint_by_looks(text: str, terminal: str, word: str, span: Span, accepts: set[str], dialect: Dialect) -> str:
    operators = "EQUAL" in accepts
    if word == "=" and text[: span.start].endswith("="):
        return "equality is written `=`"
    if word.startswith("<>") and operators:
        return "inequality is written `!=`"
    if terminal == "IRIREF" and operators:
        return "this is read as an IRI; put a space after `<`"
    if word.startswith("&"):
        return "and is written `&&`"
    if word.startswith("|") and operators:
        return "or is written `||`"
    if word.lower().startswith(("@prefix", "@base")):
        return f"SPARQL writes {word[1:].upper()} without `@`, and without `.` at the end"
    if word == ";" and "$END" in accepts:
        return "one query stands here, without `;`"
    if word == "}" and ("$END" in accepts or "_SELECT" in accepts):
        return "there is one `}` more than `{`"
    if word in ("?", "$"):
        return "a variable has a name: ?x"
    if word == "%":
        return "there is no modulo in SPARQL; ?x - ?y * FLOOR(?x / ?y)"
    if re.match(r"\d", word) and re.match(r"[\d.]+[^\W\d]", text[span.start :]):
        return "names that begin with a digit stand only after `?` and after a prefix"
    return ""
