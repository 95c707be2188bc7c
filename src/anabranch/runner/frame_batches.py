"""Batches of rows from data frames: somebody else reads them, in partitions that know no order.

Law: the events of a batch come in the order of their times, those of one time in an order that depends on the chunks
and their partitions alone. So a second try of the same batch gives the same, and an event is late only by what earlier
batches had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from anabranch.formats import chunks
from anabranch.model.event import Event
from anabranch.model.graph_block import EventBlock, joined, times_of
from anabranch.runner.job import Job
from anabranch.runner.rows import CELL, PackedRow


def in_order(rows: Iterable[PackedRow], job: Job, is_over: bool) -> list[PackedRow]:
    """Return the rows of a batch in the order of time, with the control data of a batch; `is_over` ends the streams.

    Chunks that overlap in time are joined and sorted.
    """
    names = [stream.name for stream in job.streams]
    control = {"splits": {name: [""] for name in names}, "idle": {}, "closed": names if is_over else [], "end": is_over}
    found = [PackedRow(CELL, "control", json.dumps(control).encode())]
    rows = sorted(rows, key=lambda row: (row.stream, row.place, row.number))
    found += [row for row in rows if row.kind == "malformed"]
    for stream, own in groupby((row for row in rows if row.kind == "chunk"), key=lambda row: row.stream):
        for place, some in enumerate(_overlapping(own)):
            for number, (events, data) in enumerate(_sorted(some)):
                found.append(PackedRow(CELL, "chunk", data, stream, "", place, number, events=events))
    return found


def _overlapping(rows: Iterable[PackedRow]) -> Iterator[list[bytes]]:
    """Yield the chunks in the order of their first times; those that overlap in time together."""
    heads = sorted(((chunks.head(row.data), row.data) for row in rows), key=lambda one: one[0].first)
    some: list[bytes] = []
    last = 0
    for head, data in heads:
        if some and head.first >= last:
            yield some
            some = []
        last = head.last if not some else max(last, head.last)
        some.append(data)
    if some:
        yield some


def _sorted(packed: Sequence[bytes]) -> Iterator[tuple[Sequence[Event], bytes]]:
    """Yield the events of chunks in the order of time, in chunks of a handy size."""
    opened = [chunks.opened(data) for data in packed]
    if len(opened) == 1 and not (np.diff(times_of(opened[0])) < 0).any():
        yield opened[0], packed[0]
        return
    blocks = [one for one in opened if isinstance(one, EventBlock)]
    whole: Sequence[Event] | None = joined(blocks) if len(blocks) == len(opened) else None
    if whole is None:
        whole = [event for one in opened for event in one]
    order = np.argsort(times_of(whole), kind="stable")
    events = whole.sorted_by(order) if isinstance(whole, EventBlock) else [whole[place] for place in order.tolist()]
    for first in range(0, len(events), chunks.EVENTS_PER_CHUNK):
        data = chunks.pack(events[first : first + chunks.EVENTS_PER_CHUNK])
        yield chunks.opened(data), data
