"""The base of both families' builders: a syntax tree from lark's parse tree, bottom-up.

A builder has one attribute for each rule of its grammar, called with the place in the text and the results of the
rule's parts. Rules that only make a node, a tuple or a pair are declared with the functions here.

The driver walks without recursion and from left to right: a declaration is known before the names that need it, and
deep nesting is refused with a place instead of exhausting the stack.

Invariant: problems are collected, never raised; a part that cannot be read is replaced by a harmless one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypeVar

from lark import Token, Tree

from anabranch.errors import Diagnostic, Span
from anabranch.syntax.common import LiteralProblem

GrammarRule: TypeAlias = Callable[..., Any]
_Read = TypeVar("_Read")


class TooDeep(Exception):
    def __init__(self, span: Span) -> None:
        self.span = span


class TreeBuilder:
    """Builds a tree. `place` makes a span from two offsets of the parsed text."""

    max_depth: ClassVar[int]
    """Levels of lark's tree."""

    def __init__(self, place: Callable[[int, int], Span] = Span) -> None:
        self.problems: list[Diagnostic] = []
        self._place = place

    def build(self, root: Tree[Token]) -> Any:
        frames: list[tuple[Tree[Token], Any, list[Any]]] = [(root, iter(root.children), [])]
        while True:
            node, rest, built = frames[-1]
            for child in rest:
                if isinstance(child, Tree):
                    frames.append((child, iter(child.children), []))
                    if len(frames) > self.max_depth:
                        raise TooDeep(self._span(child))
                    break
                built.append(child)
            else:
                frames.pop()
                value = getattr(self, node.data)(self._span(node), *built)
                if not frames:
                    return value
                frames[-1][2].append(value)

    def _span(self, node: Tree[Token]) -> Span:
        return Span(0, 0) if node.meta.empty else self._place(node.meta.start_pos, node.meta.end_pos)

    def _token_span(self, token: Token) -> Span:
        return self._place(token.start_pos or 0, token.end_pos or 0)

    def _problem(self, code: str, message: str, span: Span | None, label: str = "", hint: str = "") -> None:
        self.problems.append(Diagnostic(code, message, span, label, hint))

    def _read(self, reader: Callable[[str], _Read], token: Token, fallback: _Read) -> _Read:
        try:
            return reader(str(token))
        except LiteralProblem as problem:
            self._problem(problem.code, problem.message, self._token_span(token), "", problem.hint)
            return fallback

    @staticmethod
    def bare(part: Any) -> Any:
        """The part as it is stored in a node; a family whose grammar is wider than its language narrows it here."""
        return part


def node(kind: Callable[..., Any], *first: Any, **fixed: Any) -> GrammarRule:
    """A rule whose parts are the fields of a node, after those that the rule itself says."""

    def build(self: TreeBuilder, span: Span, *parts: Any) -> Any:
        return kind(*first, *map(self.bare, parts), span=span, **fixed)

    return build


def group(kind: Callable[..., Any]) -> GrammarRule:
    """A rule whose parts are one field of a node."""

    def build(self: TreeBuilder, span: Span, *parts: Any) -> Any:
        return kind(parts, span=span)

    return build


def alternating(kind: Callable[..., Any]) -> GrammarRule:
    """A rule of parts with others between them: two fields of a node."""

    def build(self: TreeBuilder, span: Span, *parts: Any) -> Any:
        return kind(parts[0::2], parts[1::2], span=span)

    return build


def marked(mark: str) -> GrammarRule:
    """A rule of one part, which is told from its neighbours by a mark."""

    def build(self: TreeBuilder, span: Span, part: Any) -> tuple[str, Any]:
        return mark, part

    return build


def always(value: Any) -> GrammarRule:
    """A rule that has one meaning, whatever its parts are."""

    def build(self: TreeBuilder, span: Span, *parts: Any) -> Any:
        return value

    return build


def listed(self: TreeBuilder, span: Span, *parts: Any) -> tuple[Any, ...]:
    """A rule of several parts."""
    return parts


def pair(self: TreeBuilder, span: Span, *parts: Any) -> tuple[Any, ...]:
    """A rule of two parts that belong together."""
    return tuple(map(self.bare, parts))


def same(self: TreeBuilder, span: Span, part: Any) -> Any:
    """A rule that is its only part."""
    return self.bare(part)
