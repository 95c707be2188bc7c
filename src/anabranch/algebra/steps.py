"""A plan as a tree of steps: each operator with its description in words, for EXPLAIN and its drawings.

Invariant: steps hold finished text, and equal plans give equal steps. The alternative of a step (the other plan of a
static part) is mentioned in a detail, not drawn as if it always ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.algebra import operators as o
from anabranch.algebra import triples as t
from anabranch.algebra.expressions import Expression
from anabranch.algebra.ingestion import ROWS, Assign, Reshape, Write
from anabranch.algebra.ingestion import Step as IngestionStep
from anabranch.algebra.spell import Speller, short_name
from anabranch.algebra.walk import parts_of, sources
from anabranch.model.temporal import Duration
from anabranch.model.windows import WindowPolicy

RECOMPUTE = "recompute"
INCREMENTAL = "incremental"
ONCE = "once per version"
PLUGIN = "SPARQL plug-in"
Ways: TypeAlias = Callable[[o.Operator], tuple[str, str] | None]
"""How an operator of a plan is executed, and by which algorithm or why."""

SOURCES = ("Window", "Stream", "Static", "Graph", "Merged")
GLUE = "\u00a0"  # keeps a computed column on one line where it fits; a plain space in all that leaves EXPLAIN


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operator for display: its name, its details (each begins a line), its columns and its inputs.

    `part` is the kind of its sources: `static` knowledge alone, or something `streaming`; empty where it reads nothing.
    `way` is the algorithm that executes it, or the reason why it is recomputed; empty where nothing was decided."""

    operator: str
    details: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    inputs: tuple[PlanStep, ...] = ()
    label: str = ""
    execution: str = RECOMPUTE
    part: str = ""
    way: str = ""

    @property
    def mark(self) -> str:
        """How the operator is executed, as a line of EXPLAIN shows it; empty where nothing was decided for each
        operator."""
        if not self.way:
            return ""
        said = self.execution if self.way == self.execution else f"{self.execution}: {self.way}"
        return f"[{said}]"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(detail.replace(GLUE, " ") for detail in self.details)

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {"operator": self.operator}
        if self.label:
            result["label"] = self.label
        if self.details:
            result["details"] = list(self.lines)
        if self.columns:
            result["columns"] = [short_name(name) if name.startswith(" ") else name for name in self.columns]
        if self.part:
            result["part"] = self.part
        if self.operator not in SOURCES:
            result["execution"] = self.execution
            if self.way and self.way != self.execution:
                result["reason" if self.execution == RECOMPUTE else "algorithm"] = self.way
        if self.inputs:
            result["inputs"] = [step.to_dict() for step in self.inputs]
        return result


def window_bounds(policy: WindowPolicy, width: Duration | None, every: Duration | None) -> str:
    """Return a window's content in words, where w is the evaluation instant and w0 the first one."""
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


def window_words(window: o.Window, policy: WindowPolicy, every: Duration | None) -> str:
    """Return the content of a window of any kind at instant w, in words."""
    until = "before w" if policy == "right-open" else "up to w"
    if window.count is not None:
        words = f"the last {window.count} triple{'' if window.count == 1 else 's'} {until}"
    elif window.unbounded:
        words = f"all that came {until}"
    else:
        words = f"{policy}: {window_bounds(policy, window.width, window.step or every)}"
    return words if window.step is None else f"{words}, w at multiples of {window.step}"


def stream_words(window: o.Window) -> str:
    return "the only stream" if window.stream.name is None else f"stream {window.stream.name}"


def part_of(plan: o.Operator) -> str:
    """Return whether a plan reads streams, static knowledge alone, or nothing."""
    read = sources(plan)
    if not read:
        return ""
    return "static" if all(isinstance(source, o.Static) for source in read) else "streaming"


class PlanSteps:
    """Turns operators into steps; numbers the subplans over the whole query."""

    def __init__(
        self,
        policy: WindowPolicy | None,
        every: Duration | None = None,
        prefixes: tuple[tuple[str, str], ...] = (),
        sparql: bool = False,
        ways: Ways | None = None,
    ) -> None:
        self._ways = ways
        self._policy = policy
        self._every = every
        self._speller = Speller(prefixes, sparql)
        self._told = 0

    def of(self, operator: o.Operator, label: str = "", once: bool = False) -> PlanStep:
        """Return the step of an operator; `once` inside of a static part, which is not computed again at each
        instant."""
        details = self._details(operator)
        inputs = [self._source(source) for source in _read_by(operator)]
        subplans = self._speller.subplans[self._told :]
        first = self._told + 1
        self._told += len(subplans)
        once = once or isinstance(operator, t.StaticPart)
        below = operator.inputs[:1] if isinstance(operator, t.StaticPart) else operator.inputs
        inputs += [self.of(child, once=once) for child in below]
        inputs += [self.of(plan, f"#{number}", once) for number, plan in enumerate(subplans, first)]
        execution = PLUGIN if isinstance(operator, t.PluginQuery) else ONCE if once else RECOMPUTE
        part = "" if self._policy is None else "static" if once else part_of(operator)
        way = ""
        if self._ways is not None and execution == RECOMPUTE:
            execution, way = self._ways(operator) or (execution, "")
        return PlanStep(type(operator).__name__, details, operator.columns, tuple(inputs), label, execution, part, way)

    def spell(self, expression: Expression) -> str:
        return self._speller.spell(expression)

    # --- records to events ------------------------------------------------------------------------------------------

    def ingesting(self, step: IngestionStep, before: PlanStep) -> PlanStep:
        """Return a step of a LOAD STREAM on top of those before it."""
        match step:
            case Reshape(plan):
                return self._reshaping(plan, before)
            case Write(nodes, relationships, _, merges, on_create, on_match):
                written = [self._speller.written(nodes, relationships)]
                for word, assignments in (("if new", on_create), ("if known", on_match)):
                    written += [f"{word}: {self._speller.assigned(one)}" for one in assignments]
                columns = (*before.columns, *(one.variable for one in (*nodes, *relationships) if not one.bound))
                name = "Merge" if merges else "Create"
                return PlanStep(name, tuple(written), columns, (before,), execution="per record")
            case Assign(assignments):
                details = tuple(self._speller.assigned(one) for one in assignments)
                return PlanStep("Set", details, before.columns, (before,), execution="per record")

    def _reshaping(self, operator: o.Operator, before: PlanStep) -> PlanStep:
        """Return the operators of a WITH or UNWIND; their first table is the result of the step before."""
        match operator:
            case o.Project(input=o.Unwind(input=o.Argument(names))) if names == (ROWS,):
                return before
        inputs = tuple(self._reshaping(child, before) for child in operator.inputs)
        return PlanStep(
            type(operator).__name__, self._details(operator), operator.columns, inputs, execution="per record"
        )

    # --- what an operator does --------------------------------------------------------------------------------------

    def _details(self, operator: o.Operator) -> tuple[str, ...]:
        spell, name = self._speller.spell, self._speller.name
        match operator:
            case o.Pattern(paths=paths, where=where):
                found = tuple(self._speller.path(path) for path in paths)
                return found if where is None else (*found, f"where {spell(where)}")
            case o.Argument(names):
                return (", ".join(name(one) for one in names),)
            case o.Join(left, right, condition) | o.LeftJoin(left, right, condition):
                shared = [name(one) for one in left.columns if one in right.columns]
                on = f"on {', '.join(shared)}" if shared else "on nothing: every row with every row"
                return (on,) if condition is None else (on, f"if {spell(condition)}")
            case t.Minus(left, right):
                shared = [name(one) for one in left.columns if one in right.columns]
                return (f"by {', '.join(shared)}" if shared else "by nothing: no row is taken away",)
            case o.Filter(condition=condition):
                return (spell(condition),)
            case o.Unwind(column=column, expression=expression):
                return (f"{name(column)} ∈ {spell(expression)}",)
            case o.Extend(column=column, expression=expression):
                return (f"{name(column)} = {spell(expression)}",)
            case o.Project(items=items):
                return (", ".join(_glued(self._speller.item(*item)) for item in items),)
            case o.Aggregate(keys=keys, aggregates=aggregates):
                by = f"by {', '.join(self._speller.item(*key) for key in keys)}" if keys else "all rows as one group"
                return self._aggregated(by, aggregates)
            case o.Annotate(keys=grouped, aggregates=aggregates):
                by = f"by {', '.join(map(name, grouped))}" if grouped else "all rows as one group"
                return self._aggregated(f"every row, {by}", aggregates)
            case o.Order(keys=order):
                return (", ".join(self._speller.order_key(key) for key in order),)
            case o.Slice(skip=skip, limit=limit):
                parts = [f"{word} {spell(e)}" for word, e in (("skip", skip), ("limit", limit)) if e is not None]
                return (", ".join(parts),)
            case _:
                return self._of_triples(operator)

    def _aggregated(self, by: str, aggregates: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
        computed = [self._speller.item(*aggregate) for aggregate in aggregates]
        return (by, ", ".join(computed)) if computed else (by,)

    def _of_triples(self, operator: o.Operator) -> tuple[str, ...]:
        speller = self._speller
        match operator:
            case t.GraphPattern(patterns=patterns):
                return tuple(speller.triple(one) for one in patterns) or ("no pattern: one row",)
            case t.Path(_, subject, path, object_):
                return (f"{speller.place(subject)} {speller.property_path(path)} {speller.place(object_)}",)
            case o.RuleTable(names, rows):
                return (f"{', '.join(map(speller.name, names))}: a row for each of {len(rows.held)} rules",)
            case t.Values(names, rows):
                return (f"{', '.join(map(speller.name, names))}: {len(rows)} row{'' if len(rows) == 1 else 's'}",)
            case t.StaticPart(plan):
                graphs = dict.fromkeys(one.name for one in sources(plan) if isinstance(one, o.Static))
                once = f"once for each version of {', '.join(graphs) or 'nothing'}"
                if not operator.unless:
                    return (once,)
                predicates = ", ".join(speller.place(one) for one in operator.unless)
                return (once, f"while a window holds {predicates}: over the windows too, at each instant")
            case t.PluginQuery(text=text):
                return (PLUGIN, " ".join(text.split()))
            case t.Construct(template=template):
                return tuple(speller.triple(one) for one in template)
            case t.Describe(resources=resources):
                return (", ".join(speller.spell(one) for one in resources),)
            case t.Ask():
                return ("whether there is a row",)
            case _:
                return ()

    # --- where elements come from -----------------------------------------------------------------------------------

    def _source(self, source: o.TripleSource) -> PlanStep:
        match source:
            case o.MergedSource(parts):
                steps = tuple(self._source(part) for part in parts)
                part = "static" if all(step.part == "static" for step in steps) else "streaming"
                return PlanStep("Merged", ("as one set of triples",), inputs=steps, part=part)
            case o.Static(name):
                return PlanStep("Static", (f"graph {name}",), part="static")
            case o.Window():
                return self._window(source)

    def _window(self, window: o.Window) -> PlanStep:
        bounded = window.width is not None or window.count is not None or window.unbounded
        if self._policy is None or not bounded:
            return PlanStep("Graph", ("the given graph",))
        details = [window_words(window, self._policy, self._every)]
        if window.keep is not None:
            kept = [_glued(self._speller.kept(one)) for one in window.keep]
            details.append(f"keeps {', '.join(kept) or 'nothing'}")
        stream = PlanStep("Stream", (stream_words(window),), part="streaming")
        return PlanStep("Window", tuple(details), inputs=(stream,), part="streaming")


def _read_by(operator: o.Operator) -> tuple[o.TripleSource, ...]:
    match operator:
        case o.Pattern(source=source):
            return (source,)
        case t.GraphPattern(source=triples) | t.Path(source=triples) | t.Describe(source=triples):
            return (triples,)
        case t.PluginQuery(default=default, named=named):
            return (default, *dict.fromkeys(one for _, one in named if one not in parts_of(default)))
        case _:
            return ()


def _glued(item: str) -> str:
    return item.replace(" ", GLUE) if len(item) <= 60 else item
