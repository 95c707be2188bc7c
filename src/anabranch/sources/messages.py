"""Messages: JSON texts of events or of records, each with a number, that come many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.model.graph_block import GraphBlock
from anabranch.sources.base import AsEvent, Decode, MappingDecoder, PackedRecord
from anabranch.sources.lines import ExactReader, SequenceOf

_WORTH_A_SCAN = 16  # messages: fewer are read one by one


def pack_messages(
    numbers: Sequence[int], texts: Sequence[bytes], decode: Decode, sequence_of: SequenceOf, exact: ExactReader
) -> Iterator[PackedRecord]:
    """Yield the events of messages: runs of ordinary ones as blocks, the others one by one."""
    if isinstance(decode, MappingDecoder) and decode.columns is not None:
        # A stream of events needs no mapping.
        from anabranch.sources.mapped import pack_texts

        yield from pack_texts(numbers, texts, decode, sequence_of, exact)
        return
    lines = b"\n".join(texts)
    if not isinstance(decode, AsEvent) or len(texts) < _WORTH_A_SCAN or not _are_lines(lines, len(texts)):
        for place in range(len(texts)):
            yield from exact(place)
        return
    # Few messages need no kernels.
    from anabranch.formats.graph_lines import read_runs

    for found in read_runs(lines, 0, decode.keys):
        if isinstance(found, GraphBlock):
            yield found
        else:
            yield from exact(found[0])


def _are_lines(data: bytes, count: int) -> bool:
    """Whether joined messages are as many lines, none of them blank."""
    found = data.split(b"\n")
    return len(found) == count and not any(not line or line.isspace() for line in found)
