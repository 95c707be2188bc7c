"""Vertex names, texts or integers, and the numbers that an index uses for them.

The number of an integer is the integer itself, and a text that spells an integer has the same number: `17` and 17 are
one vertex. Any other text has a number made of its digest, from 2**62 on, above all integers of up to 18 digits. So a
vertex has the same number in every run, and the name of a component does not depend on earlier input.

State: two entries per text that spells no integer, from text to number and back; integers cost nothing. Work: in Python
only the distinct texts of a chunk that spell no integer; the rest by arrays.

Law: two names have the same number exactly when they spell the same text, as long as both are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.delta.batch import Ids
from anabranch.errors import EngineError
from anabranch.formats.arrow_arrays import numbers, taken, truths
from anabranch.model.scrambled import scrambled

VertexId: TypeAlias = str | int
VertexIds: TypeAlias = npt.NDArray[Any] | Sequence[VertexId] | pa.Array | pa.ChunkedArray

_INTEGER = r"(?:0|-?[1-9][0-9]{0,17})"
_LARGEST = 10**18 - 1
_FIRST_TEXT = 1 << 62


class VertexNames:
    __slots__ = ("_numbers", "_texts", "are_texts")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self.are_texts = False  # whether a text has come: from then on names are returned as texts

    def __len__(self) -> int:
        """How many texts are kept."""
        return len(self._numbers)

    def numbers_of(self, names: VertexIds) -> Ids:
        """Return the numbers of many names."""
        match names:
            case np.ndarray() if names.dtype.kind in "iu":
                return self._of_integers(names)
            case np.ndarray():
                return np.array([self.number_of(name) for name in names.tolist()], np.int64)
            case pa.ChunkedArray():
                return self._of_arrow(names.combine_chunks())
            case pa.Array():
                return self._of_arrow(names)
            case _:
                return np.array([self.number_of(name) for name in names], np.int64)

    def number_of(self, name: VertexId) -> int:
        """Return the number of one name."""
        match name:
            case bool():
                pass
            case int():
                return name if -_LARGEST <= name <= _LARGEST else self._number(str(name))
            case str():
                self.are_texts = True
                return int(name) if re.fullmatch(_INTEGER, name) else self._number(name)
        raise EngineError(f"ids are texts or integers, not {name!r}")

    def _of_arrow(self, array: pa.Array) -> Ids:
        if array.null_count:
            raise EngineError("a vertex has no name: there is a null among the ids")
        if pa.types.is_integer(array.type):
            return self._of_integers(numbers(array))
        if pa.types.is_dictionary(array.type):
            by_code: Ids = self._of_arrow(array.dictionary)[numbers(array.indices)]
            return by_code
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            raise EngineError(f"ids are texts or integers, not {array.type}")
        encoded = array.dictionary_encode()
        found: Ids = self._of_texts(encoded.dictionary)[numbers(encoded.indices)]
        return found

    def _of_integers(self, names: npt.NDArray[Any]) -> Ids:
        if not len(names) or (names.max() <= _LARGEST and names.min() >= -_LARGEST):
            return names.astype(np.int64, copy=False)
        large = (names > _LARGEST) | (names < -_LARGEST)
        distinct, places = np.unique(names[large], return_inverse=True)
        found = np.where(large, 0, names).astype(np.int64)
        found[large] = np.array([self._number(str(name)) for name in distinct.tolist()], np.int64)[places]
        return found

    def _of_texts(self, texts: pa.Array) -> Ids:
        """Return the numbers of distinct texts."""
        self.are_texts = True
        spells_integer = truths(pc.match_substring_regex(texts, f"^{_INTEGER}$"))
        found = np.empty(len(texts), np.int64)
        if spells_integer.any():
            found[spells_integer] = numbers(taken(texts, np.flatnonzero(spells_integer)).cast(pa.int64()))
        others = np.flatnonzero(~spells_integer)
        if len(others):
            found[others] = [self._number(text) for text in taken(texts, others).to_pylist()]
        return found

    def _number(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = _FIRST_TEXT | (scrambled(text) & (_FIRST_TEXT - 1))
            while number in self._texts:
                number = _FIRST_TEXT | ((number + 1) & (_FIRST_TEXT - 1))
            self._numbers[text] = number
            self._texts[number] = text
        return number

    def names_of(self, ids: Ids) -> list[VertexId]:
        """Return the names of numbers."""
        return [self._name(number) for number in ids.tolist()]

    def _name(self, number: int) -> VertexId:
        if number < _FIRST_TEXT:
            return str(number) if self.are_texts else number
        text = self._texts.get(number)
        if text is None:
            raise EngineError("a vertex of an earlier answer was forgotten\nhint: take its name before the next answer")
        return text if self.are_texts else int(text)

    def keep(self, ids: Ids) -> None:
        """Forget all texts but those of these numbers."""
        kept = {number: self._texts[number] for number in ids[ids >= _FIRST_TEXT].tolist()}
        self._texts = kept
        self._numbers = {text: number for number, text in kept.items()}
