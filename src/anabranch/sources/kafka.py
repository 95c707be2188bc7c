"""Kafka as a source: a topic whose records are JSON, read by ranges of offsets.

`kafka://host:port/topic?from=earliest&until=end&group=name&timeout=60&rdkafka.security.protocol=SSL`. A split is a
partition. The offsets of Anabranch's own checkpoint decide what is read; those that brokers keep for a consumer group
are written (with `group`) and never read.

Invariant: an offset names the next record of each partition, so the ranges between offsets meet without gap or overlap;
a partition that appears later enters the offset at its first record before any of its records is read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anabranch.errors import EvaluationError, StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.ndjson import read_line_as
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.sources import kafka_client as client
from anabranch.sources.address import Address
from anabranch.sources.base import Backlog, Decode, Limit, Offset, PackedRecord, Piece, Source
from anabranch.sources.messages import pack_messages
from anabranch.sources.reach import ANYWHERE, Reach

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream

_OPTIONS: Mapping[str, str] = {
    "from": "where a first run begins: earliest, latest or an instant; earliest unless given",
    "until": "end: stop at what the topic has when the run begins",
    "group": "a consumer group whose offsets follow the run, for tools that show its lag",
}
_PIECE_RECORDS = 100_000
_UNKNOWN_SIZE_RECORDS = 65_536  # per partition and batch, when the size of records is unknown
_SAMPLE_RECORDS = 500
_SAMPLES_FROM = 1_000  # a smaller backlog fits whatever the size of its records is
_BATCHES_PER_SAMPLE = 64
_LIST_EVERY = 5.0  # seconds between two checks for new partitions

_log = logging.getLogger(__name__)


class KafkaSource(Source):
    """One topic. Only its settings are sent to workers; what the planner learns (partitions, sizes) stays with the
    planner.
    """

    def __init__(
        self,
        stream: str,
        bootstrap: str,
        topic: str,
        options: Mapping[str, str] | None = None,
        reach: Reach = ANYWHERE,
    ) -> None:
        self.stream = stream
        self._options = dict(options or {})
        self.topic = client.topic_of(bootstrap, topic, self._options, _OPTIONS, reach)
        self._from = self._options.get("from", "earliest")
        self._since = None if self._from in ("earliest", "latest") else self._instant(self._from)
        until = self._options.get("until")
        if until not in (None, "end"):
            raise StreamError(f"{self.topic}: until=`{until}` is not known\nhint: until=end stops at what there is now")
        self._finite = until == "end"
        self._partitions: list[int] = []
        self._listed_at: float | None = None
        self._marks: tuple[dict[int, int], dict[int, int]] | None = None
        self._record_size: float | None = None
        self._batches_since_sample = 0
        self._committed: Mapping[str, int] = {}

    @classmethod
    def from_address(cls, stream: str, address: Address, reach: Reach = ANYWHERE) -> KafkaSource:
        """The source of `kafka://host:port/topic?options`."""
        return cls(stream, client.bootstrap_of(address), address.path, address.options, reach)

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaSource, (self.stream, self.topic.bootstrap, self.topic.name, self._options, self.topic.reach)

    @property
    def finite(self) -> bool:
        return self._finite

    # --- the planner ---

    def begin(self) -> Offset:
        numbers = client.partitions(self.topic)
        ends = client.offsets(self.topic, numbers, "latest")
        if self._from == "latest":
            begins = ends
        elif self._since is None:
            begins = client.offsets(self.topic, numbers, "earliest")
        else:
            found = client.offsets(self.topic, numbers, self._since)
            # Committed data ends at `ends`, also where a record of an open transaction has the instant already.
            begins = {number: ends[number] if at < 0 else min(at, ends[number]) for number, at in found.items()}
        offset: Offset = {"partitions": _as_json(begins)}
        if self._finite:
            offset["until"] = _as_json(ends)
        return offset

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        reached = _positions(start, "partitions")
        until = _positions(start, "until") if "until" in start else None
        if until is not None and self.ended(start):
            return start
        lows, highs = self._look(reached if until is not None else None)
        backlog: dict[int, int] = {}
        after = dict(reached)
        for number in lows:
            if number not in reached:
                after[number] = lows[number]
                continue
            goal = highs[number] if until is None else until.get(number, reached[number])
            if reached[number] < goal or until is None:
                self._check(number, reached[number], lows[number], max(reached[number], goal), highs[number])
            if goal > reached[number]:
                backlog[number] = goal - reached[number]
        gone = sorted(set(reached) - set(lows))
        if gone:
            raise StreamError(
                f"{self.topic} has no partition {gone[0]} any more: the topic was made anew\nhint: begin a new run"
            )
        for number, share in _shares(backlog, self._records_of_batch(backlog, reached, limit)).items():
            after[number] += share
        return start if after == reached else {**start, "partitions": _as_json(after)}

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        begins, ends = _positions(start, "partitions"), _positions(end, "partitions")
        return [
            Piece(
                self.stream,
                str(number),
                first,
                {"partition": number, "start": first, "end": min(first + _PIECE_RECORDS, ends[number])},
            )
            for number in sorted(begins)
            for first in range(begins[number], ends.get(number, 0), _PIECE_RECORDS)
        ]

    def ended(self, offset: Offset) -> bool:
        if "until" not in offset:
            return False
        reached = offset["partitions"]
        return all(reached.get(number, 0) >= end for number, end in offset["until"].items())

    def splits(self, offset: Offset) -> list[str]:
        return sorted(offset["partitions"], key=int)

    def commit(self, offset: Offset) -> None:
        reached = offset["partitions"]
        if "group" not in self._options or reached == self._committed:
            return
        try:
            client.commit(self.topic, _positions(offset, "partitions"))
        except StreamError as error:
            # Only tools that show the lag read this; the run must not end for them.
            _log.warning("the offsets of group `%s` could not be told: %s", self.topic.group, error)
        else:
            self._committed = dict(reached)

    def backlog(self, offset: Offset) -> Backlog:
        """Return the records read and known, counted from the first in the topic; markers count as records."""
        reached = _positions(offset, "partitions")
        if self._marks is None:
            try:
                self._look(None)
            except StreamError:
                return Backlog()
        assert self._marks is not None
        lows, highs = self._marks
        goals = {**highs, **_positions(offset, "until")} if "until" in offset else highs
        done = sum(max(0, at - lows.get(number, 0)) for number, at in reached.items())
        left = sum(max(0, goals.get(number, 0) - at) for number, at in reached.items())
        return Backlog(done, done + left)

    def close(self) -> None:
        client.forget(self.topic)

    def _look(self, known: Mapping[int, int] | None) -> tuple[dict[int, int], dict[int, int]]:
        """Return the first offset and the end of each partition. A run with an end takes no new partitions beyond
        `known`.
        """
        if known is not None:
            self._partitions = list(known)
        elif self._listed_at is None or time.monotonic() - self._listed_at >= _LIST_EVERY:
            self._partitions = client.partitions(self.topic)
            self._listed_at = time.monotonic()
        # First offsets are requested first, so that retention in between cannot put one behind its end.
        lows = client.offsets(self.topic, self._partitions, "earliest")
        self._marks = lows, client.offsets(self.topic, self._partitions, "latest")
        return self._marks

    def _check(self, number: int, at: int, low: int, goal: int, high: int) -> None:
        if at < low:
            raise client.lost(self.topic, number, at, low, f"the topic begins at {low}")
        if goal > high:
            raise client.lost(self.topic, number, high, goal, f"the topic ends at {high}")

    def _records_of_batch(self, backlog: Mapping[int, int], reached: Mapping[int, int], limit: Limit) -> int:
        total = sum(backlog.values())
        if limit.records is not None:
            total = min(total, max(1, limit.records))
        stale = self._record_size is None or self._batches_since_sample >= _BATCHES_PER_SAMPLE
        if stale and total >= _SAMPLES_FROM:
            number = max(backlog, key=lambda one: backlog[one])
            self._record_size = self._sample(number, reached[number], reached[number] + backlog[number])
            self._batches_since_sample = 0
        self._batches_since_sample += 1
        if self._record_size is None:
            return min(total, _UNKNOWN_SIZE_RECORDS * len(backlog))
        return min(total, max(1, int(limit.size / self._record_size)))

    def _sample(self, number: int, start: int, end: int) -> float | None:
        """Estimate the bytes per record at the front of the backlog: brokers report numbers of records, not sizes."""
        reading = client.records(self.topic, number, start, min(end, start + _SAMPLE_RECORDS))
        try:
            messages = next(reading, None)
        finally:
            reading.close()  # type: ignore[attr-defined]
        if not messages:
            return None
        return max(1.0, sum(len(one.value() or b"") + len(one.key() or b"") for one in messages) / len(messages))

    def _instant(self, text: str) -> int:
        try:
            return parse_instant(text) // 1000
        except EvaluationError:
            raise StreamError(
                f"{self.topic}: from=`{text}` is not known\n"
                f"hint: write earliest, latest, or an instant such as 2022-10-14T14:45:00Z"
            ) from None

    # --- the worker ---

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        for values in self._values(piece):
            for offset, value in values:
                yield from self._record(piece, offset, value, decode)

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        number = piece.where["partition"]
        for values in self._values(piece):
            offsets, texts = [offset for offset, _ in values], [value for _, value in values]
            exact = partial(self._at, piece, values, decode)
            yield from pack_messages(offsets, texts, decode, lambda offset: f"{number}-{offset}", exact)

    def _at(
        self, piece: Piece, values: Sequence[tuple[int, bytes]], decode: Decode, place: int
    ) -> Iterator[Event | MalformedRecord]:
        return self._record(piece, *values[place], decode)

    def _values(self, piece: Piece) -> Iterator[list[tuple[int, bytes]]]:
        """Yield the offsets and the values of messages, as many as come at once."""
        where = piece.where
        for messages in client.records(self.topic, where["partition"], where["start"], where["end"]):
            found = ((message.offset(), message.value()) for message in messages)
            # A message without a value is a tombstone: for compaction, not for us.
            yield [(offset, value) for offset, value in found if offset is not None and isinstance(value, bytes)]

    def _record(self, piece: Piece, offset: int, value: bytes, decode: Decode) -> Iterator[Event | MalformedRecord]:
        number = piece.where["partition"]
        record = read_line_as(value, offset, lambda data, offset: decode(data, f"{number}-{offset}"))
        if isinstance(record, MalformedRecord):
            place = f"{self.topic.name}[{number}]@{offset}"
            yield MalformedRecord(f"{place}: {record.reason}", raw=record.raw)
        elif record is not None:
            yield record


def _positions(offset: Offset, part: str) -> dict[int, int]:
    return {int(number): at for number, at in offset[part].items()}


def _as_json(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(number): positions[number] for number in sorted(positions)}


def _shares(backlog: Mapping[int, int], total: int) -> dict[int, int]:
    """Give each partition the same share, and the rest of short ones to the longer: no partition waits for another."""
    shares: dict[int, int] = {}
    waiting = sorted(backlog, key=lambda number: backlog[number])
    for index, number in enumerate(waiting):
        shares[number] = min(backlog[number], total // (len(waiting) - index))
        total -= shares[number]
    return shares
