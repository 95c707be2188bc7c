"""From an address to its source.

Invariant: a library that only one kind of source needs is loaded when such a source is opened, and not before.
"""

from __future__ import annotations

from pathlib import Path

from anabranch.errors import StreamError
from anabranch.sources.address import GENERATOR, KAFKA, parse_address
from anabranch.sources.base import Source


def open_source(
    stream: str,
    address_text: str,
    *,
    follow: bool = False,
    records_are_events: bool = True,
    spool_dir: str | Path | None = None,
) -> Source:
    """The source behind an address. What is pushed to us is read from the spool in `spool_dir`."""
    address = parse_address(address_text)
    if follow and not address.is_files:
        raise StreamError(f"{address.shown}: only files are followed\nhint: this source goes on by itself")
    if address.is_files:
        from anabranch.sources.files import FileSource

        return FileSource(stream, address.path, follow, records_are_events)
    if address.scheme == GENERATOR:
        from anabranch.sources.generators import GeneratorSource

        return GeneratorSource(stream, address.path, address.options)
    if address.scheme == KAFKA:
        from anabranch.sources.kafka import KafkaSource

        return KafkaSource.from_address(stream, address)
    from anabranch.sources.spool import SpoolSource

    if spool_dir is None:
        raise StreamError(f"{address.shown} is received into a spool\nhint: say where with a checkpoint directory")
    return SpoolSource(stream, spool_dir)
