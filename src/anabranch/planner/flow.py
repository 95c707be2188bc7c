"""A query's operators at work: one batch in at each leaf, one batch out at the root, instant by instant.

Law: after any number of ticks the bag of rows is what the plan has over the windows and graphs as they are.

Work per tick: that of the operators whose inputs changed; an operator all of whose inputs are empty is passed over, but
for the first tick. Counting what each does takes a few additions per operator that works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import Size
from anabranch.errors import LimitExceeded
from anabranch.planner.feeds import Tick
from anabranch.planner.runtime import Runtime
from anabranch.planner.spec import Leaf, Part, Spec

Clock: TypeAlias = Callable[[], int]
"""Nanoseconds from some beginning; only differences mean anything."""


@dataclass(slots=True)
class Work:
    """What one operator has done so far: changes taken and given, how often it was asked, and for how long."""

    rows_in: int = 0
    rows_out: int = 0
    calls: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    part: Part
    inputs: tuple[int, ...]
    spec: Spec
    work: Work = field(default_factory=Work)


class Flow:
    """`clock`, where somebody gives one, times the operators. `watch` sees each change that an operator gives, with the
    operator's place, in the order of places."""

    def __init__(self, root: Spec, runtime: Runtime, clock: Clock | None = None) -> None:
        self.runtime = runtime
        self.watch: Callable[[int, Batch], None] | None = None
        self._clock = clock
        self._steps = [_Step(spec.make(runtime), inputs, spec) for spec, inputs in placed(root)]
        self._places = {id(step.spec): place for place, step in enumerate(self._steps)}
        self._began = False
        self._at: Spec | None = None  # which operator is at work

    def part(self, spec: Spec) -> Part:
        """The operator that a spec has become."""
        return self._steps[self._places[id(spec)]].part

    def advance(self, tick: Tick) -> Batch:
        """The root's change. An operator for which there is not enough memory is named."""
        self.runtime.context = tick.context
        self._at = None
        try:
            return self._advanced(tick)
        except MemoryError:
            raise out_of_memory(self._at) from None

    def _advanced(self, tick: Tick) -> Batch:
        check = tick.context.check
        clock, watch = self._clock, self.watch
        began = clock() if clock is not None else 0
        found: list[Batch] = []
        for step in self._steps:
            part, work = step.part, step.work
            self._at = step.spec
            if check is not None:
                check()
            if isinstance(part, Leaf):
                batch = part.advance(tick)
            else:
                inputs = [found[one] for one in step.inputs]
                came = sum(map(len, inputs))
                if self._began and not came:
                    found.append(Batch.empty(part.width))
                    continue
                batch = part.apply(*inputs)
                work.rows_in += came
            found.append(batch)
            work.calls += 1
            work.rows_out += len(batch)
            if clock is not None:
                now = clock()
                work.nanoseconds += now - began
                began = now
            if watch is not None:
                watch(len(found) - 1, batch)
        self._began = True
        return found[-1]

    def sizes(self) -> Sequence[tuple[Spec, Size]]:
        """What each operator keeps."""
        return [(step.spec, step.part.size()) for step in self._steps]

    def works(self) -> Sequence[tuple[Spec, Work, Size]]:
        """What each operator has done, and what it keeps, in the order of places."""
        return [(step.spec, step.work, step.part.size()) for step in self._steps]


def out_of_memory(spec: Spec | None = None) -> LimitExceeded:
    """What to say when there is not enough memory for a part of a query, which is named by its operator."""
    what = "the plain evaluator" if spec is None else spec.name
    return LimitExceeded(
        "SER-311",
        f"the memory ran out in {what}",
        "narrow the window, name more labels, types or constants, connect the parts of the pattern, or let it end "
        "earlier by --max-steps or --max-state",
        getattr(None if spec is None else spec.about, "span", None),
    )


def placed(root: Spec) -> list[tuple[Spec, tuple[int, ...]]]:
    """The operators of a flow in their order: each behind its inputs, with the places of these; one that several others
    read stands once."""
    places: dict[int, int] = {}
    found: list[tuple[Spec, tuple[int, ...]]] = []

    def place(spec: Spec) -> int:
        known = places.get(id(spec))
        if known is None:
            inputs = tuple(place(one) for one in spec.inputs)
            known = places[id(spec)] = len(found)
            found.append((spec, inputs))
        return known

    place(root)
    return found
