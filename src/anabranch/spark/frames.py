"""Queries over Spark's data frames: frames of streams in, one frame of answers out, in the user's own session.

    rows -> mapInArrow: chunks -> groupBy(cell) -> transformWithState: a cell -> mapInArrow: typed columns

A batch frame is a whole stream, and its answers are those of a stream that has ended. Of streaming frames, Spark's own
checkpoint keeps the cell's state: restarts, triggers and sinks are Spark's.

Law: all rows of a micro-batch are taken in the order of their times, whatever partitions they come in. The lateness of
a stream is the delay of `withWatermark`. The answers are those of a `Session` that was pushed the rows in this order.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any, TypedDict, Unpack

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.engine import checkpoint
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import Evaluator
from anabranch.engine.progress import LatePolicy
from anabranch.engine.session import DurationLike, InstantLike
from anabranch.errors import EngineError, StreamError
from anabranch.formats.answer_tables import HEAD, AnswerTables
from anabranch.formats.answers import RESERVED, beside, csv_columns
from anabranch.formats.events import GraphLike, any_graph_from
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.runner.cell import Cell
from anabranch.runner.frame_batches import in_order
from anabranch.runner.job import Job
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.options import RunOptions, StreamOptions
from anabranch.runner.packing import pack_piece
from anabranch.runner.rows import CELL, PACKED_SCHEMA, TOLD_COLUMNS, TOLD_SCHEMA, CellRow, PackedRow, told_values
from anabranch.runner.source_settings import SourceSettings
from anabranch.runner.spec import RunSpec
from anabranch.sources.base import Limit, OpenedStream, Piece
from anabranch.sources.frames import TEXT, FrameSource, rows_of
from anabranch.sources.stream_specs import StreamSpec
from anabranch.spark.processor import CellProcessor
from anabranch.spark.source import packed_batch
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_DELAY = "spark.watermarkDelayMs"  # what Spark notes in the column of a watermark
_SPARK_TYPES = {
    "int64": "bigint", "float64": "double", "string": "string", "bool": "boolean", "timestamp": "timestamp",
    "json": "string",
}  # fmt: skip
_SET_ASIDE = ("malformed", "late", "ahead")
_HEAD_SCHEMA = (
    "query string, number bigint, at timestamp, op string, correction string, win_start timestamp, win_end timestamp"
)
METRICS = "anabranch"
"""The name of the figures that each batch reports: `observedMetrics` of Spark's progress has them."""


class FrameSettings(TypedDict, total=False):
    """The options of queries over frames, as `RunSettings` has them. Spark's own options do the rest."""

    windows: WindowPolicy
    conflicts: ConflictPolicy
    evaluator: Evaluator
    parameters: Mapping[str, object]
    mapping: ModelMapping
    rules: str | Iterable[str]
    evaluation: EvaluationOptions
    lateness: DurationLike | None
    late: LatePolicy
    until: InstantLike | None
    drain: bool


def query(
    text: str | Sequence[QueryText],
    streams: Mapping[str, DataFrame],
    *,
    types: Mapping[str, str] | None = None,
    graphs: Mapping[str, GraphLike | TripleGraph | str] | None = None,
    letters: bool = False,
    **settings: Unpack[FrameSettings],
) -> DataFrame:
    """Return the answers of the queries of one or several texts over data frames, as one data frame.

    `streams` are names with frames, all of them streaming or all of them batch frames. The rows of a frame are events
    (`at`, `nodes`, `relationships`), triples (`s`, `p`, `o`, `at`), JSON texts in a column `value`, or records that a
    LOAD STREAM of the text maps. `withWatermark` on the time of a frame says how late its rows may be; `lateness` does
    so for frames without one.

    A row of the result has the columns `query`, `number`, `at`, `op`, `correction`, `win_start`, `win_end` and those of
    all queries, which are JSON texts unless `types` gives them a type (int64, float64, string, bool, timestamp). With
    `letters`, rows that were set aside come too: `op` is malformed, late or ahead, `query` is the stream, and the
    column `letter` has the reason. Each batch reports how many there were (`observedMetrics`), in any case.
    """
    unknown = settings.keys() - FrameSettings.__annotations__.keys()
    if unknown:
        raise EngineError(f"no option `{min(unknown)}` of queries over frames\nhint: Spark's own options do the rest")
    options = RunOptions.of(**settings, idle_timeout=None, ahead=None, engine="local")
    texts = [QueryText(text)] if isinstance(text, str) else text
    given = graphs or {}
    spec = RunSpec.of(
        [languages.script(*one) for one in texts],
        [(name, name) for name in streams],
        options,
        [(name, one) for name, one in given.items() if isinstance(one, str)],
        {name: any_graph_from(one) for name, one in given.items() if not isinstance(one, str)},
    )
    frames = [_FramedStream.of(stream, streams) for stream in spec.streams]
    if not frames:
        raise StreamError("a query over frames needs a frame\nhint: a query without a stream is for anabranch.evaluate")
    spec.check()
    is_streaming = _is_streaming(frames)
    job = Job(
        tuple(one.opened for one in frames),
        spec.queries,
        options,
        {one.opened.name: StreamOptions(lateness=one.delay) for one in frames if one.delay is not None},
        graphs=spec.graphs,
        forms=("typed",),
        ordered=not is_streaming,
        reduces_links=False,  # rows are not read a second time
    )
    packed = reduce(DataFrame.union, [one.packed(job) for one in frames]).groupBy("cell")
    if is_streaming:
        told = packed.transformWithState(FrameProcessor(job), TOLD_SCHEMA, "Append", "None")
    else:
        told = packed.applyInArrow(_backtest(job), TOLD_SCHEMA)
    answers = _TypedAnswerColumns.of(job, types, letters)
    return told.observe(METRICS, *_figures()).mapInArrow(answers, answers.schema)


def _is_streaming(frames: Sequence[_FramedStream]) -> bool:
    kinds = {one.frame.isStreaming for one in frames}
    if len(kinds) > 1:
        batch = next(one.opened.name for one in frames if not one.frame.isStreaming)
        raise StreamError(
            f"stream `{batch}` is a batch frame beside streaming ones\n"
            "hint: give what does not change as a static graph (graphs=...), or read the frame as a stream"
        )
    found = kinds.pop()
    if found:
        provider = frames[0].frame.sparkSession.conf.get(_PROVIDER, "")
        if provider != _ROCKS:
            raise EngineError(
                "queries over streaming frames keep their state in RocksDB, and this session has another state store\n"
                f"hint: spark.conf.set('{_PROVIDER}', '{_ROCKS}')"
            )
    return found


def _figures() -> list[Any]:
    """The figures that each batch reports: rows told, rows set aside by kind, and all events taken in so far."""
    rows = [F.coalesce(F.sum(F.when(F.col("kind") == kind, F.col("rows"))), F.lit(0)) for kind in _SET_ASIDE]
    told = F.coalesce(F.sum(F.when(F.col("kind") == "answer", F.col("rows"))), F.lit(0))
    status = F.when(F.col("kind") == "status", F.get_json_object(F.col("data").cast("string"), "$.events"))
    figures = zip((told, *rows), ("rows", *_SET_ASIDE), strict=True)
    return [*(figure.alias(name) for figure, name in figures), F.max(status.cast("bigint")).alias("events")]


# --- in: rows become chunks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FramedStream:
    """A stream of a query, its frame with the columns that are read, and its delay where it has a watermark."""

    opened: OpenedStream
    frame: DataFrame
    delay: Duration | None

    @classmethod
    def of(cls, stream: StreamSpec, frames: Mapping[str, DataFrame]) -> _FramedStream:
        frame = frames.get(stream.addresses[0])
        if frame is None:
            known = ", ".join(frames) or "none"
            raise StreamError(f"there is no frame for stream `{stream.name}`; there are: {known}")
        if not isinstance(getattr(frame, "isStreaming", None), bool):
            raise StreamError(f"stream `{stream.name}`: {type(frame).__name__} is no data frame of Spark")
        kinds = dict(frame.dtypes)
        has_texts = kinds.get(TEXT) == "binary" or (list(kinds) == [TEXT] and kinds[TEXT] == "string")
        rows = rows_of(stream.name, frame.columns, has_texts, not stream.records_are_events)
        delays = [field.metadata[_DELAY] for field in frame.schema.fields if _DELAY in field.metadata]
        return cls(
            OpenedStream(FrameSource(stream.name, rows), stream.decoding, "a data frame"),
            frame.select(*(F.col(f"`{name.replace('`', '``')}`") for name in rows.columns)),
            Duration(nanoseconds=int(delays[0]) * 1_000_000) if delays else None,
        )

    def packed(self, job: Job) -> DataFrame:
        settings = SourceSettings((self.opened,), job.fingerprint, Limit(), {})
        return self.frame.mapInArrow(_Packer(settings, self.opened.name), PACKED_SCHEMA)


@dataclass(frozen=True, slots=True)
class _Packer:
    """Packs the rows of a task into chunks. The number of a row counts within its task, whose name is the batch and the
    partition: the same in a second try."""

    settings: SourceSettings
    stream: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        partition = task.partitionId()
        name = f"{task.getLocalProperty('streaming.sql.batchId') or 0}.{partition}"
        rows = number = 0
        for batch in batches:
            piece = Piece(self.stream, "", partition, {"batch": batch, "rows": rows, "name": name})
            for row in pack_piece(self.settings, piece):
                yield packed_batch([PackedRow(CELL, row.kind, row.data, row.stream, "", partition, number, row.count)])
                number += 1
            rows += len(batch)


# --- a cell -----------------------------------------------------------------------------------------------------------


class FrameProcessor(CellProcessor):
    """Runs a cell on each micro-batch of frames. The job travels in Spark's closure."""

    def __init__(self, job: Job) -> None:
        super().__init__("", "", uuid.uuid4().hex)
        self._known_job = job

    def _job(self) -> Job:
        return self._known_job

    def _batch(self, rows: list[PackedRow]) -> list[PackedRow]:
        return in_order(rows, self._known_job, is_over=False)


def _backtest(job: Job) -> Callable[[pa.Table], pa.Table]:
    """Return a function that answers all packed rows of batch frames: the stream has ended behind them."""

    def told(table: pa.Table) -> pa.Table:
        packed = [PackedRow(**row) for row in table.to_pylist()]
        cell = Cell(job, CELL, MemoryState(durable=False), cache={})
        rows = [told_values(row, place) for place, row in enumerate(cell.process(in_order(packed, job, is_over=True)))]
        return pa.table(dict(zip(TOLD_COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))

    return told


# --- out: answers become columns --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TypedAnswerColumns:
    """Makes the columns of the result from the rows of a cell. A query that has failed raises its error."""

    queries: Mapping[str, Sequence[str]]
    types: Mapping[str, str]
    columns: tuple[str, ...]
    letters: bool

    @classmethod
    def of(cls, job: Job, types: Mapping[str, str] | None, letters: bool) -> _TypedAnswerColumns:
        queries = {one.registration.name: tuple(one.registration.columns) for one in job.queries}
        found = cls(queries, dict(types or {}), tuple(csv_columns(queries.values())), letters)
        found._tables()  # types that nobody can have are refused here
        return found

    def _tables(self) -> AnswerTables:
        return AnswerTables(self.queries, self.types)

    @property
    def shown(self) -> list[str]:
        """The names of the queries' columns beside the others, in Spark's spelling."""
        return beside(self.columns, (*RESERVED, "letter"))

    @property
    def schema(self) -> str:
        own = (
            f"`{shown.replace('`', '``')}` {_SPARK_TYPES[self.types.get(name, 'json')]}"
            for name, shown in zip(self.columns, self.shown, strict=True)
        )
        return ", ".join([_HEAD_SCHEMA, *own, *(["letter string"] if self.letters else [])])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = self._tables()
        own = [pa.field(shown, tables.type_of(name)) for name, shown in zip(self.columns, self.shown, strict=True)]
        letter = [pa.field("letter", pa.string())] if self.letters else []
        schema = pa.schema([pa.field("query", pa.string()), *(one.with_nullable(True) for one in HEAD), *own, *letter])
        for batch in batches:
            rows = [CellRow(kind, *rest) for kind, _place, *rest in zip(*_columns(batch), strict=True)]
            for row in rows:
                if row.kind == "failure":
                    said = row.detail()
                    raise EngineError(
                        str(checkpoint.unpack_error(said["diagnostics"], said["text"], said["file_name"]))
                    )
            told = [row for row in rows if row.kind == "answer" and row.rows]
            for name, some in groupby(told, key=lambda row: row.query):
                head, columns = tables.arrays(name, ((row.number, row.typed) for row in some))
                arrays = {"query": pa.array([name] * len(head[0])), **_named(head)}
                arrays |= {
                    shown: columns[one] for one, shown in zip(self.columns, self.shown, strict=True) if one in columns
                }
                yield _filled(schema, arrays)
            if self.letters:
                yield from (_letters(schema, row) for row in rows if row.kind in _SET_ASIDE)


def _letters(schema: pa.Schema, row: CellRow) -> pa.RecordBatch:
    lines = row.data.decode().splitlines()
    count = len(lines)
    return _filled(schema, {
        "query": pa.array([row.query] * count), "op": pa.array([row.kind] * count), "letter": pa.array(lines),
    })  # fmt: skip


def _filled(schema: pa.Schema, arrays: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch of the schema; columns that are not there are null."""
    count = len(arrays["query"])
    filled = [arrays[one.name] if one.name in arrays else pa.nulls(count, one.type) for one in schema]
    return pa.RecordBatch.from_arrays(filled, schema=schema)


def _columns(batch: pa.RecordBatch) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in TOLD_COLUMNS]


def _named(head: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((one.name for one in HEAD), head, strict=True))
