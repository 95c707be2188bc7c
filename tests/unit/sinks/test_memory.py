"""The table in memory: what was told, what still holds, and a limit."""

from __future__ import annotations

from threading import Thread

import pandas
import pytest
from tests.unit.sinks.telling import COLUMNS, MINUTE, START, told

from anabranch.errors import EngineError
from anabranch.model.instants import Instant
from anabranch.model.values import Node
from anabranch.sinks.ledger import MemoryLedger
from anabranch.sinks.memory import MemoryTable

QUERIES = {"trick": COLUMNS, "quiet": ("a",)}


def filled(limit: int | None = None) -> MemoryTable:
    """Two answers in batch 0; in batch 1 a third, and the first is told anew."""
    sink = MemoryTable(QUERIES, limit)
    sink.open(MemoryLedger())
    sink.write(0, [told(0, [(1, "a"), (1, "a"), (2, "b")]), told(1, [(3, "c")])])
    sink.write(
        1,
        [
            told(2, [(4, "d")]),
            told(3, [(1, "a"), (2, "b")], correction="retracted", at=START),
            told(4, [(2, "B")], correction="corrected", at=START),
        ],
    )
    return sink


def test_a_query_without_answers_has_an_empty_table_with_its_columns() -> None:
    sink = filled()
    assert sink.answers("quiet") == []
    assert sink.table("quiet").columns == ("at", "op", "correction", "win_start", "win_end", "a")
    assert len(sink.table("quiet")) == len(sink.current("quiet")) == 0
    assert list(sink.to_pandas("quiet").columns) == list(sink.table("quiet").columns)


def test_the_table_has_every_row_that_was_told() -> None:
    table = filled().table("trick")
    assert table.dicts()[0] == {
        "at": START,
        "op": "entering",
        "correction": "",
        "win_start": START - 60 * MINUTE,
        "win_end": START,
        "user": 1,
        "hops": "a",
    }
    assert str(table.rows[0][0]) == "2022-10-14T14:00:00Z"
    assert [(row[2], *row[5:]) for row in table.rows[4:]] == [
        ("", 4, "d"),
        ("retracted", 1, "a"),
        ("retracted", 2, "b"),
        ("corrected", 2, "B"),
    ]


def test_current_is_told_less_retracted_and_corrected_by_instant() -> None:
    table = filled().current("trick")
    assert table.columns == ("at", "op", "win_start", "win_end", *COLUMNS)
    first, second, third = Instant(START), Instant(START + MINUTE), Instant(START + 2 * MINUTE)
    assert [(row[0], *row[4:]) for row in table.rows] == [
        (first, 1, "a"),
        (first, 2, "B"),
        (second, 3, "c"),
        (third, 4, "d"),
    ]


def test_elements_are_retracted_by_what_they_show() -> None:
    sink = MemoryTable({"q": ("n",)})
    old, new = Node(1, ("A",), {"k": 1}), Node(1, ("A",), {"k": 2})
    sink.write(0, [told(0, [(old,), (new,)], "q", ("n",))])
    sink.write(1, [told(1, [(old,)], "q", ("n",), "retracted", START)])
    (row,) = sink.current("q").dicts()
    assert isinstance(row["n"], Node)
    assert row["n"].properties == {"k": 2}


def test_what_was_retracted_but_is_no_longer_kept_takes_nothing_away() -> None:
    sink = filled(limit=3)
    assert [(row[0] - START, *row[4:]) for row in sink.current("trick").rows] == [(0, 2, "B"), (2 * MINUTE, 4, "d")]  # type: ignore[operator]


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 100])
def test_a_batch_that_comes_again_replaces_what_it_left(limit: int | None) -> None:
    once, twice = MemoryTable(QUERIES, limit), MemoryTable(QUERIES, limit)
    for batch in range(4):
        answers = [told(2 * batch), told(2 * batch + 1), told(batch, query="new", columns=("x", "y"))]
        once.write(batch, answers)
        twice.write(batch, answers[:2])
        twice.write(batch, answers)
        twice.write(batch, answers)
        assert twice.answers("trick") == once.answers("trick")
        assert twice.answers("new") == once.answers("new")
    assert [one.number for one in once.answers("trick")] == list(range(8))[-(limit or 8) :]
    assert twice.queries == ["trick", "quiet", "new"]


def test_pandas_has_instants_as_timestamps() -> None:
    frame = filled().to_pandas("trick")
    assert frame["at"].dtype == pandas.DatetimeTZDtype("us", "UTC")
    assert frame["at"][0] == pandas.Timestamp("2022-10-14T14:00:00Z")
    assert frame["win_start"][0] == pandas.Timestamp("2022-10-14T13:00:00Z")
    assert frame["hops"].tolist() == ["a", "a", "b", "c", "d", "a", "b", "B"]
    assert filled().to_pandas("trick", current=True)["hops"].tolist() == ["a", "B", "c", "d"]


def test_columns_that_clash_get_an_underscore() -> None:
    sink = MemoryTable()
    sink.write(0, [told(0, [(1, "x")], "q", ("at", "number"))])
    assert sink.table("q").columns[-2:] == ("at_", "number")
    assert sink.to_pandas("q")["at_"].tolist() == [1]


def test_a_query_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(EngineError) as refusal:
        filled().table("trik")
    assert str(refusal.value) == "no answers of a query `trik`\nhint: did you mean `trick`?  Queries: trick, quiet."
    with pytest.raises(EngineError, match=r"Queries: none\."):
        MemoryTable().answers("x")


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(EngineError, match="cannot keep 0 answers"):
        MemoryTable(QUERIES, 0)


def test_readers_in_other_threads_always_see_whole_batches() -> None:
    sink = MemoryTable(QUERIES)
    seen: list[int] = []
    over = False

    def read() -> None:
        while not over:
            seen.append(len(sink.answers("trick")) % 3)
            sink.current("trick")

    reader = Thread(target=read)
    reader.start()
    try:
        for batch in range(200):
            sink.write(batch, [told(3 * batch + place) for place in range(3)])
    finally:
        over = True
        reader.join()
    assert set(seen) == {0}
    assert len(sink.answers("trick")) == 600
