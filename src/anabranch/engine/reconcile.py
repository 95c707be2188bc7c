"""Changes of the set of queries of a running engine: queries that stay keep their position, others are added or
dropped.

Invariant: when one query is refused, the whole change is refused, and nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows
from anabranch.engine.chains import ChainLink
from anabranch.engine.checkpoint import identity
from anabranch.engine.checks import check_registration
from anabranch.engine.progress import LatePolicy
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.engine.stream import StreamBuffer


@dataclass(frozen=True, slots=True)
class QueryChanges:
    """The names of queries that stayed, were added and were dropped; a changed query was both dropped and added."""

    kept: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class EngineView(Protocol):
    """The part of the engine that a change of queries must know."""

    @property
    def streams(self) -> tuple[str, ...]: ...

    @property
    def static_graphs(self) -> tuple[str, ...]: ...

    @property
    def late(self) -> LatePolicy: ...

    def stream(self, name: str) -> StreamBuffer: ...


@dataclass(frozen=True, slots=True)
class _Soon:
    """The engine as it will be when a query of a list is registered.

    `queries` are registered then, and `links` are those of all queries in the end: a query may read a stream that a
    later query of the list makes.
    """

    engine: EngineView
    queries: tuple[str, ...]
    links: tuple[ChainLink, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        made = {link.into for link in self.links}
        origins = {name: self.engine.stream(name).origin for name in self.engine.streams}
        return tuple(
            name for name, origin in origins.items() if origin == "source" or (origin == "named" and name not in made)
        )

    @property
    def streams(self) -> tuple[str, ...]:
        made = (link.into for link in self.links if link.into is not None)
        return tuple(dict.fromkeys((*self.sources, *made)))

    @property
    def static_graphs(self) -> tuple[str, ...]:
        return self.engine.static_graphs

    @property
    def late(self) -> LatePolicy:
        return self.engine.late

    def stream(self, name: str) -> StreamBuffer:
        return self.engine.stream(name)


def check_additions(
    links: Iterable[ChainLink], wanted: Sequence[CompiledQuery], engine: EngineView, fixed_streams: bool
) -> None:
    """Refuse, by a QueryError, queries that cannot be added to the registered ones."""
    present = tuple(links)
    soon = (*present, *(_link(registration, engine) for registration, _ in wanted))
    names = [link.query for link in present]
    for registration, options in wanted:
        check_registration(registration, options, _Soon(engine, tuple(names), soon), fixed_streams)
        names.append(registration.name)


def compare(
    queries: Mapping[str, ContinuousQuery], wanted: Sequence[CompiledQuery], engine: EngineView, fixed_streams: bool
) -> QueryChanges:
    """Return the changes that lead to the wanted queries. Refusals are QueryErrors, before anything changes."""
    kept: list[str] = []
    new: list[str] = []
    links = tuple(_link(registration, engine) for registration, _ in wanted)
    for registration, options in wanted:
        if registration.name not in (*kept, *new) and _same(queries.get(registration.name), registration, options):
            kept.append(registration.name)
        else:
            check_registration(registration, options, _Soon(engine, (*kept, *new), links), fixed_streams)
            new.append(registration.name)
    return QueryChanges(tuple(kept), tuple(new), tuple(name for name in queries if name not in kept))


def _link(registration: Registration, engine: EngineView) -> ChainLink:
    """Return the link of a query; a stream without a name is the first source."""
    sources = [name for name in engine.streams if engine.stream(name).origin != "query"]
    named = (window.stream.name or next(iter(sources), None) for window in windows(registration.plan))
    reads = tuple(name for name in named if name is not None)
    return ChainLink(registration.name, reads, registration.into, registration.unreadable)


def _same(query: ContinuousQuery | None, registration: Registration, options: QueryOptions) -> bool:
    """Return whether a query is the same as a registered one.

    Its meaning counts, not its text: a line above it may have moved it.
    """
    if query is None or query.registration != registration:
        return False
    return identity(query.name, _without_text(query.options)) == identity(registration.name, _without_text(options))


def _without_text(options: QueryOptions) -> QueryOptions:
    return replace(options, text="", source_name="")
