"""The plan that a query runs: which rules it undergoes, and that it is made anew when static knowledge changes."""

from __future__ import annotations

import pytest

from anabranch.algebra.operators import Window
from anabranch.algebra.triples import GraphPattern, StaticPart
from anabranch.algebra.walk import read_by, walk
from anabranch.engine.answers import Answer
from anabranch.engine.plans import ALL_RULES, models_of, optimized, rule_names
from anabranch.engine.session import Session
from anabranch.engine.surroundings import SharedState, StaticGraph
from anabranch.errors import EngineError
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping
from anabranch.model.terms import Iri, Triple
from anabranch.model.triples import TripleGraph
from anabranch.optimizer import RULES
from anabranch.syntax import languages

EX = "http://ex/"
STREAM = f"{EX}stream"
SECOND = 1_000_000
BY_DISTRICT = f"""
    PREFIX : <{EX}>
    REGISTER QUERY q AS SELECT ?car ?district FROM STREAM <{STREAM}> [RANGE 10s STEP 5s]
    WHERE {{ ?gate :registers ?car . ?gate :in ?district }}"""


def triple(text: str) -> Triple:
    subject, predicate, value = (Iri(EX + name) for name in text.split())
    return Triple(subject, predicate, value)


def graph(*triples: str) -> TripleGraph:
    return TripleGraph(triple(one) for one in triples)


def event(second: int, *triples: str) -> Event:
    return Event(second * SECOND, triples=tuple(triple(one) for one in triples))


def told(answers: list[Answer]) -> list[tuple[int, list[str]]]:
    """The instants, and the rows as the last parts of their IRIs."""
    return [
        (
            int(answer.at) // SECOND,
            sorted(" ".join(str(getattr(one, "value", one)).removeprefix(EX) for one in row) for row in answer.rows),
        )
        for answer in answers
    ]


# --- names of rules ---------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_rules_in_their_order() -> None:
    assert tuple(rule.__name__ for rule in RULES) == ALL_RULES


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("all", ALL_RULES),
        ("none", ()),
        ([], ()),
        ("push_filter", ("push_filter",)),
        ("push_projection, push_filter", ("push_filter", "push_projection")),
        (("summarise_windows", "push_filter", "push_filter"), ("push_filter", "summarise_windows")),
        (ALL_RULES[::-1], ALL_RULES),
    ],
)
def test_rules_are_all_none_or_named_and_keep_the_order_of_the_tuple(
    given: str | list[str], found: tuple[str, ...]
) -> None:
    assert rule_names(given) == found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("push_filtr", "there is no rule `push_filtr`; did you mean push_filter?  There are all, none, "),
        ("none,push_filter", "there is no rule `none`; "),
        ("", "there is no rule ``; "),
        (["push_filter", "nonsense"], "there is no rule `nonsense`; There are all, none, "),
    ],
)
def test_a_rule_that_does_not_exist_is_refused_with_those_that_do(given: str | list[str], said: str) -> None:
    with pytest.raises(EngineError) as caught:
        rule_names(given)
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(", ".join(ALL_RULES))


def test_the_rules_of_a_session_survive_its_checkpoint() -> None:
    session = Session.restore(Session.local(rules="push_filter,summarise_windows").checkpoint())
    assert Session.restore(session.checkpoint())._engine.rules == ("push_filter", "summarise_windows")


def test_an_evaluator_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(EngineError, match="no evaluator `plug-in`; there are own, plugin"):
        Session.local(evaluator="plug-in").register(BY_DISTRICT)  # type: ignore[arg-type]


# --- plans ------------------------------------------------------------------------------------------------------------


def around(rules: tuple[str, ...] = ALL_RULES, **graphs: TripleGraph) -> SharedState:
    mapping = Mapping()
    return SharedState(
        static_graphs={name: StaticGraph(1, one, mapping) for name, one in graphs.items()}, mapping=mapping, rules=rules
    )


def test_a_plan_depends_on_what_the_static_graphs_hold() -> None:
    [registration] = languages.registrations(BY_DISTRICT)
    known = optimized(registration, ("default",), around(default=graph("gate1 in north"))).plan
    unknown = optimized(registration, ("default",), around(default=graph("north borders south"))).plan
    assert any(isinstance(node, StaticPart) for node in walk(known))
    assert not any(isinstance(node, StaticPart) for node in walk(unknown))
    sources = {source for node in walk(unknown) if isinstance(node, GraphPattern) for source in read_by(node)}
    assert all(isinstance(source, Window) for source in sources), "the graph holds neither predicate"


def test_without_rules_the_plan_is_that_of_the_text() -> None:
    [registration] = languages.registrations(BY_DISTRICT)
    found = optimized(registration, ("default",), around((), default=graph("gate1 in north")))
    assert found.plan == registration.plan


def test_a_plan_over_property_graphs_is_left_alone() -> None:
    text = "REGISTER QUERY n STARTING AT NOW { MATCH (n) WITHIN PT5M WHERE n.x = 1 EMIT n SNAPSHOT EVERY PT1M }"
    [registration] = languages.registrations(text)
    assert optimized(registration, (), around()).plan is registration.plan


def test_a_window_is_read_in_the_model_of_the_language() -> None:
    [sparql] = languages.registrations(BY_DISTRICT)
    assert {model for _, model in models_of(sparql.plan)} == {"triples"}
    [seraph] = languages.registrations(
        "REGISTER QUERY n STARTING AT NOW { MATCH (n) WITHIN PT5M EMIT n SNAPSHOT EVERY PT1M }"
    )
    assert [model for _, model in models_of(seraph.plan)] == ["graph"]


# --- static knowledge that changes ------------------------------------------------------------------------------------

CHANGES = {
    "a predicate that was not there before": (
        graph("north borders south"),
        graph("gate1 in north", "gate2 in south"),
        [(5, []), (10, ["car1 north", "car2 south"])],
    ),
    "a predicate that is gone": (
        graph("gate1 in north", "gate2 in south"),
        graph("north borders south"),
        [(5, ["car1 north"]), (10, [])],
    ),
    "other values": (
        graph("gate1 in north", "gate2 in north"),
        graph("gate1 in south", "gate2 in south"),
        [(5, ["car1 north"]), (10, ["car1 south", "car2 south"])],
    ),
    "a predicate that only windows have from now on": (
        graph("gate1 in north", "gate1 registers car0"),
        graph("gate1 in north", "gate2 in north"),
        [(5, ["car0 north", "car1 north"]), (10, ["car1 north", "car2 north"])],
    ),
}


def run(
    before: TripleGraph, after: TripleGraph, rules: str, restart: bool = False, evaluator: str = "own"
) -> list[tuple[int, list[str]]]:
    session = Session.local(rules=rules, evaluator=evaluator)  # type: ignore[arg-type]
    session.graph("default", before)
    query = session.register(BY_DISTRICT)
    session.push(STREAM, [event(2, "gate1 registers car1"), event(6, "gate2 registers car2")])
    answers = query.poll()
    if restart:
        session = Session.restore(session.checkpoint())
    session.graph("default", after)
    session.finish()
    return [one for one in told([*answers, *session.query("q").poll()]) if one[1]]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_graph_gives_the_answers_of_a_plan_made_for_it(
    change: tuple[TripleGraph, TripleGraph, list[tuple[int, list[str]]]], restart: bool
) -> None:
    before, after, expected = change
    wanted = [one for one in expected if one[1]]
    assert run(before, after, "none", restart) == wanted
    assert run(before, after, "all", restart) == wanted
    assert run(before, after, "all", restart, "plugin") == wanted


def test_a_default_graph_that_comes_while_the_query_runs_is_seen() -> None:
    session = Session.local()
    query = session.register(BY_DISTRICT)
    session.push(STREAM, [event(2, "gate1 registers car1"), event(6, "gate2 registers car2")])
    session.graph("default", graph("gate1 in north"))
    session.finish()
    assert [one for one in told(query.poll()) if one[1]] == [(10, ["car1 north"])]


def test_each_query_follows_the_graphs_that_it_reads_itself() -> None:
    other = BY_DISTRICT.replace("QUERY q", "QUERY other").replace("FROM STREAM", f"FROM <{EX}city> FROM STREAM")
    session = Session.local()
    session.graph("default", graph("gate1 in north"))
    session.graph(f"{EX}city", graph("gate1 in city"))
    first, second = session.register_texts([languages.QueryText(BY_DISTRICT), languages.QueryText(other)])
    session.push(STREAM, [event(2, "gate1 registers car1"), event(6)])
    session.graph(f"{EX}city", graph("gate1 in town"))
    session.finish()
    assert told(first.poll()) == [(5, ["car1 north"]), (10, ["car1 north"])]
    assert told(second.poll()) == [(5, ["car1 city"]), (10, ["car1 town"])]


def test_a_triple_of_a_static_predicate_may_come_in_the_stream_all_the_same() -> None:
    session = Session.local()
    session.graph("default", graph("gate1 in north"))
    query = session.register(BY_DISTRICT)
    session.push(STREAM, [event(2, "gate1 registers car1", "gate1 in centre"), event(20)])
    session.finish()
    assert [one for one in told(query.poll()) if one[1]] == [
        (5, ["car1 centre", "car1 north"]),
        (10, ["car1 centre", "car1 north"]),
    ]


# --- parts that are too large -----------------------------------------------------------------------------------------

PAIRS = f"""
    PREFIX : <{EX}>
    REGISTER QUERY q AS SELECT ?a ?b ?c FROM STREAM <{STREAM}> [RANGE 10s STEP 5s]
    WHERE {{ {{ ?a :in ?d . ?a :sees ?x }} {{ ?b :in ?d . ?b :sees ?y }} {{ ?c :in ?d . ?c :sees ?z }} }}"""
APART = f"""
    PREFIX : <{EX}>
    REGISTER QUERY q AS SELECT ?a ?b ?c FROM NAMED <g> FROM STREAM <{STREAM}> [RANGE 10s STEP 5s]
    WHERE {{ GRAPH <g> {{ ?a :in ?d . ?b :in ?d . ?c :in ?d }} ?a :sees ?x . ?b :sees ?x . ?c :sees ?x }}"""


def rows_of(query: str, static: TripleGraph, many: Event, rules: str) -> list[tuple[int, list[str]]]:
    session = Session.local(rules=rules)
    for name in ("default", "g"):
        session.graph(name, static)
    found = session.register(query)
    session.push(STREAM, [many, event(2, "o1 sees x", "o2 sees x"), event(7, "o3 sees x")])
    session.finish()
    assert not session.failures()
    return told(found.poll())


def test_a_part_that_windows_make_too_large_is_matched_with_the_rest_of_the_query() -> None:
    many = event(1, *(f"o{at} in north" for at in range(50)))
    answers = rows_of(PAIRS, graph("gate1 in north"), many, "all")
    assert answers == rows_of(PAIRS, graph("gate1 in north"), many, "none")
    assert [(at, len(rows)) for at, rows in answers] == [(5, 8), (10, 27)]


def test_a_static_graph_that_is_too_large_to_be_kept_is_asked_at_each_instant() -> None:
    crowd = graph(*(f"o{at} in north" for at in range(50)))
    answers = rows_of(APART, crowd, event(1), "all")
    assert answers == rows_of(APART, crowd, event(1), "none")
    assert [(at, len(rows)) for at, rows in answers] == [(5, 8), (10, 27)]
