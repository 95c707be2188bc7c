"""String functions: language tags, code points, patterns of XPath."""

from __future__ import annotations

import pytest

from .support import call


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("strlen", ["日本語𝒳@ja"], "4^^integer"),
        ("strlen", ["1^^integer"], "null"),
        ("substr", ["foobar@en", "4^^integer"], "bar@en"),
        ("substr", ["foobar", "0^^integer", "3^^integer"], "fo"),
        ("substr", ["foobar", "1.5^^decimal", "2.6^^decimal"], "oob"),
        ("substr", ["foobar", "-3^^integer", "100^^integer"], "foobar"),
        ("substr", ["foobar", "5^^integer", "-1^^integer"], ""),
        ("substr", ["foobar", "NaN^^double"], ""),
        ("substr", ["foobar", "-INF^^double", "INF^^double"], ""),
        ("substr", ["食べ物", "2^^integer", "1^^integer"], "べ"),
        ("substr", ["foobar", "1"], "null"),
        ("ucase", ["straße@de"], "STRASSE@de"),
        ("lcase", ["ÀB"], "àb"),
        ("strstarts", ["abc@en", "a"], "true"),
        ("strstarts", ["abc@en", "a@en"], "true"),
        ("strstarts", ["abc@en", "a@fr"], "null"),
        ("strstarts", ["abc", "a@en"], "null"),
        ("strends", ["abc", ""], "true"),
        ("contains", ["abc", "d"], "false"),
        ("strbefore", ["abc@en", "b"], "a@en"),
        ("strbefore", ["abc@en", "z"], ""),
        ("strbefore", ["abc@en", ""], "@en"),
        ("strafter", ["abc@en", "b@en"], "c@en"),
        ("strafter", ["abc", "b@en"], "null"),
        ("strafter", ["abc@en", ""], "abc@en"),
        ("concat", [], ""),
        ("concat", ["a@en", "b@en"], "ab@en"),
        ("concat", ["a@en", "b@fr"], "ab"),
        ("concat", ["a", "1^^integer"], "null"),
        ("encode_for_uri", ["Los Angeles/é~-_."], "Los%20Angeles%2F%C3%A9~-_."),
        ("langmatches", ["en-GB", "EN"], "true"),
        ("langmatches", ["eng", "en"], "false"),
        ("langmatches", ["", "*"], "false"),
        ("langmatches", ["fr", "*"], "true"),
    ],
)
def test_string_functions(function: str, arguments: list[str], expected: str) -> None:
    assert call(function, *arguments) == expected


@pytest.mark.parametrize(
    ("text", "pattern", "flags", "expected"),
    [
        ("abc", "B", "", "false"),
        ("abc@en", "B", "i", "true"),
        ("a\nb", "a.b", "", "false"),
        ("a\nb", "a.b", "s", "true"),
        ("a\nb", "^b$", "", "false"),
        ("a\nb", "^b$", "m", "true"),
        ("b\n", "b$", "", "false"),
        ("abc", "a b\tc", "x", "true"),
        ("a b", "a[ ]b", "x", "true"),
        ("a.c", "A.C", "qi", "true"),
        ("abc", "a.c", "q", "false"),
        ("abc", "b", "z", "null"),
        ("xay", "[a-z-[aeiou]]a[^a-x-[z]]", "", "true"),
        ("xay", "^[a-z-[aeiou]]+$", "", "false"),
        ("Éa", r"^\p{Lu}\p{Ll}$", "", "true"),
        ("a1", r"\P{L}", "", "true"),
        ("α", r"\p{IsGreek}", "", "true"),
        ("a:b-1", r"^\i\c*$", "", "true"),
        ("1a", r"^\i", "", "false"),
        ("aa", r"^(a)\1$", "", "true"),
        ("ab", r"^(a)\1$", "", "false"),
        ("a-b", r"[\-x]", "", "true"),
        ("a[b", r"[&&~~\[||-]", "", "true"),
        ("one two", r"\btwo\b", "", "true"),
        # not XPath's: an error, not a pattern that means something else
        ("abc", "a(?=b)", "", "null"),
        ("abc", "(?P<x>a)", "", "null"),
        ("abc", "a++", "", "null"),
        ("abc", "a{,2}", "", "null"),
        ("abc", "(", "", "null"),
        ("abc", "a)", "", "null"),
        ("abc", "[]", "", "null"),
        ("abc", "[a-", "", "null"),
        ("abc", "[a-z-[", "", "null"),
        ("abc", r"\p{L", "", "null"),
        ("abc", r"\A", "", "null"),
        ("abc", r"\2(a)(b)", "", "null"),
        ("abc", r"\p{Nosuch}", "", "null"),
        ("1^^integer", "1", "", "null"),
    ],
)
def test_regex(text: str, pattern: str, flags: str, expected: str) -> None:
    assert call("regex", text, pattern, flags) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["abcd", "b", "Z"], "aZcd"),
        (["abcd@en", "B", "Z", "i"], "aZcd@en"),
        (["abcd", "(ab)|(a)", "[1=$1][2=$2]"], "[1=ab][2=]cd"),
        (["abcd", "(b)(c)", "$2$1$0"], "acbbcd"),
        (["abcd", "(b)", "$12"], "ab2cd"),
        (["abcd", "(b)", "$1²"], "ab²cd"),
        (["abcd", "b", r"\$1\\"], "a$1\\cd"),
        (["a.c", ".", "$1", "q"], "a$1c"),
        (["abcd", "b", "$"], "null"),
        (["abcd", "b", r"\n"], "null"),
        (["abcd", "b*", "-"], "null"),
        (["abcd", "[", "-"], "null"),
        (["1^^integer", "1", "2"], "null"),
    ],
)
def test_replace(arguments: list[str], expected: str) -> None:
    assert call("replace", *arguments) == expected
