"""A query that runs behind a cell: its answers so far, and its end.

The run has a thread of its own, so that a cell can be interrupted at any time: the run then ends after its batch.

Invariant: the answers of a handle only grow, and stay available when the run is over.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.algebra.operators import Registration
from anabranch.api import run
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.errors import EngineError, QueryError
from anabranch.formats.answers import AnswerParts, answers_table
from anabranch.formats.values import cypher_text, to_json
from anabranch.model.instants import format_instant
from anabranch.model.spelling import Terms
from anabranch.model.terms import Iri
from anabranch.model.values import Value
from anabranch.notebook.asking import CellOptions
from anabranch.runner.outlet import Observers, RunProgress
from anabranch.sinks.memory import MemoryTable
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText

if TYPE_CHECKING:
    import pyarrow

    from anabranch.spark.session import RunningSpark

_POLL = 0.05


class CellQuery:
    """The handle that a cell returns: the query's answers so far, as tables of pandas, Arrow or Spark."""

    def __init__(self, text: str, file_name: str, line: CellOptions) -> None:
        found = languages.registrations(text, file_name)
        self._registration = _chosen(found, line.name, text, file_name)
        self._text = QueryText(text, file_name)
        self._line = line
        self._several = len(found) > 1
        self._table = MemoryTable({one.name: one.columns for one in found}, line.keep)
        self._terms = Terms(self._registration.prefixes)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._progress = RunProgress()
        self._thread = threading.Thread(target=self._run, name=f"query {self.name}", daemon=True)
        self.failures: tuple[QueryError, ...] = ()

    @property
    def name(self) -> str:
        """The name given by `--name` if the text has one query, else the query's own name."""
        asked = self._line.name
        return self._registration.name if asked is None or self._several else asked

    @property
    def columns(self) -> tuple[str, ...]:
        return self._registration.columns

    # --- running ------------------------------------------------------------------------------------------------------

    def follow(self, show: Callable[[], None]) -> None:
        """Run until the input ends, the time is up, or the user interrupts; `show` is called repeatedly."""
        self._thread.start()
        begun = time.monotonic()
        try:
            while self._thread.is_alive():
                self._thread.join(_POLL)
                show()
                if self._line.seconds is not None and time.monotonic() - begun >= self._line.seconds:
                    break
        except KeyboardInterrupt:
            pass  # an interrupt is the way to end a cell whose stream does not end
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        line = self._line
        try:
            done = run(
                [self._text],
                _by_name(line.streams),
                sinks=[self._table],
                graphs=dict(line.graphs),
                parameters={name: _value(text) for name, text in line.parameters.items()},
                evaluation=EvaluationOptions(on_error="fail"),  # a user who tries out a query wants to see its errors
                until=line.until,
                engine=line.engine,
                spark=shared_spark() if line.engine == "spark" else None,
                should_stop=self._stop.is_set,
                observers=Observers(on_progress=self._moved),
            )
            self.failures = done.failures
            if done.failures:
                self._error = done.failures[0]
        except BaseException as error:
            self._error = error

    def _moved(self, progress: RunProgress) -> None:
        self._progress = progress
        streams = progress.status.get("streams", {}).values()
        until = self._line.until
        if until is not None and streams and all(one["watermark"] > until for one in streams):
            self._stop.set()

    # --- answers ------------------------------------------------------------------------------------------------------

    @property
    def events(self) -> int:
        return int(self._progress.status.get("events", 0))

    def answers(self) -> list[AnswerParts]:
        """Return the answers so far, in their order."""
        until = self._line.until
        found = [kept.answer for kept in self._table.answers(self._registration.name)]
        return [one for one in found if until is None or one.at <= until]

    def to_arrow(self) -> pyarrow.Table:
        """Return the answers so far as an Arrow table: `at`, `win_start`, `win_end` (timestamps in UTC), and the
        query's columns."""
        return answers_table(self.columns, self.answers())

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any = None) -> Any:
        """Return the answers so far as a DataFrame of a Spark session: the given one, else the one that is running."""
        from pyspark.sql import SparkSession

        spark = spark or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return spark.createDataFrame(self.to_arrow())

    def __repr__(self) -> str:
        answers = self.answers()
        rows = sum(len(one.rows) for one in answers)
        return f"<{self.name}: {len(answers)} answers, {rows} rows; to_pandas(), to_arrow(), to_spark()>"

    # --- the newest answer --------------------------------------------------------------------------------------------

    def view(self) -> AnswerView:
        answers = self.answers()
        return AnswerView(
            self.name, answers[-1] if answers else None, len(answers), self.events, self._line.rows, self._terms
        )


class AnswerView:
    """The newest answer as a table: HTML in a notebook, text elsewhere."""

    def __init__(
        self, name: str, answer: AnswerParts | None, answers: int, events: int, rows: int, terms: Terms
    ) -> None:
        self._name = name
        self._answer = answer
        self._answers = answers
        self._events = events
        self._rows = rows
        self._terms = terms

    @property
    def mark(self) -> tuple[int, int]:
        """A value that changes when there is something new to show."""
        return self._answers, self._events

    def _title(self) -> str:
        said = f"{self._name} · {self._events:,} events · {self._answers:,} answers"
        return said if self._answer is None else f"{said} · {self._answer.op} {format_instant(self._answer.at)}"

    def _cells(self) -> list[list[str]]:
        assert self._answer is not None
        return [[_cell(value, self._terms) for value in row] for row in self._answer.rows[: self._rows]]

    def _rest(self) -> str:
        more = 0 if self._answer is None else len(self._answer.rows) - self._rows
        return f"... and {more:,} more rows" if more > 0 else ""

    def __repr__(self) -> str:
        if self._answer is None:
            return f"{self._title()}\nno answer yet"
        cells = [list(self._answer.columns), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        drawn = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([self._title(), *drawn, *filter(None, [self._rest()])])

    def _repr_html_(self) -> str:
        title = f"<div style='font-size:90%;opacity:.7'>{escape(self._title())}</div>"
        if self._answer is None:
            return f"{title}<div>no answer yet</div>"
        head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in self._answer.columns)
        rows = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{escape(text)}</td>' for text in row)}</tr>"
            for row in self._cells()
        )
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{escape(self._rest())}"


def _cell(value: Value, terms: Terms) -> str:
    if value is None:
        return ""
    if isinstance(value, Iri):
        return terms.term(value)
    plain = to_json(value)
    return str(plain) if isinstance(plain, str | int | float) else cypher_text(value)


def _chosen(found: tuple[Registration, ...], name: str | None, text: str, file_name: str) -> Registration:
    if not found:
        raise EngineError("the cell registers no query\nhint: begin with REGISTER QUERY")
    if len(found) == 1:
        return found[0]
    named = [one for one in found if one.name == name]
    if not named:
        names = ", ".join(one.name for one in found)
        raise EngineError(f"the cell has several queries; say which to show: --name NAME, of {names}")
    return named[0]


def _by_name(pairs: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, address in pairs:
        found.setdefault(name, []).append(address)
    return found


def _value(text: str) -> object:
    """Parse JSON; a text that is not JSON is returned unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- Spark ------------------------------------------------------------------------------------------------------------

_spark: list[RunningSpark] = []


def shared_spark() -> RunningSpark:
    """Return the Spark that all cells of this process share; it ends with the process."""
    from anabranch.spark import session

    if not _spark:
        folder = Path(tempfile.mkdtemp(prefix="anabranch-notebook-"))
        scratch = folder / "scratch"
        scratch.mkdir()
        running = session.start(session.SparkSettings(), scratch, folder / "spark.log")
        _spark.append(running)

        def end() -> None:
            session.stop(running)
            shutil.rmtree(folder, ignore_errors=True)

        atexit.register(end)
    return _spark[0]
