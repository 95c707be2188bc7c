"""Regular expressions end, whatever they are and whatever they meet."""

from __future__ import annotations

import random
import re

import pytest

from anabranch.errors import EvaluationError
from anabranch.snapshot.bounded_regex import fits, is_always_answered, is_bounded, refuse_unbounded
from anabranch.snapshot.functions.strings import matches
from anabranch.snapshot.linear_regex import NotLinear, fits_linearly

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


def agrees(pattern: re.Pattern[str], text: str) -> None:
    for whole in (True, False):
        by_python = (pattern.fullmatch(text) if whole else pattern.search(text)) is not None
        assert fits_linearly(pattern, text, whole) == by_python, (pattern, text, whole)


@pytest.mark.parametrize(
    ("atoms", "letters"),
    [
        (["a", "b", ".", "[ab]", "(a|b)", "(a|ab)", r"\w", "(ab)"], "abAc"),
        ([r"\w", r"\W", r"\d", r"\D", r"\s", r"[^\W\d]", r"[\W\d]", "é", "[^à-ü]", "."], "aÉé٣²_ \x1c\u0301\n𝒳"),
        (["a", r"\b", r"\B", r"\w", "[^é]", r"(\b|a)", r"(?i:É)", "(?a:\\w)"], "aéÉ- ü_"),
        (["a", "^", "$", r"\A", r"\Z", r"\n", ".", "(?s:.)", "[^a]"], "a\nb"),
        (["k", "s", "ß", "[à-ü]", "(?-i:K)", "ı", "σ"], "kK\u212asSſßẞÜıİiσς"),
    ],
    ids=["plain", "Unicode", "words", "lines", "cases"],
)
def test_the_linear_engine_agrees_with_python(atoms: list[str], letters: str) -> None:
    draw = random.Random(3)
    for _ in range(400):
        repeats = ["", "", "*", "+", "?", "{1,3}", "*?", "{2,}"]
        body = "".join(f"(?:{draw.choice(atoms)}){draw.choice(repeats)}" for _ in range(draw.randint(1, 5)))
        flags = draw.choice([0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.VERBOSE])
        pattern = re.compile(draw.choice([body, f"({body})*", f"({body})+b"]), flags)
        agrees(pattern, "".join(draw.choice(letters) for _ in range(draw.randint(1, 9))))


@pytest.mark.parametrize(
    "pattern", ["a{1001}", "a{998,2003}", "(a{30}b?){34,70}", "(?:a{2000,}b){0,2}", "((a{9}){9}){13}"]
)
def test_repetitions_beyond_the_limits_of_the_engine_are_counted_too(pattern: str) -> None:
    machine = re.compile(pattern)
    for length in (0, 997, 998, 1001, 1020, 1053, 2003, 2004):
        assert fits_linearly(machine, "a" * length, True) == (machine.fullmatch("a" * length) is not None), length


def test_a_pattern_that_is_too_large_is_refused_before_it_is_written_down() -> None:
    for pattern in (
        "((a{1000}){1000}){1000}b",
        "a{1,4000000000}",
        "(?:){4000000000}",
        "(((a{1,90}){1,90}){1,90}){1,90}b",
    ):
        assert not is_always_answered(pattern)
        with pytest.raises(NotLinear):
            fits_linearly(re.compile(pattern), "aaa", True)


def test_words_of_more_kinds_than_the_engine_has_are_refused_and_told_beforehand() -> None:
    letters = "".join(chr(0x4E00 + n) for n in range(64))
    pattern = rf"\b({letters})+\b"
    assert not is_always_answered(pattern)
    with pytest.raises(NotLinear):
        fits_linearly(re.compile(pattern), letters, False)
    assert is_always_answered(r"\b(station|platform|terminal|warehouse)\b.*\d+")
    assert fits_linearly(re.compile(f"({letters})+"), letters, True)
