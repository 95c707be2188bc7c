"""The hub: all sessions of a server in one folder.

    FOLDER/lock               which process serves it
    FOLDER/catalogue.sqlite   the contents of the sessions
    FOLDER/sessions/NAME/     a session's checkpoint, results, spools, uploaded graphs and letters
    FOLDER/sessions/.NAME/    a deleted session that is being removed
    FOLDER/spark/             scratch space and log of the one Spark that all sessions share

Invariant: one server at a time uses a folder; every session of the catalogue has its folder, and resumes its wanted
state after a restart. A session that cannot be opened does not prevent the others from working.
"""

from __future__ import annotations

import fcntl
import logging
import re
import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from anabranch.engine.timing import StreamTiming
from anabranch.errors import AnabranchError, EngineError
from anabranch.server.carrying import EngineKind, SharedSpark
from anabranch.server.catalogue import Catalogue, Wish
from anabranch.server.checking import Workers
from anabranch.server.host import DEFAULT_TIMING, SessionHost
from anabranch.server.limits import Limits
from anabranch.server.problems import BAD_REQUEST, EXISTS, REFUSED, STOPPING, TOO_MANY, ServerError, unknown
from anabranch.server.session import LiveSession
from anabranch.sources.private import private_file, private_folder
from anabranch.sources.reach import Reach

if TYPE_CHECKING:
    from anabranch.spark.session import SparkSettings

_log = logging.getLogger("anabranch.server")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Hub:
    """All sessions of a server; thread-safe. `roots` are the folders whose files streams and queries may name; None
    means any file, and the web. `secrets` are environment variables that addresses may refer to."""

    def __init__(
        self,
        folder: Path | str,
        engine: EngineKind = "spark",
        limits: Limits | None = None,
        *,
        spark: SparkSettings | None = None,
        timing: StreamTiming = DEFAULT_TIMING,
        roots: Sequence[Path] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.folder = Path(folder).absolute()
        self.engine: EngineKind = engine
        self.limits = limits or Limits()
        self._timing = timing
        folders = None if roots is None else tuple(str(Path(root).resolve()) for root in roots)
        self._reach = Reach(folders, tuple(secrets))
        self._lock = threading.RLock()
        self._sessions: dict[str, LiveSession] = {}
        self._unreadable: dict[str, str] = {}  # sessions that could not be opened, with the reason
        self._leaving: set[str] = set()  # names of sessions that are being deleted
        self._spark = SharedSpark(self.folder / "spark", spark) if engine == "spark" else None
        self._workers = Workers()
        self._clients = 0
        self._counting = threading.Lock()
        self._catalogue: Catalogue | None = None
        self._taken: TextIO | None = None

    def start(self) -> None:
        """Lock the folder and restore its sessions."""
        with self._lock:
            private_folder(self.folder, "catalogue.sqlite", "sessions")
            private_file(self.folder / "lock")
            self._taken = _locked(self.folder / "lock")
            if self._spark is not None:
                shutil.rmtree(self.folder / "spark" / "scratch", ignore_errors=True)
            self._catalogue = Catalogue(self.folder / "catalogue.sqlite")
            self._remove_leftovers(self._catalogue)
            for name, wish in self._catalogue.sessions():
                try:
                    self._sessions[name] = self._open(name, wish)
                except (AnabranchError, OSError) as error:
                    self._set_aside(name, error)
            for folder in sorted((self.folder / "sessions").glob("*/")):
                if folder.name not in self._sessions and folder.name not in self._unreadable and _holds_data(folder):
                    self._unreadable[folder.name] = "its folder is there, and the catalogue does not know it"
                    _log.error("sessions/%s is in no catalogue: the catalogue was damaged or replaced", folder.name)
            for name, session in list(self._sessions.items()):
                try:
                    session.begin()
                except (AnabranchError, OSError) as error:
                    del self._sessions[name]
                    session.close()
                    self._set_aside(name, error)

    def _set_aside(self, name: str, error: Exception) -> None:
        """What hinders one session keeps no other from its work."""
        self._unreadable[name] = str(error).partition("\n")[0]
        _log.error("the session %s could not be opened: %s", name, error)

    def warm_up(self) -> None:
        """Start Spark before the first session needs it. An error is ignored here: the first session that needs Spark
        reports it."""
        if self._spark is not None:
            threading.Thread(target=self._spark.try_to_start, name="spark", daemon=True).start()

    def close(self) -> None:
        """Stop all runs between two batches, then Spark."""
        with self._lock:
            sessions, self._sessions, self._unreadable = list(self._sessions.values()), {}, {}
            threads = [threading.Thread(target=one.close, name=f"closing {one.name}") for one in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self._workers.close()
            if self._spark is not None:
                self._spark.stop()
            if self._catalogue is not None:
                self._catalogue.close()
                self._catalogue = None
            if self._taken is not None:
                self._taken.close()
                self._taken = None

    def __enter__(self) -> Hub:
        self.start()
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    # --- sessions ---------------------------------------------------------------------------------------------------

    def sessions(self) -> list[LiveSession]:
        with self._lock:
            return list(self._sessions.values())

    def session(self, name: str) -> LiveSession:
        with self._lock:
            found = self._sessions.get(name)
            if name in self._unreadable:
                hint = "mend its folder and start the server again, or delete the session"
                raise ServerError(REFUSED, f"the session `{name}` could not be opened: {self._unreadable[name]}", hint)
            if found is None:
                raise unknown("session", name, list(self._sessions))
            return found

    def create(self, name: str, wish: Wish = "running") -> LiveSession:
        """Create a session; it runs as soon as it has a stream and a query."""
        if not _NAME.fullmatch(name):
            hint = "a name has letters, digits, `.`, `-` and `_`, 64 at most, and begins with a letter or digit"
            raise ServerError(BAD_REQUEST, f"`{name[:80]}` is no name of a session", hint)
        with self._lock:
            if self._catalogue is None:
                raise ServerError(STOPPING, "the server is stopping")
            if name in self._sessions or name in self._unreadable:
                raise ServerError(EXISTS, f"there is a session `{name}` already")
            if name in self._leaving:
                raise ServerError(EXISTS, f"the session `{name}` is being removed", "try again in a moment")
            if any(name.lower() == one.lower() for one in (*self._sessions, *self._unreadable, *self._leaving)):
                raise ServerError(EXISTS, f"there is a session that differs from `{name}` in case alone")
            if len(self._sessions) >= self.limits.sessions:
                raise ServerError(TOO_MANY, f"the server has at most {self.limits.sessions} sessions")
            session = self._open(name, wish)
            self._catalogue.put_session(name, wish)
            self._sessions[name] = session
            session.begin()
            return session

    def delete(self, name: str) -> None:
        """Stop a session and remove all of it from disk."""
        with self._lock:
            session, catalogue = None if name in self._unreadable else self.session(name), self._catalogue
            assert catalogue is not None
            self._sessions.pop(name, None)
            self._unreadable.pop(name, None)
            self._leaving.add(name)
        try:
            if session is not None:
                session.close()
            # From here on it counts as deleted: after a crash, the next server finishes its removal.
            hidden = self._folder_of(f".{name}")
            shutil.rmtree(hidden, ignore_errors=True)
            with suppress(FileNotFoundError):
                self._folder_of(name).rename(hidden)
            catalogue.remove_session(name)
            shutil.rmtree(hidden, ignore_errors=True)
        finally:
            with self._lock:
                self._leaving.discard(name)

    def _remove_leftovers(self, catalogue: Catalogue) -> None:
        for hidden in (self.folder / "sessions").glob(".*"):
            name = hidden.name.removeprefix(".")
            if not self._folder_of(name).exists():
                catalogue.remove_session(name)
            shutil.rmtree(hidden, ignore_errors=True)

    def _folder_of(self, name: str) -> Path:
        return self.folder / "sessions" / name

    def _open(self, name: str, wish: Wish) -> LiveSession:
        assert self._catalogue is not None
        host = SessionHost(
            self._catalogue, self.limits, self._workers, self._spark, self._timing, self._reach, self._count_clients
        )
        return LiveSession(name, self._folder_of(name), host, wish)

    def _count_clients(self, change: int) -> bool:
        """Add to the number of clients; returns False when one more is too many."""
        with self._counting:
            if change > 0 and self._clients + change > self.limits.clients:
                return False
            self._clients += change
            return True

    @property
    def clients(self) -> int:
        return self._clients


def _holds_data(folder: Path) -> bool:
    """Return whether a session has worked in its folder; a session that was killed during its creation has not."""
    return any((folder / name).exists() for name in ("spool", "spark", "local.sqlite", "given", "ledger"))


def _locked(path: Path) -> TextIO:
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise EngineError(
            f"the folder {path.parent} is in use by another server\n"
            "hint: stop it first, or give this one another folder"
        ) from None
    return file
