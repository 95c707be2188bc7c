"""Answers as lines over time."""

from __future__ import annotations

from typing import Any

from anabranch.ui.series import MOST_LINES, Drawn, Lines, points

AT = 1665758700000.0


def result(*rows: list[Any], at: str = "14:45:00") -> dict[str, Any]:
    return {"at": f"2022-10-14T{at}Z", "columns": ["item", "bid"], "rows": list(rows)}


def test_all_rows_make_one_line_by_the_chosen_fold() -> None:
    found = result(["a", 1], ["b", 5], ["c", None])
    assert points(found, Drawn(("bid",)), {}) == {"bid": (AT, 3)}
    assert points(found, Drawn(("bid",), fold="max"), {}) == {"max of bid": (AT, 5)}
    assert points(found, Drawn(("bid",), fold="rows"), {}) == {"rows of bid": (AT, 2)}


def test_a_column_that_names_rows_makes_a_line_for_each() -> None:
    assert points(result(["a", 1], ["b", 5]), Drawn(("bid",), "item"), {}) == {"a": (AT, 1), "b": (AT, 5)}


def test_what_is_not_there_or_no_number_draws_nothing() -> None:
    assert points(result(["a", "high"]), Drawn(("bid", "gone")), {}) == {}
    assert points(result(), Drawn(("bid",)), {}) == {}


def test_lines_are_the_first_dozen_and_the_others_are_counted() -> None:
    lines = Lines(Drawn(("bid",), "item"))
    added = lines.add([result(*([f"i{number}", number] for number in range(MOST_LINES + 3)))], {})
    assert list(added) == [f"i{number}" for number in range(MOST_LINES)]
    assert lines.left_out == 3


def test_the_lines_are_the_same_however_the_results_are_cut() -> None:
    results = [result(["a", number], ["b", -number]) for number in range(6)]
    whole, cut = Lines(Drawn(("bid",), "item")), Lines(Drawn(("bid",), "item"))
    together: dict[str, list[tuple[float, float]]] = {}
    for one in results:
        for name, more in cut.add([one], {}).items():
            together.setdefault(name, []).extend(more)
    assert together == whole.add(results, {})


def test_the_lines_begin_anew_with_the_stream() -> None:
    results = [result(["a", 1], at="14:45:00"), result(["a", 2], at="14:46:00"), result(["b", 3], at="14:45:00")]
    lines = Lines(Drawn(("bid",), "item"))
    assert lines.add(results[:2], {}) == {"a": [(AT, 1), (AT + 60_000, 2)]}
    assert not lines.begun_anew
    assert lines.add(results[2:], {}) == {"b": [(AT, 3)]}
    assert lines.begun_anew
    assert lines.names == ["b"]
    assert Lines(Drawn(("bid",), "item")).add(results, {}) == {"b": [(AT, 3)]}


def test_lines_that_are_left_out_are_counted_to_the_end() -> None:
    lines = Lines(Drawn(("bid",), "item"))
    for turn in range(3):
        lines.add([result(*([f"{turn}-{number}", number] for number in range(6_000)))], {})
    assert lines.left_out == 10_000
