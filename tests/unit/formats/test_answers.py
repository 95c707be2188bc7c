"""Answers as bytes: to the letter what the command line prints, and typed JSON that gives the answer again."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any, Literal

import pytest
from tests.unit.formats.test_values import VALUES

from anabranch.engine.answers import Answer
from anabranch.formats.answers import (
    AnswerParts,
    beside,
    csv_cell,
    csv_columns,
    csv_header,
    csv_lines,
    from_typed,
    json_lines,
    to_typed,
)
from anabranch.formats.values import cypher_text
from anabranch.model.compare import content_key

AT = 1_665_760_500_000_001
COLUMNS = ("value", 'r."é"', "a,b")
ROWS: list[tuple[Any, ...]] = [(value, 'line\nand "quotes", commas', "") for value in VALUES]


def parts(rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS, query: str = "q") -> AnswerParts:
    return AnswerParts(query, AT, "entering", "", AT - 3_600_000_000, AT, columns, rows)


def answer(one: AnswerParts) -> Answer:
    return Answer.told(one.query, one.at, "entering", (one.win_start, one.win_end), one.columns, one.rows)


@pytest.mark.parametrize("rows", [ROWS, [], [(None, None, None)]], ids=["all values", "no rows", "nulls"])
def test_json_lines_are_the_rows_of_the_answer(rows: list[tuple[Any, ...]]) -> None:
    expected = [json.dumps(row, ensure_ascii=False) for row in answer(parts(rows)).row_dicts()]
    assert json_lines(parts(rows)).decode().splitlines() == expected


def test_json_lines_of_rows_without_columns_keep_their_number() -> None:
    lines = json_lines(parts([(), ()], ())).splitlines()
    assert [json.loads(line)["row"] for line in lines] == [{}, {}]


def test_a_correction_stands_after_the_operator_and_only_where_there_is_one() -> None:
    corrected = parts([(1, 2, 3)])._replace(correction="retracted")
    assert list(json.loads(json_lines(corrected)))[:4] == ["query", "at", "op", "correction"]
    assert b"correction" not in json_lines(parts([(1, 2, 3)]))


def test_half_a_surrogate_pair_stays_readable_json() -> None:
    line = json_lines(parts([("\ud800", 1, 2)]))
    assert json.loads(line.decode("utf-8"))["row"]["value"] == "\ud800"


@pytest.mark.parametrize("several", [False, True], ids=["one query", "several queries"])
def test_csv_holds_every_row_under_the_columns_of_all_queries(several: bool) -> None:
    other = parts([(1, "x")], ("other", "value"), "second query, with a comma")
    told = [parts(ROWS), other] if several else [parts(ROWS)]
    of_all = csv_columns([one.columns for one in told])
    lines = b"".join(csv_lines(one, columns_of_all=of_all, several=several) for one in told)
    found = list(csv.DictReader(io.StringIO((csv_header(of_all, several) + lines).decode(), newline="")))
    rows = [(one, dict(zip(one.columns, row, strict=True))) for one in told for row in one.rows]
    assert len(found) == len(rows)
    for line, (one, row) in zip(found, rows, strict=True):
        assert (line["op"], line["at"]) == ("entering", "2022-10-14T15:15:00.000001Z")
        assert line.get("query", "q") == one.query
        assert {name: line[name] for name in of_all} == {
            name: csv_cell(row[name]) if name in row else "" for name in of_all
        }


@pytest.mark.parametrize("correction", ["", "retracted", "corrected"])
def test_a_correction_is_said_in_json_and_in_csv(correction: Literal["", "retracted", "corrected"]) -> None:
    one = parts(ROWS)._replace(correction=correction)
    told = replace(answer(one), correction=correction)
    assert [json.loads(line) for line in json_lines(one).decode().splitlines()] == [
        json.loads(json.dumps(row)) for row in told.row_dicts()
    ]
    text = (csv_header(COLUMNS, corrections=True) + csv_lines(one, corrections=True)).decode()
    assert {line["correction"] for line in csv.DictReader(io.StringIO(text, newline=""))} == {correction}


def test_csv_tells_corrections_in_a_column_of_their_own() -> None:
    assert csv_header(["a"], several=True, corrections=True) == b"query,at,op,correction,win_start,win_end,a\n"
    one = parts([(1,)], ("a",))._replace(correction="corrected")
    assert csv_lines(one, corrections=True).startswith(b"2022-10-14T15:15:00.000001Z,entering,corrected,")
    assert csv_lines(one._replace(correction=""), corrections=True).split(b",")[2] == b""


def test_csv_cells_are_plain_or_json() -> None:
    assert [csv_cell(value) for value in (None, True, 1.0, "a", [1, "ä"])] == ["", "true", "1.0", "a", '[1, "ä"]']


@pytest.mark.parametrize("value", VALUES, ids=cypher_text)
def test_typed_gives_every_value_again(value: Any) -> None:
    (again,) = from_typed(to_typed(parts([(value,)], ("v",)))).rows
    assert content_key(again[0]) == content_key(value)
    assert type(again[0]) is type(value)


@pytest.mark.parametrize("rows", [[], [()], [(), ()]], ids=["no rows", "one empty row", "two empty rows"])
def test_typed_gives_the_whole_answer_again(rows: list[tuple[Any, ...]]) -> None:
    one = parts(rows, (), 'ünï "q"')._replace(correction="retracted", at=-1, win_start=-(10**17))
    assert from_typed(to_typed(one)) == one


def test_typed_takes_text_that_utf8_cannot_hold() -> None:
    one = parts([("\ud800", "\x00", "\u2028")])
    assert from_typed(to_typed(one)) == one
    assert to_typed(one).count(b"\n") == 1  # one line for the head, one for the row


def test_columns_that_clash_get_an_underscore_and_never_another_ones_name() -> None:
    assert beside(["at", "user"]) == ["at_", "user"]
    assert beside(["at", "at_", "AT"]) == ["at__", "at_", "AT___"]
    assert beside(["number"], ("at",)) == ["number"]
