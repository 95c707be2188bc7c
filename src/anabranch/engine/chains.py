"""Derived streams: each answer of a query with INTO is an event of a stream that other queries read.

The event's time is the answer's instant. Rows with three terms become triples; nodes, relationships and paths in the
rows of other queries are the event's elements. The progress of a derived stream is that of the query that makes it:
everything before that query's next instant is final, and the stream ends when the query will never be evaluated again.
An instant without rows is progress too, so the readers go on as far as the query did.

Invariant: no query reads its own output, not even through other queries; so progress runs in one direction, and a
query's answer never depends on when another one was registered or stepped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.algebra.operators import Registration, Window
from anabranch.algebra.walk import read_by, walk
from anabranch.engine.answers import Answer
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import Diagnostic
from anabranch.model.event import Event
from anabranch.model.terms import Blank, Iri, Literal, Triple
from anabranch.model.union import overlay
from anabranch.model.values import ElementId, Node, Path, Relationship, Value

# --- answers as events ------------------------------------------------------------------------------------------------


def event_of(answer: Answer, maker: ContinuousQuery) -> Event | None:
    """Return the event that an answer becomes; None when the answer has no rows for one.

    Where the query gives its rows no order, triples are sorted: a count window may begin inside of the event, and the
    triples that it holds must not depend on how the query was evaluated.
    """
    at = int(answer.at)
    if maker.registration.language == "seraph":
        elements = _Elements()
        for row in answer.rows:
            elements.take(row)
        nodes, relationships = tuple(elements.nodes.values()), tuple(elements.relationships.values())
        return Event(at, nodes, relationships) if nodes or relationships else None
    triples = dict.fromkeys(triple for row in answer.rows if (triple := _triple(row)) is not None)
    if not triples:
        return None
    return Event(at, triples=tuple(triples if maker.is_ordered else sorted(triples)))


def _triple(row: Sequence[Value]) -> Triple | None:
    """Return a row of three terms as a triple; None for a row that is no triple, for example an unbound variable."""
    match tuple(row):
        case (Iri() | Blank() as subject, Iri() as predicate, Iri() | Blank() | Literal() as object_):
            return Triple(subject, predicate, object_)
    return None


class _Elements:
    """The nodes and relationships that values hold. Where rows disagree about an element, the later row overlays the
    earlier.
    """

    def __init__(self) -> None:
        self.nodes: dict[ElementId, Node] = {}
        self.relationships: dict[ElementId | None, Relationship] = {}

    def take(self, value: object) -> None:
        match value:
            case Node():
                known = self.nodes.get(value.id)
                self.nodes[value.id] = value if known is None else overlay(known, value)
            case Relationship():
                found = self.relationships.get(value.id)
                self.relationships[value.id] = value if found is None else overlay(found, value)
            case Path():
                self.take(value.nodes)
                self.take(value.relationships)
            case list() | tuple():
                for item in value:
                    self.take(item)
            case Mapping():
                for item in value.values():
                    self.take(item)


# --- how far a made stream is -----------------------------------------------------------------------------------------


def follow(stream: StreamBuffer, maker: ContinuousQuery, read: Sequence[StreamBuffer], ended: bool) -> bool:
    """Move a derived stream to where its query stands; return whether the stream moved."""
    before = (stream.open_from, stream.ended, stream.made_until)
    stream.ended = ended
    instants = maker.cursor.instants
    if isinstance(instants, ArrivalInstants) and instants.complete:
        # Between its instants no event could come, and that was known while the streams ran on.
        stream.made_until = max((one.clock for one in read if one.clock is not None), default=None)
    elif maker.cursor.passed is not None:
        stream.made_until = maker.cursor.passed
    if not ended and instants is not None:
        index = maker.cursor.next_index
        reached = instants.not_before(index) if isinstance(instants, ArrivalInstants) else instants.instant(index)
        if all(one.closed for one in read) and maker.cursor.passed is not None:
            # Whether there is a next instant is known when the input has ended; answers do not depend on when the
            # streams were closed.
            reached = maker.cursor.passed + 1
        stream.advance(reached - 1)
    return before != (stream.open_from, stream.ended, stream.made_until)


# --- which query reads which ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A query with the streams that it reads and the stream that it makes, or announces though no query can read it."""

    query: str
    reads: tuple[str, ...]
    into: str | None
    unreadable: str | None = None

    @classmethod
    def of(cls, query: ContinuousQuery) -> ChainLink:
        registration, reads = query.registration, query.cursor.stream_names()
        if query.link is None or query.link.reads is not reads:
            query.link = cls(query.name, reads, registration.into, registration.unreadable)
        return query.link


def unreadable(registration: Registration, makers: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield refusals of the streams that a query reads and no query can make.

    `makers` maps such a stream to the query that announces it.
    """
    seen: set[str] = set()
    for node in walk(registration.plan):
        for source in read_by(node):
            name = source.stream.name if isinstance(source, Window) else None
            if name is not None and name in makers and name not in seen:
                seen.add(name)
                yield Diagnostic(
                    "SPQ-203",
                    f"the stream `{name}` carries nothing: the answers of query `{makers[name]}` are no triples",
                    node.span,
                    hint="let that query CONSTRUCT, or SELECT three columns: subject, predicate and object",
                )


def circle(links: Iterable[ChainLink], begin: str) -> tuple[ChainLink, ...] | None:
    """Return the queries of a circle through one query, starting with it; None when there is no circle.

    Each query of the circle makes a stream that the next one reads.
    """
    by_name = {link.query: link for link in links}

    def onward(link: ChainLink) -> Iterator[ChainLink]:
        return (other for other in by_name.values() if link.into is not None and link.into in other.reads)

    seen = {begin}
    paths: list[tuple[ChainLink, ...]] = [(by_name[begin],)]
    while paths:
        path = paths.pop()
        for link in onward(path[-1]):
            if link.query == begin:
                return path
            if link.query not in seen:
                seen.add(link.query)
                paths.append((*path, link))
    return None


def spell_circle(path: Sequence[ChainLink]) -> str:
    """Spell a circle as text: `a` makes `s`, which `b` reads; `b` makes `t`, which `a` reads."""
    readers = (*path[1:], path[0])
    return "; ".join(
        f"`{link.query}` makes `{link.into}`, which {'it' if reader is link else f'`{reader.query}`'} reads"
        + (" itself" if reader is link else "")
        for link, reader in zip(path, readers, strict=True)
    )
