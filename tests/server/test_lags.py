"""How far a run is behind its streams, and how that is said."""

from __future__ import annotations

from anabranch.server.lags import Lags
from anabranch.sources.base import Backlog
from anabranch.ui.values import duration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_run_is_as_far_behind_as_the_first_event_that_waits_is_old() -> None:
    clock = Clock()
    lags = Lags(clock)
    assert lags.note("s", Backlog(0, 10)) == (0.0, False)
    for second in range(1, 31):  # ten come a second, two are read
        clock.now = float(second)
        behind, growing = lags.note("s", Backlog(2 * second, 10 * second + 10))
    assert 24 <= behind <= 30
    assert growing
    clock.now = 40.0
    assert lags.note("s", Backlog(310, 310)) == (0.0, False)


def test_a_source_that_does_not_know_and_one_that_begins_anew_are_not_behind() -> None:
    clock = Clock()
    lags = Lags(clock)
    assert lags.note("s", None) == (0.0, False)
    assert lags.note("s", Backlog(5, None)) == (0.0, False)
    lags.note("s", Backlog(0, 100))
    clock.now = 9.0
    assert lags.note("s", Backlog(0, 100))[0] == 9.0
    assert lags.note("s", Backlog(0, 3)) == (0.0, False)


def test_very_many_sightings_are_thinned() -> None:
    clock = Clock()
    lags = Lags(clock)
    for number in range(5_000):
        clock.now = float(number)
        behind, _ = lags.note("s", Backlog(1, number + 2))
    assert 4_000 < behind <= 4_999


def test_a_duration_is_read_at_a_glance() -> None:
    assert [duration(one) for one in (7.4, 240, 7200)] == ["7 s", "4 min", "2.0 h"]
