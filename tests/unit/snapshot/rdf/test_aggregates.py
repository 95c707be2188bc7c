"""Aggregates over terms: types, errors, and that the order of rows does not matter."""

from __future__ import annotations

from itertools import permutations

import pytest

from anabranch.model.terms import Blank, Literal
from anabranch.model.values import Value
from anabranch.snapshot.aggregates import DistinctValues
from anabranch.snapshot.rdf.aggregates import AGGREGATES

from .support import shown, term


def result(name: str, values: list[Value], extra: tuple[Value, ...] = (), distinct: bool = False) -> str:
    accumulator = AGGREGATES[f"sparql:{name}"]()
    assert accumulator.takes_null
    if distinct:
        accumulator = DistinctValues(accumulator)
    for value in values:
        accumulator.add(value, extra)
    return shown(accumulator.result())


def terms(*texts: str) -> list[Value]:
    return [None if text == "null" else term(text) for text in texts]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("count", [], "0^^integer"),
        ("count", ["1^^integer", "null", "a"], "2^^integer"),
        ("sum", [], "0^^integer"),
        ("sum", ["1^^byte", "2^^integer"], "3^^integer"),
        ("sum", ["1^^integer", "2.2^^decimal"], "3.2^^decimal"),
        ("sum", ["0.1^^decimal"] * 10, "1^^decimal"),
        ("sum", ["1.5^^float", "1^^integer"], "2.5^^float"),
        ("sum", ["2E-1^^double", "0.2^^decimal"], "0.4^^double"),
        ("sum", ["1^^integer", "a"], "null"),
        ("sum", ["1^^integer", "null"], "null"),
        ("sum", ["x^^integer"], "null"),
        ("avg", [], "0^^integer"),
        ("avg", ["1^^integer", "2^^integer", "3^^integer"], "2^^decimal"),
        ("avg", ["1^^integer", "2^^integer", "2^^integer"], "1.666666666666666666^^decimal"),
        ("avg", ["1^^integer", "2^^double"], "1.5^^double"),
        ("avg", ["1^^integer", "<http://a/>"], "null"),
        ("min", [], "null"),
        ("min", ["10^^integer", "9.5^^decimal", "1E2^^double"], "9.5^^decimal"),
        ("min", ["2E-1^^double", "0.2^^decimal"], "2E-1^^double"),
        ("min", ["b", "<http://a/>", "1^^integer"], "<http://a/>"),
        ("min", ["1^^integer", "null"], "null"),
        ("max", ["10^^integer", "9.5^^decimal"], "10^^integer"),
        ("max", ["2020-01-01^^date", "2021-01-01^^date"], "2021-01-01^^date"),
        ("max", ["null"], "null"),
        ("sample", [], "null"),
        ("sample", ["null", "b", "a"], "a"),
        ("group_concat", [], ""),
        ("group_concat", ["1@en", "2@fr", "<http://a/>", "3^^integer"], "1 2 http://a/ 3"),
        ("group_concat", ["a", "null"], "null"),
    ],
)
def test_aggregates(name: str, values: list[str], expected: str) -> None:
    assert result(name, terms(*values)) == expected


def test_distinct_is_about_terms() -> None:
    values = terms("1^^integer", "1^^integer", "1.0^^decimal", "2^^integer")
    assert result("sum", values, distinct=True) == "4^^decimal"
    assert result("count", values, distinct=True) == "3^^integer"
    assert result("count", terms("null", "a", "null"), distinct=True) == "1^^integer"


def test_count_of_whole_rows_counts_rows_with_nothing_in_front() -> None:
    accumulator = DistinctValues(AGGREGATES["sparql:count"]())
    for row in ((None, "a"), (None, "a"), (None, None), ("b", None)):
        accumulator.add(list(row), ())
    assert shown(accumulator.result()) == "3^^integer"


def test_group_concat_keeps_the_order_of_rows_and_takes_a_separator() -> None:
    assert result("group_concat", terms("b", "a", "b"), (Literal(", "),)) == "b, a, b"
    assert result("group_concat", terms("b", "a", "b"), ("|",), distinct=True) == "b|a"
    assert result("group_concat", [Blank("n")]) == "null"


@pytest.mark.parametrize(
    "values",
    [
        ["1E16^^double", "1^^double", "-1E16^^double", "0.1^^decimal"],
        ["1E308^^double", "1E308^^double", "-1E308^^double", "7^^integer"],
        ["INF^^double", "-INF^^double", "1^^integer"],
        ["0.1^^float", "16777216^^float", "3^^integer", "0.5^^decimal"],
        ["1^^integer", "1.0^^decimal", "01^^integer", "1^^double"],
    ],
)
def test_the_order_of_rows_does_not_matter(values: list[str]) -> None:
    for name in ("sum", "avg", "min", "max", "sample", "count"):
        assert len({result(name, terms(*order)) for order in permutations(values)}) == 1


def test_sums_of_doubles_are_rounded_once() -> None:
    assert result("sum", terms(*["0.1^^double"] * 10)) == "1^^double"
    assert result("sum", terms("1E308^^double", "1E308^^double", "-1E308^^double")) == "1.0E308^^double"
