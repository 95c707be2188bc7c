"""Whatever text a user sends, the answer is a table or a refusal: never an exception of Python's own.

Queries are made from those of the TCK by replacing values and by cutting, doubling and swapping words.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.suites import tck

import anabranch
from anabranch.errors import QueryError
from anabranch.formats.events import graph_from

QUERIES = 4_000
_TOKEN = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
_LITERAL = re.compile(r"\d+|'[^']*'|null|true|false|\w")
_VALUES = (
    *("null", "true", "1", "-1", "0", "1.5", "'a'", "''", "[]", "[1,2]", "{}", "{a:1}", "n", "r", "p", "x", "$p"),
    *("date('2020-01-01')", "duration('P1D')", "datetime()", "time('12:00')", "point({x:1,y:2})", "0.0/0.0"),
    *("9223372036854775807", "[null]"),
)
_GRAPH = graph_from(
    {
        "nodes": [
            {"id": i, "labels": ["A"] if i % 2 else ["B", "C"], "properties": {"name": f"n{i}", "x": i, "l": [1, i]}}
            for i in range(4)
        ],
        "relationships": [
            {"id": i, "type": "T" if i % 2 else "KNOWS", "from": i, "to": (i + 1) % 4, "properties": {"w": i}}
            for i in range(4)
        ],
    }
)


def mutated(random: Random, tokens: list[str], pool: list[str]) -> str:
    tokens = list(tokens)
    for _ in range(random.choice((1, 1, 2, 3))):
        place, kind = random.randrange(len(tokens)), random.random()
        if kind < 0.7:
            literals = [index for index, token in enumerate(tokens) if _LITERAL.fullmatch(token)]
            tokens[random.choice(literals or [place])] = random.choice(_VALUES)
        elif kind < 0.8 and len(tokens) > 1:
            del tokens[place]
        elif kind < 0.9:
            tokens[place] = random.choice(pool)
        else:
            tokens[place:place] = tokens[random.randrange(len(tokens)) :][: random.randint(1, 6)]
    return "".join(tokens)


@pytest.mark.skipif(not tck.scenarios(), reason=f"the TCK is not at {tck.suites_folder()}")
@pytest.mark.parametrize("shard", range(4))
def test_a_query_gives_a_table_or_a_refusal(shard: int) -> None:
    random = Random(f"mutants/{shard}")
    queries = [_TOKEN.findall(scenario["query"]) for scenario in tck.scenarios()]
    pool = [token for tokens in queries for token in tokens if token.strip()]
    answered, refusals = 0, []
    for _ in range(QUERIES // 4):
        text = mutated(random, random.choice(queries), pool)
        try:
            anabranch.evaluate(text, _GRAPH, {"p": 1, "expr": [1], "idx": 0}, now=0)
            answered += 1
        except QueryError as refusal:
            refusals.append(refusal.render())
    assert answered > 0
    # What begins with a word of SPARQL is read as SPARQL.
    assert all(refusal.startswith(("error[SER-", "error[SPQ-")) for refusal in refusals)


def test_the_largest_limit_after_a_skip_is_no_overflow() -> None:
    table = anabranch.evaluate("MATCH (n) RETURN n.x AS x ORDER BY x SKIP 2 LIMIT 9223372036854775807", _GRAPH)
    assert [row[0] for row in table] == [2, 3]
