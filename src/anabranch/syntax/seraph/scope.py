"""Scopes: the names that a clause can see, with their columns and types.

Invariant: a scope is never changed, only extended into a new one; every visible name stands for exactly one column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anabranch.algebra.types import Type
from anabranch.errors import Span, closest
from anabranch.syntax.common import RESERVED
from anabranch.syntax.common import LoweringProblems as CommonProblems
from anabranch.syntax.seraph import tree as t
from anabranch.syntax.seraph.walk import names_in


@dataclass(frozen=True, slots=True)
class Binding:
    """A visible variable: its column, its type, and whether a comprehension inside the expression bound it."""

    column: str
    type: Type
    local: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """An expression that was computed already: where its text occurs again, the column replaces it."""

    expression: t.Expr
    column: str
    type: Type


@dataclass(frozen=True, slots=True)
class Scope:
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    replacements: tuple[Replacement, ...] = ()
    unusable: Mapping[str, str] = field(default_factory=dict)
    """Names that exist but may not be used here outside an aggregate, with the reason."""

    def get(self, name: str) -> Binding | None:
        return self.bindings.get(name)

    def bind(self, name: str, binding: Binding) -> Scope:
        return replace(self, bindings={**self.bindings, name: binding})

    def bind_inside(self, name: str, binding: Binding) -> Scope:
        """Return the scope inside of an expression that binds a name. Replacements that mention an outer variable of
        that name are dropped, because the same text means something else here."""
        kept = tuple(one for one in self.replacements if name not in names_in(one.expression))
        return replace(self.bind(name, binding), replacements=kept)

    def only(self, names: Collection[str]) -> Scope:
        """The scope with these of its names alone."""
        return replace(self, bindings={name: one for name, one in self.bindings.items() if name in names})

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(binding.column for binding in self.bindings.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.bindings)


class Problems(CommonProblems):
    """Problems with names, in Seraph's words."""

    def fresh(self, stem: str, counted: str | None = "") -> str:
        return super().fresh(stem, counted)

    def reserved(self, name: str, span: Span, hint: str = "") -> None:
        """Refuse a name that every row of a continuous answer carries already."""
        if name in RESERVED:
            label = "every row carries its window's bounds under this name"
            self.add("SER-031", f"`{name}` is reserved", span, label, hint)

    def unusable(self, name: str, span: Span, scope: Scope) -> bool:
        """Refuse a name that exists but cannot be read here; say whether it is one."""
        reason = scope.unusable.get(name)
        if reason is not None:
            hint = f"project `{name}` on its own first: WITH {name}, ..."
            self.add("SER-024", reason, span, "neither grouped nor aggregated", hint)
        return reason is not None

    def undefined(self, name: str, span: Span, scope: Scope) -> None:
        near = closest(name, scope.names)
        hint = f"did you mean `{near[0]}`?  " if near else ""
        listed = ", ".join(scope.names) if scope.names else "nothing"
        self.add(
            "SER-017",
            f"no variable `{name}` in scope",
            span,
            "not bound by MATCH, WITH or UNWIND",
            f"{hint}In scope: {listed}.",
        )
