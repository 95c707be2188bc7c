"""Functions about terms, about time, hashes, and chance."""

from __future__ import annotations

import pytest

from anabranch.model.terms import XSD, Blank, Iri, Literal
from anabranch.snapshot.rdf.functions import FUNCTIONS, compile_call

from .support import call, context, shown, term

STAMP = "2011-01-10T14:45:13.815-05:00^^dateTime"


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("isnumeric", ["1^^byte"], "true"),
        ("isnumeric", ["1200^^byte"], "false"),
        ("isnumeric", ["x^^integer"], "false"),
        ("isnumeric", ["1"], "false"),
        ("isliteral", ["a@en"], "true"),
        ("isuri", ["<http://a/>"], "true"),
        ("str", ["<http://a/>"], "http://a/"),
        ("str", ["01^^integer"], "01"),
        ("lang", ["a@en-GB"], "en-gb"),
        ("lang", ["a"], ""),
        ("lang", ["<http://a/>"], "null"),
        ("datatype", ["a@en"], "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
        ("datatype", ["2^^byte"], f"<{XSD}byte>"),
        ("strdt", ["1", f"<{XSD}integer>"], "1^^integer"),
        ("strdt", ["1@en", f"<{XSD}integer>"], "null"),
        ("strlang", ["a", "EN"], "a@en"),
        ("strlang", ["a", "not a tag"], "null"),
        ("strlang", ["1^^integer", "en"], "null"),
        ("md5", ["abc"], "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", ["abc"], "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("md5", ["abc@en"], "null"),
        ("year", [STAMP], "2011^^integer"),
        ("month", [STAMP], "1^^integer"),
        ("day", [STAMP], "10^^integer"),
        ("hours", [STAMP], "14^^integer"),
        ("minutes", [STAMP], "45^^integer"),
        ("seconds", [STAMP], "13.815^^decimal"),
        ("timezone", [STAMP], "-PT5H^^dayTimeDuration"),
        ("timezone", ["2011-01-10T00:00:00Z^^dateTime"], "PT0S^^dayTimeDuration"),
        ("timezone", ["2011-01-10T00:00:00^^dateTime"], "null"),
        ("tz", [STAMP], "-05:00"),
        ("tz", ["2011-01-10T00:00:00^^dateTime"], ""),
        ("tz", ["2011-01-10T00:00:00+00:00^^dateTime"], "Z"),
        ("year", ["-0044-03-15^^date"], "-44^^integer"),
        ("hours", ["2011-01-10^^date"], "null"),
        ("year", ["2011-02-29^^date"], "null"),
    ],
)
def test_functions_of_terms(function: str, arguments: list[str], expected: str) -> None:
    assert call(function, *arguments) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("g", "<http://a/b/c/g>"),
        ("./g/.", "<http://a/b/c/g/>"),
        ("/g", "<http://a/g>"),
        ("//g", "<http://g>"),
        ("?y", "<http://a/b/c/d;p?y>"),
        ("#s", "<http://a/b/c/d;p?q#s>"),
        ("", "<http://a/b/c/d;p?q>"),
        ("../../../g", "<http://a/g>"),
        ("../..", "<http://a/>"),
        ("urn:x:y", "<urn:x:y>"),
        ("a b", "null"),
        ("a:b:c", "<a:b:c>"),
        ("1:b", "null"),
    ],
)
def test_an_iri_is_resolved_against_the_base(reference: str, expected: str) -> None:
    assert call("iri", reference, "<http://a/b/c/d;p?q>") == expected


def test_a_relative_iri_without_a_base_is_an_error() -> None:
    assert call("iri", "x") == "null"
    assert call("iri", "x@en", "<http://a/>") == "null"
    assert call("uri", "http://a/x") == "<http://a/x>"


def test_now_is_the_clock_of_the_context() -> None:
    assert shown(FUNCTIONS["sparql:now"](context())) == "2020-01-01T00:00:00.5Z^^dateTime"


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        ((1_000_000, None, 2_000_000), "2000^^long"),
        ((1_500,), "1.5^^decimal"),
        ((-1_000,), "-1^^long"),
        ((None, None), "null"),
    ],
)
def test_timestamp_is_the_latest_moment_in_milliseconds(micros: tuple[int | None, ...], expected: str) -> None:
    assert shown(FUNCTIONS["sparql:moment"](context(), *micros)) == expected


def test_truth_becomes_a_boolean_and_a_term_stays() -> None:
    term_of = FUNCTIONS["sparql:term"]
    assert shown(term_of(context(), True)) == "true^^boolean"
    assert shown(term_of(context(), False)) == "false^^boolean"
    assert term_of(context(), Iri("http://a/")) == Iri("http://a/")


def test_chance_is_the_context_s() -> None:
    for name in ("rand", "uuid", "struuid", "bnode"):
        function = FUNCTIONS[f"sparql:{name}"]
        one = context(1)
        first, second = function(one), function(one)
        assert first != second
        assert function(context(1)) == first
    assert 0 <= float(FUNCTIONS["sparql:rand"](context())[0]) < 1  # type: ignore[index]
    assert str(FUNCTIONS["sparql:uuid"](context())[0]).startswith("urn:uuid:")  # type: ignore[index]


def test_bnode_gives_one_node_per_label_and_row() -> None:
    labels = [compile_call("sparql:bnode", [lambda row, _, place=place: row[place]]) for place in (0, 1)]  # type: ignore[misc]
    where = context()

    def nodes(one: str, other: str) -> tuple[object, object]:
        row = (term(one), term(other))
        first = labels[0](row, where)
        return first, labels[1]((*row, first), where)  # the second is computed over the row that has the first

    same, again = nodes("x", "x"), nodes("y", "y")
    assert same[0] == same[1]
    assert same[0] != again[0]
    mixed = nodes("x", "y")
    assert len({*mixed, same[0], again[0]}) == 4
    assert all(isinstance(node, Blank) for node in mixed)
    assert call("bnode", "a@en") == "null"


def test_bnode_takes_an_identity_of_the_solution() -> None:
    bnode, label = FUNCTIONS["sparql:bnode"], Literal("x")
    one, other = Literal("row 1"), Literal("row 2")
    assert bnode(context(), label, one) == bnode(context(5), label, one)
    assert bnode(context(), label, one) != bnode(context(), label, other)
