"""The graph of operators before it runs: how each is made, from what, and how it was decided.

Invariant: a spec is made of decisions alone; the same specs give an equal flow every time they are started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.algebra.expressions import Expression
from anabranch.algebra.operators import Operator, Source
from anabranch.algebra.walk import read_by, sources
from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import NOTHING_KEPT, DeltaOperator, Size
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.runtime import Runtime


class Leaf(ABC):
    """Where changes come from: a window, a graph, the query itself, or the plain evaluator."""

    @abstractmethod
    def advance(self, tick: Tick) -> Batch:
        """What changed since the last tick; at the first, everything."""

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        """The same, in pieces where it may be much: what leaves comes before what enters."""
        yield self.advance(tick)

    def size(self) -> Size:
        return NOTHING_KEPT


FlowPart: TypeAlias = Leaf | DeltaOperator


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """One operator to be. `name` is its algorithm; `about` the operator of the plan that it belongs to, from which one
    reads what a leaf reads, unless `reads` says so. `picks`: it only chooses columns of its input. `says` are the
    conditions that it tests, or the columns that it computes: what is its own of what `about` does."""

    name: str
    make: Callable[[Runtime], FlowPart]
    columns: tuple[str, ...]
    inputs: tuple[Spec, ...] = ()
    about: Operator | None = field(default=None, repr=False)
    reads: tuple[Source, ...] = ()
    picks: bool = False
    says: tuple[tuple[str, Expression], ...] = ()

    @property
    def width(self) -> int:
        return len(self.columns)

    def index(self, name: str) -> int:
        return self.columns.index(name)

    def asks(self) -> tuple[Source, ...]:
        """The windows and graphs that a leaf asks itself."""
        if self.inputs or self.reads:
            return () if self.inputs else self.reads
        if self.about is None:
            return ()
        return sources(self.about) if self.name == "Recomputed" else read_by(self.about)


class NotIncremental(Exception):
    """Why a part of a plan has no operators on changes."""
