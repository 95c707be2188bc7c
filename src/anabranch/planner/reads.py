"""Finds what expressions read of elements: whole elements, or only their properties and ids.

Where only properties are read, a column holds versions of elements (`delta/element_versions.py`), and the properties
are looked up for many rows at once.

Invariant: a read that is not found here as a property or an id is a read of the whole element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.delta.element_versions import KEY
from anabranch.optimizer.support.rebuild import everywhere
from anabranch.snapshot.variables import children, free_variables


class PropertyRead(NamedTuple):
    """The property of a column, or its id where the key is KEY."""

    name: str
    key: str


Read: TypeAlias = str | PropertyRead
"""A whole column, by its name, or a property of it."""
Reads: TypeAlias = frozenset[Read]


def reads_of(expressions: Iterable[ex.Expression]) -> Reads:
    """Return what expressions read of the row."""
    return frozenset(read for expression in expressions for read in _reads(expression))


def _reads(expression: ex.Expression) -> Iterator[Read]:
    read = property_read(expression)
    if read is not None:
        yield read
        return
    match expression:
        case ex.Variable(name):
            yield name
        case ex.Comprehension() | ex.Quantifier() | ex.Reduce() | ex.Exists() | ex.CollectRows():
            yield from _bound_reads(expression)
        case _:
            for child in children(expression):
                yield from _reads(child)


def _bound_reads(expression: ex.Expression) -> Iterator[Read]:
    """Yield the reads of an expression that binds names of its own."""
    match expression:
        case ex.Comprehension(variable, source, where, result):
            inner = [part for part in (where, result) if part is not None]
            yield from _reads(source)
            yield from without(reads_of(inner), (variable,))
        case ex.Quantifier(_, variable, source, where):
            yield from _reads(source)
            yield from without(reads_of((where,)), (variable,))
        case ex.Reduce(accumulator, initial, variable, source, step):
            yield from reads_of((initial, source))
            yield from without(reads_of((step,)), (accumulator, variable))
        case _:
            yield from free_variables(expression)


def property_read(expression: ex.Expression) -> PropertyRead | None:
    """Return the property or the id of a column that an expression is; None for all others."""
    match expression:
        case ex.Property(ex.Variable(name), key) if key != KEY:
            return PropertyRead(name, key)
        case ex.Call("id", (ex.Variable(name),)):
            return PropertyRead(name, KEY)
    return None


def name_of(read: Read) -> str:
    return read if isinstance(read, str) else read.name


def names_of(reads: Reads) -> frozenset[str]:
    """Return the columns of which something is read."""
    return frozenset(map(name_of, reads))


def within(reads: Reads, columns: Iterable[str]) -> Reads:
    """Return the reads of these columns."""
    known = frozenset(columns)
    return frozenset(read for read in reads if name_of(read) in known)


def without(reads: Reads, columns: Iterable[str]) -> Reads:
    """Return the reads of other columns."""
    known = frozenset(columns)
    return frozenset(read for read in reads if name_of(read) not in known)


def keys_of(reads: Reads, name: str) -> tuple[str, ...] | None:
    """Return the properties that are read of a column, sorted; None where it is read whole."""
    if name in reads:
        return None
    return tuple(sorted(read.key for read in reads if isinstance(read, PropertyRead) and read.name == name))


@dataclass(frozen=True, slots=True)
class FieldExpression:
    """An expression over properties. Each of its columns is a field of the row: a column of the row or, with a key, a
    property of that column."""

    expression: ex.Expression
    columns: tuple[str, ...]
    fields: tuple[tuple[int, str | None], ...]


def over_fields(expression: ex.Expression, columns: Sequence[str]) -> FieldExpression | None:
    """Return an expression with the properties of columns as columns of their own; None where it reads none, or reads
    the same column as a whole too."""
    reads = reads_of((expression,))
    keyed = [read for read in reads if isinstance(read, PropertyRead)]
    wholes = frozenset(read for read in reads if isinstance(read, str))
    if not keyed or any(read.name in wholes for read in keyed) or _binds(expression):
        return None
    names = {read: f" {read.key} of {read.name}" for read in sorted(keyed)}

    def changed(item: object) -> object:
        read = property_read(item) if isinstance(item, ex.Expression) else None
        # A property of a property reads a column that was put in here.
        name = None if read is None else names.get(read)
        return item if name is None else ex.Variable(name, span=item.span)  # type: ignore[attr-defined]

    places = {name: at for at, name in enumerate(columns)}
    fields: list[tuple[int, str | None]] = [(places[read.name], read.key) for read in names]
    others = [name for name in columns if name in wholes]
    fields += [(places[name], None) for name in others]
    return FieldExpression(everywhere(expression, changed), (*names.values(), *others), tuple(fields))


def _binds(expression: ex.Expression) -> bool:
    """Return whether an expression binds names, which may hide columns, or holds a plan."""
    if isinstance(expression, ex.Comprehension | ex.Quantifier | ex.Reduce | ex.Exists | ex.CollectRows):
        return True
    return any(map(_binds, children(expression)))
