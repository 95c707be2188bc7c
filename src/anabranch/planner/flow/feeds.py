"""What windows bring at an instant, as the operators on changes take it.

Invariant: a feed belongs to one query and one window, and is asked once per instant. What it gives over time adds up to
what the window holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from anabranch.algebra.operators import Source, Window
from anabranch.delta.batch import Ids
from anabranch.model.union import ElementChanges
from anabranch.snapshot.context import Context


class TripleSlide(NamedTuple):
    """Triples that came, as a matrix of ids, and how many of all that ever came have left by now."""

    arrived: Ids
    left: int


class RelationshipSlide(NamedTuple):
    """Relationships that events carried, as (source, type, target), each as often as it came; how many of all that ever
    came have left by now; and whether one of them came twice in this slide, and not between the same nodes."""

    arrived: Ids
    left: int
    moved: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """One instant. `triples`, `elements` and `relationships` say what a window's slide brought. `signature` differs
    when what a source holds may differ. `strict`: events that disagree make the union empty. `context` is that of the
    plain evaluator. `settled`: windows are as the instant has them; while they are on the way there, what is computed
    anew waits."""

    context: Context
    triples: Callable[[Window], TripleSlide]
    elements: Callable[[Window], ElementChanges]
    relationships: Callable[[Window], RelationshipSlide]
    signature: Callable[[Sequence[Source]], Hashable]
    strict: bool = False
    settled: bool = True
