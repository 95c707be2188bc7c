"""Connectivity in sliding windows as a separate workload: edges in; per instant, the connected pairs, the components
and their changes out.

    workload = ConnectivityWorkload("PT1H", "PT3M", pairs=[("a", "b")])
    for answer in workload.push(sources, targets, times):
        print(answer.at, answer.connected, len(answer.components()))
    for answer in workload.finish():
        ...

Windows are trailing: at instant w of the width a, the edges of (w - a, w]. An instant is answered when an edge comes
whose time is past it, or the input has ended; the last instant is the first at or behind the last edge. An edge whose
time lies before that of earlier ones is taken in as long as a window still to come holds it, else it is late. Of
consecutive instants with an empty window only the first is answered.

Law: at every instant the answer is that of a search over the edges of its window that had come when the instant was
answered. It depends on the order of the edges, not on how they are cut into pushes.

State: that of the index (`delta.connectivity`), the texts of vertices that a window reaches, one count per slide of the
window. Work per slide: that of the index for its edges and for the pairs; O(vertices in the window) for components, O(n
log n) for changes, where they are asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.connectivity.bic import BicIndex
from anabranch.delta.connectivity.recency import RecencyTree
from anabranch.delta.connectivity.vertices import WindowedIndex
from anabranch.delta.operators.base import Size
from anabranch.engine.connectivity.changes import ComponentChanges, Labels, WindowComponents
from anabranch.engine.connectivity.names import VertexId, VertexIds, VertexNames
from anabranch.engine.connectivity.windows import ExtentLike, WindowSequence, WindowShape
from anabranch.errors import EngineError
from anabranch.formats.arrow_arrays import numbers
from anabranch.model.instants import parse_instant
from anabranch.planner.choices import IndexName

EdgeTimes: TypeAlias = npt.NDArray[np.int64] | pa.Array | pa.ChunkedArray | Iterable[int]

_FARTHEST = 1 << 61  # microseconds; widths are added to times
_BEGINNING = -(1 << 62)
_TEXTS_KEPT = 4096  # below so many texts none is forgotten


class ConnectivityAnswer:
    """The answer at an instant. Components and changes are computed on demand, before the next answer is taken."""

    __slots__ = ("_moment", "_workload", "at", "connected", "edges", "opens_at")

    def __init__(
        self, workload: ConnectivityWorkload, moment: int, at: int, opens_at: int, connected: Mask, edges: int
    ) -> None:
        self._workload = workload
        self._moment = moment
        self.at = at
        self.opens_at = opens_at
        self.connected = connected
        self.edges = edges

    def __repr__(self) -> str:
        return f"ConnectivityAnswer({self.at}: {int(self.connected.sum())} of {len(self.connected)} pairs connected)"

    def components(self) -> WindowComponents:
        """The components of the vertices that have an edge in the window."""
        return self._workload._components(self._moment)

    def changes(self) -> ComponentChanges:
        """Return the changes of the components since the last call; at first all components appear."""
        return self._workload._changes(self._moment)


class ConnectivityWorkload:
    """The workload.

    Windows and slides are durations (ISO 8601 text, `timedelta`), or numbers of edges (integers, or text such as
    `1000e`). `starting_at` is the first instant, in microseconds, as ISO 8601 text or a datetime; by default the first
    multiple of the slide since the epoch that is not before the first edge. `chunk` is BIC's, in slides.
    """

    def __init__(
        self,
        window: ExtentLike,
        slide: ExtentLike,
        *,
        pairs: Iterable[tuple[VertexId, VertexId]] = (),
        index: IndexName = "recency",
        chunk: int | None = None,
        starting_at: int | str | datetime | None = None,
    ) -> None:
        self._shape = WindowShape.of(window, slide)
        self._starting_at = _instant(starting_at)
        if self._shape.counts and starting_at is not None:
            raise EngineError("windows of edges begin with the first edge\nhint: leave out starting_at")
        self._windowed = WindowedIndex(_index(index, chunk, self._shape.widest))
        self._names = VertexNames()
        self.pairs: tuple[tuple[VertexId, VertexId], ...] = tuple((left, right) for left, right in pairs)
        self._left = self._asked([left for left, _ in self.pairs])
        self._right = self._asked([right for _, right in self.pairs])
        self._names.are_texts = False  # the edges decide whether names are returned as texts
        self._windows: WindowSequence | None = None
        self._next = 0  # the window that is answered next
        self._opens = 0  # the tick at which the window of the last answer opens
        self._latest = _BEGINNING  # the latest time of all edges
        self._gone_by = 0  # the first window that no edge so far reaches
        self._told_empty = False  # the last answer was empty, and nothing has come since
        self._counts: dict[int, int] = {}  # edges by the window that they leave at
        self._living = 0  # edges in the window
        self._moment = 0  # answers and insertions so far
        self._labels: Labels | None = None  # of this moment, computed on demand
        self._changed: ComponentChanges | None = None  # the same
        self._before = Labels.none()
        self._texts_left = 0
        self._jobs: deque[Iterator[ConnectivityAnswer]] = deque()  # answers that were not taken yet
        self._finished = False
        self.edges = 0
        """How many edges have come, late ones included."""
        self.late = 0
        """How many came when all windows that hold them had been answered."""
        self.outside = 0
        """How many lie where no window is: between two, or before the first."""
        self.late_places: Ids = np.empty(0, np.int64)
        """The places of late edges in the last push."""

    def _asked(self, names: list[VertexId]) -> Ids:
        return self._names.numbers_of(names) if names else np.empty(0, np.int64)

    # --- edges ---

    def push(
        self, sources: VertexIds, targets: VertexIds, times: EdgeTimes | None = None
    ) -> Iterator[ConnectivityAnswer]:
        """Take in edges, and yield the answers of the instants that they complete.

        Ids are texts or integers, times UTC microseconds; windows of edges need no times. The edges are taken in while
        the answers are consumed. Answers of one push that were not consumed come first in the next.
        """
        if self._finished:
            raise EngineError("the workload is finished: no edges can come any more")
        return self._after_others(self._pushed(sources, targets, times))

    def finish(self) -> Iterator[ConnectivityAnswer]:
        """End the input: yield the answers up to the first instant that is not before the last edge."""
        if not self._finished:
            self._finished = True
            return self._after_others(self._last_answers())
        return self._after_others(iter(()))

    def _after_others(self, answers: Iterator[ConnectivityAnswer]) -> Iterator[ConnectivityAnswer]:
        """Yield answers behind those that were not consumed yet."""
        self._jobs.append(answers)

        def all_until_these() -> Iterator[ConnectivityAnswer]:
            while self._jobs and answers in self._jobs:
                job = self._jobs[0]
                yield from job
                if self._jobs and self._jobs[0] is job:
                    self._jobs.popleft()

        return all_until_these()

    def _last_answers(self) -> Iterator[ConnectivityAnswer]:
        if self._windows is not None:
            last = int(self._windows.closing(np.array([self._latest]))[0])
            yield from self._answers(self._windows, last + 1)

    def _edges(self, sources: VertexIds, targets: VertexIds, times: EdgeTimes | None) -> tuple[Ids, Ids, Ids]:
        left, right = self._names.numbers_of(sources), self._names.numbers_of(targets)
        if self._shape.counts:
            found = np.arange(self.edges + 1, self.edges + len(left) + 1)
        elif times is None:
            raise EngineError("windows of time need the times of the edges")
        else:
            found = _micros(times)
        if not len(left) == len(right) == len(found):
            raise EngineError(f"{len(left)} sources, {len(right)} targets and {len(found)} times are no edges")
        return left, right, found

    def _pushed(self, sources: VertexIds, targets: VertexIds, times: EdgeTimes | None) -> Iterator[ConnectivityAnswer]:
        left, right, at = self._edges(sources, targets, times)
        self.late_places = np.empty(0, np.int64)
        if not len(at):
            return
        windows = self._windows = self._windows or self._shape.windows(int(at[0]), self._starting_at)
        self.edges += len(at)
        latest = np.maximum.accumulate(np.maximum(at, self._latest))
        self._latest = int(latest[-1])
        leaving = windows.leaving(at)
        # The window that is next when an edge has come; earlier windows are answered without it.
        current = windows.closing(latest)
        missed = leaving <= current
        if missed.any():
            outside = missed & (windows.closing(at) >= leaving)
            self.late_places = np.flatnonzero(missed & ~outside)
            self.late += len(self.late_places)
            self.outside += int(outside.sum())
            taken = np.flatnonzero(~missed)
            left, right, leaving, when = left[taken], right[taken], leaving[taken], current[taken]
        else:
            when = current
        bounds = [0, *(np.flatnonzero(np.diff(when)) + 1).tolist(), len(when)]
        for first, last in pairwise(bounds if len(when) else ()):
            yield from self._answers(windows, int(when[first]))
            self._insert(left[first:last], right[first:last], leaving[first:last])
        yield from self._answers(windows, int(current[-1]))
        self._forget_texts()

    def _insert(self, left: Ids, right: Ids, leaving: Ids) -> None:
        self._moment += 1
        self._told_empty = False
        self._windowed.insert(left, right, leaving)
        windows, counts = np.unique(leaving, return_counts=True)
        for number, count in zip(windows.tolist(), counts.tolist(), strict=True):
            self._counts[number] = self._counts.get(number, 0) + count
        self._living += len(leaving)
        self._gone_by = max(self._gone_by, int(windows[-1]))

    def _forget_texts(self) -> None:
        """Forget the texts of vertices that no window reaches, whenever there are twice as many as were left."""
        if len(self._names) < max(2 * self._texts_left, _TEXTS_KEPT):
            return
        self._windowed.sweep()
        vertices = self._windowed.vertices
        self._names.keep(np.concatenate([vertices.ids[vertices.living()], self._left, self._right, self._before.roots]))
        self._texts_left = len(self._names)

    # --- answers ---

    def _answers(self, windows: WindowSequence, until: int) -> Iterator[ConnectivityAnswer]:
        """Yield the answers of the windows before this one."""
        while self._next < until:
            if self._told_empty:
                self._next = until
            else:
                yield self._answer(windows, self._next)
                self._told_empty = self._gone_by <= self._next
                self._next += 1

    def _answer(self, windows: WindowSequence, number: int) -> ConnectivityAnswer:
        self._moment += 1
        self._labels = self._changed = None
        if self._gone_by <= number:
            self._counts.clear()
            self._living = 0
        else:
            self._living -= self._counts.pop(number, 0)
        self._opens = number + 1
        self._windowed.forget(self._opens)
        connected = self._windowed.connected(self._left, self._right, self._opens)
        return ConnectivityAnswer(
            self, self._moment, windows.at(number), windows.opens_at(number), connected, self._living
        )

    def _components(self, moment: int) -> WindowComponents:
        self._check(moment)
        if self._labels is not None:
            roots, sizes = self._labels.roots, self._labels.sizes
        else:
            roots, sizes = self._windowed.components(self._opens)
        return WindowComponents(roots, sizes, self._living, self._names.names_of)

    def _changes(self, moment: int) -> ComponentChanges:
        self._check(moment)
        if self._changed is None:
            known = self._windowed.vertices
            vertices = self._windowed.living(self._opens)
            places = known.known(vertices)
            self._labels = Labels.of(vertices, places, self._windowed.index.roots(places, self._opens), known.ids)
            self._changed = ComponentChanges(self._before, self._labels, self._names.names_of)
            self._before = self._labels
        return self._changed

    def _check(self, moment: int) -> None:
        if moment != self._moment:
            raise EngineError(
                "the window of this answer has moved on\n"
                "hint: ask an answer for its components and changes before the next one is taken"
            )

    # --- what is kept ---

    @property
    def counts_edges(self) -> bool:
        """Whether windows are measured in edges, and need no times."""
        return self._shape.counts

    @property
    def has_gaps(self) -> bool:
        """Whether the windows are shorter than the slide, so that edges may be in none."""
        return self._shape.has_gaps

    @property
    def texts_kept(self) -> int:
        """The number of vertices whose names are in memory; integers need no memory."""
        return len(self._names)

    def size(self) -> Size:
        """Return how many vertices the index knows, and the bytes of its arrays and of the names that are kept."""
        known = self._windowed.size()
        return Size(known.rows, known.bytes + self._names.nbytes)


def _index(name: str, chunk: int | None, widest: int) -> RecencyTree | BicIndex:
    if chunk is not None and chunk < 1:
        raise EngineError(f"a chunk has at least one slide, not {chunk}")
    match name:
        case "recency":
            if chunk is not None:
                raise EngineError("a recency tree has no chunks\nhint: leave out the chunk, or take the index `bic`")
            return RecencyTree()
        case "bic":
            return BicIndex(widest, chunk)
    raise EngineError(f"there is no index `{name}`\nhint: there are {' and '.join(get_args(IndexName))}")


def _instant(value: int | str | datetime | None) -> int | None:
    match value:
        case str():
            return parse_instant(value)
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return value


def _micros(times: Any) -> Ids:
    if isinstance(times, pa.Array | pa.ChunkedArray):
        if times.null_count:
            raise EngineError("an edge has no time: there is a null among the times")
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("us", tz=times.type.tz), safe=False).cast(pa.int64())
        times = numbers(times)
    found = np.asarray(times if isinstance(times, np.ndarray) else list(times))
    if found.dtype.kind == "M":
        found = found.astype("datetime64[us]").astype(np.int64)
    if len(found) and found.dtype.kind not in "iu":
        raise EngineError(f"times are whole microseconds since 1970, not {found.dtype}")
    found = found.astype(np.int64, copy=False)
    if len(found) and max(-int(found.min()), int(found.max())) >= _FARTHEST:
        raise EngineError("times are microseconds since 1970: one of them is too far away\nhint: are they nanoseconds?")
    return found
