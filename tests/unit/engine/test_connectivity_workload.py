"""A connectivity workload says in every window what a search over the window's edges says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.delta.connectivity.naive import labels_of

from anabranch import ConnectivityAnswer, ConnectivityWorkload
from anabranch.engine.connectivity.changes import CHANGE_KINDS, ComponentChange
from anabranch.engine.connectivity.windows import WindowShape
from anabranch.errors import EngineError
from anabranch.model.instants import Instant, parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.windows import bounds

INDEXES = ("recency", "bic")
SECOND = 1_000_000
SUITES = Path(os.environ.get("ANABRANCH_SUITES") or Path(__file__).parents[4] / "shared" / "suites")
MESSAGES = SUITES / "datasets" / "CollegeMsg.csv"

Parts = frozenset[frozenset[str]]
Told = tuple[int, tuple[bool, ...], int, Parts, frozenset[tuple[str, Parts, Parts]]]


# --- the naive model ---


@dataclass(frozen=True)
class Stream:
    """Edges as they come, and a width, a slide and a first instant in the same unit as times."""

    edges: list[tuple[str, str, int]]
    width: int
    slide: int
    start: int


def answers_by_law(stream: Stream, pairs: Sequence[tuple[str, str]]) -> tuple[list[Told], list[int], int]:
    """Edge by edge and window by window: the answers, the places of late edges, and how many are in no window."""
    told: list[Told] = []
    late: list[int] = []
    outside = 0
    came: list[tuple[str, str, int]] = []
    before: Parts = frozenset()
    was_empty = False
    next_number = 0

    def answer() -> None:
        nonlocal before, was_empty
        at = stream.start + next_number * stream.slide
        edges = [edge for edge in came if at - stream.width < edge[2] <= at]
        if not edges and was_empty:
            return
        parts = components_of(edges)
        connected = tuple(left == right or any({left, right} <= part for part in parts) for left, right in pairs)
        told.append((at, connected, len(edges), parts, changes_of(before, parts)))
        before, was_empty = parts, not edges

    latest = -(10**18)
    for place, (left, right, time) in enumerate(stream.edges):
        latest = max(latest, time)
        while stream.start + next_number * stream.slide < latest:
            answer()
            next_number += 1
        near = (time - stream.start) // stream.slide
        holding = [
            k for k in range(max(0, near - 1), near + stream.width // stream.slide + 3) if holds(stream, k, time)
        ]
        if not holding:
            outside += 1
        elif holding[-1] < next_number:
            late.append(place)
        came.append((left, right, time))
    answer()
    return told, late, outside


def holds(stream: Stream, number: int, time: int) -> bool:
    at = stream.start + number * stream.slide
    return at - stream.width < time <= at


def components_of(edges: Sequence[tuple[str, str, int]]) -> Parts:
    names = sorted({name for edge in edges for name in edge[:2]})
    places = {name: place for place, name in enumerate(names)}
    pairs = np.array([[places[left], places[right]] for left, right, _ in edges], np.int64).reshape(-1, 2)
    labels = labels_of(len(names), pairs).tolist() if names else []
    return frozenset(
        frozenset(name for name, label in zip(names, labels, strict=True) if label == one) for one in set(labels)
    )


def changes_of(before: Parts, after: Parts) -> frozenset[tuple[str, Parts, Parts]]:
    found: set[tuple[str, Parts, Parts]] = set()
    nothing: Parts = frozenset()
    for part in after:
        sources = frozenset(old for old in before if old & part)
        if not sources:
            found.add(("appear", nothing, frozenset([part])))
        elif len(sources) > 1:
            found.add(("merge", sources, frozenset([part])))
    for part in before:
        targets = frozenset(new for new in after if new & part)
        if not targets:
            found.add(("vanish", frozenset([part]), nothing))
        elif len(targets) > 1:
            found.add(("split", frozenset([part]), targets))
        else:
            (target,) = targets
            if part != target and all(not old & target for old in before - {part}):
                kind = "grow" if len(target) > len(part) else "shrink" if len(target) < len(part) else "exchange"
                found.add((kind, frozenset([part]), targets))
    return frozenset(found)


def told_by(workload: ConnectivityWorkload, answers: Iterator[ConnectivityAnswer]) -> Iterator[Told]:
    before: dict[str, frozenset[str]] = {}
    for answer in answers:
        changes = list(answer.changes())
        parts = _parts(workload)
        named = {name: part for part in parts for name in part}
        assert sorted(len(part) for part in parts) == sorted(answer.components().sizes.tolist())
        assert all(len(named[str(one.name)]) == one.size for one in answer.components())
        assert sum(answer.changes().counts.values()) == len(changes)
        seen = [_spelled(change, before, named) for change in changes]
        assert len(seen) == len(set(seen))
        yield int(answer.at), tuple(answer.connected.tolist()), answer.edges, parts, frozenset(seen)
        before = named


def _parts(workload: ConnectivityWorkload) -> Parts:
    """The components by their members, which an answer does not tell."""
    windowed, names = workload._windowed, workload._names
    ids = windowed.living(workload._opens)
    roots = windowed.roots(ids, workload._opens)
    members = [str(name) for name in names.names_of(ids)]
    return frozenset(
        frozenset(name for name, root in zip(members, roots.tolist(), strict=True) if root == one)
        for one in set(roots.tolist())
    )


def _spelled(change: ComponentChange, before: dict[str, frozenset[str]], after: dict[str, frozenset[str]]) -> Any:
    sides = []
    for components, named in ((change.before, before), (change.after, after)):
        parts = [named[str(one.name)] for one in components]
        assert [len(part) for part in parts] == [one.size for one in components]
        assert [one.size for one in components] == sorted((one.size for one in components), reverse=True)
        sides.append(frozenset(parts))
    return change.kind, *sides


# --- against the law ---


def random_stream(seed: int) -> Stream:
    """Loops, copies, gaps in time, edges that come late, texts and integers as ids; windows that are no multiple of the
    slide, and shorter than it."""
    random = np.random.default_rng(seed)
    slide = int(random.integers(1, 12)) * SECOND
    width = int(random.choice([slide, 3 * slide, slide // 2 + 1, int(random.integers(1, 60)) * SECOND]))
    names = [str(number) if number % 2 else f"user {number}" for number in range(int(random.integers(3, 25)))]
    edges: list[tuple[str, str, int]] = []
    now = int(random.integers(-50, 50)) * SECOND
    for _ in range(int(random.integers(1, 120))):
        now += int(random.choice([0, 1, 2, 400], p=[0.4, 0.37, 0.2, 0.03]) * SECOND * random.random())
        behind = int(random.integers(0, 40)) * SECOND if random.random() < 0.2 else 0
        left, right = random.choice(names, 2)
        edges.append((str(left), str(right), now - behind))
        if random.random() < 0.1:
            edges.append((str(right), str(left), now))
    start = -(-edges[0][2] // slide) * slide
    if random.random() < 0.3:
        start += int(random.integers(-30, 30)) * SECOND
    return Stream(edges, width, slide, start)


def in_pushes(
    workload: ConnectivityWorkload, edges: Sequence[tuple[str, str, int]], cuts: Sequence[int]
) -> Iterator[tuple[ConnectivityAnswer, None] | tuple[None, list[int]]]:
    """The answers of pushes that end at these places, and behind each push the places of late edges."""
    first = 0
    for last in [*cuts, len(edges)]:
        some = edges[first:last]
        sources, targets = pa.array([one[0] for one in some], pa.string()), [one[1] for one in some]
        for answer in workload.push(sources, targets, np.array([one[2] for one in some], np.int64)):
            yield answer, None
        yield None, [first + place for place in workload.late_places.tolist()]
        first = last
    for answer in workload.finish():
        yield answer, None


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("seed", range(60))
def test_every_answer_is_that_of_a_search_over_the_window(seed: int, index: Any) -> None:
    stream = random_stream(seed)
    random = np.random.default_rng(seed)
    names = sorted({name for edge in stream.edges for name in edge[:2]})
    pairs = [(str(left), str(right)) for left, right in random.choice([*names, "nobody"], (6, 2))]
    expected, expected_late, expected_outside = answers_by_law(stream, pairs)
    cuts = np.sort(random.integers(0, len(stream.edges) + 1, int(random.integers(0, 6)))).tolist()
    workload = ConnectivityWorkload(
        timedelta(microseconds=stream.width), timedelta(microseconds=stream.slide),
        pairs=pairs, index=index, starting_at=stream.start, chunk=seed % 4 or None if index == "bic" else None,
    )  # fmt: skip
    late: list[int] = []

    def answers() -> Iterator[ConnectivityAnswer]:
        for answer, places in in_pushes(workload, stream.edges, cuts):
            if answer is not None:
                yield answer
            late.extend(places or ())

    assert list(told_by(workload, answers())) == expected
    assert late == expected_late
    assert (workload.late, workload.outside, workload.edges) == (len(late), expected_outside, len(stream.edges))


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("seed", range(20))
def test_a_window_of_edges_holds_the_last_so_many(seed: int, index: Any) -> None:
    random = np.random.default_rng(seed)
    slide, width = int(random.integers(1, 8)), int(random.integers(1, 40))
    ends = random.integers(0, 20, (int(random.integers(1, 150)), 2))
    edges = [(str(left), str(right), place) for place, (left, right) in enumerate(ends.tolist(), 1)]
    expected, _, outside = answers_by_law(Stream(edges, width, slide, slide), [("1", "2")])
    workload = ConnectivityWorkload(width, f"{slide} edges", pairs=[(1, 2)], index=index)
    cut = int(random.integers(0, len(ends)))
    pushes = (workload.push(some[:, 0], some[:, 1]) for some in (ends[:cut], ends[cut:]))
    found = list(told_by(workload, chain(chain.from_iterable(pushes), _late(workload))))
    assert found == expected
    assert (workload.late, workload.outside) == (0, outside)


def _late(workload: ConnectivityWorkload) -> Iterator[ConnectivityAnswer]:
    yield from workload.finish()


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(("window", "slide"), [("P1D", "PT6H"), ("P7D", "P1D"), ("P1M", "P3D")])
def test_messages_of_students_are_connected_as_scipy_says(window: str, slide: str, index: Any) -> None:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there; ANABRANCH_SUITES names the folder of the suites")
    edges = np.loadtxt(MESSAGES, np.int64, delimiter=",")
    times = edges[:, 2] * SECOND
    asked = np.random.default_rng(7).integers(1, 200, (50, 2))
    workload = ConnectivityWorkload(window, slide, pairs=[(a, b) for a, b in asked.tolist()], index=index)
    answered = 0
    pushes = (workload.push(edges[i : i + 7000, 0], edges[i : i + 7000, 1], times[i : i + 7000]) for i in
              range(0, len(edges), 7000))  # fmt: skip
    for answer in chain(chain.from_iterable(pushes), _late(workload)):
        held = bounds("trailing", answer.at, parse_duration(window), 0)
        inside = edges[(times >= held.first) & (times < held.stop), :2]
        labels = labels_of(2000, inside)
        np.testing.assert_array_equal(answer.connected, labels[asked[:, 0]] == labels[asked[:, 1]])
        sizes = np.unique(labels[np.unique(inside)], return_counts=True)[1]
        components = answer.components()
        np.testing.assert_array_equal(components.sizes, np.sort(sizes)[::-1])
        assert (components.vertices, components.edges) == (len(np.unique(inside)), len(inside))
        for share, found in ((50, components.median), (99, components.p99), (100, components.largest)):
            assert found == (np.percentile(sizes, share, method="inverted_cdf") if len(sizes) else 0)
        answered += 1
    assert answered > 50
    assert workload.late == 0


@pytest.mark.parametrize(
    ("width", "slide"),
    [("PT7S", "PT3S"), ("P1M", "P1D"), ("P1M", "P1M"), ("P3D", "P1M"), ("P1M15D", "P2M"), ("PT0.0000005S", "PT1S")],
)
def test_an_edge_is_in_the_windows_that_the_model_says(width: str, slide: str) -> None:
    if width.startswith("PT0.0"):
        with pytest.raises(EngineError, match="longer than nothing"):
            WindowShape.of(width, slide)
        return
    shape, start = WindowShape.of(width, slide), parse_instant("2020-01-31T00:00Z")
    windows = shape.windows(start, start)
    reach = 40 * SECOND if "T" in width else 400 * 86_400 * SECOND
    times = np.random.default_rng(3).integers(start - reach, start + reach, 300)
    times[:5] = [windows.at(k) for k in range(5)]
    times[5:10] = [windows.opens_at(k) for k in range(5)]
    closing, leaving = windows.closing(times), windows.leaving(times)
    assert isinstance(shape.width, Duration)
    for number in range(15):
        held = bounds("trailing", windows.at(number), shape.width, 0)
        assert windows.opens_at(number) == held.opens_at
        inside = [held.contains(time) for time in times.tolist()]
        assert inside == ((closing <= number) & (number < leaving)).tolist()
        assert (leaving[np.array(inside)] - number <= shape.widest).all()


# --- the interface ---


def test_the_first_instant_is_the_first_multiple_of_the_slide_with_an_edge() -> None:
    workload = ConnectivityWorkload("PT1H", "PT15M")
    at = [datetime(2022, 10, 14, 14, minute, tzinfo=UTC) for minute in (40, 45, 46)]
    times = pa.array(at, pa.timestamp("us", tz="UTC"))
    answers = list(workload.push(["a", "b", "c"], ["b", "c", "d"], times)) + list(workload.finish())
    assert [str(answer.at) for answer in answers] == ["2022-10-14T14:45:00Z", "2022-10-14T15:00:00Z"]
    assert [str(answer.opens_at) for answer in answers] == ["2022-10-14T13:45:00Z", "2022-10-14T14:00:00Z"]
    assert [answer.edges for answer in answers] == [2, 3]


def test_a_long_silence_costs_one_answer() -> None:
    workload = ConnectivityWorkload("PT2S", "PT1S")
    times = np.array([0, 10**9 * SECOND])
    answers = list(workload.push(["a", "a"], ["b", "b"], times)) + list(workload.finish())
    assert [(int(answer.at) // SECOND, answer.edges) for answer in answers] == [(0, 1), (1, 1), (2, 0), (10**9, 1)]


def test_an_answer_is_asked_before_the_next_is_taken() -> None:
    workload = ConnectivityWorkload(2, 1)
    answers = list(workload.push(["a", "b"], ["b", "c"])) + list(workload.finish())
    with pytest.raises(EngineError, match="has moved on\nhint: ask an answer"):
        answers[0].components()
    assert len(answers[-1].components()) == 1
    with pytest.raises(EngineError, match="has moved on"):
        answers[0].changes()


def test_changes_are_those_since_they_were_last_asked_for() -> None:
    workload = ConnectivityWorkload(3, 1)
    kinds = []
    for answer in chain(workload.push(["a", "c", "b"], ["b", "d", "c"]), workload.finish()):
        if answer.at != 2:
            assert list(answer.changes()) == list(answer.changes())
            kinds.append([change.kind for change in answer.changes()])
    assert kinds == [["appear"], ["grow"]]


def test_vertices_that_return_under_other_numbers_are_the_same_vertices() -> None:
    workload = ConnectivityWorkload("PT1S", "PT1S")
    told, numbers = [], set()
    for round_ in range(4):
        others = [f"{round_} {number}" for number in range(100 + 10 * round_)]
        edges = [*((name, f"{name}!", 10 * round_ + 2) for name in others), ("a", "b", 10 * round_ + 2)]
        edges += [("a", "b", 10 * round_ + 3), ("a", "b", 10 * round_ + 4)]
        sources, targets, times = zip(*edges, strict=True)
        for answer in workload.push(list(sources), list(targets), np.array(times) * SECOND):
            if answer.at == (10 * round_ + 3) * SECOND:
                told.append([change.kind for change in answer.changes()])
                numbers |= set(workload._windowed.vertices.known(workload._names.numbers_of(["a"])).tolist())
    assert told == [["appear"], [], [], []]
    assert len(numbers) > 1


def test_what_was_not_taken_of_one_push_comes_first_in_the_next() -> None:
    workload = ConnectivityWorkload(1, 1)
    first = workload.push(["a", "b", "c"], ["b", "c", "d"])
    second = workload.push(["d"], ["e"])
    assert next(first).at == 1
    assert [answer.at for answer in second] == [2, 3]
    assert list(first) == []
    assert [answer.at for answer in workload.finish()] == [4]
    assert list(workload.finish()) == []
    with pytest.raises(EngineError, match="is finished"):
        workload.push(["e"], ["f"])


def test_both_indexes_and_all_cuts_call_a_component_the_same() -> None:
    random = np.random.default_rng(5)
    ends = [[f"v{number}" for number in row] for row in random.integers(0, 300, (2, 4000)).tolist()]
    found = []
    for index, step in (("recency", 4000), ("recency", 37), ("bic", 4000), ("bic", 450)):
        workload = ConnectivityWorkload(300, 50, index=index)  # type: ignore[arg-type]
        pushes = (workload.push(ends[0][i : i + step], ends[1][i : i + step]) for i in range(0, 4000, step))
        found.append([
            (list(answer.changes()), list(answer.components()))
            for answer in chain(chain.from_iterable(pushes), _late(workload))
        ])  # fmt: skip
    assert found[0] == found[1] == found[2] == found[3]
    assert {change.kind for changes, _ in found[0] for change in changes} == set(CHANGE_KINDS)


@pytest.mark.parametrize("index", INDEXES)
def test_texts_and_vertices_that_no_window_reaches_are_forgotten(index: Any) -> None:
    workload = ConnectivityWorkload(1000, 100, pairs=[("pinned", "also pinned")], index=index)
    most = 0
    for number in range(60):
        names = [f"{number}-{place}" for place in range(1001)]
        for answer in workload.push(names[:-1], names[1:]):
            assert answer.components().largest <= 1001
            assert list(answer.changes().of("appear", "vanish")) is not None
        most = max(most, workload.texts_kept)
    assert most < 10_000
    assert workload.size().rows < 10_000
    sources = ["pinned"] * 1000
    assert [answer.connected.tolist() for answer in workload.push(sources, ["also pinned"] * 1000)][-1] == [True]


# --- refusals ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"window": "PT1H", "slide": "PT0S"}, "the slide must be longer than nothing"),
        ({"window": 0, "slide": 1}, "the window must be at least one edge"),
        ({"window": "PT1H", "slide": 50}, "a window of PT1H does not go with a slide of 50 edges\nhint: give both"),
        ({"window": "an hour", "slide": 50}, "the window: cannot read `an hour`"),
        ({"window": "P1000D", "slide": "PT0.000001S"}, "has too many slides"),
        ({"window": 5, "slide": 5, "index": "tree"}, "there is no index `tree`\nhint: there are recency and bic"),
        ({"window": 5, "slide": 5, "chunk": 2}, "a recency tree has no chunks"),
        ({"window": 5, "slide": 5, "index": "bic", "chunk": 0}, "a chunk has at least one slide"),
        ({"window": 5, "slide": 5, "starting_at": 3}, "windows of edges begin with the first edge"),
        ({"window": 5, "slide": 5, "pairs": [("a", None)]}, "ids are texts or integers, not None"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(EngineError) as caught:
        ConnectivityWorkload(**arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("sources", "targets", "times", "said"),
    [
        (["a"], ["b"], None, "need the times"),
        (["a"], ["b", "c"], [1], "1 sources, 2 targets and 1 times are no edges"),
        (["a"], ["b"], [1.5], "times are whole microseconds since 1970, not float64"),
        (["a"], ["b"], [2**62], "too far away\nhint: are they nanoseconds?"),
        ([True], ["b"], [1], "ids are texts or integers, not True"),
        (pa.array(["a", None]), ["b", "c"], [1, 2], "there is a null among the ids"),
        (pa.array([1.5]), ["b"], [1], "ids are texts or integers, not double"),
        (["a"], ["b"], pa.array([None], pa.int64()), "an edge has no time"),
    ],
)
def test_what_is_no_edge_is_refused(sources: Any, targets: Any, times: Any, said: str) -> None:
    workload = ConnectivityWorkload("PT1S", "PT1S")
    with pytest.raises(EngineError) as caught:
        list(workload.push(sources, targets, times))
    assert said in str(caught.value)
    assert [answer.edges for answer in [*workload.push(["a"], ["b"], [0]), *workload.finish()]] == [1]


def test_a_first_instant_may_be_text_or_a_datetime() -> None:
    for start in ("1970-01-01T00:00:05Z", datetime(1970, 1, 1, 0, 0, 5), 5 * SECOND):
        workload = ConnectivityWorkload("PT2S", "PT10S", starting_at=start)
        answers = list(workload.push(["a", "b"], ["b", "c"], np.array([3, 4]) * SECOND)) + list(workload.finish())
        assert [(answer.at, answer.edges) for answer in answers] == [(Instant(5 * SECOND), 1)]
        assert workload.outside == 1
        assert workload.has_gaps
