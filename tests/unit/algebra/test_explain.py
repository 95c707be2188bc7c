"""EXPLAIN as it looks, and what it says about windows, instants and execution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.algebra.explain import explain, window_bounds
from anabranch.algebra.operators import Filter
from anabranch.algebra.spell import Speller, short_name
from anabranch.model.temporal import parse_duration
from anabranch.syntax.seraph import ingestions, plan, registrations

TRICK = (Path(__file__).parents[3] / "examples/bikes/student_trick.seraph").read_text()

TRICK_EXPLAINED = """\
query student_trick
  instants    2022-10-14T14:45:00Z + k * PT5M, k = 0, 1, ...
  output      entering: rows that were not there at the previous instant
  reads       the only stream within PT1H; trailing: (w - PT1H, w]
  columns     r.user_id, s.id, r.val_time, hops; each answer has win_start,
              win_end
  execution   recompute: snapshot evaluator, when an event has entered or left a
              window
              on Spark in one cell

  Emit  entering
  └─ Project  r.user_id, s.id, r.val_time, hops
     └─ Filter  ∀ e ∈ rels: e.user_id = r.user_id ∧ e.val_time > r.val_time ∧
        │       (e.duration is null ∨ e.duration < 20)
        └─ Project  r, s, q, rels = relationships(q),
           │        hops = [n.id | n ∈ nodes(q), 'Station' ∈ labels(n)]
           └─ Pattern  (_n1:Bike)-[r:rentedAt]->(s:Station)
              │        q = (b)-[_r2:returnedAt|rentedAt*3..]-(o:Station)
              └─ Window  trailing: (w - PT1H, w]
                 └─ Stream  the only stream"""

NESTED = """\
MATCH (a)-[:X*2]->(b {x: 1})
WHERE exists((a)-->(:Z)) AND EXISTS { MATCH (a)-->(d) WITH count(d) AS k WHERE k > 3 RETURN 1 }
OPTIONAL MATCH (a)--(c) WHERE c.x <> 2
WITH a.x AS k, count(*) + 1 AS n ORDER BY n DESC SKIP 1 LIMIT 3
UNWIND [1, k] AS u
RETURN DISTINCT k, n, u AS `odd name`"""

LOAD_EXPLAINED = """\
stream rides
  from        x.ndjson, each record as e
  event time  e.t
  execution   record by record (UNWIND makes several rows of a record), \
as the stream is read; on Spark in the workers that read it

  Set  a:Seen
  │    a += i
  └─ Create  (a)<-[:T {w: 1}]-(:B)
     └─ Merge  (a:A {k: e.k})
        │      if new: a.first = i.n
        └─ Filter  i.n > 1
           └─ Project  e, i
              └─ Unwind  i ∈ e.items
                 └─ Record  e"""
NESTED_EXPLAINED = """\
plain query
  columns     k, n, `odd name`
  execution   recompute: snapshot evaluator, once, over the given graph

  Distinct
  └─ Project  k, n, `odd name` = u
     └─ Unwind  u ∈ [1, k]
        └─ Slice  skip 1, limit 3
           └─ Order  n descending
              └─ Project  k, n = _a7 + 1
                 └─ Aggregate  by k = a.x
                    │          _a7 = count(*)
                    └─ LeftJoin  on a
                       │         if c.x ≠ 2
                       ├─ Filter  ∃ (a)-[_r2]->(_n3:Z) ∧ ∃ #1
                       │  ├─ Pattern  (a)-[_r1:X*2]->(b)
                       │  │  │        where b.x = 1
                       │  │  └─ Graph  the given graph
                       │  └─ #1 Project  1
                       │     └─ Filter  k > 3
                       │        └─ Project  k = _a5
                       │           └─ Aggregate  all rows as one group
                       │              │          _a5 = count(d)
                       │              └─ Join  on a
                       │                 ├─ Argument  a, b
                       │                 └─ Pattern  (a)-[_r4]->(d)
                       │                    └─ Graph  the given graph
                       └─ Pattern  (a)-[_r6]-(c)
                          └─ Graph  the given graph"""


def test_the_running_example_is_explained_to_the_letter() -> None:
    assert explain(registrations(TRICK)[0]).text(80) == TRICK_EXPLAINED


def test_a_plain_query_with_subplans_is_explained_to_the_letter() -> None:
    assert explain(plan(NESTED)).text() == NESTED_EXPLAINED


def test_no_line_is_wider_than_asked() -> None:
    for width in (75, 80, 120):
        lines = explain(registrations(TRICK)[0], "formal").text(width).splitlines()
        assert max(map(len, lines)) <= width


def test_anonymous_names_are_never_shown_raw() -> None:
    text = explain(plan("MATCH ()-[{a: 1}]->()-[*1..2 {b: 2}]-() RETURN count(*) + sum(1), collect(2)")).text()
    dumped = json.dumps(explain(plan("MATCH ()-[]->() RETURN count(*) + 1 AS n")).to_dict())
    for stem in ("node", "relationship", "aggregate", "each"):
        assert f" {stem}" not in text
        assert f'" {stem}' not in dumped
    assert [short_name(name) for name in (" node12", "r.user_id", "10minAvg")] == ["_n12", "r.user_id", "`10minAvg`"]


@pytest.mark.parametrize(
    ("policy", "every", "words"),
    [
        ("trailing", "PT5M", "(w - PT1H, w]"),
        ("right-open", "PT5M", "[w - PT1H, w)"),
        ("formal", "PT5M", "the earliest [w0 + i*PT5M, w0 + i*PT5M + PT1H) that holds w, as far as w"),
        ("formal", None, "[w0, w0 + PT1H) as far as w"),
    ],
)
def test_the_bounds_of_a_window_are_said_in_words(policy: str, every: str | None, words: str) -> None:
    rhythm = None if every is None else parse_duration(every)
    assert window_bounds(policy, parse_duration("PT1H"), rhythm) == words  # type: ignore[arg-type]


def test_the_dictionary_says_the_same_as_the_text() -> None:
    data = explain(registrations(TRICK)[0], "right-open").to_dict()
    assert data["query"] == "student_trick"
    assert (data["starting_at"], data["every"], data["output"]) == ("2022-10-14T14:45:00Z", "PT5M", "entering")
    assert data["reads"] == [
        {"stream": None, "width": "PT1H", "policy": "right-open", "bounds": "[w - PT1H, w)"},
    ]
    assert (data["execution"]["incremental"], data["execution"]["recompute"]) == (0, "all")
    assert data["plan"]["operator"] == "Emit"
    assert data["plan"]["inputs"][0]["execution"] == "recompute"
    assert json.loads(json.dumps(data)) == data


def test_streams_graphs_and_single_answers_are_named() -> None:
    text = """REGISTER QUERY once STARTING AT NOW {
      MATCH (a)-[:T]->(b) WITHIN PT1M ON STREAM rides MATCH (b)-->(c) ON GRAPH city RETURN a, c }"""
    shown = explain(registrations(text)[0]).text()
    assert "instants    once, at the first event's instant" in shown
    assert "output      one answer, then the query ends" in shown
    assert "reads       stream rides within PT1M; trailing: (w - PT1M, w]" in shown
    assert "graph city, which does not move" in shown
    assert "└─ Static  graph city" in shown


def test_a_query_that_reads_the_clock_is_recomputed_at_every_instant() -> None:
    text = "REGISTER QUERY t STARTING AT NOW { MATCH (a) WITHIN PT1M EMIT datetime() AS t SNAPSHOT EVERY PT1M }"
    assert "at every instant, because it reads the clock or chance" in explain(registrations(text)[0]).text()


@pytest.mark.parametrize(
    ("condition", "spelled"),
    [
        ("n.a = 1 OR n.b <> 'it''s' AND NOT n.c", "n.a = 1 ∨ n.b ≠ 'it\\'s' ∧ ¬n.c"),
        ("(n.a OR n.b) AND (n.c XOR n.d)", "(n.a ∨ n.b) ∧ (n.c ⊕ n.d)"),
        ("n.x IS NOT NULL AND n:A:B", "n.x is not null ∧ n:A:B"),
        ("-(n.a + 1) * 2 - 3 < 2 ^ 3 % $p", "-(n.a + 1) * 2 - 3 < 2 ^ 3 % $p"),
        ("n.a - (n.b - 1) >= 0.5", "n.a - (n.b - 1) ≥ 0.5"),
        ("n.name STARTS WITH 'a' AND n.name =~ 'b.*'", "n.name starts with 'a' ∧ n.name matches 'b.*'"),
        ("CASE n.a WHEN 1 THEN true END", "case(n.a = 1 → true, else null)"),
        ("any(x IN n.l WHERE x > 1) AND none(x IN n.l WHERE x)", "(∃ x ∈ n.l: x > 1) ∧ (∄ x ∈ n.l: x)"),
        ("reduce(s = 0, x IN n.l | s + x) > 3", "fold(s = 0; x ∈ n.l: s + x) > 3"),
        ("n.l[0] = n.l[1..][0] AND {a: 1}.a = 1", "n.l[0] = n.l[1..][0] ∧ {a: 1}.a = 1"),
        ("size([(n)-[:T]->(m) WHERE m.x | m.y]) = 1", "size([m.y | {(n)-[_r1:T]->(m) if m.x}]) = 1"),
    ],
)
def test_expressions_have_a_spelling_of_their_own(condition: str, spelled: str) -> None:
    condition = condition.replace("''", "\\'")
    filtered = plan(f"MATCH (n) WHERE {condition} RETURN n").inputs[0]
    assert isinstance(filtered, Filter)
    assert Speller().spell(filtered.condition) == spelled


def test_a_load_stream_is_explained_to_the_letter() -> None:
    (load,) = ingestions(
        "LOAD STREAM FROM 'x.ndjson' AS e AT e.t INTO rides UNWIND e.items AS i WITH e, i WHERE i.n > 1 "
        "MERGE (a:A {k: e.k}) ON CREATE SET a.first = i.n CREATE (a)<-[:T {w: 1}]-(:B) SET a:Seen, a += i"
    )
    assert explain(load).text() == LOAD_EXPLAINED
