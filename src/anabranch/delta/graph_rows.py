"""Elements of arrived events as rows of ids: the input of a window on arrays.

Invariant: positions never go back; a key is the id of an element's id, and a value is the id of a property's value or
ABSENT.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch.delta.batch import Ids


class NodeRows(NamedTuple):
    """Nodes: positions of their events, keys, numbers of label sets, and one column for each asked property."""

    positions: Ids
    keys: Ids
    label_sets: Ids
    values: Ids


class LinkRows(NamedTuple):
    """Relationships: positions of their events, keys, numbers of types, keys of both ends, and the properties."""

    positions: Ids
    keys: Ids
    types: Ids
    sources: Ids
    targets: Ids
    values: Ids
