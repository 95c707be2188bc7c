"""Vertex names, texts or integers, and the numbers that an index uses for them.

The number of an integer is the integer itself, and a text that spells an integer has the same number: `17` and 17 are
one vertex. Any other text has a number made of its digest, from 2**62 on, above all integers of up to 18 digits. So a
vertex has the same number in every run, and the name of a component does not depend on earlier input.

State: the bytes and the number of each text that spells no integer, in tables; integers cost nothing. Work: by arrays,
O(bytes) per name; in Python only sequences of both kinds, and the names that are returned.

Law: two names have the same number exactly when they spell the same text, as long as both are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.delta.batch import Ids
from anabranch.delta.connectivity.vertices import Vertices
from anabranch.delta.texts import PADDING, TextTable, spelled_integers
from anabranch.errors import EngineError
from anabranch.formats.arrow_arrays import numbers, taken, text_buffers
from anabranch.formats.term_columns import Texts
from anabranch.model.graph_block import Bytes
from anabranch.model.scrambled import TEXT_KIND

VertexId: TypeAlias = str | int
VertexIds: TypeAlias = npt.NDArray[Any] | Sequence[VertexId] | pa.Array | pa.ChunkedArray

_LARGEST = 10**18 - 1
_FIRST_TEXT = 1 << 62
_AT_ONCE = 1 << 13  # Python's objects, read several times while they are near


class VertexNames:
    __slots__ = ("_numbers", "_table", "are_texts")

    def __init__(self) -> None:
        self._table = TextTable()
        self._numbers = Vertices()  # the number of each text by its id in the table, and the other way round
        self.are_texts = False  # whether a text has come: from then on names are returned as texts

    def __len__(self) -> int:
        """How many texts are kept."""
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """The bytes of all texts and tables."""
        return self._table.nbytes + self._numbers.size().bytes

    def numbers_of(self, names: VertexIds) -> Ids:
        """Return the numbers of many names."""
        match names:
            case np.ndarray() if names.dtype.kind in "iu":
                return self._of_integers(names)
            case np.ndarray():
                return self.numbers_of(names.tolist())
            case pa.ChunkedArray():
                return np.concatenate([np.empty(0, np.int64), *(self._of_arrow(chunk) for chunk in names.chunks)])
            case pa.Array():
                return self._of_arrow(names)
            case _:
                parts = (names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE))
                return np.concatenate([np.empty(0, np.int64), *map(self._of_objects, parts)])

    def number_of(self, name: VertexId) -> int:
        """Return the number of one name."""
        return int(self._of_objects([name])[0])

    def _of_arrow(self, array: pa.Array) -> Ids:
        if array.null_count:
            raise EngineError("a vertex has no name: there is a null among the ids")
        kind = array.type
        if pa.types.is_integer(kind):
            return self._of_integers(numbers(array))
        if pa.types.is_dictionary(kind):
            return self._of_dictionary(array)
        if pa.types.is_string_view(kind):
            array = array.cast(pa.large_string())
        elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise EngineError(f"ids are texts or integers, not {kind}")
        self.are_texts = True
        data, ends = text_buffers(array, PADDING)
        return self._of_texts(data, ends[:-1], ends[1:])

    def _of_dictionary(self, array: pa.DictionaryArray) -> Ids:
        found: Ids
        places = numbers(array.indices)
        used = np.zeros(len(array.dictionary), np.bool_)
        used[places] = True
        if used.all():
            found = self._of_arrow(array.dictionary)[places]
            return found
        by_code = np.zeros(len(used), np.int64)
        by_code[used] = self._of_arrow(taken(array.dictionary, np.flatnonzero(used)))
        found = by_code[places]
        return found

    def _of_objects(self, names: Sequence[VertexId]) -> Ids:
        """Return the numbers of Python's texts and integers."""
        kinds = set(map(type, names))
        if kinds == {int}:
            try:
                return self._of_integers(np.array(names, np.int64))
            except OverflowError:
                pass
        for kind in kinds - {int, str}:
            if issubclass(kind, bool) or not issubclass(kind, int | str | np.integer):
                name = next(name for name in names if type(name) is kind)
                raise EngineError(f"ids are texts or integers, not {name!r}")
        self.are_texts |= any(issubclass(kind, str) for kind in kinds)
        return self._of_strings(names if kinds == {str} else [str(name) for name in names])

    def _of_strings(self, names: Sequence[Any]) -> Ids:
        laid = Texts.of(names)
        ends = np.zeros(len(names) + 1, np.int64)
        np.cumsum(laid.lengths, out=ends[1:])
        data = np.zeros(len(laid.data) + PADDING, np.uint8)
        data[: len(laid.data)] = np.frombuffer(laid.data, np.uint8)
        return self._of_texts(data, ends[:-1], ends[1:])

    def _of_integers(self, names: npt.NDArray[Any]) -> Ids:
        if not len(names) or (names.max() <= _LARGEST and names.min() >= -_LARGEST):
            return names.astype(np.int64, copy=False)
        large = (names > _LARGEST) | (names < -_LARGEST)
        found = np.where(large, 0, names).astype(np.int64)
        found[large] = self._of_strings([str(name) for name in names[large].tolist()])
        return found

    def _of_texts(self, data: Bytes, starts: Ids, stops: Ids) -> Ids:
        """Return the numbers of adjacent texts in UTF-8, which PADDING bytes follow."""
        found, others = spelled_integers(data, starts, stops)
        if len(others) == len(found):
            return self._of_others(data, starts, stops)
        if len(others):
            found[others] = self._of_others(data, starts[others], stops[others])
        return found

    def _of_others(self, data: Bytes, starts: Ids, stops: Ids) -> Ids:
        """Return the numbers of texts that spell no integers."""
        ids = self._table.add(data, starts, stops, 0)
        if len(self._table) > len(self._numbers):
            self._number_new_texts()
        return self._numbers.ids[ids]

    def _number_new_texts(self) -> None:
        first = len(self._numbers)
        new = _FIRST_TEXT | (self._digests(first) & (_FIRST_TEXT - 1))
        self._numbers.numbers_of(new)
        if len(self._numbers) < len(self._table):  # two digests are the same, which nearly never happens
            self._numbers = _numbered(self._numbers.ids[:first])
            for number in new.tolist():
                while self._numbers.known(np.array([number]))[0] >= 0:
                    number = _FIRST_TEXT | ((number + 1) & (_FIRST_TEXT - 1))
                self._numbers.numbers_of(np.array([number]))

    def _digests(self, first: int) -> Ids:
        """Return, of all texts from this id on, what `scrambled` says of them."""
        return self._table.digests(first, TEXT_KIND)

    def names_of(self, ids: Ids) -> list[VertexId]:
        """Return the names of numbers."""
        found: list[VertexId] = ids.tolist()
        if self.are_texts:
            found = list(map(str, found))
        places = np.flatnonzero(ids >= _FIRST_TEXT)
        if len(places):
            known = self._numbers.known(ids[places])
            if known.min() < 0:
                raise EngineError(
                    "a vertex of an earlier answer was forgotten\nhint: take its name before the next answer"
                )
            for place, text in zip(places.tolist(), self._table.texts(known), strict=True):
                name = text.decode("utf-8", "surrogatepass")
                found[place] = name if self.are_texts else int(name)
        return found

    def keep(self, ids: Ids) -> None:
        """Forget all texts but those of these numbers."""
        is_kept = np.zeros(len(self._table), np.bool_)
        is_kept[self._numbers.known(ids[ids >= _FIRST_TEXT])] = True
        kept = np.flatnonzero(is_kept)
        self._table = self._table.picked(kept)
        self._numbers = _numbered(self._numbers.ids[kept])


def _numbered(ids: Ids) -> Vertices:
    """Return these ids, numbered in their order, with room for as many again."""
    vertices = Vertices(room=2 * len(ids))
    vertices.numbers_of(ids)
    return vertices
