"""An event of a stream: a small property graph at an instant.

Invariant: `event_time` is UTC microseconds since the epoch; the order of nodes and relationships is that of the source.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.model.values import Node, Relationship


@dataclass(frozen=True, slots=True)
class Event:
    event_time: int
    nodes: tuple[Node, ...] = ()
    relationships: tuple[Relationship, ...] = ()
