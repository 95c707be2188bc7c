"""A cell tells what the law says, however its input is cut into batches and whatever its worker has forgotten."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

import pytest
from tests.support.cells import answers_of, play
from tests.support.draws import draw_case
from tests.support.sparql_draws import DEFAULT, draw

from anabranch.engine.answers import Answer
from anabranch.model.triples import TripleGraph
from anabranch.testing.case_file import CaseFile
from anabranch.testing.cases import agreed, new_session

DRAWS = int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 2
SHARDS = 10


def by_query(told: list[Answer]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for answer in told:
        found.setdefault(answer.query, []).append(repr((int(answer.at), answer.op, answer.rows)))
    return found


def told_by_a_cell(case: CaseFile, random: Random) -> dict[str, list[str]]:
    got: dict[str, list[str]] = {}
    for parts in answers_of(play(case, random)):
        got.setdefault(parts.query, []).append(repr((parts.at, parts.op, parts.rows)))
    return got


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cell_tells_what_an_engine_tells_in_whatever_batches_and_with_whatever_cache(shard: int) -> None:
    told = 0
    for number in range(shard, DRAWS, SHARDS):
        case = draw_case(Random(f"cell/{number}"), number)
        expected = by_query([answer for answers in agreed(case).values() for answer in answers])
        got = told_by_a_cell(case, Random(f"batches/{number}"))
        assert got == expected, f"draw {number}"
        told += len(got)
    assert told > 0


_WINDOW = re.compile(r"\[RANGE (\d+)s STEP (\d+)s\]")


def draw_sparql_case(random: Random, number: int) -> CaseFile:
    """A drawn C-SPARQL query; its windows may be of triples, and it may read a stream that another query makes."""
    one = draw(random)
    text = one.text
    if random.random() < 0.4:
        text = _WINDOW.sub(lambda window: f"[RANGE TRIPLES {random.randint(1, 6)}]", text)
    if random.random() < 0.4:
        window = random.choice(("[RANGE 2s STEP 1s]", "[RANGE 3s STEP 3s]", "[RANGE TRIPLES 4]"))
        made = f"REGISTER STREAM made AS CONSTRUCT {{ ?o ?p ?s . ?s ?p ?o }} FROM STREAM <{DEFAULT}> {window}"
        made += " WHERE { ?s ?p ?o FILTER isIRI(?o) }"
        second = text.replace(f"STREAM <{DEFAULT}>", "STREAM <made>")
        text = random.choice((f"{made}\n{second}", f"{second}\n{made}"))
    graphs = {"default": TripleGraph(one.static)} if one.static else {}
    return CaseFile(
        Path(f"draw{number}.csparql"),
        options={"windows": one.policy},
        query=text,
        graphs=graphs,  # type: ignore[arg-type]
        streams={name: list(events) for name, events in one.streams.items()},
    )


def told_by_an_engine(case: CaseFile) -> list[Answer]:
    session = new_session(case)
    queries = session.register_all(case.query, file_name=case.path.name)
    for name, events in case.streams.items():
        session.push(name, events)
    session.finish()
    return [answer for query in queries for answer in query.poll()]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cell_answers_sparql_as_an_engine_does_over_counts_and_over_streams_that_queries_make(shard: int) -> None:
    seen = {"counts": 0, "chains": 0, "rows": 0}
    for number in range(shard, DRAWS // 2, SHARDS):
        case = draw_sparql_case(Random(f"rdf/{number}"), number)
        answers = told_by_an_engine(case)
        got = told_by_a_cell(case, Random(f"batches/{number}"))
        assert got == by_query(answers), f"draw {number}: {case.query}"
        seen["counts"] += "TRIPLES" in case.query
        seen["chains"] += "REGISTER STREAM" in case.query
        seen["rows"] += sum(len(answer.rows) for answer in answers)
    assert all(seen.values())
