"""Reasons for missing rows: the nearest match of the query's pattern, the parts that it lacks, or the conditions that
reject it.

The values are bound where a column is a variable of the pattern, or is computed from variables. The largest set of
parts that match together shows which parts are missing. When all parts match, the conditions are evaluated on the match
that passes most of them. Later operators (groups, HAVING, LIMIT) are described in words.

Work: one plain evaluation of each part, and at most `MOST_SETS` joins of their matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra.walk import conjuncts, sources
from anabranch.errors import EngineError, EvaluationError, Span
from anabranch.formats.values import to_json
from anabranch.insight.anatomy import Anatomy, RowFinder, anatomy, is_core
from anabranch.insight.elements import ElementUnit
from anabranch.insight.held import Holding
from anabranch.insight.minimal import Budget, OutOfBudget
from anabranch.insight.nearest import MatchTable, Nearest, PartBindings, matches, nearest
from anabranch.insight.parts import Branch, Parting
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import Element, FilterVerdict, Json, PatternPart, WhyNot
from anabranch.model.compare import identity_key
from anabranch.model.instants import format_instant
from anabranch.model.values import Value
from anabranch.snapshot import Context, compile_plan
from anabranch.snapshot.compiled import truth
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.variables import free_variables

MOST_SETS = 2_000
_MOST_MATCHES = 1_000


def why_not(recording: Recording, values: Mapping[str, Json], at: int | None = None) -> WhyNot:
    """Explain why no row has these values at the last instant at or before a time, or at the last of the recording."""
    replay = Replay(recording)
    moment = replay.moment(at)
    columns = replay.registration.columns
    unknown = [name for name in values if name not in columns]
    if unknown:
        raise EngineError(f"the query has no column `{unknown[0]}`; it has {', '.join(columns)}")
    return _Search(replay, moment, values).why_not()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A column with its wanted value: the variables of the core that it is computed from, and the computation."""

    name: str
    value: Json
    reads: frozenset[str]
    computed: Callable[[PartBindings], Value]


@dataclass(frozen=True, slots=True)
class _Found:
    """The nearest match of one branch."""

    branch: Branch
    near: Nearest
    verdicts: tuple[FilterVerdict, ...]
    missing: int
    failing: int


class _Search:
    def __init__(self, replay: Replay, moment: ReplayInstant, values: Mapping[str, Json]) -> None:
        self._replay = replay
        self._moment = moment
        self._values = values
        self._context: Context = replay.context(moment)
        self._holding = Holding(replay, moment)
        self._parting = Parting(replay.recording.query_text, replay.things.speller)
        self._notes: list[str] = []
        self._anatomy = anatomy(replay.registration.plan)

    def why_not(self) -> WhyNot:
        there = self._is_there()
        if there:
            self._notes.append(f"there is such a row at {format_instant(self._moment.at)}")
        if not is_core(self._anatomy.core):
            kind = type(self._anatomy.core).__name__
            return self._told(None, "; ".join((*self._notes, f"what stands in {kind} is not understood here")))
        asked = list(self._asked())
        branches = self._parting.branches(self._anatomy.core)
        never = [self._never(one, asked) for one in branches]
        if all(never):
            self._notes += dict.fromkeys(f"no match can give `{one.name}` this value" for one in never if one)
            asked = []
        found = [
            self._try(one, asked) for one, hopeless in zip(branches, never, strict=True) if not (asked and hopeless)
        ]
        best = min(found, key=lambda one: (one.missing, one.failing), default=None)
        if not there and not all(never) and best is not None and not best.missing and not best.failing:
            self._notes.append(self._behind())
        return self._told(best, "; ".join(self._notes))

    def _told(self, found: _Found | None, note: str) -> WhyNot:
        if found is None:
            return WhyNot(dict(self._values), self._moment.at, (), (), {}, (), note)
        near = found.near
        kept = {id(table.part) for table in near.tables}
        matched = tuple(
            PatternPart(one.part.text, _place(one.part.span), self._elements(one.part.plan, near.bindings))
            for one in near.tables
        )
        missing = tuple(PatternPart(one.text, _place(one.span)) for one in found.branch.parts if id(one) not in kept)
        shown = {name: to_json(value) for name, value in near.bindings.items() if not name.startswith(" ")}
        return WhyNot(dict(self._values), self._moment.at, matched, missing, shown, found.verdicts, note)

    def _is_there(self) -> bool:
        columns = self._replay.registration.columns
        places = [(columns.index(name), value) for name, value in self._values.items()]
        rows = self._replay.rows(self._moment)
        means = self._replay.things.means
        return any(all(means(row[place], value) for place, value in places) for row in rows)

    # --- the values as bindings of the pattern ---

    def _asked(self) -> Iterator[_Asked]:
        for name, value in self._values.items():
            traced = _traced(self._anatomy, name)
            if traced is None:
                self._notes.append(f"`{name}` is computed from many rows, so its value was not looked at")
            elif traced[0] & _of_optional_parts(self._anatomy.core):
                self._notes.append(f"`{name}` may come from an optional part, so its value was not looked at")
            else:
                yield _Asked(name, value, traced[0], self._computed(traced[1]))

    def _computed(self, plan: op.Operator) -> Callable[[PartBindings], Value]:
        columns = self._anatomy.core.columns
        compiled = compile_plan(plan, columns)

        def computed(bindings: PartBindings) -> Value:
            try:
                rows = compiled.run(self._context, tuple(bindings.get(one) for one in columns))
            except EvaluationError:
                return None
            return rows[0][0] if rows else None

        return computed

    # --- one branch ---

    def _never(self, branch: Branch, asked: Sequence[_Asked]) -> _Asked | None:
        """Return a column that has another value in every match of a branch, because it reads nothing that the branch
        binds."""
        lacking = _optional(self._anatomy.core, branch)
        return next((one for one in asked if one.reads <= lacking and not self._fits(one, {})), None)

    def _try(self, branch: Branch, asked: Sequence[_Asked]) -> _Found:
        loose = self._replay.of_triples
        tables = [MatchTable(part, self._replay.rows_of(part.plan, self._context), loose) for part in branch.parts]
        lacking = _optional(self._anatomy.core, branch)
        # An element of a property graph has the properties of all windows together; a term is the same everywhere.
        if self._replay.of_triples or len(sources(self._replay.registration.plan)) < 2:
            for table in tables:
                self._narrow(table, asked)

        def test(bindings: PartBindings) -> bool:
            return all(self._fits(one, bindings) for one in asked if one.reads <= bindings.keys() | lacking)

        near = nearest(tables, test, MOST_SETS)
        if not near.exact:
            self._notes.append("there may be a nearer match: not all sets of parts were tried")
        missing = len(tables) - len(near.tables)
        verdicts = self._verdicts(branch, near.bindings)
        if not missing and tables:
            for bindings in islice(matches(tables, test), _MOST_MATCHES):
                found = self._verdicts(branch, bindings)
                if _failing(found) < _failing(verdicts):
                    near, verdicts = Nearest(near.tables, bindings, near.exact), found
        return _Found(branch, near, verdicts, missing, _failing(verdicts))

    def _narrow(self, table: MatchTable, asked: Sequence[_Asked]) -> None:
        """Keep the rows of a part that have the values, as far as the part's own columns decide."""
        columns = table.part.columns
        for one in asked:
            if one.reads and one.reads <= frozenset(columns):
                places = [columns.index(name) for name in one.reads]
                table.rows = [
                    row
                    for row in table.rows
                    if (table.loose and any(row[place] is None for place in places))  # another part may bind it
                    or self._fits(one, dict(zip(columns, row, strict=True)))
                ]

    def _fits(self, asked: _Asked, bindings: PartBindings) -> bool:
        return self._replay.things.means(asked.computed(bindings), asked.value)

    def _verdicts(self, branch: Branch, bindings: PartBindings) -> tuple[FilterVerdict, ...]:
        """Return the verdict of every condition that can be evaluated for a match."""
        found: list[FilterVerdict] = []
        for condition in branch.conditions:
            if free_variables(condition) <= bindings.keys() | _optional(self._anatomy.core, branch):
                found.append(self._verdict(condition, tuple(bindings), tuple(bindings.values())))
        for plan in branch.taken_away:
            taken = self._is_taken_away(plan, bindings)
            found.append(FilterVerdict(f"MINUS {self._parting.said(plan)}", taken, not taken))
        if set(_columns(branch)) <= bindings.keys():
            found += self._verdicts_above(bindings)
        return tuple(found)

    def _verdict(self, condition: ex.Expression, columns: tuple[str, ...], row: tuple[Value, ...]) -> FilterVerdict:
        text = self._parting.said(condition)
        lacking = tuple(free_variables(condition) - frozenset(columns))
        try:
            value = compile_expression(condition, (*columns, *lacking))((*row, *(None for _ in lacking)), self._context)
            return FilterVerdict(text, to_json(value), truth(value) is True)
        except EvaluationError as error:
            return FilterVerdict(text, str(error.diagnostic.message), False)

    def _is_taken_away(self, plan: op.Operator, bindings: PartBindings) -> bool:
        for row in self._replay.rows_of(plan, self._context):
            pairs = [
                (value, bindings[name])
                for name, value in zip(plan.columns, row, strict=True)
                if value is not None and bindings.get(name) is not None
            ]
            if pairs and all(identity_key(one) == identity_key(other) for one, other in pairs):
                return True
        return False

    def _verdicts_above(self, bindings: PartBindings) -> Iterator[FilterVerdict]:
        """Yield the verdicts of conditions above the pattern, up to the first operator that combines rows."""
        row = tuple(bindings.get(name) for name in self._anatomy.core.columns)
        for place, one in enumerate(self._anatomy.chain):
            if isinstance(one, op.Filter):
                below = tuple(each for each in self._anatomy.chain[:place] if not isinstance(each, op.Filter))
                plan = Anatomy(self._anatomy.core, below).over([row])
                for values in self._replay.rows_of(plan, self._context)[:1]:
                    for condition in conjuncts(one.condition):
                        yield self._verdict(condition, plan.columns, values)
            elif not isinstance(one, op.Project | op.Extend | op.Order | op.Distinct):
                return

    # --- words ---

    def _elements(self, plan: op.Operator, bindings: PartBindings) -> tuple[Element, ...]:
        finding = RowFinder(self._replay, self._context, self._holding.windows, Budget(50))
        try:
            units: Sequence[ElementUnit] = self._holding.ordered(finding.leaf(plan, bindings) or ())
        except OutOfBudget:
            return ()
        return tuple(self._holding.element(unit) for unit in units[:50])

    def _behind(self) -> str:
        """Describe the operators between a match that passes and the answer."""
        words = {
            op.Aggregate: "grouping",
            op.Annotate: "the aggregates of groups",
            op.Slice: "SKIP and LIMIT",
            op.Unwind: "UNWIND",
            op.Distinct: "DISTINCT",
        }
        chain = self._anatomy.chain
        found = [words[type(one)] for one in chain if type(one) in words]
        grouped = next((place for place, one in enumerate(chain) if isinstance(one, op.Aggregate | op.Annotate)), None)
        if grouped is not None and any(isinstance(one, op.Filter) for one in chain[grouped:]):
            found.append("conditions on groups (HAVING)")
        if not found:
            return "there is such a match and it passes every condition"
        return f"there is such a match and it passes every condition; behind it stand {', '.join(found)}"


def _columns(branch: Branch) -> Iterator[str]:
    for part in branch.parts:
        for name in part.columns:
            if not name.startswith(" "):
                yield name


def _optional(core: op.Operator, branch: Branch) -> frozenset[str]:
    """Return the columns of a core that a match may lack."""
    return frozenset(core.columns) - frozenset(name for part in branch.parts for name in part.columns)


def _of_optional_parts(core: op.Operator) -> frozenset[str]:
    found = frozenset(core.right.columns) if isinstance(core, op.LeftJoin) else frozenset()
    return found.union(*(_of_optional_parts(one) for one in core.inputs if is_core(one)))


def _failing(verdicts: Sequence[FilterVerdict]) -> int:
    return sum(not one.passed for one in verdicts)


def _place(span: Span | None) -> tuple[int, int] | None:
    return None if span is None else (span.start, span.end)


def _traced(found: Anatomy, column: str) -> tuple[frozenset[str], op.Operator] | None:
    """Return the variables of the core that a column is computed from, and the computation; None when several rows
    contribute."""
    names = {column}
    steps: list[Callable[[op.Operator], op.Operator]] = [partial(_chosen, items=((column, ex.Variable(column)),))]
    for one in reversed(found.chain):
        match one:
            case op.Project(items=items) | op.Aggregate(keys=items):
                if isinstance(one, op.Aggregate) and any(name in names for name, _ in one.aggregates):
                    return None
                needed = tuple(item for item in items if item[0] in names)
                steps.append(partial(_chosen, items=needed))
                names = {read for _, expression in needed for read in free_variables(expression)}
            case op.Extend(column=name, expression=expression) if name in names:
                steps.append(partial(_extended, column=name, expression=expression))
                names = (names - {name}) | free_variables(expression)
            case op.Annotate(aggregates=aggregates) if any(name in names for name, _ in aggregates):
                return None
            case op.Unwind(column=name) if name in names:
                return None
            case op.Filter() | op.Order() | op.Slice() | op.Distinct() | op.Extend() | op.Unwind() | op.Annotate():
                pass
            case _:
                return None
    plan: op.Operator = op.Argument(found.core.columns)
    for step in reversed(steps):
        plan = step(plan)
    return frozenset(names), plan


def _chosen(plan: op.Operator, items: tuple[tuple[str, ex.Expression], ...]) -> op.Operator:
    return op.Project(plan, items)


def _extended(plan: op.Operator, column: str, expression: ex.Expression) -> op.Operator:
    return op.Extend(plan, column, expression)
