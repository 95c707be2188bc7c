"""Terms and declarations from lark's parse tree, and the driver that builds a tree bottom-up.

The driver walks without recursion and from left to right: a declaration is known before the names that need it, and
deep nesting is refused with a place instead of exhausting the stack.

Invariant: problems are collected, never raised; a part that cannot be read is replaced by a harmless one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lark import Token, Tree
from lark.tree import Meta

from anabranch.errors import Diagnostic, Span, closest
from anabranch.model.terms import FALSE, RDF_NIL, TRUE, Iri, Literal, tagged
from anabranch.syntax.sparql import literals
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.prologue import MORE_KNOWN, Prologue
from anabranch.syntax.sparql.scan import ScannedText

MAX_DEPTH = 200  # of lark's tree; two to a group or a call
_Read = TypeVar("_Read")


class TooDeep(Exception):
    def __init__(self, span: Span) -> None:
        self.span = span


class TermBuilder:
    """One method for each rule of the grammar, called with the place and the results of its parts."""

    def __init__(self, source: ScannedText, prologue: Prologue) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.declared = prologue
        self._elsewhere: set[str] = set()  # prefixes that other statements of the file declare for themselves
        self._anonymous = 0

    def build(self, root: Tree[Token]) -> Any:
        frames: list[tuple[Tree[Token], Any, list[Any]]] = [(root, iter(root.children), [])]
        while True:
            node, rest, built = frames[-1]
            for child in rest:
                if isinstance(child, Tree):
                    frames.append((child, iter(child.children), []))
                    if len(frames) > MAX_DEPTH:
                        raise TooDeep(self._span(child.meta))
                    break
                built.append(child)
            else:
                frames.pop()
                value = getattr(self, node.data)(self._span(node.meta), *built)
                if not frames:
                    return value
                frames[-1][2].append(value)

    def _span(self, meta: Meta) -> Span:
        return Span(0, 0) if meta.empty else self.source.span(meta.start_pos, meta.end_pos)

    def _token_span(self, token: Token) -> Span:
        return self.source.span(token.start_pos or 0, token.end_pos or 0)

    def _problem(self, code: str, message: str, span: Span | None, label: str = "", hint: str = "") -> None:
        self.problems.append(Diagnostic(code, message, span, label, hint))

    def _read(self, reader: Callable[[str], _Read], token: Token, fallback: _Read) -> _Read:
        try:
            return reader(str(token))
        except literals.TermProblem as problem:
            self._problem("SPQ-004", problem.message, self._token_span(token), "", problem.hint)
            return fallback

    # --- declarations ---

    def prologue(self, span: Span, *_: Any) -> None:
        return None

    def base(self, span: Span, reference: Token) -> None:
        self.declared.base = self.declared.resolve(self._read(literals.read_iri_reference, reference, ""))

    def prefix(self, span: Span, name: Token, reference: Token) -> None:
        self.declared.declare(str(name)[:-1], self._read(literals.read_iri_reference, reference, ""))

    # --- terms ---

    def var(self, span: Span, name: Token) -> t.VarTree:
        return t.VarTree(str(name)[1:], span=span)

    def iri(self, span: Span, reference: Token) -> t.TermTree:
        return t.TermTree(Iri(self._iri_of(reference)), span=span)

    def prefixed(self, span: Span, name: Token) -> t.TermTree:
        return t.TermTree(Iri(self._iri_of(name)), span=span)

    def _iri_of(self, token: Token) -> str:
        """The IRI of `<reference>` or `prefix:name`."""
        if token.type == "IRIREF":
            return self.declared.resolve(self._read(literals.read_iri_reference, token, ""))
        prefix, _, local = str(token).partition(":")
        namespace = self.declared.namespace(prefix)
        if namespace is None:
            self._undeclared(prefix, self._token_span(token))
            return str(token)
        self.declared.prefixes.setdefault(prefix, namespace)
        return namespace + literals.read_local_name(local)

    def _undeclared(self, prefix: str, span: Span) -> None:
        message = f"the prefix `{prefix}:` is not declared" if prefix else "the empty prefix `:` is not declared"
        if any(problem.code == "SPQ-003" and problem.message == message for problem in self.problems):
            return
        near = closest(prefix, self.declared.prefixes) if prefix else []
        if prefix in MORE_KNOWN:
            hint = f"put this line first: PREFIX {prefix}: <{MORE_KNOWN[prefix]}>"
        elif near and prefix not in self._elsewhere:
            hint = f"did you mean `{near[0]}:`?  Else declare it: PREFIX {prefix}: <...>"
        elif prefix in self._elsewhere:
            hint = "another statement declares it for itself: put the PREFIX line before the first REGISTER to share it"
        else:
            hint = f"declare it before the query: PREFIX {prefix}: <http://...>"
        self._problem("SPQ-003", message, Span(span.start, span.start + len(prefix) + 1), "", hint)

    def string(self, span: Span, token: Token) -> str:
        return self._read(literals.read_string, token, "")

    def plain_literal(self, span: Span, text: str) -> t.TermTree:
        return t.TermTree(Literal(text), span=span)

    def tagged_literal(self, span: Span, text: str, tag: Token) -> t.TermTree:
        return t.TermTree(tagged(text, str(tag)[1:]), span=span)

    def typed_literal(self, span: Span, text: str, datatype: t.TermTree) -> t.TermTree:
        assert isinstance(datatype.term, Iri)
        return t.TermTree(Literal(text, datatype.term.value), span=span)

    def number(self, span: Span, token: Token) -> t.TermTree:
        return t.TermTree(literals.read_number(str(token)), span=span)

    def boolean(self, span: Span, token: Token) -> t.TermTree:
        return t.TermTree(TRUE if str(token).lower() == "true" else FALSE, span=span)

    def blank(self, span: Span, label: Token) -> t.BlankTree:
        return t.BlankTree(str(label)[2:], span=span)

    def anonymous(self, span: Span) -> t.BlankTree:
        self._anonymous += 1
        return t.BlankTree(f" {self._anonymous}", span=span)

    def nil(self, span: Span) -> t.TermTree:
        return t.TermTree(RDF_NIL, span=span)
