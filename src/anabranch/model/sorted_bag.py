"""Sorted bag: items in order, with repetitions, in chunks; stays sorted while single items come and go.

A list of short sorted lists and, beside it, the last item of each: one bisection finds the chunk, one the place in it.
Items compare by `<`; items that neither precedes must be equal.

Invariant: no chunk is empty or longer than twice `_CHUNK`; read one after the other they are sorted.

Work: O(log n) comparisons and moves within one chunk for each item that comes or goes; O(chunks) for a place far from
the front; O(n log n) for `extend` by many.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

_CHUNK = 512
_FEW = 8  # items of so many are sooner added one by one than by sorting all

Item = TypeVar("Item")


class SortedBag(Generic[Item]):
    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._fill(sorted(items))  # type: ignore[type-var]

    def _fill(self, ordered: list[Item]) -> None:
        self._chunks: list[Any] = [ordered[at : at + _CHUNK] for at in range(0, len(ordered), _CHUNK)]
        self._lasts: list[Any] = [chunk[-1] for chunk in self._chunks]
        self._size = len(ordered)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._chunks:
            yield from chunk

    def __getitem__(self, place: int) -> Item:
        """Return the item at a place, counted from 0; -1 is the last."""
        if place == -1 and self._size:
            return self._lasts[-1]  # type: ignore[no-any-return]
        if 0 <= place < self._size:
            for chunk in self._chunks:
                if place < len(chunk):
                    return chunk[place]  # type: ignore[no-any-return]
                place -= len(chunk)
        raise IndexError(f"no item {place} among {self._size}")

    def first_from(self, probe: Any) -> Item | None:
        """Return the first item that does not come before the probe."""
        at = bisect_left(self._lasts, probe)
        if at == len(self._lasts):
            return None
        chunk = self._chunks[at]
        return chunk[bisect_left(chunk, probe)]  # type: ignore[no-any-return]

    def around(self, probe: Any) -> tuple[Item | None, Item | None]:
        """Return the last item before the probe, and the first that does not come before it."""
        at = bisect_left(self._lasts, probe)
        place = bisect_left(self._chunks[at], probe) if at < len(self._chunks) else 0
        after = self._chunks[at][place] if at < len(self._chunks) else None
        before = self._chunks[at][place - 1] if place else self._lasts[at - 1] if at else None
        return before, after

    def add(self, item: Item) -> None:
        self._size += 1
        if not self._chunks:
            self._chunks, self._lasts = [[item]], [item]
            return
        at = bisect_right(self._lasts, item)
        if at == len(self._lasts):
            at -= 1
            self._chunks[at].append(item)
            self._lasts[at] = item
        else:
            insort(self._chunks[at], item)
        if len(self._chunks[at]) > 2 * _CHUNK:
            self._split(at)

    def _split(self, at: int) -> None:
        chunk = self._chunks[at]
        self._chunks[at : at + 1] = [chunk[:_CHUNK], chunk[_CHUNK:]]
        self._lasts[at : at + 1] = [chunk[_CHUNK - 1], chunk[-1]]

    def remove(self, item: Item) -> None:
        """Remove one of the items that are equal to this one; raise a KeyError if there is none."""
        at = bisect_left(self._lasts, item)
        chunk = self._chunks[at] if at < len(self._chunks) else []
        place = bisect_left(chunk, item)
        if place == len(chunk) or chunk[place] != item:
            raise KeyError(item)
        del chunk[place]
        self._size -= 1
        if len(chunk) > _CHUNK // 4 or len(self._chunks) == 1:
            if chunk:
                self._lasts[at] = chunk[-1]
            else:
                self._fill([])
            return
        # Too short to be worth its place: it joins a neighbour.
        first = max(at - 1, 0)
        self._chunks[first : first + 2] = [self._chunks[first] + self._chunks[first + 1]]
        self._lasts[first : first + 2] = [self._chunks[first][-1]]
        if len(self._chunks[first]) > 2 * _CHUNK:
            self._split(first)

    def extend(self, entering: Sequence[Item]) -> None:
        """Add many items at once; a few are added one by one."""
        if len(entering) > self._size // _FEW:
            self._fill(sorted([*self, *entering]))  # of two sorted runs: a merge
        else:
            for item in entering:
                self.add(item)
