"""Between two instants, and adding, subtracting, multiplying and dividing."""

from __future__ import annotations

import random

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.temporal import (
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Zone,
    add,
    between,
    divide,
    in_days,
    in_months,
    in_seconds,
    multiply,
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
    subtract,
)

DAY = parse_date("1984-10-11")
LOCAL = parse_local_date_time("2015-07-21T21:40:32.142")
MOMENT = parse_date_time("2014-07-21T21:40:36.143+0200")
LONG = parse_duration("P12Y5M14DT16H13M10.000000001S")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (DAY, parse_date("2015-06-24"), "P30Y8M13D"),
        (DAY, parse_time("16:30+0100"), "PT16H30M"),
        (parse_local_time("14:30"), MOMENT, "PT7H10M36.143S"),
        (parse_time("14:30"), parse_time("16:30+0100"), "PT1H"),
        (LOCAL, parse_date("2015-06-24"), "P-27DT-21H-40M-32.142S"),
        (MOMENT, parse_date("2015-06-24"), "P11M2DT2H19M23.857S"),
        (MOMENT, parse_date_time("2015-07-21T21:40:32.142+0100"), "P1YT59M55.999S"),
        (parse_date("-999999999-01-01"), parse_date("+999999999-12-31"), "P1999999998Y11M30D"),
        (parse_local_date_time("2018-01-02T10:00:00.1"), parse_local_date_time("2018-01-01T10:00:00.2"),
         "PT-23H-59M-59.9S"),
    ],
)  # fmt: skip
def test_between_splits_into_months_days_and_the_rest(start: object, end: object, expected: str) -> None:
    assert str(between(start, end)) == expected


@pytest.mark.parametrize(
    ("compute", "start", "end", "expected"),
    [
        (in_months, parse_date("2018-03-11"), parse_date("2016-06-24"), "P-1Y-8M"),
        (in_months, DAY, parse_local_time("16:30"), "PT0S"),
        (in_days, DAY, parse_date("2015-06-24"), "P11213D"),
        (in_days, MOMENT, parse_date_time("2015-07-21T21:40:32.142+0100"), "P365D"),
        (in_days, parse_time("14:30"), LOCAL, "PT0S"),
        (in_seconds, LOCAL, parse_date("2015-06-24"), "PT-669H-40M-32.142S"),
        (in_seconds, parse_local_time("12:34:54.7"), parse_local_time("12:34:54.3"), "PT-0.4S"),
    ],
)
def test_between_in_one_unit(compute, start: object, end: object, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert str(compute(start, end)) == expected


def test_a_day_with_a_repeated_hour_has_25_hours() -> None:
    midnight = parse_date_time("2017-10-29T00:00[Europe/Stockholm]")
    assert str(in_seconds(midnight, parse_date("2017-10-30"))) == "PT25H"
    assert str(in_seconds(parse_local_time("00:00"), parse_date_time("2017-10-29T04:00[Europe/Stockholm]"))) == "PT5H"
    assert str(between(midnight, parse_date("2017-10-30"))) == "P1D"


@pytest.mark.parametrize(
    ("value", "duration", "total", "difference"),
    [
        (DAY, "P12Y5M14DT16H13M10S", "1997-03-25", "1972-04-27"),
        (DAY, "P12Y11M29DT33H58M13.5S", "1997-10-11", "1971-10-12"),
        (parse_date("2015-01-31"), "P1M", "2015-02-28", "2014-12-31"),
        (parse_local_time("12:31:14.000000001"), "P9YT16H13M10.000000002S", "04:44:24.000000003",
         "20:18:03.999999999"),
        (parse_time("12:31+01:00"), "PT13H", "01:31+01:00", "23:31+01:00"),
        (parse_local_date_time("1984-10-11T12:31:14"), "P1M-14DT15H49M10S", "1984-10-29T04:20:24",
         "1984-09-24T20:42:04"),
        (parse_date_time("2017-10-28T12:00[Europe/Stockholm]"), "P1D", "2017-10-29T12:00+01:00[Europe/Stockholm]",
         "2017-10-27T12:00+02:00[Europe/Stockholm]"),
        (parse_date_time("2017-10-28T12:00[Europe/Stockholm]"), "PT24H", "2017-10-29T11:00+01:00[Europe/Stockholm]",
         "2017-10-27T12:00+02:00[Europe/Stockholm]"),
        (LONG, "P1M-14DT16H-12M70S", "P12Y6MT32H2M20.000000001S", "P12Y4M28DT24M0.000000001S"),
    ],
)  # fmt: skip
def test_durations_are_added_and_taken_away(value: object, duration: str, total: str, difference: str) -> None:
    amount = parse_duration(duration)
    assert str(add(value, amount)) == total
    assert add(amount, value) == add(value, amount)
    assert str(subtract(value, amount)) == difference


@pytest.mark.parametrize(
    ("number", "product", "quotient"),
    [
        (1, "P12Y5M14DT16H13M10.000000001S", "P12Y5M14DT16H13M10.000000001S"),
        (2, "P24Y10M28DT32H26M20.000000002S", "P6Y2M22DT13H21M8S"),
        (0.5, "P6Y2M22DT13H21M8S", "P24Y10M28DT32H26M20.000000002S"),
        (-1, "P-12Y-5M-14DT-16H-13M-10.000000001S", "P-12Y-5M-14DT-16H-13M-10.000000001S"),
    ],
)
def test_durations_are_scaled(number: float, product: str, quotient: str) -> None:
    assert str(multiply(LONG, number)) == product
    assert multiply(number, LONG) == multiply(LONG, number)
    assert str(divide(LONG, number)) == quotient


def test_a_tenth_is_a_tenth() -> None:
    assert str(multiply(Duration(seconds=1), 0.1)) == "PT0.1S"
    assert str(multiply(Duration(seconds=3), 0.1)) == "PT0.3S"


@pytest.mark.parametrize(
    ("operation", "left", "right"),
    [(add, DAY, DAY), (add, 1, 2), (subtract, DAY, DAY), (subtract, 1, LONG), (multiply, DAY, 2),
     (multiply, LONG, True), (divide, LONG, LONG), (divide, 2, LONG)],
)  # fmt: skip
def test_other_operands_are_left_to_the_caller(operation, left: object, right: object) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError):
        operation(left, right)


def test_results_beyond_the_calendar_are_refused() -> None:
    with pytest.raises(EvaluationError):
        add(parse_date("+999999999-12-31"), Duration(days=1))
    with pytest.raises(EvaluationError):
        divide(LONG, 0)
    with pytest.raises(EvaluationError):
        between(DAY, LONG)


def test_adding_what_lies_between_reaches_the_end() -> None:
    generator = random.Random(7)
    for _ in range(500):
        ends = []
        for _ in range(2):
            local = LocalDateTime(
                Date.from_epoch_day(generator.randrange(-40_000, 40_000)),
                LocalTime.from_nano_of_day(generator.randrange(86_400_000_000_000)),
            )
            ends.append(DateTime.of(local, Zone("Europe/Stockholm")))
        start, end = ends
        assert add(start, between(start, end)) == end
        first, last = (LocalDateTime(one.date, one.time) for one in ends)
        assert add(first, between(first, last)) == last
        assert add(start.date, between(start.date, end.date)) == end.date
