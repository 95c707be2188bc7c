"""Versions of elements: nodes and relationships as ids, with the values that a query reads of them as columns.

A version is the content of an element as far as it is read. Its id is one of the dictionary's; its values are looked up
for many ids at once, and the element is made of them only on request.

State: per version its record (shape, key, type, ends, values), as int64. Records are never written again.

Invariant: an element that is made of a version has the properties that its shape names, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anabranch.delta.batch import NULL, Ids, Mask

_HEAD = 1  # cells before the record: the shape
KEY = ""
"""The key under which the id of an element is looked up."""


@dataclass(frozen=True, slots=True)
class ElementShape:
    """What versions of one origin hold: the keys of their values, and the types that their records number. Nodes have
    no types."""

    keys: tuple[str, ...]
    types: list[str] | None = None
    places: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {KEY: 0, **{key: 4 + at for at, key in enumerate(self.keys)}})


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
        """Return the ids of a property of elements, null where they have none; None where one of the ids is neither a
        version nor null."""
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
            found[some] = self._read(places[some], key)
            return found
        return self._read(places, key)

    def _read(self, places: Ids, key: str) -> Ids:
        cells = self._cells
        shapes = cells[places]
        if not len(shapes):
            return shapes
        offsets = [shape.places.get(key, -1) for shape in self._shapes]
        first = int(shapes[0])
        if len(offsets) == 1 or (shapes == first).all():
            offset = offsets[first]
            return np.zeros(len(places), np.int64) if offset < 0 else cells[places + (_HEAD + offset)]
        of_each = np.array(offsets, np.int64)[shapes]
        return np.where(of_each < 0, NULL, cells[places + _HEAD + np.maximum(of_each, 0)])

    def record(self, identifier: int) -> tuple[ElementShape, list[int]]:
        """Return the shape and the record of a version."""
        place = int(self._places[identifier])
        shape = self._shapes[int(self._cells[place])]
        return shape, self._cells[place + _HEAD : place + _HEAD + 4 + len(shape.keys)].tolist()
