"""Regular expressions end, whatever they are and whatever they meet."""

from __future__ import annotations

import random
import re

import pytest

from anabranch.errors import EvaluationError
from anabranch.snapshot.bounded_regex import _linear, fits, is_always_answered, is_bounded, refuse_unbounded
from anabranch.snapshot.functions.strings import matches

RUNAWAYS = ["(a+)+b", "(a|aa)+b", "(a|a)*b", "(.*)*b", "(a?){40}a{40}b", "a*a*a*a*a*a*a*b", "((a{1,30}){1,30}){1,30}b"]


@pytest.mark.parametrize("pattern", RUNAWAYS)
def test_a_pattern_that_would_run_away_is_answered(pattern: str) -> None:
    machine = re.compile(pattern)
    assert not fits(machine, "a" * 60 + "c", whole=False)
    assert fits(machine, "a" * 60 + "b", whole=True)
    assert not fits(machine, "a" * 60 + "b\n", whole=True)


def test_one_that_the_linear_engine_does_not_know_is_refused() -> None:
    with pytest.raises(EvaluationError) as refused:
        fits(re.compile(r"(a+)+\1b"), "a" * 60, whole=False)
    assert refused.value.diagnostic.code == "SER-309"
    with pytest.raises(EvaluationError):
        refuse_unbounded(re.compile("(a+)+b"), "a" * 60)


def test_what_may_be_refused_is_told_beforehand() -> None:
    assert is_always_answered("(a+)+b")
    assert not is_always_answered(r"(a+)+\1b")


def test_everyday_patterns_stay_with_python() -> None:
    for pattern in (r".*Station.*", r"[a-z]+@[a-z]+\.[a-z]{2,3}", r"(\d{1,3}\.){3}\d{1,3}", r"^a|b$", r"\w+(?=x)"):
        assert is_bounded(re.compile(pattern), "x" * 60), pattern


def test_a_repetition_too_large_to_count_is_a_wrong_value() -> None:
    with pytest.raises(EvaluationError):
        matches("a", "a{99999999999999999999}")


def test_the_linear_engine_agrees_with_python() -> None:
    draw = random.Random(3)
    atoms = ["a", "b", ".", "[ab]", "(a|b)", "(a|ab)", r"\w", "(ab)"]
    for _ in range(400):
        parts = [
            draw.choice(atoms) + draw.choice(["", "", "*", "+", "?", "{1,3}", "*?"]) for _ in range(draw.randint(1, 5))
        ]
        body = "".join(parts)
        pattern = re.compile(draw.choice([body, f"({body})*", f"({body})+b"]), draw.choice([0, re.IGNORECASE]))
        text = "".join(draw.choice("abAc") for _ in range(draw.randint(0, 9)))
        for whole in (True, False):
            by_python = (pattern.fullmatch(text) if whole else pattern.search(text)) is not None
            assert _linear(pattern, text, whole) == by_python, (pattern, text, whole)
