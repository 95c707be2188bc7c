"""Which rows of an answer the browser has already."""

from __future__ import annotations

import random

from anabranch.ui.rows import MOST_ROWS, ShownRows


def test_a_row_that_stays_keeps_its_key_and_is_not_sent_again() -> None:
    rows = ShownRows()
    (first, second), sent = rows.show([("a", 1), ("b", 2)], "t1")
    assert sent == [first, second]
    order, sent = rows.show([("b", 2), ("c", 3)], "t2")
    assert order[0] == second
    assert sent == [order[1]]
    assert order[1] not in (first, second)


def test_a_row_whose_numbers_changed_keeps_its_key_and_is_sent_again() -> None:
    rows = ShownRows()
    (key,), _ = rows.show([("a", 1)], "t1")
    assert rows.show([("a", 2)], "t2") == ([key], [key])


def test_equal_rows_have_keys_of_their_own() -> None:
    rows = ShownRows()
    order, _ = rows.show([("a", 1), ("a", 1)], "t1")
    assert len(set(order)) == 2
    assert rows.show([("a", 1)], "t2") == ([order[0]], [])


def test_true_is_no_number_that_may_change() -> None:
    rows = ShownRows()
    (before,), _ = rows.show([(True,)], "t1")
    (after,), _ = rows.show([(False,)], "t2")
    assert before != after


def test_what_the_browser_has_is_always_the_answer() -> None:
    chance = random.Random(7)
    rows, browser = ShownRows(), dict[int, tuple[object, ...]]()
    for _ in range(300):
        answer = [(chance.choice("abc"), chance.randrange(3)) for _ in range(chance.randrange(8))]
        order, sent = rows.show(answer, "t")
        browser |= {key: rows.rows[key][0] for key in sent}
        assert [browser[key] for key in order] == answer
        assert len(set(order)) == len(order)
        browser = {key: browser[key] for key in order}


def test_a_log_has_the_newest_rows_first_and_never_too_many() -> None:
    rows = ShownRows()
    rows.put_first([("old",)] * (MOST_ROWS - 1), "t1")
    order, sent = rows.put_first([("x",), ("y",), ("z",)], "t2")
    assert [rows.rows[key] for key in order[:3]] == [(("x",), "t2"), (("y",), "t2"), (("z",), "t2")]
    assert sent == order[:3]
    assert len(order) == MOST_ROWS


def test_a_row_that_went_is_remembered_with_the_last_instant_at_which_it_was_there() -> None:
    rows = ShownRows()
    (first,), _ = rows.show([("a", 1)], "10:00")
    rows.show([("a", 1), ("b", 2)], "10:01")
    rows.show([("b", 2)], "10:02")
    assert rows.gone == {first: (("a", 1), "10:01")}
    for number in range(3000):
        rows.show([(str(number), 0)], "11:00")
    assert len(rows.gone) == 1000
