"""Parsers from grammars. The tables of a grammar take a second to compute, so they are cached beside the bytecode.

A parser's state accepts some of the terminals, and lark compiles one expression of all that a state accepts. A short
query goes through fifty states, and compiling SPARQL's names fifty times takes ten times as long as reading it. Here
each terminal is an expression of its own, which all states share (`re` remembers it); they are tried in lark's order,
as the alternatives of the one expression are.

Invariant: cached tables are used only if they were made from exactly this grammar by this version of lark; where no
file can be written, they are computed each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from importlib.util import cache_from_source
from typing import Any

from lark import Lark
from lark.lexer import BasicLexer, ContextualLexer, Scanner, _create_unless


def parser_of(package: str, names: Sequence[str], starts: Sequence[str]) -> Lark:
    """The parser of some grammar files of a package, one put on top of the other."""
    folder = resources.files(package)
    return Lark(
        "\n".join(folder.joinpath(f"{name}.lark").read_text(encoding="utf-8") for name in names),
        parser="lalr",
        lexer="contextual",
        start=list(starts),
        propagate_positions=True,
        maybe_placeholders=True,
        cache=_kept(f"{package.rpartition('.')[2]}-{names[-1]}"),
        _plugins={"ContextualLexer": _Lexer},
    )


class _TerminalScanner(Scanner):
    """A scanner that tries one terminal after the other."""

    def _build_mres(self, terminals: Any, max_size: int) -> Any:
        return super()._build_mres(terminals, 1)  # type: ignore[no-untyped-call]


class _StateLexer(BasicLexer):
    """A lexer of the terminals that some states of the parser accept."""

    def _build_scanner(self) -> Scanner:
        settings = self.g_regex_flags, self.re, self.use_bytes
        terminals, self.callback = _create_unless(self.terminals, *settings)  # type: ignore[no-untyped-call]
        return _TerminalScanner(terminals, *settings)  # type: ignore[no-untyped-call]


class _Lexer(ContextualLexer):
    BasicLexer = _StateLexer


def _kept(name: str) -> str:
    """Return the path where Python itself would cache the bytecode of a module of this name."""
    return cache_from_source(__file__.replace("grammars.py", f"{name}.py")).removesuffix("pyc") + "tables"
