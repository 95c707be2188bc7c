"""EXPLAIN: what a query will do, as a tree of its operators with windows, instants and the way it runs.

Invariant: the text is a function of the plan and the window policy alone, so it can be compared to the letter; nothing
that is computed again at each instant is called incremental.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anabranch.algebra import operators as o
from anabranch.algebra.expressions import Expression
from anabranch.algebra.ingestion import ROWS, Assign, Ingestion, Reshape, Write
from anabranch.algebra.ingestion import Step as IngestionStep
from anabranch.algebra.spell import Speller, short_name
from anabranch.algebra.walk import is_volatile, sources
from anabranch.model.instants import format_instant
from anabranch.model.temporal import Duration
from anabranch.model.windows import WindowPolicy

RECOMPUTE = "recompute"
_GLUE = "\u00a0"  # keeps a computed column on one line where it fits; a plain space in all that leaves this file
_OUTPUTS = {
    "snapshot": "snapshot: all rows, at every instant",
    "entering": "entering: rows that were not there at the previous instant",
    "exiting": "exiting: rows that were there at the previous instant and are no more",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One operator for display: its name, what it does (each detail begins a line), its columns and its inputs."""

    operator: str
    details: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    inputs: tuple[Step, ...] = ()
    label: str = ""
    execution: str = RECOMPUTE

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {"operator": self.operator}
        if self.label:
            result["label"] = self.label
        if self.details:
            result["details"] = [detail.replace(_GLUE, " ") for detail in self.details]
        if self.columns:
            result["columns"] = [short_name(name) if name.startswith(" ") else name for name in self.columns]
        if self.operator not in ("Window", "Stream", "Static"):
            result["execution"] = self.execution
        if self.inputs:
            result["inputs"] = [step.to_dict() for step in self.inputs]
        return result


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the tree in its parts, so that a terminal can colour them."""

    branch: str
    operator: str
    detail: str

    def __str__(self) -> str:
        return f"{self.branch}{self.operator}{'  ' if self.operator and self.detail else ''}{self.detail}"


@dataclass(frozen=True, slots=True)
class Explanation:
    title: str
    facts: tuple[tuple[str, str], ...]
    root: Step
    data: dict[str, Any] = field(default_factory=dict, compare=False)

    def tree(self, width: int | None = None) -> Iterator[Line]:
        yield from _lines(self.root, "", "", width)

    def fact_lines(self, width: int | None = None) -> Iterator[tuple[str, str]]:
        """Names and texts of what holds for the whole query; a wrapped line repeats no name."""
        for name, text in self.facts:
            for index, part in enumerate(_wrap(text, None if width is None else width - 14)):
                yield ("" if index else name), part

    def text(self, width: int | None = None) -> str:
        """The whole explanation; lines longer than a width are wrapped inside the tree."""
        head = [self.title, *(f"  {name:<10}  {text}" for name, text in self.fact_lines(width))]
        body = [f"  {line}" for line in self.tree(None if width is None else width - 2)]
        return "\n".join([*head, "", *body])

    def to_dict(self) -> dict[str, Any]:
        return {**self.data, "plan": self.root.to_dict()}


def explain(query: o.Registration | o.Operator | Ingestion, windows: WindowPolicy = "trailing") -> Explanation:
    """The explanation of a continuous query under a window policy, of a plain query, or of a LOAD STREAM."""
    if isinstance(query, o.Registration):
        return _explain_registration(query, windows)
    if isinstance(query, Ingestion):
        return _explain_ingestion(query)
    execution = f"{RECOMPUTE}: snapshot evaluator, once, over the given graph"
    facts = (("columns", _columns(query)), ("execution", execution))
    data = {"query": None, "kind": "plain", "columns": list(query.columns), "execution": _execution("once")}
    return Explanation("plain query", facts, _Steps(None).of(query), data)


def window_bounds(policy: WindowPolicy, width: Duration | None, every: Duration | None) -> str:
    """A window's content in words, where w is the evaluation instant and w0 the first one."""
    if width is None:
        return "all that was given"
    match policy:
        case "trailing":
            return f"(w - {width}, w]"
        case "right-open":
            return f"[w - {width}, w)"
        case "formal" if every is None:
            return f"[w0, w0 + {width}) as far as w"
        case "formal":
            return f"the earliest [w0 + i*{every}, w0 + i*{every} + {width}) that holds w, as far as w"


def _explain_registration(query: o.Registration, policy: WindowPolicy) -> Explanation:
    start = "the first event's instant" if query.starting_at is None else format_instant(query.starting_at)
    volatile = is_volatile(query.plan)
    if query.every is None:
        instants, output, when = f"once, at {start}", "one answer, then the query ends", "at its one instant"
    else:
        instants, output = f"{start} + k * {query.every}, k = 0, 1, ...", _OUTPUTS[query.output]
        when = (
            "at every instant, because it reads the clock or chance"
            if volatile
            else "when an event has entered or left a window"
        )
    reads = [_source_words(source, policy, query.every) for source in sources(query.plan)]
    facts = (
        ("instants", instants),
        ("output", output),
        *(("reads" if index == 0 else "", text) for index, text in enumerate(reads)),
        ("columns", f"{_columns(query)}; each answer has win_start, win_end"),
        ("execution", f"{RECOMPUTE}: snapshot evaluator, {when}"),
        ("", "no part is incremental; on Spark in one cell"),
    )
    data = {
        "query": query.name,
        "kind": "continuous",
        "starting_at": None if query.starting_at is None else format_instant(query.starting_at),
        "every": None if query.every is None else str(query.every),
        "output": query.output if query.every is not None else "once",
        "window_policy": policy,
        "reads": [_source_data(source, policy, query.every) for source in sources(query.plan)],
        "columns": list(query.columns),
        "execution": _execution(when),
    }
    tree = _Steps(policy, query.every).of(query.plan)
    shown = "once" if query.every is None else query.output
    return Explanation(f"query {query.name}", facts, Step("Emit", (shown,), query.columns, (tree,)), data)


def _columns(query: o.Registration | o.Operator) -> str:
    return ", ".join(short_name(name) for name in query.columns)


def _explain_ingestion(load: Ingestion) -> Explanation:
    steps = _Steps(None)
    at = f"field at, time or timestamp of {load.variable}" if load.at is None else steps.spell(load.at)
    facts = (
        ("from", f"{load.uri}, each record as {load.variable}"),
        ("event time", at),
        ("execution", "record by record, as the stream is read; on Spark in the workers that read it"),
    )
    root = Step("Record", (load.variable,), (load.variable,), execution="per record")
    for step in load.steps:
        root = steps.ingesting(step, root)
    data = {"stream": load.stream, "kind": "ingestion", "from": load.uri, "event_time": at}
    return Explanation(f"stream {load.stream}", facts, root, data)


def _execution(when: str) -> dict[str, Any]:
    return {"incremental": [], "recompute": "all", "evaluator": "snapshot", "when": when}


def _source_words(source: o.Source, policy: WindowPolicy, every: Duration | None) -> str:
    if isinstance(source, o.Static):
        return f"graph {source.name}, which does not move"
    return f"{_stream(source)} within {source.width}; {policy}: {window_bounds(policy, source.width, every)}"


def _source_data(source: o.Source, policy: WindowPolicy, every: Duration | None) -> dict[str, Any]:
    if isinstance(source, o.Static):
        return {"graph": source.name}
    bounds = window_bounds(policy, source.width, every)
    width = None if source.width is None else str(source.width)
    return {"stream": source.stream.name, "width": width, "policy": policy, "bounds": bounds}


def _stream(window: o.Window) -> str:
    return "the only stream" if window.stream.name is None else f"stream {window.stream.name}"


class _Steps:
    """Turns operators into steps; numbers the subplans of a query through."""

    def __init__(self, policy: WindowPolicy | None, every: Duration | None = None) -> None:
        self._policy = policy
        self._every = every
        self._speller = Speller()
        self._told = 0

    def of(self, operator: o.Operator, label: str = "") -> Step:
        details = self._details(operator)
        inputs = [self._source(operator.source)] if isinstance(operator, o.Pattern) else []
        subplans = self._speller.subplans[self._told :]
        first = self._told + 1
        self._told += len(subplans)
        inputs += [self.of(child) for child in operator.inputs]
        inputs += [self.of(plan, f"#{number}") for number, plan in enumerate(subplans, first)]
        return Step(type(operator).__name__, details, operator.columns, tuple(inputs), label)

    def spell(self, expression: Expression) -> str:
        return self._speller.spell(expression)

    def ingesting(self, step: IngestionStep, before: Step) -> Step:
        """A step of a LOAD STREAM on top of those before it."""
        match step:
            case Reshape(plan):
                return self._reshaping(plan, before)
            case Write(nodes, relationships, _, merges, on_create, on_match):
                written = [self._speller.written(nodes, relationships)]
                for word, assignments in (("if new", on_create), ("if known", on_match)):
                    written += [f"{word}: {self._speller.assigned(one)}" for one in assignments]
                columns = (*before.columns, *(one.variable for one in (*nodes, *relationships) if not one.bound))
                name = "Merge" if merges else "Create"
                return Step(name, tuple(written), columns, (before,), execution="per record")
            case Assign(assignments):
                details = tuple(self._speller.assigned(one) for one in assignments)
                return Step("Set", details, before.columns, (before,), execution="per record")

    def _reshaping(self, operator: o.Operator, before: Step) -> Step:
        """The operators of a WITH or UNWIND; the table they begin with is what came before."""
        match operator:
            case o.Project(input=o.Unwind(input=o.Argument(names))) if names == (ROWS,):
                return before
        inputs = tuple(self._reshaping(child, before) for child in operator.inputs)
        return Step(type(operator).__name__, self._details(operator), operator.columns, inputs, execution="per record")

    def _details(self, operator: o.Operator) -> tuple[str, ...]:
        spell = self._speller.spell
        match operator:
            case o.Pattern(paths=paths, where=where):
                found = tuple(self._speller.path(path) for path in paths)
                return found if where is None else (*found, f"where {spell(where)}")
            case o.Argument(names):
                return (", ".join(short_name(name) for name in names),)
            case o.Join(left, right, condition) | o.LeftJoin(left, right, condition):
                shared = [short_name(name) for name in left.columns if name in right.columns]
                on = f"on {', '.join(shared)}" if shared else "on nothing: every row with every row"
                return (on,) if condition is None else (on, f"if {spell(condition)}")
            case o.Filter(condition=condition):
                return (spell(condition),)
            case o.Unwind(column=column, expression=expression):
                return (f"{short_name(column)} ∈ {spell(expression)}",)
            case o.Project(items=items):
                return (", ".join(_glued(self._speller.item(*item)) for item in items),)
            case o.Aggregate(keys=keys, aggregates=aggregates):
                by = f"by {', '.join(self._speller.item(*key) for key in keys)}" if keys else "all rows as one group"
                computed = [self._speller.item(*aggregate) for aggregate in aggregates]
                return (by, ", ".join(computed)) if computed else (by,)
            case o.Order(keys=keys):
                return (", ".join(self._speller.order_key(key) for key in keys),)
            case o.Slice(skip=skip, limit=limit):
                parts = [f"{word} {spell(e)}" for word, e in (("skip", skip), ("limit", limit)) if e is not None]
                return (", ".join(parts),)
            case _:
                return ()

    def _source(self, source: o.Source) -> Step:
        if isinstance(source, o.Static):
            return Step("Static", (f"graph {source.name}",))
        if self._policy is None or source.width is None:
            return Step("Graph", ("the given graph",))
        bounds = window_bounds(self._policy, source.width, self._every)
        return Step("Window", (f"{self._policy}: {bounds}",), inputs=(Step("Stream", (_stream(source),)),))


def _lines(step: Step, first: str, rest: str, width: int | None) -> Iterator[Line]:
    name = f"{step.label} {step.operator}" if step.label else step.operator
    below = rest + ("│" if step.inputs else " ") + " " * (len(name) + 1)
    parts = [
        part
        for detail in step.details
        for part in _wrap(detail, None if width is None else max(24, width - len(first) - len(name) - 2))
    ]
    yield Line(first, name, parts[0] if parts else "")
    for part in parts[1:]:
        yield Line(below, "", part)
    for index, child in enumerate(step.inputs):
        last = index == len(step.inputs) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), width)


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None or len(text) <= width:
        return [text.replace(_GLUE, " ")]
    width = max(24, width)
    text = " ".join(word if len(word) <= width else word.replace(_GLUE, " ") for word in text.split(" "))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def _glued(item: str) -> str:
    return item.replace(" ", _GLUE) if len(item) <= 60 else item
