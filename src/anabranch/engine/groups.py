"""Groups of queries that one run answers: the same meaning, or the same shape with other constants, over the same
windows, at the same instants.

A group stands between the schedule and its members. Its `run` is a query that is registered nowhere: the schedule steps
it in the place of the members, and `tell` hands its answers, warnings and counts to their outboxes. A query joins a
group when it is due at the group's next instant and stands there as the group does. Whatever a member cannot share
(a row that fails, a limit that is exceeded, a late event that corrects) ends the group, not the query: the members go
on alone from the instant that the group has reached, as if they had never met.

Law: answers, counts and failures of a member are those of the query alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from anabranch.algebra.operators import Operator, RuleRows
from anabranch.engine.answers import Answer, AnswerRow, row_key
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.meaning import QueryMeaning, meaning_of
from anabranch.engine.outbox import QueryWarning
from anabranch.engine.plans import planned
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.query_options import CompiledQuery
from anabranch.engine.rule_tables import NoCommonPlan, table_plan
from anabranch.engine.surroundings import SharedState
from anabranch.errors import EvaluationError, QueryError
from anabranch.model.windows import EvaluationInstants
from anabranch.optimizer import optimize
from anabranch.snapshot.context import SkippedRows

FEWEST_RULES = 16
"""Queries of one shape, from which on a table of their constants costs less than a run for each."""


_FEW = 5  # names of queries that are listed

MOST_MATCHES = 1 << 21
"""Matches of a pattern whose constants are columns, from which on its queries run each alone."""


class _NoSkips(SkippedRows):
    """Refuses to skip a row: its error names a place in the text of one member, and counts for each of them. No
    operator catches what it raises."""

    def note(self, error: EvaluationError) -> None:
        raise QueryError([error.diagnostic])


class QueryGroup:
    """Queries of one meaning. `run` has the position and the rows of all members; `shape` is the key of their shape."""

    has_operators_of_members = True

    def __init__(self, key: Hashable, first: ContinuousQuery, plan: Operator | None = None) -> None:
        registration = first.registration if plan is None else replace(first.registration, plan=plan)
        self.key = key
        self.shape = shape_key(first)
        self.members: dict[str, ContinuousQuery] = {}
        self.run = ContinuousQuery(registration, first.options, first.order)
        self.run.meaning = None  # it joins no other group
        self.run.cursor.stand_at(first.cursor)
        self.run.run.continue_from(first.run, first.previous if plan is None else [])
        self.run.outbox.skipped = _NoSkips()
        self._told_index = self.run.cursor.next_index

    def fits(self, query: ContinuousQuery) -> bool:
        """Return whether a query with the same key stands where the group does, with the same rows."""
        return self.run.stands_beside(query) and self._agrees(query, self.run.previous)

    def _agrees(self, query: ContinuousQuery, rows: list[AnswerRow]) -> bool:
        """Return whether a query has the same rows: over the same windows it has, but before the first evaluation, and
        after a change of the past, that depends on what has happened to it."""
        if self.run.run.signature is not None:
            return True
        return list(map(row_key, query.previous)) == list(map(row_key, rows))

    def add(self, query: ContinuousQuery) -> None:
        """Add a query that fits."""
        query.group = self
        self.members[query.name] = query
        query.run.resume([])  # the group has its rows
        self.note_first()

    def remove(self, query: ContinuousQuery) -> None:
        """Remove a query that is dropped, or begins again."""
        del self.members[query.name]
        query.group = None
        self.note_first()

    def part(self) -> list[ContinuousQuery]:
        """Let all members go on alone from here; return them."""
        self.tell()
        members = list(self.members.values())
        rows = [self.rows_of(query) for query in members]
        for query, own in zip(members, rows, strict=True):
            query.group = None
            query.run.continue_from(self.run.run, own)
        self.members.clear()
        return members

    def note_first(self) -> None:
        """Look back as far as the member that looks back furthest, and stand in the place of the first member."""
        members = self.members.values()
        if members:
            reach = max(one.cursor.next_index - one.cursor.first_index for one in members)
            self.run.cursor.first_index = self.run.cursor.next_index - reach
            self.run.order = min(one.order for one in members)

    def tell(self) -> None:
        """Hand the answers, the warnings and the counts since the last call to the members, and move them on."""
        cursor, told = self.run.cursor, self.run.outbox
        moved, self._told_index = cursor.next_index - self._told_index, cursor.next_index
        if not moved and not told.evaluations:
            return
        for answer in told.pending:
            self._address(answer)
        for member in self.members.values():
            outbox = member.outbox
            if told.warnings:
                outbox.warnings.extend(QueryWarning(member.name, one.at, one.about) for one in told.warnings)
            outbox.evaluations += told.evaluations
            outbox.instants_passed += told.instants_passed
            member.cursor.next_index += moved
            member.cursor.passed = cursor.passed
        told.pending.clear()
        told.warnings.clear()
        told.rows_told = told.evaluations = told.instants_passed = 0

    def _address(self, answer: Answer) -> None:
        for member in self.members.values():
            _address(answer, member, list(answer.rows))

    def rows_of(self, query: ContinuousQuery) -> list[AnswerRow]:
        """Return a member's rows of the last evaluated instant."""
        return self.run.previous

    def row_count_of(self, query: ContinuousQuery) -> int:
        return self.run.row_count


class RuleGroup(QueryGroup):
    """Queries of one shape: a table has their constants, and each row of the run the number of its constants."""

    has_operators_of_members = False

    def __init__(self, key: Hashable, queries: Sequence[ContinuousQuery]) -> None:
        first = queries[0]
        self._first = _meaning(first)
        self._varying = _varying([_meaning(query) for query in queries])
        self._table = RuleRows()
        self._numbers: dict[Hashable, int] = {}
        self._by_number: dict[int, list[ContinuousQuery]] = {}
        self._last_number = 0
        self._routed: tuple[int, Mapping[int, list[AnswerRow]]] | None = None
        plan = table_plan(first.registration.plan, first.options.parameters, self._varying, self._table)
        super().__init__(key, first, plan)
        self.run.run.plans.most_matches = MOST_MATCHES
        rows: list[AnswerRow] = []
        for query in queries:
            if self._number(query) is None:
                own = query.previous
                self.add(query)
                rows += [(self._last_number, *row) for row in own]
        self.run.run.continue_from(self.run.run, rows)

    def takes(self, query: ContinuousQuery) -> bool:
        """Return whether the table has columns for all constants in which a query differs from the members."""
        mine, other = self._first, _meaning(query)
        return all(
            number in self._varying or _typed(one) == _typed(mine.constants[number])
            for number, one in enumerate(other.constants)
        )

    def admit(self, query: ContinuousQuery, around: SharedState) -> bool:
        """Add a query, if the windows are about to change, or its constants are those of a member with the same rows;
        return whether it was added."""
        run, number = self.run.run, self._number(query)
        if number is not None:
            if not self.run.stands_beside(query) or not self._agrees(query, self._rows(number)):
                return False
        elif not self._may_begin(query) or not self.run.is_about_to_change(around):
            return False
        elif query.registration.output != "snapshot" and query.previous:
            # The rows that it has would enter once more: the operators begin again beside them.
            rows = [(one, *row) for one in self._by_number for row in self._rows(one)]
            rows += [(self._last_number + 1, *row) for row in query.previous]
            run.continue_from(run, rows)
        self.add(query)
        return True

    def _may_begin(self, query: ContinuousQuery) -> bool:
        """Return whether a query is at the group's instant, evaluated as far as the group or not at all."""
        run = self.run.run
        return (
            query.cursor.next_instant == self.run.cursor.next_instant
            and query.run.signature in (None, run.signature)
            and query.run.last_conflict == run.last_conflict
        )

    def add(self, query: ContinuousQuery) -> None:
        number = self._number(query)
        if number is None:
            number = self._last_number = self._last_number + 1
            self._numbers[_meaning(query).values] = number
            self._by_number[number] = []
            constants = _meaning(query).constants
            self._table.add(number, tuple(constants[one] for one in self._varying))
        self._by_number[number].append(query)
        super().add(query)

    def remove(self, query: ContinuousQuery) -> None:
        number = self._number(query)
        assert number is not None, "a member has a row in the table"
        self._by_number[number].remove(query)
        if not self._by_number[number]:
            del self._by_number[number], self._numbers[_meaning(query).values]
            self._table.remove(number)
        super().remove(query)

    def _number(self, query: ContinuousQuery) -> int | None:
        return self._numbers.get(_meaning(query).values)

    def _address(self, answer: Answer) -> None:
        for number, rows in _by_number(answer.rows).items():
            for at, member in enumerate(self._by_number.get(number, ())):
                _address(answer, member, rows if at == 0 else list(rows))

    def rows_of(self, query: ContinuousQuery) -> list[AnswerRow]:
        number = self._number(query)
        return [] if number is None else list(self._rows(number))

    def row_count_of(self, query: ContinuousQuery) -> int:
        return len(self.rows_of(query))

    def _rows(self, number: int) -> list[AnswerRow]:
        index = self.run.cursor.next_index
        if self._routed is None or self._routed[0] != index:
            self._routed = (index, _by_number(self.run.previous))
        return self._routed[1].get(number, [])


def _meaning(query: ContinuousQuery) -> QueryMeaning:
    assert query.meaning is not None, "a member shares its meaning"
    return query.meaning


def _typed(value: object) -> Hashable:
    return type(value), value


def _varying(meanings: Sequence[QueryMeaning]) -> tuple[int, ...]:
    """Return the numbers of the constants that differ; where one of them is only compared, the keys are added, by which
    a row finds the queries that it concerns."""
    first = meanings[0]
    found = {
        number
        for number, value in enumerate(first.constants)
        if any(_typed(one.constants[number]) != _typed(value) for one in meanings)
    }
    return tuple(sorted(found if found <= set(first.keys) else found | set(first.keys)))


def _by_number(rows: Iterable[AnswerRow]) -> dict[int, list[AnswerRow]]:
    """Return rows by the number in their first column, without it."""
    found: dict[int, list[AnswerRow]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[1:])  # type: ignore[arg-type]
    return found


def _address(answer: Answer, query: ContinuousQuery, rows: list[AnswerRow]) -> None:
    """Emit rows of an answer of a group's run as those of a member."""
    query.outbox.pending.append(
        Answer(query.name, answer.at, answer.op, answer.win_start, answer.win_end, query.columns, rows)
    )
    query.outbox.rows_told += len(rows)


@dataclass(slots=True)
class QueryGroups:
    """The groups of an engine's queries. A key whose group has failed is not shared again."""

    by_key: dict[Hashable, QueryGroup] = field(default_factory=dict)
    _refused: set[Hashable] = field(default_factory=set)

    def of_run(self, run: ContinuousQuery) -> QueryGroup | None:
        """Return the group that a query is the run of."""
        return next((group for group in self.by_key.values() if group.run is run), None)

    def tell(self) -> None:
        for group in self.by_key.values():
            group.tell()

    def gather(self, due: Iterable[ContinuousQuery], around: SharedState) -> bool:
        """Let queries that are due, and in no group, join a group or form one; return whether one changed."""
        if not around.evaluation.sharing or around.evaluation.verify:
            return False
        met: dict[Hashable, list[ContinuousQuery]] = {}
        for query in due:
            if query.meaning is not None and (key := shape_key(query)) is not None:
                met.setdefault(key, []).append(query)
        before = {id(group): len(group.members) for group in self.by_key.values()}
        for key, queries in met.items():
            copies: dict[Hashable, list[ContinuousQuery]] = {}
            for query in self._with_rules(key, queries, around):
                copies.setdefault((key, _meaning(query).values), []).append(query)
            for one, same in copies.items():
                self._with_copies(one, same)
        return before != {id(group): len(group.members) for group in self.by_key.values()}

    def _with_rules(self, key: Hashable, queries: list[ContinuousQuery], around: SharedState) -> list[ContinuousQuery]:
        """Let queries of one shape join its table, or form one; return those that did not."""
        if key in self._refused or not _meaning(queries[0]).constants:
            return queries
        group = self.by_key.get(key)
        if isinstance(group, RuleGroup):
            if all(group.takes(query) or not query.stands_beside(group.run) for query in queries):
                return [query for query in queries if not (group.takes(query) and group.admit(query, around))]
            queries = [*self.dissolve(group), *queries]
        first = queries[0]
        beside = [query for query in queries if query.stands_beside(first)]
        different = {_meaning(query).values for query in beside}
        copied = [one for one in self.by_key.values() if one.shape == key and one.run.stands_beside(first)]
        different |= {_meaning(query).values for one in copied for query in one.members.values()}
        if len(different) < FEWEST_RULES:
            return queries
        for one in copied:
            beside += self.dissolve(one)
        try:
            rules = RuleGroup(key, beside)
        except NoCommonPlan:
            self._refused.add(key)
            return queries
        self.by_key[key] = rules
        made = rules.run.run.planned(around)
        if made.root is None or not made.is_incremental:
            self.dissolve(rules, refused=True)
            return queries
        for query in beside:
            if query.group is None:
                rules.admit(query, around)
        return [query for query in queries if query.group is None]

    def _with_copies(self, key: Hashable, queries: list[ContinuousQuery]) -> None:
        """Let queries of one meaning join their group, or form one."""
        group = self.by_key.get(key)
        if key in self._refused or (group is None and len(queries) < 2):
            return
        if group is None:
            first, *queries = queries
            group = QueryGroup(key, first)
            if not any(map(group.fits, queries)):
                return
            group.add(first)
            self.by_key[key] = group
        for query in queries:
            if group.fits(query):
                group.add(query)

    def leave(self, query: ContinuousQuery) -> None:
        """Take a query out of its group, if it has one."""
        group = query.group
        if group is not None:
            group.remove(query)
            if not group.members:
                del self.by_key[group.key]

    def dissolve(self, group: QueryGroup, refused: bool = False) -> list[ContinuousQuery]:
        """End a group; return its members, which go on alone. `refused`: they do not meet again."""
        del self.by_key[group.key]
        if refused:
            self._refused.add(group.key)
        return group.part()

    def dissolve_readers(self, stream: str) -> None:
        """End the groups that read a stream."""
        for group in list(self.by_key.values()):
            if stream in group.run.cursor.stream_names():
                self.dissolve(group)

    def clear(self) -> None:
        for group in list(self.by_key.values()):
            self.dissolve(group)
        self._refused.clear()


def shape_key(query: ContinuousQuery) -> Hashable:
    """Return what the queries of a group have in common beside their constants; None for a query that runs alone.

    A query that has begun to skip rows runs alone: which rows it has counted depends on its own operators."""
    instants = query.cursor.instants
    if query.outbox.skipped.count or query.meaning is None or not isinstance(instants, EvaluationInstants):
        return None
    assert instants.every is not None, "a query that answers once runs alone"
    micros = instants.every.fixed_micros
    is_formal = query.options.windows == "formal"
    place = instants.starting_at if micros is None or is_formal else instants.starting_at % micros
    return query.meaning.shape, query.cursor.stream_names(), place


class SharedRun(NamedTuple):
    """The other queries that a query is evaluated with, and whether a table has their constants."""

    others: tuple[str, ...]
    is_table: bool

    def __str__(self) -> str:
        few = ", ".join(self.others[:_FEW]) + (f" and {len(self.others) - _FEW:,} more" if self.others[_FEW:] else "")
        how = "over a table of the constants in which they differ" if self.is_table else "once for the same meaning"
        return f"with {few}: {how}, while they stand at the same instants"


def shared_runs(queries: Iterable[CompiledQuery]) -> dict[str, SharedRun]:
    """Return, by the name of each query that others share a run with, these others."""
    by_shape: dict[Hashable, dict[str, tuple[CompiledQuery, QueryMeaning]]] = {}
    for query in queries:
        meaning = meaning_of(*query)
        if meaning is not None:
            by_shape.setdefault(meaning.shape, {})[query.registration.name] = (query, meaning)
    found: dict[str, SharedRun] = {}
    for alike in by_shape.values():
        by_values: dict[Hashable, list[str]] = {}
        for name, (_, meaning) in alike.items():
            by_values.setdefault(meaning.values, []).append(name)
        is_table = len(by_values) >= FEWEST_RULES and _has_table(list(alike.values()))
        for names in [list(alike)] if is_table else by_values.values():
            if len(names) > 1:
                found |= {name: SharedRun(tuple(one for one in names if one != name), is_table) for name in names}
    return found


def _has_table(alike: Sequence[tuple[CompiledQuery, QueryMeaning]]) -> bool:
    (registration, options), _ = alike[0]
    varying = _varying([meaning for _, meaning in alike])
    try:
        plan = table_plan(registration.plan, options.parameters, varying, RuleRows())
    except NoCommonPlan:
        return False
    made = planned(optimize(plan).plan, registration, EvaluationOptions(), options.parameters)
    return made.root is not None and made.is_incremental
