"""Selecting parts of other values, replacing single components, truncating, and zones that skip or repeat an hour."""

from __future__ import annotations

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.temporal import (
    TEMPORAL_FUNCTIONS,
    parse_date,
    parse_date_time,
    parse_local_date_time,
    parse_local_time,
    parse_time,
    parse_zone,
)

DAY = parse_date("1984-11-11")
LOCAL_TIME = parse_local_time("12:31:14.645876123")
TIME = parse_time("12:31:14.645876+01:00")
LOCAL = parse_local_date_time("1984-03-07T12:31:14.645")
STOCKHOLM = parse_date_time("1984-10-11T12:00[Europe/Stockholm]")
HONOLULU = "Pacific/Honolulu"


def text(name: str, *arguments: object) -> str:
    return str(TEMPORAL_FUNCTIONS[name](0, *arguments))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "1984-11-11"),
        ({"year": 28}, "0028-11-11"),
        ({"day": 28}, "1984-11-28"),
        ({"week": 1}, "1984-01-08"),
        ({"ordinalDay": 28}, "1984-01-28"),
        ({"quarter": 3}, "1984-08-11"),
        ({"dayOfQuarter": 3}, "1984-10-03"),
        ({"dayOfWeek": 1}, "1984-11-05"),
    ],
)
def test_what_is_not_replaced_comes_from_the_base(fields: dict[str, object], expected: str) -> None:
    assert text("date", {"date": DAY, **fields}) == expected


def test_a_week_of_a_base_counts_in_its_week_year() -> None:
    assert text("date", {"date": parse_date("1816-12-30"), "week": 2, "dayOfWeek": 3}) == "1817-01-08"


def test_an_inherited_day_moves_to_the_months_end_but_a_given_day_must_exist() -> None:
    base = parse_date("2016-02-29")
    assert text("date", {"date": base, "year": 2015}) == "2015-02-28"
    with pytest.raises(EvaluationError):
        text("date", {"date": base, "year": 2015, "day": 29})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"time": LOCAL_TIME}, "12:31:14.645876123Z"),
        ({"time": LOCAL_TIME, "second": 42, "timezone": "+05:00"}, "12:31:42.645876123+05:00"),
        ({"time": TIME, "timezone": "+05:00"}, "16:31:14.645876+05:00"),
        ({"time": STOCKHOLM, "second": 42, "timezone": "+05:00"}, "16:00:42+05:00"),
        ({"time": LOCAL, "nanosecond": 7}, "12:31:14.000000007Z"),
    ],
)
def test_a_selected_zone_moves_the_instant_and_a_new_zone_does_not(fields: dict[str, object], expected: str) -> None:
    assert text("time", fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"date": STOCKHOLM, "hour": 10}, "1984-10-11T10:00Z"),
        ({"date": DAY, "time": TIME}, "1984-11-11T12:31:14.645876+01:00"),
        ({"date": LOCAL, "time": STOCKHOLM, "day": 28, "second": 42}, "1984-03-28T12:00:42+02:00[Europe/Stockholm]"),
        ({"date": LOCAL, "time": LOCAL_TIME, "timezone": HONOLULU},
         "1984-03-07T12:31:14.645876123-10:00[Pacific/Honolulu]"),
        ({"datetime": STOCKHOLM, "day": 28, "second": 42, "timezone": HONOLULU},
         "1984-10-28T01:00:42-10:00[Pacific/Honolulu]"),
        ({"datetime": LOCAL, "timezone": "+05:00"}, "1984-03-07T12:31:14.645+05:00"),
        ({"year": 1984, "time": LOCAL_TIME}, "1984-01-01T12:31:14.645876123Z"),
    ],
)  # fmt: skip
def test_a_datetime_is_put_together_from_parts(fields: dict[str, object], expected: str) -> None:
    assert text("datetime", fields) == expected


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("date", {}),
        ("date", {"year": 2015, "day": 3}),
        ("date", {"year": 2015, "month": 13}),
        ("date", {"year": 2015, "month": 2, "day": 30}),
        ("date", {"year": 2015, "month": 1, "week": 3}),
        ("date", {"year": 1817, "week": 53}),
        ("date", {"year": 2015, "quarter": 2, "dayOfQuarter": 92}),
        ("date", {"year": 10_000_000_000}),
        ("localtime", {}),
        ("localtime", {"minute": 3}),
        ("localtime", {"hour": 3, "millisecond": 3}),
        ("localtime", {"hour": 1, "minute": 1, "second": 1, "millisecond": 1, "microsecond": 1000}),
        ("datetime", {"year": 2015, "hour": 3}),
        ("datetime", {"datetime": STOCKHOLM, "time": TIME}),
        ("datetime", {"year": 2015, "timezone": "Europe/Atlantis"}),
        ("datetime", {"epochSeconds": 1, "year": 2015}),
        ("duration", {}),
    ],
)
def test_maps_that_name_no_value_are_refused(name: str, fields: dict[str, object]) -> None:
    with pytest.raises(EvaluationError) as caught:
        text(name, fields)
    assert caught.value.diagnostic.code == "SER-301"


MOMENT = parse_date_time("1984-11-17T12:31:14.645876123+01:00")


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("millennium", "1000-01-01T00:00+01:00"),
        ("century", "1900-01-01T00:00+01:00"),
        ("decade", "1980-01-01T00:00+01:00"),
        ("year", "1984-01-01T00:00+01:00"),
        ("weekYear", "1984-01-02T00:00+01:00"),
        ("quarter", "1984-10-01T00:00+01:00"),
        ("month", "1984-11-01T00:00+01:00"),
        ("week", "1984-11-12T00:00+01:00"),
        ("day", "1984-11-17T00:00+01:00"),
        ("hour", "1984-11-17T12:00+01:00"),
        ("minute", "1984-11-17T12:31+01:00"),
        ("second", "1984-11-17T12:31:14+01:00"),
        ("millisecond", "1984-11-17T12:31:14.645+01:00"),
        ("MICROSECOND", "1984-11-17T12:31:14.645876+01:00"),
    ],
)
def test_truncation_stops_at_the_unit_and_doing_it_twice_changes_nothing(unit: str, expected: str) -> None:
    truncate = TEMPORAL_FUNCTIONS["datetime.truncate"]
    once = truncate(0, unit, MOMENT)
    assert str(once) == expected
    assert truncate(0, unit, once, {}) == once


@pytest.mark.parametrize(
    ("name", "unit", "value", "fields", "expected"),
    [
        ("date", "weekYear", parse_date("1984-01-01"), {"day": 5}, "1983-01-05"),
        ("date", "week", DAY, {"dayOfWeek": 2}, "1984-11-06"),
        ("localdatetime", "day", DAY, {"nanosecond": 2}, "1984-11-11T00:00:00.000000002"),
        ("localtime", "millisecond", LOCAL_TIME, {"nanosecond": 2}, "12:31:14.645000002"),
        ("localtime", "millisecond", LOCAL_TIME, {"microsecond": 7}, "12:31:14.645007"),
        ("localtime", "microsecond", LOCAL_TIME, {"nanosecond": 2}, "12:31:14.645876002"),
        ("localtime", "second", LOCAL_TIME, {"nanosecond": 2}, "12:31:14.000000002"),
        ("time", "hour", TIME, {"timezone": "-03:00"}, "12:00-03:00"),
        ("datetime", "hour", MOMENT, {"timezone": "Europe/Stockholm"}, "1984-11-17T12:00+01:00[Europe/Stockholm]"),
        ("datetime", "month", DAY, {}, "1984-11-01T00:00Z"),
    ],
)
def test_components_are_laid_over_what_truncation_left(
    name: str, unit: str, value: object, fields: dict[str, object], expected: str
) -> None:
    assert text(f"{name}.truncate", unit, value, fields) == expected


@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [("date", "hour", DAY), ("localtime", "month", LOCAL_TIME), ("date", "fortnight", DAY), ("datetime", "hour", DAY)],
)
def test_a_unit_that_the_type_or_the_value_lacks_is_refused(name: str, unit: str, value: object) -> None:
    with pytest.raises(EvaluationError):
        text(f"{name}.truncate", unit, value)


def test_a_skipped_hour_moves_forward_and_a_repeated_hour_is_the_first() -> None:
    assert str(parse_date_time("2017-03-26T02:30[Europe/Stockholm]")) == "2017-03-26T03:30+02:00[Europe/Stockholm]"
    assert str(parse_date_time("2017-10-29T02:30[Europe/Stockholm]")) == "2017-10-29T02:30+02:00[Europe/Stockholm]"
    second = "2017-10-29T02:30+01:00[Europe/Stockholm]"
    assert str(parse_date_time(second)) == second


def test_named_zones_reach_years_that_python_does_not_know() -> None:
    assert str(parse_date_time("+12345-07-31T10:00[Europe/Stockholm]")).endswith("+02:00[Europe/Stockholm]")
    assert str(parse_date_time("-0044-03-15T12:00[Europe/Rome]")) == "-0044-03-15T12:00+00:49:56[Europe/Rome]"


def test_a_mistyped_zone_is_refused_with_the_right_name() -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_zone("Europe/Stokholm")
    assert caught.value.diagnostic.message == "no time zone `Europe/Stokholm`"
    assert "`Europe/Stockholm`" in caught.value.diagnostic.hint
