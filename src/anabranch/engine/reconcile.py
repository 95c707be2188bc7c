"""Another set of queries for a running engine: those that stay go on where they stand, the others come and go.

Invariant: a refused query refuses the whole change, and nothing has changed then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra.operators import Registration
from anabranch.engine.checkpoint import identity
from anabranch.engine.checks import Known, check_registration
from anabranch.engine.query import ContinuousQuery, QueryOptions
from anabranch.engine.stream import StreamBuffer

Wanted = Sequence[tuple[Registration, QueryOptions]]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The names of queries that stayed, came and went; one that was changed both went and came."""

    kept: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Soon:
    """The engine as it will be when a query of the list comes to be registered."""

    engine: Known
    queries: tuple[str, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        return self.engine.streams

    @property
    def static_graphs(self) -> tuple[str, ...]:
        return self.engine.static_graphs

    def stream(self, name: str) -> StreamBuffer:
        return self.engine.stream(name)


def compare(queries: Mapping[str, ContinuousQuery], wanted: Wanted, engine: Known, fixed_streams: bool) -> Reconciled:
    """What must happen so that the wanted queries are there. Refusals are QueryErrors, before anything happens."""
    kept: list[str] = []
    new: list[str] = []
    for registration, options in wanted:
        if registration.name not in (*kept, *new) and _same(queries.get(registration.name), registration, options):
            kept.append(registration.name)
        else:
            check_registration(registration, options, _Soon(engine, (*kept, *new)), fixed_streams)
            new.append(registration.name)
    return Reconciled(tuple(kept), tuple(new), tuple(name for name in queries if name not in kept))


def _same(query: ContinuousQuery | None, registration: Registration, options: QueryOptions) -> bool:
    """Whether a query is asked for again. What it means counts, not its text: a line above it may have moved it."""
    if query is None or query.registration != registration:
        return False
    return identity(query.name, _without_text(query.options)) == identity(registration.name, _without_text(options))


def _without_text(options: QueryOptions) -> QueryOptions:
    return replace(options, text="", source_name="")
