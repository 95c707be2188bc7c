"""Groups and what stands in them, from lark's parse tree.

Invariant: the elements of a group keep the order of the text; two blocks of triples never stand side by side.
"""

from __future__ import annotations

from typing import Any, cast

from lark import Token

from anabranch.errors import Span
from anabranch.syntax.building import always, node
from anabranch.syntax.sparql import literals
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.build_expressions import ExpressionBuilder


class GroupBuilder(ExpressionBuilder):
    """Groups."""

    optional = node(t.OptionalTree)
    minus = node(t.MinusTree)
    graph = node(t.GraphTree)
    filter = node(t.FilterTree)
    bind = node(t.BindTree)
    window = node(t.NamedWindowTree)
    undef = always(None)

    def group(self, span: Span, *elements: Any) -> t.GroupTree:
        return t.GroupTree(
            tuple(t.SubSelectTree(one, span=one.span) if isinstance(one, t.QueryTree) else one for one in elements),
            span=span,
        )

    def union(self, span: Span, *parts: t.GroupTree | t.GraphTree) -> t.ElementTree:
        if len(parts) == 1:
            return parts[0]
        groups = (part if isinstance(part, t.GroupTree) else t.GroupTree((part,), span=part.span) for part in parts)
        return t.UnionTree(tuple(groups), span=span)

    def service(
        self, span: Span, silent: Token | None, name: t.VarTree | t.TermTree, group: t.GroupTree
    ) -> t.ElementTree:
        return t.ServiceTree(name, group, silent is not None, span=span)

    def lupos_window(self, span: Span, kind: Token, size: Token, group: t.GroupTree) -> t.ElementTree:
        named = "triples" if str(kind).upper().endswith("TRIPLES") else "duration"
        return t.LuposWindowTree(cast(Any, named), self._positive(size), group, span=span)

    def _positive(self, token: Token) -> int:
        """A number of triples or milliseconds."""
        number = self._read(literals.read_whole, token, 1)
        if number == 0:
            self._problem("SPQ-004", "this number must be above zero", self._token_span(token))
        return number

    # --- VALUES ---

    def row(self, span: Span, *values: t.TermTree | None) -> tuple[Span, tuple[t.TermTree | None, ...]]:
        return span, values

    def one_column(self, span: Span, variable: t.VarTree, *values: t.TermTree | None) -> tuple[Any, Any]:
        return (variable,), tuple((value,) for value in values)

    def columns(self, span: Span, *parts: Any) -> tuple[Any, Any]:
        variables = tuple(part for part in parts if isinstance(part, t.VarTree))
        rows: list[tuple[t.TermTree | None, ...]] = []
        for place, values in parts[len(variables) :]:
            if len(values) != len(variables):
                named, given = _counted(len(variables), "variable"), _counted(len(values), "value")
                self._problem(
                    "SPQ-007",
                    f"VALUES names {named}, and this row has {given}",
                    place,
                    "",
                    "write UNDEF where a row has no value",
                )
            rows.append(values)
        return variables, tuple(rows)

    def values(self, span: Span, block: tuple[Any, Any]) -> t.ValuesTree:
        return t.ValuesTree(block[0], block[1], span=span)


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
