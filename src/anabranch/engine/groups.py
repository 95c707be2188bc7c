"""Groups of queries that one run answers: the same meaning, over the same windows, at the same instants.

A group stands between the schedule and its members. Its `run` is a query that is registered nowhere: the schedule steps
it in the place of the members, and `tell` hands its answers, warnings and counts to their outboxes. A query joins a
group when it is due at the group's next instant and stands there as the group does. Whatever a member cannot share
(a row that fails, a limit that is exceeded, a late event that corrects) ends the group, not the query: the members go
on alone from the instant that the group has reached, as if they had never met.

Law: answers, counts and failures of a member are those of the query alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from anabranch.engine.answers import Answer, AnswerRow
from anabranch.engine.outbox import QueryWarning
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.surroundings import SharedState
from anabranch.errors import EvaluationError, QueryError
from anabranch.model.windows import EvaluationInstants
from anabranch.snapshot.context import SkippedRows


class _NoSkips(SkippedRows):
    """Refuses to skip a row: its error names a place in the text of one member, and counts for each of them. No
    operator catches what it raises."""

    def note(self, error: EvaluationError) -> None:
        raise QueryError([error.diagnostic])


class QueryGroup:
    """Queries that one run answers. `run` has the position and the rows of all members."""

    def __init__(self, key: Hashable, first: ContinuousQuery) -> None:
        self.key = key
        self.members: dict[str, ContinuousQuery] = {}
        self.run = ContinuousQuery(first.registration, first.options, first.order)
        self.run.cursor.stand_at(first.cursor)
        self.run.run.continue_from(first.run)
        self.run.outbox.skipped = _NoSkips()
        self._told_index = self.run.cursor.next_index
        self._add(first)

    def add(self, query: ContinuousQuery) -> None:
        """Add a query that fits."""
        self._add(query)
        query.run.resume([])  # the group has its rows

    def _add(self, query: ContinuousQuery) -> None:
        query.group = self
        self.members[query.name] = query
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
        for query in members:
            query.group = None
            query.run.continue_from(self.run.run)
        self.members.clear()
        return members

    def note_first(self) -> None:
        """Look back as far as the member that looks back furthest, and stand in the place of the first member."""
        members = self.members.values()
        if members:
            next_index = self.run.cursor.next_index
            self.run.cursor.first_index = next_index - max(
                one.cursor.next_index - one.cursor.first_index for one in members
            )
            self.run.order = min(one.order for one in members)

    def tell(self) -> None:
        """Hand the answers, the warnings and the counts since the last call to the members, and move them on."""
        cursor, told = self.run.cursor, self.run.outbox
        moved, self._told_index = cursor.next_index - self._told_index, cursor.next_index
        if not moved and not told.evaluations:
            return
        for member in self.members.values():
            outbox = member.outbox
            outbox.pending.extend(_addressed(answer, member, answer.rows) for answer in told.pending)
            outbox.warnings.extend(QueryWarning(member.name, one.at, one.about) for one in told.warnings)
            outbox.rows_told += told.rows_told
            outbox.evaluations += told.evaluations
            outbox.instants_passed += told.instants_passed
            member.cursor.next_index += moved
            member.cursor.passed = cursor.passed
        told.pending.clear()
        told.warnings.clear()
        told.rows_told = told.evaluations = told.instants_passed = 0

    @property
    def row_count(self) -> int:
        return self.run.row_count

    def rows_of(self, query: ContinuousQuery) -> list[AnswerRow]:
        """Return a member's rows of the last evaluated instant."""
        return self.run.previous


def _addressed(answer: Answer, query: ContinuousQuery, rows: list[AnswerRow]) -> Answer:
    """Return an answer of a group's run as that of a member."""
    return Answer(query.name, answer.at, answer.op, answer.win_start, answer.win_end, query.columns, list(rows))


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
        """Let queries that are due, and in no group, join the group that fits or form one; return whether one did."""
        if not around.evaluation.sharing or around.evaluation.verify:
            return False
        met: dict[Hashable, list[ContinuousQuery]] = {}
        for query in due:
            if (key := group_key(query)) is not None and key not in self._refused:
                met.setdefault(key, []).append(query)
        has_joined = False
        for key, queries in met.items():
            group = self.by_key.get(key)
            if group is None:
                first, *queries = queries
                if not any(map(first.stands_as, queries)):
                    continue
                group = self.by_key[key] = QueryGroup(key, first)
            for query in queries:
                if query is not group.run and query.stands_as(group.run):
                    group.add(query)
                    has_joined = True
        return has_joined

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


def group_key(query: ContinuousQuery) -> Hashable:
    """Return what the queries of a group have in common; None for a query that runs alone, or has begun to skip rows:
    which rows it has counted depends on its own operators."""
    instants = query.cursor.instants
    if query.outbox.skipped.count or query.meaning is None or not isinstance(instants, EvaluationInstants):
        return None
    assert instants.every is not None, "a query that answers once runs alone"
    micros = instants.every.fixed_micros
    is_formal = query.options.windows == "formal"
    place = instants.starting_at if micros is None or is_formal else instants.starting_at % micros
    return query.meaning, query.cursor.stream_names(), place
