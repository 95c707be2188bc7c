"""Temporal functions as a query calls them: one table of calls and their canonical text."""

from __future__ import annotations

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.temporal import TEMPORAL_FUNCTIONS, Date, DateTime, Duration, LocalDateTime, LocalTime, Time

CLOCK = 1_665_758_700_000_000  # 2022-10-14T14:45:00Z


def call(name: str, *arguments: object) -> object:
    return TEMPORAL_FUNCTIONS[name.lower()](CLOCK, *arguments)


def text(name: str, *arguments: object) -> str:
    return str(call(name, *arguments))


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("date", {"year": 1984, "month": 10, "day": 11}, "1984-10-11"),
        ("date", {"year": 1984}, "1984-01-01"),
        ("date", {"year": 1817, "week": 1, "dayOfWeek": 2}, "1816-12-31"),
        ("date", {"year": 1984, "ordinalDay": 202}, "1984-07-20"),
        ("date", {"year": 1984, "quarter": 3, "dayOfQuarter": 45}, "1984-08-14"),
        ("localtime", {"hour": 12, "minute": 31, "second": 14, "millisecond": 645}, "12:31:14.645"),
        ("localtime", {"hour": 12}, "12:00"),
        ("time", {"hour": 12, "minute": 34, "second": 56, "timezone": "-02:05:07"}, "12:34:56-02:05:07"),
        ("time", {"hour": 12}, "12:00Z"),
        ("localdatetime", {"year": 1984, "week": 10, "dayOfWeek": 3, "hour": 12}, "1984-03-07T12:00"),
        ("datetime", {"year": 1984, "timezone": "+01:00"}, "1984-01-01T00:00+01:00"),
        ("datetime", {"year": 1984, "ordinalDay": 202, "timezone": "Europe/Stockholm"},
         "1984-07-20T00:00+02:00[Europe/Stockholm]"),
        ("datetime", {"epochSeconds": 416779, "nanosecond": 999_999_999}, "1970-01-05T19:46:19.999999999Z"),
        ("datetime", {"epochMillis": 237_821_673_987}, "1977-07-15T13:34:33.987Z"),
        ("duration", {"months": 0.75}, "P22DT19H51M49.5S"),
        ("duration", {"years": 12, "months": 5, "days": -14, "hours": 16}, "P12Y5M-14DT16H"),
        ("duration", {"seconds": -60, "milliseconds": -1}, "PT-1M-0.001S"),
        ("duration", {"days": 1, "milliseconds": -1}, "P1DT-0.001S"),
        ("duration", {"quarters": 1}, "P3M"),
        ("duration", {"hours": 0}, "PT0S"),
    ],
)  # fmt: skip
def test_a_map_of_components_makes_the_value(name: str, argument: dict[str, object], expected: str) -> None:
    assert text(name, argument) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("date", "2022-10-14"),
        ("localtime", "14:45"),
        ("time", "14:45Z"),
        ("localdatetime", "2022-10-14T14:45"),
        ("datetime", "2022-10-14T14:45Z"),
    ],
)
def test_without_arguments_every_clock_reads_the_statement_clock(name: str, expected: str) -> None:
    spellings = [name, f"{name}.transaction", f"{name}.statement", f"{name}.realtime"]
    assert [text(spelling) for spelling in spellings] == [expected] * 4


def test_the_clock_can_be_read_in_another_zone() -> None:
    assert text("localtime.statement", "Asia/Tokyo") == "23:45"
    assert text("date", {"timezone": "Pacific/Kiritimati"}) == "2022-10-15"
    assert text("datetime.realtime", "America/Los Angeles") == "2022-10-14T07:45-07:00[America/Los_Angeles]"


@pytest.mark.parametrize("name", sorted(TEMPORAL_FUNCTIONS))
def test_a_null_argument_gives_null(name: str) -> None:
    count = 2 if name.startswith("duration.") or name.endswith("truncate") else 1
    assert call(name, *[None] * count) is None


@pytest.mark.parametrize(
    ("name", "argument"),
    [("date", 5), ("datetime", True), ("duration", [1]), ("localtime", Date(2015)), ("date", LocalTime(12))],
)
def test_a_value_of_the_wrong_kind_is_refused_as_such(name: str, argument: object) -> None:
    with pytest.raises(EvaluationError) as caught:
        call(name, argument)
    assert caught.value.diagnostic.code == "SER-302"


def test_a_refusal_speaks_the_users_words_and_hints_at_the_next_try() -> None:
    with pytest.raises(EvaluationError) as caught:
        call("date", {"year": 2015, "mont": 3})
    assert caught.value.diagnostic.code == "SER-301"
    assert caught.value.diagnostic.message == "no component of date() `mont`"
    assert caught.value.diagnostic.hint == "did you mean `month`?"


DATE_TIME = DateTime(Date(1984, 11, 11), LocalTime(12, 31, 14, 645_876_123), 3600, "Europe/Stockholm")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("year", 1984), ("quarter", 4), ("month", 11), ("week", 45), ("weekYear", 1984), ("day", 11),
        ("ordinalDay", 316), ("weekDay", 7), ("dayOfWeek", 7), ("dayOfQuarter", 42), ("hour", 12), ("minute", 31),
        ("second", 14), ("millisecond", 645), ("microsecond", 645_876), ("nanosecond", 645_876_123),
        ("timezone", "Europe/Stockholm"), ("offset", "+01:00"), ("offsetMinutes", 60), ("offsetSeconds", 3600),
        ("epochSeconds", 469_020_674), ("epochMillis", 469_020_674_645), ("nothing", None),
    ],
)  # fmt: skip
def test_a_datetime_has_every_component(name: str, expected: object) -> None:
    assert DATE_TIME.component(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("years", 1), ("quarters", 5), ("months", 16), ("weeks", 1), ("days", 10), ("hours", 1), ("minutes", 61),
        ("seconds", 3661), ("milliseconds", 3_661_111), ("microseconds", 3_661_111_111),
        ("nanoseconds", 3_661_111_111_111), ("quartersOfYear", 1), ("monthsOfQuarter", 1), ("monthsOfYear", 4),
        ("daysOfWeek", 3), ("minutesOfHour", 1), ("secondsOfMinute", 1), ("millisecondsOfSecond", 111),
        ("microsecondsOfSecond", 111_111), ("nanosecondsOfSecond", 111_111_111), ("nothing", None),
    ],
)  # fmt: skip
def test_a_duration_has_every_component(name: str, expected: object) -> None:
    assert Duration(16, 10, 3661, 111_111_111).component(name) == expected


def test_components_of_a_missing_part_are_null() -> None:
    assert Date(2015).component("hour") is None
    assert LocalTime(12).component("timezone") is None
    assert LocalDateTime(Date(2015)).component("offset") is None
    assert Time(LocalTime(12)).component("timezone") == "Z"


def test_the_last_days_of_a_year_can_lie_in_the_next_week_year() -> None:
    new_year = Date(1984, 1, 1)
    assert [new_year.component(name) for name in ("year", "weekYear", "week", "weekDay")] == [1984, 1983, 52, 7]


def test_the_same_instant_in_two_zones_is_ordered_but_not_equal() -> None:
    here = DateTime(Date(2015), LocalTime(12), 0)
    there = DateTime(Date(2015), LocalTime(13), 3600)
    assert here.epoch_seconds == there.epoch_seconds
    assert here != there
    assert here.order_key() < there.order_key()


def test_times_are_ordered_by_the_moment_and_not_by_the_clock_face() -> None:
    later = Time(LocalTime(10, 35), -8 * 3600)
    earlier = Time(LocalTime(12, 31), 3600)
    assert earlier.order_key() < later.order_key()


def test_durations_are_equal_by_component_and_ordered_by_average_length() -> None:
    assert call("duration", {"minutes": 12, "seconds": 70}) == call("duration", {"minutes": 13, "seconds": 10})
    assert Duration(days=1) != Duration(seconds=86_400)
    assert len({Duration(seconds=1, nanoseconds=-1), Duration(nanoseconds=999_999_999)}) == 1
    assert Duration(months=1).order_key() > Duration(days=30).order_key()
    assert Duration(months=1).order_key() < Duration(days=31).order_key()


def test_epoch_micros_round_down_and_come_back() -> None:
    assert str(DateTime.from_epoch_micros(CLOCK)) == "2022-10-14T14:45Z"
    assert DateTime.from_epoch_micros(-1).to_epoch_micros() == -1
    assert DateTime(Date(1969, 12, 31), LocalTime(23, 59, 59, 999_999_999)).to_epoch_micros() == -1
    assert DateTime(Date(1970), LocalTime(1), 3600).to_epoch_micros() == 0
