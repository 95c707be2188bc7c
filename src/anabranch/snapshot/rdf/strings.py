"""String functions of SPARQL (17.4.3), with their rules about language tags.

Invariant: characters are code points; a result carries the tag of the first argument where SPARQL says so, and two
arguments that are not compatible (17.4.3.1.2) have no result.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from urllib.parse import quote

from anabranch.model.terms import XSD_STRING, Literal
from anabranch.model.values import Value
from anabranch.snapshot.bounded_regex import fits, refuse_unbounded
from anabranch.snapshot.limits import check_text
from anabranch.snapshot.rdf.arithmetic import rounded
from anabranch.snapshot.rdf.regexes import compiled, template
from anabranch.snapshot.rdf.values import Number, integer, number_of, to_float

_EMPTY = Literal("")


def is_string(term: Value) -> bool:
    """A plain string or a language-tagged one."""
    return isinstance(term, Literal) and (term.datatype == XSD_STRING or term.language != "")


def _string(term: Value) -> Literal | None:
    return term if is_string(term) else None  # type: ignore[return-value]


def _plain(term: Value) -> str | None:
    return term.lexical if isinstance(term, Literal) and term.datatype == XSD_STRING else None


def _pair(left: Value, right: Value) -> tuple[Literal, Literal] | None:
    """The two strings, when they are compatible."""
    one, other = _string(left), _string(right)
    if one is None or other is None or (other.language and other.language != one.language):
        return None
    return one, other


def _like(text: str, model: Literal) -> Literal:
    return Literal(text, model.datatype, model.language)


# --- lengths and parts ------------------------------------------------------------------------------------------------


def length(term: Value) -> Literal | None:
    text = _string(term)
    return None if text is None else integer(len(text.lexical))


def substring(term: Value, start: Value, count: Value | None = None) -> Literal | None:
    """Return a substring. Characters are counted from 1; positions outside of the string are ignored."""
    text, first = _string(term), number_of(start)
    most = math.inf if count is None else number_of(count)
    if text is None or first is None or most is None:
        return None
    low = _rounded(first)
    high = low + _rounded(most)
    if low != low or high != high:
        return _like("", text)
    size = len(text.lexical)
    begin, end = int(min(max(low, 1), size + 1)), int(min(max(high, 1), size + 1))
    return _like(text.lexical[begin - 1 : max(begin, end) - 1], text)


def _rounded(number: Number) -> float:
    """Whole, halves upward. A float is exact wherever a string can reach."""
    if isinstance(number, int) or (isinstance(number, float) and not math.isfinite(number)):
        return to_float(number)
    return to_float(rounded(Decimal(number)))


def upper(term: Value) -> Literal | None:
    text = _string(term)
    return None if text is None else _like(text.lexical.upper(), text)


def lower(term: Value) -> Literal | None:
    text = _string(term)
    return None if text is None else _like(text.lexical.lower(), text)


def starts_with(term: Value, prefix: Value) -> bool | None:
    pair = _pair(term, prefix)
    return None if pair is None else pair[0].lexical.startswith(pair[1].lexical)


def ends_with(term: Value, suffix: Value) -> bool | None:
    pair = _pair(term, suffix)
    return None if pair is None else pair[0].lexical.endswith(pair[1].lexical)


def contains(term: Value, part: Value) -> bool | None:
    pair = _pair(term, part)
    return None if pair is None else pair[1].lexical in pair[0].lexical


def before(term: Value, part: Value) -> Literal | None:
    pair = _pair(term, part)
    if pair is None:
        return None
    head, found, _ = _partition(*pair)
    return _like(head, pair[0]) if found else _EMPTY


def after(term: Value, part: Value) -> Literal | None:
    pair = _pair(term, part)
    if pair is None:
        return None
    _, found, tail = _partition(*pair)
    return _like(tail, pair[0]) if found else _EMPTY


def _partition(text: Literal, part: Literal) -> tuple[str, bool, str]:
    place = text.lexical.find(part.lexical)
    if place < 0:
        return "", False, ""
    return text.lexical[:place], True, text.lexical[place + len(part.lexical) :]


def concat(*terms: Value) -> Literal | None:
    """The result has a language when all arguments have that one."""
    strings = [_string(term) for term in terms]
    found = [one for one in strings if one is not None]
    if len(found) < len(strings):
        return None
    check_text(sum(len(one.lexical) for one in found))
    text = "".join([one.lexical for one in found])
    tags = {one.language for one in found}
    return _like(text, found[0]) if len(tags) == 1 else Literal(text)


def encode_for_uri(term: Value) -> Literal | None:
    text = _string(term)
    return None if text is None else Literal(quote(text.lexical, safe="", errors="replace"))


def lang_matches(tag: Value, language_range: Value) -> bool | None:
    """Basic filtering of RFC 4647: the range is the tag or its beginning, part by part; `*` is any tag at all."""
    have, want = _plain(tag), _plain(language_range)
    if have is None or want is None:
        return None
    if want == "*":
        return have != ""
    have, want = have.lower(), want.lower()
    return have == want or (want != "" and have.startswith(f"{want}-"))


# --- patterns ---------------------------------------------------------------------------------------------------------


def regex(term: Value, pattern: Value, flags: Value = _EMPTY) -> bool | None:
    text, expression, options = _string(term), _plain(pattern), _plain(flags)
    if text is None or expression is None or options is None:
        return None
    machine = compiled(expression, options)
    return None if machine is None else fits(machine, text.lexical, whole=False)


def replace(term: Value, pattern: Value, replacement: Value, flags: Value = _EMPTY) -> Literal | None:
    """Every match gives way to the replacement; `$1` stands for a group. A pattern that matches nothing at all, the
    empty string, is an error, as in XPath."""
    text, expression, new, options = _string(term), _plain(pattern), _plain(replacement), _plain(flags)
    if text is None or expression is None or new is None or options is None:
        return None
    machine = compiled(expression, options)
    if machine is None or machine.search("") is not None:
        return None
    refuse_unbounded(machine, text.lexical)
    parts = (new,) if "q" in options else template(new, machine.groups)
    if parts is None:
        return None
    constant = "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None
    made = 0

    def put(found: re.Match[str]) -> str:
        nonlocal made
        if constant is not None:
            put_in = constant
        else:
            put_in = "".join([part if isinstance(part, str) else found[part] or "" for part in parts])
        made += len(put_in)
        check_text(made)
        return put_in

    return _like(machine.sub(put, text.lexical), text)
