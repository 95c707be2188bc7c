"""The summary of a run, in one line for people or one object for programs, and its progress bar.

Invariant: all of it goes to stderr; the bar is shown only if stderr is a terminal and the run takes a while.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from anabranch.errors import QueryError, line_and_column
from anabranch.model.instants import format_instant

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_PATIENCE = 0.7  # seconds before the bar is worth its place
_REFRESH = 0.1


@dataclass(slots=True)
class Summary:
    events: int = 0
    instants: int = 0
    evaluations: int = 0
    rows: int = 0
    malformed: int = 0
    late: int = 0
    ahead: int = 0
    seconds: float = 0.0
    dead_letters: list[str] = field(default_factory=list)
    verified: int = 0
    differing: int = 0
    skipped: int = 0
    first_skipped: str = ""
    jumps: int = 0
    last_jumps: dict[str, list[str]] = field(default_factory=dict)  # by stream: from when, to when

    def note_jumps(self, stream: str, count: int, last: Iterable[int] | None) -> None:
        """Count jumps of a stream's time past its widest window; `last` is the last of them."""
        self.jumps += count
        if last is not None:
            self.last_jumps[stream] = [format_instant(one) for one in last]

    def to_json(self) -> str:
        rate = round(self.events / self.seconds) if self.seconds else None
        return json.dumps({**asdict(self), "seconds": round(self.seconds, 3), "events_per_second": rate})

    def text(self) -> Text:
        parts = [
            (counted(self.events, "event"), ""),
            (f"{counted(self.instants, 'instant')} ({self.evaluations:,} computed)", ""),
            (counted(self.rows, "row"), "bold green" if self.rows else ""),
            (f"{self.malformed:,} malformed", "bold yellow" if self.malformed else ""),
            (f"{self.late:,} late", "bold yellow" if self.late else ""),
            *([(f"{self.ahead:,} ahead", "bold yellow")] if self.ahead else []),
            (f"{self.seconds:.2f} s", ""),
        ]
        text = Text(style="dim")
        for index, (part, style) in enumerate(parts):
            text.append(" · " if index else "")
            text.append(part, style=f"not dim {style}" if style else "")
        if self.seconds > 0:
            text.append(f" · {round(self.events / self.seconds):,} events/s")
        if self.verified:
            said = f"\nverified: {self.verified - self.differing:,} of {counted(self.verified, 'instant')} identical"
            text.append(said, style="not dim bold red" if self.differing else "not dim green")
        if self.skipped:
            text.append(f"\n{counted(self.skipped, 'row')} skipped: {self.first_skipped}", style="not dim bold yellow")
        if self.jumps:
            said = f"\nwarning: time jumped past the widest window {counted(self.jumps, 'time')}; the last jump of "
            places = [f"{stream}: from {begun} to {reached}" for stream, (begun, reached) in self.last_jumps.items()]
            text.append(said + "; of ".join(places), style="not dim bold yellow")
        for path in self.dead_letters:
            text.append(f"\nset aside in {path}")
        return text


def first_words(errors: Iterable[QueryError | None]) -> str:
    """Format the first error in a line: its code, its message, and its line of the query text."""
    for error in errors:
        if error is not None:
            said = error.diagnostics[0]
            place = "" if said.span is None else ":".join(map(str, line_and_column(error.text, said.span.start)))
            return f"{said.code} {said.message}" + (f" ({error.file_name}:{place})" if place else "")
    return ""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(slots=True)
class Meter:
    """The amount of input that has been read; a total of None means that it is unknown."""

    total: int | None = 0
    done: int = 0


class TransientLine:
    """A line of columns at the end of a terminal, of which `said` is a text. It is removed while other text is printed
    on the same screen; where it is not `shown`, nothing is drawn."""

    def __init__(self, console: Console, shown: bool, columns: Callable[[], Sequence[ProgressColumn]]) -> None:
        self.is_shown = shown and console.is_terminal
        self._console = console
        self._columns = columns
        self._progress: Progress | None = None
        self._visible = False

    def draw(self, done: int, total: int | None, said: str) -> None:
        if self._progress is None:
            from rich.progress import Progress  # most runs draw no line

            self._progress = Progress(
                *self._columns(),
                console=self._console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._progress.add_task("", total=total, said=said)
        if not self._visible:
            self._progress.start()
            self._visible = True
        self._progress.update(self._progress.task_ids[0], completed=done, total=total, said=said)
        self._progress.refresh()

    def hide(self) -> None:
        if self._progress is not None and self._visible:
            self._progress.stop()
            self._visible = False


def _bar_columns() -> Sequence[ProgressColumn]:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn()


class Bar:
    """A progress bar by bytes read."""

    def __init__(self, console: Console, meter: Meter, shown: bool) -> None:
        self._line = TransientLine(console, shown, _bar_columns)
        self._meter = meter
        self._begun = time.monotonic()
        self._drawn = 0.0

    def update(self, events: int) -> None:
        now = time.monotonic()
        if not self._line.is_shown or now - self._begun < _PATIENCE or now - self._drawn < _REFRESH:
            return
        self._drawn = now
        said = f"{events:,} events · {events / (now - self._begun):,.0f}/s"
        self._line.draw(self._meter.done, self._meter.total, said)

    def close(self) -> None:
        self._line.hide()
