"""timestamp(): the times of triples follow the arrivals and departures of windows."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from tests.unit.delta.bags import Bag, accumulate

from anabranch.algebra.operators import Stream, Window
from anabranch.algebra.triples import TermPlace, Var
from anabranch.delta.dictionary import Dictionary
from anabranch.engine.evaluation_options import EvaluationOptions, Force
from anabranch.engine.session import Query, Session
from anabranch.model.event import Event
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.terms import Iri, Literal, Term, Triple
from anabranch.model.triple_window import TripleWindow
from anabranch.model.triples import TripleGraph
from anabranch.optimizer import optimize
from anabranch.planner.choices import Choices
from anabranch.planner.flow.feeds import Tick, TripleSlide
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.leaves.triple_times import TripleTimes
from anabranch.planner.queries import plan_query
from anabranch.snapshot import Context
from anabranch.syntax.languages import registrations

SECOND = 1_000_000
NODES: tuple[Term, ...] = tuple(Iri(f"http://e/{one}") for one in range(4))
PREDICATES = tuple(Iri(f"http://e/{one}") for one in "pq")

ONE = "FROM STREAM <http://e/s> [RANGE 10s STEP 3s]"
TWO = f"{ONE} FROM STREAM <http://e/t> [RANGE 6s STEP 3s]"
COUNTED = "FROM STREAM <http://e/s> [RANGE TRIPLES 7]"
KNOWN = f"FROM <http://e/g> {ONE}"
T = "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
QUERIES = {
    "one pattern": (ONE, "SELECT ?a (timestamp(?b) AS ?t) FROM WHERE { ?a :p ?b }"),
    "the later of two": (ONE, "SELECT ?a ?c (timestamp(?b) AS ?t) FROM WHERE { ?a :p ?b . ?b :q ?c }"),
    "a pattern with itself": (ONE, "SELECT ?a (timestamp(?a) AS ?t) FROM WHERE { ?a :p ?a }"),
    "any predicate": (ONE, "SELECT ?a ?p (timestamp(?p) AS ?t) FROM WHERE { ?a ?p :1 }"),
    "in a filter": (ONE, "SELECT ?a ?b FROM WHERE { ?a :p ?b . ?a :q ?c FILTER (timestamp(?b) > timestamp(?c)) }"),
    "in an aggregate": (ONE, "SELECT ?a (MAX(timestamp(?b)) AS ?t) FROM WHERE { ?a :p ?b } GROUP BY ?a"),
    "in OPTIONAL": (ONE, "SELECT ?a (timestamp(?c) AS ?t) FROM WHERE { ?a :p ?b OPTIONAL { ?b :q ?c } }"),
    "in ORDER BY": (ONE, "SELECT ?a ?b FROM WHERE { ?a :p ?b } ORDER BY timestamp(?b) ?a ?b LIMIT 2"),
    "parts without a common variable": (ONE, "SELECT (timestamp(?d) AS ?t) FROM WHERE { ?a :p :1 . ?c :q ?d }"),
    "of two windows": (TWO, "SELECT ?a ?b (timestamp(?b) AS ?t) FROM WHERE { ?a :p ?b }"),
    "in one of two streams": (TWO, "SELECT ?a (timestamp(?b, <http://e/t>) AS ?t) FROM WHERE { ?a :p ?b }"),
    "with static knowledge": (KNOWN, "SELECT ?a (timestamp(?b) AS ?t) FROM WHERE { ?a :p ?b }"),
    "in a window that is a graph of its own": (
        "WINDOW",
        "REGISTER RSTREAM <http://e/q> AS PREFIX : <http://e/> SELECT ?a ?c (timestamp(?b) AS ?t) FROM NAMED WINDOW :w "
        "ON :s [RANGE PT10S STEP PT3S] WHERE { WINDOW :w { ?a :p ?b . ?b :q ?c } }",
    ),
    "in a window by count": (COUNTED, "SELECT ?a ?c (timestamp(?b) AS ?t) FROM WHERE { ?a :p ?b . ?b :q ?c }"),
    "of a named triple": (ONE, f"{T} SELECT ?a ?b (f:timestamp(?b, :q, ?a) AS ?t) FROM WHERE {{ ?a :p ?b }}"),
    "of a constant triple": (ONE, f"{T} SELECT ?a (f:timestamp(:1, :p, :2) AS ?t) FROM WHERE {{ ?a :p ?b }}"),
    "of a triple that may be unbound": (
        TWO,
        f"{T} SELECT ?a (f:timestamp(?a, :q, ?c) AS ?t) FROM WHERE {{ ?a :p ?b OPTIONAL {{ ?b :q ?c }} }}",
    ),
}


def text_of(name: str) -> str:
    streams, body = QUERIES[name]
    if "WINDOW" in streams:
        return body
    head, _, where = body.partition(" FROM ")
    prefixes, _, select = head.rpartition("SELECT ")
    return f"REGISTER QUERY q AS PREFIX : <http://e/> {prefixes} SELECT {select} {streams} {where}"


def file_of(name: str) -> str:
    return "q.rspql" if "WINDOW" in QUERIES[name][0] else "q.csparql"


def drawn_triple(random: Random) -> Triple:
    end = random.choice(NODES) if random.random() < 0.9 else Literal("x")
    return Triple(random.choice(NODES), random.choice(PREDICATES), end)


def drawn_stream(random: Random) -> list[Event]:
    events, at = [], 0
    for _ in range(30):
        at += random.choice((0, 0, 1, 1, 2, 17 if random.random() < 0.2 else 1)) * SECOND
        events.append(Event(at, triples=tuple(drawn_triple(random) for _ in range(random.choice((1, 2, 3))))))
    return events


def run(name: str, force: Force, seed: int) -> tuple[Query, list[object]]:
    session = Session.local(
        ["http://e/s", "http://e/t"], evaluation=EvaluationOptions(force=force, verify=int(force == "auto"))
    )
    random = Random(seed)
    session.graph("http://e/g", TripleGraph(drawn_triple(random) for _ in range(4)))
    query = session.register(text_of(name), file_name=file_of(name))
    for stream in ("http://e/s", "http://e/t"):
        session.push(stream, drawn_stream(random))
    session.finish(drain=True)
    return query, [(answer.at, answer.rows) for answer in query.poll()]


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_the_plain_evaluator_at_every_instant(name: str) -> None:
    answers = 0
    for seed in range(4):
        query, told = run(name, "auto", seed)
        assert told == run(name, "recompute", seed)[1]
        assert (query.verified > 3, query.differing) == (True, 0)
        answers += len(told)
    assert answers > 10
    (registration,) = registrations(text_of(name), file_of(name))
    planned = plan_query(optimize(registration.plan).plan, Choices())
    assert planned.is_incremental


# --- the leaf itself --------------------------------------------------------------------------------------------------

WINDOWS = (Window(Stream("s")), Window(Stream("t")))
PATTERNS: list[tuple[TermPlace, TermPlace, TermPlace]] = [
    (Var("a"), PREDICATES[0], Var("b")),
    (Var("a"), PREDICATES[0], Var("a")),
    (Var("a"), Var("p"), Var("b")),
    (NODES[0], Var("p"), NODES[1]),
]


class Arrivals:
    """One window by the law, and the slides of it that a leaf is given."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.window = TripleWindow()
        self.left = 0
        self.dictionary = dictionary
        self.slide = TripleSlide(np.empty((0, 3), np.int64), 0)
        self.times = np.empty(0, np.int64)

    def move(self, triples: list[tuple[Triple, int]], leaving: int) -> None:
        for triple, time in triples:
            self.window.add([triple], time)
        self.window.drop(leaving)
        self.left += leaving
        ids = [[self.dictionary.encode(term) for term in triple] for triple, _ in triples]
        self.slide = TripleSlide(np.array(ids, np.int64).reshape(-1, 3), self.left)
        self.times = np.array([time for _, time in triples], np.int64)


@pytest.mark.parametrize("most", [2, 30], ids=["small steps", "big steps"])
@pytest.mark.parametrize("places", PATTERNS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_each_triple_has_its_latest_time_and_nothing_is_kept_at_the_end(
    seed: int, count: int, places: tuple[TermPlace, TermPlace, TermPlace], most: int
) -> None:
    random, dictionary = Random(seed), Dictionary()
    held = {window: Arrivals(dictionary) for window in WINDOWS[:count]}
    leaf = TripleTimes(tuple(held), places, Runtime(dictionary))
    smallest, given, now = leaf.size().bytes, Counter[tuple[int, ...]](), 0
    tick = Tick(
        Context(graph=lambda source: EMPTY_GRAPH),
        lambda window: held[window].slide,
        lambda window: (_ for _ in ()).throw(AssertionError),
        lambda window: (_ for _ in ()).throw(AssertionError),
        lambda sources: None,
        times=lambda window: held[window].times,
    )
    for step in range(25):
        for arrivals in held.values():
            came = []
            for _ in range(random.randrange(most) if step < 24 else 0):
                now += random.choice((0, 0, 1))
                came.append((drawn_triple(random), now))
            inside = len(arrivals.window) + len(came)
            arrivals.move(came, random.randint(0, inside) if step < 24 else inside)
        accumulate(given, leaf.advance(tick))
        assert given == expected(places, [one.window.graph() for one in held.values()], dictionary)
    assert leaf.size() == (0, smallest)


def expected(places: tuple[TermPlace, ...], graphs: list[TripleGraph], dictionary: Dictionary) -> Bag:
    latest: dict[Triple, int] = {}
    for graph in graphs:
        for triple, time in graph.timed():
            assert time is not None
            latest[triple] = max(time, latest.get(triple, time))
    found: Bag = Counter()
    for triple, time in latest.items():
        row: dict[str, Term] = {}
        if all(
            row.setdefault(place.name, term) == term if isinstance(place, Var) else place == term
            for place, term in zip(places, triple, strict=True)
        ):
            found[*map(dictionary.encode, row.values()), dictionary.encode(time)] += 1
    return found
