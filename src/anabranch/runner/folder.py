"""The folder of a run: Spark's checkpoint, the sinks' ledger, the spools of push sources, and scratch space.

    anabranch.json   format and options that a restart must repeat
    lock             the running process
    spark/           Spark's own checkpoint: offsets, commits, state
    local.sqlite     the same of a run without Spark
    ledger/          how far each sink has got
    spool/           records of push sources that no batch has answered yet
    graphs/          static graphs as the last batches saw them, where they are refreshed
    scratch/         emptied when a run begins and when it ends
    spark.log        what Spark and its workers had to say

Invariant: one run at a time; a folder that belongs to another job or another format is refused before anything is read.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Set
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from anabranch.errors import EngineError
from anabranch.runner.job import Job
from anabranch.runner.local_state import local_offsets
from anabranch.runner.options import EngineName
from anabranch.sinks.base import Ledger
from anabranch.sinks.durable import replacing
from anabranch.sinks.ledger import FileLedger, MemoryLedger
from anabranch.sources.base import Offset
from anabranch.sources.private import FILE, private_file, private_folder

FORMAT = 2
_BY_STREAM = ("streams", "ingestion")  # options that say something of each stream
_PATIENCE = 30.0  # seconds for the Java process of a killed run to end


class RunFolder:
    """The folder of one run. Without a path it lies among the system's temporary files and is removed at the end."""

    def __init__(self, path: str | None = None) -> None:
        self.temporary = path is None
        if path is not None and "://" in path:
            raise EngineError(
                f"--checkpoint {path}: a checkpoint is a folder that the driver and all workers can reach\n"
                "hint: give a path, on a cluster one on a shared file system"
            )
        self.path = Path(path).absolute() if path is not None else Path(tempfile.mkdtemp(prefix="anabranch-"))
        if self.path.exists() and not self.path.is_dir():
            raise EngineError(f"{self.path} is a file; a checkpoint is a folder")
        self._lock: TextIO | None = None

    @property
    def spark(self) -> Path:
        return self.path / "spark"

    @property
    def local(self) -> Path:
        return self.path / "local.sqlite"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def log(self) -> Path:
        return self.path / "spark.log"

    def spool(self, stream: str) -> Path:
        # A stream may be named by an IRI, and a name of a folder holds no slash.
        return self.path / "spool" / quote(stream, safe="")

    def ledger(self) -> Ledger:
        """Return where sinks note their positions: a folder that is removed at the end need not last."""
        return MemoryLedger() if self.temporary else FileLedger(self.path / "ledger")

    # --- opening --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the folder for this run; scratch space is emptied."""
        private_folder(self.path, "anabranch.json", "lock")
        private_file(self.path / "lock")
        self._take_lock()
        self._empty_scratch()
        private_folder(self.scratch)

    def _take_lock(self) -> None:
        lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = _said(lock.read()).get("pid", "?")
            lock.close()
            raise EngineError(
                f"the checkpoint {self.path} is in use by another run (process {owner})\n"
                "hint: stop it first, or give this run a folder of its own"
            ) from None
        lock.seek(0)
        jvm = _said(lock.read()).get("jvm")
        self._lock = lock
        # The lock of a killed driver is free at once; its Java process needs a moment to see that it is alone.
        deadline = time.monotonic() + _PATIENCE
        while jvm is not None and _is_java(jvm):
            if time.monotonic() > deadline:
                raise EngineError(f"the Java process {jvm} of an earlier run still works on {self.path}")
            time.sleep(0.05)
        self.note_jvm(None)

    def note_jvm(self, pid: int | None) -> None:
        assert self._lock is not None
        self._lock.seek(0)
        self._lock.truncate()
        json.dump({"pid": os.getpid(), "jvm": pid}, self._lock)
        self._lock.flush()

    def check(self, job: Job) -> None:
        """Refuse a folder of another job; note the options of a first run."""
        options = json.loads(json.dumps(job.settings()))
        file = self.path / "anabranch.json"
        if not file.exists():
            if self.spark.exists():
                raise EngineError(f"{self.path} holds a checkpoint of Spark that is not Anabranch's")
            self._note(file, options)
            return
        said = _said(file.read_text())
        if said.get("format") != FORMAT:
            raise EngineError(
                f"the checkpoint {self.path} has format {said.get('format')}; "
                f"this version of Anabranch reads format {FORMAT}\n"
                "hint: finish the run with the version that began it, or begin anew in another folder"
            )
        before = said["options"]
        begun = {name for offset in self.offsets() if offset is not None for name in offset["streams"]}
        for name, value in options.items():
            old, new = before.get(name), value
            if name in _BY_STREAM:  # streams may come and go; the options of a stream that was read must not change
                old, new = _of(old, begun & value.keys()), _of(new, begun & value.keys())
            if old != new:
                raise EngineError(
                    f"the checkpoint {self.path} was made with other options: {_difference(name, old, new)}\n"
                    "hint: repeat the options of the first run, or begin anew in another folder; queries may change, "
                    "and streams may be added and left out"
                )
        # A stream that is left out now may come back before a batch has forgotten it.
        kept = {name: _of(before[name], begun) | options[name] for name in _BY_STREAM}
        if {**options, **kept} != before:
            self._note(file, {**options, **kept})

    def _note(self, file: Path, options: dict[str, Any]) -> None:
        with replacing(file, FILE) as new:
            new.write(json.dumps({"format": FORMAT, "options": options}, indent=1).encode())

    def refuse_other_engine(self, engine: EngineName) -> None:
        """Refuse a checkpoint of the other carrier: Spark's and the in-process one cannot be exchanged."""
        other = self.local if engine == "spark" else self.spark
        if other.exists():
            made = "without Spark" if engine == "spark" else "on Spark"
            raise EngineError(
                f"the checkpoint {self.path} belongs to a run {made}\n"
                "hint: go on as it was begun (--engine), or begin anew in another folder"
            )

    def offsets(self) -> tuple[Offset | None, Offset | None]:
        """Return the position of a stopped run: the last committed offset, and the last planned one."""
        if self.local.exists():
            return local_offsets(self.local)
        if (self.spark / "metadata").exists():
            self._spark_note(self.spark / "metadata", "id")
        planned = _numbers(self.spark / "offsets")
        committed = _numbers(self.spark / "commits") & planned
        if committed:
            self._spark_note(self.spark / "commits" / str(max(committed)))
        return self._spark_offset(committed), self._spark_offset(planned)

    def _spark_offset(self, batches: set[int]) -> Offset | None:
        if not batches:
            return None
        offset: Offset = self._spark_note(self.spark / "offsets" / str(max(batches)), "streams")
        return offset

    def _spark_note(self, file: Path, *keys: str) -> dict[str, Any]:
        """Return the last line of Spark's note about a batch; a truncated note is refused."""
        lines = file.read_text(errors="replace").splitlines()
        try:
            noted = json.loads(lines[-1])
            return {**noted, **{key: noted[key] for key in keys}}
        except (IndexError, KeyError, TypeError, ValueError):
            raise EngineError(
                f"the checkpoint {self.path} is damaged: {file} is not what Spark has written\n"
                "hint: take the folder from a copy, or begin again in another folder"
            ) from None

    def finished(self, queries: str) -> bool:
        """Whether the run that the folder holds has answered the end of its input, for these queries."""
        committed, planned = self.offsets()
        if committed is None or committed != planned:
            return False
        return bool(committed.get("end")) and committed.get("queries") == queries

    # --- closing --------------------------------------------------------------------------------------------------

    def close(self, keep: bool = False) -> None:
        """Empty the scratch space; remove a temporary folder, except its log when that is wanted."""
        self._empty_scratch()
        if self._lock is not None:
            self.note_jvm(None)
            self._lock.close()
            self._lock = None
        if not self.temporary and self.path.is_dir():
            private_folder(self.path, "anabranch.json", "lock")  # Spark's files have rights of Spark's choice
        if self.temporary:
            for entry in self.path.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                elif not (keep and entry == self.log):
                    entry.unlink(missing_ok=True)
            if not keep:
                self.path.rmdir()

    def _empty_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        for leftover in self.spark.glob("**/.*.tmp*") if self.spark.exists() else ():
            leftover.unlink(missing_ok=True)


def _of(values: dict[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: values[name] for name in values if name in names}


def _said(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.iterdir() if file.name.isdigit()} if folder.is_dir() else set()


def _is_java(pid: int) -> bool:
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _difference(name: str, before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *now]:
            if before.get(key) != now.get(key):
                return f"{name}: {key} was {_shown(before.get(key))} and is {_shown(now.get(key))}"
    return f"{name} was {_shown(before)} and is {_shown(now)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
