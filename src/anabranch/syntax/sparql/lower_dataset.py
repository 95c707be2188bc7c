"""Dataset clauses to sources: the default graph, the graphs and windows by name, and the evaluation instants.

Rules where the papers are silent:
  - Without any static FROM clause the default graph also holds the session's repository.
  - GRAPH <s> of a stream that was given without NAMED is the default graph without the other streams (so the paper's
    FullStreets finds the static triples that it asks for inside of GRAPH); GRAPH ?g ranges over these when the query
    names no graph with NAMED.
  - A window without STEP moves with COMPUTED EVERY, else it tumbles. Without COMPUTED EVERY the query is evaluated at
    every step; when steps differ, at every multiple of their greatest common divisor.

Invariant: a window has a step only where it does not move at the evaluation instants of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from anabranch.algebra.operators import DEFAULT_GRAPH, MergedSource, Static, Stream, TripleSource, Window
from anabranch.errors import closest
from anabranch.model.temporal import Duration
from anabranch.model.terms import Iri
from anabranch.syntax.common import LoweringProblems
from anabranch.syntax.sparql import tree as t

MICROS_PER_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The evaluation instants of a query: `every` duration, at each so many `arrivals`, or once."""

    every: Duration | None = None
    arrivals: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    default: TripleSource
    graphs: Mapping[Iri, TripleSource] = field(default_factory=dict)  # the source of GRAPH for each name
    named: tuple[Iri, ...] = ()  # the graphs that GRAPH ?g ranges over
    windows: Mapping[Iri, Window] = field(default_factory=dict)  # RSP-QL's named windows
    streams: Mapping[Iri, tuple[Window, ...]] = field(default_factory=dict)  # the windows on a stream, for timestamp()
    closed: bool = False  # whether there are no other graphs

    def graph(self, iri: Iri) -> TripleSource | None:
        """The graph under a name; None when the dataset certainly has none."""
        found = self.graphs.get(iri)
        if found is None and not self.closed:
            return Static(iri.value)
        return found

    def windows_of(self, iri: Iri) -> tuple[Window, ...]:
        """The windows on a stream, by the stream's or the window's name."""
        if iri in self.windows:
            return (self.windows[iri],)
        return self.streams.get(iri, ())


def merged(parts: Iterable[Window | Static]) -> TripleSource:
    """Several parts as one source; a single one is itself."""
    unique = tuple(dict.fromkeys(parts))
    return unique[0] if len(unique) == 1 else MergedSource(unique)


def plain_dataset(clauses: tuple[t.FromTree | t.FromStreamTree, ...], graphs: tuple[str, ...] | None) -> Dataset:
    """Return the dataset of a plain query: its own clauses, else the session's graphs (None: they are not known)."""
    static = [clause for clause in clauses if isinstance(clause, t.FromTree)]
    if not static:
        names = tuple(Iri(name) for name in graphs or ())
        found = {iri: Static(iri.value) for iri in names}
        return Dataset(Static(DEFAULT_GRAPH), found, names, closed=graphs is not None)
    default = merged(Static(clause.iri.value) for clause in static if not clause.named)
    named = tuple(dict.fromkeys(clause.iri for clause in static if clause.named))
    return Dataset(default, {iri: Static(iri.value) for iri in named}, named, closed=True)


class DatasetLowering:
    """The dataset and the rhythm of one continuous statement."""

    def __init__(self, statement: t.StatementTree, dialect: t.Dialect, problems: LoweringProblems) -> None:
        clauses = statement.query.dataset
        self._problems = problems
        self._dialect = dialect
        self._statement = statement
        self._static = [clause for clause in clauses if isinstance(clause, t.FromTree)]
        self._streams = [clause for clause in clauses if isinstance(clause, t.FromStreamTree)]

    # --- rhythm ---

    def rhythm(self) -> Rhythm:
        self._check()
        statement = self._statement
        if statement.computed_every is not None:
            return Rhythm(statement.computed_every)
        if self._dialect == "lupos" and not self._streams:
            match statement.query.intermediate:
                case None:
                    return Rhythm(arrivals=0)
                case t.IntermediateTree("duration", size):
                    return Rhythm(_of_millis(size))
                case t.IntermediateTree(_, size):
                    return Rhythm(arrivals=size)
        steps = [self._step(clause.range) for clause in self._streams if isinstance(clause.range, t.TimeRangeTree)]
        if steps:
            return Rhythm(self._common(steps))
        counts = [clause.range.step or 1 for clause in self._streams if isinstance(clause.range, t.CountRangeTree)]
        return Rhythm(arrivals=gcd(*counts)) if counts else Rhythm()

    def _step(self, given: t.TimeRangeTree) -> Duration:
        return given.step or self._statement.computed_every or given.width

    def _common(self, steps: list[Duration]) -> Duration:
        """The greatest common divisor of the steps."""
        if len({_length(step) for step in steps}) == 1:
            return steps[0]
        lengths = [micros(step) for step in steps]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths):
            self._problems.add(
                "SPQ-113",
                "a step of months has no common measure with the other steps",
                self._streams[-1].span,
                "",
                "say how often: COMPUTED EVERY 1d",
            )
            return steps[0]
        return _of_micros(gcd(*known))

    # --- sources ---

    def dataset(self, rhythm: Rhythm) -> Dataset:
        windows = {id(clause): self._window(clause, rhythm) for clause in self._streams}
        default = [Static(clause.iri.value) for clause in self._static if not clause.named]
        if not self._static and self._dialect != "lupos":
            default = [Static(DEFAULT_GRAPH)]
        open_streams = [clause for clause in self._streams if not clause.named]
        named_streams = [clause for clause in self._streams if clause.named]
        moving = [windows[id(clause)] for clause in open_streams]
        if self._dialect == "lupos" and not self._streams:
            moving = [Window(Stream(None), unbounded=True)]

        streams: dict[Iri, tuple[Window, ...]] = {}
        for clause in self._streams:
            streams[clause.stream] = (*streams.get(clause.stream, ()), windows[id(clause)])
        graphs: dict[Iri, TripleSource] = {}
        for clause in open_streams:
            own = [windows[id(one)] for one in open_streams if one.stream == clause.stream]
            graphs[clause.stream] = merged([*default, *own])
        given_open = tuple(graphs)
        named_graphs = [clause.iri for clause in self._static if clause.named]
        graphs.update((iri, Static(iri.value)) for iri in named_graphs)
        for clause in named_streams:
            same = [windows[id(one)] for one in named_streams if (one.window or one.stream) == _name(clause)]
            graphs[_name(clause)] = merged(same)
        plain_named = [clause.stream for clause in named_streams if clause.window is None]
        named = tuple(dict.fromkeys((*named_graphs, *plain_named))) or given_open
        return Dataset(merged([*default, *moving]), graphs, named, self._named_windows(windows), streams)

    def _window(self, clause: t.FromStreamTree, rhythm: Rhythm) -> Window:
        stream = Stream(clause.stream.value)
        match clause.range:
            case t.CountRangeTree(count):
                return Window(stream, count=count)
            case t.TimeRangeTree(width):
                step = self._step(clause.range)
                moves_alike = rhythm.every is not None and _length(step) == _length(rhythm.every)
                return Window(stream, width=width, step=None if moves_alike else step)

    def _named_windows(self, windows: Mapping[int, Window]) -> dict[Iri, Window]:
        found: dict[Iri, Window] = {}
        for clause in self._streams:
            if clause.window is None:
                continue
            if clause.window in found:
                self._problems.add(
                    "SPQ-117",
                    f"there is a window <{clause.window.value}> already",
                    clause.span,
                    "",
                    "give each window a name of its own",
                )
            found[clause.window] = windows[id(clause)]
        return found

    # --- checks ---

    def _check(self) -> None:
        """Durations reach down to a microsecond; the grammar lets shorter ones through."""
        given: list[tuple[str, Duration, t.TreePart]] = []
        for clause in self._streams:
            match clause.range:
                case t.TimeRangeTree(width, None):
                    given.append(("RANGE", width, clause.range))
                case t.TimeRangeTree(width, step) if step is not None:
                    given.extend((("RANGE", width, clause.range), ("STEP", step, clause.range)))
        if self._statement.computed_every is not None:
            given.append(("COMPUTED EVERY", self._statement.computed_every, self._statement))
        for what, duration, part in given:
            if not any((duration.months, duration.days, duration.seconds, duration.nanoseconds // 1000)):
                self._problems.add("SPQ-112", f"{what} needs a duration of at least a microsecond", part.span)


def lupos_window(part: t.LuposWindowTree) -> Window:
    """The window of a LUPOS group, over the session's only stream."""
    if part.kind == "triples":
        return Window(Stream(None), count=part.size)
    return Window(Stream(None), width=_of_millis(part.size))


def unknown_window(name: Iri, dataset: Dataset, part: t.TreePart, problems: LoweringProblems) -> None:
    known = [iri.value for iri in dataset.windows]
    near = closest(name.value, known, 1)
    listed = ", ".join(f"<{value}>" for value in known) or "none"
    hint = f"did you mean <{near[0]}>?  " if near else ""
    problems.add(
        "SPQ-111",
        f"no window <{name.value}>",
        part.span,
        "no FROM NAMED WINDOW declares it",
        f"{hint}Windows of this query: {listed}.",
    )


def _name(clause: t.FromStreamTree) -> Iri:
    return clause.window or clause.stream


def micros(duration: Duration) -> int | None:
    """The length in microseconds; None when months are in it, which have no fixed length."""
    return None if duration.months else duration.micros


def _length(duration: Duration) -> tuple[int, int]:
    return duration.months, duration.micros


def _of_millis(millis: int) -> Duration:
    return _of_micros(millis * 1000)


def _of_micros(amount: int) -> Duration:
    seconds, rest = divmod(amount, MICROS_PER_SECOND)
    return Duration(seconds=seconds, nanoseconds=rest * 1000)
