"""Literals stand for values, and values are written as literals."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.terms import XSD, XSD_DATE_TIME, XSD_DAY_TIME_DURATION, Literal
from anabranch.snapshot.rdf.timeline import Period, XsdMoment, date_of, days_of
from anabranch.snapshot.rdf.values import ILL, UNKNOWN, Single, literal_of, single, value_of

from .support import shown, term

SECONDS = st.decimals(-(10**13), 10**13, places=9)
VALUES = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(single),
    st.builds(XsdMoment, st.just(XSD_DATE_TIME), SECONDS, st.none() | st.integers(-840, 840)),
    st.builds(Period, st.just(XSD_DAY_TIME_DURATION), st.just(0), SECONDS),
)


@given(VALUES)
def test_a_value_that_is_written_is_read_as_the_same_value(
    value: int | Decimal | float | str | XsdMoment | Period,
) -> None:
    literal = literal_of(value)
    assert literal is not None
    again = value_of(literal)
    assert again == value
    assert type(again) is type(value)
    assert literal_of(again) == literal


@given(st.integers(-(10**9), 10**9))
def test_every_day_has_one_date(days: int) -> None:
    assert days_of(*date_of(days)) == days


def test_the_calendar_knows_its_landmarks() -> None:
    assert date_of(0) == (1970, 1, 1)
    assert date_of(11_016) == (2000, 2, 29)
    assert date_of(days_of(1900, 2, 28) + 1) == (1900, 3, 1)
    assert date_of(days_of(0, 2, 28) + 1) == (0, 2, 29)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "^^integer",
            " 1^^integer",
            "1.0^^integer",
            "١^^integer",
            "128^^byte",
            "-1^^unsignedLong",
            "0^^negativeInteger",
        ),
        *("1e5^^decimal", ".^^decimal", "Infinity^^double", "nan^^double", "1e^^float", "True^^boolean"),
        *("2020-01-01^^dateTime", "2020-13-01^^date", "2021-02-29^^date", "20-01-01^^date", "25:00:00^^time"),
        *("24:00:01^^time", "2020-01-01T00:00:00+14:30^^dateTime", "P1D^^yearMonthDuration", "P1M^^dayTimeDuration"),
        *("1D^^duration", "P-1D^^duration", "PT1.S^^duration"),
        "9" * 5000 + "-01-01^^date",
    ],
)
def test_what_is_no_form_of_its_datatype_has_no_value(text: str) -> None:
    literal = term(text)
    assert isinstance(literal, Literal)
    assert value_of(literal) is ILL


def test_a_datatype_that_nobody_knows_has_values_that_nobody_knows() -> None:
    assert value_of(Literal("a", "http://unknown/")) is UNKNOWN
    assert value_of(Literal("aGk=", f"{XSD}base64Binary")) is UNKNOWN


def test_single_precision_rounds_and_overflows() -> None:
    assert single(16_777_217) == 16_777_216
    assert single(1e39) == float("inf")
    assert shown(literal_of(Single(single(1 / 3)))) == "0.33333334^^float"


def test_a_number_too_long_to_be_written_is_none() -> None:
    assert literal_of(10**5000) is None
    assert literal_of(Decimal("1E+9000")) is None
