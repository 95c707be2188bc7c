"""A query's operators at work: one batch in at each leaf, one batch out at the root, instant by instant.

Law: after any number of ticks the bag of rows is what the plan has over the windows and graphs as they are.

Work per tick: that of the operators whose inputs changed; an operator all of whose inputs are empty is passed over, but
for the first tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import Size
from anabranch.planner.feeds import Tick
from anabranch.planner.runtime import Runtime
from anabranch.planner.spec import Leaf, Part, Spec


@dataclass(frozen=True, slots=True)
class _Step:
    part: Part
    inputs: tuple[int, ...]
    spec: Spec


class Flow:
    def __init__(self, root: Spec, runtime: Runtime) -> None:
        self.runtime = runtime
        self._steps: list[_Step] = []
        self._places: dict[int, int] = {}
        self._place(root)
        self._began = False

    def _place(self, spec: Spec) -> int:
        """Put an operator behind its inputs; one that several others read stands once."""
        place = self._places.get(id(spec))
        if place is None:
            inputs = tuple(self._place(one) for one in spec.inputs)
            place = self._places[id(spec)] = len(self._steps)
            self._steps.append(_Step(spec.make(self.runtime), inputs, spec))
        return place

    def part(self, spec: Spec) -> Part:
        """The operator that a spec has become."""
        return self._steps[self._places[id(spec)]].part

    def advance(self, tick: Tick) -> Batch:
        """The root's change."""
        self.runtime.context = tick.context
        found: list[Batch] = []
        for step in self._steps:
            part = step.part
            if isinstance(part, Leaf):
                found.append(part.advance(tick))
                continue
            inputs = [found[one] for one in step.inputs]
            if self._began and not any(map(len, inputs)):
                found.append(Batch.empty(part.width))
            else:
                found.append(part.apply(*inputs))
        self._began = True
        return found[-1]

    def sizes(self) -> Sequence[tuple[Spec, Size]]:
        """What each operator keeps."""
        return [(step.spec, step.part.size()) for step in self._steps]
