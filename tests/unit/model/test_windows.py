"""Windows and evaluation instants: the three policies, calendar durations, and finding an instant without counting."""

from __future__ import annotations

from itertools import pairwise

import pytest

from anabranch.model.instants import format_instant, parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.windows import Bounds, EvaluationInstants, WindowPolicy, bounds, first_multiple, last_multiple

DAY = "2022-10-14T"
HOUR = parse_duration("PT1H")
MINUTES = parse_duration("PT5M")


def at(time: str) -> int:
    return parse_instant(time if "T" in time or time.count("-") == 2 else DAY + time)


def window(policy: WindowPolicy, instant: str, width: Duration = HOUR, every: Duration | None = MINUTES) -> Bounds:
    return bounds(policy, at(instant), width, at("14:45"), every)


def test_a_trailing_window_excludes_its_opening_and_includes_its_instant() -> None:
    #   (14:15 -------- 15:15]
    found = window("trailing", "15:15")
    assert (found.win_start, found.win_end) == (at("14:15"), at("15:15"))
    assert not found.contains(at("14:15"))
    assert found.contains(at("14:15") + 1)
    assert found.contains(at("15:15"))
    assert not found.contains(at("15:15") + 1)


def test_a_right_open_window_includes_its_opening_and_excludes_its_instant() -> None:
    #   [14:15 -------- 15:15)
    found = window("right-open", "15:15")
    assert (found.win_start, found.win_end) == (at("14:15"), at("15:15"))
    assert found.contains(at("14:15"))
    assert not found.contains(at("15:15"))
    assert found.contains(at("15:15") - 1)


def test_the_formal_window_is_the_earliest_that_contains_the_instant() -> None:
    #   w0 [14:45 --------------- 15:45)
    #   w1    [14:50 --------------- 15:50)      at 15:40 both contain it: w0; at 15:45 only w1 and later ones
    early = window("formal", "15:40")
    assert (early.win_start, early.win_end) == (at("14:45"), at("15:45"))
    later = window("formal", "15:45")
    assert (later.win_start, later.win_end) == (at("14:50"), at("15:50"))
    assert not later.contains(at("14:45"))


def test_the_formal_window_holds_only_what_has_arrived_by_the_instant() -> None:
    found = window("formal", "15:15")
    assert found.contains(at("14:45"))
    assert found.contains(at("15:15"))
    assert not found.contains(at("15:16"))


def test_an_instant_between_two_formal_windows_sees_nothing() -> None:
    #   [14:45, 14:46)   gap   [14:50, 14:51)
    found = window("formal", "14:48", parse_duration("PT1M"))
    assert (found.win_start, found.win_end) == (at("14:48"), at("14:48"))
    assert not found.contains(at("14:48"))
    assert found.first >= found.stop


def test_before_the_first_formal_window_there_is_nothing() -> None:
    assert not window("formal", "14:40").contains(at("14:40"))


def test_a_formal_window_of_a_query_that_answers_once_is_the_first() -> None:
    found = window("formal", "14:45", every=None)
    assert (found.win_start, found.win_end) == (at("14:45"), at("15:45"))


def test_a_month_is_a_calendar_month() -> None:
    found = bounds("trailing", at("2024-03-31T12:00"), parse_duration("P1M"), 0, None)
    assert format_instant(found.win_start) == "2024-02-29T12:00:00Z"


@pytest.mark.parametrize("policy", ["trailing", "right-open", "formal"])
@pytest.mark.parametrize("width", ["PT7S", "P1M", "P1M3D", "P1Y", "P2D"])
@pytest.mark.parametrize("every", ["PT5H", "P1D", "P1M", "P1MT1H"])
def test_no_end_of_a_window_ever_moves_back(policy: WindowPolicy, width: str, every: str) -> None:
    start = at("2023-12-31T10:00")
    instants = EvaluationInstants(start, parse_duration(every))
    found = [bounds(policy, instants.instant(k), parse_duration(width), start, instants.every) for k in range(60)]
    for before, after in pairwise(found):
        assert before.first <= after.first
        assert before.stop <= after.stop


def test_the_third_month_after_january_31_is_april_30() -> None:
    instants = EvaluationInstants(at("2023-01-31"), parse_duration("P1M"))
    assert [format_instant(instants.instant(k))[:10] for k in range(4)] == [
        "2023-01-31",
        "2023-02-28",
        "2023-03-31",
        "2023-04-30",
    ]


@pytest.mark.parametrize("every", ["PT1S", "PT0.0000015S", "P1D", "P1M", "P1MT1S", "P1Y2M3DT4H"])
@pytest.mark.parametrize("index", [0, 1, 2, 11, 1000, 123_456])
def test_an_index_is_found_from_its_instant(every: str, index: int) -> None:
    instants = EvaluationInstants(at("2023-01-31"), parse_duration(every))
    instant = instants.instant(index)
    assert instants.index_at_or_after(instant) == index
    assert instants.index_at_or_after(instant + 1) == index + 1
    if index:
        assert instants.index_at_or_after(instants.instant(index - 1) + 1) == index


def test_a_second_over_a_thousand_years_is_found_at_once() -> None:
    instants = EvaluationInstants(at("1022-10-14"), parse_duration("PT1S"))
    assert instants.instant(instants.index_at_or_after(at("2022-10-14"))) == at("2022-10-14")


def test_before_the_start_the_first_instant_is_next() -> None:
    instants = EvaluationInstants(at("14:45"), MINUTES)
    assert instants.index_at_or_after(at("2000-01-01")) == 0


def test_without_every_there_is_one_instant() -> None:
    instants = EvaluationInstants(at("14:45"), None)
    assert instants.index_at_or_after(at("14:45")) == 0
    assert instants.index_at_or_after(at("14:45") + 1) == 1


@pytest.mark.parametrize("guess", [0, 3, 41, 42, 43, 500])
@pytest.mark.parametrize("low", [0, 17, 42])
def test_search_finds_the_first_index_from_any_guess(guess: int, low: int) -> None:
    instants = EvaluationInstants(0, MINUTES)
    assert instants.search(lambda index: index >= 42, low, guess) == 42


@pytest.mark.parametrize("text", ["PT0S", "-PT1H", "-P1M", "P1M-40D", "PT0.0000001S"])
def test_time_that_does_not_move_forward_is_refused(text: str) -> None:
    duration = parse_duration(text)
    with pytest.raises(ValueError, match="EVERY must be longer than nothing"):
        EvaluationInstants(0, duration)
    with pytest.raises(ValueError, match="WITHIN must be longer than nothing"):
        bounds("trailing", 0, duration, 0)


@pytest.mark.parametrize(
    ("step", "instant", "last", "first"),
    [
        ("PT5M", "2024-05-01T10:07", "2024-05-01T10:05", "2024-05-01T10:10"),
        ("PT5M", "2024-05-01T10:05", "2024-05-01T10:05", "2024-05-01T10:05"),
        ("PT5M", "1969-12-31T23:58", "1969-12-31T23:55", "1970-01-01T00:00"),
        ("P1M", "2024-05-17", "2024-05-01", "2024-06-01"),
        ("P1M", "1969-11-01", "1969-11-01", "1969-11-01"),
        ("P1MT12H", "1970-03-01T06:00", "1970-02-01T12:00", "1970-03-02T00:00"),
    ],
)
def test_the_multiples_of_a_step_around_an_instant(step: str, instant: str, last: str, first: str) -> None:
    duration, micros = parse_duration(step), parse_instant(instant)
    assert last_multiple(duration, micros) == parse_instant(last)
    assert first_multiple(duration, micros) == parse_instant(first)


def test_multiples_count_from_an_origin_and_of_less_than_a_microsecond_too() -> None:
    origin = parse_instant("2024-05-01T10:03")
    assert last_multiple(parse_duration("PT5M"), parse_instant("2024-05-01T10:07"), origin) == origin
    assert last_multiple(parse_duration("PT0.0000015S"), 10**15) == 10**15


@pytest.mark.parametrize(
    ("text", "micros", "fixed"),
    [
        ("P1DT0.5S", 86_400_500_000, 86_400_500_000),
        ("P1MT1S", 1_000_000, None),
        ("PT0.0000015S", 1, None),
    ],
)
def test_a_duration_has_a_fixed_length_unless_a_calendar_or_a_part_of_a_microsecond_is_in_it(
    text: str, micros: int, fixed: int | None
) -> None:
    assert (parse_duration(text).micros, parse_duration(text).fixed_micros) == (micros, fixed)
