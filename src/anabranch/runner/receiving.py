"""The receivers of a run: each fills the spool of a stream that is pushed to us.

Invariant: a receiver starts when everything else is ready, and stops before the run's folder is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.runner.folder import RunFolder
from anabranch.sources.address import parse_address
from anabranch.sources.base import Source
from anabranch.sources.open import open_source

if TYPE_CHECKING:
    from anabranch.sources.receivers.base import Receiver
    from anabranch.sources.spool import Spool


class Receivers:
    def __init__(self, folder: RunFolder, follow: bool = False) -> None:
        self._folder = folder
        self._follow = follow
        self._receivers: list[tuple[str, Receiver, Spool]] = []
        self._troubles: dict[str, str] = {}

    def open(self, stream: str, address: str, records_are_events: bool) -> Source:
        """Return the source of an address; pushed records are read from its spool."""
        parsed = parse_address(address)
        if not parsed.is_pushed:
            follow = self._follow and parsed.is_files
            return open_source(stream, address, follow=follow, records_are_events=records_are_events)
        from anabranch.sources.receivers.open import open_receiver
        from anabranch.sources.spool import Spool, SpoolSource

        directory = self._folder.spool(stream)
        receiver = open_receiver(parsed)
        spool = Spool(directory)
        self._receivers.append((stream, receiver, spool))
        if shortage := spool.shortage:
            spool.accept_shortage()  # the user was told before the run was started again
            raise StreamError(f"stream {stream}: {shortage}")
        return SpoolSource(stream, directory, receiver.finite)

    def start(self) -> None:
        for _, receiver, spool in self._receivers:
            receiver.start(spool)

    def raise_error(self) -> None:
        """Raise the error that ended a receiver, which ends the run."""
        for stream, receiver, _ in self._receivers:
            if receiver.error is not None:
                raise StreamError(f"stream {stream}: {receiver.error}")

    def troubles(self) -> Iterator[str]:
        """Yield new problems that keep peers from answering."""
        for stream, receiver, _ in self._receivers:
            trouble = receiver.trouble
            if trouble and trouble != self._troubles.get(stream):
                yield f"stream {stream}: {trouble}; trying again"
            self._troubles[stream] = trouble

    def stop(self) -> None:
        for _, receiver, spool in self._receivers:
            receiver.stop()
            spool.close()
