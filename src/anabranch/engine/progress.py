"""Progress of a stream: the watermarks of its splits, the stream's own, and the decision about events below them.

A split (for example a partition of a Kafka topic) is a part of a stream with an order of its own. Its watermark is the
time of its newest event less the stream's lateness. The stream's watermark, `open_from`, is the least of its splits';
`advance` raises them all, and none ever goes back. A split that was declared and has no event yet holds its stream
back.

An event is late when it lies below its own split's watermark. Accepting all other events is safe: an instant is
evaluated only when it lies before `open_from`, which is at most the watermark of each split that counts; and a split
that is declared on a running stream begins with the stream's watermark as its own. Under `correct` a late event is
taken in too, unless it lies further back than the horizon, counted from its split's newest event (or the last advance).

Silence moves `answers_until` alone: instants before it are evaluated, though events for them may still come. Such an
event is not late; it corrects the early answers. A silent split holds back its stream's watermark, but not the answers.
The same holds for an unheard split, which has brought no event: its first event comes in order. There are two
exceptions. Where a query that cannot be corrected reads the stream, an unheard split that falls silent begins where the
answers are: such queries follow the watermark, and a partition that stays empty would stop them for good. And the
buffer, which keeps the events that a first event may correct, may limit how far back that goes.

Invariant: the decision about an event depends on the earlier events of its own split, on advances and on when its split
was declared; never on how far the other splits are, so not on how the input is cut into pushes. Silence decides whether
an event corrects, and never whether it is late, except for the horizon of the idle policy and for unheard splits that
the buffer or the queries cannot wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from anabranch.engine.timing import IdlePolicy, check_horizon
from anabranch.errors import EngineError
from anabranch.model.instants import subtract_duration
from anabranch.model.temporal import Duration

BEGINNING = -(2**63)
END = 2**63 - 1
ONLY_SPLIT = ""

LatePolicyName = Literal["drop", "correct"]
LATE_POLICIES: tuple[str, ...] = get_args(LatePolicyName)

Admission = Literal["in time", "corrects", "late"]


@dataclass(frozen=True, slots=True)
class LatePolicy:
    """The policy for late events: they are handed back, or taken in, and the answers that they change are emitted
    again.

    With a horizon, events that lie further back are handed back under `correct` too, and buffers may forget.
    """

    policy: LatePolicyName = "drop"
    horizon: Duration | None = None

    def __post_init__(self) -> None:
        if self.policy not in LATE_POLICIES:
            raise EngineError(f"no policy `{self.policy}` for late events; there are {', '.join(LATE_POLICIES)}")
        check_horizon(self.horizon, self.corrects)

    def __str__(self) -> str:
        return self.policy if self.horizon is None else f"{self.policy} within {self.horizon}"

    @property
    def corrects(self) -> bool:
        return self.policy == "correct"


@dataclass(slots=True)
class SplitProgress:
    """The position of one split. A removed split no longer counts, but keeps its position in case it comes back."""

    name: str
    sequence: int = 0  # the sequence number of the next accepted event
    newest: int | None = None
    watermark: int = BEGINNING
    reach: int = BEGINNING  # late events from here on are taken in under `correct`
    counts: bool = True
    silent: bool = False


@lru_cache(maxsize=4096)
def rank(split: str) -> tuple[int, int, str]:
    """Return the sort key of splits whose events share an instant: numbers as numbers, before other names."""
    return (0, int(split), split) if split.isascii() and split.isdecimal() else (1, 0, split)


class Watermarks:
    def __init__(
        self, stream: str, lateness: Duration | None, late: LatePolicy, idle: IdlePolicy | None = None
    ) -> None:
        self._stream = stream
        self.lateness = lateness
        self.late = late
        self.idle = idle or IdlePolicy("wait")
        self.closed = False
        self.splits: dict[str, SplitProgress] = {ONLY_SPLIT: SplitProgress(ONLY_SPLIT)}
        self._open_from = BEGINNING
        self._reach = BEGINNING
        self._early = BEGINNING  # the instant to which silence has moved the answers
        self._alone = BEGINNING  # the same for queries that read nothing else
        self._settled = True  # False: a split has moved since these were computed
        self.waits_for_unheard = True  # all queries that read the stream can be corrected
        self.widest: int | None = None  # the widest window over the stream, in microseconds
        self.jumps = 0  # how often time has jumped past the widest window
        self.last_jump: tuple[int, int] | None = None

    @property
    def open_from(self) -> int:
        """The stream's watermark: instants before it are final, except for corrections of late events."""
        self._settle()
        return self._open_from

    @property
    def answers_until(self) -> int:
        """Instants before this one are evaluated: the watermark, or later where silence has moved the answers."""
        self._settle()
        return max(self._open_from, self._early)

    @property
    def is_early(self) -> bool:
        """Whether silence has moved answers to instants at which events may still come."""
        self._settle()
        return self._open_from < self._early

    @property
    def answers_alone(self) -> int:
        """Like `answers_until`, for queries that read silent streams only: other streams do not move them."""
        self._settle()
        return max(self._open_from, self._alone)

    @property
    def reach(self) -> int:
        """The smallest event time that a correction may still bring."""
        self._settle()
        return min(self._reach, self._open_from) if self.late.corrects else self._open_from

    def _settle(self) -> None:
        if self._settled:
            return
        counting = [split for split in self.splits.values() if split.counts]
        if len(counting) > 1:  # one alone waits for no other
            self._pass_silent(counting)
        if counting:
            self._open_from = max(self._open_from, min([one.watermark for one in counting]))
            self._reach = max(self._reach, min([one.reach for one in counting]))
        self._settled = True

    def _pass_silent(self, counting: list[SplitProgress]) -> None:
        """Let the answers go on as far as the splits that are not silent."""
        awake = [split.watermark for split in counting if not split.silent]
        if not awake or len(awake) == len(counting):
            return
        self._alone = max(self._alone, min(awake))
        self._early = max(self._early, self._alone)
        if not self.waits_for_unheard:
            self.pass_unheard(self._early)
        self._keep_horizon()

    def _unheard(self) -> list[SplitProgress]:
        return [one for one in self.splits.values() if one.counts and one.silent and one.newest is None]

    @property
    def has_unheard(self) -> bool:
        """Whether answers go on without a split that has never brought an event."""
        return bool(self._unheard())

    def pass_unheard(self, instant: int) -> None:
        """Stop waiting for events before the instant from silent, unheard splits, as far as these instants are
        answered.
        """
        for split in self._unheard():
            split.watermark = max(split.watermark, min(instant, self._early))
        self._settled = False

    def _keep_horizon(self) -> None:
        if self.idle.horizon is not None and self._early > BEGINNING:
            oldest = self._less(self._early, self.idle.horizon)
            for split in self.splits.values():
                split.watermark = max(split.watermark, oldest)

    # --- what moves it ------------------------------------------------------------------------------------------------

    def split(self, name: str) -> SplitProgress:
        found = self.splits.get(name)
        if found is None or not found.counts:
            names = ", ".join(repr(one.name) for one in self.splits.values() if one.counts) or "none"
            raise EngineError(
                f"stream `{self._stream}` has no split {name!r}; declare it with set_splits() before its events come; "
                f"splits: {names}"
            )
        return found

    def admit(self, split: SplitProgress, event_time: int) -> Admission:
        """Decide about an event, and let it move its split."""
        if event_time < split.watermark:
            return "corrects" if self.late.corrects and event_time >= split.reach else "late"
        admission: Admission = "in time" if event_time >= self.answered_early else "corrects"
        if split.newest is None or event_time > split.newest:
            split.newest = event_time
            split.watermark = max(split.watermark, self._less(event_time, self.lateness))
            split.reach = max(split.reach, self._reach_from(event_time))
            self._settled = False
        return admission

    def note_jump(self, before: int, after: int) -> None:
        """Count a jump of a split's time that is longer than the widest window."""
        if self.widest is not None and after - before > self.widest:
            self.jumps += 1
            self.last_jump = (before, after)

    @property
    def answered_early(self) -> int:
        """An event before this instant, though in time for its split, may come after answers that should hold it."""
        return self._early

    def set_splits(self, names: Iterable[str], silent: Iterable[str] = ()) -> None:
        wanted, asleep = dict.fromkeys(names), set(silent)
        self._settle()
        for split in self.splits.values():
            split.counts = split.counts and split.name in wanted
        for name in wanted:
            split = self.splits.setdefault(name, SplitProgress(name))
            split.silent = name in asleep and self.idle.corrects
            if not split.counts or split.newest is None:
                split.counts = True
                split.watermark = max(split.watermark, self._open_from)
                split.reach = max(split.reach, self._reach)
        self._settled = False

    def advance(self, instant: int) -> None:
        """Declare that no event at or before the instant will come any more."""
        self._settle()
        reach = self._reach_from(instant)
        for split in self.splits.values():
            split.watermark = max(split.watermark, instant + 1)
            split.reach = max(split.reach, reach)
        self._open_from = max(self._open_from, instant + 1)
        self._settled = False

    def pass_silence(self, fellows: int, clock: int) -> None:
        """Let answers go on though no event comes: before `fellows`, which other streams have reached, and before
        `clock`.
        """
        self._settle()
        self._alone = max(self._alone, clock)
        self._early = max(self._early, fellows, clock)
        self._keep_horizon()
        self._settled = False

    def begin_again(self, instant: int) -> None:
        """Forget the progress of all splits: the next events are not before the instant."""
        for split in self.splits.values():
            split.newest, split.watermark, split.reach = None, instant, instant
        self._open_from = self._reach = instant
        self._early = self._alone = BEGINNING
        self._settled = True

    def close(self) -> None:
        self.closed = True
        self._open_from = self._reach = END

    def _reach_from(self, instant: int) -> int:
        return BEGINNING if self.late.horizon is None else self._less(instant, self.late.horizon)

    @staticmethod
    def _less(instant: int, duration: Duration | None) -> int:
        return instant if duration is None else subtract_duration(instant, duration)

    # --- checkpoint ---------------------------------------------------------------------------------------------------

    def copies(self) -> tuple[SplitProgress, ...]:
        return tuple(replace(split) for split in self.splits.values())

    @property
    def marks(self) -> tuple[int, int, int, int]:
        """The watermark, the reach of corrections, `answers_until` and `answers_alone` as silence has moved them."""
        self._settle()
        return self._open_from, self._reach, self._early, self._alone

    def load(self, splits: Iterable[SplitProgress], marks: tuple[int, int, int, int], closed: bool) -> None:
        self.splits = {split.name: replace(split) for split in splits}
        self._open_from, self._reach, self._early, self._alone = marks
        self.closed = closed
        self._settled = True
