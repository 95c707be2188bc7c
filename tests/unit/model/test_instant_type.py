"""Instants are integers that people can read."""

from __future__ import annotations

from datetime import UTC, datetime

from anabranch.model.instants import Instant, parse_instant

AT = Instant(parse_instant("2022-10-14T15:15Z"))


def test_an_instant_shows_as_iso_8601() -> None:
    assert (str(AT), f"{AT}", repr(AT)) == (
        "2022-10-14T15:15:00Z",
        "2022-10-14T15:15:00Z",
        "Instant('2022-10-14T15:15:00Z')",
    )


def test_an_instant_is_its_microseconds() -> None:
    assert parse_instant("2022-10-14T15:15Z") == AT
    assert AT + 1 == 1665760500000001


def test_an_instant_becomes_a_datetime() -> None:
    assert AT.to_datetime() == datetime(2022, 10, 14, 15, 15, tzinfo=UTC)


def test_a_text_that_is_no_instant_is_quoted_as_it_was_written() -> None:
    import pytest

    from anabranch.errors import EvaluationError

    with pytest.raises(EvaluationError, match="a quarter to three"):
        parse_instant("a quarter to three")
