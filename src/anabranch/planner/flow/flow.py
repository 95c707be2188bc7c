"""Runs the operators of a query: at each instant the leaves produce batches, and the root returns one batch.

Law: after any number of ticks the bag of rows is the result of the plan over the present windows and graphs.

Work per tick: that of the operators whose inputs changed. After the first tick, an operator whose inputs are all empty
is skipped. The counters cost a few additions per operator that works.

A leaf or a join produces a large change in pieces. Each piece passes through the operators that work on single rows,
and into the first operator that does not, before the next piece is made. So a query that counts the matches of a full
window never holds them all. No other operator sees an intermediate result of that last operator.
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
from anabranch.delta.patterns import BudgetExceeded, Changes
from anabranch.errors import LimitExceeded
from anabranch.planner.flow.feeds import Tick, WindowSlides
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import FlowPart, Leaf, SlideModel, Spec
from anabranch.snapshot.context import OUTSIDE, out_of_memory

ClockReader: TypeAlias = Callable[[], int]
"""Nanoseconds since an arbitrary start; only differences are meaningful."""


@dataclass(slots=True)
class FlowWork:
    """Counters of one operator: rows taken in and given out, calls, and time."""

    rows_in: int = 0
    rows_out: int = 0
    calls: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """An operator, with the places of its inputs. `through` are the places of the operators that its pieces pass
    through: each reads only the one before it and is read only by the next, and all but the last are linear."""

    part: FlowPart
    inputs: tuple[int, ...]
    spec: Spec
    through: tuple[int, ...] = ()
    work: FlowWork = field(default_factory=FlowWork)


class Flow:
    """A running graph of operators. `clock`, if given, times the operators. `watch`, if set, receives each operator's
    place and output batch, in the order of places; batches are not split into pieces then."""

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
        self._at: Spec | None = None  # the operator that is running
        self._spent = 0  # nanoseconds, of all operators

    def part(self, spec: Spec) -> FlowPart:
        """Return the operator that a spec has become."""
        return self._steps[self._places[id(spec)]].part

    def advance(self, tick: Tick) -> Batch:
        """Advance by one tick and return the root's change. An out-of-memory error names the operator."""
        self.runtime.context = tick.context
        self._at = None
        try:
            return self._advanced(tick)
        except MemoryError:
            raise self._out_of_memory() from None
        except BudgetExceeded as error:
            raise self._out_of_memory(f"{error}") from None

    @property
    def slides_of(self) -> SlideModel | None:
        """What it reads of its window when it advances by several slides at once: one leaf that can, and above it a
        chain of operators. None: it cannot."""
        leaf, *others = self._steps
        if not isinstance(leaf.part, Leaf) or self.watch is not None or not self._began:
            return None
        is_chain = all(
            isinstance(step.part, DeltaOperator) and step.inputs == (place,) for place, step in enumerate(others)
        )
        return leaf.part.slides_of if is_chain else None

    def advance_slides(self, slides: WindowSlides) -> Changes:
        """Advance a chain by several slides; return the root's changes at each."""
        self._at = None
        leaf, *others = self._steps
        assert isinstance(leaf.part, Leaf)
        try:
            with self._at_work(leaf):
                changes = leaf.part.slides(slides)
            leaf.work.calls += 1
            leaf.work.rows_out += len(changes.batch)
            for step in others:
                assert isinstance(step.part, DeltaOperator)
                step.work.calls += 1
                step.work.rows_in += len(changes.batch)
                with self._at_work(step):
                    changes = step.part.apply_slides(changes)
                step.work.rows_out += len(changes.batch)
        except MemoryError:
            raise self._out_of_memory() from None
        return changes

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
            # A leaf advances at each tick; its inputs only limit its search.
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
        """Run an operator that may produce its change in pieces, and return the batches of the next places. With one
        piece, that is the operator's own batch. With more, the pieces pass through the following operators: the last of
        them has the result, and the places before it are empty."""
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
        """Apply an operator on single rows to each piece."""
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
        """Set the operator as the current one, and add to its time, without the time of operators that it runs
        meanwhile."""
        outer, self._at = self._at, step.spec
        began, others = (self._clock() if self._clock is not None else 0), self._spent
        yield  # where it raises, the operator is still named
        if self._clock is not None:
            spent = self._clock() - began
            step.work.nanoseconds += spent - (self._spent - others)
            self._spent = others + spent
        self._at = outer

    def sizes(self) -> Sequence[tuple[Spec, Size]]:
        """Return the size of each operator's state."""
        return [(step.spec, step.part.size()) for step in self._steps]

    def works(self) -> Sequence[tuple[Spec, FlowWork, Size]]:
        """Return the counters and the state size of each operator, in the order of places."""
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
    """Return the operators of a flow in order: each after its inputs, with the places of these; a shared operator
    once."""
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
