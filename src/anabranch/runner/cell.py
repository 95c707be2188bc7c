"""A cell: the engine of some streams and queries, kept from batch to batch by its state.

The state is the chunks of the windows and, apart from them, the position of every query and stream. The engine itself
(buffers, unions, compiled plans) is a cache in the worker, named by the token of the state that it agrees with. A cache
that missed some batches takes in the chunks that it has not seen; one that is missing is built again from all of them.

State: O(window) in chunks, written once each; per batch the new chunks and the changed parts of the rest.

Law: the rows that a cell emits depend on the packed rows that it was given, in whatever batches, and not on which cache
it found. The content of the windows determines everything, so recovery is replay.
"""

from __future__ import annotations

import json
import math
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch.engine import checkpoint
from anabranch.engine.answers import Answer
from anabranch.engine.engine import Engine, PushResult
from anabranch.engine.progress import rank
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.stream import StreamBuffer
from anabranch.engine.works import OperatorWork
from anabranch.errors import EngineError, QueryError
from anabranch.formats import chunks, deadletter
from anabranch.formats.answers import AnswerTexts
from anabranch.model.event import Event
from anabranch.model.graph_block import PropertyKeys, times_of, without
from anabranch.model.instants import subtract_duration
from anabranch.planner.link_streams import LinkStream
from anabranch.runner.cell_chunks import (
    CellChunk,
    CellState,
    StoredChunk,
    joined_events,
    labelled,
    opened_ahead,
    unlabelled,
)
from anabranch.runner.job import Job, has_wall_clock, is_live
from anabranch.runner.linked import LinkedRows
from anabranch.runner.refreshing import load_copy
from anabranch.runner.rows import CellRow, PackedRow

FORMAT = 4
_ANCESTORS = 16  # batches after which a cache that missed them is built again
_SECONDS_BETWEEN_LOOKS = 1.0  # between two readings of the operators' counters
_ENGINE = "engine"
_QUERY = "query:"


@dataclass(slots=True)
class _Living:
    """The engine and its bookkeeping that a worker keeps between batches."""

    engine: Engine
    token: str = ""
    ancestors: list[str] = field(default_factory=list)
    queries: str = ""
    next_chunk: int = 0
    entries: dict[int, StoredChunk] = field(default_factory=dict)
    tails: dict[tuple[str, str], tuple[int, Sequence[Event]]] = field(default_factory=dict)  # of the newest small chunk
    parts: dict[str, bytes] = field(default_factory=dict)
    computed: int = 0  # evaluations of the engine that were counted
    verified: tuple[int, int] = (0, 0)  # and those that were verified, and that differed
    graphs: dict[str, str] = field(default_factory=dict)  # static graphs that came during the run: their paths
    clocks: dict[str, int] = field(default_factory=dict)  # numbers of the last executed clock commands
    numbers: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    operators: dict[str, list[OperatorWork]] = field(default_factory=dict)  # as last reported
    operators_told: float = -math.inf
    texts: dict[str, AnswerTexts] = field(default_factory=dict)  # of each query's answers


Cache: TypeAlias = dict[str, _Living]
"""By the cell's name in its run. A worker holds few cells, and forgets the oldest."""
_living: Cache = {}
_MOST_LIVING = 8


def forget_everything() -> None:
    """Drop all caches, so that this process is like a new worker."""
    _living.clear()


class Cell:
    """One cell at one batch.

    `cache` is the process's own unless the caller passes another. `before_each` is called before each evaluation; if it
    raises, the batch is undone, and nothing of it is in the cache.
    """

    def __init__(
        self,
        job: Job,
        name: str,
        state: CellState,
        cache: Cache | None = None,
        before_each: Callable[[], None] | None = None,
    ) -> None:
        self._job = job
        self._before_each = before_each
        self._name = name
        self._state = state
        self._cache = _living if cache is None else cache
        self._links: dict[str, LinkStream] | None = None  # computed on demand
        self._new: dict[int, CellChunk] = {}  # chunks that this batch made or added to
        self._dropped: list[int] = []  # chunks of streams that begin again in this batch
        self._is_new_beginning = False  # older caches cannot catch up
        self.rebuilt = False  # whether the engine was built again from the state
        self.keys: dict[str, PropertyKeys] = {}  # by stream, the properties that queries have asked for

    def process(self, rows: Sequence[PackedRow]) -> Iterator[CellRow]:
        """Process a batch; the state is written before the first row is yielded."""
        living = self._enliven()
        living.engine.ask_before_each(self._before_each)
        stored = living.next_chunk
        told = [*self._reconcile(living), *self._take_in(living, rows)]
        self._save(living, stored)
        self.keys = {name: living.engine.asked_keys(name) for name in living.engine.streams}
        yield from told
        yield self._report(living, _control(rows))

    # --- the cache ------------------------------------------------------------------------------------------------

    def _enliven(self) -> _Living:
        """Return the engine that agrees with the state. It is removed from the cache until the batch has ended."""
        cached = self._cache.pop(self._name, None)
        data = self._state.head()
        if data is None:
            return _Living(self._job.engine())
        head = json.loads(data)
        if head["format"] != FORMAT:
            raise EngineError(f"the state has format {head['format']}; this version of Anabranch reads {FORMAT}")
        if cached is not None and cached.token == head["token"]:
            return cached
        if not self._state.durable:
            raise EngineError("a run without a checkpoint cannot go on after a batch that failed")
        if cached is not None and cached.token in head["ancestors"]:
            living = cached
            grown = [number for number, _ in living.tails.values()]
            missed = [*grown, *range(living.next_chunk, head["next_chunk"])]
            found = ((number, self._state.chunk(number)) for number in missed)
            self._refill(living, ((number, chunk) for number, chunk in found if chunk is not None))
            self._load(living, head)
        else:
            self.rebuilt = True
            living = _Living(self._job.engine())
            self._load(living, head)
            self._refill(living, sorted(self._state.chunks()))
        return living

    def _load(self, living: _Living, head: dict[str, Any]) -> None:
        living.parts = dict(self._state.parts())
        state = _unpack(living.parts[_ENGINE])
        state["queries"] = [_unpack(living.parts[_QUERY + name]) for name in state["queries"]]
        is_whole = self._forget_dropped_streams(state)
        living.engine.load(state, self._job.recompile)
        living.engine.failures()  # they were reported when they happened
        living.token = head["token"]
        living.ancestors = head["ancestors"]
        living.queries = head["queries"] if is_whole else "some"
        living.next_chunk = head["next_chunk"]
        if self._job.options.refresh is not None:  # else the job's own graphs are those to be seen
            _see(living, head["graphs"])
        living.clocks = head.get("clocks", {})
        living.numbers = head["numbers"]
        living.totals = head["totals"]

    def _forget_dropped_streams(self, state: dict[str, Any]) -> bool:
        """Forget the streams that the job no longer has; return whether all queries could stay.

        Queries that name such a stream are dropped later; a query that was bound to it without naming it is dropped
        here, and registered again as a new one.
        """
        streams = {stream.name for stream in self._job.streams}
        state["streams"] = [one for one in state["streams"] if one["origin"] == "query" or one["name"] in streams]
        bound = [one for one in state["queries"] if one["bound_stream"] is None or one["bound_stream"] in streams]
        is_whole = len(bound) == len(state["queries"])
        state["queries"] = bound
        return is_whole

    def _refill(self, living: _Living, stored: Iterable[tuple[int, bytes]]) -> None:
        for number, data in stored:
            entry, packed = unlabelled(number, data)
            if entry.stream not in living.engine.streams:
                self._state.remove_chunk(number)
                continue
            if entry.linked is not None and entry.linked.form != self._form_of_links(entry.stream):
                entry, packed = self._made_whole(entry, entry.linked)
            known = living.entries.get(number)
            living.entries[number] = entry
            skipped = 0 if known is None else known.events
            if skipped < entry.events:
                events = chunks.opened(packed)
                living.engine.refill(entry.stream, entry.split, entry.first_sequence + skipped, events[skipped:])
                # Only the newest chunk may be added to: events stand in the order of their sequence.
                living.tails.pop((entry.stream, entry.split), None)
                if entry.is_small:
                    living.tails[entry.stream, entry.split] = (number, events)

    def _form_of_links(self, stream: str) -> str | None:
        if self._links is None:
            self._links = self._job.link_streams()
        found = self._links.get(stream)
        return None if found is None else found.name

    def _made_whole(self, entry: StoredChunk, linked: LinkedRows) -> tuple[StoredChunk, bytes]:
        """Replace a chunk of links that was made for other queries by a chunk of all events that it stands for."""
        data = chunks.pack(linked.whole(self._job.streams))
        found = chunks.head(data)
        whole = StoredChunk(
            entry.number, entry.stream, entry.split, entry.first_sequence, found.events, found.last, len(data)
        )
        self._state.put_chunk(entry.number, labelled(whole, data))
        return whole, data

    # --- one batch ------------------------------------------------------------------------------------------------

    def _reconcile(self, living: _Living) -> Iterator[CellRow]:
        if living.queries == self._job.fingerprint:
            return
        began = living.queries
        found = living.engine.reconcile(self._job.queries)
        living.queries = self._job.fingerprint
        living.texts = {}
        if began:
            yield _status({"new": found.new, "dropped": found.dropped, "kept": found.kept})

    def _take_in(self, living: _Living, rows: Sequence[PackedRow]) -> Iterator[CellRow]:
        engine = living.engine
        control = _control(rows)
        streams = {stream.name: place for place, stream in enumerate(self._job.streams)}
        _see(living, control.get("graphs", {}))
        for stream in self._job.streams:
            engine.stream(stream.name).now = control.get("now") if has_wall_clock(stream) else None
        self._set_clocks(living, control.get("clocks", {}))
        for name, splits in control["splits"].items():
            if name in streams:
                engine.set_splits(name, splits, control.get("silent", {}).get(name, ()))
        arrived = [row for row in rows if row.kind != "control" and row.stream in streams]
        arrived.sort(key=lambda row: (streams[row.stream], rank(row.split), row.place, row.number))
        for row, chunk in opened_ahead(arrived):
            if chunk is None:
                _count(living, malformed=row.count)
                yield CellRow("malformed", row.stream, rows=row.count, data=row.data)
            else:
                yield from self._push(living, row, chunk)
        for name in control["idle"]:
            if name in streams:
                yield from self._settle_doubts(living, name)
        self._pass_over_silence(engine, control)
        for name in control["closed"]:
            if name in streams and not engine.stream(name).closed:
                yield from self._settle_doubts(living, name, is_over=True)
                engine.close_stream(name)
        if control["end"]:
            engine.finish(self._job.options.until, self._job.options.drain, control.get("now") or 0)
        elif all(map(is_live, self._job.streams)):
            engine.answer_alone(control.get("now") or 0)
        yield from self._tell(living, bool(control["end"]))

    def _set_clocks(self, living: _Living, clocks: dict[str, tuple[int, int]]) -> None:
        """Execute each new command about a stream's clock once, and drop the chunks of streams that begin again."""
        for name, (number, instant) in clocks.items():
            if living.clocks.get(name) == number or name not in living.engine.streams:
                continue
            living.clocks[name] = number
            if living.engine.stream(name).closed:
                continue
            again = living.engine.set_clock(name, instant)
            self._dropped += [number for number, entry in living.entries.items() if entry.stream in again]
            living.entries = {number: one for number, one in living.entries.items() if one.stream not in again}
            living.tails = {key: tail for key, tail in living.tails.items() if key[0] not in again}
            self._is_new_beginning = self._is_new_beginning or bool(again)

    def _push(self, living: _Living, row: PackedRow, chunk: CellChunk) -> Iterator[CellRow]:
        engine = living.engine
        buffer = engine.stream(row.stream)
        linked = chunk.linked
        if linked is not None and not _is_plain(buffer, row.split, chunk):
            # Some events may be late or ahead: all are needed to decide which.
            chunk, linked = CellChunk(linked.whole(self._job.streams)), None
        events = chunk.events
        first = buffer.sequences.get(row.split, 0)
        pushed = engine.push(row.stream, events, row.split)
        if pushed.taken is None and not pushed.late:
            came = len(events) if linked is None else linked.rows
            _count(living, events=came, late=0, ahead=0, corrected=pushed.corrected)
            self._store(living, row.stream, row.split, first, chunk)
        else:
            taken = without(events, pushed.late_places) if pushed.taken is None else pushed.taken
            yield from self._store_taken(living, row.stream, row.split, first, taken, pushed)

    def _settle_doubts(self, living: _Living, name: str, is_over: bool = False) -> Iterator[CellRow]:
        sequences = living.engine.stream(name).sequences
        for split, pushed in living.engine.settle_doubts(name, is_over).items():
            yield from self._store_taken(living, name, split, sequences[split], pushed.taken or (), pushed)

    def _store_taken(
        self, living: _Living, stream: str, split: str, first: int, taken: Sequence[Event], pushed: PushResult
    ) -> Iterator[CellRow]:
        """Store the accepted events of a push, and yield dead letters of the others."""
        for kind, events in (("late", pushed.late), ("ahead", pushed.ahead)):
            if events:
                letter = deadletter.late if kind == "late" else deadletter.ahead
                data = b"".join(deadletter.letter(letter(event)) for event in events)
                yield CellRow("late" if kind == "late" else "ahead", stream, rows=len(events), data=data)
        _count(living, events=len(taken), late=len(pushed.late), ahead=len(pushed.ahead), corrected=pushed.corrected)
        self._store(living, stream, split, first, CellChunk(taken))

    def _pass_over_silence(self, engine: Engine, control: dict[str, Any]) -> None:
        """Let answers go on without silent streams: with the other streams, or by the clock when all are silent."""
        idle = {name: silent for name, silent in control["idle"].items() if name in engine.streams}
        awake = [engine.stream(one.name) for one in self._job.streams if one.name not in idle]
        reached = min((stream.answers_until for stream in awake if not stream.closed), default=None)
        for name, silent in idle.items():
            stream = engine.stream(name)
            now = None if stream.last_event_time is None else stream.last_event_time + silent
            if now is not None and stream.lateness is not None:
                now = subtract_duration(now, stream.lateness)
            engine.pass_silence(name, reached, now)

    # --- telling --------------------------------------------------------------------------------------------------

    def _tell(self, living: _Living, ended: bool) -> Iterator[CellRow]:
        engine = living.engine
        for name in engine.queries:
            for warning in engine.warnings(name):
                yield CellRow("warning", name, at=warning.at, data=str(warning).encode())
        for answer in engine.take(engine.frontier if self._job.ordered and not ended else None):
            yield self._told(living, answer)
        for name, failure in engine.failures():
            asked = engine.query(name).options
            yield CellRow("failure", name, data=json.dumps(_said(failure, asked)).encode())
        queries = [engine.query(name) for name in engine.queries]
        computed = sum(query.outbox.evaluations for query in queries)
        _count(living, evaluations=computed - living.computed)
        living.computed = computed
        if self._job.options.evaluation.verify:
            verified, differing = (
                sum(one.outbox.verified for one in queries),
                sum(one.outbox.differing for one in queries),
            )
            _count(living, verified=verified - living.verified[0], differing=differing - living.verified[1])
            living.verified = (verified, differing)

    def _report(self, living: _Living, control: dict[str, Any]) -> CellRow:
        """Return the report of a batch whose state is written."""
        engine = living.engine
        ended, idle = bool(control["end"]), set(control["idle"])
        queries = [engine.query(name) for name in engine.queries]
        return _status(
            {
                **living.totals,
                "instants": sum(query.outbox.instants_passed for query in queries),
                "ended": ended,
                "done": engine.finished,
                "chunks": len(living.entries),
                "bytes": sum(entry.size for entry in living.entries.values()),
                "streams": {
                    name: {
                        "watermark": engine.stream(name).open_from,
                        "answered": engine.stream(name).answers_until,
                        "idle": name in idle,
                        "ahead": engine.stream(name).set_aside,
                        "in_doubt": engine.stream(name).in_doubt,
                        "clock": living.clocks.get(name, 0),
                        "jumps": engine.stream(name).jumps[0],
                        "last_jump": engine.stream(name).jumps[1],
                        "newest": engine.stream(name).last_event_time,
                        "held": len(engine.stream(name)),
                        "closed": engine.stream(name).closed,
                        "events": sum(engine.stream(name).sequences.values()),
                    }
                    for name in engine.streams
                },
                "skipped": sum(query.outbox.skipped.count for query in queries),
                "failed": sum(query.outbox.failure is not None for query in queries),
                "queries": {query.name: _standing(query) for query in queries},
                "operators": _operators(living, queries, ended),
            }
        )

    def _told(self, living: _Living, answer: Answer) -> CellRow:
        number = living.numbers.get(answer.query, 0)
        living.numbers[answer.query] = number + 1
        _count(living, rows=len(answer.rows))
        forms = self._job.forms
        said = answer.parts()
        texts = living.texts.setdefault(answer.query, AnswerTexts())
        return CellRow(
            "answer",
            answer.query,
            number,
            int(answer.at),
            len(answer.rows),
            texts.json_lines(said) if "json" in forms else b"",
            texts.csv_lines(said, *self._job.csv_form()) if "csv" in forms else b"",
            texts.typed(said) if "typed" in forms else b"",
        )

    # --- the state ------------------------------------------------------------------------------------------------

    def _store(
        self,
        living: _Living,
        stream: str,
        split: str,
        first: int,
        chunk: CellChunk,
    ) -> None:
        """Store a chunk; a small one is joined with the small one before it, so that chunks are few."""
        if not len(chunk.events) or not self._state.durable:
            return
        key = (stream, split)
        number, tail = living.tails.pop(key, (-1, ()))
        entry = living.entries.get(number)
        if entry is not None and chunk.is_small(entry.size, entry.events):
            chunk = CellChunk(joined_events(tail, chunk.events))
            first = entry.first_sequence
        else:
            number = living.next_chunk
            living.next_chunk += 1
        is_small = chunk.is_small()
        if is_small and chunk.data is None:  # its size says whether it is added to
            chunk = chunk._replace(data=chunks.pack(chunk.events))
            is_small = chunk.is_small()
        size = 0 if chunk.data is None else len(chunk.data)
        last = int(times_of(chunk.events).max())
        living.entries[number] = StoredChunk(number, stream, split, first, len(chunk.events), last, size, chunk.linked)
        self._new[number] = chunk
        if is_small:
            living.tails[key] = (number, chunk.events)

    def _save(self, living: _Living, stored: int) -> None:
        """Write the changes of the state.

        The state has no chunk from the number `stored` on, and never sees one that was both made and dropped in this
        batch.
        """
        engine = living.engine
        for entry in list(living.entries.values()):
            if entry.last < engine.stream(entry.stream).complete_from:
                del living.entries[entry.number]
                self._new.pop(entry.number, None)
                if entry.number < stored:
                    self._state.remove_chunk(entry.number)
        for number in self._dropped:
            self._state.remove_chunk(number)
        for number, chunk in self._new.items():
            data = chunks.pack(chunk.events) if chunk.data is None else chunk.data
            living.entries[number].size = len(data)
            self._state.put_chunk(number, labelled(living.entries[number], data))
        if self._state.durable:
            self._save_parts(living)
        living.ancestors = [] if self._is_new_beginning else [*living.ancestors, living.token][-_ANCESTORS:]
        living.token = uuid.uuid4().hex
        head = {
            "format": FORMAT,
            "token": living.token,
            "graphs": living.graphs,
            "ancestors": living.ancestors,
            "queries": living.queries,
            "next_chunk": living.next_chunk,
            "clocks": living.clocks,
            "numbers": living.numbers,
            "totals": living.totals,
        }
        self._state.put_head(json.dumps(head).encode())
        while len(self._cache) >= _MOST_LIVING:
            del self._cache[next(iter(self._cache))]
        self._cache[self._name] = living

    def _save_parts(self, living: _Living) -> None:
        """Write the positions of queries and streams that have changed."""
        state = living.engine.state(events=False)
        queries = {_QUERY + query["name"]: query for query in state["queries"]}
        state["queries"] = [query["name"] for query in state["queries"]]
        parts = {name: _pack(query) for name, query in queries.items()}
        parts[_ENGINE] = _pack(state)
        for name, data in parts.items():
            if living.parts.get(name) != data:
                self._state.put_part(name, data)
        for name in living.parts.keys() - parts.keys():
            self._state.remove_part(name)
        living.parts = parts


def _is_plain(buffer: StreamBuffer, split: str, chunk: CellChunk) -> bool:
    """Return whether a chunk is in time and none of its clocks is in doubt."""
    times = times_of(chunk.events)
    earliest = int(times.min()) if len(times) else 0
    return buffer.is_in_time(earliest, split) and not buffer.may_doubt(times, split)


def _status(detail: dict[str, Any]) -> CellRow:
    return CellRow("status", data=json.dumps(detail).encode())


def _said(error: QueryError, options: QueryOptions) -> dict[str, Any]:
    return {"text": options.text, "file_name": options.file_name, "diagnostics": checkpoint.pack_error(error)}


def _standing(query: ContinuousQuery) -> dict[str, Any]:
    """Return the position of a query, its failure and its skipped rows."""
    found: dict[str, Any] = {"passed": query.cursor.passed, "rows": query.row_count}
    if query.outbox.failure is not None and query.cursor.instants is not None:
        found["failed_at"] = query.cursor.instants.instant(query.cursor.next_index)
    if query.first_skip is not None and query.last_skip is not None:
        found["skipped"] = query.outbox.skipped.count
        found["first_skipped"] = _said(query.first_skip, query.options)
        found["last_skipped"] = _said(query.last_skip, query.options)
    return found


def _operators(living: _Living, queries: Sequence[ContinuousQuery], ended: bool) -> dict[str, list[OperatorWork]]:
    """Return the work of the operators of each query, read again once a second."""
    now = time.monotonic()
    if ended or now - living.operators_told >= _SECONDS_BETWEEN_LOOKS:
        living.operators = {query.name: query.operators() for query in queries}
        living.operators_told = now
    return living.operators


def _see(living: _Living, graphs: dict[str, str]) -> None:
    """Set the static graphs of the engine; the next evaluation sees them."""
    for name, path in graphs.items():
        if living.graphs.get(name) != path:
            living.engine.add_static_graph(name, load_copy(path))
    living.graphs = {**living.graphs, **graphs}


def _control(rows: Sequence[PackedRow]) -> dict[str, Any]:
    """Return the planner's control data for this batch."""
    found = [row for row in rows if row.kind == "control"]
    if len(found) != 1:
        raise EngineError(f"a batch carries one word of the planner, and this one carries {len(found)}")
    control: dict[str, Any] = json.loads(found[0].data)
    return control


def _count(living: _Living, **more: int) -> None:
    for name, number in more.items():
        living.totals[name] = living.totals.get(name, 0) + number


def _pack(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
