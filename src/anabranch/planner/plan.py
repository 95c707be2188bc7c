"""From a plan to operators on changes, part by part; what has none is left to the plain evaluator.

Invariant: whatever is decided here, the rows are those of the plan. Every operator of the plan gets a mode, which
EXPLAIN shows: incremental, recompute with the reason, or once per version of the static graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import is_volatile, only_picks, walk
from anabranch.delta.operators.anti_join import AntiJoin
from anabranch.delta.operators.mark import Arguments, MarkJoin
from anabranch.delta.operators.rowwise import Picked
from anabranch.delta.operators.union import Union as BagUnion
from anabranch.delta.operators.watched import Watched
from anabranch.errors import InternalError
from anabranch.model.temporal import Duration
from anabranch.model.values import Value
from anabranch.planner.building import (
    apart,
    arranged,
    disjoint,
    distinct,
    extended,
    filled,
    filtered,
    flattened,
    hash_join,
    keyed,
    netted,
    projected,
    unwound,
    with_path,
)
from anabranch.planner.conditions import (
    clock_readings,
    equalities,
    guarded,
    is_always_asked,
    marked,
    number_bounds,
    require_pure,
    subjects_of,
    subqueries,
)
from anabranch.planner.connections import Asked, Index, linked_of, linked_spec
from anabranch.planner.graph_patterns import plan_pattern
from anabranch.planner.groups import aggregate_spec, annotate_spec
from anabranch.planner.leaves import ClockReadings, Given, Recomputed
from anabranch.planner.matching import elements_spec, triples_spec
from anabranch.planner.parted_patterns import Parted, parted
from anabranch.planner.property_paths import path_spec
from anabranch.planner.questions import (
    asks_for_shortest,
    bare,
    binds_shortest,
    has_argument,
    is_volatile_itself,
    meets_others,
    path_meets_others,
    reads_static,
    reads_windows_itself,
    says_the_same,
    searches_again,
    shortest_reads_others,
)
from anabranch.planner.results import ask_spec, construct_spec
from anabranch.planner.runtime import CLOCK, Runtime
from anabranch.planner.sorting import slice_spec
from anabranch.planner.spec import NotIncremental, Part, Spec
from anabranch.snapshot.rdf.certain import certain_columns
from anabranch.snapshot.rdf.static import MOST_ROWS
from anabranch.snapshot.variables import argument_names, conjuncts, free_variables

Matcher = Literal["auto", "log", "semijoin"]
Execution = Literal["incremental", "recompute", "once"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the planner is told. `slide` is how far the windows move from instant to instant, where that is known;
    `trails`: whether those of variable length may be kept, which there may be too many of."""

    matcher: Matcher = "auto"
    slide: Duration | None = None
    max_matches: int | None = None
    max_bytes: int | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)
    trails: bool = True
    index: Index = "recency"


@dataclass(frozen=True, slots=True)
class Mode:
    """How an operator of the plan runs: by which algorithm, or why not on changes."""

    execution: Execution
    detail: str = ""


def incremental(operator: op.Operator, name: str) -> Mode:
    """The mode of an operator that runs on changes, by the name of its algorithm."""
    return Mode("incremental", f"{name}, at each instant" if is_volatile_itself(operator) else name)


@dataclass(frozen=True, slots=True)
class Scope:
    """Inside of a subquery: the rows that it is asked for, and the columns that say which of them a row belongs to."""

    argument: Spec | None = None
    hidden: tuple[str, ...] = ()

    def over(self, operator: op.Operator) -> tuple[str, ...]:
        """The hidden columns that an operator's rows have."""
        return self.hidden if self.hidden and any(True for _ in argument_names(operator)) else ()


@dataclass(slots=True)
class Planner:
    choices: Choices
    terms: bool
    needed: Mapping[int, frozenset[str]] = field(default_factory=dict)
    several: bool = False  # whether the whole plan reads several sources
    modes: dict[int, Mode] = field(default_factory=dict)
    streaming: dict[int, bool] = field(default_factory=dict)
    marks: int = 0
    links: dict[ex.Links, Spec] = field(default_factory=dict)  # indexes of connectivity, each once
    parts: list[Parted] = field(default_factory=list)  # kept, for `needed` knows them by their ids
    apart: int = 0  # inside of how many parts that static knowledge was expected to answer
    asking: Spec | None = None  # the rows that say which shortest paths the next pattern is asked for

    def build(self, operator: op.Operator, scope: Scope) -> Spec:
        """The operators for a part of the plan: on changes where there are any, else on the plain evaluator."""
        try:
            spec = self._built(operator, scope)
        except NotIncremental as reason:
            if scope.over(operator) or (scope.argument is not None and has_argument(operator)):
                raise
            return self.recomputed(operator, Mode("recompute", str(reason)))
        self.modes.setdefault(id(operator), incremental(operator, spec.name))
        return spec

    def _streams(self, operator: op.Operator) -> bool:
        """Whether a part of the plan reads a window."""
        found = self.streaming.get(id(operator))
        if found is None:
            found = reads_windows_itself(operator) or any(map(self._streams, operator.inputs))
            self.streaming[id(operator)] = found
        return found

    def _built(self, operator: op.Operator, scope: Scope) -> Spec:
        wanted = (*scope.over(operator), *operator.columns)
        match operator:
            case op.Unit():
                return Spec("Given", partial(Given, [()], 0), (), about=operator)
            case tr.Values(names, rows):
                return Spec("Given", partial(Given, rows, len(names)), names, about=operator)
            case op.Argument():
                if scope.argument is None:
                    raise InternalError("an argument outside of a subquery")
                return arranged(scope.argument, wanted, operator)
        volatile = is_volatile_itself(operator)
        if not has_argument(operator) and not self._streams(operator):
            if volatile:
                raise NotIncremental("it reads the clock or chance")
            return self.recomputed(operator, Mode("once", "static" if reads_static(operator) else "constant"))
        spec = arranged(self._streaming(operator, scope), wanted, operator)
        return netted(spec, operator) if volatile else spec

    def recomputed(self, operator: op.Operator, mode: Mode) -> Spec:
        for node in walk(operator):
            if isinstance(node, op.Operator):
                self.modes[id(node)] = Mode(mode.execution) if node is not operator else mode
        most = MOST_ROWS if mode.detail == "static" and self.terms else None
        return Spec("Recomputed", partial(Recomputed, operator, most), operator.columns, about=operator)

    def _streaming(self, operator: op.Operator, scope: Scope) -> Spec:
        match operator:
            case op.Filter():
                return self._filter(operator, scope)
            case tr.GraphPattern() | op.Pattern():
                spec, left = self._pattern(operator, ())
                return self._tested(spec, left, operator, scope)
            case op.Join() | op.LeftJoin():
                return self._pair(operator, (), scope)
            case op.Union(left, right):
                return self._union(operator, self.build(left, scope), self.build(right, scope))
            case tr.Minus(left, right):
                return self._minus(operator, self.build(left, scope), self.build(right, scope))
            case op.Extend(input_, column, expression):
                source, (shown,) = self._marked(self.build(input_, scope), (expression,), scope)
                return extended(source, ((column, shown),), operator)
            case op.Unwind(input_, column, expression):
                source, (shown,) = self._marked(self.build(input_, scope), (expression,), scope)
                return unwound(source, column, shown, operator)
            case op.Project(input_, items):
                return self.project(operator, self.build(input_, scope), items, scope)
            case op.Aggregate(input_):
                if scope.over(operator):
                    raise NotIncremental("it groups the rows of a subquery for each row outside")
                return aggregate_spec(operator, *self._grouped(operator, scope), self.terms)
            case op.Annotate(input_):
                if scope.over(operator):
                    raise NotIncremental("it groups the rows of a subquery for each row outside")
                return annotate_spec(operator, self.build(input_, scope), self.terms)
            case op.Distinct(input_):
                return distinct(self.build(input_, scope), operator, self.terms)
            case op.Order(input_, keys):
                for key in keys:
                    require_pure(key.expression)
                return self.build(input_, scope)
            case op.Slice():
                if scope.over(operator):
                    raise NotIncremental("it counts the rows of a subquery for each row outside")
                return self._slice(operator, scope)
            case tr.StaticPart(_, otherwise) if otherwise is not None:
                if not says_the_same(operator):
                    raise NotIncremental("static while no window brings its predicates")
                self.apart += 1
                try:
                    return self.build(otherwise, scope)
                finally:
                    self.apart -= 1
            case tr.Construct(input_):
                return construct_spec(operator, self.build(input_, scope))
            case tr.Ask(input_):
                return ask_spec(operator, self.build(input_, scope))
            case tr.Path():
                return path_spec(operator, self.choices)
            case tr.Delegated():
                raise NotIncremental("the SPARQL plug-in answers it")
            case tr.Describe():
                raise NotIncremental("DESCRIBE follows blank nodes through the graph")
        raise NotIncremental(f"{type(operator).__name__} has no operator on changes")

    def _grouped(
        self, operator: op.Aggregate, scope: Scope
    ) -> tuple[Spec, list[ex.Expression], list[ex.AggregateCall]]:
        """The rows to be grouped, with what keys and aggregates read of them."""
        keys, calls = [one for _, one in operator.keys], [one for _, one in operator.aggregates]
        source, shown = self._marked(self.build(operator.input, scope), [*keys, *calls], scope)
        return source, shown[: len(keys)], [one for one in shown[len(keys) :] if isinstance(one, ex.AggregateCall)]

    # --- conditions ---

    def _filter(self, operator: op.Filter, scope: Scope) -> Spec:
        """A chain of filters with what stands below it, which may use what they say."""
        conditions: list[ex.Expression] = []
        base: op.Operator = operator
        chain: list[op.Operator] = []
        while isinstance(base, op.Filter):
            chain.append(base)
            conditions[:0] = conjuncts(base.condition)
            base = base.input
        spec, left = self._below(base, conditions, scope)
        spec = self._tested(spec, left, operator, scope)
        for one in chain:
            self.modes[id(one)] = incremental(one, "Filtered")
        return spec

    def _tested(self, spec: Spec, conditions: Sequence[ex.Expression], about: op.Operator, scope: Scope) -> Spec:
        for condition in conditions:
            columns = spec.columns
            spec, (shown,) = self._marked(spec, (condition,), scope)
            require_pure(shown)
            spec = filtered(spec, shown, about)
            if is_volatile(condition):
                spec = netted(arranged(spec, columns, about), about)
        return spec

    def _below(
        self, base: op.Operator, conditions: Sequence[ex.Expression], scope: Scope
    ) -> tuple[Spec, Sequence[ex.Expression]]:
        """What filters stand on, and those conditions that are left to be tested."""
        if is_volatile_itself(base) or (not has_argument(base) and not self._streams(base)):
            return self.build(base, scope), conditions
        left = conditions
        try:
            match base:
                case op.Pattern() | tr.GraphPattern():
                    spec, left = self._pattern(base, conditions)
                case op.Join():
                    spec = arranged(self._pair(base, conditions, scope), (*scope.over(base), *base.columns), base)
                case _:
                    return self.build(base, scope), conditions
        except NotIncremental:
            return self.build(base, scope), conditions
        self.modes.setdefault(id(base), Mode("incremental", spec.name))
        return spec, left

    def _marked(
        self, spec: Spec, expressions: Sequence[ex.Expression], scope: Scope
    ) -> tuple[Spec, list[ex.Expression]]:
        """The rows with a column for each subquery of the expressions, and for each reading of the clock, and the
        expressions that read these columns."""
        spec, expressions = self._timed(spec, expressions)
        marks: dict[int, ex.Expression] = {}
        for expression in expressions:
            for one in subqueries(expression):
                self.marks += 1
                name = f" mark {self.marks}"
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
        return spec, [marked(expression, marks) for expression in expressions] if marks else list(expressions)

    def _timed(self, spec: Spec, expressions: Sequence[ex.Expression]) -> tuple[Spec, Sequence[ex.Expression]]:
        """The rows with what the clock says at each instant, and the expressions that read that."""
        marks: dict[int, ex.Expression] = {}
        names: dict[ex.Expression, str] = {}
        for expression in expressions:
            for reading in clock_readings(expression, self.choices.parameters):
                marks[id(reading)] = ex.Variable(names.setdefault(reading, f"{CLOCK}{self.marks + len(names)}"))
        if not names:
            return spec, expressions
        self.marks += len(names)
        clock = Spec("ClockReadings", partial(ClockReadings, tuple(names)), tuple(names.values()))
        joined = hash_join(spec, clock, False, (), None, None, outer=False)
        return joined, [marked(expression, marks) for expression in expressions]

    def _asked(self, outer: Spec, plan: op.Operator, inner: op.Operator) -> tuple[list[int], tuple[str, ...], Spec]:
        """A subquery's rows for all different rows that ask it: where these have what it asks for, and the columns of
        its rows that say who asked."""
        names = tuple(dict.fromkeys(argument_names(plan)))
        hidden = tuple(f" asked {self.marks} {one}" for one in names)
        positions = [outer.index(one) for one in names]
        asked = Spec("Arguments", lambda _: Arguments(positions), names, (outer,))
        twice = Spec("Picked", lambda _: Picked([*range(len(names)), *range(len(names))]), (*hidden, *names), (asked,))
        inside = self.build(inner, Scope(twice, hidden))
        if inside.columns[: len(hidden)] != hidden:
            raise NotIncremental("a subquery loses the row that it is asked for")
        return positions, hidden, inside

    def _collect(self, outer: Spec, collected: ex.CollectRows, name: str) -> Spec:
        """The rows with the list of what a subquery finds for each: a pattern comprehension."""
        plan = collected.plan
        _, hidden, inside = self._asked(outer, plan, plan)
        names = tuple(dict.fromkeys(argument_names(plan)))
        key = f" key {self.marks}"
        # Who asks, as one value that is never null; items in lists of one, for collect() passes over null.
        inside = extended(inside, [(key, ex.ListOf(tuple(map(ex.Variable, hidden))))], plan)
        item = ex.AggregateCall("collect", (ex.ListOf((collected.result,)),), span=collected.span)
        lists = op.Aggregate(plan, ((key, ex.Variable(key)),), ((name, item),))
        grouped = aggregate_spec(lists, inside, [ex.Variable(key)], [item], self.terms)
        asking = extended(outer, [(key, ex.ListOf(tuple(map(ex.Variable, names))))], plan)
        joined = hash_join(asking, grouped, True, (), ({key}, {key}), plan, outer=True)
        return flattened(joined, name, (*outer.columns, name), plan)

    def _mark(self, outer: Spec, exists: ex.Exists, name: str) -> Spec:
        positions, hidden, inside = self._asked(outer, exists.plan, bare(exists.plan))
        found = arranged(inside, hidden, exists.plan)

        def make(runtime: Runtime) -> Part:
            yes, no = runtime.dictionary.encode(True), runtime.dictionary.encode(False)
            return MarkJoin(outer.width, positions, yes, no)

        return Spec("MarkJoin", make, (*outer.columns, name), (outer, found))

    def _watch(self, outer: Spec, asked: ex.Connected | ex.Component, name: str, is_asked: bool) -> Spec:
        """The rows with what an index of connectivity says of their nodes; `is_asked`: for each of the rows."""
        links = asked.links
        subjects = subjects_of(asked, is_asked)
        linked = self.links.get(links)
        if linked is None:
            choices = self.choices
            linked = self.links[links] = linked_spec(links, choices.index, choices.slide, choices.max_bytes)
        names = tuple(f"{name} node {place}" for place in range(len(subjects)))
        asking = extended(outer, tuple(zip(names, subjects, strict=True)), None)
        arguments = [asking.index(one) for one in names]
        what: Asked = "connected" if isinstance(asked, ex.Connected) else asked.asked

        def make(runtime: Runtime) -> Part:
            return Watched(asking.width, arguments, linked_of(links, runtime).answer(what))

        watched = Spec("Watched", make, (*asking.columns, name), (asking, linked))
        return arranged(watched, (*outer.columns, name), None)

    # --- patterns and joins ---

    def _pattern(
        self, operator: op.Pattern | tr.GraphPattern, conditions: Sequence[ex.Expression]
    ) -> tuple[Spec, Sequence[ex.Expression]]:
        """A pattern's matches, the parts that share no variable joined, and the conditions that are left to test."""
        if isinstance(operator, tr.GraphPattern):
            parts = triples_spec(operator, number_bounds(conditions), self.choices, bool(self.apart))
            self.modes[id(operator)] = Mode("incremental", parts[0].name)
            return arranged(self._combined(parts, conditions, operator), operator.columns, operator), conditions
        wanted = self.needed.get(id(operator))
        asking, self.asking = self.asking, None
        asked = frozenset() if asking is None else frozenset(asking.columns)
        match = plan_pattern(operator, conditions, wanted, self.choices.parameters, self.choices.trails, asked)
        if isinstance(match, str):
            raise NotIncremental(match)
        two = parted(operator, conditions, wanted)
        if two is not None:
            return self._parted(operator, two)
        matchers = elements_spec(operator, match, self.choices, asking)
        self.modes[id(operator)] = Mode("incremental", matchers[0].name)
        spec = self._combined(matchers, match.kept, operator, match.alike)
        for one, other in match.different:
            spec = apart(spec, one, other, operator)
        for one, other in match.disjoint:
            spec = disjoint(spec, one, other, operator)
        for path in match.paths:
            spec = with_path(spec, path, operator)
        return arranged(filled(spec, operator.columns, operator), operator.columns, operator), match.kept

    def _parted(self, operator: op.Pattern, parts: Parted) -> tuple[Spec, Sequence[ex.Expression]]:
        """Shortest paths joined with what stands beside them in a pattern, which asks for them."""
        self.parts.append(parts)
        self.needed = {**self.needed, **dict(zip((id(parts.others), id(parts.shortest)), parts.needed, strict=True))}
        others, left = self._pattern(parts.others, parts.own[0])
        self.asking = others
        shortest, more = self._pattern(parts.shortest, parts.own[1])
        joined = hash_join(others, shortest, False, (), None, operator, outer=False)
        self.modes[id(operator)] = self.modes[id(parts.shortest)]
        spec = arranged(filled(joined, operator.columns, operator), operator.columns, operator)
        return spec, (*left, *more, *parts.conditions)

    def _combined(
        self,
        parts: Sequence[Spec],
        conditions: Sequence[ex.Expression],
        about: op.Operator,
        alike: Sequence[tuple[ex.Expression, ex.Expression]] = (),
    ) -> Spec:
        spec = parts[0]
        for part in parts[1:]:
            spec = self._joined(spec, part, conditions, about, alike)
        return spec

    def _joined(
        self,
        left: Spec,
        right: Spec,
        conditions: Sequence[ex.Expression],
        about: op.Operator,
        alike: Sequence[tuple[ex.Expression, ex.Expression]],
    ) -> Spec:
        """Every row with every row, but for those that an equality keeps apart."""
        sides = frozenset(left.columns), frozenset(right.columns)
        pairs = list(equalities(conditions, *sides))
        for pair in alike:
            for one, other in (pair, pair[::-1]):
                if free_variables(one) <= sides[0] and free_variables(other) <= sides[1]:
                    pairs.append((one, other))
        columns = (*left.columns, *right.columns)
        keys = [f" key {at}" for at in range(len(pairs))]
        if pairs:
            left = keyed(left, tuple(zip(keys, (one for one, _ in pairs), strict=True)), about)
            right = keyed(right, tuple(zip(keys, (one for _, one in pairs), strict=True)), about)
        joined = hash_join(left, right, False, (), None, about, outer=False)
        return arranged(joined, columns, about)

    def _pair(self, operator: op.Join | op.LeftJoin, above: Sequence[ex.Expression], scope: Scope) -> Spec:
        outer = isinstance(operator, op.LeftJoin)
        parts = conjuncts(operator.condition)
        later = () if outer else tuple(one for one in parts if is_volatile(one))
        conditions = tuple(one for one in parts if one not in later)
        if path_meets_others(operator.left, operator.right, self.needed, self.several):
            raise NotIncremental("a named path passes elements that were met in another window")
        left = self.build(operator.left, scope)
        if binds_shortest(operator.left, operator.right):
            raise NotIncremental("the relationships of a shortest path were met before")
        if shortest_reads_others(operator.left, operator.right):
            raise NotIncremental("conditions on a shortest path read the rest of the row")
        if asks_for_shortest(operator.left, operator.right) and searches_again(operator.right):
            raise NotIncremental("shortest paths between the nodes of a row are searched for again")
        self.asking = left if asks_for_shortest(operator.left, operator.right) else None
        try:
            right, moved = self._right(operator, scope)
        finally:
            self.asking = None
        right, tests = self._timed(right, (*moved, *conditions))
        for condition in tests:
            require_pure(condition)
        hidden = [name for name in scope.hidden if name in left.columns and name in right.columns]
        if hidden and not operator.lenient:
            raise NotIncremental("both sides of a join depend on the row outside")
        if isinstance(operator.left, op.Unit) and not outer and not tests:
            return self._tested(right, later, operator, scope)
        shared = set(left.columns) & set(right.columns)
        pairs = []
        if not shared and not operator.lenient:
            pairs = list(
                equalities((*tests, *(() if outer else above)), frozenset(left.columns), frozenset(right.columns))
            )
        names = (*left.columns, *(name for name in right.columns if name not in shared))
        keys = [f" key {at}" for at in range(len(pairs))]
        if pairs:
            left = keyed(left, tuple(zip(keys, (one for one, _ in pairs), strict=True)), operator)
            right = keyed(right, tuple(zip(keys, (one for _, one in pairs), strict=True)), operator)
        sure = (
            (certain_columns(operator.left) | set(scope.hidden), certain_columns(operator.right) | set(scope.hidden))
            if operator.lenient
            else None
        )
        joined = arranged(hash_join(left, right, operator.lenient, tests, sure, operator, outer), names, operator)
        return self._tested(joined, later, operator, scope)

    def _right(self, operator: op.Join | op.LeftJoin, scope: Scope) -> tuple[Spec, tuple[ex.Expression, ...]]:
        """The right side, and those of its conditions that read columns of the left: `(b {id: a.id})`. An element of
        another source is what both say of it, as soon as there is something to compare it with."""
        right = operator.right
        if isinstance(right, op.Pattern) and right.where is not None:
            parts = conjuncts(right.where)
            met = frozenset(right.columns) & frozenset(operator.left.columns)
            united = met if meets_others(operator.left, right, self.several) else frozenset()
            own = [
                part
                for part in parts
                if (read := free_variables(part)) <= frozenset(right.columns) and (read <= met or not read & united)
            ]
            if len(own) < len(parts):
                moved = tuple(part for part in parts if part not in own)
                where = None if not own else own[0] if len(own) == 1 else ex.And(tuple(own))
                bare = replace(right, where=where)
                spec = self.build(bare, scope)
                self.modes[id(right)] = self.modes[id(bare)]
                return spec, moved
        return self.build(right, scope), ()

    def _union(self, operator: op.Union, left: Spec, right: Spec) -> Spec:
        columns = left.columns
        if set(columns) != set(right.columns):
            raise NotIncremental("only one side of a union depends on the row outside")
        picks = [right.index(name) for name in columns]
        return Spec("Union", lambda _: BagUnion(picks), columns, (left, right), operator)

    def _minus(self, operator: tr.Minus, left: Spec, right: Spec) -> Spec:
        sure = certain_columns(operator.left) & certain_columns(operator.right)
        names = [name for name in operator.left.columns if name in operator.right.columns]
        if any(name.startswith(" asked ") for name in set(left.columns) & set(right.columns)):
            raise NotIncremental("both sides of MINUS depend on the row outside")
        shared = [(left.index(name), right.index(name), name in sure) for name in names]
        return Spec(
            "AntiJoin", lambda _: AntiJoin(left.width, right.width, shared), left.columns, (left, right), operator
        )

    def project(
        self, operator: op.Project, source: Spec, items: Sequence[tuple[str, ex.Expression]], scope: Scope
    ) -> Spec:
        hidden = [(name, ex.Variable(name)) for name in scope.over(operator) if name in source.columns]
        source, shown = self._marked(source, [expression for _, expression in items], scope)
        named = [*hidden, *zip((name for name, _ in items), shown, strict=True)]
        return projected(source, named, operator)

    def ordered(self, operator: op.Slice | None, order: op.Order, source: Spec) -> Spec:
        """The rows of ORDER BY, or those that SKIP and LIMIT leave of them."""
        columns = source.columns
        source, keys = self._timed(source, [key.expression for key in order.keys])
        for key in keys:
            require_pure(key)
        placed = tuple(replace(key, expression=one) for key, one in zip(order.keys, keys, strict=True))
        spec = slice_spec(operator, replace(order, keys=placed), source)
        spec = replace(spec, about=operator or order)
        return spec if spec.columns == columns else netted(arranged(spec, columns, order), order)

    def _slice(self, operator: op.Slice, scope: Scope) -> Spec:
        """LIMIT over ORDER BY, over a choice of columns on the way; what is between them keeps the rows' order."""
        for part in (operator.skip, operator.limit):
            if part is not None:
                require_pure(part)
        below = operator.input
        picks: list[op.Project] = []
        while isinstance(below, op.Project) and only_picks(below):
            picks.append(below)
            below = below.input
        if not isinstance(below, op.Order):  # rows stand in the order of the values that are left
            return slice_spec(operator, None, self.build(operator.input, scope))
        spec = self.ordered(operator, below, self.build(below.input, scope))
        self.modes[id(below)] = incremental(below, spec.name)
        for project in reversed(picks):
            spec = self.project(project, spec, project.items, scope)
            self.modes[id(project)] = Mode("incremental", spec.name)
        return spec
