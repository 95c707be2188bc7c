"""A dictionary that is given terms as values, one by one or many, and as texts: one id for one term, whatever way."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from anabranch.delta.dictionary import Dictionary
from anabranch.formats.term_columns import TermColumns
from anabranch.model.terms import XSD_INTEGER, Blank, Iri, Literal, Term, tagged


def drawn(random: Random) -> Term:
    text = str(random.randrange(400)) + random.choice(("", "é", "\ud800"))
    return random.choice(
        (Iri(text), Literal(text), Literal(text, XSD_INTEGER), tagged(text, "en"), Blank(text), Blank(text, "d"))
    )


@pytest.mark.parametrize("seed", range(6))
def test_ids_are_one_to_one_with_terms_whichever_way_they_come(seed: int) -> None:
    random = Random(seed)
    dictionary = Dictionary()
    naive: dict[object, int] = {}

    def check(value: object, found: int) -> None:
        assert naive.setdefault(value, found) == found

    for _ in range(60):
        terms = [drawn(random) for _ in range(random.choice((1, 10, 200)))]
        match random.randrange(4):
            case 0:
                for term in terms:
                    check(term, dictionary.encode(term))
                check("a string", dictionary.encode("a string"))
            case 1:
                for term, found in zip(terms, dictionary.encode_terms(terms).tolist(), strict=True):
                    check(term, found)
            case 2:
                columns, places = TermColumns.of(terms)
                ids = dictionary.encode_terms(columns.lazy())[places]
                for term, found in zip(terms, ids.tolist(), strict=True):
                    check(term, found)
            case 3:
                for term in terms:
                    assert dictionary.find(term) == naive.get(term)
        assert len(set(naive.values())) == len(naive) == len(dictionary) - 1
    ids = np.array(list(naive.values()))
    assert [row[0] for row in dictionary.rows(ids.reshape(-1, 1))] == list(naive)
    assert [dictionary.decode(one) for one in ids.tolist()] == list(naive)
    assert dictionary.are_resources(ids).tolist() == [isinstance(value, Iri | Blank) for value in naive]


def test_classes_and_numbers_of_terms_that_nobody_has_seen_are_those_of_terms_that_came_as_values() -> None:
    terms: list[Term] = [Literal(str(number), XSD_INTEGER) for number in range(100)]
    terms += [Iri(f"i{number}") for number in range(100)]
    columns, places = TermColumns.of(terms)

    def number_of(value: object) -> float:
        return float(value.lexical) if isinstance(value, Literal) else float("nan")

    unseen, seen = Dictionary(number_of), Dictionary(number_of)
    ids, same = unseen.encode_terms(columns.lazy())[places], seen.encode_terms(terms)
    assert unseen.identities(ids).tolist() == ids.tolist()
    assert unseen.looks(ids).tolist() == ids.tolist()
    assert seen.identities(same).tolist() == same.tolist()
    np.testing.assert_array_equal(unseen.numbers()[ids], seen.numbers()[same])
    assert unseen.decode(int(ids[3])) == terms[3]
