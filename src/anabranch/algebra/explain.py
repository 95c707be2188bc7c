"""EXPLAIN: describes a query as a tree of its operators with windows, evaluation instants and the way it is executed.

Invariant: the text is a function of the plan, the rules that fired and the window policy alone, so it can be compared
to the letter; an operator that is recomputed at each instant is never called incremental.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from anabranch.algebra import operators as o
from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.optimized import FiredRule, OptimizedPlan
from anabranch.algebra.record_shape import record_shape
from anabranch.algebra.spell import short_name
from anabranch.algebra.steps import (
    GLUE,
    INCREMENTAL,
    RECOMPUTE,
    SOURCES,
    PlanStep,
    PlanSteps,
    Ways,
    stream_words,
    window_bounds,
    window_words,
)
from anabranch.algebra.triples import StaticPart
from anabranch.algebra.walk import is_volatile, reads_triples, sources, walk
from anabranch.model.instants import format_instant
from anabranch.model.masking import without_password
from anabranch.model.temporal import Duration
from anabranch.model.windows import WindowPolicy

__all__ = ["ExplainLine", "Explanation", "PlanStep", "Stage", "explain", "window_bounds"]

Stage = Literal["before", "after", "both"]
Prefixes = tuple[tuple[str, str], ...]

_OUTPUTS = {
    "snapshot": "snapshot: all rows, at every instant",
    "entering": "entering: rows that were not there at the previous instant",
    "exiting": "exiting: rows that were there at the previous instant and are no more",
}
_ROWS = {"bindings": "rows", "boolean": "rows", "graph": "triples"}


@dataclass(frozen=True, slots=True)
class ExplainLine:
    """One line of the tree in its parts, so that a terminal can colour them."""

    branch: str
    operator: str
    detail: str

    def __str__(self) -> str:
        return f"{self.branch}{self.operator}{'  ' if self.operator and self.detail else ''}{self.detail}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a query. `root` is the plan that runs, `before` the optimizer's input, where the optimizer
    changed anything.

    `queries` are both plans as algebra, for drawings that need more than the steps."""

    title: str
    facts: tuple[tuple[str, str], ...]
    root: PlanStep
    data: dict[str, Any] = field(default_factory=dict, compare=False)
    before: PlanStep | None = None
    queries: tuple[o.Operator, ...] = field(default=(), compare=False, repr=False)
    prefixes: Prefixes = ()

    def with_fact(self, name: str, text: str, **data: Any) -> Explanation:
        """Return the explanation with one more fact about the whole query."""
        return replace(self, facts=(*self.facts, (name, text)), data={**self.data, **data})

    def tree(self, width: int | None = None, stage: Stage = "after") -> Iterator[ExplainLine]:
        """Return the lines of the plan; of two plans, each under its name."""
        if stage == "both" and self.before is not None:
            yield ExplainLine("", "", "before the rules:")
            yield from _lines(self.before, "", "", width)
            yield ExplainLine("", "", "")
            yield ExplainLine("", "", "after the rules:")
        yield from _lines(self.before if stage == "before" and self.before else self.root, "", "", width)

    def fact_lines(self, width: int | None = None) -> Iterator[tuple[str, str]]:
        """Return names and texts of facts about the whole query; a wrapped line does not repeat the name."""
        for name, text in self.facts:
            for index, part in enumerate(_wrap(text, None if width is None else width - 14)):
                yield ("" if index else name), part

    def text(self, width: int | None = None, stage: Stage = "after") -> str:
        """Return the whole explanation; lines longer than a width are wrapped inside the tree."""
        head = [self.title, *(f"  {name:<10}  {text}" for name, text in self.fact_lines(width))]
        body = [f"  {line}".rstrip() for line in self.tree(None if width is None else width - 2, stage)]
        return "\n".join([*head, "", *body])

    def to_dict(self) -> dict[str, Any]:
        plans = {"plan": self.root.to_dict()}
        return {**self.data, **plans, **({"before": self.before.to_dict()} if self.before is not None else {})}


def explain(
    query: o.Registration | o.Operator | Ingestion,
    windows: WindowPolicy = "trailing",
    optimized: OptimizedPlan | None = None,
    prefixes: Prefixes = (),
    ways: Ways | None = None,
) -> Explanation:
    """Explain a continuous query under a window policy, a plain query, or a LOAD STREAM.

    With `optimized`, its plan is explained, and the query's own plan is the one before. `prefixes` are those of a plain
    query; a registration has its own. `ways` gives how each operator of the plan is executed; without it all operators
    are recomputed."""
    if isinstance(query, Ingestion):
        return _explain_ingestion(query)
    plan = query.plan if isinstance(query, o.Registration) else query
    after = optimized.plan if optimized is not None else plan
    sparql = reads_triples(plan)
    if isinstance(query, o.Registration):
        title, prefixes = f"query {query.name}", query.prefixes
        facts, data = _registration_facts(query, after, windows, ways)
        policy, every, emit = windows, query.every, _emitted(query)
    else:
        title = "plain query"
        facts = (
            ("columns", _columns(query)),
            ("execution", f"{RECOMPUTE}: snapshot evaluator, once, over the given graph"),
        )
        data = {"query": None, "kind": "plain", "columns": list(query.columns), "execution": _execution("once")}
        policy, every, emit = None, None, None

    def steps(one: o.Operator) -> PlanStep:
        tree = PlanSteps(policy, every, prefixes, sparql, ways if one is after else None).of(one)
        return tree if emit is None else PlanStep("Emit", (emit,), query.columns, (tree,), part=tree.part)

    before = None
    if optimized is not None:
        rules = [{"rule": one.rule, "details": list(one.details), "changed": one.changed} for one in optimized.fired]
        data = {**data, "rules": rules}
        if optimized.fired:
            facts = (*facts, *_rule_facts(optimized.fired))
            before = steps(plan)
    return Explanation(title, facts, steps(after), data, before, (plan, after), prefixes)


# --- continuous queries -----------------------------------------------------------------------------------------------


def _emitted(query: o.Registration) -> str:
    shown = "once" if query.every is None and query.arrivals is None else query.output
    return shown if query.into is None else f"{shown}, into stream {query.into}"


def _registration_facts(
    query: o.Registration, plan: o.Operator, policy: WindowPolicy, ways: Ways | None
) -> tuple[tuple[tuple[str, str], ...], dict[str, Any]]:
    instants, once = _instants(query)
    if once:
        output, when = "one answer, then the query ends", "at its one instant"
    else:
        output = _OUTPUTS[query.output].replace("rows", _ROWS[query.form])
        when = (
            "at every instant, because it reads the clock or chance"
            if is_volatile(query.plan)
            else "when an event has entered or left a window"
        )
    if query.form == "boolean":
        output += "; the row is yes or no"
    read = sources(query.plan)
    reads = [_source_words(source, policy, query.every) for source in read]
    static = any(isinstance(node, StaticPart) for node in walk(plan))
    facts = (
        ("instants", instants),
        ("output", output),
        *((("into", f"stream {query.into}: each answer is an event at its instant"),) if query.into else ()),
        *(("reads" if index == 0 else "", text) for index, text in enumerate(reads)),
        ("columns", f"{_columns(query)}; each answer has win_start, win_end"),
        *_execution_facts(plan, when, ways),
        *((("", "static parts once for each version of their graphs"),) if static else ()),
        ("", "on Spark in one cell"),
    )
    data = {
        "query": query.name,
        "kind": "continuous",
        "language": query.language,
        "starting_at": None if query.starting_at is None else format_instant(query.starting_at),
        "every": None if query.every is None else str(query.every),
        "aligned": query.aligned,
        "arrivals": query.arrivals,
        "output": "once" if once else query.output,
        "form": query.form,
        "into": query.into,
        "window_policy": policy,
        "reads": [_source_data(source, policy, query.every) for source in read],
        "columns": list(query.columns),
        "execution": _execution(when, plan, ways),
    }
    return facts, data


def _execution_facts(plan: o.Operator, when: str, ways: Ways | None) -> Iterator[tuple[str, str]]:
    """Return which parts are incremental, which are recomputed, and why."""
    found = list(_executions(plan, ways))
    anew = {why for execution, why in found if execution == RECOMPUTE}
    if ways is None or ways(plan) is None or ways(plan) == (RECOMPUTE, RECOMPUTE):
        yield "execution", f"{RECOMPUTE}: snapshot evaluator, {when}"
        return
    whole = ways(plan) or (RECOMPUTE, "")
    if not any(execution == INCREMENTAL for execution, _ in found):
        yield "execution", f"{RECOMPUTE}: snapshot evaluator, {when}"
        if whole[1] not in when:  # which says already why it must be at every instant
            yield "", f"because: {whole[1]}"
    elif anew:
        yield "execution", f"{INCREMENTAL} where it can be: operators on changes, {when}"
        yield from (("", f"{RECOMPUTE} below: {why}") for why in sorted(anew - {RECOMPUTE}) if why not in when)
    else:
        yield "execution", f"{INCREMENTAL}: operators on changes, {when}"


def _executions(plan: o.Operator, ways: Ways | None) -> Iterator[tuple[str, str]]:
    if ways is not None:
        for node in walk(plan):
            if isinstance(node, o.Operator) and (found := ways(node)) is not None:
                yield found


def _instants(query: o.Registration) -> tuple[str, bool]:
    """Return when the query answers, in words, and whether that is only once."""
    start = "the first event's instant" if query.starting_at is None else format_instant(query.starting_at)
    match query.arrivals, query.every:
        case 0, _:
            return "once, at the last event, when the input has ended", True
        case 1, _:
            return "whenever a triple has come", False
        case int(count), _:
            last = ", and at the last event" if query.final else ""
            return f"whenever {count} more triples have come{last}", False
        case None, None:
            return f"once, at {start}", True
        case None, every if query.aligned and query.starting_at is None:
            return f"multiples of {every} since 1970-01-01T00:00:00Z, from the first event on", False
        case None, every:
            return f"{start} + k * {every}, k = 0, 1, ...", False
    raise AssertionError(query)


def _rule_facts(fired: tuple[FiredRule, ...]) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(fired):
        yield "" if index else "rules", one.rule
        yield from (("", f"  {detail}") for detail in one.details)


def _columns(query: o.Registration | o.Operator) -> str:
    return ", ".join(short_name(name) for name in query.columns)


def _execution(when: str, plan: o.Operator | None = None, ways: Ways | None = None) -> dict[str, Any]:
    found = [] if plan is None else list(_executions(plan, ways))
    if not any(execution == INCREMENTAL for execution, _ in found):
        return {"incremental": 0, "recompute": "all", "evaluator": "snapshot", "when": when}
    anew = [why for execution, why in found if execution == RECOMPUTE]
    reasons = sorted(set(anew) - {RECOMPUTE})
    told = {"incremental": sum(execution == INCREMENTAL for execution, _ in found), "recompute": len(anew)}
    return told | {"once": len(found) - sum(told.values()), "reasons": reasons, "when": when}


def _source_words(source: o.Source, policy: WindowPolicy, every: Duration | None) -> str:
    if isinstance(source, o.Static):
        return f"graph {source.name}, which does not move"
    words = window_words(source, policy, every)
    width = "" if source.width is None else f" within {source.width};"
    return f"{stream_words(source)}{width or ':'} {words}"


def _source_data(source: o.Source, policy: WindowPolicy, every: Duration | None) -> dict[str, Any]:
    if isinstance(source, o.Static):
        return {"graph": source.name}
    timed = source.count is None and not source.unbounded
    bounds = window_bounds(policy, source.width, every) if timed else window_words(source, policy, every)
    width = None if source.width is None else str(source.width)
    data = {"stream": source.stream.name, "width": width, "policy": policy, "bounds": bounds}
    more = {"count": source.count, "step": None if source.step is None else str(source.step)}
    return data | {name: value for name, value in more.items() if value is not None}


# --- records to events ------------------------------------------------------------------------------------------------


def _explain_ingestion(load: Ingestion) -> Explanation:
    steps = PlanSteps(None)
    at = f"field at, time or timestamp of {load.variable}" if load.at is None else steps.spell(load.at)
    shape = record_shape(load)
    way = f"record by record ({shape})" if isinstance(shape, str) else "by columns of records"
    facts = (
        ("from", f"{without_password(load.uri)}, each record as {load.variable}"),
        ("event time", at),
        ("execution", f"{way}, as the stream is read; on Spark in the workers that read it"),
    )
    root = PlanStep("Record", (load.variable,), (load.variable,), execution="per record")
    for step in load.steps:
        root = steps.ingesting(step, root)
    data = {
        "stream": load.stream,
        "kind": "ingestion",
        "from": without_password(load.uri),
        "event_time": at,
        "execution": way,
    }
    return Explanation(f"stream {load.stream}", facts, root, data)


# --- text -------------------------------------------------------------------------------------------------------------


def _lines(step: PlanStep, first: str, rest: str, width: int | None, above: str = "") -> Iterator[ExplainLine]:
    """Return the lines of a step and of the steps below it; a static step below a streaming one is marked."""
    name = f"{step.label} {step.operator}" if step.label else step.operator
    if above == "streaming" and step.part == "static" and step.operator not in (*SOURCES, "StaticPart", "Pattern"):
        name += " (static)"
    below = rest + ("│" if step.inputs else " ") + " " * (len(name) + 1)
    details = step.details
    if step.mark:
        first_detail = f"{details[0]}  " if details else ""
        details = (first_detail + step.mark.replace(" ", GLUE), *details[1:])
    parts = [
        part
        for detail in details
        for part in _wrap(detail, None if width is None else max(24, width - len(first) - len(name) - 2))
    ]
    yield ExplainLine(first, name, parts[0] if parts else "")
    for part in parts[1:]:
        yield ExplainLine(below, "", part)
    for index, child in enumerate(step.inputs):
        last = index == len(step.inputs) - 1
        branches = rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")
        yield from _lines(child, *branches, width, step.part)


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None or len(text) <= width:
        return [text.replace(GLUE, " ")]
    width = max(24, width)
    text = " ".join(word if len(word) <= width else word.replace(GLUE, " ") for word in text.split(" "))
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)
    return [line.replace(GLUE, " ") for line in lines]
