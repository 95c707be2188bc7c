"""The cell magics: a first line with options, and a query below it.

    %%seraph --stream rides=gen:bikes?rate=100 --for 10s
    REGISTER QUERY ... { ... }

In a notebook the newest answer is a table that is updated in place. In a terminal, which cannot do that, it is shown
once, at the end.

Invariant: a refused query is drawn with its place, without a traceback; the cell then counts as failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from anabranch.errors import AnabranchError, QueryError
from anabranch.notebook.asking import parse_line
from anabranch.notebook.live import CellQuery

LANGUAGES = ("seraph", "csparql", "lupos", "rspql")
_BEAT = 0.2  # seconds between two updates of a table


class Screen:
    """Shows a cell's table, in place if the front end can do that."""

    def __init__(self, shell: Any) -> None:
        self._in_place = hasattr(shell, "kernel")
        self._handle: Any = None
        self._mark: object = None
        self._shown_at = 0.0

    def show(self, query: CellQuery, at_last: bool = False) -> None:
        now = time.monotonic()
        if not at_last and (not self._in_place or now - self._shown_at < _BEAT):
            return
        view = query.view()
        if view.mark == self._mark:
            return
        self._mark, self._shown_at = view.mark, now
        if self._handle is None:
            self._handle = import_module("IPython.display").display(view, display_id=True)
        else:
            self._handle.update(view)


def cell_magic(shell: Any, language: str) -> Callable[[str, str], CellQuery | None]:
    """Create the magic of a language. It returns the query's handle, which becomes `_`; with `--into` it assigns the
    handle to that variable instead."""

    def magic(line: str, cell: str) -> CellQuery | None:
        screen = Screen(shell)
        try:
            asked = parse_line(line, f"%%{language}")
            query = CellQuery(cell, f"cell.{language}", asked)
            if asked.into is not None:
                shell.user_ns[asked.into] = query
            try:
                query.follow(lambda: screen.show(query))
            finally:
                screen.show(query, at_last=True)
        except AnabranchError as error:
            drawn = error.render() if isinstance(error, QueryError) else str(error)
            raise import_module("IPython.core.error").UsageError(drawn) from None
        return None if asked.into is not None else query

    magic.__doc__ = f"A continuous query in {language} over streams: --stream NAME=ADDRESS, --for 10s, --into VARIABLE."
    return magic
