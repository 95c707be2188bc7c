"""The shape of a LOAD STREAM that writes the same elements for every record: which, and from which expressions.

Such a mapping has at most one row per record, and its expressions read fields of the record alone. So it can be carried
out by columns (`engine.column_mapping`): each expression once per distinct value of the fields that it reads.

Invariant: for a record whose expressions all have values, whose MERGE keys are not null and whose elements have
different ids, the steps of the ingestion write the elements of its shape, in this order; nothing if a condition is not
true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from anabranch.algebra import expressions as x
from anabranch.algebra import operators as o
from anabranch.algebra.ingestion import ROWS, Assign, Assignment, ElementTemplate, Ingestion, Reshape, Write
from anabranch.algebra.walk import is_volatile, walk

_RECORD: Literal["record"] = "record"
_NULL = x.Constant(None)
_PLAIN = (
    x.Constant,
    x.Property,
    x.Subscript,
    x.ListOf,
    x.MapOf,
    x.And,
    x.Or,
    x.Xor,
    x.Not,
    x.Compare,
    x.IsNull,
    x.Call,
    x.Case,
)


@dataclass(frozen=True, slots=True)
class RecordElement:
    """A node or a relationship that each record writes.

    Its id is made of its `keys`, in a MERGE, or is the `number`-th new id of the record. `source` and `target` are the
    places of a relationship's nodes.
    """

    labels: tuple[str, ...]
    properties: tuple[tuple[str, x.Expression], ...]
    keys: tuple[tuple[str, x.Expression], ...]
    key_labels: tuple[str, ...]
    number: int | None
    source: int = -1
    target: int = -1

    @property
    def merges(self) -> bool:
        return self.number is None


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The elements that each record writes, the conditions under which it does, and `evaluated`: all expressions that
    must have a value, those of overwritten properties included. Expressions read fields of `variable` alone."""

    variable: str
    at: x.Expression | None
    conditions: tuple[x.Expression, ...]
    nodes: tuple[RecordElement, ...]
    relationships: tuple[RecordElement, ...]
    evaluated: tuple[x.Expression, ...]


@dataclass(slots=True)
class _Element:
    """An element while the steps are followed."""

    is_node: bool
    place: int
    labels: tuple[str, ...]
    properties: dict[str, x.Expression]
    keys: tuple[tuple[str, x.Expression], ...]
    key_labels: tuple[str, ...]
    number: int | None
    source: int = -1
    target: int = -1

    def shape(self) -> RecordElement:
        return RecordElement(
            self.labels,
            tuple(self.properties.items()),
            self.keys,
            self.key_labels,
            self.number,
            self.source,
            self.target,
        )


_Binding: TypeAlias = "x.Expression | _Element | Literal['record']"


class _RowsDiffer(Exception):
    """A mapping without a shape; the message is the reason."""


_TYPED = frozenset(("date", "datetime", "localdatetime", "time", "localtime", "duration", "point"))


def record_shape(load: Ingestion) -> RecordShape | str:
    """Return the shape of a mapping, or the reason why it has none."""
    try:
        return _Steps(load).shape()
    except _RowsDiffer as error:
        return str(error)


def fields_read(expression: x.Expression, variable: str) -> tuple[str, ...]:
    """Return the fields of the record that an expression of a shape reads, each once."""
    record = x.Variable(variable)
    found = [part.key for part in walk(expression) if isinstance(part, x.Property) and part.subject == record]
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class _Steps:
    """The steps of a mapping, followed with expressions instead of values."""

    load: Ingestion
    bound: dict[str, _Binding] = field(default_factory=dict)
    nodes: list[_Element] = field(default_factory=list)
    relationships: list[_Element] = field(default_factory=list)
    conditions: list[x.Expression] = field(default_factory=list)
    evaluated: list[x.Expression] = field(default_factory=list)
    made: int = 0

    def shape(self) -> RecordShape:
        load = self.load
        self.bound = {load.variable: _RECORD}
        at = None if load.at is None else self._expression(load.at)
        for step in load.steps:
            match step:
                case Reshape(plan):
                    self._reshape(plan)
                case Write():
                    self._write(step)
                case Assign(assignments):
                    self._assign(assignments)
        for one in (*self.nodes, *self.relationships):
            for key, value in one.properties.items():
                if isinstance(value, x.Call) and value.function.partition(".")[0] in _TYPED:
                    raise _RowsDiffer(f"`{key}` is a temporal value or a point")
        return RecordShape(
            load.variable,
            at,
            tuple(self.conditions),
            tuple(one.shape() for one in self.nodes),
            tuple(one.shape() for one in self.relationships),
            tuple(dict.fromkeys(self.evaluated)),
        )

    def _reshape(self, plan: o.Operator) -> None:
        match plan:
            case o.Project(input=o.Unwind(input=o.Argument(names))) if names == (ROWS,):
                pass
            case o.Project(input=below, items=items):
                self._reshape(below)
                self.bound = {name: self._binding(expression) for name, expression in items}
            case o.Filter(input=below, condition=condition):
                self._reshape(below)
                if self.nodes:
                    raise _RowsDiffer("WHERE comes after a clause that writes")
                self.conditions.append(self._expression(condition))
            case o.Unwind():
                raise _RowsDiffer("UNWIND makes several rows of a record")
            case _:
                raise _RowsDiffer(f"WITH needs {type(plan).__name__}")

    def _binding(self, expression: x.Expression) -> _Binding:
        if isinstance(expression, x.Variable):
            return self.bound[expression.name]
        found = self._expression(expression)
        self.evaluated.append(found)
        return found

    def _write(self, write: Write) -> None:
        before = dict(self.bound)
        chain: list[_Element] = []
        new = False
        for template in write.nodes:
            held = self.bound.get(template.variable) if template.bound else None
            if template.bound:
                if not isinstance(held, _Element) or not held.is_node:
                    raise _RowsDiffer(f"`{template.variable}` is a value of the record")
                chain.append(held)
                continue
            node = self._element(template, write, before, self.nodes, is_node=True)
            new = True
            self.bound[template.variable] = node
            chain.append(node)
        for index, template in enumerate(write.relationships):
            ends = chain[index], chain[index + 1]
            source, target = reversed(ends) if template.reverse else ends
            relationship = self._element(template, write, before, self.relationships, is_node=False)
            relationship.source, relationship.target = source.place, target.place
            new = True
            self.bound[template.variable] = relationship
        self._assign(write.on_create if new else write.on_match)

    def _element(
        self,
        template: ElementTemplate,
        write: Write,
        before: dict[str, _Binding],
        others: list[_Element],
        *,
        is_node: bool,
    ) -> _Element:
        properties = {key: self._expression(value, before) for key, value in template.properties}
        if len(properties) < len(template.properties):
            raise _RowsDiffer("a property is written twice")
        if len(set(template.labels)) < len(template.labels):
            raise _RowsDiffer("a label is written twice")
        self.evaluated += properties.values()
        number = None
        if not write.merges:
            self.made += 1
            number = self.made
        keys = tuple(sorted(properties.items(), key=lambda item: item[0])) if write.merges else ()
        element = _Element(is_node, len(others), template.labels, properties, keys, template.labels, number)
        others.append(element)
        return element

    def _assign(self, assignments: tuple[Assignment, ...]) -> None:
        for one in assignments:
            target = self.bound.get(one.variable)
            if not isinstance(target, _Element):
                raise _RowsDiffer(f"`{one.variable}` is a value of the record")
            if one.labels:
                if not target.is_node:
                    raise _RowsDiffer("a relationship has no labels")
                target.labels = tuple(dict.fromkeys((*target.labels, *one.labels)))
                continue
            assert one.value is not None
            if one.key is not None:
                value = self._expression(one.value)
                self.evaluated.append(value)
                target.properties = {**target.properties, one.key: value}
                continue
            if not isinstance(one.value, x.MapOf):
                raise _RowsDiffer(f"SET {one.variable} takes a map whose keys the record decides")
            entries = {key: self._expression(value) for key, value in one.value.entries}
            if len(entries) < len(one.value.entries):
                raise _RowsDiffer("a property is written twice")
            self.evaluated += entries.values()
            target.properties = {**target.properties, **entries} if one.merges else entries

    def _expression(self, expression: x.Expression, bound: dict[str, _Binding] | None = None) -> x.Expression:
        """Return an expression over fields of the record."""
        found = self._over_fields(expression, self.bound if bound is None else bound)
        if is_volatile(found):
            raise _RowsDiffer("an expression reads the clock or chance")
        return found

    def _over_fields(self, expression: x.Expression, bound: dict[str, _Binding]) -> x.Expression:
        match expression:
            case x.Variable(name):
                held = bound.get(name)
                if isinstance(held, x.Expression):
                    return held
                raise _RowsDiffer(f"an expression reads all of `{name}`")
            case x.Property(x.Variable(name), key) | x.Subscript(x.Variable(name), x.Constant(str() as key)):
                held = bound.get(name)
                if isinstance(held, _Element):
                    return held.properties.get(key, _NULL)
                if held == _RECORD:
                    return x.Property(x.Variable(self.load.variable), key)
        if not isinstance(expression, _PLAIN):
            raise _RowsDiffer(f"an expression is a {type(expression).__name__}")
        return _with_parts(expression, lambda part: self._over_fields(part, bound))


def _with_parts(expression: x.Expression, change: Callable[[x.Expression], x.Expression]) -> x.Expression:
    """Return an expression whose parts are changed."""

    def changed(part: Any) -> Any:
        if isinstance(part, x.Expression):
            return change(part)
        return tuple(changed(one) for one in part) if isinstance(part, tuple) else part

    parts = {one.name: changed(getattr(expression, one.name)) for one in fields(expression) if one.name != "span"}
    return replace(expression, **parts)
