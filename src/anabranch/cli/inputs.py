"""Where events come from: the streams of the command line and of LOAD STREAM, opened; and their records for a replay.

Invariant: every record of every input comes out once, as an event or as a malformed record, in the order of its input.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import typer

from anabranch.cli.options import STDIN
from anabranch.errors import EngineError, MalformedEventError
from anabranch.formats.ndjson import read_ndjson_as
from anabranch.model.event import Event
from anabranch.sources.address import KAFKA, parse_address
from anabranch.sources.base import Decoding, Limit, OpenedStream, Source
from anabranch.sources.open import open_source
from anabranch.sources.receivers.received import ReceivedSource
from anabranch.sources.wanted import Wanted, open_stream, wanted_streams
from anabranch.syntax.languages import QueryText

Record = tuple[str, Event | MalformedEventError | None]
"""A stream's name and what came on it; None when nothing more will."""

_NAP = 0.05  # seconds until a live input is asked again


def streams_of(streams: Sequence[tuple[str, str]], texts: Sequence[QueryText]) -> list[Wanted]:
    """The streams that texts read, of which at most one comes from stdin."""
    if sum(address == STDIN for _, address in streams) > 1:
        raise typer.BadParameter("only one stream can come from stdin", param_hint="--stream")
    return wanted_streams(streams, texts)


# --- records for a replay in this process -----------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """How much of the input has been read; a total of None means that nobody knows."""

    total: int | None = 0
    done: int = 0


@dataclass(slots=True)
class StreamInput:
    """One stream's records, in their order of arrival. `live` input is passed on record by record."""

    name: str
    records: Iterable[Event | MalformedEventError]
    live: bool = False


@dataclass(slots=True)
class Inputs:
    streams: list[StreamInput]
    meter: Meter = field(default_factory=Meter)

    @property
    def names(self) -> list[str]:
        return [stream.name for stream in self.streams]

    @property
    def live(self) -> bool:
        return any(stream.live for stream in self.streams)

    def merged(self) -> Iterator[Record]:
        """All records by time; each stream keeps its own order, and a malformed record comes where it stands. The end
        of a stream comes behind its last record."""
        timed = [_timed(index, stream) for index, stream in enumerate(self.streams)]
        for _, index, record in heapq.merge(*timed, key=lambda item: item[:2]):
            yield self.streams[index].name, record


def open_inputs(
    streams: Sequence[tuple[str, str]], texts: Sequence[QueryText], warn: Callable[[str], None] = lambda text: None
) -> Inputs:
    """The records of all streams that texts read, read in this process. A peer that does not answer is told to `warn`,
    once for each reason."""
    meter = Meter()
    opened = []
    for wanted in streams_of(streams, texts):
        if STDIN in wanted.addresses:
            if len(wanted.addresses) > 1:
                raise typer.BadParameter("stdin cannot be one of several inputs", param_hint="--stream")
            meter.total = None
            opened.append(StreamInput(wanted.name, _read_stdin(wanted.decoding), live=True))
        else:
            stream = open_stream(wanted, _local_source)
            opened.append(_stream_input(stream, meter, warn))
    return Inputs(opened, meter)


def _local_source(name: str, address: str, records_are_events: bool) -> Source:
    parsed = parse_address(address)
    if parsed.is_pushed:
        return ReceivedSource(name, parsed)
    if parsed.scheme == KAFKA:
        raise EngineError(f"{parsed.shown} is read by Spark\nhint: leave out --engine local")
    return open_source(name, address, records_are_events=records_are_events)


def _stream_input(stream: OpenedStream, meter: Meter, warn: Callable[[str], None]) -> StreamInput:
    source = stream.source
    begin = source.begin()
    total = source.backlog(begin).total
    meter.total = None if total is None or meter.total is None else meter.total + total

    def records() -> Iterator[Event | MalformedEventError]:
        decode = stream.decoding.decoder()
        offset, told = begin, ""
        try:
            while not source.ended(offset):
                to = source.ahead(offset, Limit())
                trouble = source.trouble if isinstance(source, ReceivedSource) else ""
                if trouble != told:
                    told = trouble
                    if told:
                        warn(f"stream {stream.name}: {told}; trying again")
                if to == offset:
                    time.sleep(_NAP)
                    continue
                for piece in source.pieces(offset, to):
                    yield from source.read(piece, decode)
                meter.done += source.backlog(to).done - source.backlog(offset).done
                offset = to
        finally:
            source.close()

    return StreamInput(stream.name, records(), live=not source.finite)


def _read_stdin(decoding: Decoding) -> Iterator[Event | MalformedEventError]:
    # The raw file gives what is there; the buffered one would wait for a full block.
    decode = decoding.decoder()
    buffer = sys.stdin.buffer
    raw = cast(BinaryIO, getattr(buffer, "raw", buffer))
    for _, record in read_ndjson_as(raw, lambda data, number: decode(data, str(number))):
        yield record


def _timed(index: int, stream: StreamInput) -> Iterator[tuple[int, int, Event | MalformedEventError | None]]:
    last = -(2**63)
    for record in stream.records:
        last = record.event_time if isinstance(record, Event) else last
        yield last, index, record
    yield last, index, None
