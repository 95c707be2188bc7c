"""From an address to its source.

Invariant: a library that only one kind of source needs is loaded when such a source is opened, and not before.
"""

from __future__ import annotations

from anabranch.errors import StreamError
from anabranch.sources.address import GENERATOR, KAFKA, parse_address, refuse_beyond
from anabranch.sources.base import Source
from anabranch.sources.reach import ANYWHERE, Reach


def open_source(
    stream: str,
    address_text: str,
    *,
    follow: bool = False,
    records_are_events: bool = True,
    reach: Reach = ANYWHERE,
) -> Source:
    """Open the source of an address that we read from. Pushed records go through a receiver and its spool instead."""
    address = parse_address(address_text)
    refuse_beyond(address, reach)
    if follow and not address.is_files:
        raise StreamError(f"{address.shown}: only files are followed\nhint: this source goes on by itself")
    if address.is_files:
        if follow:
            from anabranch.sources.following import FollowedFiles

            return FollowedFiles(stream, address.path, records_are_events, reach)
        from anabranch.sources.files import FileSource

        return FileSource(stream, address.path, records_are_events, reach)
    if address.scheme == GENERATOR:
        from anabranch.sources.generators import GeneratorSource

        return GeneratorSource(stream, address.path, address.options)
    if address.scheme == KAFKA:
        from anabranch.sources.kafka import KafkaSource

        return KafkaSource.from_address(stream, address, reach)
    raise StreamError(f"{address.shown} is pushed to us, and needs a receiver")
