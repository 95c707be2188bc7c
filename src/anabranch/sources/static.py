"""Static knowledge of a run: where each graph comes from, its loading, and checks for changes.

A graph is given by the user (`--graph NAME=FILE`), or named by a query (FROM <brokers.ttl>, FROM <http://...>) and then
loaded from that name: a path from the query's own folder on, or the web.

Invariant: a graph is loaded whole; if a changed file cannot be read, the previous graph stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from anabranch.algebra.operators import DEFAULT_GRAPH
from anabranch.algebra.walk import static_graphs
from anabranch.errors import StreamError
from anabranch.model.graph import PropertyGraph
from anabranch.model.triples import TripleGraph
from anabranch.sources.graphs import fingerprint, is_rdf, load_graph
from anabranch.sources.property_graphs import read_graph
from anabranch.sources.reach import ANYWHERE, Reach
from anabranch.sources.stream_specs import resolved_names
from anabranch.syntax.languages import Script

AnyGraph: TypeAlias = PropertyGraph | TripleGraph


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A static graph and the files that it is made of; relative paths begin at `folder`."""

    name: str
    places: tuple[str, ...]
    folder: str = "."
    reach: Reach = ANYWHERE

    def load(self) -> AnyGraph:
        if len(self.places) == 1 and not is_rdf(self.places[0]):
            return read_graph(self.reach.path(self.places[0], self.folder), self.reach)
        odd = next((place for place in self.places if not is_rdf(place)), None)
        if odd is not None:
            hint = "one graph is of RDF files, or of one file with nodes and relationships"
            raise StreamError(f"the graph {self.name} has several files, and {odd} is not RDF\nhint: {hint}")
        loaded = [load_graph(place, self.folder, reach=self.reach) for place in self.places]
        return loaded[0] if len(loaded) == 1 else TripleGraph(triple for graph in loaded for triple in graph)

    def fingerprint(self) -> str:
        """A text that changes when a file does."""
        return " ".join(fingerprint(place, self.folder, self.reach) for place in self.places)


def graph_files(
    given: Iterable[tuple[str | None, str]], scripts: Sequence[Script], reach: Reach = ANYWHERE
) -> list[GraphFile]:
    """Return the static graphs of a run.

    They are those given by name (an RDF file without one is the default graph) and those that queries name and no user
    gave, which lie within `reach`.
    """
    asked = {
        one.name: script
        for script in scripts
        for registration in script.registrations
        if registration.language != "seraph"
        for one in static_graphs(registration.plan)
    }
    places: dict[str, list[str]] = {}
    for name, place in given:
        own = name or (DEFAULT_GRAPH if is_rdf(place) else _stem(place))
        places.setdefault(own, []).append(place)
    names = resolved_names(places, asked)
    files = [GraphFile(names[name], tuple(found)) for name, found in places.items()]
    known = {file.name for file in files}
    files += [
        GraphFile(name, (name,), _folder(script), reach)
        for name, script in asked.items()
        if name not in known and is_rdf(name)
    ]
    return files


def _folder(script: Script) -> str:
    """Where a query's relative paths begin."""
    return str(Path(script.file_name).parent) if Path(script.file_name).exists() else "."


def _stem(place: str) -> str:
    return Path(place).name.split(".")[0]
