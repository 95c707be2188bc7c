"""The timing of a stream besides its lateness: the effect of silence, and how far ahead an event may be.

A silent stream would hold back every query that reads it. The idle policy decides about these queries:

    correct   answers go on without the silent stream; events that come in order afterwards are never late: they are
              taken into their windows, and the answers that they change are corrected
    wait      answers wait until the stream goes on
    advance   the watermark itself goes on; events that come in order afterwards are late

Queries that cannot be corrected (windows by count, instants that depend on arrivals, derived streams) wait under
`correct` too.

Invariant: under `correct` and `wait` no event is late because of silence, unless it lies further back than the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from anabranch.errors import EngineError, EvaluationError
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.windows import require_positive

IdlePolicyName = Literal["correct", "wait", "advance"]
IDLE_POLICIES: tuple[str, ...] = get_args(IdlePolicyName)


def check_horizon(horizon: Duration | None, corrects: bool) -> None:
    """Refuse a horizon of corrections that is not positive, or that a policy without corrections has."""
    if horizon is None:
        return
    if not corrects:
        raise EngineError("a horizon says how far back corrections go; it needs the policy `correct`")
    try:
        require_positive(horizon, "the horizon of corrections")
    except ValueError as error:
        raise EngineError(str(error)) from None


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """The effect of silence on a stream.

    With a horizon, answers that lie further back are no longer corrected, events of that time are late, and buffers may
    forget them while other streams go on.
    """

    policy: IdlePolicyName = "correct"
    horizon: Duration | None = None

    def __post_init__(self) -> None:
        if self.policy not in IDLE_POLICIES:
            raise EngineError(f"no policy `{self.policy}` for idle streams; there are {', '.join(IDLE_POLICIES)}")
        check_horizon(self.horizon, self.corrects)

    def __str__(self) -> str:
        return self.policy if self.horizon is None else f"{self.policy}:{self.horizon}"

    @property
    def corrects(self) -> bool:
        return self.policy == "correct"

    @classmethod
    def parse(cls, text: str) -> IdlePolicy:
        """Parse `correct`, `correct:PT1H`, `wait` or `advance`."""
        policy, _, horizon = text.partition(":")
        if policy not in IDLE_POLICIES or (horizon and policy != "correct"):
            raise EngineError(
                f"`{text}` is no policy for idle streams\n"
                "hint: write correct, correct:PT1H to correct what is at most an hour old, wait, or advance"
            )
        try:
            return cls(cast(IdlePolicyName, policy), parse_duration(horizon) if horizon else None)
        except EvaluationError as error:
            raise EngineError(error.diagnostic.message) from None


_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class AheadBound:
    """How far ahead an event may be, in microseconds.

    `jump` bounds the distance from the newest event of its split without other events that confirm it, `clock` the
    distance from the wall clock where input is live, and `last` the distance from the newest event where no event
    follows that could confirm or refute it.
    """

    jump: int = 24 * _HOUR
    clock: int = _HOUR
    last: int = 366 * 24 * _HOUR

    @classmethod
    def parse(cls, text: str) -> AheadBound | None:
        """Parse a duration that bounds all three; `none` bounds nothing."""
        if text == "none":
            return None
        try:
            length = parse_duration(text)
            require_positive(length, "the bound for events ahead")
        except EvaluationError as error:
            raise EngineError(error.diagnostic.message) from None
        except ValueError as error:
            raise EngineError(str(error)) from None
        bound = fixed_micros(length)
        return cls(bound, bound, bound)

    def __str__(self) -> str:
        return spelled(self.jump) or ""


def fixed_micros(length: Duration) -> int:
    """Return the microseconds of a duration of a fixed length."""
    if length.months:
        raise EngineError(f"{length} has no fixed length\nhint: write it in days, hours or seconds, like PT30S")
    return length.micros


def spelled(length: int | None) -> str | None:
    """Return microseconds as a duration's text."""
    return None if length is None else str(Duration(0, 0, length // 1_000_000, length % 1_000_000 * 1000))


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """The timing of a stream.

    `idle_timeout` is how long it may be silent, in microseconds; None: for ever. Without `ahead`, events may be as far
    ahead as they like.
    """

    idle_timeout: int | None = None
    idle: IdlePolicy = field(default_factory=IdlePolicy)
    ahead: AheadBound | None = None
