"""Specs: the graph of operators before it runs, with how each operator is made and from which inputs.

Invariant: a spec holds decisions only; the same specs give an equal flow every time they are started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.algebra.expressions import Expression
from anabranch.algebra.operators import Operator, Source
from anabranch.algebra.walk import read_by, sources
from anabranch.delta.batch import Batch
from anabranch.delta.operators.base import NOTHING_KEPT, DeltaOperator, Size
from anabranch.delta.patterns import Changes
from anabranch.errors import InternalError
from anabranch.planner.flow.feeds import Tick, WindowSlides
from anabranch.planner.flow.runtime import Runtime

SlideModel: TypeAlias = Literal["triples", "elements"]


class Leaf(ABC):
    """A source of changes: a window, a graph, the query itself, or the plain evaluator."""

    @abstractmethod
    def advance(self, tick: Tick) -> Batch:
        """Return the changes since the last tick; at the first tick, all rows."""

    def pieces(self, tick: Tick) -> Iterator[Batch]:
        """Yield the changes of `advance`, in pieces where they may be large; leaving rows come before entering ones."""
        yield self.advance(tick)

    slides_of: SlideModel | None = None
    """What it reads of a window when it takes several slides at once; None: it takes one at a time."""

    def slides(self, slides: WindowSlides) -> Changes:
        """Return the changes of several slides of its window."""
        raise InternalError("a leaf that takes one slide at a time was given several")

    def size(self) -> Size:
        return NOTHING_KEPT


FlowPart: TypeAlias = Leaf | DeltaOperator


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """Description of one operator. `name` is its algorithm. `about` is the operator of the plan that it implements; a
    leaf reads the sources of `about`, unless `reads` names others. `picks`: it only chooses columns of its input.
    `says` are the conditions that it tests, or the columns that it computes: its own share of the work of `about`."""

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
        """Return the windows and graphs that a leaf reads itself."""
        if self.inputs or self.reads:
            return () if self.inputs else self.reads
        if self.about is None:
            return ()
        return sources(self.about) if self.name == "Recomputed" else read_by(self.about)


class NotIncremental(Exception):
    """Raised with the reason why a part of a plan has no incremental operators."""
