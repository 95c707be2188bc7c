"""Subqueries in expressions (EXISTS, pattern comprehensions, connectivity), times of triples and readings of the clock
become columns.

A subquery is planned once for all distinct outer rows, and its result is joined to these rows.

Law: an expression over the rows with these columns has the value that the plain evaluator computes for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.triples import TermPlace, Var
from anabranch.algebra.walk import parts_of
from anabranch.delta.operators.mark import Arguments, MarkJoin
from anabranch.delta.operators.rowwise import ColumnChoice
from anabranch.delta.operators.watched import WatchedRows
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.planner.choices import Choices
from anabranch.planner.flow.runtime import CLOCK, Runtime
from anabranch.planner.flow.spec import FlowPart, NotIncremental, Spec
from anabranch.planner.leaves.connections import ConnectivityQuestion, linked_of, linked_spec
from anabranch.planner.leaves.given import ClockReadings
from anabranch.planner.patterns.questions import bare
from anabranch.planner.specs.building import arranged, extended, flattened
from anabranch.planner.specs.conditions import clock_readings, guarded, is_always_asked, subjects_of, subqueries
from anabranch.planner.specs.conditions import marked as substituted
from anabranch.planner.specs.groups import aggregate_spec
from anabranch.planner.specs.joins import hash_join
from anabranch.planner.specs.matching import times_spec
from anabranch.snapshot.variables import argument_names


@dataclass(frozen=True, slots=True)
class SubqueryScope:
    """The scope inside of a subquery: the distinct outer rows, and the columns that link each inner row to its outer
    row."""

    argument: Spec | None = None
    hidden: tuple[str, ...] = ()

    def over(self, operator: op.Operator) -> tuple[str, ...]:
        """Return the linking columns that an operator's rows have."""
        return self.hidden if self.hidden and any(True for _ in argument_names(operator)) else ()


class Subqueries:
    """The subqueries of one query. `build` plans a part of it; `links` has one connectivity index for each set of
    links."""

    def __init__(self, choices: Choices, terms: bool, build: Callable[[op.Operator, SubqueryScope], Spec]) -> None:
        self._choices = choices
        self._terms = terms
        self._build = build
        self._marks = 0
        self.links: dict[ex.Links, Spec] = {}

    def marked(self, spec: Spec, expressions: Sequence[ex.Expression]) -> tuple[Spec, list[ex.Expression]]:
        """Add a column to the rows for each subquery and each reading of the clock; also return the expressions over
        these columns."""
        spec, expressions = self.timed(spec, expressions)
        marks: dict[int, ex.Expression] = {}
        for expression in expressions:
            for one in subqueries(expression):
                self._marks += 1
                name = f" mark {self._marks}"
                marks[id(one)] = ex.Variable(name)
                match one:
                    case ex.Exists():
                        spec = self._mark(spec, one, name)
                    case ex.CollectRows():
                        spec = self._collect(spec, one, name)
                    case ex.Connected() | ex.Component():
                        is_asked = is_always_asked(one, expression)
                        spec = self._watch(spec, one, name, is_asked)
                        if not is_asked:
                            marks[id(one)] = guarded(one, ex.Variable(name))
                    case ex.TripleTime():
                        spec = self._time(spec, one, name)
        return spec, [substituted(expression, marks) for expression in expressions] if marks else list(expressions)

    def timed(self, spec: Spec, expressions: Sequence[ex.Expression]) -> tuple[Spec, Sequence[ex.Expression]]:
        """Add a column to the rows for each reading of the clock; also return the expressions over these columns."""
        marks: dict[int, ex.Expression] = {}
        names: dict[ex.Expression, str] = {}
        for expression in expressions:
            for reading in clock_readings(expression, self._choices.parameters):
                marks[id(reading)] = ex.Variable(names.setdefault(reading, f"{CLOCK}{self._marks + len(names)}"))
        if not names:
            return spec, expressions
        self._marks += len(names)
        clock = Spec("ClockReadings", partial(ClockReadings, tuple(names)), tuple(names.values()))
        joined = hash_join(spec, clock, False, (), None, None, outer=False)
        return joined, [substituted(expression, marks) for expression in expressions]

    def _asked(self, outer: Spec, plan: op.Operator, inner: op.Operator) -> tuple[list[int], tuple[str, ...], Spec]:
        """Decorrelate a subquery: plan it once for all distinct outer rows. Returns the positions of the outer columns
        that it reads, the columns that link a row of its result to an outer row, and its operators."""
        names = tuple(dict.fromkeys(argument_names(plan)))
        hidden = tuple(f" asked {self._marks} {one}" for one in names)
        positions = [outer.index(one) for one in names]
        asked = Spec("Arguments", lambda _: Arguments(positions), names, (outer,))
        twice = Spec(
            "Picked", lambda _: ColumnChoice([*range(len(names)), *range(len(names))]), (*hidden, *names), (asked,)
        )
        inside = self._build(inner, SubqueryScope(twice, hidden))
        if inside.columns[: len(hidden)] != hidden:
            raise NotIncremental("a subquery loses the row that it is asked for")
        return positions, hidden, inside

    def _collect(self, outer: Spec, collected: ex.CollectRows, name: str) -> Spec:
        """Add a column with the list of the results that a subquery finds for each row: a pattern comprehension."""
        plan = collected.plan
        _, hidden, inside = self._asked(outer, plan, plan)
        names = tuple(dict.fromkeys(argument_names(plan)))
        key = f" key {self._marks}"
        # The outer row as one value that is never null; items in lists of one, because collect() skips null.
        inside = extended(inside, [(key, ex.ListOf(tuple(map(ex.Variable, hidden))))], plan)
        item = ex.AggregateCall("collect", (ex.ListOf((collected.result,)),), span=collected.span)
        lists = op.Aggregate(plan, ((key, ex.Variable(key)),), ((name, item),))
        grouped = aggregate_spec(lists, inside, [ex.Variable(key)], [item], self._terms)
        asking = extended(outer, [(key, ex.ListOf(tuple(map(ex.Variable, names))))], plan)
        joined = hash_join(asking, grouped, True, (), ({key}, {key}), plan, outer=True)
        return flattened(joined, name, (*outer.columns, name), plan)

    def _mark(self, outer: Spec, exists: ex.Exists, name: str) -> Spec:
        positions, hidden, inside = self._asked(outer, exists.plan, bare(exists.plan))
        found = arranged(inside, hidden, exists.plan)

        def make(runtime: Runtime) -> FlowPart:
            yes, no = runtime.dictionary.encode(True), runtime.dictionary.encode(False)
            return MarkJoin(outer.width, positions, yes, no)

        return Spec("MarkJoin", make, (*outer.columns, name), (outer, found))

    def _time(self, outer: Spec, asked: ex.TripleTime, name: str) -> Spec:
        """Add a column with the time of the triple that three expressions name; null where it is no triple."""
        terms = (asked.subject, asked.predicate, asked.object)
        places: list[TermPlace] = []
        items: list[tuple[str, ex.Expression]] = []
        for at, term in enumerate(terms):
            if isinstance(term, ex.Constant) and isinstance(term.value, Iri | Blank | Literal):
                places.append(term.value)
            else:
                items.append((f"{name} term {at}", term))
                places.append(Var(items[-1][0]))
        windows = [part for part in parts_of(asked.source) if isinstance(part, op.Window)]
        asking = extended(outer, items, None)
        joined = hash_join(asking, times_spec(windows, places, name, None), False, (), None, None, outer=True)
        return arranged(joined, (*outer.columns, name), None)

    def _watch(self, outer: Spec, asked: ex.Connected | ex.Component, name: str, is_asked: bool) -> Spec:
        """Add a column with the answer of a connectivity index about each row's nodes; `is_asked`: every row needs the
        answer."""
        links = asked.links
        subjects = subjects_of(asked, is_asked)
        linked = self.links.get(links)
        if linked is None:
            choices = self._choices
            linked = self.links[links] = linked_spec(links, choices.index, choices.slide, choices.max_bytes)
        names = tuple(f"{name} node {place}" for place in range(len(subjects)))
        asking = extended(outer, tuple(zip(names, subjects, strict=True)), None)
        arguments = [asking.index(one) for one in names]
        what: ConnectivityQuestion = "connected" if isinstance(asked, ex.Connected) else asked.asked

        def make(runtime: Runtime) -> FlowPart:
            return WatchedRows(asking.width, arguments, linked_of(links, runtime).answer(what))

        watched = Spec("Watched", make, (*asking.columns, name), (asking, linked))
        return arranged(watched, (*outer.columns, name), None)
