"""An event of a stream: a small graph at an instant, of nodes and relationships or of RDF triples.

Invariant: `event_time` is UTC microseconds since the epoch; the order of the elements is that of the source. An event
holds either nodes and relationships or triples; `model.mapping` reads the one as the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.model.terms import Triple
from anabranch.model.values import Node, Relationship


@dataclass(frozen=True, slots=True)
class Event:
    event_time: int
    nodes: tuple[Node, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    triples: tuple[Triple, ...] = ()
