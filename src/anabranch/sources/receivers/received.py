"""A push source that lives with one process: its receiver and its spool begin and end with the reading.

What is received lies in a folder of the system's temporary files until it is read; a run that goes on after a restart
keeps its spool in a checkpoint instead.

Invariant: what ended the receiver is raised once all that it had received is read.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from anabranch.sources.address import Address
from anabranch.sources.base import Backlog, Limit, Offset
from anabranch.sources.receivers.open import open_receiver
from anabranch.sources.spool import Spool, SpoolSource


class ReceivedSource(SpoolSource):
    def __init__(self, stream: str, address: Address) -> None:
        self._receiver = open_receiver(address)
        self._folder = TemporaryDirectory(prefix="anabranch-spool-")
        self._spool = Spool(self._folder.name)
        super().__init__(stream, self._folder.name, self._receiver.finite)

    def begin(self) -> Offset:
        """Receiving begins here."""
        self._receiver.start(self._spool)
        return super().begin()

    def ahead(self, start: Offset, limit: Limit) -> Offset:
        self.commit(start)
        running = self._receiver.running  # asked first: what came before it ended is found below
        end = super().ahead(start, limit)
        if end == start and not running and self._receiver.error is not None:
            raise self._receiver.error
        return end

    @property
    def trouble(self) -> str:
        """What keeps the peer from answering just now; nothing where it answers."""
        return self._receiver.trouble

    def backlog(self, offset: Offset) -> Backlog:
        return Backlog(int(offset["line"]), None)

    def close(self) -> None:
        self._receiver.stop()
        self._spool.close()
        self._folder.cleanup()
