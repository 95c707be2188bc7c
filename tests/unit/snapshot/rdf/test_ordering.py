"""The order of ORDER BY over everything a row can hold."""

from __future__ import annotations

from itertools import combinations
from random import Random

from anabranch.model.terms import Blank
from anabranch.snapshot.rdf.compare import less
from anabranch.snapshot.rdf.ordering import order_key, strict_key

from .support import term

IN_ORDER = [
    None,
    Blank("a"),
    Blank("b"),
    term("<http://a/>"),
    term("<http://b/>"),
    *map(term, ("NaN^^double", "-INF^^float", "-1^^integer", "0.5^^decimal", "1^^byte", "1.5^^float", "2E0^^double")),
    *map(term, ("9007199254740992^^integer", "9007199254740993^^integer", "INF^^double")),
    *map(term, ("", "A", "a", "a@de", "a@en", "b")),
    *map(term, ("false^^boolean", "true^^boolean")),
    *map(term, ("2019-12-31T23:00:00-02:00^^dateTime", "2020-01-01T02:00:00Z^^dateTime")),
    *map(term, ("2020-01-01^^date", "2020-01-02^^date", "10:00:00^^time", "11:00:00^^time", "2020^^gYear")),
    *map(term, ("-P1D^^duration", "PT0S^^duration", "P1D^^dayTimeDuration", "P1M^^yearMonthDuration")),
    *map(term, ("a^^<http://unknown/1>", "b^^<http://unknown/1>", "a^^<http://unknown/2>", "x^^integer")),
]


def test_any_two_values_have_their_place() -> None:
    for one, other in combinations(IN_ORDER, 2):
        assert order_key(one) < order_key(other), (one, other)
    shuffled = IN_ORDER.copy()
    Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=order_key) == IN_ORDER


def test_the_order_says_what_less_than_says() -> None:
    decided = [pair for pair in combinations(IN_ORDER, 2) if less(*pair) is not None and "NaN" not in str(pair)]
    assert len(decided) > 50
    assert all(less(*pair) for pair in decided)


def test_equal_values_share_a_place_and_only_one_term_is_the_first_of_them() -> None:
    equal = [term(one) for one in ("1^^integer", "01^^integer", "1.0^^decimal", "1E0^^double")]
    assert len({order_key(one) for one in equal}) == 1
    assert len({strict_key(one) for one in equal}) == 4
    assert order_key(term("2E-1^^double")) == order_key(term("0.2^^decimal"))


def test_truth_and_plain_numbers_stand_with_their_literals() -> None:
    assert order_key(True) == order_key(term("true^^boolean"))
    assert order_key(3) == order_key(term("3^^integer"))
