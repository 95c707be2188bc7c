"""Bounds on RDF documents: a small text must not become a large graph, nor take the parser down.

pyoxigraph replaces every XML entity, searches all open elements for a namespace, follows the terms of a JSON-LD context
by recursion, and writes a prefix out in each IRI. By each of these, a few kilobytes can cost gigabytes, minutes, or
more stack than there is.

Invariant: a document that passes `refuse_growth` is parsed in time and space that follow its length, except for
prefixes; the parser's output is counted by a `TextBudget`, which ends the parsing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pyoxigraph as ox

from anabranch.errors import MalformedEventError
from anabranch.model.terms import Term, Triple

DEEPEST_XML = 2_000
LONGEST_CHAIN = 100
"""How many terms of a JSON-LD context may be defined by each other: five thousand exhaust the stack of a thread."""
_FREE = 16 << 20
_GROWTH = 32  # times the document; ontologies with entities and prefixes stay below ten
_USUAL = 400  # characters of a triple whose size is that of its objects in memory, whatever its terms are

_ENTITY = re.compile(
    rb"<!ENTITY[ \t\r\n]+[^\s\"'%&;<>]+[ \t\r\n]+"
    rb'"(?P<value>(?:[^"&<]|&(?:#[0-9]+|#x[0-9A-Fa-f]+|amp|lt|gt|quot|apos);)*+)"[ \t\r\n]*>'
)
_REFERENCE = re.compile(rb"&[^#&;\s][^&;\s]*;")
_TAG = re.compile(rb"<(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+>")
_SKIPPED = ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>"))


def refuse_growth(data: bytes | str, form: ox.RdfFormat) -> None:
    """Refuse a document that asks the parser for far more than its own length; raises MalformedEventError."""
    if form not in (ox.RdfFormat.RDF_XML, ox.RdfFormat.JSON_LD):
        return
    plain = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if form == ox.RdfFormat.RDF_XML:
        _refuse_entities(plain)
        _refuse_depth(plain)
    else:
        _refuse_chains(plain)


class TextBudget:
    """Counts the characters of long terms that come out of a document, and ends its reading when they are too many."""

    def __init__(self, length: int) -> None:
        self._most = _FREE + _GROWTH * length
        self._left = self._most

    def take(self, triple: Triple, graph: Term | None) -> None:
        subject, predicate, object_ = triple
        size = sum(map(len, subject)) + sum(map(len, predicate)) + sum(map(len, object_))
        if graph is not None:
            size += sum(map(len, graph))
        if size > _USUAL:
            self._left -= size
            if self._left < 0:
                raise MalformedEventError(
                    f"its long terms have more than {self._most:,} characters together, far more than the document: "
                    "a prefix or a name is too long to be repeated so often"
                )


# --- RDF/XML ----------------------------------------------------------------------------------------------------------


def _refuse_entities(data: bytes) -> None:
    """Entities may stand for plain texts, as in `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`, and for no more."""
    at, longest = data.find(b"<!ENTITY"), 0
    if at < 0:
        return
    while at >= 0:
        found = _ENTITY.match(data, at)
        if found is None:
            shown = data[at : at + 60].partition(b">")[0].decode(errors="replace")
            raise MalformedEventError(
                f'`{shown}`: an entity is a name and a plain text, as in <!ENTITY owl "http://example.org/owl#">; '
                "one of other entities, of a file or of the web is not read"
            )
        longest = max(longest, len(found["value"]))
        at = data.find(b"<!ENTITY", found.end())
    # Which name stands for which text is the parser's business: no reference becomes more than the longest text.
    references = sum(1 for _ in _REFERENCE.finditer(data))
    if references * longest > _FREE // 16 + _GROWTH * len(data):
        raise MalformedEventError(
            f"{references:,} references to entities of up to {longest:,} characters: far more than the document"
        )


def _refuse_depth(data: bytes) -> None:
    depth, at = 0, data.find(b"<")
    while at >= 0:
        closing = next((end for start, end in _SKIPPED if data.startswith(start, at)), None)
        if closing is not None:
            at = data.find(closing, at)
            if at < 0:
                return  # cut off: the parser says where
            at = data.find(b"<", at)
            continue
        found = None if data.startswith(b"<!", at) else _TAG.match(data, at)
        if found is not None:
            if data.startswith(b"</", at):
                depth -= 1
            elif not data.startswith(b"/>", found.end() - 2):
                depth += 1
                if depth > DEEPEST_XML:
                    raise MalformedEventError(f"more than {DEEPEST_XML:,} elements stand inside each other")
        at = data.find(b"<", at + 1 if found is None else found.end())


# --- JSON-LD ----------------------------------------------------------------------------------------------------------


class _Object(dict[str, Any]):
    """An object of JSON that still has the pairs which `dict` would forget: the parser reads them all."""

    pairs: list[tuple[str, Any]]


def _refuse_chains(data: bytes) -> None:
    names = data.count(b":") + data.count(b",")
    if names <= LONGEST_CHAIN or (b"@context" not in data and b"\\u" not in data):
        return
    longest = 0

    def checked(pairs: list[tuple[str, Any]]) -> _Object:
        nonlocal longest
        for name, value in pairs:
            if name == "@context":
                contexts = [one for one in (value if isinstance(value, list) else (value,)) if isinstance(one, _Object)]
                longest = max(longest, sum(_longest_name(one.pairs) for one in contexts))
        found = _Object(pairs)
        found.pairs = pairs
        return found

    try:
        json.loads(data, object_pairs_hook=checked)
    except (ValueError, RecursionError):
        return  # no JSON: the parser says where
    if longest > _USUAL and longest * names > _FREE + _GROWTH * len(data):
        raise MalformedEventError(
            f"its @context makes names of up to {longest:,} characters, which is far too long for so many of them"
        )


def _longest_name(context: list[tuple[str, Any]]) -> int:
    """How long a name can become by a context. Refuses one whose terms are defined by each other for too long."""
    needs: dict[str, set[str]] = {name: set() for name, _ in context}
    lengths = dict.fromkeys(needs, 0)
    for name, value in context:
        said = [one for _, one in value.pairs] if isinstance(value, _Object) else [value]
        texts = [one for one in (name, *said) if isinstance(one, str)]
        parts = {part for one in texts for part in (one, one.partition(":")[0])}
        needs[name] |= (parts & needs.keys()) - {name}
        lengths[name] = max(lengths[name], *map(len, texts))
    common = lengths.get("@vocab", 0) + lengths.get("@base", 0)
    return common + max((length for _, length in _chains(needs, lengths)), default=0)


def _chains(needs: dict[str, set[str]], lengths: dict[str, int]) -> Iterable[tuple[int, int]]:
    """Of each term: how many terms its definition goes through, and how long they are together."""
    known: dict[str, tuple[int, int]] = {}
    for first in needs:
        path = {} if first in known else {first: iter(needs[first])}
        while path:
            name = next(reversed(path))
            following = next((one for one in path[name] if one not in path and one not in known), None)
            if following is not None:
                path[following] = iter(needs[following])
            else:
                path.pop(name)
                behind = [known[one] for one in needs[name] if one in known]
                known[name] = (
                    1 + max((depth for depth, _ in behind), default=0),
                    lengths[name] + max((length for _, length in behind), default=0),
                )
            if len(path) > LONGEST_CHAIN or known.get(name, (0, 0))[0] > LONGEST_CHAIN:
                raise MalformedEventError(
                    f"its @context defines more than {LONGEST_CHAIN} terms by each other, one after the other"
                )
    return known.values()
