"""Numbers: promotion, exactness, the edges of IEEE 754; dates and durations."""

from __future__ import annotations

import pytest

from .support import call


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("add", "1^^byte", "2^^unsignedShort", "3^^integer"),
        ("add", "1^^integer", "1.50^^decimal", "2.5^^decimal"),
        ("add", "1.5^^decimal", "1.5^^float", "3^^float"),
        ("add", "1.1^^float", "1^^double", "2.100000023841858^^double"),
        ("add", "0.1^^decimal", "0.2^^decimal", "0.3^^decimal"),
        ("add", "9223372036854775807^^integer", "1^^integer", "9223372036854775808^^integer"),
        ("multiply", "0.000000000000000000001^^decimal", "0.1^^decimal", "0.0000000000000000000001^^decimal"),
        ("multiply", "1e200^^double", "1e200^^double", "INF^^double"),
        ("multiply", "3e38^^float", "10^^integer", "INF^^float"),
        ("subtract", "INF^^double", "INF^^double", "NaN^^double"),
        ("divide", "4^^integer", "2^^integer", "2^^decimal"),
        ("divide", "1^^integer", "3^^integer", "0.333333333333333333^^decimal"),
        ("divide", "2^^integer", "3^^integer", "0.666666666666666666^^decimal"),
        ("divide", "1^^integer", "300000000000^^integer", "0.00000000000333333333333333333^^decimal"),
        ("divide", "1^^integer", "0^^integer", "null"),
        ("divide", "1.0^^decimal", "0.0^^decimal", "null"),
        ("divide", "1^^integer", "0^^double", "INF^^double"),
        ("divide", "1^^integer", "-0.0^^double", "-INF^^double"),
        ("divide", "0^^integer", "0^^float", "NaN^^float"),
        ("add", "1^^integer", "1", "null"),
        ("add", "a", "b", "null"),
        ("add", "x^^integer", "1^^integer", "null"),
        ("add", "true^^boolean", "1^^integer", "null"),
    ],
)
def test_binary_operators(function: str, left: str, right: str, expected: str) -> None:
    assert call(function, left, right) == expected


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("negate", "5^^byte", "-5^^integer"),
        ("negate", "0.0^^decimal", "0^^decimal"),
        ("negate", "0^^double", "-0^^double"),
        ("negate", "P1D^^dayTimeDuration", "-P1D^^dayTimeDuration"),
        ("plus", "01^^integer", "1^^integer"),
        ("plus", "a", "null"),
        ("abs", "-2.5^^float", "2.5^^float"),
        ("round", "2.5^^decimal", "3^^decimal"),
        ("round", "-2.5^^decimal", "-2^^decimal"),
        ("round", "0.49999999999999994^^double", "0^^double"),
        ("round", "-0.4^^double", "-0^^double"),
        ("round", "INF^^double", "INF^^double"),
        ("ceil", "1.2^^decimal", "2^^decimal"),
        ("floor", "-1.2^^float", "-2^^float"),
        ("floor", "7^^integer", "7^^integer"),
        ("floor", "7", "null"),
    ],
)
def test_functions_of_one_number(function: str, value: str, expected: str) -> None:
    assert call(function, value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1e6^^double", "1000000^^double"),
        ("1.50^^double", "1.5^^double"),
        ("1e21^^double", "1.0E21^^double"),
        ("1.25e-9^^double", "1.25E-9^^double"),
        ("1e-7^^double", "0.0000001^^double"),
        ("16777217^^float", "16777216^^float"),
        ("0.1^^float", "0.1^^float"),
        ("+INF^^double", "INF^^double"),
        ("02.500^^decimal", "2.5^^decimal"),
        ("-0.0^^decimal", "0^^decimal"),
        (".5^^decimal", "0.5^^decimal"),
        ("5.^^decimal", "5^^decimal"),
        ("-007^^integer", "-7^^integer"),
    ],
)
def test_numbers_are_written_in_one_way(value: str, expected: str) -> None:
    assert call("plus", value) == expected


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("add", "2020-01-31T00:00:00Z^^dateTime", "P1M^^yearMonthDuration", "2020-02-29T00:00:00Z^^dateTime"),
        ("add", "PT36H^^dayTimeDuration", "2020-01-01^^date", "2020-01-02^^date"),
        ("subtract", "1970-01-01^^date", "PT1S^^dayTimeDuration", "1969-12-31^^date"),
        ("add", "22:00:00^^time", "PT3H^^dayTimeDuration", "01:00:00^^time"),
        ("add", "22:00:00^^time", "P1M^^yearMonthDuration", "null"),
        ("subtract", "2020-03-01T00:00:00Z^^dateTime", "2020-02-01T01:00:00+01:00^^dateTime", "P29D^^dayTimeDuration"),
        ("subtract", "2020-03-01T00:00:00Z^^dateTime", "2020-02-01T00:00:00^^dateTime", "null"),
        ("subtract", "-0001-01-01^^date", "-0002-01-01^^date", "P365D^^dayTimeDuration"),
        ("add", "P1D^^duration", "P1M^^duration", "P1M1D^^duration"),
        ("subtract", "P1M^^duration", "P1D^^duration", "null"),
        ("add", "2020-01-01^^date", "1^^integer", "null"),
    ],
)
def test_dates_and_durations(function: str, left: str, right: str, expected: str) -> None:
    assert call(function, left, right) == expected
