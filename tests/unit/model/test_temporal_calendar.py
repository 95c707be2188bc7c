"""The calendar on integers agrees with `datetime.date` where that reaches, and goes on beyond it."""

from __future__ import annotations

import datetime

import pytest

from anabranch.model.temporal import calendar

EPOCH = datetime.date(1970, 1, 1).toordinal()
SAMPLED_DAYS = range(1 - EPOCH, datetime.date.max.toordinal() - EPOCH + 1, 911)


def test_every_sampled_day_is_the_day_that_python_knows() -> None:
    for days in SAMPLED_DAYS:
        known = datetime.date.fromordinal(days + EPOCH)
        assert calendar.civil_from_days(days) == (known.year, known.month, known.day)
        assert calendar.days_from_civil(known.year, known.month, known.day) == days
        assert calendar.week_date(days) == tuple(known.isocalendar())
        assert calendar.ordinal_day(known.year, known.month, known.day) == known.timetuple().tm_yday


@pytest.mark.parametrize("year", [calendar.MIN_YEAR, -400, -1, 0, 1, 9999, 10_000, calendar.MAX_YEAR])
def test_days_of_far_years_come_back(year: int) -> None:
    for month, day in [(1, 1), (2, 28), (3, 1), (12, 31)]:
        days = calendar.days_from_civil(year, month, day)
        assert calendar.civil_from_days(days) == (year, month, day)


def test_the_calendar_repeats_after_400_years_to_the_weekday() -> None:
    first, second = calendar.days_from_civil(-1, 7, 5), calendar.days_from_civil(399, 7, 5)
    assert second - first == calendar.DAYS_PER_ERA
    assert calendar.weekday(first) == calendar.weekday(second)


@pytest.mark.parametrize(("year", "weeks"), [(1818, 53), (1817, 52), (2015, 53), (2016, 52), (2020, 53)])
def test_some_years_have_53_weeks(year: int, weeks: int) -> None:
    assert calendar.weeks_in_week_year(year) == weeks


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        ((2015, 1, 31), 1, (2015, 2, 28)),
        ((2016, 1, 31), 1, (2016, 2, 29)),
        ((2015, 3, 31), -1, (2015, 2, 28)),
        ((2015, 12, 15), 1, (2016, 1, 15)),
        ((2015, 1, 15), -13, (2013, 12, 15)),
    ],
)
def test_months_stop_at_the_end_of_a_shorter_month(
    start: tuple[int, int, int], months: int, end: tuple[int, int, int]
) -> None:
    assert calendar.add_months(*start, months) == end
