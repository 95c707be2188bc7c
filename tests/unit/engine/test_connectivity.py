"""connected(), component() and componentSize() on changes: at every instant what the plain evaluator says."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.algebra.operators import Filter, Project
from anabranch.algebra.walk import walk
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import planned
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Node, Relationship
from anabranch.planner.leaves.connections import IndexName
from anabranch.syntax import languages

SECOND = 1_000_000
LINKED = """
REGISTER QUERY linked STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:P), (b:P) WITHIN PT10S WHERE id(a) < id(b) AND connected(a, b%s)
  EMIT id(a) AS a, id(b) AS b, component(a%s) AS c, componentSize(b%s) AS n SNAPSHOT EVERY PT3S }
"""
ALL_KINDS = LINKED % ("", "", "")
ONE_KIND = LINKED % (", ['KNOWS']", ", ['KNOWS']", ", ['KNOWS']")
TWO_WINDOWS = """
REGISTER QUERY twice STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:P) WITHIN PT4S MATCH (b:P) WITHIN PT9S WHERE connected(a, b)
  WITH id(a) AS a, count(b) AS n, max(componentSize(b)) AS m EMIT a, n, m ON ENTERING EVERY PT2S }
"""
WHOLE_SLIDES = ALL_KINDS.replace("PT10S", "PT9S")
NEGATED = """
REGISTER QUERY apart STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:P), (b:P) WITHIN PT6S WHERE id(a) < id(b) AND NOT connected(a, b)
  EMIT id(a) AS a, id(b) AS b, [x IN [a, b] WHERE x.v > 1 | component(x)] AS c ON EXIT EVERY PT2S }
"""
GROUPED = """
REGISTER QUERY grouped STARTING AT '1970-01-01T00:00:00Z'
{ MATCH (a:P) WITHIN PT8S
  WITH component(a, ['KNOWS']) AS c, collect(id(a)) AS members, max(componentSize(a)) AS m
  WHERE size(members) > 1 EMIT c, members, m SNAPSHOT EVERY PT2S }
"""
COUNTED = """
REGISTER QUERY linked AS PREFIX : <http://e/>
SELECT ?a ?b (anb:componentSize(?b, :p, :q) AS ?n) FROM STREAM <http://s> [RANGE TRIPLES 25 STEP 4]
WHERE { ?a a :P . ?b a :P . FILTER(anb:connected(?a, ?b)) }
"""
TRIPLES = """
REGISTER QUERY linked AS PREFIX : <http://e/>
SELECT ?a ?b (anb:component(?a) AS ?c) (anb:componentSize(?b) AS ?n)
FROM STREAM <http://s> [RANGE 10s STEP 3s]
WHERE { ?a a :P . ?b a :P . FILTER(STR(?a) < STR(?b) && anb:connected(?a, ?b%s)) }
"""


def person(random: Random, number: int) -> Node:
    return Node(number, ("P",), {"v": random.randrange(4)})


def meetings(seed: int, count: int = 60, people: int = 9, moves: bool = False) -> list[Event]:
    random = Random(seed)
    events, at = [], 0
    for number in range(count):
        at += random.choice((0, 0, 1, 1, 2, 13 if random.random() < 0.1 else 1))
        ends = [random.randrange(people) for _ in range(2)]
        kind = random.choice(("KNOWS", "LIKES"))
        name = f"{kind}-{number % 11 if moves else ends}"
        nodes = tuple(person(random, one) for one in dict.fromkeys(ends))
        relationships = (Relationship(name, kind, *ends),) if random.random() < 0.8 else ()
        events.append(Event(at * SECOND, nodes, relationships))
    return events


def triples(seed: int, count: int = 60) -> list[Event]:
    random = Random(seed)
    events, at = [], 0
    for _ in range(count):
        at += random.choice((0, 1, 1, 2, 13 if random.random() < 0.1 else 1))
        one, other = (Iri(f"http://e/{random.randrange(8)}") for _ in range(2))
        a = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
        found = [Triple(one, a, Iri("http://e/P")), Triple(other, a, Iri("http://e/P"))]
        found.append(Triple(one, Iri(f"http://e/{random.choice('pq')}"), other))
        found.append(Triple(other, Iri("http://e/age"), Literal(str(random.randrange(3)))))
        events.append(Event(at * SECOND, triples=tuple(found[: random.randint(1, 4)])))
    return events


def told(
    text: str, events: list[Event], evaluation: EvaluationOptions, conflicts: ConflictPolicy = "latest"
) -> list[object]:
    session = Session.local(evaluation=evaluation, conflicts=conflicts)
    query = session.register(text)
    for event in events:
        session.push("s" if event.nodes else "http://s", [event])
    session.finish(drain=True)
    return [answer.to_dict() for answer in query.poll()]


def both_ways(text: str, events: list[Event], conflicts: ConflictPolicy = "latest") -> list[object]:
    found = told(text, events, EvaluationOptions(), conflicts)
    assert found == told(text, events, EvaluationOptions(index="bic"), conflicts)
    assert found == told(text, events, EvaluationOptions(force="recompute"), conflicts)
    return found


@pytest.mark.parametrize("text", [ALL_KINDS, ONE_KIND, WHOLE_SLIDES, TWO_WINDOWS, NEGATED, GROUPED])
@pytest.mark.parametrize("seed", range(6))
def test_relationships_that_come_again_and_leave(text: str, seed: int) -> None:
    assert both_ways(text, meetings(seed))


@pytest.mark.parametrize("text", [ALL_KINDS, ONE_KIND])
@pytest.mark.parametrize("seed", range(4))
def test_relationships_that_move_to_other_nodes(text: str, seed: int) -> None:
    assert both_ways(text, meetings(seed, moves=True))


@pytest.mark.parametrize("seed", range(4))
def test_events_that_disagree_under_the_strict_policy(seed: int) -> None:
    both_ways(ALL_KINDS, meetings(seed, people=30), "strict")


@pytest.mark.parametrize("along", ["", ", :p", ", :p, :age"])
@pytest.mark.parametrize("seed", range(6))
def test_triples_link_their_subjects_and_objects(along: str, seed: int) -> None:
    assert both_ways(TRIPLES % along, triples(seed))


@pytest.mark.parametrize("text", [COUNTED, (TRIPLES % "").replace("RANGE 10s", "RANGE 12s")])
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_the_last_triples_and_of_whole_slides(text: str, seed: int) -> None:
    assert both_ways(text, triples(seed))


@pytest.mark.parametrize(("text", "index", "name"), [
    (WHOLE_SLIDES, "bic", "Bic"), (WHOLE_SLIDES.replace("PT9S", "P1D"), "bic", "Bic"),
    (WHOLE_SLIDES, "recency", "RecencyTree"), (ALL_KINDS, "bic", "RecencyTree"),
])  # fmt: skip
def test_explain_says_which_index_answers(text: str, index: IndexName, name: str) -> None:
    registration = languages.registrations(text)[0]
    plan = planned(registration.plan, registration, EvaluationOptions(index=index), {})
    ways = [plan.way(node) for node in walk(registration.plan) if isinstance(node, Filter | Project)]
    assert ways == [("incremental", f"Projected, {name}"), ("incremental", f"Filtered, {name}")]


def test_a_relationship_that_moves_between_two_instants_links_its_new_nodes_alone() -> None:
    people = tuple(Node(one, ("P",)) for one in range(3))
    moved = [Event(at * SECOND, people, (Relationship("r", "KNOWS", 0, at),)) for at in (1, 2)]
    (first, *_) = both_ways(ALL_KINDS, moved)[1:]
    assert [(row["a"], row["b"]) for row in first["rows"]] == [(0, 2)]  # type: ignore[index]


def test_a_static_graph_links_what_the_window_does_not() -> None:
    text = """REGISTER QUERY linked AS PREFIX : <http://e/>
    SELECT ?a ?b FROM STREAM <http://s> [RANGE 4s STEP 1s] FROM <http://g>
    WHERE { ?a :in ?x . ?b :in ?y . FILTER(STR(?a) < STR(?b) && anb:connected(?a, ?b, :road, :in)) }"""
    e = "http://e/"
    graph = TripleGraph([Triple(Iri(f"{e}x{one}"), Iri(f"{e}road"), Iri(f"{e}x{one + 1}")) for one in (0, 1, 4)])
    events = [
        Event(at * SECOND, triples=(Triple(Iri(f"{e}a{at % 4}"), Iri(f"{e}in"), Iri(f"{e}x{at * 2 % 6}")),))
        for at in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15)
    ]
    found = []
    for evaluation in (EvaluationOptions(), EvaluationOptions(force="recompute")):
        session = Session.local(evaluation=evaluation)
        session.graph("http://g", graph)
        query = session.register(text)
        for event in events:
            session.push("http://s", [event])
            if event.event_time == 9 * SECOND:  # the roads change, and nothing comes for a while
                session.graph("http://g", TripleGraph([Triple(Iri(f"{e}x0"), Iri(f"{e}road"), Iri(f"{e}x4"))]))
        session.finish(drain=True)
        found.append([answer.to_dict() for answer in query.poll()])
    assert found[0] == found[1]
    assert any(answer["rows"] for answer in found[0])


def test_a_component_is_called_by_one_of_its_nodes_and_keeps_its_name_while_it_stays() -> None:
    events = meetings(3, count=40)
    names: dict[frozenset[int], set[int]] = {}
    for answer in told(ALL_KINDS, events, EvaluationOptions()):
        members: dict[int, set[int]] = {}
        for row in answer["rows"]:  # type: ignore[index]
            members.setdefault(row["c"], set()).update((row["a"], row["b"]))
            assert row["n"] >= 2
        for name, nodes in members.items():
            assert name in nodes
            names.setdefault(frozenset(nodes), set()).add(name)
    assert len(names) > 3
    assert all(len(found) == 1 for found in names.values())


@pytest.mark.parametrize(
    "condition",
    [
        "id(x) = 1 OR connected(v, x)",
        "CASE WHEN id(x) = 1 THEN true ELSE connected(v, x) END",
        "CASE WHEN id(x) = 1 THEN true ELSE componentSize(v) > 1 END",
        "connected(x, v) OR id(x) = 1",
    ],
)
def test_a_question_about_no_node_fails_only_where_it_is_asked(condition: str) -> None:
    text = f"""REGISTER QUERY guarded STARTING AT '1970-01-01T00:00:00Z'
    {{ MATCH (x:P) WITHIN PT10S UNWIND [x, 7] AS v WITH x, v WHERE {condition}
      EMIT id(x) AS x, v = 7 AS number SNAPSHOT EVERY PT3S }}"""
    found = []
    for force in ("auto", "recompute"):
        session = Session.local(["s"], evaluation=EvaluationOptions(force=force))  # type: ignore[arg-type]
        query = session.register(text)
        for number in (1, 2):
            session.push("s", [Event(number * SECOND, (Node(number, frozenset({"P"})),))])
        session.finish()
        assert session.failures() == []
        found.append([sorted(one.rows) for one in query.poll()])
        assert query.skipped > 0
    assert found[0] == found[1]
