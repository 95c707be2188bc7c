"""Versions of elements: nodes and relationships as ids, with the values that a query reads of them as columns.

A version is the content of an element as far as it is read. Its id is one of the dictionary's; its values are looked up
for many ids at once, and the element is made of them only on request.

State: per version its record (shape, key, type or labels, ends, the version beneath, values), as int64. Records are
never written again.

Invariant: an element that is made of a version has the properties that its shape names, and no others. A version over
others is their overlay (`model.union`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.delta.batch import NULL, Ids, Mask
from anabranch.model.graph_block import PROPERTIES

_HEAD = 1  # cells before the record: the shape
RECORD = 5  # cells of a record before the values
BENEATH = 4
KEY, TYPE, LABELS = "", "\0type", "\0labels"
"""The keys under which the id, the type and the labels of an element are looked up."""
KEY_SET = "\0keys"
"""The key under which a version holds the number of the set of its properties' keys."""
PARTS = frozenset((KEY, TYPE, LABELS, PROPERTIES, KEY_SET))
"""Keys that are no properties."""


@dataclass(frozen=True, slots=True)
class ElementShape:
    """What versions of one origin hold: the keys of their values, and the types, or sets of labels, that their records
    number. Nodes have no types, and sets of labels only where these are read."""

    keys: tuple[str, ...]
    types: list[str] | None = None
    label_sets: list[tuple[str, ...]] | None = None
    places: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = {KEY: 0, **{key: RECORD + at for at, key in enumerate(self.keys)}}
        places |= ({} if self.types is None else {TYPE: 1}) | ({} if self.label_sets is None else {LABELS: 1})
        object.__setattr__(self, "places", places)

    @property
    def is_layered(self) -> bool:
        """Whether versions may lie over others: all labels, or all properties, are read."""
        return LABELS in self.places or PROPERTIES in self.places

    def place(self, key: str) -> int | None:
        """Return the place of a property in a record; -1: elements have none, None: it is not known here."""
        found = self.places.get(key)
        return found if found is not None or key in PARTS or PROPERTIES in self.places else -1


class ElementVersions:
    """The records of versions, by id."""

    __slots__ = ("_cells", "_count", "_filled", "_places", "_shapes")

    def __init__(self) -> None:
        self._shapes: list[ElementShape] = []
        self._places: Ids = np.full(1024, -1, np.int64)  # by id: where its record begins
        self._cells: Ids = np.empty(4096, np.int64)
        self._filled = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._cells.nbytes

    def shape(self, shape: ElementShape) -> int:
        """Return the number of a new shape."""
        self._shapes.append(shape)
        return len(self._shapes) - 1

    def add(self, first: int, shapes: Ids, records: Ids) -> None:
        """Add versions with consecutive ids. Records may be longer than their shapes need."""
        count, width = records.shape
        size = width + _HEAD
        if first + count > len(self._places):
            grown = np.full(max(first + count, 2 * len(self._places)), -1, np.int64)
            grown[: len(self._places)] = self._places
            self._places = grown
        if self._filled + count * size > len(self._cells):
            cells = np.empty(max(self._filled + count * size, 2 * len(self._cells)), np.int64)
            cells[: self._filled] = self._cells[: self._filled]
            self._cells = cells
        block = self._cells[self._filled : self._filled + count * size].reshape(count, size)
        block[:, 0] = shapes
        block[:, _HEAD:] = records
        self._places[first : first + count] = np.arange(self._filled, self._filled + count * size, size)
        self._filled += count * size
        self._count += count

    def has(self, ids: Ids) -> Mask:
        """Return which ids are versions."""
        known = (ids >= 0) & (ids < len(self._places))
        known[known] = self._places[ids[known]] >= 0
        return known

    def are_links(self, ids: Ids) -> Mask:
        """Return which versions are those of relationships."""
        of_shape = np.array([shape.types is not None for shape in self._shapes], np.bool_)
        return of_shape[self._cells[self._places[ids]]]

    def values(self, ids: Ids, key: str) -> Ids | None:
        """Return the ids of a property of elements, null where they have none; None where one of the ids is neither
        null nor a version that holds it."""
        if not self._count:
            return None
        if not len(ids):
            return ids
        if int(ids.max()) >= len(self._places):
            return None
        places = self._places[ids]
        if (places < 0).any():
            if ((places < 0) & (ids != NULL)).any():
                return None
            found = np.zeros(len(ids), np.int64)
            some = places >= 0
            read = self._read(places[some], key)
            if read is None:
                return None
            found[some] = read
            return found
        return self._read(places, key)

    def _read(self, places: Ids, key: str) -> Ids | None:
        cells = self._cells
        shapes = cells[places]
        if not len(shapes):
            return shapes
        first = int(shapes[0])
        if len(self._shapes) == 1 or (shapes == first).all():
            offset = self._shapes[first].place(key)
            if offset is None:
                return None
            return np.zeros(len(places), np.int64) if offset < 0 else cells[places + (_HEAD + offset)]
        offsets = {one: self._shapes[one].place(key) for one in np.unique(shapes).tolist()}
        if None in offsets.values():
            return None
        of_each = np.array([offsets.get(one, -1) for one in range(len(self._shapes))], np.int64)[shapes]
        return np.where(of_each < 0, NULL, cells[places + _HEAD + np.maximum(of_each, 0)])

    def are_layered(self, ids: Ids) -> Mask:
        """Return which versions lie over others; null does not."""
        places = self._places[ids]
        found = places >= 0
        found[found] = self._cells[places[found] + _HEAD + BENEATH] != NULL
        return found

    def names(self, ids: Ids) -> Ids:
        """Return numbers of the types of relationships, or of the sets of labels of nodes."""
        places = self._places[ids]
        return (self._cells[places] << 32) + self._cells[places + _HEAD + 1]

    def name(self, number: int) -> str | tuple[str, ...]:
        """Return the type or the set of labels behind such a number."""
        shape = self._shapes[number >> 32]
        names: Sequence[str | tuple[str, ...]] = shape.types or shape.label_sets or ()
        return names[number & 0xFFFFFFFF]

    def record(self, identifier: int) -> tuple[ElementShape, list[int]]:
        """Return the shape and the record of a version."""
        place = int(self._places[identifier])
        shape = self._shapes[int(self._cells[place])]
        return shape, self._cells[place + _HEAD : place + _HEAD + RECORD + len(shape.keys)].tolist()
