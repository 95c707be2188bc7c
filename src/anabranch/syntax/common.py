"""Parts that all languages share: problems that are collected and then raised, and the walk over a syntax tree.

Invariant: all problems of a text are raised together, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from anabranch.algebra.operators import Operator, ResultForm
from anabranch.errors import Diagnostic, QueryError, QuerySyntaxError, Span

RESERVED = ("win_start", "win_end")
"""Columns that every row of a continuous answer has."""


class PlainQuery(NamedTuple):
    """A plain query's plan; whether it gives rows, true or false, or a graph; and its prefixes."""

    plan: Operator
    form: ResultForm
    prefixes: tuple[tuple[str, str], ...] = ()


class LiteralProblem(ValueError):
    """A literal that cannot be read, in the user's words."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(message)


class LoweringProblems:
    """Collects diagnostics while statements are lowered, and creates names that cannot collide with a user's."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._fresh: dict[str, int] = {}

    def add(self, code: str, message: str, span: Span | None, label: str = "", hint: str = "") -> None:
        diagnostic = Diagnostic(code, message, span, label, hint)
        if diagnostic not in self.found:
            self.found.append(diagnostic)

    def refuse(self, classes: Mapping[str, type[QueryError]], text: str, file_name: str) -> None:
        """Raise all problems, if there are any, as the error that the code of the first one stands for."""
        if self.found:
            self.found.sort(key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0)
            raise classes.get(self.found[0].code, QuerySyntaxError)(self.found, text, file_name)

    def next_statement(self) -> None:
        """Fresh names begin again: a statement means the same wherever it stands in a text."""
        self._fresh = {}

    def fresh(self, stem: str, counted: str | None = None) -> str:
        """A name that no query can spell. Numbers are counted for each stem, or for what `counted` says."""
        counted = stem if counted is None else counted
        self._fresh[counted] = self._fresh.get(counted, 0) + 1
        return f" {stem}{self._fresh[counted]}"


def walk_tree(part: Any, enter: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The part and everything below it, outside in, in the order of the text; below a node only where `enter`, if it is
    given, allows it."""
    pending = [part]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(reversed(current))
        elif is_dataclass(current) and not isinstance(current, type):
            yield current
            if enter is None or enter(current):
                pending.extend(reversed(parts_of(current)))


def parts_of(node: Any) -> list[Any]:
    """Return the direct children of a node of a tree, or of a tuple of nodes."""
    if isinstance(node, tuple):
        return list(node)
    if not is_dataclass(node) or isinstance(node, type):
        return []
    return [getattr(node, one.name) for one in fields(node) if one.name != "span"]
