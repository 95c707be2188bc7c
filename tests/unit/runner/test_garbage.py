"""Garbage collection around windows: living objects are out of sight, garbage is found, all is undone at the end."""

from __future__ import annotations

import atexit
import gc
import weakref
from collections.abc import Iterator

import pytest

from anabranch.runner import garbage
from anabranch.runner.garbage import collect_seldom, quiet_collector, settle


class Ring:
    """A reference cycle."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    assert gc.get_freeze_count() == 0, "another test has left objects out of the collector's sight"
    yield
    gc.unfreeze()


def is_tracked(thing: object) -> bool:
    """Return whether the next full collection looks at an object."""
    return any(one is thing for one in gc.get_objects())


def test_living_objects_are_out_of_sight_until_the_end() -> None:
    with quiet_collector() as settle:
        window = [[number] for number in range(100)]
        assert is_tracked(window)
        settle()
        assert not is_tracked(window)
        later = [window]
        assert is_tracked(later)
    assert is_tracked(window)
    assert gc.get_freeze_count() == 0


def test_a_young_cycle_is_found_before_objects_are_put_out_of_sight() -> None:
    with quiet_collector() as settle:
        ring = Ring()
        seen = weakref.ref(ring)
        del ring
        settle()
        assert seen() is None


def test_an_old_cycle_is_found_on_request_and_when_memory_has_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    with quiet_collector():
        rings = [Ring(), Ring()]
        first, second = map(weakref.ref, rings)
        settle()
        rings.pop(0)
        settle()
        assert first() is not None, "it is out of sight"
        settle(whole=True)
        assert first() is None
        rings.clear()
        settle()
        assert second() is not None
        monkeypatch.setattr(garbage, "_blocks", garbage._blocks // 4)
        settle()
        assert second() is None


def test_the_last_of_several_users_undoes_it() -> None:
    with quiet_collector():
        with quiet_collector() as settle:
            settle()
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_a_second_user_finds_what_the_one_before_has_left() -> None:
    with quiet_collector() as settle:
        ring = Ring()
        seen = weakref.ref(ring)
        settle()
        del ring
        with quiet_collector():
            assert seen() is None


def test_it_is_undone_when_a_run_fails() -> None:
    with pytest.raises(RuntimeError), quiet_collector():
        raise RuntimeError
    assert gc.get_freeze_count() == 0


def test_more_objects_come_between_two_collections() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.set_threshold(*before)
        atexit.unregister(gc.freeze)
