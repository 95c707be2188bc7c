"""RDF terms in JSON: what people read, and what can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.formats.values import from_typed_json, to_json, to_typed_json
from anabranch.model.terms import XSD, Blank, Iri, Literal, Term, tagged


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Iri("http://x/a"), "http://x/a"),
        (Blank("b"), "_:b"),
        (Blank("b", "doc"), "_:doc.b"),
        (Literal("x"), "x"),
        (tagged("x", "en"), "x"),
        (Literal("007", f"{XSD}integer"), 7),
        (Literal("1.50", f"{XSD}decimal"), 1.5),
        (Literal("1e3", f"{XSD}double"), 1000.0),
        (Literal("true", f"{XSD}boolean"), True),
        (Literal("INF", f"{XSD}double"), "INF"),
        (Literal("many", f"{XSD}integer"), "many"),
        (Literal("123456789012345678901234", f"{XSD}integer"), "123456789012345678901234"),
        (Literal("2024-05-01", f"{XSD}date"), "2024-05-01"),
    ],
)
def test_a_term_is_its_text_or_the_number_or_truth_that_it_is(term: Term, expected: object) -> None:
    found = to_json([term])[0]
    assert found == expected
    assert type(found) is type(expected)


def test_typed_terms_say_what_they_are() -> None:
    assert to_typed_json([Iri("a"), Blank("b", "d"), Literal("c")]) == [
        {"$iri": "a"},
        {"$blank": ["b", "d"]},
        {"$literal": ["c", f"{XSD}string", ""]},
    ]


terms = st.one_of(
    st.builds(Iri, st.text()),
    st.builds(Blank, st.text(), st.text()),
    st.builds(Literal, st.text(), st.text(), st.text()),
)


@given(terms)
def test_a_typed_term_reads_back_as_itself(term: Term) -> None:
    again = from_typed_json(to_typed_json({"x": [term]}))
    assert again == {"x": [term]}
    assert type(again["x"][0]) is type(term)  # type: ignore[index]
