"""Answers as lines over time."""

from __future__ import annotations

from typing import Any

from anabranch.ui.series import MOST_LINES, Lines, Points, SeriesChoice, values

AT = 1665758700000.0


def result(*rows: list[Any], at: str = "14:45:00") -> dict[str, Any]:
    return {"at": f"2022-10-14T{at}Z", "columns": ["item", "bid"], "rows": list(rows)}


def test_all_rows_make_one_line_by_the_chosen_fold() -> None:
    found = result(["a", 1], ["b", 5], ["c", None])
    assert Lines(SeriesChoice(("bid",))).add([found], {}) == {"bid": [(AT, 3)]}
    assert Lines(SeriesChoice(("bid",), fold="max")).add([found], {}) == {"max of bid": [(AT, 5)]}
    assert Lines(SeriesChoice(("bid",), fold="rows")).add([found], {}) == {"rows of bid": [(AT, 2)]}


def test_a_column_that_names_rows_makes_a_line_for_each() -> None:
    drawn = SeriesChoice(("bid",), "item")
    assert values(result(["a", 1], ["b", 5]), drawn, {}) == {"a": {"bid": 1}, "b": {"bid": 5}}
    assert Lines(drawn).add([result(["a", 1], ["b", 5])], {}) == {"a": [(AT, 1)], "b": [(AT, 5)]}


def test_what_is_not_there_or_no_number_draws_nothing() -> None:
    assert values(result(["a", "high"]), SeriesChoice(("bid", "gone")), {}) == {}
    assert Lines(SeriesChoice(("bid",))).add([result()], {}) == {}


def test_lines_are_the_dozen_largest_of_the_newest_answer_and_the_others_are_counted() -> None:
    lines = Lines(SeriesChoice(("bid",), "item"))
    added = lines.add([result(*([f"i{number}", number] for number in range(MOST_LINES + 3)))], {})
    assert list(added) == [f"i{number}" for number in range(MOST_LINES + 2, 2, -1)]
    assert lines.left_out == 3


def test_a_row_that_is_drawn_stays_and_one_that_left_gives_its_place_to_the_largest() -> None:
    lines = Lines(SeriesChoice(("bid",), "item"))
    lines.add([result(*([f"i{number}", number] for number in range(MOST_LINES + 3)))], {})
    held = [f"i{number}" for number in range(MOST_LINES + 2, 2, -1)]
    newest = result(
        ["old", 99], ["new", 100], *([f"i{number}", 1] for number in range(4, MOST_LINES + 3)), at="14:46:00"
    )
    whole = lines.add([newest], {})
    assert lines.drawn_anew
    assert lines.names == [*held[:-1], "new"]  # i3 has left
    assert whole["new"] == [(AT + 60_000, 100)]
    assert whole["i14"] == [(AT, 14), (AT + 60_000, 1)]


def test_a_line_breaks_where_its_row_was_absent() -> None:
    lines = Lines(SeriesChoice(("bid",), "item"))
    came = [
        result(["a", 1], ["b", 1]),
        result(["b", 2], at="14:46:00"),
        result(["b", 3], at="14:47:00"),
        result(["a", 4], ["b", 4], at="14:48:00"),
    ]
    broken = [(AT, 1), (AT + 60_000, None), (AT + 180_000, 4)]
    assert lines.add(came, {})["a"] == broken
    folded = Lines(SeriesChoice(("bid",)))
    found = [folded.add([one], {}).get("bid", []) for one in (came[0], result(at="14:46:00"), result(at="14:47:00"))]
    assert found == [[(AT, 1)], [(AT + 60_000, None)], []]


def test_the_lines_are_the_same_however_the_results_are_cut() -> None:
    results = [result(["a", number], ["b", -number]) for number in range(6)]
    whole, cut = Lines(SeriesChoice(("bid",), "item")), Lines(SeriesChoice(("bid",), "item"))
    together: Points = {}
    for one in results:
        for name, more in cut.add([one], {}).items():
            together.setdefault(name, []).extend(more)
    assert together == whole.add(results, {})


def test_the_lines_begin_anew_with_the_stream() -> None:
    results = [result(["a", 1], at="14:45:00"), result(["a", 2], at="14:46:00"), result(["b", 3], at="14:45:00")]
    lines = Lines(SeriesChoice(("bid",), "item"))
    assert lines.add(results[:2], {}) == {"a": [(AT, 1), (AT + 60_000, 2)]}
    assert lines.add(results[2:], {}) == {"b": [(AT, 3)]}
    assert lines.drawn_anew
    assert lines.names == ["b"]
    assert Lines(SeriesChoice(("bid",), "item")).add(results, {}) == {"b": [(AT, 3)]}


def test_no_more_is_kept_than_is_drawn_from() -> None:
    lines = Lines(SeriesChoice(("bid",), "item"))
    for minute in range(50):
        rows = ([f"{number}", number] for number in range(6_000))
        found = lines.add([result(*rows, at=f"14:{minute:02}:00")], {})
    assert lines.left_out == 6_000 - MOST_LINES
    assert len(found["5999"]) == 1
    lines.add([result(["other", 1], at="14:50:00")], {})
    assert lines.names == ["other"]
