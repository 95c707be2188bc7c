"""What a peer is asked to do, without a word of Anabranch: plain lists and arrays that pass between two processes.

Invariant: imports numpy alone, since the peers' environment has nothing of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    """`places`: for each pattern its subject, predicate and object, a variable as -1 - number, else an id.
    `columns`: for each pattern the variables that its table has columns for."""

    variables: int
    places: tuple[tuple[int, int, int], ...]
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    def read(cls, data: dict[str, Any]) -> Plan:
        places = tuple(tuple(one) for one in data["places"])
        return cls(data["variables"], places, tuple(tuple(one) for one in data["columns"]))

    def as_dict(self) -> dict[str, Any]:
        return {"variables": self.variables, "places": self.places, "columns": self.columns}


@dataclass(frozen=True, slots=True)
class Window:
    """A window's content: one table of distinct rows per pattern, and all distinct triples that fit any of them."""

    tables: tuple[Ids, ...]
    triples: Ids

    @classmethod
    def read(cls, path: str | Path) -> Window:
        with np.load(path) as found:
            tables = tuple(found[f"t{number}"] for number in range(len(found.files) - 1))
            return cls(tables, found["triples"])

    def write(self, path: str | Path) -> None:
        np.savez(path, triples=self.triples, **{f"t{number}": table for number, table in enumerate(self.tables)})


@dataclass(frozen=True, slots=True)
class Slides:
    """What enters (+1) and leaves (-1) at each slide; slide 0 fills the window. Sorted by slide, what leaves first.

    `rows[i]` is by pattern: the rows of its table, their weights and their slides; `triples` the same for triples."""

    count: int
    rows: tuple[tuple[Ids, Ids, Ids], ...]
    triples: tuple[Ids, Ids, Ids]

    @classmethod
    def read(cls, path: str | Path) -> Slides:
        with np.load(path) as found:
            number = (len(found.files) - 4) // 3
            rows = tuple((found[f"r{i}"], found[f"w{i}"], found[f"s{i}"]) for i in range(number))
            return cls(int(found["count"]), rows, (found["triples"], found["weights"], found["slides"]))

    def cut(self, count: int) -> Slides:
        """The first slides alone."""
        rows = tuple((rows[at < count], weights[at < count], at[at < count]) for rows, weights, at in self.rows)
        triples, weights, at = self.triples
        return Slides(min(count, self.count), rows, (triples[at < count], weights[at < count], at[at < count]))

    def write(self, path: str | Path) -> None:
        arrays: dict[str, Any] = {"count": np.int64(self.count)}
        arrays["triples"], arrays["weights"], arrays["slides"] = self.triples
        for number, (rows, weights, slides) in enumerate(self.rows):
            arrays[f"r{number}"], arrays[f"w{number}"], arrays[f"s{number}"] = rows, weights, slides
        np.savez(path, **arrays)


def join_order(columns: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int]:
    """The smallest table first, then whatever only filters, then the smallest that shares a variable."""
    left = sorted(range(len(columns)), key=lambda one: sizes[one])
    order = [left.pop(0)]
    bound = set(columns[order[0]])
    while left:
        filters = [one for one in left if bound.issuperset(columns[one])]
        shares = [one for one in left if bound.intersection(columns[one])]
        chosen = (filters or shares or left)[0]
        left.remove(chosen)
        order.append(chosen)
        bound.update(columns[chosen])
    return order


def column(variable: int) -> str:
    return f"v{variable}"


def joined_sql(plan: Plan, tables: Sequence[str], order: Sequence[int]) -> str:
    """All matches as SQL, with joins in the given order."""
    first: dict[int, str] = {}
    joins: list[str] = []
    for place in order:
        shared = [one for one in plan.columns[place] if one in first]
        condition = " AND ".join(f"{first[one]} = p{place}.{column(one)}" for one in shared)
        joins.append(
            f"JOIN {tables[place]} AS p{place} ON {condition}" if joins else f"FROM {tables[place]} AS p{place}"
        )
        for one in plan.columns[place]:
            first.setdefault(one, f"p{place}.{column(one)}")
    picked = ", ".join(f"{first[one]} AS {column(one)}" for one in range(plan.variables))
    return f"SELECT {picked} {' '.join(joins)}"
