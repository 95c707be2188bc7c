"""ISO 8601 text in all its forms, and what is not ISO 8601."""

from __future__ import annotations

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.temporal import (
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)


@pytest.mark.parametrize(
    "text",
    [
        "2015-07-21",
        "20150721",
        "2015-W30-2",
        "2015W302",
        "2015-202",
        "2015202",
        "2015-Q3-21",
        "2015Q321",
        "+2015-07-21",
    ],
)
def test_one_day_has_many_spellings(text: str) -> None:
    assert str(parse_date(text)) == "2015-07-21"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-07", "2015-07-01"),
        ("201507", "2015-07-01"),
        ("2015-W30", "2015-07-20"),
        ("2015W30", "2015-07-20"),
        ("2015-Q3", "2015-07-01"),
        ("2015", "2015-01-01"),
        ("-0001-07", "-0001-07-01"),
        ("+999999999-12-31", "+999999999-12-31"),
        ("-999999999-01-01", "-999999999-01-01"),
    ],
)
def test_parts_left_out_of_a_date_take_their_lowest_value(text: str, expected: str) -> None:
    assert str(parse_date(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("21:40:32.142", "21:40:32.142"), ("214032,142", "21:40:32.142"), ("T214032", "21:40:32"), ("2140", "21:40"),
     ("21", "21:00"), ("00:00:00.000000001", "00:00:00.000000001")],
)  # fmt: skip
def test_a_local_time_may_leave_out_its_small_parts(text: str, expected: str) -> None:
    assert str(parse_local_time(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("21:40:32+01:00", "21:40:32+01:00"), ("214032-0100", "21:40:32-01:00"), ("2140-02", "21:40-02:00"),
     ("22+18:00", "22:00+18:00"), ("21:40Z", "21:40Z"), ("21:40-00:00", "21:40Z"), ("21:40", "21:40Z")],
)  # fmt: skip
def test_a_time_takes_its_offset_or_utc(text: str, expected: str) -> None:
    assert str(parse_time(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-W30-2T214032.142", "2015-07-21T21:40:32.142"),
        ("2015T2140", "2015-01-01T21:40"),
        ("2015202T21", "2015-07-21T21:00"),
        ("2015-07-21", "2015-07-21T00:00"),
    ],
)
def test_date_and_time_forms_combine(text: str, expected: str) -> None:
    assert str(parse_local_date_time(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-07-21T21:40:32.142+0100", "2015-07-21T21:40:32.142+01:00"),
        ("2015-W30T2140-00:00", "2015-07-20T21:40Z"),
        ("2015-07-21T21:40:32", "2015-07-21T21:40:32Z"),
        ("2015-07-21T21:40[Europe/London]", "2015-07-21T21:40+01:00[Europe/London]"),
        ("2015-07-21T21:40+0845[Australia/Eucla]", "2015-07-21T21:40+08:45[Australia/Eucla]"),
        ("1818-07-21T21:40[Europe/Stockholm]", "1818-07-21T21:40+00:53:28[Europe/Stockholm]"),
    ],
)
def test_a_datetime_takes_an_offset_a_zone_both_or_none(text: str, expected: str) -> None:
    moment = parse_date_time(text)
    assert str(moment) == expected
    assert parse_date_time(expected) == moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P5M1.5D", "P5M1DT12H"),
        ("P0.75M", "P22DT19H51M49.5S"),
        ("PT0.75M", "PT45S"),
        ("P2.5W", "P17DT12H"),
        ("P0.5D", "PT12H"),
        ("PT0.5S", "PT0.5S"),
        ("PT-0,5S", "PT-0.5S"),
        ("P12Y5M-14DT16H", "P12Y5M-14DT16H"),
        ("-P1Y2DT3H", "P-1Y-2DT-3H"),
        ("P2012-02-02T14:37:21.545", "P2012Y2M2DT14H37M21.545S"),
        ("P20120202T143721", "P2012Y2M2DT14H37M21S"),
        ("PT0S", "PT0S"),
    ],
)
def test_a_duration_reads_designators_fractions_and_the_date_form(text: str, expected: str) -> None:
    duration = parse_duration(text)
    assert str(duration) == expected
    assert parse_duration(expected) == duration


@pytest.mark.parametrize("text", ["", "hello", "2015-7-21", "2015-13", "2015-02-30", "2015-W54", "2015-366", "20157"])
def test_text_that_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_date(text)
    assert caught.value.diagnostic.code == "SER-301"


@pytest.mark.parametrize("text", ["24:00", "12:60", "1:00", "12:00:00.", "12:00:00.1234567890", "12+01:00"])
def test_text_that_is_no_local_time_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_local_time(text)


@pytest.mark.parametrize("text", ["P", "PT", "P1", "1D", "P1DT", "P1S", "PT1D", "P2012-13-02T14:37:21"])
def test_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_duration(text)


def test_an_offset_that_the_zone_does_not_have_is_refused_with_the_right_one() -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_date_time("2015-07-21T21:40-05:00[America/New_York]")
    assert "-04:00[America/New_York]" in caught.value.diagnostic.hint
