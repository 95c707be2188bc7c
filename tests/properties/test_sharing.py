"""Queries that run together answer as each would alone, byte for byte.

A draw is a session of 1 to 50 queries that overlap: copies, and texts that differ in constants. They are registered and
dropped between pushes; late events correct answers; the session is restarted. ANABRANCH_DRAWS sets how many draws are
made (by default a twentieth of 1,000). Most draws share tables of constants among two queries already.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from anabranch.engine import groups
from anabranch.engine.compiled import recompile
from anabranch.engine.engine import Engine
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.errors import QueryError
from anabranch.model.event import Event
from anabranch.model.terms import XSD_INTEGER, Iri, Literal, Triple
from anabranch.model.values import Node, Relationship
from anabranch.plugins.oxigraph import Oxigraph

DRAWS = max(10, int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 20)
SHARDS = 5
EX = "http://ex.org/"
SECOND = 1_000_000

SERAPH = (
    "MATCH (a:{label} {{k: {c}}})-[r:R]->(b) WITHIN PT{w}S EMIT a.k AS k, b.v AS v {mode} EVERY PT2S",
    "MATCH (a {{k: {c}}})-[r:R]->(b) WITHIN PT{w}S WHERE r.w > {d} AND b.v = $x EMIT a.k, r.w, b {mode} EVERY PT2S",
    "MATCH (a)-[r:R]->(b) WITHIN PT{w}S WHERE a.k = {c} EMIT b.v AS v, count(*) AS n {mode} EVERY PT2S",
    "MATCH (a:{label}) WITHIN PT{w}S WHERE a.k = {c} EMIT 1 / a.v AS inverse {mode} EVERY PT2S",
    "MATCH (a)-[r:R]->(b) WITHIN PT{w}S WHERE r.w >= {d} EMIT count(*) AS n {mode} EVERY PT2S",
    "MATCH (a {{k: {c}}}) WITHIN PT{w}S OPTIONAL MATCH (a)-[r:R]->(b {{k: {d}}}) WITHIN PT{w}S"
    " EMIT DISTINCT a.k, b.v {mode} EVERY PT2S",
    "MATCH (a {{k: {c}}}) WITHIN PT{w}S WITH a.v AS v WHERE v <> {d} EMIT v ORDER BY v LIMIT 3 {mode} EVERY PT2S",
    "MATCH (a {{k: {c}}})-[r:R]->(b) WITHIN PT{w}S EMIT b.v AS v, win_end AS at {mode} EVERY PT2S",
    "MATCH (a {{k: {c}, v: {d}}})-[r:R]->(b), (b)-[s:R]->(e) WITHIN PT{w}S EMIT b, e.v AS v {mode} EVERY PT2S",
    "MATCH (a)-[r:R]->(b) WITHIN PT{w}S WHERE a.k = 'one' AND b.v < {d} EMIT a.v AS v, b.v AS u {mode} EVERY PT2S",
)

SPARQL = (
    "SELECT ?s ?v WHERE {{ WINDOW :w {{ ?s :k {c} . ?s :v ?v }} }}",
    "SELECT ?s ?v WHERE {{ WINDOW :w {{ ?s :k ?k . ?s :v ?v FILTER(?k = {c}) FILTER(?v > {d}) }} }}",
    "SELECT ?s ?v WHERE {{ WINDOW :w {{ ?s :k {c} . ?s :v ?v FILTER(?v < {d}) }} }}",
    "SELECT ?k (COUNT(*) AS ?n) WHERE {{ WINDOW :w {{ ?s :k ?k . ?s :to {o} }} }} GROUP BY ?k",
    "SELECT (COUNT(*) AS ?n) WHERE {{ WINDOW :w {{ ?s :k {c} }} }}",
    "SELECT DISTINCT ?k WHERE {{ WINDOW :w {{ {o} :to ?b . ?b :k ?k }} }}",
    "SELECT ?s ?v WHERE {{ WINDOW :w {{ ?s :to {o} OPTIONAL {{ ?s :k ?k . ?s :v ?v FILTER(?k = {c}) }} }} }}",
    "SELECT ?s WHERE {{ WINDOW :w {{ {{ ?s :k {c} }} UNION {{ ?s :to {o} }} }} }}",
    "SELECT ?s ?o WHERE {{ WINDOW :w {{ ?s :to ?o MINUS {{ ?s :k {c} }} }} }}",
    "SELECT ?s ?v WHERE {{ WINDOW :w {{ ?s :k {c} . ?s :v ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "SELECT ?a ?b WHERE {{ WINDOW :w {{ {o} :to ?a . ?a :to ?b . ?b :k {c} }} }}",
)


@dataclass
class Script:
    """A session's queries, pushes and restarts, in their order."""

    parameters: dict[str, Any]
    late: str
    lateness: str | None
    policy: str
    on_error: str
    conflicts: str
    acts: list[tuple[str, Any]] = field(default_factory=list)


def draw_text(random: Random, name: str, language: str, templates: list[str], few: bool) -> str:
    """Draw a query of few shapes and constants, so that queries meet."""
    template, width = random.choice(templates), 6 if few else random.choice((6, 6, 10))
    constant = random.choice(("'one'", "'two'", "'three'", "1", "2.0", "true"))
    mode = "SNAPSHOT" if few else random.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
    if language == "seraph":
        start = "STARTING AT 1970-01-01T00:00:00Z " if few or random.random() < 0.7 else ""
        constant_text = template.format(
            c=constant, d=random.randint(0, 3), w=width, mode=mode, label=random.choice(("P", "P", "Q"))
        )
        return f"REGISTER QUERY {name} {start}{{ {constant_text} }}"
    term = constant.replace("'", '"') if constant != "2.0" else ":i2"
    body = template.format(c=term, d=random.randint(0, 3), o=f":i{random.randint(0, 4)}")
    kind = {"SNAPSHOT": "RSTREAM", "ON ENTERING": "ISTREAM", "ON EXIT": "DSTREAM"}[mode]
    select, where = body.split(" WHERE ", 1)
    return (
        f"PREFIX : <{EX}>\nREGISTER {kind} :{name} AS {select} "
        f"FROM NAMED WINDOW :w ON :s [RANGE PT{width}S STEP PT2S] WHERE {where}"
    )


def draw_event(random: Random, language: str, second: int) -> Event:
    time = second * SECOND + random.choice((0, 0, 1, 500_000))
    keys = ["one", "two", "three", 1, 2.0, 2, True, None]
    if language == "seraph":
        nodes = [
            Node(
                number,
                random.choice((("P",), ("Q",), ("P", "Q"))),
                {"k": random.choice(keys), "v": random.choice((0, 1, 2, 3, 2.5))},
            )
            for number in sorted({random.randint(0, 6), random.randint(0, 6)})
        ]
        ends = [node.id for node in nodes]
        found = Relationship(
            random.randint(0, 9), "R", random.choice(ends), random.choice(ends), {"w": random.randint(0, 4)}
        )
        return Event(time, tuple(nodes), (found,))
    subject = Iri(f"{EX}i{random.randint(0, 4)}")
    triples = [
        Triple(subject, Iri(f"{EX}k"), random.choice((Literal("one"), Literal("two"), Literal("1", XSD_INTEGER)))),
        Triple(subject, Iri(f"{EX}v"), Literal(str(random.randint(0, 4)), XSD_INTEGER)),
        Triple(subject, Iri(f"{EX}to"), Iri(f"{EX}i{random.randint(0, 4)}")),
    ]
    return Event(time, triples=tuple(random.sample(triples, random.randint(1, 3))))


def draw_script(random: Random) -> tuple[str, Script]:
    language = random.choice(("seraph", "rspql"))
    late = random.choice(("drop", "drop", "correct"))
    script = Script(
        {"x": random.choice((1, 2))},
        late,
        random.choice((None, "PT1S")),
        random.choice(("trailing", "trailing", "formal")),
        random.choice(("skip", "skip", "fail")),
        random.choice(("latest", "latest", "strict")),
    )
    palette = SERAPH if language == "seraph" else SPARQL
    templates = random.sample(palette, random.choice((1, 1, 2, 4)))
    few = random.random() < 0.5
    living: list[str] = []
    number, second = 0, 0
    for turn in range(random.randint(4, 9)):
        for _ in range(random.choice((1, 3, 12, 30)) if turn == 0 else random.choice((0, 0, 1, 2, 5))):
            if len(living) < 50:
                name = f"q{number}"
                number += 1
                script.acts.append(("register", draw_text(random, name, language, templates, few)))
                living.append(name if language == "seraph" else f"{EX}{name}")
        events = []
        for _ in range(random.choice((0, 1, 3, 6))):
            second += random.choice((0, 0, 1, 1, 2, 5))
            events.append(draw_event(random, language, max(0, second - random.choice((0, 0, 0, 3)))))
        script.acts.append(("push", events))
        if living and random.random() < 0.3:
            script.acts.append(("drop", living.pop(random.randrange(len(living)))))
        if random.random() < 0.2:
            script.acts.append(("restart", None))
        if random.random() < 0.1:
            script.acts.append(("advance", (second + 4) * SECOND))
    return language, script


def play(language: str, script: Script, sharing: bool) -> list[str]:
    """Return everything that a session says, in its order."""
    evaluation = EvaluationOptions(sharing=sharing, on_error=script.on_error)  # type: ignore[arg-type]
    session = Session.local(
        lateness=script.lateness,
        late=script.late,  # type: ignore[arg-type]
        windows=script.policy,  # type: ignore[arg-type]
        conflicts=script.conflicts,  # type: ignore[arg-type]
        evaluation=evaluation,
    )
    stream = "s" if language == "seraph" else f"{EX}s"
    said: list[str] = []
    for kind, what in (*script.acts, ("finish", None)):
        if kind == "register":
            said.append(registered(session, what, script.parameters if language == "seraph" else {}, language))
        elif kind == "push":
            said.append(repr(session.push(stream, what)))
        elif kind == "drop":
            if any(one.name == what for one in session.queries):
                session.query(what).unregister()
        elif kind == "advance":
            session.advance(what)
        elif kind == "finish":
            session.finish()
        else:
            state = session._engine.state()
            said.append(repr(state))
            engine = Engine.from_state(state, recompile, Oxigraph(), evaluation=evaluation)
            session = Session(engine, script.policy, script.conflicts)  # type: ignore[arg-type]
        said += [spoken(session, query.name) for query in session.queries]
    said.append(repr(session._engine.state()))
    return said


def registered(session: Session, text: str, parameters: dict[str, Any], language: str) -> str:
    try:
        return session.register(text, parameters=parameters, file_name=f"q.{language}").name
    except QueryError as error:
        return str(error)


def spoken(session: Session, name: str) -> str:
    query = session.query(name)
    try:
        answers = [answer.to_dict() for answer in query.poll()]
    except QueryError as error:
        answers = [{"failed": str(error)}]
    counts = (query.instants, query.evaluations, query.skipped, str(query.first_skipped), str(query.last_error))
    standing = session._engine.query(name)
    warned = [str(one) for one in query.warnings()]
    return repr((name, answers, counts, warned, standing.row_count, standing.cursor.passed, standing.outbox.rows_told))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_queries_that_run_together_answer_as_each_would_alone(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = 0
    for number in range(shard, DRAWS, SHARDS):
        monkeypatch.setattr(groups, "FEWEST_RULES", 16 if number % 8 == 0 else 2)
        language, script = draw_script(Random(f"sharing/{number}"))
        together, alone = play(language, script, sharing=True), play(language, script, sharing=False)
        told += sum("'rows': [{" in one for one in alone)
        assert len(together) == len(alone)
        for one, other in zip(together, alone, strict=True):
            assert one == other, f"sharing/{number}"
    assert told, "draws that never answer prove nothing"
