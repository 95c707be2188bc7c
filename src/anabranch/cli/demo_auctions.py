"""The auction demo: its busiest items on a page, or Figure 6 of the LUPOS paper in the terminal.

Invariant: it needs only the package, and leaves no files unless a folder was given.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Literal as OneOf
from urllib.parse import urlencode

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from anabranch.api import carrier
from anabranch.cli.console import Terminal
from anabranch.cli.failures import draw_error
from anabranch.cli.serving import ServerPlace, has_browser, serve
from anabranch.cli.signals import stopping
from anabranch.cli.values import clock, day
from anabranch.cli.writers import answer_of, rows_table
from anabranch.demos.examples import examples
from anabranch.engine.answers import Answer
from anabranch.model.spelling import Terms
from anabranch.model.terms import Literal
from anabranch.model.values import Value
from anabranch.runner.opening import open_run
from anabranch.runner.options import RunOptions
from anabranch.runner.outlet import Observers, RunProgress
from anabranch.runner.spec import RunSpec
from anabranch.sinks.base import RenderedAnswer, Sink
from anabranch.sinks.console import Console
from anabranch.spark.java import require_java
from anabranch.syntax import languages

if TYPE_CHECKING:
    from anabranch.server.hub import Hub

STREAM = "auctions"
FILE = "figure6.lupos"
_PREFIXES = (("item", "http://auctions.example/item/"),)
_EARLY = 600  # events: a minute of the auction house has passed when the demo begins
_JUMPS = 100  # one bid in so many at least doubles the price, so that some are always visible
_ROWS = 15  # of a live table
_REFRESH = 5.0  # times a second


@dataclass(frozen=True, slots=True)
class AuctionDemo:
    """The options of the demo: bids at a rate, endless or `count` of them. Without a rate they arrive as fast as they
    are read."""

    engine: OneOf["spark", "local"] = "spark"
    rate: float | None = 10.0
    count: int | None = None
    data: str | None = None

    @property
    def address(self) -> str:
        settings: dict[str, str | int | None] = {"count": self.count, "jumps": _JUMPS}
        if self.rate is not None:
            settings = {"rate": f"{self.rate:g}", "early": _EARLY, **settings}
        return "gen:auctions?" + urlencode({name: value for name, value in settings.items() if value is not None})

    def check(self) -> None:
        """Check that Java is installed, if Spark is used, before anything starts."""
        if self.engine == "spark":
            require_java()


def query_text() -> str:
    return (examples() / "auctions" / FILE).read_text("utf-8")


# --- on a page --------------------------------------------------------------------------------------------------------


def on_page(asked: AuctionDemo, terminal: Terminal, port: int, opens: bool) -> None:
    """Run the monitor with the auctions until Ctrl-C."""
    asked.check()
    place = ServerPlace(port=port, opens=opens and has_browser())
    remark = f"{asked.address} and its busiest items, {_where(asked)}"
    with _folder(asked.data) as folder:

        def make_hub() -> Hub:
            from anabranch.server.hub import Hub

            return Hub(folder, asked.engine)

        serve(make_hub, place, terminal, lambda hub: furnish(hub, asked), remark)


def furnish(hub: Hub, asked: AuctionDemo) -> str:
    """Create the session of the auctions if it does not exist; returns the page that shows it. It is also the session
    of the page's own examples, so that all of them run in it."""
    from anabranch.ui.presets import PRESETS

    first = PRESETS[0]
    name = first.case.session
    if name not in {session.name for session in hub.sessions()}:
        session = hub.create(name)
        session.add_stream(first.case.streams[0][0], asked.address)
        session.register(first.text())
        session.start()
    return f"/?session={name}"


def _where(asked: AuctionDemo) -> str:
    return "on Spark" if asked.engine == "spark" else "in this process"


@contextmanager
def _folder(path: str | None) -> Iterator[Path]:
    if path is not None:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="anabranch-demo-", ignore_cleanup_errors=True) as made:
        yield Path(made)


# --- in the terminal --------------------------------------------------------------------------------------------------


class TerminalTable(Sink):
    """Shows the newest answer in place. It is drawn a few times a second, however fast the answers arrive."""

    forms = ("typed",)

    def __init__(self, terminal: Terminal, prefixes: Terms, remark: str) -> None:
        self._terms = prefixes
        self._remark = remark
        self._answer: Answer | None = None
        self._answers = 0
        self._progress = RunProgress()
        self._begun = time.monotonic()
        self._live = Live(console=terminal.out, refresh_per_second=_REFRESH, get_renderable=self._drawn)

    def open(self, ledger: object) -> None:
        self._live.start()

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        if answers:
            self._answers += len(answers)
            self._answer = answer_of(answers[-1])

    def progress(self, progress: RunProgress) -> None:
        self._progress = progress

    def close(self) -> None:
        self._live.stop()

    def _drawn(self) -> RenderableType:
        events = self._progress.status.get("events", 0)
        said = (
            f"{events:,} events · {self._answers:,} answers · {time.monotonic() - self._begun:.0f} s · {self._remark}"
        )
        parts: list[RenderableType] = [Text(said, style="dim")]
        answer = self._answer
        if answer is None:
            parts.append(Text("waiting for the first answer", style="dim"))
            return Group(*parts)
        today = day(answer.at)
        parts.append(
            Text.assemble((answer.query, "bold"), "  ", (today, "dim"), "  ", (clock(answer.at, today), "bold"))
        )
        shown = [[_short(value) for value in row] for row in answer.rows[:_ROWS]]
        parts.append(rows_table(answer.columns, shown, terms=self._terms))
        if len(answer.rows) > _ROWS:
            parts.append(Text(f"... and {len(answer.rows) - _ROWS:,} more rows", style="dim"))
        return Group(*parts)


def _short(value: Value) -> Value:
    """Round a price to the digits of money; an average has many digits."""
    if isinstance(value, Literal) and re.fullmatch(r"-?\d+\.\d{3,}", value.lexical):
        return value._replace(lexical=f"{float(value.lexical):.2f}")
    return value


def in_terminal(asked: AuctionDemo, terminal: Terminal) -> None:
    """Show answers in the terminal: a live table, or lines of JSON into a pipe."""
    asked.check()
    script = languages.script(query_text(), FILE)
    remark = f"{asked.address} {_where(asked)} · Ctrl-C ends it"
    observers = Observers()
    sink: Sink = Console("json")
    if terminal.out.is_terminal:
        table = sink = TerminalTable(terminal, Terms((*script.registrations[0].prefixes, *_PREFIXES)), remark)
        observers.on_progress = table.progress
    else:
        terminal.note(remark, style="dim")
    options = RunOptions(engine=asked.engine, checkpoint=asked.data)
    spec = RunSpec.of([script], [(STREAM, asked.address)], options)
    with open_run(spec, [sink], carrier(options), observers) as opened:
        if opened.is_finished:
            terminal.note(f"nothing to do: the run in {opened.folder.path} has answered its whole input", style="dim")
            return
        with stopping(opened.folder.close) as stopped:
            opened.carry(stopped)
    for failure in opened.run.failures:
        draw_error(failure, terminal)
