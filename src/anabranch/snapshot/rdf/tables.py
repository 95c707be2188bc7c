"""Rows held in memory, and found again by any of their columns.

A row with nulls in the columns asked for is compatible with every value there, so rows are kept apart by where their
nulls are: within such a group a lookup is one step into a hash index.

Invariant: a lookup gives exactly the rows that agree with the given values wherever both have one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from anabranch.model.compare import identity_key
from anabranch.model.values import Value

TableRows = Sequence[tuple[Any, ...]]


class _Group:
    """Rows with nulls at the same positions, with an index for each set of positions that was asked for."""

    __slots__ = ("indexes", "nulls", "rows")

    def __init__(self, nulls: frozenset[int]) -> None:
        self.nulls = nulls
        self.rows: list[tuple[Value, ...]] = []
        self.indexes: dict[tuple[int, ...], dict[Hashable, list[tuple[Value, ...]]]] = {}

    def find(self, positions: tuple[int, ...], key: Hashable) -> TableRows:
        index = self.indexes.get(positions)
        if index is None:
            index = self.indexes[positions] = {}
            for row in self.rows:
                index.setdefault(key_at(row, positions), []).append(row)
        return index.get(key, ())


def key_at(row: Sequence[Value], positions: tuple[int, ...]) -> Hashable:
    """Return a hash key that is equal for rows with equal values at these positions."""
    if len(positions) == 1:
        return identity_key(row[positions[0]])
    return tuple([identity_key(row[at]) for at in positions])


class TermTable:
    __slots__ = ("_groups", "columns", "rows")

    def __init__(self, columns: tuple[str, ...], rows: Iterable[tuple[Value, ...]]) -> None:
        self.columns = columns
        self.rows: list[tuple[Value, ...]] = list(rows)
        self._groups: list[_Group] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, positions: tuple[int, ...], values: Sequence[Value]) -> TableRows:
        """The rows that agree with these values at these positions; no value is null."""
        groups = self._groups if self._groups is not None else self._grouped()
        if len(groups) == 1 and not groups[0].nulls:
            return groups[0].find(positions, _key(values)) if positions else self.rows
        found: list[tuple[Value, ...]] = []
        for group in groups:
            where = [at for at, position in enumerate(positions) if position not in group.nulls]
            if len(where) == len(positions):
                found += group.find(positions, _key(values)) if positions else group.rows
            elif where:
                found += group.find(tuple(positions[at] for at in where), _key([values[at] for at in where]))
            else:
                found += group.rows
        return found

    def meets(self, positions: tuple[int, ...], values: Sequence[Value]) -> bool:
        """Return whether some row agrees with these values and has a value of its own at one of the positions at
        least."""
        for group in self._groups if self._groups is not None else self._grouped():
            where = [at for at, position in enumerate(positions) if position not in group.nulls]
            if where and group.find(tuple(positions[at] for at in where), _key([values[at] for at in where])):
                return True
        return False

    def _grouped(self) -> list[_Group]:
        groups: dict[frozenset[int], _Group] = {}
        none: frozenset[int] = frozenset()
        for row in self.rows:
            nulls = frozenset(at for at, value in enumerate(row) if value is None) if None in row else none
            group = groups.get(nulls)
            if group is None:
                group = groups[nulls] = _Group(nulls)
            group.rows.append(row)
        self._groups = list(groups.values())
        return self._groups


def _key(values: Sequence[Value]) -> Hashable:
    if len(values) == 1:
        return identity_key(values[0])
    return tuple([identity_key(value) for value in values])


def picker(positions: Sequence[int]) -> Any:
    """A function that cuts a tuple of these positions out of a row."""
    match len(positions):
        case 0:
            return lambda row: ()
        case 1:
            only = positions[0]
            return lambda row: (row[only],)
        case _:
            return itemgetter(*positions)
