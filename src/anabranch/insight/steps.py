"""A query step by step: the messages between its operators, and the state of each operator after any message.

The messages are those of LUPOS (section 4): an element enters a window or leaves it, a binding is added or deleted by
an operator, the result is computed. Between two evaluation instants windows move one event at a time; the operators are
those that run the query, and receive each move. Parts that are recomputed are recomputed only at instants.

Law: right after "compute result" the kept rows are those of the query at that instant. `state` does not depend on
earlier calls.

State: the messages as ids, and the operators' output every few hundred messages, at most as much again. Work:
O(changes) to record; a state takes O(rows held + messages since the last copy).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeAlias, overload

from anabranch.algebra.operators import Window
from anabranch.delta.batch import Batch, concatenated
from anabranch.delta.dictionary import Dictionary
from anabranch.engine.answers import AnswerRow as Values
from anabranch.engine.answers import row_key
from anabranch.engine.flows import QueryFlow
from anabranch.engine.plans import PARTING
from anabranch.engine.views import WindowEvents
from anabranch.errors import QueryError
from anabranch.formats.values import to_json
from anabranch.insight.elements import ElementUnit, Thing
from anabranch.insight.moves import Moving, WindowMove, emptied
from anabranch.insight.operators import operator_graph
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import JsonRow, Memory, Message, MessageKind, OperatorGraph, StepState
from anabranch.model.instants import format_instant
from anabranch.planner.flow.flow import placed
from anabranch.planner.flow.spec import Spec
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.snapshot.rdf.static import PartTooLarge

MOST_EVENTS = 20_000
MOST_MESSAGES = 200_000
SHOWN_ROWS = 50
_BETWEEN_KEYFRAMES = 200

_Ids: TypeAlias = tuple[int, ...]
_Key: TypeAlias = ElementUnit | _Ids
_Bag: TypeAlias = dict[_Key, int]
_Held: TypeAlias = dict[int, _Bag]


@dataclass(frozen=True, slots=True)
class _Arrival:
    stream: str
    thing: Thing
    at: int


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of one instant."""

    rows: tuple[JsonRow, ...]
    total: int
    entered: int
    left: int


_Payload: TypeAlias = _Arrival | _Ids | _Result | None


class _Full(Exception):
    """The limit of messages is reached."""


class _FailedBetween(Exception):
    """The operators failed between two instants, over a content that no instant has."""


class RecordedSteps:
    """A recording's messages. `note` describes what was left out, if anything was."""

    def __init__(
        self, recording: Recording, most_events: int = MOST_EVENTS, most_messages: int = MOST_MESSAGES
    ) -> None:
        self._most_events, self._most_messages = most_events, most_messages
        self._by_event = True  # whether operators receive each move, not all moves of an instant at once
        while True:
            try:
                self._record(recording)
                return
            except TooManyTrails:
                recording = replace(recording, evaluation=replace(recording.evaluation, force="recompute"))
            except PartTooLarge:
                rules = tuple(name for name in recording.rules if name not in PARTING)
                recording = replace(recording, rules=rules, evaluation=replace(recording.evaluation, force="recompute"))
            except _FailedBetween:
                self._by_event = False

    def _record(self, recording: Recording) -> None:
        # For single events, incremental matchers cost less than those over whole windows; the graph is the same.
        evaluation = replace(recording.evaluation, index="recency", matcher="log", verify=0)
        self._replay = Replay(replace(recording, evaluation=evaluation))
        self.graph: OperatorGraph = operator_graph(recording)
        self.note = ""
        self.instants: list[tuple[int, int]] = []
        self._log: list[tuple[MessageKind, int, _Payload]] = []
        self._held: _Held = {box.id: {} for box in self.graph.boxes}
        self._rows_held = 0
        self._keyframes: list[tuple[int, _Held]] = []
        self._windows = {window: number for number, window in enumerate(self._replay.query.windows)}
        self._operators: dict[int, Spec] = {}
        self._result = self.graph.boxes[-1]
        self._feeding = self._result.inputs[0]
        self._picked: tuple[int, ...] = tuple(range(len(self._replay.registration.columns)))
        self._seen: tuple[int, _Held] | None = None
        self._run()
        self._log_numbers = [number for _, number in self.instants]
        self.messages: Sequence[Message] = Messages(self)

    # --- recording ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        replay = self._replay
        moments = replay.moments
        if not moments:
            self.note = "the recording has no evaluation instant"
            return
        begins = replay.query.cursor.first_index
        engine = _Anew(self) if replay.planned.root is None else _OnChanges(self)
        moving = Moving({key: emptied(view) for key, view in replay.views(moments[0]).items()}, replay.things)
        before: ReplayInstant | None = None
        instants = replay.query.cursor.instants
        if moments[0].index > begins and instants is not None:
            before = ReplayInstant(moments[0].index - 1, instants.instant(moments[0].index - 1))
            moving = Moving(replay.views(before), replay.things)
        try:
            if before is not None:
                engine.begin(before, moving)
            elif self._by_event:
                self._on_the_way(partial(engine.begin_empty, moments[0], moving))
            self._keyframes.append((-1, self._copied()))
            self.instants.append((moments[0].at, 0))
            self._say("start of evaluation", self._result.id)
            self._go_through(moments, moving, engine)
        except _Full:
            self.note = f"cut off after {len(self._log):,} messages"
        except QueryError as error:
            self.note = f"the query failed: {error}"
        if replay.is_cut and not self.note:
            self.note = f"only the first {len(moments):,} instants at which something changes are shown"

    def _go_through(self, moments: Sequence[ReplayInstant], moving: Moving, engine: _OnChanges | _Anew) -> None:
        events = 0
        for place, moment in enumerate(moments):
            if place:
                self.instants.append((moment.at, len(self._log)))
            if events > self._most_events:
                self.instants.pop()
                self.note = f"cut off after {events:,} events"
                return
            last: WindowMove | None = None
            for move in moving.towards(self._replay.views(moment)):
                if last is not None and self._by_event:
                    self._on_the_way(partial(engine.move, moment, last))
                self._tell_elements(move)
                last = move
                events += 1
            engine.settle(moment, moving)
            self._say("compute result", self._result.id, engine.result())

    @staticmethod
    def _on_the_way(work: Callable[[], None]) -> None:
        try:
            work()
        except QueryError as error:
            raise _FailedBetween from error

    def _tell_elements(self, move: WindowMove) -> None:
        kind: MessageKind = "element added" if move.comes else "element deleted"
        stream = move.view.stream.name
        for thing, at in move.things:
            self._say(kind, self._windows[move.window], _Arrival(stream, thing, at))

    def tell_bindings(self, operator: int, batch: Batch) -> None:
        """Log the output of an operator: deleted bindings first, then added ones."""
        if len(batch) > 1:
            batch = batch.consolidated()
        rows, weights = batch.rows.tolist(), batch.weights.tolist()
        for row, weight in zip(rows, weights, strict=True):
            for _ in range(-weight):
                self._say("binding deleted", operator, tuple(row))
        for row, weight in zip(rows, weights, strict=True):
            for _ in range(weight):
                self._say("binding added", operator, tuple(row))

    def keep_bindings(self, operator: int, batch: Batch) -> None:
        """Store the output that an operator had before the first message."""
        bag, batch = self._held[operator], batch.consolidated()
        for row, weight in zip(batch.rows.tolist(), batch.weights.tolist(), strict=True):
            self._rows_held += _change(bag, tuple(row), weight)

    def keep_elements(self, window: Window, stream: str, thing: Thing) -> None:
        unit = self._replay.things.unit(stream, thing)
        self._rows_held += _change(self._held[self._windows[window]], unit, 1)

    def _say(self, kind: MessageKind, operator: int, payload: _Payload = None) -> None:
        if len(self._log) >= self._most_messages:
            raise _Full
        self._log.append((kind, operator, payload))
        self._rows_held += self._apply(self._held, kind, operator, payload)
        since = len(self._log) - 1 - self._keyframes[-1][0]
        # A copy costs what is held: this often, all copies together cost as much as the messages.
        if since >= max(_BETWEEN_KEYFRAMES, self._rows_held):
            self._keyframes.append((len(self._log) - 1, self._copied()))

    def _apply(self, held: _Held, kind: MessageKind, operator: int, payload: _Payload) -> int:
        if kind in ("start of evaluation", "compute result"):
            return 0
        key: _Key
        if isinstance(payload, _Arrival):
            key = self._replay.things.unit(payload.stream, payload.thing)
        else:
            assert isinstance(payload, tuple)
            key = payload
        return _change(held[operator], key, 1 if kind in ("element added", "binding added") else -1)

    def _copied(self) -> _Held:
        return {number: dict(bag) for number, bag in self._held.items()}

    # --- reading --------------------------------------------------------------------------------------------------

    def message(self, number: int) -> Message:
        kind, operator, payload = self._log[number]
        at = self.instants[bisect_right(self._log_numbers, number) - 1][0]
        things = self._replay.things
        match payload:
            case _Arrival(stream, thing, arrived):
                element = things.element(stream, thing, arrived)
                return Message(number, at, kind, operator, element.text, None, element)
            case _Result(_, total, entered, left):
                rows = "1 row" if total == 1 else f"{total:,} rows"
                text = f"{rows} at {format_instant(at)}: {entered:,} entered, {left:,} left"
                return Message(number, at, kind, operator, text)
            case tuple():
                values = self._values(payload)
                names, shown = self._shown(operator)
                text = things.row_text(names, values)
                return Message(number, at, kind, operator, text, tuple(to_json(values[one]) for one in shown))
        return Message(number, at, kind, operator, f"{len(self.graph.boxes)} operators begin")

    def state(self, number: int) -> StepState:
        """Return the state of all operators right after a message."""
        message = self.messages[number]
        number = message.number
        held = self._held_after(number)
        memory = {box.id: self._memory(box.id, held[box.id]) for box in self.graph.boxes[:-1]}
        payload = self._log[number][2]
        if isinstance(payload, _Result):
            result = Memory(payload.rows, payload.total)
        else:
            result = self._result_memory(held[self._feeding])
        return StepState(message, {**memory, self._result.id: result}, result)

    def result_rows(self, number: int) -> Counter[tuple[Hashable, ...]]:
        """Return all rows of the result right after a message, as a bag of keys by which rows are compared."""
        found: Counter[tuple[Hashable, ...]] = Counter()
        for key, count in self._held_after(number)[self._feeding].items():
            assert not isinstance(key, ElementUnit)
            values = self._values(key)
            found[row_key(tuple(values[one] for one in self._picked))] += count  # type: ignore[index]
        return found

    def _held_after(self, number: int) -> _Held:
        place = bisect_right(self._keyframes, number, key=lambda one: one[0]) - 1
        begun, kept = self._keyframes[place]
        if self._seen is not None and begun <= self._seen[0] <= number:
            begun, held = self._seen
        else:
            held = {one: dict(bag) for one, bag in kept.items()}
        for kind, operator, payload in self._log[begun + 1 : number + 1]:
            self._apply(held, kind, operator, payload)
        self._seen = (number, held)
        return held

    def _memory(self, operator: int, bag: _Bag) -> Memory:
        _, shown = self._shown(operator)
        rows: list[JsonRow] = []
        for key, count in bag.items():
            if isinstance(key, ElementUnit):  # held once for each event that brought it
                text = self._unit_text(key)
                rows.append((text if count == 1 else f"{text}  × {count}",))
            else:
                values = self._values(key)
                rows += [tuple(to_json(values[one]) for one in shown)] * min(count, SHOWN_ROWS)
            if len(rows) >= SHOWN_ROWS:
                break
        return Memory(tuple(rows[:SHOWN_ROWS]), sum(bag.values()))

    def _result_memory(self, bag: _Bag) -> Memory:
        rows = []
        for key in islice(_each(bag), SHOWN_ROWS):
            assert not isinstance(key, ElementUnit)
            values = self._values(key)
            rows.append(tuple(to_json(values[one]) for one in self._picked))
        return Memory(tuple(rows), sum(bag.values()))

    def _unit_text(self, unit: ElementUnit) -> str:
        match unit.kind:
            case "triple":
                return self._replay.things.triple_text(unit.key)  # type: ignore[arg-type]
            case "node":
                return f"({unit.key})"
        return f"[{unit.key}]"

    def _values(self, ids: _Ids) -> Values:
        decode = self.dictionary.decode
        return tuple([decode(one) for one in ids])

    def _shown(self, operator: int) -> tuple[Sequence[str], Sequence[int]]:
        """Return the columns of an operator's rows, and the indexes of the columns shown to users."""
        spec = self._operators.get(operator)
        names = spec.columns if spec is not None else self._replay.registration.columns
        return names, [place for place, name in enumerate(names) if not name.startswith(" ")]

    @property
    def dictionary(self) -> Dictionary:
        return self._replay.around.contents.encoded.dictionary

    # --- what the two ways of running need ---

    @property
    def replay(self) -> Replay:
        return self._replay

    def set_operators(self, first: int, root: Spec) -> dict[int, int]:
        """Set the operators; returns the ids of those that send messages, by place."""
        places = placed(root)
        speaking = {place: first + place for place, (spec, _) in enumerate(places) if not spec.picks}
        self._operators = {number: places[place][0] for place, number in speaking.items()}
        fed = self._operators[self._feeding]
        self._picked = tuple(fed.index(name) for name in root.columns)
        return speaking


class _OnChanges:
    """Runs the query's operators, which receive every move."""

    def __init__(self, steps: RecordedSteps) -> None:
        self._steps = steps
        replay = steps.replay
        self._flow: QueryFlow = replay.flow()
        root = replay.planned.root
        assert root is not None
        first = len(replay.query.windows) + len(replay.query.static_names)
        self._speaking = steps.set_operators(first, root)
        self._tell: Callable[[int, Batch], None] = steps.tell_bindings
        self._flow.maintained.flow.watch = self._watch
        self._current: dict[Window, WindowEvents] = {}
        self._before: list[Values] = []

    def _watch(self, place: int, batch: Batch) -> None:
        number = self._speaking.get(place)
        if number is not None and len(batch):
            self._tell(number, batch)

    def begin(self, moment: ReplayInstant, moving: Moving) -> None:
        """Bring the operators to their state at an instant."""
        _keep_elements(self._steps, moving)
        self.begin_empty(moment, moving)
        self._before = self._rows()

    def begin_empty(self, moment: ReplayInstant, moving: Moving) -> None:
        """Feed the content that exists before the first message, such as static graphs."""
        self._current = dict(moving.views)
        self._tell = self._steps.keep_bindings
        self._steps.replay.advance(self._flow, moment, self._current)
        self._tell = self._steps.tell_bindings

    def move(self, moment: ReplayInstant, move: WindowMove) -> None:
        self._current = {**self._current, move.window: move.view}
        self._steps.replay.advance(self._flow, moment, self._current, settled=False)

    def settle(self, moment: ReplayInstant, moving: Moving) -> None:
        self._current = dict(moving.views)
        self._steps.replay.advance(self._flow, moment, self._current)

    def _rows(self) -> list[Values]:
        return self._flow.maintained.rows()

    def result(self) -> _Result:
        rows = self._rows()
        before, self._before = self._before, rows
        return _result_of(rows, before)


class _Anew:
    """Runs the plain evaluator, at instants only."""

    def __init__(self, steps: RecordedSteps) -> None:
        self._steps = steps
        self._operator = len(steps.replay.query.windows) + len(steps.replay.query.static_names)
        self._rows: list[Values] = []
        self._before: list[Values] = []

    def begin(self, moment: ReplayInstant, moving: Moving) -> None:
        _keep_elements(self._steps, moving)
        self._rows = self._steps.replay.rows(moment)
        self._steps.keep_bindings(self._operator, self._batch(self._rows, 1))

    def begin_empty(self, moment: ReplayInstant, moving: Moving) -> None:
        pass

    def move(self, moment: ReplayInstant, move: WindowMove) -> None:
        pass

    def settle(self, moment: ReplayInstant, moving: Moving) -> None:
        self._before, self._rows = self._rows, self._steps.replay.rows(moment)
        changes = [self._batch(self._before, -1), self._batch(self._rows, 1)]
        self._steps.tell_bindings(self._operator, concatenated(changes, changes[0].rows.shape[1]).consolidated())

    def _batch(self, rows: Sequence[Values], weight: int) -> Batch:
        encode = self._steps.dictionary.encode
        width = len(self._steps.replay.registration.columns)
        return Batch.of([[encode(value) for value in row] for row in rows], [weight] * len(rows), width)

    def result(self) -> _Result:
        return _result_of(self._rows, self._before)


def _keep_elements(steps: RecordedSteps, moving: Moving) -> None:
    """Store the content of the windows before the first message."""
    replay = steps.replay
    for window, view in moving.views.items():
        for event in replay.inside(view):
            for thing in replay.things.all_of(event):
                steps.keep_elements(window, view.stream.name, thing)


def _result_of(rows: Sequence[Values], before: Sequence[Values]) -> _Result:
    keys, others = [row_key(row) for row in rows], [row_key(row) for row in before]
    entered = sum((Counter(keys) - Counter(others)).values())
    shown = tuple(tuple(map(to_json, row)) for row in rows[:SHOWN_ROWS])
    return _Result(shown, len(rows), entered, len(others) - len(keys) + entered)


def _change(bag: _Bag, key: _Key, weight: int) -> int:
    """Add a weight to a row's count; returns the change in the number of distinct rows."""
    count = bag.get(key, 0) + weight
    if count:
        bag[key] = count
        return int(count == weight)
    del bag[key]
    return -1


def _each(bag: _Bag) -> Iterator[_Key]:
    for key, count in bag.items():
        for _ in range(count):
            yield key


class Messages(Sequence[Message]):
    """All messages of some steps, created on access."""

    def __init__(self, steps: RecordedSteps) -> None:
        self._steps = steps

    def __len__(self) -> int:
        return len(self._steps._log)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self._steps.message(number) for number in numbers]
        return self._steps.message(numbers)
