"""Continuous queries in a notebook: `%load_ext anabranch.notebook`, then cells that begin with `%%seraph`, `%%csparql`,
`%%lupos` or `%%rspql`.

Invariant: without IPython this room can be imported; only the extension needs it.
"""

from __future__ import annotations

from typing import Any

from anabranch.notebook.magics import LANGUAGES, cell_magic

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magics; `%load_ext anabranch.notebook` calls this."""
    for language in LANGUAGES:
        shell.register_magic_function(cell_magic(shell, language), magic_kind="cell", magic_name=language)


def unload_ipython_extension(shell: Any) -> None:
    for language in LANGUAGES:
        shell.magics_manager.magics["cell"].pop(language, None)
