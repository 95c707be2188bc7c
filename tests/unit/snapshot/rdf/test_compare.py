"""`=`, `<`, `<=`, sameTerm and the effective boolean value, as the W3C's tests want them."""

from __future__ import annotations

import pytest

from anabranch.snapshot.rdf import compare

from .support import term

EQUAL = [
    ("1^^integer", "01^^integer", True),
    ("1^^integer", "1.0^^decimal", True),
    ("1^^byte", "1.0E0^^double", True),
    ("0.1^^float", "0.1^^decimal", True),
    ("0.1^^float", "0.1^^double", False),
    ("9007199254740993^^integer", "9007199254740992^^integer", False),
    ("NaN^^double", "NaN^^double", False),
    ("1^^integer", "1", False),
    ("abc", "abc@en", False),
    ("abc@en", "abc@EN", True),
    ("true^^boolean", "1^^boolean", True),
    ("true^^boolean", "1^^integer", False),
    # what is not understood is unknown, unless it is the same term or tagged (W3C open-world, open-eq-07 to 12)
    ("xyz^^integer", "xyz^^integer", True),
    ("xyz^^integer", "xyz", None),
    ("a^^<http://t/1>", "a^^<http://t/1>", True),
    ("a^^<http://t/1>", "b^^<http://t/1>", None),
    ("a^^<http://t/1>", "a^^<http://t/2>", None),
    ("xyz@en", "xyz^^integer", False),
    ("xyz@en", "xyz^^<http://t/1>", False),
    ("300^^byte", "300^^integer", None),
    # a date without a zone equals one with a zone only by guessing (W3C open-world, date-2)
    ("2006-08-23^^date", "2006-08-23Z^^date", None),
    ("2006-08-23^^date", "2001-01-01Z^^date", False),
    ("2006-08-23Z^^date", "2006-08-23+00:00^^date", True),
    ("2006-08-23^^date", "2006-08-23T00:00:00^^dateTime", False),
    ("2006-08-23T09:00:00+01:00^^dateTime", "2006-08-23T08:00:00Z^^dateTime", True),
    ("P1Y^^duration", "P12M^^yearMonthDuration", True),
    ("P1D^^dayTimeDuration", "PT24H^^duration", True),
    ("P30D^^duration", "P1M^^duration", False),
    ("<http://a/>", "<http://a/>", True),
    ("<http://a/>", "http://a/", False),
]


@pytest.mark.parametrize(("left", "right", "expected"), EQUAL)
def test_equality(left: str, right: str, expected: bool | None) -> None:
    assert compare.equal(term(left), term(right)) is expected
    assert compare.equal(term(right), term(left)) is expected


LESS = [
    ("1^^integer", "1.5^^decimal", True),
    ("2^^integer", "10^^integer", True),
    ("2", "10", False),
    ("-INF^^double", "0^^integer", True),
    ("NaN^^double", "1^^integer", False),
    ("a", "b", True),
    ("Z", "a", True),
    ("a@en", "b@en", True),
    ("a@en", "b@fr", None),
    ("a", "b@en", None),
    ("false^^boolean", "true^^boolean", True),
    ("1^^integer", "2", None),
    ("<http://a/>", "<http://b/>", None),
    ("a^^<http://t/1>", "b^^<http://t/1>", None),
    ("2006-08-22^^date", "2006-08-23^^date", True),
    ("2006-08-23^^date", "2006-08-24Z^^date", True),
    ("2006-08-23T12:00:00^^dateTime", "2006-08-23T20:00:00Z^^dateTime", None),
    ("2006-08-23T00:00:00^^dateTime", "2006-08-23T14:00:01Z^^dateTime", True),
    ("2006-08-22^^date", "2006-08-23T00:00:00Z^^dateTime", None),
    ("10:00:00Z^^time", "12:00:00+01:00^^time", True),
    ("P1M^^duration", "P32D^^duration", True),
    ("P1M^^duration", "P30D^^duration", None),
    ("PT36H^^dayTimeDuration", "P2D^^dayTimeDuration", True),
]


@pytest.mark.parametrize(("left", "right", "expected"), LESS)
def test_order(left: str, right: str, expected: bool | None) -> None:
    assert compare.less(term(left), term(right)) is expected
    if expected:
        assert compare.less(term(right), term(left)) is False
        assert compare.less_or_equal(term(left), term(right)) is True
        assert compare.less_or_equal(term(right), term(left)) is False


def test_equal_values_are_less_or_equal_and_not_less() -> None:
    for left, right in (("1^^integer", "1.0^^decimal"), ("a", "a"), ("P1D^^duration", "PT24H^^duration")):
        assert compare.less_or_equal(term(left), term(right)) is True
        assert compare.less(term(left), term(right)) is False
    assert compare.less_or_equal(term("NaN^^double"), term("NaN^^double")) is False


def test_same_term_is_about_the_term_and_not_the_value() -> None:
    assert compare.same_term(term("1^^integer"), term("01^^integer")) is False
    assert compare.same_term(term("x^^integer"), term("x^^integer")) is True


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true^^boolean", True),
        ("0^^boolean", False),
        ("", False),
        ("false", True),
        ("@en", False),
        ("a@en", True),
        ("0^^integer", False),
        ("0.0^^double", False),
        ("NaN^^float", False),
        ("0.01^^decimal", True),
        ("maybe^^boolean", False),
        ("one^^integer", False),
        ("2020-01-01^^date", None),
        ("foo^^<http://unknown/>", None),
        ("<http://a/>", None),
    ],
)
def test_effective_boolean_value(value: str, expected: bool | None) -> None:
    assert compare.ebv(term(value)) is expected
