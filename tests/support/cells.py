"""A cell without Spark: its state in dictionaries, its batches drawn at random, its worker as forgetful as wanted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from tests.support.graph_events import batch_block, graph_block

from anabranch.engine.compiled import compile_queries
from anabranch.engine.engine import LatePolicy
from anabranch.engine.query_options import QueryOptions
from anabranch.formats import answers as answer_formats
from anabranch.formats import chunks
from anabranch.formats.events import event_to_dict
from anabranch.formats.graph_lines import GraphLines
from anabranch.model.event import Event
from anabranch.runner import cell as cells
from anabranch.runner.cell import Cell
from anabranch.runner.job import Job
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.options import RunOptions
from anabranch.runner.rows import CellRow, PackedRow
from anabranch.sources.base import Decoding, OpenedStream
from anabranch.sources.generators import GeneratorSource
from anabranch.syntax import languages
from anabranch.testing.case_file import CaseFile

CONTROL: dict[str, Any] = {"splits": {}, "idle": {}, "closed": [], "end": False}


def job_of(case: CaseFile, late: LatePolicy | None = None) -> Job:
    """The job that runs a case."""
    names = [name.strip() for name in case.options["streams"].split(",")] if "streams" in case.options else []
    names = names or list(case.streams) or ["stream"]
    streams = tuple(OpenedStream(GeneratorSource(name, "graph", {"count": "0"}), Decoding(name), "") for name in names)
    options = QueryOptions(
        case.options.get("windows", "trailing"),  # type: ignore[arg-type]
        case.options.get("conflicts", "latest"),  # type: ignore[arg-type]
        case.parameters,
        case.now,
    )
    return Job(
        streams,
        compile_queries([languages.script(case.query, case.path.name)], options),
        RunOptions(lateness=case.lateness, late=late or LatePolicy(), until=case.until, drain=case.drain),
        graphs=case.graphs,
        ordered=True,
        forms=("typed",),
    )


def control(**said: Any) -> PackedRow:
    return PackedRow("0", "control", json.dumps({**CONTROL, **said}).encode())


def packed(stream: str, events: Sequence[Event], split: str = "", place: int = 0) -> list[PackedRow]:
    return [
        PackedRow("0", "chunk", data, stream, split, place, number)
        for number, data in enumerate(chunks.pack_all(events))
    ]


def drawn(random: Random, stream: str, events: Sequence[Event], place: int = 0) -> list[PackedRow]:
    """Events on their way to a cell: packed or not, and as a block where they are of one model."""
    if not events:
        return []
    given: Sequence[Event] = events
    if random.random() < 0.6 and not any(event.triples for event in events):
        in_lines = random.random() < 0.5
        block = GraphLines.of_dicts([event_to_dict(event) for event in events]) if in_lines else batch_block(events)
        given = graph_block(events) if block is None or random.random() < 0.3 else block
    if random.random() < 0.5:
        return [PackedRow("0", "chunk", chunks.pack(given), stream, "", place)]
    return [PackedRow("0", "chunk", b"", stream, "", place, events=given)]


def answers_of(rows: Iterable[CellRow]) -> list[answer_formats.AnswerParts]:
    return [answer_formats.from_typed(row.typed) for row in rows if row.kind == "answer"]


class Worker:
    """Runs a cell's batches; between them it forgets, remembers something old, or has a batch taken back."""

    def __init__(self, job: Job, random: Random | None = None, name: str = "cell") -> None:
        self.job = job
        self.state = MemoryState()
        self.rows: list[CellRow] = []
        self._random = random
        self._name = name
        self._old: Any = None
        cells.forget_everything()

    def batch(self, rows: Sequence[PackedRow]) -> list[CellRow]:
        if self._random is not None and self._random.random() < 0.2:
            self._try_in_vain(rows)
        told = list(Cell(self.job, self._name, self.state).process(rows))
        self.rows += told
        if self._random is not None:
            self._misremember(self._random)
        return told

    def _try_in_vain(self, rows: Sequence[PackedRow]) -> None:
        """A task that was done and whose result was lost: the worker remembers it, the state does not."""
        state = copy.deepcopy(self.state)
        list(Cell(self.job, self._name, state).process(rows))

    def _misremember(self, random: Random) -> None:
        match random.randrange(5):
            case 0:
                cells.forget_everything()
            case 1:
                self._old = copy.deepcopy(cells._living[self._name])
            case 2 if self._old is not None:
                cells._living[self._name] = copy.deepcopy(self._old)


def play(case: CaseFile, random: Random, late: LatePolicy | None = None) -> list[CellRow]:
    """All events of a case in drawn batches, to the end."""
    job = job_of(case, late)
    worker = Worker(job, random)
    waiting = {name: list(events) for name, events in case.streams.items()}
    while any(waiting.values()):
        rows: list[PackedRow] = []
        for name, events in waiting.items():
            count = random.choice([0, 1, 1, 2, 3, 8])
            cut = random.randint(0, count)
            rows += drawn(random, name, events[cut:count], place=1) + drawn(random, name, events[:cut], place=0)
            del events[:count]
        random.shuffle(rows)
        worker.batch([*rows, control()])
    worker.batch([control(end=True, closed=[stream.name for stream in job.streams])])
    return worker.rows
