"""Static graphs whose files change during a run.

The planner checks the files at the beginning and then at intervals. A graph that has changed is loaded, and a copy of
it is put into the run's folder; the offset names the copy. So a batch that is run again sees the same graph, even if
the file has changed since, and a cell that is built again finds every graph as it was.

Invariant: an offset's graphs are complete on disk before the offset exists, and until a later one is committed.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import StreamError
from anabranch.sources.private import private_file, private_folder

if TYPE_CHECKING:  # a planner is a process of its own, and needs neither engine nor grammar
    from anabranch.sources.static import AnyGraph, GraphFile

GraphCopies = dict[str, dict[str, Any]]
"""By graph: the mark of the file's content, and where its copy lies. A graph that could not be read yet is missing."""


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    files: tuple[GraphFile, ...]
    every: int  # microseconds
    folder: str


class Refresher:
    def __init__(self, settings: RefreshSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._looked_at: float | None = None
        self._ahead: GraphCopies | None = None

    def ahead(self, noted: GraphCopies | None) -> GraphCopies:
        """Return the present graphs, or the noted ones when it is too early to check again."""
        now = self._clock()
        known = noted or {}
        if noted is None or self._looked_at is None or (now - self._looked_at) * 1_000_000 >= self._settings.every:
            self._looked_at = now
            known = known | self._changed(known)
        self._ahead = known
        return known

    def commit(self, noted: GraphCopies) -> None:
        """Remove the copies that no batch needs any more: those before the committed offset's."""
        if self._ahead is None:
            return  # which graphs the batch under way sees is not known yet
        kept = {*copies(noted).values(), *copies(self._ahead).values()}
        for path in Path(self._settings.folder).glob("*.graph"):
            if str(path) not in kept:
                path.unlink(missing_ok=True)

    def _changed(self, noted: GraphCopies) -> GraphCopies:
        found: GraphCopies = {}
        for file in self._settings.files:
            mark = _mark(file)
            if mark is None or mark == noted.get(file.name, {}).get("mark"):
                continue
            try:
                graph = file.load()
            except (StreamError, OSError):
                continue  # half written, or away: the graph that was there stays
            found[file.name] = {"mark": mark, "copy": str(self._keep(file, mark, graph))}
        return found

    def _keep(self, file: GraphFile, mark: str, graph: AnyGraph) -> Path:
        from anabranch.formats.graph_copies import packed_graph

        name = hashlib.sha256(f"{file.name}\n{mark}".encode()).hexdigest()[:24]
        folder = Path(self._settings.folder)
        private_folder(folder)
        path = folder / f"{name}.graph"
        begun = folder / f".{name}.{os.getpid()}"
        private_file(begun)
        with begun.open("wb") as out:
            for part in packed_graph(graph):
                out.write(part)
            out.flush()
            os.fsync(out.fileno())
        begun.replace(path)
        return path


def load_copy(path: str) -> AnyGraph:
    from anabranch.formats.graph_copies import unpacked_graph

    try:
        return unpacked_graph(Path(path).read_bytes())
    except StreamError as error:
        raise StreamError(
            f"{path}: {error}\nhint: finish the run with the version that began it, or begin with a new checkpoint"
        ) from None


def copies(noted: GraphCopies) -> dict[str, str]:
    """Return the paths of the graphs, by name."""
    return {name: said["copy"] for name, said in noted.items()}


def refresh_settings(files: Sequence[GraphFile], every: int | None, folder: Path) -> RefreshSettings | None:
    return None if every is None or not files else RefreshSettings(tuple(files), every, str(folder))


def _mark(file: GraphFile) -> str | None:
    """Return a mark that differs when the content differs; None while the file cannot be reached."""
    try:
        return file.fingerprint()
    except (StreamError, OSError):
        return None
