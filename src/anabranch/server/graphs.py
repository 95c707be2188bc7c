"""The static graphs of a session: graphs that clients have uploaded, and graphs that its queries name.

Invariant: an uploaded graph is stored unchanged in the session's folder; it is parsed completely, or refused, before
the catalogue lists it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from anabranch.algebra.operators import DEFAULT_GRAPH
from anabranch.algebra.walk import static_graphs
from anabranch.server import uploads
from anabranch.server.catalogue import Catalogue, StoredGraph
from anabranch.server.problems import unknown
from anabranch.server.streams import Feeds
from anabranch.sources.private import private_file, private_folder
from anabranch.sources.static import AnyGraph, graph_files
from anabranch.sources.stream_specs import resolved_names
from anabranch.syntax.languages import Script


class SessionGraphs:
    """The static graphs of a session, by name. The empty name is SPARQL's default graph."""

    def __init__(self, session: str, folder: Path, catalogue: Catalogue, feeds: Feeds) -> None:
        self._session = session
        self._folder = folder
        self._catalogue = catalogue
        self._feeds = feeds
        self._loaded: dict[str, tuple[str, AnyGraph]] = {}  # by name: its file, and the graph

    def stored(self) -> list[StoredGraph]:
        return self._catalogue.graphs(self._session)

    def one(self, name: str) -> StoredGraph:
        stored = self.stored()
        for graph in stored:
            if graph.name == name:
                return graph
        raise unknown("graph", name, [graph.name for graph in stored])

    def data(self, name: str) -> bytes:
        """Return the bytes of a graph as they were uploaded."""
        try:
            return (self._folder / self.one(name).file).read_bytes()
        except FileNotFoundError:  # it has just been replaced
            return (self._folder / self.one(name).file).read_bytes()

    def put(self, name: str, data: bytes, media_type: str, graph: AnyGraph) -> StoredGraph:
        private_folder(self._folder)
        file = self._folder / f"{quote(name, safe='') or '_default'}.{time.time_ns()}"
        private_file(file)
        file.write_bytes(data)
        old = next((one.file for one in self.stored() if one.name == name), None)
        stored = StoredGraph(name, file.name, uploads.media_type(media_type) or "application/json")
        self._catalogue.put_graph(self._session, stored)
        self._loaded[name or DEFAULT_GRAPH] = (file.name, graph)
        if old is not None:
            (self._folder / old).unlink(missing_ok=True)
        return stored

    def remove(self, name: str) -> None:
        stored = self.one(name)
        self._catalogue.remove_graph(self._session, name)
        self._loaded.pop(name or DEFAULT_GRAPH, None)
        (self._folder / stored.file).unlink(missing_ok=True)

    def seen_by(self, scripts: Sequence[Script], without: str | None = None) -> dict[str, AnyGraph]:
        """Return the uploaded graphs, under the names that scripts use, and the graphs that scripts name."""
        given = {one.name or DEFAULT_GRAPH: self._given(one) for one in self.stored() if one.name != without}
        plans = [one.plan for script in scripts for one in script.registrations]
        names = resolved_names(given, [one.name for plan in plans for one in static_graphs(plan)])
        found = {names[name]: graph for name, graph in given.items()}
        for file in graph_files((), scripts, self._feeds.reach):
            if file.name not in found:
                if file.name not in self._loaded:
                    self._loaded[file.name] = ("", file.load())
                found[file.name] = self._loaded[file.name][1]
        return found

    def _given(self, stored: StoredGraph) -> AnyGraph:
        own = stored.name or DEFAULT_GRAPH
        kept = self._loaded.get(own)
        if kept is None or kept[0] != stored.file:
            try:
                data = (self._folder / stored.file).read_bytes()
            except FileNotFoundError:
                now = self.one(stored.name)
                if now == stored:
                    raise
                return self._given(now)  # it has just been replaced
            kept = self._loaded[own] = (stored.file, uploads.graph(data, stored.media_type, own))
        return kept[1]
