"""Rows that stay from answer to answer: rendered once, to the byte as if each answer were rendered alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.formats.answers import (
    AnswerParts,
    AnswerTexts,
    TypedAnswers,
    csv_cell,
    from_typed,
    head,
)
from anabranch.formats.rdf.results import GRAPH_COLUMNS, GRAPH_FORMS, TABLE_FORMS, ResultTexts, render
from anabranch.formats.rendered_rows import AnswerRow, RenderedRows
from anabranch.formats.values import to_json
from anabranch.model.instants import format_instant
from anabranch.model.terms import XSD_BOOLEAN, Blank, Iri, Literal
from anabranch.model.values import Node
from anabranch.sinks.base import RenderedAnswer
from anabranch.sinks.forms import LineTexts, RdfForm
from anabranch.sinks.webhook import AnswerBodies

# Values that are equal in Python and differ in text are in one pool: a row is known by its identity, not by equality.
VALUES = [
    1, 1.0, True, None, "", "1", "a,b", 'say "x"', "line\nbreak", "\r", " ", "ä\u2028", "\ud800", [1, None], {"k": 1.5},
    Node(7, ("A",), {"n": "x"}), Iri("http://x/a"), Blank("b", "d"), Literal("5"), Literal("true", XSD_BOOLEAN),
]  # fmt: skip
TERMS = [Iri("http://x/a"), Iri("http://x/b"), Iri("urn:c")]


@st.composite
def answers(draw: st.DrawFn, width: int | None = None, values: list[Any] = VALUES) -> list[AnswerParts]:
    """Draw the answers of one query: each has some rows of a pool, so that rows stay, leave, return and move."""
    wide = draw(st.integers(0, 3)) if width is None else width
    columns = GRAPH_COLUMNS if width == 3 else tuple("xyz"[:wide])
    row = st.lists(st.sampled_from(values), min_size=wide, max_size=wide).map(tuple)
    pool = draw(st.lists(row, min_size=1, max_size=6))
    told = []
    for at in range(draw(st.integers(1, 5))):
        rows = draw(st.one_of(st.just(pool), st.lists(st.sampled_from(pool), max_size=8)))
        op = draw(st.sampled_from(["snapshot", "snapshot", "entering"]))
        correction = draw(st.sampled_from(["", "", "retracted"]))
        told.append(AnswerParts("q,1", at * 1_000_000, op, correction, at - 5, at, columns, list(rows)))
    return told


@given(answers())
def test_json_lines_are_those_of_each_row_alone(told: list[AnswerParts]) -> None:
    texts = AnswerTexts()
    for one in told:
        expected = [
            {**head(*one[:6]), "row": {name: to_json(value) for name, value in zip(one.columns, row, strict=True)}}
            for row in one.rows
        ]
        lines = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in expected)
        assert texts.json_lines(one) == lines.encode("utf-8", "backslashreplace")


@given(answers(), st.sampled_from([None, ["z", "w", "x"], ["w"], []]), st.booleans(), st.booleans())
def test_csv_lines_are_those_of_each_row_alone(
    told: list[AnswerParts], of_all: list[str] | None, several: bool, corrections: bool
) -> None:
    texts = AnswerTexts()
    for one in told:
        whole = io.StringIO()
        writer = csv.writer(whole, lineterminator="\n")
        for row in one.rows:
            by_name = dict(zip(one.columns, row, strict=True))
            first = [one.query] if several else []
            first += [format_instant(one.at), one.op, *([one.correction] if corrections else [])]
            first += [format_instant(one.win_start), format_instant(one.win_end)]
            names = one.columns if of_all is None else of_all
            writer.writerow([*first, *(csv_cell(by_name[name]) if name in by_name else "" for name in names)])
        expected = whole.getvalue().encode("utf-8", "backslashreplace")
        assert texts.csv_lines(one, of_all, several, corrections) == expected


@given(answers())
def test_typed_answers_are_read_as_they_were_and_rows_stay_the_same_tuples(told: list[AnswerParts]) -> None:
    texts, reader = AnswerTexts(), TypedAnswers()
    before: list[AnswerRow] = []
    for one in told:
        data = texts.typed(one)
        again = reader.read(data)
        assert repr(again) == repr(from_typed(data)) == repr(one._replace(rows=again.rows))
        assert list(map(repr, again.rows)) == list(map(repr, one.rows))
        same = {repr(row): row for row in before}
        assert all(same[repr(row)] is row for row in again.rows if repr(row) in same)
        before = again.rows
        assert repr(TypedAnswers().read(data, 2).rows) == repr(again.rows[:2])


@pytest.mark.parametrize("form", TABLE_FORMS)
@given(told=answers())
def test_results_of_sparql_are_those_of_each_answer_alone(form: str, told: list[AnswerParts]) -> None:
    texts, lines, typed = ResultTexts(form), LineTexts(RdfForm(form)), AnswerTexts()
    for number, one in enumerate(told):
        expected = render(form, one)
        assert texts.render(one) == expected
        rendered = RenderedAnswer(one.query, number, one.at, len(one.rows), typed=typed.typed(one))
        assert b"".join(lines.of([rendered])) == expected


@pytest.mark.parametrize("form", GRAPH_FORMS)
@given(told=answers(3, TERMS))
def test_graphs_are_those_of_each_answer_alone(form: str, told: list[AnswerParts]) -> None:
    texts = ResultTexts(form, {"x": "http://x/"})
    for one in told:
        assert texts.render(one) == render(form, one, {"x": "http://x/"})


@given(answers())
def test_bodies_for_a_webhook_are_those_of_each_answer_alone(told: list[AnswerParts]) -> None:
    bodies, typed = AnswerBodies(), AnswerTexts()
    for number, one in enumerate(told):
        rows = [{name: to_json(value) for name, value in zip(one.columns, row, strict=True)} for row in one.rows]
        first = head(*one[:6])
        plain = {"query": first.pop("query"), "number": number, **first, "rows": rows}
        expected = json.dumps(plain, ensure_ascii=False).encode("utf-8", "backslashreplace")
        assert bodies.of(RenderedAnswer(one.query, number, one.at, len(rows), typed=typed.typed(one))) == expected


def test_the_columns_of_a_query_may_change() -> None:
    texts, row = AnswerTexts(), ("a", "b")
    first = AnswerParts("q", 0, "snapshot", "", 0, 0, ("x", "y"), [row])
    assert b'{"x": "a", "y": "b"}' in texts.json_lines(first)
    assert b'{"v": "a", "w": "b"}' in texts.json_lines(first._replace(columns=("v", "w")))
    assert texts.csv_lines(first, ["x", "y"]).endswith(b",a,b\n")
    assert texts.csv_lines(first, ["y", "z"]).endswith(b",b,\n")


class _Counted:
    """Rows rendered as their text; counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, rows: Iterable[AnswerRow]) -> list[str]:
        found = [repr(row) for row in rows]
        self.count += len(found)
        return found


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=8))
def test_only_rows_that_come_are_rendered(told: list[list[int]]) -> None:
    pool = [(number,) for number in range(10)]
    render = _Counted()
    kept = RenderedRows(render)
    before: set[int] = set()
    for numbers in told:
        rendered = render.count
        assert kept.of([pool[number] for number in numbers]) == [f"({number},)" for number in numbers]
        assert render.count - rendered <= len(set(numbers) - before)
        before = set(numbers)


def test_rows_that_have_left_are_forgotten_before_they_are_many() -> None:
    kept = RenderedRows(_Counted())
    for start in range(0, 5000, 50):
        kept.of([(number,) for number in range(start, start + 50)])
        assert 50 <= len(kept) <= 250


def test_rows_that_do_not_come_again_are_not_kept() -> None:
    kept = RenderedRows(_Counted())
    assert kept.of([(1,), (2,)], is_kept=False) == ["(1,)", "(2,)"]
    assert len(kept) == 0


def test_a_row_that_was_made_anew_is_rendered_anew_though_it_is_equal() -> None:
    kept = RenderedRows(_Counted())
    assert kept.of([(1,)]) == ["(1,)"]
    assert kept.of([(1.0,)]) == ["(1.0,)"]
    assert kept.of([(True,)]) == ["(True,)"]
