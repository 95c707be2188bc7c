"""A query behind a cell: it follows its stream, ends when it should, and keeps its answers."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest

from anabranch.errors import EngineError, QueryError
from anabranch.notebook.asking import CellOptions, parse_line
from anabranch.notebook.live import CellQuery

ROOT = Path(__file__).parents[3]
BIKES = ROOT / "examples" / "bikes"
RIDES = f"--stream rides={BIKES / 'events.ndjson'}"
COUNT = "REGISTER QUERY q STARTING AT NOW { MATCH (a) WITHIN PT10S EMIT count(a) AS n SNAPSHOT EVERY PT1S }"


def nothing() -> None:
    pass


def live(text: str, line: str, language: str = "seraph") -> CellQuery:
    return CellQuery(text, f"cell.{language}", parse_line(line))


def trick(line: str = RIDES) -> CellQuery:
    return live((BIKES / "student_trick.seraph").read_text(), line)


def test_a_query_over_a_file_ends_with_it_and_keeps_its_answers() -> None:
    query = trick()
    query.follow(nothing)
    frame = query.to_pandas()
    assert list(frame.columns) == ["at", "win_start", "win_end", "r.user_id", "s.id", "r.val_time", "hops"]
    assert list(frame["r.user_id"]) == [1234, 5678]
    assert frame["at"][0] == datetime.datetime(2022, 10, 14, 15, 15, tzinfo=datetime.UTC)
    assert [list(hops) for hops in frame["hops"]] == [[2, 3], [3, 4]]
    assert repr(query) == "<student_trick: 2 answers, 2 rows; to_pandas(), to_arrow(), to_spark()>"
    assert query.events == 5


def test_the_newest_answer_is_a_table_in_text_and_html() -> None:
    query = trick()
    assert repr(query.view()) == "student_trick · 0 events · 0 answers\nno answer yet"
    query.follow(nothing)
    assert repr(query.view()) == (
        "student_trick · 5 events · 2 answers · entering 2022-10-14T15:40:00Z\n"
        "r.user_id  s.id  r.val_time  hops\n"
        "5678       2     14:58       [3, 4]"
    )
    assert "<td style=text-align:left>5678</td>" in query.view()._repr_html_()


def test_values_are_no_html_and_long_answers_are_cut() -> None:
    text = "REGISTER QUERY q STARTING AT 2022-10-14T14:45 { MATCH (a) WITHIN PT1H EMIT '<b>' AS x SNAPSHOT EVERY PT5M }"
    query = live(text, f"{RIDES} --rows 1")
    query.follow(nothing)
    drawn = query.view()._repr_html_()
    assert "&lt;b&gt;" in drawn
    assert "<b>" not in drawn
    assert "more rows" in drawn


def test_a_stream_without_an_end_is_left_when_the_time_is_up() -> None:
    query = live(COUNT, "--stream s=gen:graph?rate=200 --for 0.5s")
    query.follow(nothing)
    there = query.events
    time.sleep(0.1)
    assert query.events == there, "it has ended"


def test_an_interrupt_ends_it_and_the_answers_stay() -> None:
    query = live(COUNT, "--stream s=gen:graph?rate=500")

    def interrupt() -> None:
        if len(query.answers()) >= 2:
            raise KeyboardInterrupt

    query.follow(interrupt)
    assert len(query.answers()) >= 2


def test_until_is_where_the_answers_end_on_a_stream_that_goes_on() -> None:
    query = live(COUNT, "--stream s=gen:graph --until 2022-10-14T14:46:00Z")
    query.follow(nothing)
    ats = query.to_arrow().column("at").to_pylist()
    assert ats[-1] == datetime.datetime(2022, 10, 14, 14, 46, tzinfo=datetime.UTC)


def test_parameters_and_graphs_reach_the_query(tmp_path: Path) -> None:
    (tmp_path / "city.json").write_text(
        '{"nodes": [{"id": 1, "labels": ["Station"], "properties": {"name": "Duomo"}}]}'
    )
    text = (
        "REGISTER QUERY q STARTING AT 2022-10-14T14:45 "
        "{ MATCH ()-[r:rentedAt]->(s) WITHIN PT1H WHERE r.user_id = $user "
        "MATCH (s) ON GRAPH city EMIT s.name AS station ON ENTERING EVERY PT5M }"
    )
    query = live(text, f"{RIDES} --graph city={tmp_path / 'city.json'} --param user=1234")
    query.follow(nothing)
    assert query.to_arrow().column("station").to_pylist() == ["Duomo"]


def test_of_several_queries_one_is_shown_by_its_name() -> None:
    several = COUNT + COUNT.replace("QUERY q", "QUERY p")
    with pytest.raises(EngineError, match="say which to show: --name NAME, of q, p"):
        live(several, "--stream s=gen:graph?count=5")
    query = live(several, "--stream s=gen:graph?count=5 --name p")
    query.follow(nothing)
    assert query.name == "p"


def test_a_query_that_has_no_name_of_its_own_takes_the_one_it_is_given() -> None:
    text = (ROOT / "examples" / "auctions" / "figure6.lupos").read_text()
    query = live(text, "--stream auctions=gen:auctions?count=200 --name prices", "lupos")
    query.follow(nothing)
    assert query.name == "prices"
    assert query.to_arrow().column_names[3:6] == ["id", "title", "bid"]
    assert query.to_arrow().num_rows > 0


def test_only_the_newest_answers_are_kept_where_that_is_asked_for() -> None:
    query = live(COUNT, "--stream s=gen:graph?count=50 --keep 3")
    query.follow(nothing)
    assert len(query.answers()) == 3


def test_refusals_and_failures_come_out_of_it() -> None:
    with pytest.raises(QueryError, match="SER-"):
        live("REGISTER QUERY q {", "")
    failing = live(COUNT.replace("count(a)", "1 / (count(a) - count(a))"), "--stream s=gen:graph?count=50")
    with pytest.raises(QueryError, match="zero"):
        failing.follow(nothing)
    assert len(failing.failures) == 1
    missing = live(COUNT, "--stream s=nowhere.ndjson")
    with pytest.raises(Exception, match=r"nowhere\.ndjson"):
        missing.follow(nothing)


def test_the_line_is_all_defaults_without_words() -> None:
    assert parse_line("  ") == CellOptions()
