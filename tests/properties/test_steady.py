"""Instants that are taken many at once give the answers of single steps."""

from __future__ import annotations

import random

import pytest

from anabranch import EvaluationOptions, Session
from anabranch.delta import evaluation
from anabranch.engine import query as query_module
from anabranch.engine import steady
from anabranch.planner.leaves import matches

PATTERNS = (
    "?a <urn:p> ?b . ?b <urn:q> ?c",
    "?a <urn:p> ?b",
    "?a <urn:p> ?b . ?a <urn:q> ?c FILTER (?b != ?c)",
    "?a <urn:p> ?v . ?a <urn:q> ?w FILTER (?v < ?w)",
)


def _events(draw: random.Random) -> list[dict[str, object]]:
    """Draw events of one to three triples, with gaps and several events at an instant."""
    at, found = 1_000, []
    for _ in range(draw.randint(20, 120)):
        at += draw.choice((0, 1, 1, 2, 5, 40, 400))
        triples = []
        for _ in range(draw.randint(1, 3)):
            subject, predicate = f"<urn:n{draw.randrange(5)}>", draw.choice(("<urn:p>", "<urn:q>", "<urn:r>"))
            target = draw.choice((f"<urn:n{draw.randrange(5)}>", str(draw.randrange(4))))
            triples.append(f"{subject} {predicate} {target} .")
        found.append({"at": at, "turtle": " ".join(triples)})
    return found


def _elements(draw: random.Random) -> list[dict[str, object]]:
    """Draw events of nodes and relationships that come again with other labels, properties, types and ends."""
    at, found = 1_000, []
    for _ in range(draw.randint(20, 120)):
        at += draw.choice((0, 1, 1, 2, 5, 40, 400))
        nodes = [
            {"id": name, "labels": draw.sample(["A", "B"], draw.randint(0, 2)), "properties": _properties(draw)}
            for name in draw.sample([1, 2, "1", "n"], draw.randint(0, 2))
        ]
        ends = [draw.choice([1, 2, "1", "n", "far"]) for _ in range(2)]
        named = {} if draw.random() < 0.3 else {"id": draw.choice(["r", "s", 7])}
        kind, properties = draw.choice(("R", "S")), _properties(draw)
        link = {**named, "type": kind, "from": ends[0], "to": ends[1], "properties": properties}
        found.append({"at": at, "nodes": nodes, "relationships": [link] if draw.random() < 0.8 else []})
    return found


def _properties(draw: random.Random) -> dict[str, object]:
    values = (0, 1, 2, 1.5, -1.5, -0.0, 1 << 60, "t", None, [1])
    return {key: draw.choice(values) for key in draw.sample(["x", "y"], draw.randint(0, 2))}


def _answers(
    text: str, name: str, events: list[dict[str, object]], cuts: list[int], options: EvaluationOptions | None = None
) -> list[dict[str, object]]:
    session = Session.local(lateness="PT0.005S", evaluation=options)
    query = session.register(text, file_name=name)
    found = []
    for first, stop in zip([0, *cuts], [*cuts, len(events)], strict=True):
        if first < stop:
            session.push("urn:s" if name == "q.rspql" else "s", events[first:stop])
            found += [answer.to_dict() for answer in query.poll()]
    session.finish(drain=True)
    return found + [answer.to_dict() for answer in query.poll()]


def _compared(
    text: str, name: str, events: list[dict[str, object]], draw: random.Random, patched: pytest.MonkeyPatch
) -> int:
    """Compare answers with those of single steps and of the plain evaluator; return how many instants were taken at
    once."""
    cuts = sorted(draw.choices(range(len(events) + 1), k=draw.choice((0, 1, 10))))
    ahead: list[int] = []

    def counted(query: object, around: object, last: int) -> int:
        ahead.append(steady.run_ahead(query, around, last))  # type: ignore[arg-type]
        return ahead[-1]

    patched.setattr(query_module, "run_ahead", counted)
    at_once = _answers(text, name, events, cuts)
    patched.setattr(query_module, "steady_window", lambda *_: None)
    assert at_once == _answers(text, name, events, cuts)
    assert at_once == _answers(text, name, events, cuts, EvaluationOptions(force="recompute"))
    return sum(ahead)


@pytest.mark.parametrize("seed", range(120))
def test_many_instants_at_once_answer_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    output, pattern = draw.choice(("ISTREAM", "DSTREAM")), draw.choice(PATTERNS)
    width = draw.choice((7, 50, 300))
    step = draw.choice((1, 3, 20, 100, width, width // 2))  # from half of the window on, all of it is evaluated
    if seed % 3 == 0:  # matches that are more than one piece
        monkeypatch.setattr(matches, "PIECE", 2)
        monkeypatch.setattr(evaluation, "PIECE", 2)
    text = (
        f"REGISTER {output} <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> "
        f"[RANGE PT{width / 1000}S STEP PT{step / 1000}S] WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    )
    assert _compared(text, "q.rspql", _events(draw), draw, monkeypatch) > 0, "no instants were taken at once"


BODIES = (
    "MATCH (a:A)-[r:R]->(b) WITHIN {w} WHERE r.x > 0 EMIT a.x AS x, b.y AS y, r.x AS z",
    "MATCH (a)-[r]-(b) WITHIN {w} WHERE a.x < b.x EMIT id(a) AS a, id(b) AS b, r.y AS y",
    "MATCH (a:A)-[r:R]->(b) WITHIN {w} WITH a.x AS x, count(*) AS n, sum(r.x) AS s EMIT x, n, s",
    "MATCH (a)-[r]->(b) WITHIN {w} WHERE a.x = 1 OR a.y = 1 EMIT DISTINCT b.x AS x",
    "MATCH (a)-[r]->(b)-[s]->(c) WITHIN {w} EMIT a.x AS x, c.y AS y ORDER BY x, y LIMIT 3",
    "MATCH (n:B) WITHIN {w} WHERE n.x IS NULL EMIT id(n) AS n, n.y AS y",
    "MATCH (a)-[r:S]->(b) WITHIN {w} EMIT min(r.x) AS least, avg(r.y) AS mean, count(DISTINCT a.x) AS n",
    "MATCH (a)-[r]->(b) WITHIN {w} WHERE a.x < b.x EMIT count(*) AS n",
    "MATCH (a)-[r]->(b)<-[s]-(c) WITHIN {w} WHERE a.x <= c.x WITH b.y AS y, count(*) AS n, sum(s.x) AS t EMIT y, n, t",
    "MATCH (a)-[r]-(b)-[s]-(c) WITHIN {w} WHERE a.x > c.x AND b.x >= 1 EMIT r.x AS x, count(c.y) AS n",
    "MATCH (a)-[r]-(b)-[s]-(c) WITHIN {w} WHERE a.x < b.x AND b.x < c.x AND a.y >= c.y EMIT count(*) AS n",
)


@pytest.mark.parametrize("seed", range(165))
def test_elements_at_many_instants_answer_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    body, output = BODIES[seed % len(BODIES)], draw.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
    width, step = draw.choice((7, 50, 300)), draw.choice((1, 3, 20, 100))
    body = body.replace("{w}", f"PT{width / 1000}S")
    text = f"REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {{ {body} {output} EVERY PT{step / 1000}S }}"
    taken = _compared(text, "q.seraph", _elements(draw), draw, monkeypatch)
    assert taken > 0 or "a.y = 1" in body, (
        "no instants were taken at once"
    )  # a condition on two values goes step by step
