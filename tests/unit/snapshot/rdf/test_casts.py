"""Constructor functions of XSD types."""

from __future__ import annotations

import pytest

from anabranch.model.terms import XSD

from .support import call


@pytest.mark.parametrize(
    ("value", "datatype", "expected"),
    [
        ("<http://a/>", "string", "http://a/"),
        ("a@en", "string", "a"),
        ("01^^integer", "string", "1"),
        ("1E0^^double", "string", "1"),
        ("-7.875^^float", "string", "-7.875"),
        ("1e6^^double", "string", "1.0E6"),
        ("-1234567.5^^double", "string", "-1.2345675E6"),
        ("999999.5^^double", "string", "999999.5"),
        ("1e6^^float", "string", "1.0E6"),
        ("1e-6^^double", "string", "0.000001"),
        ("1e-7^^double", "string", "1.0E-7"),
        ("-0^^double", "string", "-0"),
        ("-INF^^double", "string", "-INF"),
        ("1000000.0^^decimal", "string", "1000000"),
        ("1000000^^integer", "string", "1000000"),
        ("1e6", "string", "1e6"),
        ("0^^boolean", "string", "false"),
        ("x^^integer", "string", "x"),
        ("2020-01-01T00:00:00.50+00:00^^dateTime", "string", "2020-01-01T00:00:00.5Z"),
        ("1", "boolean", "true^^boolean"),
        ("TRUE", "boolean", "null"),
        ("NaN^^double", "boolean", "false^^boolean"),
        ("0.5^^decimal", "boolean", "true^^boolean"),
        ("-1.9^^decimal", "integer", "-1^^integer"),
        ("1e10^^double", "integer", "10000000000^^integer"),
        ("INF^^double", "integer", "null"),
        ("1.9", "integer", "null"),
        (" +12\n", "integer", "12^^integer"),
        ("true^^boolean", "integer", "1^^integer"),
        ("1@en", "integer", "null"),
        ("<http://1/>", "integer", "null"),
        ("1.25^^double", "decimal", "1.25^^decimal"),
        ("1e3", "decimal", "null"),
        ("1e3", "double", "1000^^double"),
        ("INF", "float", "INF^^float"),
        ("1e300^^double", "float", "INF^^float"),
        ("127^^integer", "byte", "127^^byte"),
        ("128^^integer", "byte", "null"),
        ("-1", "unsignedInt", "null"),
        ("5", "positiveInteger", "5^^positiveInteger"),
        ("2020-01-01", "dateTime", "null"),
        ("2020-01-01^^date", "dateTime", "2020-01-01T00:00:00^^dateTime"),
        ("2020-01-01T10:20:30Z^^dateTime", "date", "2020-01-01Z^^date"),
        ("2020-01-01T10:20:30Z^^dateTime", "time", "10:20:30Z^^time"),
        ("10:20:30^^time", "dateTime", "null"),
        ("2020-12-31T24:00:00Z", "dateTime", "2021-01-01T00:00:00Z^^dateTime"),
        ("2019-02-29T00:00:00Z", "dateTime", "null"),
        ("2020-01-01T00:00:00+14:01", "dateTime", "null"),
        ("24:00:00", "time", "00:00:00^^time"),
        ("P14M", "duration", "P1Y2M^^duration"),
        ("PT0.50S", "dayTimeDuration", "PT0.5S^^dayTimeDuration"),
        ("P1Y2M3DT4H^^duration", "dayTimeDuration", "P3DT4H^^dayTimeDuration"),
        ("P1Y2M3DT4H^^duration", "yearMonthDuration", "P1Y2M^^yearMonthDuration"),
        ("P0M", "yearMonthDuration", "P0M^^yearMonthDuration"),
        ("P1D", "yearMonthDuration", "null"),
        ("P", "duration", "null"),
        ("P1YT", "duration", "null"),
        ("1^^integer", "duration", "null"),
    ],
)
def test_cast(value: str, datatype: str, expected: str) -> None:
    assert call("cast", value, f"<{XSD}{datatype}>") == expected
