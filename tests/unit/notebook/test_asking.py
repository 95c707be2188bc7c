"""The first line of a cell: what it asks for, and what is refused."""

from __future__ import annotations

import pytest

from anabranch.errors import EngineError
from anabranch.model.instants import parse_instant
from anabranch.notebook.asking import CellOptions, parse_line


def test_a_line_says_streams_graphs_time_and_where_the_answers_go() -> None:
    line = parse_line(
        "--stream rides='gen:bikes?rate=100' -s <http://s.org/t?a=b>=tolls.tsv --graph city=city.ttl -p user=1234 "
        "--engine spark --for 10s --until 2022-10-14T15:00Z --name q --into found --rows 5 --keep 100"
    )
    assert line == CellOptions(
        (("rides", "gen:bikes?rate=100"), ("http://s.org/t?a=b", "tolls.tsv")),
        (("city", "city.ttl"),),
        {"user": "1234"},
        "spark",
        10.0,
        parse_instant("2022-10-14T15:00Z"),
        "q",
        "found",
        5,
        100,
    )


def test_an_empty_line_runs_in_this_process_until_the_input_ends() -> None:
    assert parse_line("") == CellOptions()


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), ("1.5s", 1.5), ("200ms", 0.2), ("2m", 120), ("1h", 3600), ("PT1M30S", 90)]
)
def test_a_time_is_written_short_or_as_a_duration(text: str, seconds: float) -> None:
    assert parse_line(f"--for {text}").seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--stream rides", r"%%seraph: --stream rides: write it as name="),
        ("--for soon", "`soon` is no time; write it like 10s, 2m or PT10S"),
        ("--until later", "`later` is no instant"),
        ("--engine flink", "invalid choice: 'flink'"),
        ("--into 3x", "a variable's name is wanted"),
        ("--rows none", "`none` is no number of rows"),
        ("--speed 3", "unrecognized arguments: --speed 3"),
        ("--name 'open", "No closing quotation"),
    ],
)
def test_a_line_that_is_not_understood_is_refused(line: str, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        parse_line(line)
