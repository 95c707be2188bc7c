"""The nearest match: the largest set of a pattern's parts that match together.

Each part is a table of its own matches. Tables are joined by backtracking over hash indexes, the smallest first; the
search stops at the first match. Sets of parts are tried by the number of parts that they leave out, zero first.

Work: at most `most_sets` sets, each at most `_MOST_VISITS` rows, all together at most `_MOST_IN_ALL`; beyond that,
parts are dropped one by one, the smallest table first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from anabranch.engine.answers import AnswerRow
from anabranch.insight.parts import PlanPart
from anabranch.model.compare import identity_key
from anabranch.model.values import Node, Relationship, Value

_MOST_VISITS = 20_000
_MOST_IN_ALL = 200_000
_OPEN = "rows that leave something open"

PartBindings = Mapping[str, Value]
Test = Callable[[PartBindings], bool]
"""Whether bindings, as far as they go, are of those looked for."""


@dataclass(slots=True)
class MatchTable:
    """The matches of one part. `loose`: an unbound variable is compatible with any value, as in SPARQL; else it is
    null, which equals nothing."""

    part: PlanPart
    rows: list[AnswerRow]
    loose: bool
    _indexes: dict[tuple[str, ...], dict[Hashable, list[AnswerRow]]] = field(default_factory=dict)

    def fitting(self, bindings: PartBindings) -> Sequence[AnswerRow]:
        """Return the rows that agree with the variables that are bound already."""
        shared = tuple(name for name in self.part.columns if name in bindings)
        if not shared:
            return self.rows
        places = [self.part.columns.index(name) for name in shared]
        index = self._indexes.get(shared)
        if index is None:
            index = self._indexes[shared] = {}
            for row in self.rows:
                index.setdefault(_key([row[place] for place in places]), []).append(row)
        values = [bindings[name] for name in shared]
        found = index.get(_key(values), ()) if all(value is not None for value in values) else ()
        if not self.loose:
            return found
        open_rows = [row for row in index.get(_OPEN, ()) if _agree([row[place] for place in places], values)]
        return [*found, *open_rows] if open_rows else found


def _key(values: Sequence[Value]) -> Hashable:
    return _OPEN if any(value is None for value in values) else tuple(map(identity_key, values))


def _agree(values: Sequence[Value], others: Sequence[Value]) -> bool:
    pairs = zip(values, others, strict=True)
    return all(one is None or identity_key(one) == identity_key(other) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The tables that match together, and their bindings."""

    tables: tuple[MatchTable, ...]
    bindings: dict[str, Value]
    exact: bool  # whether no larger set was left untried


def nearest(tables: Sequence[MatchTable], test: Test, most_sets: int) -> Nearest:
    """Return the largest set of tables with a match that passes the test."""
    asked = spent = 0
    for left_out in range(len(tables) + 1):
        for kept in combinations(tables, len(tables) - left_out):
            asked += 1
            if asked > most_sets or spent > _MOST_IN_ALL:
                return _greedy(tables, test)
            if all(table.rows for table in kept):
                visits = [0]
                for bindings in matches(kept, test, visits):
                    return Nearest(kept, bindings, exact=spent < _MOST_VISITS)
                spent += visits[0]
    return Nearest((), {}, exact=True)


def _greedy(tables: Sequence[MatchTable], test: Test) -> Nearest:
    kept = sorted((table for table in tables if table.rows), key=lambda table: len(table.rows))
    while kept:
        for bindings in matches(kept, test):
            return Nearest(tuple(one for one in tables if one in kept), bindings, exact=False)
        kept.pop(0)
    return Nearest((), {}, exact=False)


def matches(tables: Sequence[MatchTable], test: Test, visits: list[int] | None = None) -> Iterator[dict[str, Value]]:
    """Yield the joint matches of some tables, within the limit of work. `visits` counts the rows that were visited."""
    for bindings in _joined(list(tables), {}, {}, [0] if visits is None else visits):
        if test(bindings):
            yield bindings


def _joined(
    waiting: list[MatchTable], bindings: dict[str, Value], used: dict[int, frozenset[object]], visits: list[int]
) -> Iterator[dict[str, Value]]:
    if not waiting:
        yield bindings
        return
    table = min(
        waiting, key=lambda one: (not (set(one.part.columns) & bindings.keys()) and bool(bindings), len(one.rows))
    )
    rest = [one for one in waiting if one is not table]
    part = table.part
    for row in table.fitting(bindings):
        visits[0] += 1
        if visits[0] > _MOST_VISITS:
            return
        found = dict(zip(part.columns, row, strict=True))
        taken = frozenset(_relationships(found[name] for name in part.relationships))
        before = used.get(part.pattern, frozenset())
        if part.relationships and taken & before:
            continue
        merged = dict(bindings)
        for name, value in found.items():
            if value is not None:
                merged[name] = united(bindings.get(name), value)
            elif not table.loose:
                merged[name] = None
        yield from _joined(rest, merged, {**used, part.pattern: before | taken}, visits)


def united(one: Value, other: Value) -> Value:
    """Return the value for a variable that two parts bind: for an element of two windows, the union of its
    properties."""
    match one, other:
        case Node(), Node():
            return Node(
                other.id, tuple(dict.fromkeys((*one.labels, *other.labels))), {**one.properties, **other.properties}
            )
        case Relationship(), Relationship():
            return Relationship(
                other.id, other.type, other.source, other.target, {**one.properties, **other.properties}
            )
    return other


def _relationships(values: Iterator[Value]) -> Iterator[object]:
    for value in values:
        match value:
            case Relationship():
                yield value.id
            case list():
                yield from _relationships(iter(value))
