"""A bag that stays sorted while items come and go."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.model import sorted_bag
from anabranch.model.sorted_bag import SortedBag


@pytest.mark.parametrize("chunk", [2, 5, 512])
@pytest.mark.parametrize("seed", range(4))
def test_it_holds_what_a_sorted_list_would(chunk: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_bag, "_CHUNK", chunk)
    random = Random(seed)
    bag: SortedBag[int] = SortedBag()
    model: list[int] = []
    for step in range(1500):
        growing = step % 600 < 350
        if not model or random.random() < (0.7 if growing else 0.3):
            model.append(random.randrange(200))
            bag.add(model[-1])
        else:
            bag.remove(model.pop(random.randrange(len(model))))
        if step % 97 == 0:
            ordered = sorted(model)
            probe = random.randrange(220)
            assert list(bag) == ordered
            assert len(bag) == len(ordered)
            assert bag.first_from(probe) == next((one for one in ordered if one >= probe), None)
            assert [bag[at] for at in range(len(ordered))] == ordered
            assert not ordered or bag[-1] == ordered[-1]
    for one in model:
        bag.remove(one)
    assert list(bag) == []


@pytest.mark.parametrize("chunk", [3, 512])
def test_many_items_at_once_are_those_items_one_by_one(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_bag, "_CHUNK", chunk)
    random = Random(7)
    bag, model = SortedBag(range(20)), list(range(20))
    for _ in range(50):
        entering = [random.randrange(30) for _ in range(random.choice((0, 1, 2, 40, 300)))]
        model += entering
        bag.extend(entering)
        assert list(bag) == sorted(model)
        for _ in range(len(model) // 3):
            bag.remove(model.pop(random.randrange(len(model))))


def test_what_is_not_there_cannot_be_taken_out() -> None:
    bag = SortedBag([1, 3])
    for missing in (0, 2, 4):
        with pytest.raises(KeyError):
            bag.remove(missing)
    with pytest.raises(IndexError):
        bag[2]
    assert list(bag) == [1, 3]
