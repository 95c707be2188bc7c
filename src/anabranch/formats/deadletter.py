"""Dead letters: records that could not be read, kept with their place and reason.

Invariant: a record that is not an event is counted and written here or raised; it is never dropped silently.
"""

from __future__ import annotations

import json
import re

from anabranch.errors import MalformedEventError
from anabranch.formats.events import event_to_dict
from anabranch.model.event import Event
from anabranch.model.instants import format_instant


class MalformedRecord(MalformedEventError):
    """A malformed event together with the text it came from."""

    def __init__(self, reason: str, line: int | None = None, raw: str = "") -> None:
        super().__init__(reason, line)
        self.raw = raw


def file_for(stream: str) -> str:
    """Return the file of a stream's dead letters, named by the stream or, if that is an IRI, by its last part."""
    name = re.split(r"[/#:]", stream.rstrip("/#:"))[-1] if ":" in stream else stream
    return f"{name or 'stream'}.dead.ndjson"


def letter(error: MalformedEventError) -> bytes:
    """The line of a record that was set aside: {"line", "reason", "raw"}."""
    raw = error.raw if isinstance(error, MalformedRecord) else ""
    return json.dumps({"line": error.line, "reason": error.reason, "raw": raw}, ensure_ascii=False).encode() + b"\n"


def late(event: Event) -> MalformedRecord:
    """The record of an event that came too late."""
    reason = f"late: {format_instant(event.event_time)} was over when the event came"
    return MalformedRecord(reason, None, json.dumps(event_to_dict(event), ensure_ascii=False))


def ahead(event: Event) -> MalformedRecord:
    """The record of an event whose clock is too far ahead to be believed."""
    reason = (
        f"ahead: {format_instant(event.event_time)} is further ahead than the stream allows, and nothing confirms it"
    )
    return MalformedRecord(reason, None, json.dumps(event_to_dict(event), ensure_ascii=False))
