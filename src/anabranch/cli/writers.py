"""Answers as tables for people, and the rows of plain queries in every form.

Invariant: the output is flushed when `write` returns. JSON and CSV lose no row and no column; a table may fold.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from anabranch.algebra.operators import Output
from anabranch.cli.console import printable
from anabranch.cli.values import cell, clock, csv_cell, day, number_text, window
from anabranch.engine.answers import Answer, Correction
from anabranch.formats import answers as answer_formats
from anabranch.formats.tables import Table
from anabranch.model.spelling import Terms
from anabranch.model.values import Value
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sinks.forms import RdfForm, check_form

_OP_STYLES = {"entering": "green", "exiting": "red", "snapshot": "blue"}


def answer_of(told: RenderedAnswer) -> Answer:
    parts = answer_formats.from_typed(told.typed)
    return Answer.told(
        parts.query,
        parts.at,
        cast(Output, parts.op),
        (parts.win_start, parts.win_end),
        parts.columns,
        parts.rows,
        cast(Correction, parts.correction),
    )


class TableSink(Sink):
    """A sink that draws answers as tables. A batch that was drawn completely is not drawn again."""

    forms = ("typed",)

    def __init__(self, console: Console, windows: str, aside: Callable[[], None], prefixes: Mapping[str, str]) -> None:
        self._writer = TableWriter(console, windows, prefixes)
        self._aside = aside
        self._ledger: Ledger | None = None

    def open(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        assert self._ledger is not None
        if not answers or self._ledger.get("table") == batch:
            return
        self._aside()
        for one in answers:
            self._writer.write(answer_of(one))
        self._ledger.put("table", batch)


class TableWriter:
    """Draws a small table per answer, under a title with query, operator, instant and window."""

    def __init__(self, console: Console, policy: str, prefixes: Mapping[str, str] | None = None) -> None:
        self._terms = Terms(tuple((prefixes or {}).items()))
        self._console = console
        self._policy = policy
        self._today = ""

    def write(self, answer: Answer) -> None:
        today = day(answer.at)
        if self._today:
            self._console.print()
        if today != self._today:
            self._console.print(Text(today, style="dim"), soft_wrap=True)
            self._today = today
        title = Text.assemble(
            (answer.query, "bold"),
            "  ",
            (answer.op, _OP_STYLES[answer.op]),
            (f" {answer.correction}" if answer.correction else "", "yellow"),
            "  ",
            (clock(answer.at, today), "bold yellow"),
            ("  window ", "dim"),
            (window(self._policy, answer.win_start, answer.win_end, today), "dim"),
        )
        self._console.print(title, soft_wrap=True)
        print_rows(self._console, answer.columns, answer.rows, self._terms)
        self._console.file.flush()


def print_rows(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[Value]], terms: Terms | None = None
) -> None:
    """Print rows as a table that fits the console; numbers are aligned to the right."""
    if not rows:
        console.print(Text("  no rows", style="dim"))
    elif not columns:
        console.print(Text(f"  {len(rows)} rows without columns", style="dim"))
    else:
        console.print(Padding(rows_table(columns, rows, terms=terms), (0, 0, 0, 2), expand=False))


def rows_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
    box_: box.Box = box.SIMPLE_HEAD,
    terms: Terms | None = None,
) -> RichTable:
    shown = [list(row) for row in rows]
    table = RichTable(box=box_, show_edge=False, pad_edge=False, header_style="bold", border_style="dim")
    for index, name in enumerate(columns):
        values = [row[index] for row in shown if row[index] is not None]
        numeric = bool(values) and all(_is_number(value) for value in values)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        table.add_row(*(cell(value, terms or Terms()) for value in row))
    return table


def _is_number(value: Value) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or number_text(value)


def write_table(console: Console, table: Table, form: str) -> None:
    """Write a plain query's rows in one of the forms."""
    match form:
        case "json":
            for row in table.to_dicts():
                print(json.dumps(row, ensure_ascii=False))
        case "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows([csv_cell(value) for value in row] for row in table.rows)
        case "table":
            print_rows(console, table.columns, table.rows, Terms(tuple(table.prefixes.items())))
        case "none":
            pass
        case _:
            check_form(RdfForm(form), [table.columns])
            sys.stdout.flush()
            sys.stdout.buffer.write(table.rendered(form))
            sys.stdout.buffer.flush()
    sys.stdout.flush()
