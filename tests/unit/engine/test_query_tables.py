"""A session's query as tables: what was not polled yet, with its instants."""

from __future__ import annotations

import datetime
from typing import Any

import anabranch

TEXT = (
    "REGISTER QUERY q STARTING AT 2024-01-01T00:00:10Z "
    "{ MATCH (a) WITHIN PT10S EMIT a.id AS id, a.x AS at ON ENTERING EVERY PT10S }"
)


def event(second: int, number: int, x: Any = None) -> dict[str, Any]:
    return {
        "at": f"2024-01-01T00:00:{second:02}Z",
        "nodes": [{"id": number, "properties": {"id": number, **({} if x is None else {"x": x})}}],
    }


def test_answers_become_tables_behind_their_instants_and_windows_and_stay() -> None:
    session = anabranch.Session.local(streams=["s"])
    query = session.register(TEXT)
    session.push("s", [event(5, 1, "one"), event(15, 2)])
    session.finish()
    table = query.to_arrow()
    assert table.column_names == ["at", "win_start", "win_end", "id", "at_"], "a column that is called `at` gives way"
    assert table.to_pydict()["id"] == [1, 2]
    assert table.to_pydict()["at_"] == ["one", None]
    assert table.to_pydict()["at"][0] == datetime.datetime(2024, 1, 1, 0, 0, 10, tzinfo=datetime.UTC)
    assert query.to_pandas()["id"].tolist() == [1, 2]
    assert len(query.poll()) == 2, "to make a table takes nothing away"
    assert query.to_arrow().num_rows == 0


def test_a_column_whose_values_have_no_common_type_is_text() -> None:
    session = anabranch.Session.local(streams=["s"])
    query = session.register(TEXT)
    session.push("s", [event(4, 1, "one"), event(5, 2, 7)])
    session.finish()
    assert query.to_arrow().to_pydict()["at_"] == ["'one'", "7"]


def test_corrections_say_what_they_are() -> None:
    session = anabranch.Session.local(streams=["s"], late="correct")
    query = session.register(TEXT)
    session.push("s", [event(5, 1), event(25, 2)])
    session.push("s", event(6, 3))
    session.finish()
    found = query.to_arrow().to_pydict()
    assert set(found["correction"]) >= {"", "corrected"}


def test_a_spark_session_makes_its_own_table_of_it() -> None:
    class Spark:
        def createDataFrame(self, table: Any) -> Any:
            return ("spark", table.num_rows)

    session = anabranch.Session.local(streams=["s"])
    query = session.register(TEXT)
    session.push("s", [event(5, 1), event(15, 2)])
    session.finish()
    assert query.to_spark(Spark()) == ("spark", 2)
