"""The renewal of a stream: a stream under a name that the checkpoint knows begins again, and with it the whole run.

A file says which stream is being replaced, from before the first step to after the last: after a crash, the next server
repeats the steps.

Invariant: the run has either all of the old stream or nothing of it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict

from anabranch.errors import StreamError
from anabranch.runner.folder import RunFolder
from anabranch.server.carrying import Carrier
from anabranch.server.catalogue import Catalogue, StoredStream
from anabranch.server.problems import REFUSED, ServerError
from anabranch.server.streams import Feeds
from anabranch.sinks.durable import replacing

_PATIENCE = 5.0  # seconds


class Renewal:
    """Renews streams of one session. `forget_run` drops what the session itself holds of the run."""

    def __init__(
        self,
        session: str,
        folder: RunFolder,
        catalogue: Catalogue,
        carrier: Carrier,
        feeds: Feeds,
        forget_run: Callable[[], None],
    ) -> None:
        self._session = session
        self._folder = folder
        self._catalogue = catalogue
        self._carrier = carrier
        self._feeds = feeds
        self._forget_run = forget_run
        self._file = folder.path / "anew.json"

    def begun(self) -> set[str]:
        """Return the streams that the checkpoint knows."""
        return {name for offset in self._folder.offsets() if offset is not None for name in offset["streams"]}

    def add(self, new: StoredStream, old: StoredStream | None, has_others: bool) -> None:
        """Add a stream under a name that the checkpoint knows, or may come to know. If it is the only stream, the run
        starts from scratch; else the run must first forget the old stream, while the other streams continue."""
        hint = "give it another name" if old is None else "remove it, and its queries, and add it again"
        refused = ServerError(REFUSED, f"the run still knows a stream `{new.name}` of before", hint)
        deadline = time.monotonic() + _PATIENCE
        while has_others and new.meant in self.begun():
            if old is not None or self._carrier.wish != "running" or time.monotonic() > deadline:
                raise refused
            time.sleep(0.02)
        with self._carrier.held():
            if new.meant not in self.begun():
                self._feeds.forget(old or new)
                self._catalogue.put_stream(self._session, new)
                return
            if has_others:
                raise refused
            self._begin(new, old or new)

    def _begin(self, new: StoredStream, old: StoredStream) -> None:
        with replacing(self._file) as file:
            file.write(json.dumps({"new": asdict(new), "old": asdict(old)}).encode())
        self._replace(new, old)

    def finish(self) -> None:
        """Repeat a replacement that a crash has cut off."""
        if not self._file.exists():
            return
        try:
            said = json.loads(self._file.read_bytes())
            new, old = StoredStream.from_json(said["new"]), StoredStream.from_json(said["old"])
        except (ValueError, KeyError, TypeError):
            hint = "it says which stream was being replaced: remove the file, and replace the stream again"
            raise StreamError(f"{self._file} is damaged\nhint: {hint}") from None
        self._replace(new, old)

    def _replace(self, new: StoredStream, old: StoredStream) -> None:
        self._forget_run()
        self._forget_folder()
        self._feeds.forget(old)
        self._catalogue.put_stream(self._session, new)
        self._catalogue.forget_failures(self._session)
        self._file.unlink()

    def _forget_folder(self) -> None:
        folder = self._folder
        for path in (folder.spark, folder.path / "ledger", folder.path / "letters"):
            shutil.rmtree(path, ignore_errors=True)
        for file in (*folder.path.glob(f"{folder.local.name}*"), folder.path / "anabranch.json"):
            file.unlink(missing_ok=True)
