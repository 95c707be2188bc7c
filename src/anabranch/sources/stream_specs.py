"""The streams that the queries of a text read: those that a user names, and those that LOAD STREAM makes of records.

Invariant: every stream has its addresses and one way to read its records before any of them is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.algebra.ingestion import last_part
from anabranch.algebra.walk import windows
from anabranch.errors import EngineError
from anabranch.sources.address import STDIN, parse_address
from anabranch.sources.base import Decoding, OpenedStream, Source
from anabranch.sources.chain import ChainSource
from anabranch.syntax.languages import Script


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A stream that a run reads: its addresses, and how its records are read."""

    name: str
    addresses: tuple[str, ...]
    decoding: Decoding

    @property
    def records_are_events(self) -> bool:
        return self.decoding.ingestion is None


def stream_specs(streams: Sequence[tuple[str, str]], scripts: Sequence[Script]) -> list[StreamSpec]:
    """The streams of a run, from (name, address) pairs and the LOAD STREAM statements of its scripts.

    A LOAD STREAM reads the stream that has its name, its address or the last part of that, else what its address
    names. A stream that a query names by an IRI may be given by the IRI's last part.
    """
    by_name: dict[str, list[str]] = {}
    for name, address in streams:
        by_name.setdefault(name, []).append(address)
    decodings: dict[str, Decoding] = {}
    for script in scripts:
        for mapping in script.ingestions:
            if mapping.stream in decodings:
                raise EngineError(f"two LOAD STREAM statements make the stream `{mapping.stream}`; name one with INTO")
            others = (mapping.uri, last_part(mapping.uri))
            given = by_name.get(mapping.stream)
            for other in others:
                given = given or (by_name.pop(other, None) if other != mapping.stream else None)
            by_name[mapping.stream] = given or [_address(mapping.uri, script.file_name)]
            decodings[mapping.stream] = Decoding(mapping.stream, mapping)
    names = resolved_names(by_name, streams_read(scripts))
    return [
        StreamSpec(names[name], tuple(addresses), decodings.get(name, Decoding(names[name])))
        for name, addresses in by_name.items()
    ]


def streams_read(scripts: Sequence[Script]) -> list[str]:
    """The streams that the queries of scripts name and do not make themselves."""
    registrations = [one for script in scripts for one in script.registrations]
    made = {one.into for one in registrations}
    names = [window.stream.name for one in registrations for window in windows(one.plan)]
    return [name for name in dict.fromkeys(names) if name is not None and name not in made]


def resolved_names(given: Iterable[str], asked: Iterable[str]) -> dict[str, str]:
    """Resolve short stream names.

    A given name that no query knows is the last part of an IRI that one does, or the only IRI when it is the only name.
    """
    names, known = list(given), list(asked)
    iris = [iri for iri in known if not iri.isidentifier() and iri not in names]
    found = {name: name for name in names}
    for name in names:
        like = [iri for iri in iris if name in _last_parts(iri)]
        if name in known or ":" in name:
            continue
        if len(like) == 1:
            found[name] = like[0]
        elif len(names) == len(iris) == 1:
            found[name] = iris[0]
    return found


def _last_parts(iri: str) -> tuple[str, str]:
    """`citytollgates.trdf` and `citytollgates` of <http://streams.org/citytollgates.trdf>."""
    last = re.split(r"[/#:]", iri.rstrip("/#"))[-1]
    return last, last.split(".")[0]


def _address(uri: str, file_name: str) -> str:
    """The address of a LOAD STREAM; a relative path begins at the query's own file."""
    address = parse_address(uri)
    if not address.is_files or file_name == STDIN or "://" in address.path or Path(address.path).is_absolute():
        return uri
    return str(Path(file_name).parent / address.path)


Open = Callable[[str, str, bool], Source]
"""How a source is opened from a stream's name, an address, and whether its records are events already."""


def open_stream(spec: StreamSpec, opener: Open) -> OpenedStream:
    sources = [opener(spec.name, address, spec.records_are_events) for address in spec.addresses]
    source = sources[0] if len(sources) == 1 else ChainSource(spec.name, tuple(sources))
    return OpenedStream(source, spec.decoding, ", ".join(parse_address(one).shown for one in spec.addresses))
