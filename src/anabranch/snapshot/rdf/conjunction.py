"""Conjunctions: joins of triple patterns, paths and tables, matched together.

A tree of joins is split into atoms. They are applied one after the other, each extending the rows found so far; the
next atom is chosen at run time, by the estimated number of extensions of these rows. Conditions are tested as soon as
the columns that they read have their final values.

Invariant: the rows are those of the plain reading, bottom-up: every part by itself, then joined, then filtered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import inf

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import conjuncts, is_volatile, walk
from anabranch.errors import EvaluationError, Span
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, RowSource, truth
from anabranch.snapshot.context import Context
from anabranch.snapshot.expressions import compile_expression, position
from anabranch.snapshot.rdf.atoms import Atom, ConjunctionRun, RowLayout, Solution, SolutionStep, TableSource
from anabranch.snapshot.rdf.certain import certain_columns
from anabranch.snapshot.rdf.joins import TableAtom
from anabranch.snapshot.rdf.matching import TripleAtom
from anabranch.snapshot.rdf.paths import PathAtom
from anabranch.snapshot.rdf.static import StaticRows
from anabranch.snapshot.rdf.tables import TermTable, picker
from anabranch.snapshot.variables import free_variables

Compile = Callable[[op.Operator, RowLayout], RowSource]

_SAMPLE = 8
_SHARE_OF_TEST = 0.3  # of the rows pass a condition, as a guess
_ROW = " left row"  # the column that numbers the left rows of a left join


# --- taking a tree of joins apart -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    leaves: list[op.Operator] = field(default_factory=list)
    conditions: list[ex.Expression] = field(default_factory=list)


def joins_terms(operator: op.Operator) -> bool:
    """Return whether a join, perhaps under filters, or a leaf is matched here and not by the property-graph matcher."""
    match operator:
        case op.Filter(source):
            return joins_terms(source)
        case op.Join() | op.LeftJoin():
            if not operator.lenient and not _agree_on_certain(operator):
                return False
            return operator.lenient or joins_terms(operator.left) or joins_terms(operator.right)
        case tr.GraphPattern() | tr.Path() | tr.Values() | tr.StaticPart():
            return True
        case _:
            return False


def _agree_on_certain(pair: op.Join | op.LeftJoin) -> bool:
    """Return whether no shared column can be null: then the treatment of nulls in the join does not matter."""
    shared = frozenset(pair.left.columns) & frozenset(pair.right.columns)
    return shared <= certain_columns(pair.left) & certain_columns(pair.right)


def _take_apart(operator: op.Operator, parts: _Parts, outermost: bool) -> None:
    """Collect leaves and conditions. A condition in the middle of the tree may only move to its root when the columns
    that it reads cannot be bound by anything else."""
    match operator:
        case op.Unit():
            pass
        case op.Filter(source, condition) if outermost or _may_rise(condition, source):
            _take_apart(source, parts, outermost)
            parts.conditions += conjuncts(condition)
        case op.Join(left, right, condition) if (operator.lenient or _agree_on_certain(operator)) and (
            condition is None or outermost or _may_rise(condition, operator)
        ):
            _take_apart(left, parts, False)
            _take_apart(right, parts, False)
            parts.conditions += conjuncts(condition)
        case _:
            parts.leaves.append(operator)


def _may_rise(condition: ex.Expression, source: op.Operator) -> bool:
    return free_variables(condition) <= certain_columns(source) and not is_volatile(condition)


# --- compiling --------------------------------------------------------------------------------------------------------


def compile_conjunction(operator: op.Operator, argument: RowLayout, inner: Compile) -> RowSource:
    """Compile a join, perhaps under filters, or a single leaf. `inner` compiles operators that are not atoms."""
    parts = _Parts()
    _take_apart(operator, parts, True)
    seed = next((leaf for leaf in parts.leaves if isinstance(leaf, op.Argument)), None)
    if seed is not None:
        parts.leaves.remove(seed)
    given = seed.names if seed is not None else ()
    conjunction = CompiledConjunction(
        given, frozenset(), parts.leaves, parts.conditions, operator.columns, argument, inner
    )
    picks = [position(name, argument) for name in given]

    def rows(context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        start = tuple([row[pick] for pick in picks])
        return conjunction.extend(conjunction.prepare(context, row), iter((start,)))

    return _located(rows, operator.span)


def compile_left_join(operator: op.LeftJoin, argument: RowLayout, inner: Compile) -> RowSource:
    """Compile a left join: all left rows go through one conjunction, numbered; rows whose number does not come out are
    padded with nulls."""
    parts = _Parts()
    _take_apart(operator.right, parts, False)
    parts.conditions += conjuncts(operator.condition)
    given = (*operator.left.columns, _ROW)
    sure = certain_columns(operator.left) | {_ROW}
    columns = (*operator.columns, _ROW)
    conjunction = CompiledConjunction(given, sure, parts.leaves, parts.conditions, columns, argument, inner)
    left = inner(operator.left, argument)
    nothing = (None,) * (len(operator.columns) - len(operator.left.columns))

    def rows(context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        waiting: deque[tuple[Value, ...]] = deque()  # left rows that were read and have no known partner yet
        passed = 0  # the number of the first waiting row

        def numbered() -> Iterator[Solution]:
            for number, one in enumerate(left(context, row)):
                waiting.append(one)
                yield (*one, number)

        last = -1
        for joined in conjunction.extend(conjunction.prepare(context, row), numbered()):
            number = joined[-1]
            if number != last:
                while passed < number:
                    yield waiting.popleft() + nothing
                    passed += 1
                waiting.popleft()
                passed += 1
                last = number
            yield joined[:-1]
        for one in waiting:
            yield one + nothing

    return _located(rows, operator.span)


def _located(source: RowSource, span: Span | None) -> RowSource:
    """Add the operator's span to errors that have none."""
    if span is None:
        return source

    def rows(context: Context, row: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        try:
            yield from source(context, row)
        except EvaluationError as error:
            raise error.located(span) from None

    return rows


class CompiledConjunction:
    """Atoms and conditions, compiled for rows that have the columns `given` already.

    The steps depend on the order of the atoms, which depends on the data; compiled steps are kept.
    """

    def __init__(
        self,
        given: RowLayout,
        sure: frozenset[str],
        leaves: Sequence[op.Operator],
        conditions: Sequence[ex.Expression],
        columns: RowLayout,
        argument: RowLayout,
        inner: Compile,
    ) -> None:
        self._given = given
        self._sure = sure
        self._columns = columns
        self._conditions = tuple(conditions)
        self._needs = [free_variables(condition) for condition in conditions]
        self._late = [is_volatile(condition) for condition in conditions]
        self._tables: list[TableSource] = []
        self._atoms: list[Atom] = []
        for leaf in leaves:
            self._add(leaf, argument, inner)
        self._numbers = sorted(range(len(self._atoms)), key=lambda one: isinstance(self._atoms[one], TableAtom))
        self._stages: dict[tuple[int, ...], _Stage] = {}

    def _add(self, leaf: op.Operator, argument: RowLayout, inner: Compile) -> None:
        match leaf:
            case tr.GraphPattern(source, patterns):
                self._atoms += [TripleAtom(source, pattern) for pattern in patterns]
            case tr.Path():
                self._atoms.append(PathAtom(leaf))
            case _:
                self._atoms.append(TableAtom(len(self._tables), leaf.columns, certain_columns(leaf)))
                self._tables.append(table_source(leaf, argument, inner))

    def prepare(self, context: Context, row: tuple[Value, ...]) -> ConjunctionRun:
        return ConjunctionRun(context, row, self._tables)

    def extend(self, run: ConjunctionRun, rows: Iterator[Solution]) -> Iterator[Solution]:
        """Yield the completed rows, in the order of the given ones. The order of the atoms is decided once per
        evaluation, by the first rows that reach each stage."""
        decided: dict[tuple[int, ...], int] = run.context.memory.setdefault(self, {})
        order: tuple[int, ...] = ()
        stage = self._stage(order)
        rows = stage.tested(run, rows)
        while len(order) < len(self._atoms):
            following = decided.get(order)
            if following is None:
                sample = list(islice(rows, _SAMPLE))
                if not sample:
                    return iter(())
                following = decided[order] = self._next(run, order, sample)
                rows = chain(sample, rows)
            order = (*order, following)
            stage = self._stage(order)
            rows = stage.advanced(run, rows)
        if stage.layout == self._columns:
            return rows
        return map(picker([stage.layout.index(name) for name in self._columns]), rows)

    def _next(self, run: ConjunctionRun, order: tuple[int, ...], sample: Sequence[Solution]) -> int:
        """Return the atom with the fewest extensions; one that shares no column with the rows only when it has at most
        one."""
        left = [number for number in self._numbers if number not in order]
        if len(left) == 1:
            return left[0]
        layout = self._stage(order).layout
        here = frozenset(layout)

        best, least = left[0], (True, inf)
        for number in left:
            atom = self._atoms[number]
            extensions = atom.estimate(run, layout, sample)
            if not extensions:  # this atom ends the search at any cost of the others: no tables need to be built
                return number
            after = here.union(atom.columns)
            tests = sum(not needs <= here and needs <= after for needs in self._needs)
            apart = bool(layout) and here.isdisjoint(atom.columns)
            cost = (apart and extensions > 1, extensions * _SHARE_OF_TEST**tests)
            if cost < least:
                best, least = number, cost
        return best

    # --- stages ---

    def _stage(self, done: tuple[int, ...]) -> _Stage:
        """Return the stage after these atoms, in this order."""
        stage = self._stages.get(done)
        if stage is None:
            stage = self._stages[done] = self._compiled(done)
        return stage

    def _compiled(self, done: tuple[int, ...]) -> _Stage:
        if not done:
            before: _Stage | None = None
            layout, sure, step = self._given, self._sure, None
        else:
            before = self._stage(done[:-1])
            atom = self._atoms[done[-1]]
            step = atom.step(before.layout, before.sure)
            layout, sure = atom.after(before.layout), before.sure | atom.certain
        open_columns = {
            name for number, atom in enumerate(self._atoms) if number not in done for name in atom.columns
        } - sure
        final = frozenset(layout) - open_columns
        complete = len(done) == len(self._atoms)
        tested = before.all_tested if before is not None else frozenset()
        ready = [
            number
            for number, needs in enumerate(self._needs)
            if number not in tested and (complete or (needs <= final and not self._late[number]))
        ]
        tests = [(compile_expression(self._conditions[one], layout), self._conditions[one]) for one in ready]
        return _Stage(layout, sure, step, tests, tested | frozenset(ready))


@dataclass(frozen=True, slots=True)
class _Stage:
    layout: RowLayout
    sure: frozenset[str]
    step: SolutionStep | None
    tests: list[tuple[ExpressionEvaluator, ex.Expression]]
    all_tested: frozenset[int]

    def advanced(self, run: ConjunctionRun, rows: Iterable[Solution]) -> Iterator[Solution]:
        assert self.step is not None
        return self.tested(run, self.step(run, rows))

    def tested(self, run: ConjunctionRun, rows: Iterator[Solution]) -> Iterator[Solution]:
        for test, condition in self.tests:
            rows = _passing(rows, test, condition, run.context)
        return rows


def _passing(
    rows: Iterator[Solution], test: ExpressionEvaluator, condition: ex.Expression, context: Context
) -> Iterator[Solution]:
    for row in rows:
        try:
            value = test(row, context)
            if value is not True and value is not False and value is not None:
                truth(value)
        except EvaluationError as error:
            context.skip(error.located(condition.span))
            continue
        if value is True:
            yield row


# --- tables -----------------------------------------------------------------------------------------------------------


def table_source(leaf: op.Operator, argument: RowLayout, inner: Compile) -> TableSource:
    """Return the rows of an operator as a table. A table that does not depend on the enclosing row is computed once per
    evaluation."""
    if isinstance(leaf, tr.Values):
        constant = TermTable(leaf.columns, leaf.rows)
        return lambda context, row: constant
    rows = inner(leaf, argument)
    if isinstance(rows, StaticRows):
        return rows.table
    if any(isinstance(node, op.Argument) for node in walk(leaf)) or is_volatile(leaf):
        return lambda context, row: TermTable(leaf.columns, rows(context, row))

    def once(context: Context, row: tuple[Value, ...]) -> TermTable:
        found: TermTable | None = context.memory.get(once)
        if found is None:
            found = context.memory[once] = TermTable(leaf.columns, rows(context, row))
        return found

    return once
