"""Plans a query's algebra as incremental operators, part by part; the plain evaluator recomputes the parts without one.

Invariant: whatever is decided here, the rows are those of the plan. Every operator of the plan gets a mode, which
EXPLAIN shows: incremental, recompute with the reason, or once per version of the static graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import (
    conjuncts,
    is_volatile,
    keeps_lists,
    keeps_order,
    only_picks,
    reads_chance,
    reads_order,
    sources,
    walk,
)
from anabranch.errors import InternalError
from anabranch.planner.choices import Choices
from anabranch.planner.flow.spec import NotIncremental, Spec
from anabranch.planner.leaves.array_matches import reason_for_objects
from anabranch.planner.leaves.given import ConstantRows, RecomputedRows, TableLeaf
from anabranch.planner.leaves.over_rows import over_rows_spec
from anabranch.planner.patterns.graph_patterns import plan_pattern
from anabranch.planner.patterns.parted_patterns import PatternHalves, parted
from anabranch.planner.patterns.questions import (
    asks_for_shortest,
    binds_shortest,
    has_argument,
    has_one_row,
    is_volatile_itself,
    meets_others,
    path_meets_others,
    reads_static,
    reads_windows_itself,
    says_the_same,
    searches_again,
    shortest_reads_others,
)
from anabranch.planner.reads import Reads
from anabranch.planner.specs.building import (
    apart,
    arranged,
    disjoint,
    distinct,
    extended,
    filled,
    filtered,
    keyed,
    netted,
    numbered,
    projected,
    unwound,
    with_path,
)
from anabranch.planner.specs.conditions import (
    can_be_pure,
    equalities,
    looks_up_nodes,
    number_bounds,
    require_pure,
    threshold_test,
)
from anabranch.planner.specs.groups import aggregate_spec, annotate_spec, needs_order
from anabranch.planner.specs.joins import combined, hash_join, minus, threshold_join, union, with_keys
from anabranch.planner.specs.matching import elements_spec, triples_spec, with_times
from anabranch.planner.specs.results import ask_spec, construct_spec
from anabranch.planner.specs.sorting import OrderColumn, OrderedRows, slice_in_order, slice_spec
from anabranch.planner.subqueries import Subqueries, SubqueryScope
from anabranch.snapshot.rdf.certain import certain_columns
from anabranch.snapshot.rdf.static import MOST_ROWS
from anabranch.snapshot.variables import free_variables

Execution = Literal["incremental", "recompute", "once"]

_OverRows: TypeAlias = (
    op.Filter
    | op.Extend
    | op.Unwind
    | op.Project
    | op.Aggregate
    | op.Annotate
    | op.Distinct
    | op.Order
    | op.Slice
    | tr.Describe
)
"""Operators that the plain evaluator can compute over rows that are kept up to date."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How an operator of the plan runs: `execution`, and as `detail` the algorithm or the reason against incremental
    work."""

    execution: Execution
    detail: str = ""


def incremental(operator: op.Operator, name: str) -> Mode:
    """Return the mode of an incremental operator, with the name of its algorithm."""
    return Mode("incremental", f"{name}, at each instant" if is_volatile_itself(operator) else name)


@dataclass(slots=True)
class Planner:
    choices: Choices
    terms: bool
    needed: Mapping[int, Reads] = field(default_factory=dict)
    several: bool = False  # whether the whole plan reads several sources
    modes: dict[int, Mode] = field(default_factory=dict)
    streaming: dict[int, bool] = field(default_factory=dict)
    parts: list[PatternHalves | op.Pattern] = field(default_factory=list)  # kept alive: `needed` has their ids as keys
    apart: int = 0  # nesting depth inside static parts that are built by their other plan
    built: dict[int, tuple[op.Operator, SubqueryScope, Spec]] = field(default_factory=dict)  # by the operator's id
    places: int = 0  # hidden columns that tell the order of rows
    settled: dict[int, str] = field(default_factory=dict)  # by a condition's id, the column that says where it holds
    asking: Spec | None = None  # the rows that limit the shortest paths of the next pattern
    subqueries: Subqueries = field(init=False)

    def __post_init__(self) -> None:
        self.subqueries = Subqueries(self.choices, self.terms, self.build)

    def build(self, operator: op.Operator, scope: SubqueryScope) -> Spec:
        """Build the operators of a part of the plan: incremental ones where they exist, else the plain evaluator."""
        try:
            spec = self._built(operator, scope)
        except NotIncremental as reason:
            if scope.over(operator) or (scope.argument is not None and has_argument(operator)):
                raise
            over_rows = self._over_rows(operator, scope, str(reason))
            return over_rows or self.recomputed(operator, Mode("recompute", str(reason)))
        self.modes.setdefault(id(operator), incremental(operator, spec.name))
        self.built[id(operator)] = (operator, scope, spec)
        return spec

    def _known(self, operator: op.Operator, scope: SubqueryScope) -> Spec:
        """Return the operators of a part of the plan, which may have been built in vain for the operator above it."""
        known = self.built.get(id(operator))
        return known[2] if known is not None and known[1] == scope else self.build(operator, scope)

    def _streams(self, operator: op.Operator) -> bool:
        """Return whether a part of the plan reads a window."""
        found = self.streaming.get(id(operator))
        if found is None:
            found = reads_windows_itself(operator) or any(map(self._streams, operator.inputs))
            self.streaming[id(operator)] = found
        return found

    def _built(self, operator: op.Operator, scope: SubqueryScope) -> Spec:
        wanted = (*scope.over(operator), *operator.columns)
        match operator:
            case op.Unit():
                return Spec("Given", partial(ConstantRows, [()], 0), (), about=operator)
            case tr.Values(names, rows):
                return Spec("Given", partial(ConstantRows, rows, len(names)), names, about=operator)
            case op.RuleTable(names, table):
                return Spec("Given", partial(TableLeaf, table, len(names)), names, about=operator)
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
        return Spec("Recomputed", partial(RecomputedRows, operator, most), operator.columns, about=operator)

    def _over_rows(self, operator: op.Operator, scope: SubqueryScope, reason: str) -> Spec | None:
        """Build the input of an operator that has no form on changes, and the plain evaluator over the input's rows.

        Where the operator reads its rows in an order, the operators that define the order are evaluated with it. None:
        the input has no form on changes either, chance decides (which draws in the order of all rows), or nodes are
        looked up in several graphs."""
        if not isinstance(operator, _OverRows):
            return None
        parts: list[op.Operator] = []
        tops: list[_OverRows] = []
        below: op.Operator = operator
        in_order = reads_order(operator)
        while not parts or (in_order and keeps_lists(below)):
            if not isinstance(below, _OverRows):
                return None
            one = self._with_pure_conditions_below(below) if isinstance(below, op.Filter) else below
            parts.append(below)
            tops.append(one)
            below = one.input
        part: op.Operator = op.RowBag(below.columns)
        for top in reversed(tops):
            part = replace(top, input=part)
        used = sources(operator) if looks_up_nodes(part) else ()
        if reads_chance(part) or (used and (self.several or len(used) > 1)):
            return None
        source = self._known(below, scope)
        if source.name == "Recomputed":
            return None
        for inner in (*walk(part), *parts):
            if isinstance(inner, op.Operator):
                self.modes[id(inner)] = Mode("recompute")
        self.modes[id(operator)] = Mode("recompute", f"over the rows of its input: {reason}")
        return over_rows_spec(part, used, source, operator)

    def _with_pure_conditions_below(self, operator: op.Filter) -> op.Filter:
        """Return a filter without its first conditions that have a form on changes; a filter below it tests these."""
        conditions = conjuncts(operator.condition)
        first = next(
            (at for at, one in enumerate(conditions) if not can_be_pure(one, self.choices.parameters)), len(conditions)
        )
        if not 0 < first < len(conditions):
            return operator
        below = replace(operator, condition=ex.And(conditions[:first]))
        return op.Filter(below, ex.And(conditions[first:]), span=operator.span)

    def _streaming(self, operator: op.Operator, scope: SubqueryScope) -> Spec:
        match operator:
            case op.Filter():
                return self._filter(operator, scope)
            case tr.GraphPattern() | op.Pattern():
                spec, left = self._pattern(operator, ())
                return self._tested(spec, left, operator)
            case op.Join() | op.LeftJoin():
                return self._pair(operator, (), scope)
            case op.Union(left, right):
                return union(operator, self.build(left, scope), self.build(right, scope))
            case tr.Minus(left, right):
                return minus(operator, self.build(left, scope), self.build(right, scope))
            case op.Extend(input_, column, expression):
                source, (shown,) = self.subqueries.marked(self.build(input_, scope), (expression,))
                return extended(source, ((column, shown),), operator)
            case op.Unwind(input_, column, expression):
                source, (shown,) = self.subqueries.marked(self.build(input_, scope), (expression,))
                return unwound(source, column, shown, operator)
            case op.Project(input_, items):
                return self.project(operator, self.build(input_, scope), items, scope)
            case op.Aggregate(input_):
                if scope.over(operator):
                    raise NotIncremental("it groups the rows of a subquery for each row outside")
                if needs_order(operator):
                    rows = self._in_order(input_, scope)
                    return aggregate_spec(operator, *self._grouped(operator, rows.spec), self.terms, rows.order)
                return aggregate_spec(operator, *self._grouped(operator, self.build(input_, scope)), self.terms)
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
                from anabranch.planner.leaves.property_paths import path_spec  # few queries walk along predicates

                return path_spec(operator, self.choices)
            case tr.PluginQuery():
                raise NotIncremental("the SPARQL plug-in answers it")
            case tr.Describe():
                raise NotIncremental("DESCRIBE follows blank nodes through the graph")
        raise NotIncremental(f"{type(operator).__name__} has no operator on changes")

    def _grouped(self, operator: op.Aggregate, rows: Spec) -> tuple[Spec, list[ex.Expression], list[ex.AggregateCall]]:
        """Build the rows to be grouped; also return the keys and aggregates as expressions over these rows."""
        keys, calls = [one for _, one in operator.keys], [one for _, one in operator.aggregates]
        source, shown = self.subqueries.marked(rows, [*keys, *calls])
        return source, shown[: len(keys)], [one for one in shown[len(keys) :] if isinstance(one, ex.AggregateCall)]

    # --- conditions ---

    def _filter(self, operator: op.Filter, scope: SubqueryScope) -> Spec:
        """Build a chain of filters together with the operator below it, which may use the filters' conditions."""
        conditions: list[ex.Expression] = []
        base: op.Operator = operator
        chain: list[op.Operator] = []
        while isinstance(base, op.Filter):
            chain.append(base)
            conditions[:0] = conjuncts(base.condition)
            base = base.input
        spec, left = self._below(base, conditions, scope, self.needed.get(id(operator)))
        spec = self._tested(spec, left, operator)
        for one in chain:
            self.modes[id(one)] = incremental(one, "Filtered")
        return spec

    def _tested(self, spec: Spec, conditions: Sequence[ex.Expression], about: op.Operator) -> Spec:
        for condition in conditions:
            columns = spec.columns
            spec, (shown,) = self.subqueries.marked(spec, (condition,))
            require_pure(shown)
            spec = filtered(spec, shown, about, self.settled.get(id(condition)))
            if is_volatile(condition):
                spec = netted(arranged(spec, columns, about), about)
        return spec

    def _below(
        self, base: op.Operator, conditions: Sequence[ex.Expression], scope: SubqueryScope, beyond: Reads | None
    ) -> tuple[Spec, Sequence[ex.Expression]]:
        """Build the operator below a chain of filters, of whose rows `beyond` is read; also return the conditions that
        remain to be tested."""
        if is_volatile_itself(base) or (not has_argument(base) and not self._streams(base)):
            return self.build(base, scope), conditions
        left = conditions
        try:
            match base:
                case op.Pattern() | tr.GraphPattern():
                    spec, left = self._pattern(base, conditions, beyond)
                case op.Join():
                    spec = arranged(self._pair(base, conditions, scope), (*scope.over(base), *base.columns), base)
                case _:
                    return self.build(base, scope), conditions
        except NotIncremental:
            return self.build(base, scope), conditions
        self.modes.setdefault(id(base), Mode("incremental", spec.name))
        return spec, left

    # --- patterns and joins ---

    def _pattern(
        self,
        operator: op.Pattern | tr.GraphPattern,
        conditions: Sequence[ex.Expression],
        beyond: Reads | None = None,
    ) -> tuple[Spec, Sequence[ex.Expression]]:
        """Build the matches of a pattern, joining its parts that share no variable; also return the conditions left to
        test."""
        if isinstance(operator, tr.GraphPattern):
            parts = triples_spec(operator, number_bounds(conditions), self.choices, bool(self.apart))
            spec = combined(parts, conditions, operator)
            timed = [pattern for pattern in operator.patterns if pattern.times]
            for pattern in timed:
                spec = with_times(spec, pattern, operator.source, operator)
            self.modes[id(operator)] = Mode("incremental", f"{parts[0].name}{', TripleTimes' if timed else ''}")
            return arranged(spec, operator.columns, operator), conditions
        wanted = self.needed.get(id(operator))
        asking, self.asking = self.asking, None
        asked = frozenset() if asking is None else frozenset(asking.columns)
        beyond = beyond if conditions else wanted
        match = plan_pattern(operator, conditions, wanted, self.choices.parameters, self.choices.trails, asked, beyond)
        if isinstance(match, str):
            raise NotIncremental(match)
        two = parted(operator, conditions, wanted)
        if two is not None:
            return self._parted(operator, two)
        matchers = elements_spec(operator, match, self.choices, asking)
        reasons = [reason_for_objects(match, component) for component in match.components]
        objects = next((f", with objects: {reason}" for reason in reasons if reason is not None), "")
        self.modes[id(operator)] = Mode("incremental", f"{matchers[0].name}{objects}")
        self.settled |= {id(condition): column for condition, column in match.settled}
        spec = combined(matchers, match.kept, operator, match.alike)
        for one, other in match.different:
            spec = apart(spec, one, other, operator)
        for one, other in match.disjoint:
            spec = disjoint(spec, one, other, operator)
        for path in match.paths:
            spec = with_path(spec, path, operator)
        return arranged(filled(spec, operator.columns, operator), operator.columns, operator), match.kept

    def _parted(self, operator: op.Pattern, parts: PatternHalves) -> tuple[Spec, Sequence[ex.Expression]]:
        """Join the shortest paths of a pattern with the rest of it; the rest limits which paths are searched for."""
        self.parts.append(parts)
        self.needed = {**self.needed, **dict(zip((id(parts.others), id(parts.shortest)), parts.needed, strict=True))}
        others, left = self._pattern(parts.others, parts.own[0])
        self.asking = others
        shortest, more = self._pattern(parts.shortest, parts.own[1])
        joined = hash_join(others, shortest, False, (), None, operator, outer=False)
        self.modes[id(operator)] = self.modes[id(parts.shortest)]
        spec = arranged(filled(joined, operator.columns, operator), operator.columns, operator)
        return spec, (*left, *more, *parts.conditions)

    def _pair(self, operator: op.Join | op.LeftJoin, above: Sequence[ex.Expression], scope: SubqueryScope) -> Spec:
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
        right, tests = self.subqueries.timed(right, (*moved, *conditions))
        for condition in tests:
            require_pure(condition)
        hidden = [name for name in scope.hidden if name in left.columns and name in right.columns]
        if hidden and not operator.lenient:
            raise NotIncremental("both sides of a join depend on the row outside")
        if isinstance(operator.left, op.Unit) and not outer and not tests:
            return self._tested(right, later, operator)
        shared = set(left.columns) & set(right.columns)
        pairs = []
        if not shared and not operator.lenient:
            pairs = list(
                equalities((*tests, *(() if outer else above)), frozenset(left.columns), frozenset(right.columns))
            )
        names = (*left.columns, *(name for name in right.columns if name not in shared))
        if not outer and not shared and not pairs:
            spec = self._against_threshold(operator, left, right, (*tests, *above))
            if spec is not None:
                for test in tests:
                    spec = filtered(spec, test, operator)
                return self._tested(arranged(spec, names, operator), later, operator)
        left, right = with_keys(left, right, pairs, operator)
        sure = (
            (certain_columns(operator.left) | set(scope.hidden), certain_columns(operator.right) | set(scope.hidden))
            if operator.lenient
            else None
        )
        joined = arranged(hash_join(left, right, operator.lenient, tests, sure, operator, outer), names, operator)
        return self._tested(joined, later, operator)

    @staticmethod
    def _against_threshold(
        operator: op.Join | op.LeftJoin, left: Spec, right: Spec, conditions: Sequence[ex.Expression]
    ) -> Spec | None:
        """Join rows with the one row of an aggregate by the order of two numbers, where a condition compares them."""
        for rows, threshold, plan in ((left, right, operator.right), (right, left, operator.left)):
            if has_one_row(plan):
                test = threshold_test(conditions, frozenset(rows.columns), frozenset(threshold.columns))
                if test is not None:
                    return threshold_join(rows, threshold, test, operator)
        return None

    def _right(self, operator: op.Join | op.LeftJoin, scope: SubqueryScope) -> tuple[Spec, tuple[ex.Expression, ...]]:
        """Build the right side; also return those of its conditions that read columns of the left: `(b {id: a.id})`. An
        element that both sides bind from different sources is their union; a condition that reads it together with
        columns of the right alone is returned too."""
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
                self._need_as(right, bare)
                spec = self.build(bare, scope)
                self.modes[id(right)] = self.modes[id(bare)]
                return spec, moved
        return self.build(right, scope), ()

    def _need_as(self, known: op.Pattern, other: op.Pattern) -> None:
        """Note that as much is read of another form of a pattern as of the known one."""
        if id(known) in self.needed:
            self.parts.append(other)
            self.needed = {**self.needed, id(other): self.needed[id(known)]}

    def project(
        self, operator: op.Project, source: Spec, items: Sequence[tuple[str, ex.Expression]], scope: SubqueryScope
    ) -> Spec:
        hidden = [(name, ex.Variable(name)) for name in scope.over(operator) if name in source.columns]
        source, shown = self.subqueries.marked(source, [expression for _, expression in items])
        named = [*hidden, *zip((name for name, _ in items), shown, strict=True)]
        return projected(source, named, operator)

    def ordered(self, operator: op.Slice | None, order: op.Order, source: Spec) -> Spec:
        """Build the rows of ORDER BY, or the part of them that SKIP and LIMIT leave."""
        columns = source.columns
        source, keys = self.subqueries.timed(source, [key.expression for key in order.keys])
        for key in keys:
            require_pure(key)
        placed = tuple(replace(key, expression=one) for key, one in zip(order.keys, keys, strict=True))
        spec = slice_spec(operator, replace(order, keys=placed), source)
        spec = replace(spec, about=operator or order)
        return spec if spec.columns == columns else netted(arranged(spec, columns, order), order)

    def _slice(self, operator: op.Slice, scope: SubqueryScope) -> Spec:
        """Build LIMIT over ORDER BY; projections between them that only pick columns keep the order of the rows."""
        for part in (operator.skip, operator.limit):
            if part is not None:
                require_pure(part)
        below = operator.input
        picks: list[op.Project] = []
        while isinstance(below, op.Project) and only_picks(below):
            picks.append(below)
            below = below.input
        if not isinstance(below, op.Order):
            if keeps_order(operator.input):
                return arranged(self._in_order(operator, scope).spec, operator.columns, operator)
            # Without ORDER BY, rows stand in the order of their values.
            return slice_spec(operator, None, self.build(operator.input, scope))
        spec = self.ordered(operator, below, self.build(below.input, scope))
        self.modes[id(below)] = incremental(below, spec.name)
        for project in reversed(picks):
            spec = self.project(project, spec, project.items, scope)
            self.modes[id(project)] = Mode("incremental", spec.name)
        return spec

    # --- rows that carry their order ---

    def _in_order(self, plan: op.Operator, scope: SubqueryScope) -> OrderedRows:
        """Build the rows of a part whose order the query defines, with hidden columns that tell the order."""
        match plan:
            case op.Unit():
                return OrderedRows(self.build(plan, scope), ())
            case op.Join(op.Unit(), right, None):
                rows = self._in_order(right, scope)
            case op.Order(below, keys):
                rows = self._in_order(below, scope) if keeps_order(below) else self._by_values(below, scope)
                source, shown = self.subqueries.marked(rows.spec, [key.expression for key in keys])
                for one in shown:
                    require_pure(one)
                order = tuple(OrderColumn(self._hidden(), key) for key in keys)
                spec = keyed(source, [(column.name, one) for column, one in zip(order, shown, strict=True)], plan)
                rows = OrderedRows(spec, (*order, *rows.order))
            case op.Slice(below, skip, limit):
                for part in (skip, limit):
                    if part is not None:
                        require_pure(part)
                rows = slice_in_order(plan, self._in_order(below, scope))
            case op.Unwind(below, column, expression):
                rows = self._in_order(below, scope) if keeps_lists(below) else self._by_values(below, scope)
                copy, place = OrderColumn(self._hidden()), OrderColumn(self._hidden())
                # The items of one copy of a row stand together.
                spec = numbered(rows.spec, copy.name, plan)
                source, (item,) = self.subqueries.marked(spec, (expression,))
                rows = OrderedRows(unwound(source, column, item, plan, place.name), (*rows.order, copy, place))
            case op.Project(below, items):
                rows = self._in_order(below, scope)
                source, shown = self.subqueries.marked(rows.spec, [one for _, one in items])
                named = [*zip((name for name, _ in items), shown, strict=True)]
                hidden = [(name, ex.Variable(name)) for name in rows.hidden]
                rows = OrderedRows(projected(source, [*named, *hidden], plan), rows.order)
            case op.Extend(below, column, expression):
                rows = self._in_order(below, scope)
                source, (value,) = self.subqueries.marked(rows.spec, (expression,))
                rows = OrderedRows(extended(source, ((column, value),), plan), rows.order)
            case op.Filter(below, condition):
                rows = self._in_order(below, scope)
                rows = OrderedRows(self._tested(rows.spec, conjuncts(condition), plan), rows.order)
            case _:
                raise NotIncremental(f"{type(plan).__name__} has no operator on changes that keeps an order")
        self.modes[id(plan)] = incremental(plan, rows.spec.name)
        spec = arranged(rows.spec, (*plan.columns, *rows.hidden), plan)
        return OrderedRows(netted(spec, plan) if is_volatile_itself(plan) else spec, rows.order)

    def _by_values(self, plan: op.Operator, scope: SubqueryScope) -> OrderedRows:
        """Build the rows of a bag, with hidden columns that tell their canonical order."""
        copies = [(self._hidden(), ex.Variable(name)) for name in sorted(plan.columns)]
        spec = extended(self.build(plan, scope), copies, plan)
        return OrderedRows(spec, tuple(OrderColumn(name) for name, _ in copies))

    def _hidden(self) -> str:
        """Return the name of a new column that tells the order of rows."""
        self.places += 1
        return f" place {self.places}"
