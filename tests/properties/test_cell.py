"""A cell tells what the law says, however its input is cut into batches and whatever its worker has forgotten."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.support.cells import answers_of, play

from anabranch.engine.answers import Answer
from anabranch.testing.cases import agreed
from anabranch.testing.draws import draw_case

DRAWS = int(os.environ.get("ANABRANCH_DRAWS", "1000")) // 2
SHARDS = 10


def by_query(told: list[Answer]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for answer in told:
        found.setdefault(answer.query, []).append(repr((int(answer.at), answer.op, answer.rows)))
    return found


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cell_tells_what_an_engine_tells_in_whatever_batches_and_with_whatever_cache(shard: int) -> None:
    told = 0
    for number in range(shard, DRAWS, SHARDS):
        case = draw_case(Random(f"cell/{number}"), number)
        expected = by_query([answer for answers in agreed(case).values() for answer in answers])
        random = Random(f"batches/{number}")
        got: dict[str, list[str]] = {}
        for parts in answers_of(play(case, random)):
            got.setdefault(parts.query, []).append(repr((parts.at, parts.op, parts.rows)))
        assert got == expected, f"draw {number}"
        told += len(got)
    assert told > 0
