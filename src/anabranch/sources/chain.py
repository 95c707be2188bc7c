"""Several inputs of one stream, read one after the other as if they were one.

Invariant: an input is begun when the one before it has ended, so the records are those of the inputs in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.formats.deadletter import MalformedRecord
from anabranch.model.event import Event
from anabranch.sources.base import AsEvent, Backlog, Decode, Limit, MappingDecoder, Offset, PackedRecord, Piece, Source

if TYPE_CHECKING:
    from anabranch.planner.link_streams import LinkStream


@dataclass(frozen=True, slots=True)
class ChainSource(Source):
    stream: str
    links: tuple[Source, ...]

    def __post_init__(self) -> None:
        if not all(link.finite for link in self.links):
            raise StreamError(
                f"stream `{self.stream}` has several inputs, and one of them never ends\n"
                "hint: give each endless input a stream of its own"
            )

    @property
    def finite(self) -> bool:
        return True

    def begin(self) -> Offset:
        return {"link": 0, "offset": self.links[0].begin(), "before": []}

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        index, offset = start["link"], start["offset"]
        if self.links[index].ended(offset) and index + 1 < len(self.links):
            index += 1
            begun = self.links[index].begin()
            to = self.links[index].ahead(begun, limit)
            return {"link": index, "offset": to, "begun": begun, "before": [*start["before"], offset]}
        to = self.links[index].ahead(offset, limit)
        return start if to == offset else {"link": index, "offset": to, "before": start["before"]}

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        index = end["link"]
        begun = start["offset"] if start["link"] == index else end["begun"]
        return [
            replace(piece, where={"link": index, "where": piece.where})
            for piece in self.links[index].pieces(begun, end["offset"])
        ]

    def read(self, piece: Piece, decode: Decode) -> Iterator[Event | MalformedRecord]:
        index: int = piece.where["link"]
        return self.links[index].read(_inner(piece), _in_link(decode, index))

    def read_packed(self, piece: Piece, decode: Decode, links: LinkStream | None = None) -> Iterator[PackedRecord]:
        index: int = piece.where["link"]
        return self.links[index].read_packed(_inner(piece), _in_link(decode, index), links)

    def ended(self, offset: Offset) -> bool:
        return bool(offset["link"] == len(self.links) - 1 and self.links[-1].ended(offset["offset"]))

    def backlog(self, offset: Offset) -> Backlog:
        index = offset["link"]
        offsets = [*offset["before"], offset["offset"], *(link.begin() for link in self.links[index + 1 :])]
        logs = [link.backlog(one) for link, one in zip(self.links, offsets, strict=True)]
        totals = [log.total for log in logs if log.total is not None]
        return Backlog(sum(log.done for log in logs), sum(totals) if len(totals) == len(logs) else None)

    def close(self) -> None:
        for link in self.links:
            link.close()


def _in_link(decode: Decode, index: int) -> Decode:
    """Return the decoder for one input's records: their sequences begin with its number, except for the first input."""
    if index == 0:
        return decode
    if isinstance(decode, AsEvent | MappingDecoder):
        return replace(decode, prefix=f"{index}/")
    return lambda data, sequence: decode(data, f"{index}/{sequence}")


def _inner(piece: Piece) -> Piece:
    """Return the piece as its input knows it. `where` holds the number of the input, except for the first one."""
    index, where = piece.where["link"], piece.where["where"]
    return replace(piece, where={**where, "link": index} if index else where)
