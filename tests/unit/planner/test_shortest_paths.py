"""Shortest paths as facts: those of the plain search, found from the cheaper side, for whoever asks, within budgets."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from anabranch.delta.batch import Batch
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.patterns import BudgetExceeded
from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.query import ContinuousQuery
from anabranch.engine.session import Session
from anabranch.errors import EvaluationError, InternalError
from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.union import ElementChanges
from anabranch.model.values import ElementId, Node, Relationship
from anabranch.planner.leaves import walks
from anabranch.planner.leaves.asked_pairs import AskedPairs
from anabranch.planner.leaves.shortest_paths import ShortestMaker
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.planner.patterns.kinds import ShortestKind
from anabranch.snapshot import Context
from anabranch.snapshot.index import Adjacency
from anabranch.snapshot.paths import ShortestPathSearch
from anabranch.syntax import seraph

KIND = 7
SECOND = 1_000_000
Fact = tuple[int, int, int, int, int]


def kind_of(**given: Any) -> ShortestKind:
    return ShortestKind(
        **{
            "number": KIND,
            "types": (),
            "direction": "out",
            "minimum": 1,
            "maximum": None,
            "every": False,
            "single": False,
            "shown": True,
            "between": False,
            **given,
        }
    )


def as_number(node_id: ElementId) -> int:
    assert isinstance(node_id, int)
    return node_id


def _no_graph(source: object) -> PropertyGraph:
    raise InternalError("no graph")


class Kept:
    """A maker, the graph that it has been told of, and the facts that it has given. Node kind 1 is label `A`, 2 `B`."""

    def __init__(self, kind: ShortestKind, **options: Any) -> None:
        self.kind = kind
        self.dictionary = Dictionary()
        self.graph = EMPTY_GRAPH
        self.facts: set[Fact] = set()
        self.asked: AskedPairs | None = None
        if kind.asked != (None, None):
            places = [0 if kind.asked[0] else None, int(kind.asked[0] is not None) if kind.asked[1] else None]
            self.asked = AskedPairs(kind.asked, places, self.dictionary)
        self.maker = ShortestMaker(kind, self.dictionary, as_number, self._is_of, asked=self.asked, **options)

    def _is_of(self, node_id: ElementId, kind: int) -> bool:
        return "?AB"[kind] in self.graph.nodes[node_id].labels

    def become(self, graph: PropertyGraph) -> tuple[set[Fact], set[Fact]]:
        before, self.graph = self.graph, graph
        pairs = [(before.nodes.get(one), graph.nodes.get(one)) for one in {**before.nodes, **graph.nodes}]
        more = {**before.relationships, **graph.relationships}
        others = [(before.relationships.get(one), graph.relationships.get(one)) for one in more]
        removed, added = self.maker.facts(ElementChanges(tuple(pairs), tuple(others)))
        gone, new = set(removed), set(added)
        assert (len(gone), len(new)) == (len(removed), len(added)), "each path goes and comes once"
        assert gone <= self.facts
        assert not gone & new
        assert not self.facts & new
        self.facts = self.facts - gone | new
        return gone, new

    def ask(self, *rows: tuple[int, ...], weight: int = 1) -> None:
        assert self.asked is not None
        ids = [[self.dictionary.encode(Node(one)) for one in row] for row in rows]
        self.asked.apply(Batch.of(ids, [weight] * len(ids), len(ids[0])))

    def found(self) -> Counter[Any]:
        decode = self.dictionary.decode
        return Counter((start, end, content_key(decode(path))) for start, _, end, path, _ in self.facts)

    def plain(self) -> Counter[Any]:
        kind, graph = self.kind, self.graph
        adjacency = Adjacency(graph, kind.types, kind.direction, ())
        found: Counter[Any] = Counter()
        for start in graph.nodes.values():
            search = ShortestPathSearch(adjacency, start, kind.maximum, None, Context(graph=_no_graph))
            ways: list[tuple[list[Relationship], Node]] = [([], start)] if kind.minimum == 0 else []
            for end in search.reachable():
                ways += [(way, end) for way in (search.paths_to(end) if kind.every else [search.path_to(end)])]
            for way, end in ways:
                if self._is_wanted(start, end):
                    found[start.id, end.id, content_key(way)] += 1
        return found

    def _is_wanted(self, start: Node, end: Node) -> bool:
        kind = self.kind
        if self.asked is not None and kind.asked[0] and kind.asked[1]:
            return self.asked.has(start.id, end.id)
        for node, label, column, at in ((start, kind.starts, kind.asked[0], 0), (end, kind.ends, kind.asked[1], 1)):
            if label is not None and "?AB"[label] not in node.labels:
                return False
            if column and self.asked is not None and not self.asked.is_asked(node.id, at):
                return False
        return True


def random_graph(random: Random, before: PropertyGraph) -> PropertyGraph:
    """A graph that is a little different: elements come, go, and look different."""
    nodes = {
        one: Node(one, tuple(label for label in "AB" if random.random() < 0.3), {"x": random.randrange(2)})
        if one not in before.nodes or random.random() < 0.1
        else before.nodes[one]
        for one in range(10)
    }
    kept = [one for one in before.relationships.values() if random.random() < 0.85]
    taken = {one.id for one in kept}
    fresh = [one for one in random.sample(range(60), 4) if one not in taken]
    kept += [Relationship(one, "T", random.randrange(10), random.randrange(10), {"x": one % 2}) for one in fresh]
    kept = [
        one if random.random() < 0.95 else Relationship(one.id, "T", one.source, one.target, {"x": 9}) for one in kept
    ]
    return PropertyGraph(nodes.values(), kept)


ASKED = [(None, None), ("a", None), (None, "b"), ("a", "b")]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_facts_are_those_of_the_plain_search(direction: str, every: bool, asked: tuple[str | None, str | None]) -> None:
    for seed in range(8):
        random = Random(seed)
        minimum, maximum = random.choice(((1, None), (0, None), (1, 3), (0, 2)))
        starts, ends = random.choice((None, 1)), random.choice((None, 2))
        bounds = {"minimum": minimum, "maximum": maximum, "starts": starts, "ends": ends}
        kept = Kept(kind_of(direction=direction, every=every, asked=asked, between=True, **bounds))
        rows: list[tuple[int, ...]] = []
        for _ in range(15):
            if kept.asked is not None:
                width = sum(one is not None for one in asked)
                gone = [rows.pop(random.randrange(len(rows))) for _ in range(min(len(rows), random.randrange(3)))]
                new = [tuple(random.randrange(12) for _ in range(width)) for _ in range(random.randrange(1, 4))]
                rows += new
                if gone:
                    kept.ask(*gone, weight=-1)
                kept.ask(*new)
            kept.become(random_graph(random, kept.graph))
            assert kept.found() == kept.plain()
        if rows:
            kept.ask(*rows, weight=-1)
        kept.become(EMPTY_GRAPH)
        assert not kept.facts
        assert not len(kept.maker), "nothing is left where nothing is"


def chain(length: int, first: int = 0) -> list[Relationship]:
    return [Relationship(first + at, "T", first + at, first + at + 1) for at in range(length)]


def test_a_property_that_nobody_sees_changes_no_fact() -> None:
    kept = Kept(kind_of(shown=False))
    kept.become(PropertyGraph((), chain(3)))
    changed = [Relationship(one.id, "T", one.source, one.target, {"x": 1}) for one in chain(3)]
    assert kept.become(PropertyGraph((), changed)) == (set(), set())
    assert len(kept.facts) == 6


def test_nothing_is_searched_for_what_changed_far_away() -> None:
    kept = Kept(kind_of(starts=1, direction="both"))
    nodes = [Node(one, ("A",)) for one in range(5)]
    kept.become(PropertyGraph(nodes, [*chain(5), *chain(5, 100)]))
    before = kept.maker.searches
    assert kept.become(PropertyGraph(nodes, [*chain(5), *chain(3, 100), *chain(2, 200)])) == (set(), set())
    assert kept.maker.searches == before
    assert kept.become(PropertyGraph(nodes, chain(4))) != (set(), set())
    assert kept.maker.searches == before + 5


@pytest.mark.parametrize("asked", [(None, None), ("a", "b")])
def test_the_search_begins_on_the_side_of_the_fewer(asked: tuple[str | None, str | None]) -> None:
    kept = Kept(kind_of(starts=1, ends=2, every=True, asked=asked))
    many = [Node(one, ("A",)) for one in range(30)]
    if kept.asked is not None:
        kept.ask(*((one, 30) for one in range(30)))
    kept.become(PropertyGraph([*many, Node(30, ("B",))], chain(30)))
    assert kept.maker.searches == 1
    assert kept.found() == kept.plain()
    if kept.asked is None:
        few = [Node(one, ("A",) if not one else ("B",)) for one in range(31)]
        kept.become(PropertyGraph(few, chain(30)))
        assert kept.found() == kept.plain()
        before = kept.maker.searches
        kept.become(PropertyGraph(few, chain(29)))
        assert kept.maker.searches == before + 1


def test_pairs_that_nobody_asks_about_are_not_searched_for() -> None:
    kept = Kept(kind_of(asked=("a", "b")))
    kept.ask((0, 2), (0, 2), (50, 52))
    kept.become(PropertyGraph((), [*chain(10), *chain(10, 50)]))
    assert {fact[:1] + fact[2:3] for fact in kept.facts} == {(0, 2), (50, 52)}
    kept.ask((0, 2), (50, 52), weight=-1)
    kept.become(kept.graph)
    assert {fact[:1] + fact[2:3] for fact in kept.facts} == {(0, 2)}, "one of two rows still asks"


def test_more_paths_than_may_live_are_refused() -> None:
    kept = Kept(kind_of(), most=20)
    with pytest.raises(TooManyTrails, match="more than 20"):
        kept.become(PropertyGraph((), chain(7)))


def test_more_distances_than_may_be_kept_are_refused() -> None:
    kept = Kept(kind_of(shown=False), most_bytes=8_000)
    with pytest.raises(BudgetExceeded, match="more than 8,000 bytes"):
        kept.become(PropertyGraph((), chain(60)))


# --- in a query -------------------------------------------------------------------------------------------------------


def run(body: str, evaluation: EvaluationOptions, feed: list[Event]) -> tuple[ContinuousQuery, list[Any]]:
    text = f"REGISTER QUERY q STARTING AT 1970-01-01T00:00Z {{ MATCH {body} EVERY PT1S }}"
    (registration,) = seraph.registrations(text)
    engine = Engine(evaluation=evaluation)
    engine.register(registration)
    engine.push("s", feed)
    engine.finish()
    return engine.query("q"), [(answer.at, answer.rows) for answer in engine.take()]


def feed() -> list[Event]:
    return [
        Event(second * SECOND, (), tuple(chain(30 if 5 <= second < 8 else 3, 40 * (second % 5))))
        for second in range(20)
    ]


def test_a_query_with_more_paths_than_can_be_kept_goes_on_by_searching(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "p = shortestPath((a)-[*]->(b)) WITHIN PT3S EMIT id(a) AS a, id(b) AS b, length(p) AS n SNAPSHOT"
    _, expected = run(body, EvaluationOptions(force="recompute"), feed())
    monkeypatch.setattr(walks, "MOST_WALKS", 50)
    query, told = run(body, EvaluationOptions(), feed())
    assert told == expected
    planned = query.run.plans._planned
    assert planned is not None
    assert any("too many of them to be kept" in mode.detail for mode in planned.modes.values())


def test_a_budget_of_bytes_ends_the_query_with_its_pattern() -> None:
    session = Session.local(evaluation=EvaluationOptions(max_state=20_000))
    query = session.register(
        "REGISTER QUERY q STARTING AT 1970-01-01T00:00Z { MATCH shortestPath((a)-[r*]->(b)) WITHIN PT3S "
        "EMIT id(a) AS a, size(r) AS n SNAPSHOT EVERY PT1S }"
    )
    session.push("s", [Event(SECOND, (), tuple(chain(80)))])
    session.finish()
    with pytest.raises(EvaluationError, match=r"shortest.*needs more than 20,000 bytes") as caught:
        query.poll()
    assert caught.value.diagnostic.code == "SER-308"
