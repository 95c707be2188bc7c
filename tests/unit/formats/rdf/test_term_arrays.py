"""A column of texts is parsed as its cells are, one by one; what is no term is refused the same way."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import MalformedEventError
from anabranch.formats.rdf import term_arrays
from anabranch.formats.rdf.term_arrays import terms_of_cells
from anabranch.formats.rdf.terms import parse_cell, term_text
from anabranch.model.terms import Blank, Iri, Literal, Term, tagged

from .drawing import BLANKS, IRIS, LITERALS, TEXTS

CELLS = st.one_of(
    IRIS.map(term_text),
    IRIS.map(lambda iri: iri.value),
    LITERALS.map(term_text),
    LITERALS.map(term_text),
    BLANKS.map(term_text),
    TEXTS,
    st.sampled_from(
        [
            *(
                '"',
                '""',
                '"a',
                'a"',
                '"a"b"',
                '"a\\"b"',
                '"a"@EN',
                '"a"@en',
                '"a\nb"',
                '"é"^^<http://ex/ü>',
                "<>",
                "<a>",
            ),
            *("http://", "http://ex:80/", "http://u@ex/", "<http://ex:80/>", "http://ex/a b", "_:", "_:a", "a:b", ""),
            *('"1"^^<http://www.w3.org/2001/XMLSchema#string>', '"1"', '"a"^^<b>', '"\\u00e9"', '"a"@e', '"x"^^'),
        ]
    ),
)


@pytest.fixture(autouse=True, scope="module")
def columns_of_any_length() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_arrays, "_FEW", 0)
        yield


def one_by_one(cells: list[str]) -> list[Term] | None:
    try:
        return [parse_cell(cell, "d", is_object=True) for cell in cells]
    except MalformedEventError:
        return None


def at_once(cells: list[str]) -> list[Term] | None:
    try:
        found, places = terms_of_cells(pa.array(cells, pa.string()), "d")
    except MalformedEventError:
        return None
    terms = found.terms()
    return [terms[place] for place in places.tolist()]


@settings(max_examples=400)
@given(st.lists(CELLS, unique=True, max_size=12))
def test_a_column_is_parsed_as_its_cells_are(cells: list[str]) -> None:
    assert at_once(cells) == one_by_one(cells)
    for cell in cells:
        assert at_once([cell]) == one_by_one([cell]), cell


def test_a_long_column_of_all_kinds_keeps_every_term_in_its_place() -> None:
    terms: list[Term] = []
    for number in range(200):
        terms += [
            Iri(f"http://ex/{number}"),
            Iri(f"http://ex:8080/{number}"),
            Literal(str(number), "http://www.w3.org/2001/XMLSchema#integer"),
            Literal(f"a \\ {number}"),
            Literal(f"plain {number} é"),
            tagged(f"text {number}", "de-at"),
            Blank(f"b{number}", "d"),
        ]
    cells = [f"_:{term.label}" if isinstance(term, Blank) else term_text(term) for term in terms]
    assert at_once(cells) == terms


def test_more_endings_than_are_looked_for_are_read_all_the_same() -> None:
    cells = [f'"{number}"^^<http://ex/type{number % 20}>' for number in range(100)]
    assert at_once(cells) == one_by_one(cells)


def test_a_slice_of_a_column_is_read_as_what_it_shows() -> None:
    cells = [f"<http://ex/{number}>" for number in range(10)] + [f'"{number}"' for number in range(10)]
    found, places = terms_of_cells(pa.array(cells).slice(5, 10), "d")
    assert [found.terms()[place] for place in places.tolist()] == one_by_one(cells[5:15])
