"""The options of a run.

The command line, `anabranch.run`, the server's sessions and notebook cells are views of this one object: each converts
its own spelling, and the run reads nothing else.

Invariant: a setting has one name and one unit from here down to the engine. Instants and lengths of time are
microseconds, except lateness, which may hold months.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypedDict, Unpack

from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import ALL_RULES, Evaluator, rule_names
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.session import DurationLike, InstantLike, as_lateness, micros, parameter_values
from anabranch.engine.timing import AheadBound, IdlePolicy, StreamTiming
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.temporal import Duration
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import WindowPolicy

EngineName: TypeAlias = Literal["spark", "local"]


class RunSettings(TypedDict, total=False):
    """The options of a run as programs write them: durations and instants as text, seconds as numbers.

    A live stream that is silent for `idle_timeout` seconds is idle, and `idle` says what answers do then (see
    `IdlePolicy`). An event further ahead than `ahead` is set aside unless others confirm its clock (see `AheadBound`).
    `refresh` is the number of seconds between two checks of the files of static graphs.
    """

    windows: WindowPolicy
    conflicts: ConflictPolicy
    evaluator: Evaluator
    parameters: Mapping[str, object]
    mapping: ModelMapping
    rules: str | Iterable[str]
    evaluation: EvaluationOptions
    lateness: DurationLike | None
    late: LatePolicy
    idle_timeout: float | None
    idle: IdlePolicy | str
    ahead: AheadBound | str | None
    until: InstantLike | None
    drain: bool
    refresh: float | None
    follow: bool
    batch_events: int | None
    checkpoint: str | None
    dead_letter: str | None
    engine: EngineName
    master: str
    conf: Mapping[str, str]


_TIMING = {"idle_timeout": 30.0, "idle": "correct", "ahead": AheadBound()}


def _timing(idle_timeout: float | None, idle: IdlePolicy | str, ahead: AheadBound | str | None) -> StreamTiming:
    return StreamTiming(
        None if idle_timeout is None else int(idle_timeout * 1_000_000),
        IdlePolicy.parse(idle) if isinstance(idle, str) else idle,
        AheadBound.parse(ahead) if isinstance(ahead, str) else ahead,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, in the units of the engine.

    `until` is the instant up to which queries are evaluated after the input's end, `drain` goes on until the windows
    are empty. `refresh` is the time between two checks of the files of static graphs. `batch_events` limits the events
    of one stream in a batch. Without a `checkpoint` the run keeps its state in a folder that it removes at its end.
    """

    windows: WindowPolicy = "trailing"
    conflicts: ConflictPolicy = "latest"
    evaluator: Evaluator = "own"
    parameters: Mapping[str, Value] = field(default_factory=dict)
    mapping: ModelMapping = field(default_factory=ModelMapping)
    rules: tuple[str, ...] = ALL_RULES
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    lateness: Duration | None = None
    late: LatePolicy = field(default_factory=LatePolicy)
    timing: StreamTiming = field(default_factory=StreamTiming)
    until: int | None = None
    drain: bool = False
    refresh: int | None = None
    follow: bool = False
    batch_events: int | None = None
    checkpoint: str | None = None
    dead_letter: str | None = None
    engine: EngineName = "spark"
    master: str = "local[*]"  # Spark's, as are these properties
    conf: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, **settings: Unpack[RunSettings]) -> RunOptions:
        """Convert settings as programs write them."""
        given = dict(settings)
        times = [given.pop(name, default) for name, default in _TIMING.items()]
        found = replace(cls(), timing=_timing(*times), **given)  # type: ignore[arg-type]
        return replace(
            found,
            parameters=parameter_values(found.parameters),
            rules=rule_names(found.rules),
            lateness=as_lateness(found.lateness),
            until=None if found.until is None else micros(found.until),
            refresh=None if found.refresh is None else int(found.refresh * 1_000_000),
        )

    def query_options(self) -> QueryOptions:
        """Return the options with which each query is registered."""
        return QueryOptions(self.windows, self.conflicts, self.parameters, evaluator=self.evaluator)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The settings of one stream, where it has its own; None means the run's.

    `clock` is a command that sets the stream's time: its number, and the instant.
    """

    lateness: Duration | None = None
    timing: StreamTiming | None = None
    clock: tuple[int, int] | None = None
