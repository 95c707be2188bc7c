"""Parsers from grammars. The tables of a grammar take a second to compute, so they are cached beside the bytecode.

Invariant: cached tables are used only if they were made from exactly this grammar by this version of lark; where no
file can be written, they are computed each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from importlib.util import cache_from_source

from lark import Lark


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
    )


def _kept(name: str) -> str:
    """Return the path where Python itself would cache the bytecode of a module of this name."""
    return cache_from_source(__file__.replace("grammars.py", f"{name}.py")).removesuffix("pyc") + "tables"
