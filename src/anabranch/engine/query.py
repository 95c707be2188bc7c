"""One registered query: its cursor, its run and its outbox, and one step to its next evaluation instant.

Two short cuts keep the law of `query_run`. Where no event entered or left a window since the last evaluation, the rows
are the same, unless the plan reads the clock or a random number. And where such instants would emit nothing (a
difference, or an empty snapshot), the query goes straight on to the next instant at which an event enters or leaves.

Invariant: the state is the first and the next instant's index and the previous rows; all else can be computed again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from anabranch.algebra.operators import Order, Registration, Window
from anabranch.algebra.walk import is_empty_without_events, is_volatile, walk
from anabranch.engine.answers import Answer, AnswerRow
from anabranch.engine.cursor import QueryCursor
from anabranch.engine.meaning import QueryMeaning, meaning_of
from anabranch.engine.outbox import QueryOutbox
from anabranch.engine.progress import END
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.query_run import QueryRun
from anabranch.engine.steady import FIRST_AT_ONCE, MOST_ALIKE, run_ahead, steady_window
from anabranch.engine.surroundings import SharedState, StaticGraphs, static_graph
from anabranch.engine.views import WindowEvents, widest_bounds
from anabranch.engine.works import OperatorWork, operator_works
from anabranch.errors import Cancelled, EvaluationError, QueryError
from anabranch.model.instants import format_instant
from anabranch.snapshot.context import OUTSIDE, out_of_memory

if TYPE_CHECKING:
    from anabranch.engine.chains import ChainLink
    from anabranch.engine.groups import QueryGroup


class ContinuousQuery:
    def __init__(self, registration: Registration, options: QueryOptions, order: int) -> None:
        self.registration = registration
        self.options = options
        self.order = order
        self.cursor = QueryCursor(registration, options.windows)
        self.outbox = QueryOutbox()
        self.group: QueryGroup | None = None  # the queries that it is stepped with
        self.link: ChainLink | None = None  # made when it is first asked for
        self.run = QueryRun(registration, options, self.cursor, self.outbox)
        self.past_graphs: list[tuple[int, StaticGraphs]] = []  # static graphs as instants before an index saw them
        self.can_be_corrected = (
            registration.arrivals is None
            and registration.into is None
            and all(window.count is None for window in self.cursor.windows)
        )
        """Whether an answer can be emitted again over its original windows: only time moves them, and the query has no
        INTO."""
        self.is_volatile = is_volatile(registration.plan)
        self._empty_without_events = is_empty_without_events(registration.plan)
        is_steady = registration.into is None and not self.is_volatile and not self.run.static_names
        origin = registration.starting_at or 0
        self.steady = steady_window(self.cursor, options.windows, origin) if is_steady else None
        self.at_once = FIRST_AT_ONCE
        self.columns = registration.columns

    @property
    def name(self) -> str:
        return self.registration.name

    @property
    def once(self) -> bool:
        """Whether the query has only one answer (RETURN)."""
        return self.registration.every is None and self.registration.arrivals is None

    @property
    def waits_for_no_stream(self) -> bool:
        """Whether its one answer is still to come, and depends on no stream and no instant."""
        names_instant = self.registration.starting_at is not None or self.options.now is not None
        return self.once and not self.cursor.windows and not self.cursor.done and not names_instant

    @property
    def counts_all(self) -> bool:
        """Whether it reads no stream and is evaluated as triples come on any stream."""
        return self.registration.arrivals is not None and not self.cursor.windows

    @property
    def is_ordered(self) -> bool:
        """Whether the order of its rows is part of the answer; a difference has no order."""
        plan = self.registration.plan
        return self.registration.output == "snapshot" and any(isinstance(node, Order) for node in walk(plan))

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.cursor.windows

    @cached_property
    def meaning(self) -> QueryMeaning | None:
        """What queries that answer alike have in common; None: it runs alone."""
        return meaning_of(self.registration, self.options)

    @property
    def static_names(self) -> tuple[str, ...]:
        return self.run.static_names

    # --- one step ---------------------------------------------------------------------------------------------------

    def run_ahead(self, around: SharedState, last_index: int) -> bool:
        """Evaluate many of the next instants at once, if this query can; return whether it did."""
        try:
            return run_ahead(self, around, last_index) > 0
        except Cancelled:
            raise
        except Exception as error:
            self._end(error, around)
            return True

    def step(self, around: SharedState, last_index: int) -> Answer | None:
        """Evaluate the next instant, and skip those up to `last_index` that cannot emit anything new.

        The answer is pending, and returned.
        """
        instants = self.cursor.started()
        index = self.cursor.next_index
        at = instants.instant(index)
        views = self.cursor.views_at(at, around)
        stable = not self.is_volatile or (self._empty_without_events and all(view.is_empty for view in views.values()))
        signature = self._signature(views, around)
        unchanged = stable and signature == self.run.signature
        try:
            if unchanged:
                self.run.kept.stay()
            else:
                self.run.evaluate(at, index, views, around)
            is_telling = not stable or (self.registration.output == "snapshot" and len(self.run.kept) > 0)
            if is_telling and last_index - index > MOST_ALIKE and not instants.once:
                self._refuse_silence(
                    at, min([last_index, *(self.cursor.next_change(*item, index) for item in views.items())])
                )
            answer = self._tell(at, views)
        except Cancelled:
            raise
        except Exception as error:
            self._end(error, around)
            return None
        self.run.signature = signature
        self.cursor.next_index = index + 1
        if instants.once:
            self.cursor.done = True
        elif not is_telling and index < last_index:
            self.cursor.next_index = min(
                [last_index + 1, *(self.cursor.next_change(*item, index) for item in views.items())]
            )
        self.cursor.passed = instants.instant(self.cursor.next_index - 1)
        self.outbox.instants_passed += self.cursor.next_index - index
        return answer

    def _end(self, error: Exception, around: SharedState) -> None:
        """End the query with an error, and drop its operators."""
        if not isinstance(error, QueryError):
            # State that is shared with other queries may be in the middle of a change: it is built again.
            for name in self.cursor.stream_names():
                around.contents.drop_stream(name)
            error = out_of_memory(OUTSIDE) if isinstance(error, MemoryError) else _broken(error)
        self.outbox.failure = _placed(error, self.options)
        self.cursor.done = True
        self.run.flow = None

    def _refuse_silence(self, at: int, until: int) -> None:
        """Refuse to emit the same answer very often, as one event whose time is far ahead would cause."""
        alike = until - self.cursor.next_index
        if alike > MOST_ALIKE:
            raise EvaluationError(
                "SER-310",
                f"after {format_instant(at)} nothing comes for {alike:,} instants, each of which has an answer",
                "is the time of an event wrong? Else tell what changes (ON ENTERING), or evaluate less often",
            )

    def _tell(self, at: int, views: Mapping[Window, WindowEvents]) -> Answer | None:
        output, kept = self.registration.output, self.run.kept
        told = kept.rows() if output == "snapshot" else kept.entered() if output == "entering" else kept.left()
        if not told and not self.once:
            return None
        widest = widest_bounds(views.values(), at)
        self.outbox.rows_told += len(told)
        answer = Answer.told(self.name, at, output, widest, self.registration.columns, told)
        self.outbox.pending.append(answer)
        return answer

    def operators(self) -> list[OperatorWork]:
        """Return the work of its windows, graphs and operators since they began, in the order of their ids. Operators
        over a table of constants are no operators of one query."""
        run = self if self.group is None else self.group.run
        found = operator_works(run.windows, run.static_names, run.run.flow, self.outbox.evaluations, self.row_count)
        has_own = self.group is None or self.group.has_operators_of_members
        return found if has_own else found[: len(run.windows) + len(run.static_names)]

    @property
    def row_count(self) -> int:
        """How many rows it has at the last evaluated instant."""
        return len(self.run.kept) if self.group is None else self.group.row_count_of(self)

    @property
    def previous(self) -> list[AnswerRow]:
        """The rows of the last evaluated instant."""
        return self.run.kept.rows() if self.group is None else self.group.rows_of(self)

    @property
    def last_skip(self) -> QueryError | None:
        """The error of the last skipped row."""
        skipped = self.outbox.skipped
        return None if skipped.last is None else _placed(skipped.last, self.options)

    @property
    def first_skip(self) -> QueryError | None:
        """The error of the first skipped row."""
        skipped = self.outbox.skipped
        return None if skipped.first is None else _placed(skipped.first, self.options)

    def stands_beside(self, other: ContinuousQuery) -> bool:
        """Return whether a query with the same windows and instants has come as far, over the same content."""
        run, beside = self.run, other.run
        return (
            self.cursor.next_instant == other.cursor.next_instant
            and run.signature == beside.signature
            and run.last_conflict == beside.last_conflict
        )

    def is_about_to_change(self, around: SharedState) -> bool:
        """Return whether an event enters or leaves a window at the next instant."""
        views = self.cursor.views_at(self.cursor.next_instant, around)
        return self._signature(views, around) != self.run.signature

    def _signature(self, views: Mapping[Window, WindowEvents], around: SharedState) -> Hashable:
        return (
            tuple([view.signature for view in views.values()]),
            tuple([around.static(name).version for name in self.static_names]),
        )

    # --- going back -------------------------------------------------------------------------------------------------

    def resume(self, next_index: int, previous: list[AnswerRow]) -> None:
        """Move before an instant, with the rows of the one before; the windows are read again."""
        self.cursor.resume(next_index)
        self.run.resume(previous)

    def begun_again(self) -> ContinuousQuery:
        """Return the same query as newly registered; emitted answers and counts stay."""
        other = ContinuousQuery(self.registration, self.options, self.order)
        other.cursor.bound_stream = self.cursor.bound_stream
        other.outbox = self.outbox.begun_again()
        other.run = QueryRun(self.registration, self.options, other.cursor, other.outbox)
        return other

    def rewound(self, index: int) -> ContinuousQuery:
        """Return a copy that stands before an instant which this query has passed, and has emitted nothing yet."""
        other = copy(self)
        other.group = None
        other.cursor = copy(self.cursor)
        other.cursor.done = False
        other.outbox = QueryOutbox()
        other.run = self.run.looking_back(other.cursor, other.outbox)
        other.cursor.resume(index)
        return other

    def remember_graphs(self, graphs: StaticGraphs) -> None:
        """Remember the present static graphs, which are about to change, for the instants that have passed."""
        seen_until = self.past_graphs[-1][0] if self.past_graphs else self.cursor.first_index
        if self.cursor.next_index > seen_until and self.outbox.failure is None:
            seen = {name: static_graph(graphs, name) for name in self.static_names}
            self.past_graphs.append((self.cursor.next_index, seen))

    def graphs_over_time(self, present: StaticGraphs) -> Iterator[tuple[int, StaticGraphs]]:
        """Yield the static graphs of all instants, each with the index before which they were in use."""
        yield from self.past_graphs
        yield END, present


def _broken(error: Exception) -> EvaluationError:
    """Return the error for a defect of Anabranch, which ends one query only."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = (
        "" if at is None else f", in {at.tb_frame.f_globals.get('__name__', '').rpartition('.')[2]} line {at.tb_lineno}"
    )
    return EvaluationError(
        "SER-312",
        f"something is broken inside Anabranch: {type(error).__name__}: {error}{where}",
        "please report it with the query and its input; --force recompute may get past it",
    )


def _placed(error: QueryError, options: QueryOptions) -> QueryError:
    if isinstance(error, EvaluationError) and not error.text:
        return error.in_text(options.text, options.file_name)
    return error
