"""Property paths of any length on changes: at every instant what the plain evaluator says, and what pyoxigraph says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pyoxigraph as ox
import pytest

from anabranch.algebra.explain import explain
from anabranch.engine.answers import Answer
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import planned
from anabranch.engine.session import Session
from anabranch.errors import EvaluationError
from anabranch.formats.rdf.terms import to_oxigraph
from anabranch.model.event import Event
from anabranch.model.terms import Iri, Literal, Term, Triple
from anabranch.model.triples import TripleGraph
from anabranch.optimizer import Knowledge, optimize
from anabranch.planner.leaves import property_paths
from anabranch.planner.leaves.property_paths import PathTrees
from anabranch.syntax.languages import registrations

AUTO = EvaluationOptions()
SECOND = 1_000_000
STREAM = "http://e/s"
WIDTH, STEP = 10, 3
WINDOW = f"[RANGE {WIDTH}s STEP {STEP}s]"
NODES: tuple[Term, ...] = tuple(Iri(f"http://e/{one}") for one in range(6))
PREDICATES = tuple(Iri(f"http://e/{one}") for one in "pqrt")

PATHS = [
    ":p+", ":p*", ":p?", "(:p/:q)+", "(:p|:q)*", "^:p+", "(^:p)*/:q", "!(:p|:q)+", "(!(:p|^:q))*", "!^:p+",
    ":p/:q*/:r?", "((:p/:q)|(:q+/:p))+", "(:p|^:p)+", "(:p*/:q*)*", "(:p?/:q)?",
]  # fmt: skip
ENDS = ["?x PATH ?y", "?x PATH ?x", ":1 PATH ?y", "?x PATH :2", ":1 PATH :2", ":1 PATH :1", ":9 PATH ?y", "?x PATH 'z'"]


def asked(where: str, streams: str = f"FROM STREAM <{STREAM}> {WINDOW}", shown: str = "*") -> str:
    shown = shown if "?" in where else "(1 AS ?one)"
    return f"REGISTER QUERY q AS PREFIX : <http://e/> SELECT {shown} {streams} WHERE {{ {where} }}"


def drawn_triple(random: Random) -> Triple:
    end = random.choice(NODES) if random.random() < 0.85 else Literal(random.choice("yz"))
    return Triple(random.choice(NODES), random.choice(PREDICATES), end)


def drawn_stream(seed: int, count: int = 40) -> list[Event]:
    """Triples that come one by one and several at a time, with silence between, so that everything leaves."""
    random = Random(seed)
    events, at = [], 0
    for _ in range(count):
        at += random.choice((0, 1, 1, 2, 2, 17 if random.random() < 0.15 else 1))
        triples = tuple(drawn_triple(random) for _ in range(random.choice((1, 1, 2, 3))))
        events.append(Event(at * SECOND, triples=triples))
    return events


def drawn_path(random: Random, depth: int = 3) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.2:
        return random.choice((":p", ":q", ":r", "^:p", "^:q", "!:p", "!(:p|:q)", "!(:p|^:q)", "!^:r"))
    parts = [drawn_path(random, depth - 1) for _ in range(random.randint(1, 3))]
    if kind < 0.35:
        return f"({'/'.join(parts)})"
    if kind < 0.5:
        return f"({'|'.join(parts)})"
    return f"^({parts[0]})" if kind < 0.55 else f"({parts[0]}){random.choice('*+?*+')}"


class Run:
    """A query, and what it tells of a stream and a static graph. Events may come with another static graph."""

    def __init__(self, text: str, evaluation: EvaluationOptions = AUTO, static: Sequence[Triple] = ()) -> None:
        self.session = Session.local(evaluation=evaluation)
        if static:
            self.session.graph("default", TripleGraph(static))
        self.query = self.session.register(text)

    def told(self, events: Iterable[Event | list[Triple]]) -> list[Answer]:
        for event in events:
            if isinstance(event, list):
                self.session.graph("default", TripleGraph(event))
            else:
                self.session.push(STREAM, [event])
        self.session.finish(drain=True)
        return list(self.query.poll())

    def modes(self) -> set[str]:
        """How parts of the plan ran: the algorithms of those on changes, and why others did not."""
        continuous = self.session._engine.query("q")
        planned = continuous.run.plans._planned
        assert planned is not None
        return {mode.detail for mode in planned.modes.values() if mode.detail}


def both_ways(
    text: str, events: Sequence[Event | list[Triple]], static: Sequence[Triple] = (), how: str = "PathTrees"
) -> list[Answer]:
    run = Run(text, AUTO, static)
    found = run.told(events)
    expected = Run(text, EvaluationOptions(force="recompute"), static).told(events)
    assert [one.to_dict() for one in found] == [one.to_dict() for one in expected]
    assert how in run.modes()
    return found


def judged(where: str, triples: Iterable[Triple]) -> Counter[frozenset[tuple[str, str]]]:
    """What pyoxigraph says of the plain query."""
    store = ox.Store()
    store.extend(ox.Quad(*map(to_oxigraph, triple)) for triple in triples)
    shown = "*" if "?" in where else "(1 AS ?one)"
    found: Any = store.query(f"PREFIX : <http://e/> SELECT {shown} WHERE {{ {where} }}")
    names = [variable.value for variable in found.variables]
    return Counter(frozenset((name, "" if row[name] is None else str(row[name])) for name in names) for row in found)


def agrees_with_pyoxigraph(where: str, events: Sequence[Event], static: Sequence[Triple] = ()) -> int:
    """Every answer; how many rows there were. pyoxigraph joins no term to itself that is outside of the graph, though
    the standard does: where an end is outside, it is not asked."""
    rows = 0
    for answer in both_ways(asked(where), events, static):
        opens = answer.at - WIDTH * SECOND
        graph = {one for event in events if opens < event.event_time <= answer.at for one in event.triples}
        graph |= set(static)
        nodes = {to_text(term) for one in graph for term in (one.subject, one.object)}
        given = [f"<http://e/{end}>" for end in re.findall(r":(\d)", where)] + (['"z"'] if "'z'" in where else [])
        if nodes.issuperset(given):
            told = Counter(
                frozenset((name, to_text(value)) for name, value in zip(answer.columns, row, strict=True))
                for row in answer.rows
            )
            assert told == judged(where, graph), (where, answer.at)
        rows += len(answer.rows)
    return rows


def to_text(term: Any) -> str:
    return "" if term is None else str(to_oxigraph(term))


# --- the law ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_paths_between_all_kinds_of_ends(path: str) -> None:
    rows = 0
    for number, ends in enumerate(ENDS):
        rows += agrees_with_pyoxigraph(ends.replace("PATH", path), drawn_stream(number))
    assert rows


@pytest.mark.parametrize("seed", range(40))
def test_random_paths(seed: int) -> None:
    random = Random(seed)
    where = random.choice(ENDS).replace("PATH", f"({drawn_path(random)}){random.choice('*+?')}")
    static = [drawn_triple(random) for _ in range(random.choice((0, 0, 1, 4)))]
    agrees_with_pyoxigraph(where, drawn_stream(seed), static)


@pytest.mark.parametrize(
    "where",
    [
        "?x :q ?y . ?y :p+ ?z",
        "?x :p* ?y . ?y :q+ ?z . FILTER (?x != ?z)",
        "?x :q ?y . OPTIONAL { ?y :p+ ?z }",
        "?x :q ?y . FILTER NOT EXISTS { ?x :p+ ?y }",
        "{ ?x :p+ ?y } UNION { ?x :q* ?y }",
        "?x :q ?y MINUS { ?x (:p|:r)+ ?y }",
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_paths_among_other_patterns(where: str, seed: int) -> None:
    assert agrees_with_pyoxigraph(where, drawn_stream(seed))


@pytest.mark.parametrize("window", ["[RANGE TRIPLES 7]", "[RANGE 6s TUMBLING]", "[RANGE 9s STEP 2s]"])
@pytest.mark.parametrize("where", ["?x :p+ ?y", "?x (:p|^:q)* :2"])
def test_windows_by_count_and_windows_that_are_replaced(window: str, where: str) -> None:
    for seed in range(4):
        both_ways(asked(where, f"FROM STREAM <{STREAM}> {window}"), drawn_stream(seed))


@pytest.mark.parametrize("where", ["?x :p+ ?y", "?x (:p|:q)* ?y", ":1 :p* ?y", "?x (!:p)+ ?x"])
@pytest.mark.parametrize("seed", range(4))
def test_a_static_graph_that_changes_beside_the_window(where: str, seed: int) -> None:
    random = Random(seed)
    events: list[Event | list[Triple]] = list(drawn_stream(seed))
    for place in (30, 20, 19, 5):
        events.insert(place, [drawn_triple(random) for _ in range(random.randint(1, 8))])
    assert both_ways(asked(where), events, [drawn_triple(random) for _ in range(5)])


# --- several windows --------------------------------------------------------------------------------------------------

OTHER = "http://e/other"
WINDOWS = [
    ("[RANGE 9s STEP 3s]", "[RANGE 9s STEP 3s]"),
    ("[RANGE 10s STEP 3s]", "[RANGE 10s STEP 3s]"),
    ("[RANGE 4s STEP 2s]", "[RANGE 12s STEP 2s]"),
    ("[RANGE 9s STEP 3s]", "[RANGE TRIPLES 5]"),
]


class Together(Run):
    """Two streams, whose events come in the order of time."""

    def told_of(self, events: Sequence[Event], others: Sequence[Event]) -> list[Answer]:
        named = [(STREAM, event) for event in events] + [(OTHER, event) for event in others]
        for stream, event in sorted(named, key=lambda one: one[1].event_time):
            self.session.push(stream, [event])
        self.session.finish(drain=True)
        return list(self.query.poll())

    def matcher(self) -> object:
        flow = self.session._engine.query("q").run.flow
        assert flow is not None
        (trees,) = (step.part for step in flow.maintained.flow._steps if isinstance(step.part, PathTrees))
        return trees.matcher


def through_both(one: str, other: str, where: str) -> str:
    return asked(where, f"FROM STREAM <{STREAM}> {one} FROM STREAM <{OTHER}> {other}")


@pytest.mark.parametrize(("one", "other"), WINDOWS)
@pytest.mark.parametrize("seed", range(6))
def test_a_path_through_several_windows_follows_all_of_them(one: str, other: str, seed: int) -> None:
    random = Random(seed)
    text = through_both(one, other, random.choice(ENDS[:4]).replace("PATH", random.choice(PATHS)))
    streams = drawn_stream(seed), drawn_stream(seed + 100)
    run = Together(text)
    found = run.told_of(*streams)
    expected = Together(text, EvaluationOptions(force="recompute")).told_of(*streams)
    assert [one.to_dict() for one in found] == [one.to_dict() for one in expected]
    assert "PathTrees" in run.modes()


def test_two_windows_that_are_of_whole_slides_never_need_new_trees() -> None:
    run = Together(through_both(*WINDOWS[0], "?x :p+ ?y"))
    run.session.push(STREAM, drawn_stream(1, 3))
    run.session.push(OTHER, drawn_stream(2, 3))
    first = run.matcher()
    assert run.told_of(drawn_stream(3)[5:], drawn_stream(4)[5:])
    assert run.matcher() is first


# --- how it runs ------------------------------------------------------------------------------------------------------


def test_explain_names_the_algorithm_beside_the_path() -> None:
    (query,) = registrations(asked("?x (:p/^:q)+ ?y"), "query.csparql")
    rewritten = optimize(query.plan, Knowledge.of({}, query.prefixes))
    text = explain(query, optimized=rewritten, ways=planned(rewritten.plan, query, AUTO, {}).way).text()
    assert "Path  ?x (:p/(^:q))+ ?y  [incremental: PathTrees]\n" in text


def test_more_nodes_than_the_user_allows_end_the_query_with_an_error_that_names_the_path() -> None:
    run = Run(asked("?x :p+ ?y"), EvaluationOptions(max_matches=3))
    run.told(drawn_stream(1))  # what was answered before
    with pytest.raises(EvaluationError, match="SER-308") as refused:
        run.query.poll()
    assert "the pattern ?x :p+ ?y needs more than 3 matches" in str(refused.value)


def test_more_nodes_than_can_be_kept_are_searched_for_anew_and_nobody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(property_paths, "MOST_NODES", 10)
    too_many = "paths of any length: too many nodes to be kept"
    assert both_ways(asked("?x (:p|:q)+ ?y"), drawn_stream(2), how=too_many)


def test_a_path_of_very_many_steps_is_computed_anew() -> None:
    path = f"({'/'.join([':p'] * 300)})+"
    both_ways(asked(f"?x {path} ?y"), drawn_stream(1), how="a path of more than 256 steps")
