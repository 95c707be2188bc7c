"""A recording: a query and a piece of its streams, enough to run the query over this piece again.

Invariant: a recording is data alone. Two equal recordings give the same steps, scenes and reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.engine.evaluation_options import EvaluationOptions, OnError
from anabranch.engine.plans import ALL_RULES
from anabranch.engine.query_options import QueryOptions
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import WindowPolicy


@dataclass(frozen=True, slots=True)
class Recording:
    """`query_name` may be left out where the text has one query. `events` are those that were taken in, by stream, in
    the order of arrival.

    What is shown are the instants from `begins_at` to `ends_at`, both included; None: from the first on, and until all
    events were seen. Events from before `begins_at` fill the windows. `starting_at` is the query's first instant where
    the recording does not go back to it; `now` is what STARTING AT NOW meant; `only_stream` is the stream that a query
    reads which names none, else the first. `makers` are queries of other texts that make streams it reads.
    """

    query_text: str
    query_name: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    events: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    graphs: Mapping[str, PropertyGraph | TripleGraph] = field(default_factory=dict)
    begins_at: int | None = None
    ends_at: int | None = None
    windows: WindowPolicy = "trailing"
    conflicts: ConflictPolicy = "latest"
    rules: tuple[str, ...] = ALL_RULES
    mapping: ModelMapping = field(default_factory=ModelMapping)
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    starting_at: int | None = None
    now: int | None = None
    only_stream: str | None = None
    file_name: str = "<query>"
    makers: tuple[QueryOptions, ...] = ()
    on_error: OnError | None = None  # None: as `evaluation` has it

    @classmethod
    def of(cls, options: QueryOptions, events: Mapping[str, Sequence[Event]], **more: Any) -> Recording:
        """The recording of a registered query; `more` are other fields."""
        return cls(
            options.text,
            options.source_name,
            options.parameters,
            events,
            windows=options.windows,
            conflicts=options.conflicts,
            now=options.now,
            file_name=options.file_name,
            on_error=options.on_error,
            **more,
        )
