"""Functions of literals remember short ones, and hold no long one."""

from __future__ import annotations

from anabranch.model.remembered import LONGEST, remembered
from anabranch.model.terms import Literal


def test_short_literals_are_remembered_and_long_ones_are_not() -> None:
    asked: list[int] = []

    @remembered(2)
    def length(literal: Literal) -> int:
        asked.append(len(literal.lexical))
        return len(literal.lexical)

    short, long = Literal("x" * LONGEST), Literal("x" * (LONGEST + 1))
    assert [length(one) for one in (short, short, long, long)] == [LONGEST, LONGEST, LONGEST + 1, LONGEST + 1]
    assert asked == [LONGEST, LONGEST + 1, LONGEST + 1]
