"""A query's operators at work: one batch in at each leaf, one batch out at the root, instant by instant.

Law: after any number of ticks the bag of rows is what the plan has over the windows and graphs as they are.

Work per tick: that of the operators whose inputs changed; an operator all of whose inputs are empty is passed over, but
for the first tick. Counting what each does takes a few additions per operator that works.

A change that is large comes in pieces from a leaf or a join; each piece goes through the operators that look at one row
at a time, and into the first that does not, before the next one is made. So a query that counts the matches of a full
window never holds them all. Nothing that such an operator says half-way is seen by another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import DeltaOperator, Size
from anabranch.delta.patterns import BudgetExceeded
from anabranch.errors import LimitExceeded
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import FlowPart, Leaf, Spec
from anabranch.snapshot.context import OUTSIDE, out_of_memory

ClockReader: TypeAlias = Callable[[], int]
"""Nanoseconds from some beginning; only differences mean anything."""


@dataclass(slots=True)
class FlowWork:
    """What one operator has done so far: changes taken and given, how often it was asked, and for how long."""

    rows_in: int = 0
    rows_out: int = 0
    calls: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """An operator, with the places of its inputs. `through` are the places of the operators that its pieces go through:
    each reads the one before it and is read by the next alone, and all but the last are linear."""

    part: FlowPart
    inputs: tuple[int, ...]
    spec: Spec
    through: tuple[int, ...] = ()
    work: FlowWork = field(default_factory=FlowWork)


class Flow:
    """`clock`, where somebody gives one, times the operators. `watch` sees each change that an operator gives, with the
    operator's place, in the order of places; nothing is handed on in pieces then."""

    def __init__(self, root: Spec, runtime: Runtime, clock: ClockReader | None = None) -> None:
        self.runtime = runtime
        self.watch: Callable[[int, Batch], None] | None = None
        self._clock = clock
        order = placed(root)
        parts = [spec.make(runtime) for spec, _ in order]
        self._steps = [
            _Step(part, inputs, spec, _through(place, parts, order))
            for place, (part, (spec, inputs)) in enumerate(zip(parts, order, strict=True))
        ]
        self._places = {id(step.spec): place for place, step in enumerate(self._steps)}
        self._began = False
        self._at: Spec | None = None  # which operator is at work
        self._spent = 0  # nanoseconds, on all operators

    def part(self, spec: Spec) -> FlowPart:
        """The operator that a spec has become."""
        return self._steps[self._places[id(spec)]].part

    def advance(self, tick: Tick) -> Batch:
        """The root's change. An operator for which there is not enough memory is named."""
        self.runtime.context = tick.context
        self._at = None
        try:
            return self._advanced(tick)
        except MemoryError:
            raise self._out_of_memory() from None
        except BudgetExceeded as error:
            raise self._out_of_memory(f"{error}") from None

    def _out_of_memory(self, needs: str = "") -> LimitExceeded:
        at = self._at
        return out_of_memory(OUTSIDE if at is None else at.name, getattr(at and at.about, "span", None), needs)

    def _advanced(self, tick: Tick) -> Batch:
        check = tick.context.check
        found: list[Batch] = []
        while len(found) < len(self._steps):
            step = self._steps[len(found)]
            inputs = [found[one] for one in step.inputs]
            if check is not None:
                check()
            # A leaf is asked at each tick; its inputs only say what it searches for.
            if self._began and not isinstance(step.part, Leaf) and not any(map(len, inputs)):
                found.append(Batch.empty(step.spec.width))
            elif self.watch is not None or not step.through:
                found.append(self._whole(step, tick, inputs))
            else:
                found += self._in_pieces(step, tick, inputs)
            if self.watch is not None:
                self.watch(len(found) - 1, found[-1])
        self._began = True
        return found[-1]

    def _whole(self, step: _Step, tick: Tick, inputs: Sequence[Batch]) -> Batch:
        part, work = step.part, step.work
        with self._at_work(step):
            batch = part.advance(tick) if isinstance(part, Leaf) else part.apply(*inputs)
        work.calls += 1
        work.rows_in += sum(map(len, inputs))
        work.rows_out += len(batch)
        return batch

    def _in_pieces(self, step: _Step, tick: Tick, inputs: Sequence[Batch]) -> list[Batch]:
        """What an operator gives. Where that is more than one piece, these go on through the operators behind it, and
        what the last of them gives stands at its place; at the places before it nothing is left to be read."""
        part, work = step.part, step.work
        work.calls += 1
        work.rows_in += sum(map(len, inputs))
        given = part.pieces(tick) if isinstance(part, Leaf) else part.given_in_pieces(*inputs)
        pieces = self._counted(step, given, tick)
        first, second = next(pieces), next(pieces, None)
        if second is None:
            return [first]
        *between, last = [self._steps[place] for place in step.through]
        coming: Iterator[Batch] = chain((first, second), pieces)
        for one in between:
            coming = self._passing(one, coming)
        assert not isinstance(last.part, Leaf)
        last.work.calls += 1
        with self._at_work(last):
            batch = last.part.apply_pieces(self._arriving(last.work, coming))
        last.work.rows_out += len(batch)
        return [*(Batch.empty(one.spec.width) for one in (step, *between)), batch]

    def _passing(self, step: _Step, pieces: Iterator[Batch]) -> Iterator[Batch]:
        """The pieces as an operator on single rows makes them."""
        assert not isinstance(step.part, Leaf)
        work = step.work
        work.calls += 1
        for piece in self._arriving(work, pieces):
            with self._at_work(step):
                made = step.part.apply(piece)
            work.rows_out += len(made)
            yield made

    @staticmethod
    def _arriving(work: FlowWork, pieces: Iterator[Batch]) -> Iterator[Batch]:
        for piece in pieces:
            work.rows_in += len(piece)
            yield piece

    def _counted(self, step: _Step, pieces: Iterator[Batch], tick: Tick) -> Iterator[Batch]:
        while True:
            with self._at_work(step):
                piece = next(pieces, None)
            if piece is None:
                return
            if tick.context.check is not None:
                tick.context.check()
            step.work.rows_out += len(piece)
            yield piece

    @contextmanager
    def _at_work(self, step: _Step) -> Iterator[None]:
        """Name the operator, and count the time that passes for it, without that of others that it asks meanwhile."""
        outer, self._at = self._at, step.spec
        began, others = (self._clock() if self._clock is not None else 0), self._spent
        yield  # where it raises, the operator is still named
        if self._clock is not None:
            spent = self._clock() - began
            step.work.nanoseconds += spent - (self._spent - others)
            self._spent = others + spent
        self._at = outer

    def sizes(self) -> Sequence[tuple[Spec, Size]]:
        """What each operator keeps."""
        return [(step.spec, step.part.size()) for step in self._steps]

    def works(self) -> Sequence[tuple[Spec, FlowWork, Size]]:
        """What each operator has done, and what it keeps, in the order of places."""
        return [(step.spec, step.work, step.part.size()) for step in self._steps]


def _through(place: int, parts: Sequence[FlowPart], order: Sequence[tuple[Spec, tuple[int, ...]]]) -> tuple[int, ...]:
    part = parts[place]
    if not isinstance(part, Leaf) and type(part).given_in_pieces is DeltaOperator.given_in_pieces:
        return ()
    read = Counter(one for _, inputs in order for one in inputs)
    found: list[int] = []
    for at in range(place + 1, len(order)):
        following = parts[at]
        if order[at][1] != (at - 1,) or read[at - 1] > 1 or isinstance(following, Leaf):
            break
        found.append(at)
        if not following.linear:
            break
    return tuple(found)


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
