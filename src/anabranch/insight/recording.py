"""A recording: a query and a slice of its streams, sufficient to run the query over this slice again.

Invariant: a recording is data only. Two equal recordings give the same steps, scenes and reasons.
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
    """A query with recorded events. `query_name` may be omitted if the text has one query. `events` are the events that
    were taken in, by stream, in the order of arrival.

    The shown instants are those from `begins_at` to `ends_at`, both included; None means from the first one, and until
    all events were seen. Events before `begins_at` fill the windows. `starting_at` is the query's first instant if the
    recording does not go back to it; `now` is the value of STARTING AT NOW; `only_stream` is the stream of a query that
    names none, by default the first. `makers` are queries of other texts that make streams it reads.
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
    on_error: OnError | None = None  # None: as in `evaluation`

    @classmethod
    def of(cls, options: QueryOptions, events: Mapping[str, Sequence[Event]], **more: Any) -> Recording:
        """Create the recording of a registered query; `more` are other fields."""
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
