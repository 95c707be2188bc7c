"""What `anabranch run` was asked, checked and typed: both engines start from it.

Invariant: a query that would be refused is refused here, before anything is opened or started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import typer

from anabranch.algebra.operators import Form, Registration
from anabranch.algebra.walk import windows as windows_of
from anabranch.engine.engine import Engine
from anabranch.engine.plans import ALL_RULES, Evaluator
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query import QueryOptions
from anabranch.engine.running import Running
from anabranch.engine.session import parameter_values
from anabranch.engine.timing import StreamTiming
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration
from anabranch.model.union import ConflictPolicy
from anabranch.model.windows import WindowPolicy
from anabranch.sources.static import AnyGraph, GraphFile
from anabranch.sources.wanted import Wanted
from anabranch.syntax import languages
from anabranch.syntax.languages import QueryText


@dataclass(frozen=True, slots=True)
class Asked:
    texts: Sequence[QueryText]
    streams: Sequence[tuple[str, str]]
    wanted: Sequence[Wanted]
    graph_files: Sequence[GraphFile]
    graphs: Mapping[str, AnyGraph]
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
    mapping: ModelMapping = field(default_factory=ModelMapping)
    rules: tuple[str, ...] = ALL_RULES
    evaluator: Evaluator = "own"
    running: Running = field(default_factory=Running)
    refresh: int | None = None  # microseconds
    # Spark's alone
    checkpoint: str | None = None
    follow: bool = False
    timing: StreamTiming = field(default_factory=StreamTiming)
    sinks: Sequence[str] = ()
    events_per_batch: int | None = None
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int | None = None

    def registrations(self) -> list[tuple[Registration, QueryText]]:
        return [(one, text) for text in self.texts for one in languages.registrations(*text)]

    def queries(self) -> list[QueryOptions]:
        """How each query of the texts is registered."""
        options = QueryOptions(self.windows, self.conflicts, parameter_values(self.parameters))
        return [
            replace(
                options,
                text=text.text,
                file_name=text.file_name,
                source_name=one.name,
                evaluator=self.evaluator if one.language != "seraph" else "own",
            )
            for one, text in self.registrations()
        ]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each query, by its name."""
        return {one.name: one.columns for one, _ in self.registrations()}

    def forms(self) -> dict[str, Form]:
        """Whether each query gives rows, true or false, or a graph."""
        return {one.name: one.form for one, _ in self.registrations()}

    def prefixes(self) -> dict[str, str]:
        """The prefixes of all queries; where two disagree, the first has it."""
        return {name: iri for one, _ in reversed(self.registrations()) for name, iri in one.prefixes}

    def check(self) -> None:
        """Refuse what no engine could run, with the query's own diagnostics."""
        engine = Engine(self.lateness, fixed_streams=bool(self.wanted), late=self.late, mapping=self.mapping)
        for wanted in self.wanted:
            engine.declare_stream(wanted.name)
        for name, graph in self.graphs.items():
            engine.add_static_graph(name, graph)
        registrations = [one for one, _ in self.registrations()]
        engine.reconcile(list(zip(registrations, self.queries(), strict=True)))
        if not self.wanted and any(windows_of(one.plan) for one in registrations):
            message = "the query reads a stream; name its file, for example --stream rides=events.ndjson"
            raise typer.BadParameter(message, param_hint="--stream")
