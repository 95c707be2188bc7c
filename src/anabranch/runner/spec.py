"""The specification of a run: its queries, streams, static graphs and options, before anything is opened.

Invariant: a query that the engine would refuse is refused by `check`, before a folder, a source or a sink is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.algebra.walk import windows
from anabranch.engine.compiled import compile_queries
from anabranch.engine.engine import Engine
from anabranch.engine.query_options import CompiledQuery
from anabranch.runner.options import RunOptions
from anabranch.sources.static import AnyGraph, GraphFile, graph_files
from anabranch.sources.stream_specs import StreamSpec, stream_specs
from anabranch.syntax.languages import Script


@dataclass(frozen=True, slots=True)
class RunSpec:
    queries: tuple[CompiledQuery, ...]
    streams: tuple[StreamSpec, ...]
    options: RunOptions = field(default_factory=RunOptions)
    graphs: Mapping[str, AnyGraph] = field(default_factory=dict)
    graph_files: tuple[GraphFile, ...] = ()

    @classmethod
    def of(
        cls,
        scripts: Sequence[Script],
        streams: Sequence[tuple[str, str]],
        options: RunOptions,
        graph_paths: Sequence[tuple[str | None, str]] = (),
        graphs: Mapping[str, AnyGraph] | None = None,
    ) -> RunSpec:
        """Build the run of scripts over streams, given as names and addresses.

        Static graphs are given as files, by name or without, or as objects; those that queries name by FROM are loaded
        from that name.
        """
        given = graphs or {}
        files = tuple(file for file in graph_files(graph_paths, scripts) if file.name not in given)
        return cls(
            compile_queries(scripts, options.query_options()),
            tuple(stream_specs(streams, scripts)),
            options,
            {**{file.name: file.load() for file in files}, **given},
            files,
        )

    @property
    def lacks_stream(self) -> bool:
        """Return whether a query reads a stream and none was given."""
        return not self.streams and any(windows(one.registration.plan) for one in self.queries)

    def check(self) -> None:
        """Refuse queries that no engine could run, with their own diagnostics."""
        options = self.options
        engine = Engine(options.lateness, fixed_streams=True, late=options.late, mapping=options.mapping)
        for stream in self.streams:
            engine.declare_stream(stream.name)
        for name, graph in self.graphs.items():
            engine.add_static_graph(name, graph)
        engine.check(self.queries)
