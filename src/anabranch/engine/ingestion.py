"""LOAD STREAM: map records of any source to property-graph events.

A node's id comes from its MERGE keys (`Bike(id: 5)`), so the same bike is the same node in every event; an element that
CREATE makes is new with each record.

Invariant: an event depends only on its record and on the record's place in its stream; a record that cannot be mapped
raises `MalformedEventError` with the reason and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anabranch.algebra.expressions import Expression
from anabranch.algebra.ingestion import (
    ROWS,
    TIME_FIELDS,
    Assign,
    Assignment,
    ElementTemplate,
    Ingestion,
    Reshape,
    Write,
)
from anabranch.errors import EvaluationError, MalformedEventError
from anabranch.formats.events import instant_from_json, value_from_json
from anabranch.formats.values import cypher_text
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.temporal import DateTime, LocalDateTime
from anabranch.model.values import ElementId, Node, Relationship, Value
from anabranch.snapshot import Context, compile_expression, compile_plan

RecordRows = list[tuple[Value, ...]]
_StepRun = Callable[["_Draft", RecordRows], RecordRows]


class _Draft:
    """The event while it is being written."""

    def __init__(self, sequence: int | str, context: Context) -> None:
        self.sequence = sequence
        self.context = context
        self.nodes: dict[ElementId, Node] = {}
        self.relationships: dict[ElementId, Relationship] = {}
        self.made = 0

    def fresh_id(self) -> str:
        self.made += 1
        return f"~{self.sequence}.{self.made}"

    def hold(self, node: Node) -> Node:
        """Return the draft's own copy of a node, which later steps may change."""
        return self.nodes.setdefault(node.id, Node(node.id, node.labels, dict(node.properties)))

    def current(self, value: Value) -> Value:
        """Return a row's value as the draft has it now."""
        match value:
            case Node():
                return self.nodes.get(value.id, value)
            case Relationship() if value.id is not None:
                return self.relationships.get(value.id, value)
            case _:
                return value


class RecordMapping:
    """One LOAD STREAM statement, compiled to map records to events."""

    def __init__(self, ingestion: Ingestion) -> None:
        self.ingestion = ingestion
        self.stream = ingestion.stream
        self.uri = ingestion.uri
        self._at = None if ingestion.at is None else compile_expression(ingestion.at, (ingestion.variable,))
        columns: tuple[str, ...] = (ingestion.variable,)
        self._steps: list[_StepRun] = []
        for step in ingestion.steps:
            match step:
                case Reshape(plan):
                    self._steps.append(_reshape(compile_plan(plan, (ROWS,)).run))
                    columns = plan.columns
                case Write():
                    self._steps.append(_write(step, columns))
                    new = [template.variable for template in (*step.nodes, *step.relationships) if not template.bound]
                    columns = (*columns, *new)
                case Assign(assignments):
                    self._steps.append(_assign(assignments, columns))

    def event(self, record: Mapping[str, Any], sequence: int | str) -> Event | None:
        """Return the event that a record writes; None when its rows were all filtered away."""
        if not isinstance(record, Mapping):
            raise MalformedEventError("a record is an object with named fields")
        value = value_from_json(record)
        try:
            event_time = self._event_time(record, value)
        except EvaluationError as error:
            raise MalformedEventError(error.diagnostic.message) from error
        return self.event_of(value, event_time, sequence)

    def event_of(self, value: Value, event_time: int, sequence: int | str) -> Event | None:
        """Return the event of a record that is a value already and whose instant is known."""
        draft = _Draft(sequence, Context(lambda _source: EMPTY_GRAPH, clock=event_time))
        rows: RecordRows = [(value,)]
        try:
            for step in self._steps:
                rows = step(draft, rows)
        except EvaluationError as error:
            raise MalformedEventError(error.diagnostic.message) from error
        if not draft.nodes:
            return None
        return Event(event_time, tuple(draft.nodes.values()), tuple(draft.relationships.values()))

    def _event_time(self, record: Mapping[str, Any], value: Value) -> int:
        if self._at is None:
            field = next((name for name in TIME_FIELDS if record.get(name) is not None), None)
            if field is None:
                raise MalformedEventError(
                    f"no field says when this happened: say LOAD STREAM ... AT {self.ingestion.variable}.field"
                )
            return instant_from_json(record[field], field)
        at = self._at((value,), Context(lambda _source: EMPTY_GRAPH))
        match at:
            case DateTime():
                return at.to_epoch_micros()
            case LocalDateTime():
                return instant_from_json(str(at), "AT")
            case _:
                return instant_from_json(at, "AT")


# --- steps ---


def _reshape(run: Callable[..., RecordRows]) -> _StepRun:
    def step(draft: _Draft, rows: RecordRows) -> RecordRows:
        table = [[draft.current(value) for value in row] for row in rows]
        return run(draft.context, (table,))

    return step


def _evaluators(
    properties: tuple[tuple[str, Expression], ...], columns: tuple[str, ...]
) -> list[tuple[str, Callable[..., Value]]]:
    return [(key, compile_expression(expression, columns)) for key, expression in properties]


def _write(write: Write, columns: tuple[str, ...]) -> _StepRun:
    nodes = [(template, _evaluators(template.properties, columns)) for template in write.nodes]
    relationships = [(template, _evaluators(template.properties, columns)) for template in write.relationships]
    after = (*columns, *(template.variable for template in (*write.nodes, *write.relationships) if not template.bound))
    on_create, on_match = (_assign(part, after) for part in (write.on_create, write.on_match))

    def step(draft: _Draft, rows: RecordRows) -> RecordRows:
        written: RecordRows = []
        for row in rows:
            values = tuple(draft.current(value) for value in row)
            chain: list[Node] = []
            made: dict[str, Value] = {}
            known = True
            for template, evaluators in nodes:
                if template.variable in made:
                    node: Value = made[template.variable]
                elif template.bound:
                    node = values[columns.index(template.variable)]
                    if not isinstance(node, Node):
                        raise MalformedEventError(f"`{template.variable}` is not a node")
                    node = draft.hold(node)
                else:
                    properties = _properties(evaluators, values, draft, template, write.merges)
                    node_id = _key(template.labels, properties) if write.merges else draft.fresh_id()
                    known = known and node_id in draft.nodes
                    node = draft.hold(Node(node_id, template.labels, properties))
                    made[template.variable] = node
                assert isinstance(node, Node)
                chain.append(node)
            for index, (template, evaluators) in enumerate(relationships):
                source, target = chain[index], chain[index + 1]
                if template.reverse:
                    source, target = target, source
                properties = _properties(evaluators, values, draft, template, write.merges)
                kind = template.labels[0]
                if write.merges:
                    relationship_id = f"{cypher_text(source.id)}-{_key((kind,), properties)}->{cypher_text(target.id)}"
                else:
                    relationship_id = draft.fresh_id()
                known = known and relationship_id in draft.relationships
                relationship = Relationship(relationship_id, kind, source.id, target.id, properties)
                made[template.variable] = draft.relationships.setdefault(relationship_id, relationship)
            new = (*values, *(made[name] for name in after[len(columns) :]))
            (on_match if known else on_create)(draft, [new])
            written.append(tuple(draft.current(value) for value in new))
        return written

    return step


def _properties(
    evaluators: list[tuple[str, Callable[..., Value]]],
    values: tuple[Value, ...],
    draft: _Draft,
    template: ElementTemplate,
    merges: bool,
) -> dict[str, Value]:
    properties: dict[str, Value] = {}
    for key, evaluate in evaluators:
        value = evaluate(values, draft.context)
        if value is not None:
            properties[key] = value
        elif merges:
            raise MalformedEventError(
                f"MERGE needs a value for `{key}` of {':'.join(template.labels) or 'the node'}, and it is null"
            )
    return properties


def _key(names: tuple[str, ...], properties: Mapping[str, Value]) -> str:
    """Return the id that labels and keys make: the same for the same key, in whatever order it is written."""
    pairs = ", ".join(f"{key}: {cypher_text(properties[key])}" for key in sorted(properties))
    return f"{':'.join(sorted(names))}({pairs})"


def _assign(assignments: tuple[Assignment, ...], columns: tuple[str, ...]) -> _StepRun:
    compiled = [
        (one, columns.index(one.variable), None if one.value is None else compile_expression(one.value, columns))
        for one in assignments
    ]

    def step(draft: _Draft, rows: RecordRows) -> RecordRows:
        for row in rows:
            for assignment, index, evaluate in compiled:
                values = tuple(draft.current(value) for value in row)
                target = values[index]
                if target is None:
                    continue
                if not isinstance(target, Node | Relationship):
                    raise MalformedEventError(f"`{assignment.variable}` is not a node or a relationship")
                value = None if evaluate is None else evaluate(values, draft.context)
                _change(draft, target, assignment, value)
        return [tuple(draft.current(value) for value in row) for row in rows]

    return step


def _change(draft: _Draft, target: Node | Relationship, assignment: Assignment, value: Value) -> None:
    properties = dict(target.properties)
    labels: tuple[str, ...] = ()
    if assignment.labels:
        labels = assignment.labels
    elif assignment.key is not None:
        properties[assignment.key] = value
    else:
        if isinstance(value, Node | Relationship):
            value = dict(value.properties)
        if not isinstance(value, dict):
            raise MalformedEventError(f"SET {assignment.variable} needs a map")
        properties = {**properties, **value} if assignment.merges else dict(value)
    properties = {key: held for key, held in properties.items() if held is not None}
    if isinstance(target, Node):
        draft.nodes[target.id] = Node(target.id, tuple(dict.fromkeys((*target.labels, *labels))), properties)
    else:
        if labels:
            raise MalformedEventError("a relationship has no labels")
        assert target.id is not None
        draft.relationships[target.id] = Relationship(target.id, target.type, target.source, target.target, properties)
