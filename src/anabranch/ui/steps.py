"""Step by step: the messages between the operators, forwards and backwards, as in the LUPOS demonstration.

State: one recording and the visitor's position in it; both are released with the page.

Invariant: the view at a message does not depend on how it was reached.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from nicegui import events, ui
from nicegui.element import Element

from anabranch.insight.shapes import JsonRow, Memory, Message, StepState
from anabranch.insight.steps import RecordedSteps
from anabranch.server.slices import STEPS, with_instants
from anabranch.ui.components import ChoiceList, LiveTable, MessageList, PlanGraph, Scrubber
from anabranch.ui.desk import Desk
from anabranch.ui.drawing import drawing
from anabranch.ui.pieces import argument, button, card, enabled, picture, raw, say, shown, tag, words
from anabranch.ui.values import cell, clock, numeric_columns, short_text

_STYLES = {
    "element added": "added",
    "binding added": "added",
    "element deleted": "removed",
    "binding deleted": "removed",
}
_SPEEDS = {"1": "1 / s", "3": "3 / s", "10": "10 / s", "30": "30 / s"}
_RECORD = "Record the last events of this query, then go through what its operators tell one another, one by one."
_START_FIRST = "Start a query first. Then its last events can be replayed, message by message."
_NEAR = 40  # messages shown before and after the current one


class StepByStep:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._steps: RecordedSteps | None = None
        self._at = 0
        self._operator = -1
        self._playing = False
        self._due = 0.0
        self._speed = 3.0
        self._listed: tuple[int, int] | None = None
        self._looking = asyncio.Lock()  # one thread at a time uses a recording

    def build(self) -> Element:
        with card("Step by step") as (outer, head):
            with head:
                self._what = words("span", "", "ab-quiet")
                tag("div", "ab-grow")
                self._again = button(
                    "Record anew", self.record, icon="again", classes="small", hint="Take what has come since"
                )
            self._empty = tag("div", "ab-empty")
            with self._empty:
                self._why = words("p", "")
                self._start = button("Record the last events", self.record, icon="play", classes="primary")
            self._all = tag("div", "ab-hidden")
            with self._all:
                self._transport()
                self._now = tag("div", "ab-now", role="status", aria_live="polite")
                with tag("div", "ab-steps"):
                    self._graph = PlanGraph("operators; the current message is lit", "")
                    self._graph.on("choose", lambda event: self._choose_operator(argument(event)))
                    with tag("div"):
                        self._messages = MessageList("messages")
                        self._messages.on("choose", lambda event: self.go(argument(event)))
                        self._memory_of = words("div", "", "ab-sub")
                        self._memory = LiveTable("what the operator holds", "It holds nothing.")
                        self._answer_of = words("div", "", "ab-sub")
                        self._answer = LiveTable("answer so far", "The answer is empty.")
        # For the browser, the editor and scrolling elements are divs.
        ui.keyboard(self._key, ignore=["input", "select", "textarea", "div"])  # type: ignore[list-item]
        self.reset()
        return outer

    def _transport(self) -> None:
        with tag("div", "ab-transport", role="group", aria_label="move through the messages"):
            self._first = button("", lambda: self.go(0), icon="first", label="First message")
            self._previous = button("", lambda: self.go(self._at - 1), icon="previous", label="Previous message")
            self._play = tag("button", "ab-button icon primary", type="button", aria_label="Play", title="Play")
            with self._play:
                self._play_icon = raw(picture("play"))
            self._play.on("click", lambda _: self._toggle())
            self._next = button("", lambda: self.go(self._at + 1), icon="next", label="Next message")
            self._last = button("", lambda: self.go(self._count - 1), icon="last", label="Last message")
            self._pace = ChoiceList("messages a second", _SPEEDS, "3", hidden_label=True)
            self._pace.on("pick", lambda event: self._set_speed(argument(event)))
            self._line = Scrubber("instant")
            self._line.on("move", lambda event: self._jump(argument(event)), throttle=0.1)

    def _set_speed(self, speed: str) -> None:
        self._speed = float(speed)
        self._pace.offer(_SPEEDS, speed)

    # --- recordings ---------------------------------------------------------------------------------------------

    @property
    def _count(self) -> int:
        return len(self._steps.messages) if self._steps is not None else 0

    def reset(self) -> None:
        """Switch to another query: nothing of it is recorded yet."""
        self._steps = None
        if self._playing:
            self._toggle()
        say(self._what, "")
        running = bool(self._desk.query_name)
        say(self._why, _RECORD if running else _START_FIRST)
        self._show_parts()
        enabled(self._start, running)

    def _show_parts(self) -> None:
        there = self._steps is not None
        shown(self._empty, not there)
        shown(self._all, there)
        shown(self._again, there)

    async def record(self) -> None:
        session, query = self._desk.session, self._desk.query_name
        if session is None or not query:
            return
        before = str(self._what._text)
        say(self._what, "recording …")
        enabled(self._start, False)
        enabled(self._again, False)
        found = await self._desk.ask(lambda: _recorded(session, query))
        enabled(self._again, True)
        if (session, query) != (self._desk.session, self._desk.query_name):
            return  # another query has been chosen meanwhile
        enabled(self._start, True)
        if found is None or len(found.messages) < 2:  # the first message is only the start of evaluation
            say(self._what, before)
            say(
                self._why,
                "There is nothing to step through yet: no event has come, or the recording could not be made.",
            )
            return
        self._steps, self._at, self._operator, self._listed = found, 0, -1, None
        self._graph.draw(drawing(found.graph, counted=False))
        self._show_parts()
        note = getattr(found, "note", "")
        say(
            self._what, f"{self._count:,} messages at {len(found.instants):,} instants" + (f" · {note}" if note else "")
        )
        await self.go(self._beginning(found))

    def _beginning(self, found: RecordedSteps) -> int:
        """Return the first message of the last instant, so that the visitor sees its result built up."""
        return found.instants[-1][1] if len(found.instants) > 1 else 0

    # --- moving -------------------------------------------------------------------------------------------------

    async def go(self, number: int) -> None:
        steps = self._steps
        if steps is None:
            return
        self._at = at = max(0, min(number, self._count - 1))
        async with self._looking:
            if (steps, at) != (self._steps, self._at):
                return  # another message has been chosen meanwhile
            state = await self._desk.ask(lambda: steps.state(at))
            if state is not None and (steps, at) == (self._steps, self._at):
                self._show(steps, state)

    async def _jump(self, place: int) -> None:
        if self._steps is not None and 0 <= place < len(self._steps.instants):
            await self.go(self._steps.instants[place][1])

    async def _choose_operator(self, operator: int) -> None:
        self._operator = -1 if operator == self._operator else operator
        await self.go(self._at)

    def _toggle(self) -> None:
        self._playing = not self._playing
        name = "Pause" if self._playing else "Play"
        self._play.props["aria-label"] = self._play.props["title"] = name
        self._play.update()
        self._play_icon.set_content(picture("pause" if self._playing else "play"))  # type: ignore[attr-defined]

    async def tick(self) -> None:
        """Advance while playing."""
        if not self._playing or self._steps is None:
            return
        now = asyncio.get_running_loop().time()
        if now < self._due:
            return
        if self._at >= self._count - 1:
            self._toggle()
            return
        ahead = max(1, round(self._speed * 0.2))  # the page is updated five times a second at most
        self._due = now + (ahead / self._speed if self._speed < 5 else 0.0)
        await self.go(self._at + ahead)

    async def _key(self, event: events.KeyEventArguments) -> None:
        if self._desk.tab != "steps" or not event.action.keydown or any(event.modifiers):
            return
        name = event.key.name
        if name == "ArrowRight":
            await self.go(self._at + 1)
        elif name == "ArrowLeft":
            await self.go(self._at - 1)
        elif name == "Home":
            await self.go(0)
        elif name == "End":
            await self.go(self._count - 1)

    # --- showing ------------------------------------------------------------------------------------------------

    def _show(self, steps: RecordedSteps, state: StepState) -> None:
        message = state.message
        style = _STYLES.get(message.kind, "told")
        self._graph.light(message.operator, style, self._operator)
        names = {box.id: box.name for box in steps.graph.boxes}
        self._now.clear()
        with self._now:
            words("b", message.kind, style)
            words("span", f" · {names.get(message.operator, '')} · {clock(message.at)} · ", "ab-quiet")
            words("span", short_text(message.text, self._desk.prefixes()), "ab-mono")
        self._list(steps)
        places = [at for at, _ in steps.instants]
        place = max(0, bisect_right([first for _, first in steps.instants], self._at) - 1)
        self._line.show(place, max(0, len(places) - 1), clock(places[place], day=False) if places else "")
        operator = self._operator if self._operator >= 0 else message.operator
        columns = {box.id: box.columns for box in steps.graph.boxes}
        held = state.memory.get(operator, Memory())
        _title(self._memory_of, f"{names.get(operator, '')} holds", held)
        _fill(self._memory, columns.get(operator, ()), held, self._desk)
        _title(self._answer_of, "Answer", state.result)
        _fill(self._answer, steps.graph.boxes[-1].columns, state.result, self._desk)
        for one, yes in ((self._first, self._at > 0), (self._previous, self._at > 0)):
            enabled(one, yes)
        for one, yes in ((self._next, self._at < self._count - 1), (self._last, self._at < self._count - 1)):
            enabled(one, yes)

    def _list(self, steps: RecordedSteps) -> None:
        first = max(0, self._at - _NEAR)
        if self._listed is not None and self._listed[0] + 10 <= self._at < self._listed[1] - 10:
            first = self._listed[0]
        stop = min(self._count, first + 2 * _NEAR)
        self._listed = (first, stop)
        prefixes = self._desk.prefixes()
        self._messages.show([_entry(steps.messages[number], prefixes) for number in range(first, stop)], self._at)


def _recorded(session: Any, query: str) -> RecordedSteps:
    return RecordedSteps(with_instants(session, query, STEPS))


def _entry(message: Message, prefixes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "number": message.number,
        "kind": message.kind,
        "text": short_text(message.text, prefixes),
        "style": _STYLES.get(message.kind, "told"),
    }


def _title(element: Element, text: str, memory: Memory) -> None:
    more = f", of which the first {len(memory.rows)} are shown" if memory.total > len(memory.rows) else ""
    say(element, f"{text} {memory.total:,} row{'' if memory.total == 1 else 's'}{more}")


def _fill(table: LiveTable, columns: tuple[str, ...], memory: Memory, desk: Desk) -> None:
    rows: tuple[JsonRow, ...] = memory.rows
    width = len(rows[0]) if rows else len(columns)
    names = columns if len(columns) == width else tuple(str(place + 1) for place in range(width))
    numeric = numeric_columns(names, rows)
    prefixes = desk.prefixes()
    table.columns([{"name": one, "label": one, "numeric": one in numeric, "pickable": False} for one in names])
    table.patch(
        range(len(rows)),
        {place: [cell(value, prefixes) for value in row] for place, row in enumerate(rows)},
        still=True,
    )
