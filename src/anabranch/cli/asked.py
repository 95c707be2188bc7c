"""What `anabranch run` was asked, checked and typed: both engines start from it.

Invariant: a query that would be refused is refused here, before anything is opened or started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import typer

from anabranch.algebra.walk import windows as windows_of
from anabranch.engine.engine import Engine
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query import QueryOptions
from anabranch.engine.session import parameter_values
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import Duration
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.sources.wanted import Wanted
from anabranch.syntax import seraph


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    file_name: str
    streams: Sequence[tuple[str, str]]
    wanted: Sequence[Wanted]
    graphs: Mapping[str, PropertyGraph]
    parameters: Mapping[str, object]
    windows: WindowPolicy
    conflicts: ConflictPolicy
    lateness: Duration | None
    late: LatePolicy
    until: int | None
    drain: bool
    dead_letter: str | None
    output: str
    quiet: bool
    # Spark's alone
    checkpoint: str | None = None
    follow: bool = False
    idle_timeout: int | None = None
    sinks: Sequence[str] = ()
    events_per_batch: int | None = None
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int | None = None

    def queries(self) -> list[QueryOptions]:
        """How each query of the text is registered."""
        options = QueryOptions(
            self.windows,
            self.conflicts,
            parameter_values(self.parameters),
            text=self.text,
            file_name=self.file_name,
        )
        names = [one.name for one in seraph.registrations(self.text, file_name=self.file_name)]
        return [replace(options, source_name=name) for name in names]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each query, by its name."""
        return {one.name: one.columns for one in seraph.registrations(self.text, file_name=self.file_name)}

    def check(self) -> None:
        """Refuse what no engine could run, with the query's own diagnostics."""
        engine = Engine(self.lateness, fixed_streams=bool(self.wanted), late=self.late)
        for wanted in self.wanted:
            engine.declare_stream(wanted.name)
        for name, graph in self.graphs.items():
            engine.add_static_graph(name, graph)
        registrations = seraph.registrations(self.text, file_name=self.file_name)
        for registration, options in zip(registrations, self.queries(), strict=True):
            engine.register(registration, options)
        if not self.wanted and any(windows_of(one.plan) for one in registrations):
            message = "the query reads a stream; name its file, for example --stream rides=events.ndjson"
            raise typer.BadParameter(message, param_hint="--stream")
