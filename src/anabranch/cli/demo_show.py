"""The running example on a screen: query, events, windows and rows, one after the other.

Invariant: the output depends on the packaged data and the width only; the clock only paces it, through `pause`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, takewhile

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from anabranch.algebra.walk import windows
from anabranch.cli import demo_bikes as story
from anabranch.cli.highlight import highlight
from anabranch.cli.timeline import Timeline
from anabranch.cli.values import clock, day, window
from anabranch.cli.writers import rows_table
from anabranch.engine.answers import Answer
from anabranch.engine.session import Query, Session
from anabranch.model.event import Event
from anabranch.model.windows import Bounds, EvaluationInstants, bounds

STREAM = "rides"
NEXT = (
    (
        "the same, as a program reads it",
        "anabranch run examples/bikes/student_trick.seraph --stream rides=examples/bikes/events.ndjson --output json",
    ),
    ("what the query will do, and how", "anabranch explain examples/bikes/student_trick.seraph"),
    (
        "a plain query over all events as one graph",
        "anabranch eval --graph examples/bikes/events.ndjson 'MATCH (s:Station) RETURN count(*)'",
    ),
)

_WIDEST = 100
_MARGIN = 7  # the width of "14:45  "
_WORDS = 24  # the width of "  window (13:45, 14:45]"


class Show:
    def __init__(self, console: Console, pause: Callable[[float], None]) -> None:
        self._console = console
        self._pause = pause
        self._width = min(console.width, _WIDEST)
        self._session = Session.local(streams=[STREAM])
        self._query: Query = self._session.register(story.query_text(), file_name="student_trick.seraph")
        start = self._query.registration.starting_at
        assert start is not None
        self._instants = EvaluationInstants(start, self._query.registration.every)
        self._rows = 0

    def play(self) -> None:
        events = story.events()
        first = self._bounds(self._instants.starting_at).opens_at
        timeline = Timeline(first, events[-1].event_time, self._width - _MARGIN - _WORDS - 2)
        self._introduce()
        for number in range(1, len(events) + 1):
            self._pause(1.5)
            self._step(events[:number], timeline)
        self._session.finish()
        self._pause(1)
        self._close(len(events))

    def _print(self, shown: RenderableType = "", margin: int = 0) -> None:
        if shown == "":
            self._console.print()
        else:
            self._console.print(Padding(shown, (0, 0, 0, margin), expand=False), width=self._width)

    def _introduce(self) -> None:
        self._print()
        title = f"[bold]{story.TITLE}[/]"
        self._print(Panel(story.INTRODUCTION, title=title, title_align="left", border_style="blue", padding=(0, 1)))
        self._print()
        self._pause(2)
        self._print(highlight(story.bare_query()), 2)
        self._print()
        self._print(Text(story.SOURCE, style="dim"), 2)
        self._print(
            Text.assemble(
                ("Below: ", "dim"),
                ("━", "green"), (" the window, ", "dim"),
                ("●", "bold yellow"), (" an event inside it, ", "dim"),
                ("·", "dim"), (" time outside of it.", "dim"),
            ),
            2,
        )  # fmt: skip
        self._pause(2)

    # --- one event ----------------------------------------------------------------------------------------------------

    def _step(self, seen: list[Event], timeline: Timeline) -> None:
        """Show one event: its graph, the window at its instant, and the query's answer."""
        at = seen[-1].event_time
        today = day(at)
        self._session.push(STREAM, seen[-1])
        self._quiet(seen, today)
        self._session.advance(at)
        answers = self._query.poll()
        self._print()
        for index, line in enumerate(story.drawn_event(seen[-1])):
            label = " " * _MARGIN if index else clock(at, today).ljust(_MARGIN)
            self._print(Text.assemble((label, "bold"), line))
        self._pause(0.5)
        view = self._bounds(at)
        words = f"  window {window('trailing', view.win_start, view.win_end, today)}"
        self._print(timeline.draw(view, [event.event_time for event in seen]).append(words, style="dim"), _MARGIN)
        self._pause(0.5)
        for answer in answers:
            self._rows += len(answer.rows)
            self._print(self._answer(answer, seen), _MARGIN)
        if story.NOTES.get(at):
            self._print(Text(story.NOTES[at], style="dim"), _MARGIN)

    def _quiet(self, seen: list[Event], today: str) -> None:
        """Show the evaluation instants between the last two events: no event entered or left, so nothing was
        computed."""
        if len(seen) < 2:
            return
        before, at = seen[-2].event_time, seen[-1].event_time
        instants = (self._instants.instant(k) for k in count(self._instants.index_at_or_after(before + 1)))
        times = [clock(instant, today) for instant in takewhile(lambda instant: instant < at, instants)]
        if times:
            self._print()
            self._print(Text(f"{'  '.join(times)}  nothing comes or goes, nothing to tell", style="dim"))

    def _answer(self, answer: Answer, seen: list[Event]) -> Panel:
        today = day(answer.at)
        bounds = clock(answer.win_start, today), clock(answer.win_end, today)
        parts: list[RenderableType] = [
            rows_table((*answer.columns, "win_start", "win_end"), [(*row, *bounds) for row in answer.rows])
        ]
        for user, _, since, _ in answer.rows:
            ridden = story.rides(seen, user, str(since))
            parts += ["", story.chain(ridden), Text.assemble(("Why: ", "bold"), story.why(ridden))]
        name, expected = story.PAPER.get(answer.at, ("", ()))
        is_the_papers = [tuple(row) for row in answer.rows] == [expected]
        return Panel(
            Group(*parts),
            title=f"[bold]a row enters at {clock(answer.at, today)}[/]",
            title_align="left",
            subtitle=f"[bold]this is {name} of the paper[/]" if is_the_papers else None,
            subtitle_align="right",
            border_style="green",
            padding=(0, 1),
        )

    def _bounds(self, at: int) -> Bounds:
        registration = self._query.registration
        width = windows(registration.plan)[0].width
        assert width is not None
        return bounds("trailing", at, width, self._instants.starting_at, registration.every)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _close(self, events: int) -> None:
        query = self._query
        instants = f"{query.instants} instants, {query.evaluations} computed"
        self._print()
        self._print(
            Text.assemble(
                (f"{events} events · {instants} · {self._rows} rows", "bold"),
                "\nAt every instant the answer is what the plain query says about the window.",
            )
        )
        self._print()
        self._print(Text("Try next, from a checkout:", style="bold"))
        for what, command in NEXT:
            self._print(Text(f"# {what}", style="dim"), 2)
            self._console.print(Text(f"  {_folded(command, self._width)}", style="green"), soft_wrap=True)


def _folded(command: str, width: int) -> str:
    """Fold a command into two lines if the width is too small; it can still be copied and run."""
    if len(command) + 2 <= width:
        return command
    head, _, tail = command.partition(" --stream") if " --stream" in command else command.partition(" 'MATCH")
    return f"{head} \\\n      {command[len(head) + 1 :]}" if tail else command
