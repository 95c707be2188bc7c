"""Sort words: numbers that are ordered as values are, so that kernels can compare rows.

A value has two words, which compare one after the other. Those of a number follow from its digits. Any other value gets
a label when it is first met: a number between those of its neighbours in the order of keys. Where there is none left,
or too many values are known, labels are given anew, and `revision` changes: words from before mean nothing then.

Law: the words of two values compare as their keys do, and are equal only where these are.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.kernels import ordered_rows as kernels
from anabranch.delta.trace import usable
from anabranch.model.sorted_bag import SortedBag
from anabranch.model.values import Value

KeyOf: TypeAlias = Callable[[Value], Any]
"""From a value to its key: keys have `<` and `==`."""

WORDS = 2
"""The words of a value."""

_FEW = 16  # up to so many values, looking them up one by one is faster
_MOST_KNOWN = 1 << 18
_ROOM = 1 << 52  # for labels: as many words as lie below those of all floats
_STEP = 10  # a run of values in order takes a 2 ** 10th of the room at each
_LOWEST = -(1 << 63)
_NAN, _NULL = (1 << 63) - 2, (1 << 63) - 1
_LARGE = 1 << 63
_EXACT = 1 << 53


class RowWords(Protocol):
    """The order of rows of ids: `width` words for each."""

    width: int

    @property
    def revision(self) -> int:
        """Return a number that changes when words from before lose their meaning."""

    def words(self, rows: Ids) -> Ids: ...


class OrderLabels:
    """Labels of keys, from 1 to before `_ROOM`, in the order of the keys."""

    def __init__(self) -> None:
        self.revision = 0
        self._placed: SortedBag[tuple[Any, int]] = SortedBag()
        self._last = 0
        self._most = _MOST_KNOWN

    def of(self, key: Any) -> int:
        before, after = self._placed.around((key,))
        if after is not None and after[0] == key:
            return after[1]
        if len(self._placed) >= self._most:  # those that are still of interest may be as many
            self._most *= 2
            self._begin_anew(SortedBag())
            before = after = None
        low, high = before[1] if before else 0, after[1] if after else _ROOM
        if high - low < 2:
            self._begin_anew(self._placed)
            return self.of(key)
        self._last = label = self._between(low, high)
        self._placed.add((key, label))
        return label

    def _between(self, low: int, high: int) -> int:
        """Return a label between two: next to the last one, where keys come in order, else in the middle."""
        small = max(1, (high - low) >> _STEP)
        if low and low == self._last:
            return low + small
        if high < _ROOM and high == self._last:
            return high - small
        return (low + high) >> 1

    def _begin_anew(self, placed: SortedBag[tuple[Any, int]]) -> None:
        """Give these keys other labels, equally far from each other."""
        self.revision += 1
        step = _ROOM // (len(placed) + 1)
        self._placed = SortedBag([(key, place * step) for place, (key, _) in enumerate(placed, 1)])
        self._last = 0


class SortWords:
    """The words of the values of a dictionary, by a key. `looks`: numbers that are equal but look different, as 1 and
    1.0, have different keys. `has_numbers`: keys order integers and floats by their size, all other values but NaN and
    null before them, and those two behind."""

    def __init__(self, dictionary: Dictionary, key_of: KeyOf, looks: bool = False, has_numbers: bool = True) -> None:
        self._dictionary = dictionary
        self._key_of = key_of
        self._looks = looks
        self._has_numbers = has_numbers
        self._labels = OrderLabels()
        self._rests = OrderLabels()  # of integers beyond 64 bits, what is left of the float below them
        self._known: dict[int, tuple[int, int]] = {}
        self._known_at = 0
        self._bits = np.zeros(1, np.int64)

    @property
    def revision(self) -> int:
        return self._labels.revision + self._rests.revision

    def words(self, ids: Ids) -> Ids:
        """Return the two words of each value."""
        if len(ids) <= _FEW or not self._has_numbers:
            return self._one_by_one(ids)
        kinds, numbers = self._dictionary.number_words(ids)
        found = np.empty((len(ids), WORDS), np.int64)
        bits = self._bits
        kernels.number_order(kinds, usable(numbers), self._looks, found, bits, bits.view(np.float64))
        others = np.flatnonzero(kinds == 0)
        if len(others):
            found[others] = self._one_by_one(ids[others])
        return found

    def _one_by_one(self, ids: Ids) -> Ids:
        different, places = np.unique(ids, return_inverse=True) if len(ids) > _FEW else (ids, None)
        asked = different.tolist()
        revision = -1
        found: list[tuple[int, int]] = []
        while revision != self.revision:  # a label that was given anew changes those before it
            revision = self.revision
            if revision != self._known_at or len(self._known) > _MOST_KNOWN:
                self._known, self._known_at = {}, revision
            known = self._known
            missing = [one for one in asked if one not in known]
            if missing:
                values = self._dictionary.decode_all(missing)
                known.update(zip(missing, map(self._words_of, values), strict=True))
            found = [known[one] for one in asked]
        words = np.array(found, np.int64).reshape(len(found), WORDS)
        return words if places is None else words[places]

    def _words_of(self, value: Value) -> tuple[int, int]:
        if self._has_numbers:
            if value is None:
                return _NULL, 0
            if value.__class__ is float:
                return self._float_words(value)
            if value.__class__ is int:
                return self._integer_words(value)
        return _LOWEST + self._labels.of(self._key_of(value)), 0

    def _float_words(self, number: float) -> tuple[int, int]:
        if number != number:
            return _NAN, 0
        look = 2 if number == 0 and math.copysign(1.0, number) < 0 else 1
        return _ordered_bits(number), look if self._looks else 0

    def _integer_words(self, number: int) -> tuple[int, int]:
        below = _float_below(number)
        if -_EXACT <= number <= _EXACT:
            return _ordered_bits(below), 0
        if math.isinf(below):
            return _ordered_bits(below), self._rests.of(number) << 2
        rest = number - int(below)
        return _ordered_bits(below), (rest if -_LARGE <= number < _LARGE or not rest else self._rests.of(rest)) << 2


def _float_below(number: int) -> float:
    """Return the largest float that is not above an integer."""
    try:
        found = float(number)
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if number > 0 else -math.inf
    return found if found <= number else math.nextafter(found, -math.inf)


def _ordered_bits(number: float) -> int:
    """Return a word that is ordered as floats are; both zeros have one."""
    bits: int = struct.unpack("<q", struct.pack("<d", abs(number)))[0]
    return bits if number >= 0 else -bits


class ColumnOrder:
    """Rows by the values in some of their columns, one after the other."""

    def __init__(self, columns: Sequence[int], values: SortWords, descending: bool = False) -> None:
        self.width = WORDS * len(columns)
        self._columns = list(columns)
        self._values = values
        self._descending = descending

    @property
    def revision(self) -> int:
        return self._values.revision

    def words(self, rows: Ids) -> Ids:
        found = self._values.words(rows[:, self._columns].reshape(-1)).reshape(len(rows), self.width)
        return ~found if self._descending else found


class KeyOrder:
    """Rows by keys of their own. `keys_of` gives the key of each row of ids."""

    width = 1

    def __init__(self, keys_of: Callable[[Sequence[tuple[int, ...]]], Sequence[Any]]) -> None:
        self._keys_of = keys_of
        self._labels = OrderLabels()

    @property
    def revision(self) -> int:
        return self._labels.revision

    def words(self, rows: Ids) -> Ids:
        keys = self._keys_of(list(map(tuple, rows.tolist())))
        revision, found = -1, []
        while revision != self.revision:
            revision = self.revision
            found = [self._labels.of(key) for key in keys]
        return np.array(found, np.int64).reshape(-1, 1)


class JoinedOrder:
    """Rows by several orders, one after the other."""

    def __init__(self, parts: Sequence[RowWords]) -> None:
        self._parts = parts
        self.width = sum(part.width for part in parts)

    @property
    def revision(self) -> int:
        return sum(part.revision for part in self._parts)

    def words(self, rows: Ids) -> Ids:
        if len(self._parts) == 1:
            return self._parts[0].words(rows)
        revision, found = -1, np.empty((len(rows), 0), np.int64)
        while revision != self.revision:  # parts may share labels
            revision = self.revision
            found = np.concatenate([part.words(rows) for part in self._parts], axis=1)
        return found
