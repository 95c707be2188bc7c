"""Reasons for rows: which elements a row is made of, what completed it, and when it will leave; and for a row that
left, which of its elements are gone or changed, or which new elements keep it out.

The law makes this exact without inspecting any operator: a set of elements explains a row when the plain query over
only these elements has the row. The search is for such a set from which none can be left out. The rows of the patterns
give the starting point; for an aggregate that counts all rows of a group (count, sum, avg, collect), the elements are
those of the group.

Work: at most `BUDGET` plain evaluations over parts of the windows, and one incremental run of the query over the
recording.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from anabranch.engine.answers import AnswerRow, row_key
from anabranch.engine.arrivals import ArrivalInstants
from anabranch.engine.progress import END
from anabranch.errors import EngineError, QueryError
from anabranch.formats.values import to_json
from anabranch.insight.anatomy import Lineage, RowFinder
from anabranch.insight.elements import ElementUnit
from anabranch.insight.held import Holding
from anabranch.insight.minimal import Budget, OutOfBudget, smallest, thinned
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import Departure, Json, Why
from anabranch.model.instants import format_instant
from anabranch.snapshot.rdf.static import PartTooLarge

BUDGET = 400
_MOST_CHANGES = 10_000
_MOST_LOOKED_AT = 1_000  # instants, for a query whose rows change though no event enters or leaves


def why(
    recording: Recording,
    row: Mapping[str, Json] | Sequence[Json],
    at: int | None = None,
    budget: int = BUDGET,
) -> Why:
    """Explain why a row is there at the last instant at or before a time, or at the last of the recording. A mapping
    may name some of the columns: then the first row that has these values is explained."""
    replay = Replay(recording)
    moment, found, note = _find(replay, row, at)
    return _Reason(replay, moment, found, Budget(budget), [note] if note else []).why()


def why_left(
    recording: Recording,
    row: Mapping[str, Json] | Sequence[Json],
    at: int | None = None,
    budget: int = BUDGET,
) -> Departure:
    """Explain why a row that was there at the last instant at or before a time has left, at the first instant without
    it."""
    replay = Replay(recording)
    moment, found, _ = _find(replay, row, at)
    later = replay.moments[replay.position(moment) :]
    for now, there in _presence(replay, later, row_key(found)):
        if not there:
            return _Reason(replay, moment, found, Budget(budget), []).departure(now)
        moment = now
    note = "the row is still there at the last instant that was recorded"
    columns = replay.registration.columns
    return Departure(columns, tuple(map(to_json, found)), moment.at, None, (), (), (), None, note)


def _find(
    replay: Replay, row: Mapping[str, Json] | Sequence[Json], at: int | None
) -> tuple[ReplayInstant, AnswerRow, str]:
    moment = replay.moment(at)
    columns = replay.registration.columns
    if not isinstance(row, Mapping) and len(row) != len(columns):
        raise EngineError(f"the row has {len(row)} values, the query has {len(columns)} columns: {', '.join(columns)}")
    wanted = dict(row) if isinstance(row, Mapping) else dict(zip(columns, row, strict=True))
    unknown = [name for name in wanted if name not in columns]
    if unknown:
        raise EngineError(f"the query has no column `{unknown[0]}`; it has {', '.join(columns)}")
    found = _matching(replay, moment, wanted)
    if found is not None:
        return moment, found, ""
    place = replay.position(moment)
    if replay.registration.output == "exiting" and place:
        before = replay.moments[place - 1]
        found = _matching(replay, before, wanted)
        if found is not None:
            return before, found, f"the row left at {format_instant(moment.at)}; this is why it was there before"
    raise EngineError(f"there is no such row at {format_instant(moment.at)}; ask why not")


def _matching(replay: Replay, moment: ReplayInstant, wanted: Mapping[str, Json]) -> AnswerRow | None:
    places = [(replay.registration.columns.index(name), value) for name, value in wanted.items()]
    for row in replay.rows(moment):
        if all(replay.things.means(row[place], value) for place, value in places):
            return row
    return None


class _Reason:
    def __init__(self, replay: Replay, moment: ReplayInstant, row: AnswerRow, budget: Budget, notes: list[str]) -> None:
        self._replay = replay
        self._moment = moment
        self._row = row
        self._key = row_key(row)
        self._budget = budget
        self._notes = notes
        self._holding = Holding(replay, moment)

    def why(self) -> Why:
        units, minimal = self._elements()
        replay, holding = self._replay, self._holding
        units = sorted(units, key=lambda unit: (holding.first_came(unit), unit.kind, str(unit.key)))
        completed = max(units, key=lambda unit: (holding.first_came(unit), unit.kind != "node"), default=None)
        if not units:
            self._notes.append("no element of a stream is needed: the row is there when windows are empty")
        return Why(
            replay.registration.columns,
            tuple(map(to_json, self._row)),
            self._moment.at,
            tuple(map(holding.element, units)),
            None if completed is None else holding.element(completed),
            self._entered_at(),
            self._leaves_at(),
            minimal,
            "; ".join(self._notes),
        )

    def departure(self, now: ReplayInstant) -> Departure:
        """Explain why the row is no longer there at an instant, the first after its own."""
        before, after = self._holding, Holding(self._replay, now)
        units = sorted(
            self._elements(proven=False)[0], key=lambda unit: (before.first_came(unit), unit.kind, str(unit.key))
        )
        self._notes.clear()
        pairs = [(before.element(unit), after.element(unit)) for unit in units if unit in after]
        gone = tuple(before.element(unit) for unit in units if unit not in after)
        changed = tuple((was, is_) for was, is_ in pairs if was.text != is_.text)
        came = () if gone or changed else tuple(map(after.element, self._keeping_out(now, after)))
        if not (gone or changed or came):
            self._notes.append("all that made it is still there: what has changed lies elsewhere in the windows")
        instead = next(
            (one for one in self._replay.rows(now) if _without_numbers(one) == _without_numbers(self._row)), None
        )
        return Departure(
            self._replay.registration.columns,
            tuple(map(to_json, self._row)),
            self._moment.at,
            now.at,
            gone,
            changed,
            came,
            None if instead is None else tuple(map(to_json, instead)),
            "; ".join(self._notes),
        )

    def _keeping_out(self, now: ReplayInstant, after: Holding) -> list[ElementUnit]:
        """Return new elements without which the row would still be there; empty if they are not the cause."""
        fresh = [unit for unit in after.units if unit not in self._holding]
        ground = [unit for unit in after.units if unit in self._holding]

        def keeps_out(some: Sequence[ElementUnit]) -> bool:
            self._budget.spend()
            return not _has(self._replay, now, self._key, frozenset(after.closed([*ground, *some])))

        try:
            return [] if not fresh or keeps_out([]) else smallest(fresh, keeps_out)
        except OutOfBudget:
            self._notes.append("the search for what keeps it out was given up")
            return []

    # --- elements ---

    def _holds(self, units: Collection[ElementUnit]) -> bool:
        self._budget.spend()
        return _has(self._replay, self._moment, self._key, frozenset(self._holding.closed(units)))

    def _elements(self, proven: bool = True) -> tuple[list[ElementUnit], bool]:
        """Return the elements that make the row, and whether none can be left out; for the rows of an aggregate this is
        tested only if `proven`."""
        lineage = self._lineage()
        candidates = self._holding.units
        counted = False
        try:
            if lineage is not None:
                near = self._holding.ordered(lineage.units)
                if self._holds(near):
                    candidates, counted = near, lineage.counted
            if counted and lineage is not None:
                return self._counted(candidates, lineage) if proven else (self._holding.closed(candidates), False)
            candidates = smallest(candidates, self._holds)
        except OutOfBudget:
            self._notes.append("the search for a smallest set was given up: some of these may not be needed")
            return self._holding.closed(candidates), False
        found = thinned(self._holding.closed(candidates), self._holds, self._holding.without)
        if not found.minimal:
            self._notes.append("some of these elements may not be needed")
        return found.items, found.minimal

    def _lineage(self) -> Lineage | None:
        context = self._replay.context(self._moment)
        finding = RowFinder(self._replay, context, self._holding.windows, Budget(self._budget.left // 2))
        try:
            return finding.lineage(self._replay.registration.plan, self._row)
        except (OutOfBudget, QueryError):
            return None

    def _counted(self, units: list[ElementUnit], lineage: Lineage) -> tuple[list[ElementUnit], bool]:
        """Return all elements that an aggregate counts, and whether the row would differ without any one of them."""
        units = self._holding.closed(units)
        self._notes.append(
            "1 match counts in this row" if lineage.rows == 1 else f"{lineage.rows:,} matches count in this row"
        )
        try:
            needed = all(not self._holds(self._holding.without(units, one)) for one in units)
        except OutOfBudget:
            return units, False
        if not needed:
            self._notes.append("the same values would come of fewer elements")
        return units, needed

    # --- since when, and until when ---

    def _entered_at(self) -> int | None:
        moments = self._replay.moments[: self._replay.position(self._moment) + 1]
        since: int | None = None
        for moment, there in _presence(self._replay, moments, self._key):
            since = (moment.at if since is None else since) if there else None
        if since == moments[0].at and moments[0].index > self._replay.query.cursor.first_index:
            self._notes.append("the row entered before the recording begins")
            return None
        return since

    def _leaves_at(self) -> int | None:
        """Return the first later instant at which the row is gone when no further event comes."""
        ahead = Replay(replace(self._replay.recording, ends_at=None), until=self._moment.at)
        if self._replay.query.once:
            self._notes.append("the query answers once")
            return None
        if isinstance(ahead.query.cursor.instants, ArrivalInstants):
            self._notes.append("the query is evaluated when something comes: nothing leaves by itself")
            return None
        for moment, there in _presence(ahead, _later(ahead, self._moment), self._key):
            if not there:
                return moment.at
        if ahead.query.is_volatile:
            self._notes.append(f"the query reads the clock or chance: {_MOST_LOOKED_AT:,} instants were looked at")
        return None


def _without_numbers(row: AnswerRow) -> tuple[object, ...]:
    said = map(to_json, row)
    return tuple(None if isinstance(one, int | float) and not isinstance(one, bool) else repr(one) for one in said)


def _later(replay: Replay, moment: ReplayInstant) -> Iterator[ReplayInstant]:
    """Yield an instant, then those at which something leaves; for a query that depends on the clock or on chance, all
    that follow."""
    query, instants = replay.query, replay.query.cursor.instants
    assert instants is not None
    for _ in range(_MOST_LOOKED_AT if query.is_volatile else _MOST_CHANGES):
        yield moment
        changes = (query.cursor.next_change(*item, moment.index) for item in replay.views(moment).items())
        index = moment.index + 1 if query.is_volatile else min(changes, default=END)
        if index >= END:
            return
        moment = ReplayInstant(index, instants.instant(index))


def _has(replay: Replay, moment: ReplayInstant, key: object, kept: Collection[ElementUnit] | None = None) -> bool:
    """Return whether the plain query has a row; a query that fails, for example over too few elements, has none."""
    try:
        return any(row_key(row) == key for row in replay.rows(moment, kept))
    except QueryError:
        return False


def _presence(
    replay: Replay, moments: Sequence[ReplayInstant] | Iterator[ReplayInstant], key: object
) -> Iterator[tuple[ReplayInstant, bool]]:
    """Yield, for each of some instants in order, whether a row is there."""
    flow = None if replay.planned.root is None or replay.keeps_trails else replay.flow()
    count = 0
    for moment in moments:
        if flow is not None:
            try:
                replay.advance(flow, moment, replay.views(moment))
            except (QueryError, PartTooLarge):
                flow = None  # operators that failed within an instant cannot continue
        if flow is None:
            yield moment, _has(replay, moment, key)
            continue
        count += sum(row_key(row) == key for row in flow.maintained.entered())
        count -= sum(row_key(row) == key for row in flow.maintained.left())
        yield moment, count > 0
