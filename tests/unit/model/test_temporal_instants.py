"""Instants of streams: text to microseconds and back, and calendar steps in UTC."""

from __future__ import annotations

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.instants import add_duration, format_instant, parse_instant, subtract_duration
from anabranch.model.temporal import parse_duration


@pytest.mark.parametrize(
    "text",
    ["2022-10-14T14:45", "2022-10-14T14:45:00", "2022-10-14T14:45:00Z", "2022-10-14T14:45:00.000Z",
     "2022-10-14T16:45+02:00", "2022-10-14T16:45[Europe/Rome]", "20221014T1445Z", "2022-10-14 14:45"],
)  # fmt: skip
def test_an_instant_has_many_spellings(text: str) -> None:
    assert parse_instant(text) == 1_665_758_700_000_000


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_665_758_700_000_000, "2022-10-14T14:45:00Z"),
        (1_665_758_700_250_000, "2022-10-14T14:45:00.25Z"),
        (-62_167_219_200_000_000, "0000-01-01T00:00:00Z"),
        (253_402_300_800_000_000, "+10000-01-01T00:00:00Z"),
    ],
)
def test_an_instant_is_written_in_utc_and_read_back(micros: int, text: str) -> None:
    assert format_instant(micros) == text
    assert parse_instant(text) == micros


def test_a_date_alone_is_its_midnight() -> None:
    assert format_instant(parse_instant("2022-10-14")) == "2022-10-14T00:00:00Z"


@pytest.mark.parametrize("text", ["", "now", "2022-02-30", "2022-10-14T25:00", "2022-10-14T14:45+99:00", "14:45"])
def test_text_that_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_instant(text)
    assert caught.value.diagnostic.code == "SER-301"
    assert f"`{text}` is not an instant" in caught.value.diagnostic.message


@pytest.mark.parametrize(
    ("start", "duration", "times", "end"),
    [
        ("2022-10-14T14:45", "PT1H", 1, "2022-10-14T15:45:00Z"),
        ("2022-10-14T14:45", "PT0.5S", 3, "2022-10-14T14:45:01.5Z"),
        ("2022-01-31T08:00", "P1M", 1, "2022-02-28T08:00:00Z"),
        ("2022-01-31T08:00", "P1M", 3, "2022-04-30T08:00:00Z"),
        ("2022-01-31T08:00", "P1M1DT1H", 1, "2022-03-01T09:00:00Z"),
        ("2022-03-31T08:00", "P1M", -1, "2022-02-28T08:00:00Z"),
        ("2022-10-14T14:45", "P1Y", 0, "2022-10-14T14:45:00Z"),
    ],
)
def test_calendar_steps_are_taken_from_the_biggest_unit_down(start: str, duration: str, times: int, end: str) -> None:
    assert format_instant(add_duration(parse_instant(start), parse_duration(duration), times)) == end


def test_subtracting_is_one_step_back() -> None:
    assert (
        format_instant(subtract_duration(parse_instant("2024-03-31"), parse_duration("P1M"))) == "2024-02-29T00:00:00Z"
    )
