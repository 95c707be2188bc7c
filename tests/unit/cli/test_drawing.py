"""Small drawings: the window on a timeline, instants as people read them, Seraph in colour."""

from __future__ import annotations

import pytest

from anabranch.cli import options
from anabranch.cli.highlight import highlight
from anabranch.cli.timeline import Timeline
from anabranch.cli.values import clock, csv_cell, window
from anabranch.model.instants import parse_instant
from anabranch.model.windows import Bounds


@pytest.mark.parametrize(
    ("bounds", "drawn"),
    [
        (Bounds(0, 10, False, True, 0, 10), "·(━━●━━━━━━●]··········"),
        (Bounds(3, 13, False, True, 3, 13), "···○(━━━━━━●━━━]·······"),
        (Bounds(2, 10, True, False, 2, 10), "··[━●━━━━━━)○··········"),
    ],
)
def test_a_window_is_drawn_around_its_events_and_others_stay_outside(bounds: Bounds, drawn: str) -> None:
    assert Timeline(0, 20, 21).draw(bounds, [3, 10]).plain == drawn


def test_events_outside_the_window_are_hollow() -> None:
    assert Timeline(0, 20, 21).draw(Bounds(5, 15, False, True, 5, 15), [3, 10]).plain == "····○·(━━━━●━━━━━]·····"


def test_instants_are_as_short_as_they_can_be() -> None:
    at = parse_instant("2022-10-14T15:15Z")
    assert clock(at, "2022-10-14") == "15:15"
    assert clock(at + 1_500_000, "2022-10-14") == "15:15:01.5"
    assert clock(at) == "2022-10-14 15:15"
    assert window("trailing", at - 3_600_000_000, at, "2022-10-14") == "(14:15, 15:15]"
    assert window("right-open", at - 86_400_000_000, at, "2022-10-14") == "[2022-10-13 15:15, 15:15)"


def test_csv_cells_are_plain_or_json() -> None:
    assert [csv_cell(value) for value in (None, True, 1.0, "a", [1, "ä"])] == ["", "true", "1.0", "a", '[1, "ä"]']


def test_keywords_have_the_paper_s_colours() -> None:
    text = highlight("REGISTER QUERY q { MATCH (a:Match) WHERE a.within = 'EMIT' } // RETURN")
    styled = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styled == {
        "REGISTER": "bold green",
        "QUERY": "bold green",
        "MATCH": "bold blue",
        "Match": "cyan",
        "WHERE": "bold blue",
        "'EMIT'": "yellow",
        "// RETURN": "dim italic",
    }


def test_parameters_are_json_where_they_can_be() -> None:
    given = ["a=1", "b=true", 'c="1"', "d=[1, {}]", "e=2022-10-14", "f=", "g=x=y"]
    assert options.parameters(given) == {
        "a": 1,
        "b": True,
        "c": "1",
        "d": [1, {}],
        "e": "2022-10-14",
        "f": "",
        "g": "x=y",
    }


def test_streams_have_names_of_their_own_or_of_their_file() -> None:
    assert options.named_paths(["rides=a.ndjson", "data/my-rides.ndjson.gz", "-"], "--stream") == [
        ("rides", "a.ndjson"),
        ("my_rides", "data/my-rides.ndjson.gz"),
        ("stream", "-"),
    ]
