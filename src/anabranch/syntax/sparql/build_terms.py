"""Terms and declarations from lark's parse tree.

Invariant: a name is resolved with the declarations before it; one that cannot be resolved stays as it is written.
"""

from __future__ import annotations

from lark import Token

from anabranch.errors import Span, closest
from anabranch.model.terms import FALSE, RDF_NIL, TRUE, Iri, Literal, tagged
from anabranch.syntax.building import TreeBuilder, always, node
from anabranch.syntax.sparql import literals
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.prologue import MORE_KNOWN, Prologue
from anabranch.syntax.sparql.scan import ScannedText


class TermBuilder(TreeBuilder):
    """One method for each rule of the grammar, called with the place and the results of its parts."""

    max_depth = 200  # two to a group or a call
    prologue = always(None)
    nil = node(t.TermTree, RDF_NIL)

    def __init__(self, source: ScannedText, prologue: Prologue) -> None:
        super().__init__(source.span)
        self.declared = prologue
        self._elsewhere: set[str] = set()  # prefixes that other statements of the file declare for themselves
        self._anonymous = 0

    # --- declarations ---

    def base(self, span: Span, reference: Token) -> None:
        self.declared.base = self.declared.resolve(self._read(literals.read_iri_reference, reference, ""))

    def prefix(self, span: Span, name: Token, reference: Token) -> None:
        self.declared.declare(str(name)[:-1], self._read(literals.read_iri_reference, reference, ""))

    # --- terms ---

    def var(self, span: Span, name: Token) -> t.VarTree:
        return t.VarTree(str(name)[1:], span=span)

    def iri(self, span: Span, reference: Token) -> t.TermTree:
        return t.TermTree(Iri(self._iri_of(reference)), span=span)

    prefixed = iri

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
