"""Texts as ids: the same id exactly where the bytes and the form are the same, whatever their hashes."""

from __future__ import annotations

import re
from hashlib import blake2b
from random import Random

import numpy as np
import pytest

from anabranch.delta.texts import PADDING, TextTable, plain_iris, spelled_integers
from anabranch.formats.rdf.term_arrays import _BARE


def laid_out(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8).copy(), ends


def drawn(random: Random) -> bytes:
    return bytes(random.choices(b"abc\x00", k=random.choice((0, 1, 3, 7, 8, 9, 15, 16, 17, 40))))


@pytest.mark.parametrize("seed", range(5))
def test_texts_have_the_ids_that_a_dict_would_give_them(seed: int) -> None:
    random = Random(seed)
    table, naive = TextTable(5), {}
    for _ in range(30):
        form = random.randrange(3)
        texts = [drawn(random) for _ in range(random.randrange(300))]
        data, ends = laid_out(texts)
        found = table.add(data, ends[:-1], ends[1:], form)
        assert found.tolist() == [naive.setdefault((form, text), len(naive) + 5) for text in texts]
        assert len(table) == len(naive)
    for (form, text), number in naive.items():
        assert table.text(number) == (form, text)
        assert table.find(text, form) == number
        assert table.find(text + b"\x00", form) == naive.get((form, text + b"\x00"), -1)


@pytest.mark.parametrize("room", [0, 1, 5_000])
def test_a_table_that_begins_at_0_tells_its_texts_in_the_order_in_which_they_came(room: int) -> None:
    texts = [b"b", b"", b"a", b"b", b"abcdefghij"]
    data, ends = laid_out(texts)
    table = TextTable(room=room)
    table.add(data, ends[:-1], ends[1:], 0)
    stored, lengths = table.stored()
    assert stored[:-PADDING].tobytes() == b"baabcdefghij"
    assert lengths.tolist() == [1, 0, 1, 10]


def test_texts_may_be_given_their_ids() -> None:
    data, ends = laid_out([b"x", b"y"])
    table = TextTable()
    table.add(data, ends[:-1], ends[1:], 0, np.array([7, 3]))
    assert (table.find(b"x", 0), table.find(b"y", 0), table.find(b"x", 1)) == (7, 3, -1)
    assert table.has(np.array([0, 3, 7, 9_000])).tolist() == [False, True, True, False]


def test_digests_are_those_of_the_standard_library_whatever_the_length() -> None:
    texts = [bytes(Random(length).choices(range(256), k=length)) for length in (*range(140), 255, 256, 257, 700)]
    table, (data, ends) = TextTable(), laid_out(texts)
    table.add(data, ends[:-1], ends[1:], 0)
    for first, person in ((0, b""), (100, b"s"), (139, b"12345678")):
        expected = [blake2b(text, digest_size=8, person=person).digest() for text in texts[first:]]
        assert [
            number.to_bytes(8, "little", signed=True) for number in table.digests(first, person).tolist()
        ] == expected


@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_some_texts_has_these_and_no_others(seed: int) -> None:
    random = Random(seed)
    texts = sorted({drawn(random) for _ in range(400)})
    table, (data, ends) = TextTable(), laid_out(texts)
    table.add(data, ends[:-1], ends[1:], 3)
    ids = np.flatnonzero([random.random() < 0.3 for _ in texts])
    picked = table.picked(ids)
    assert picked.texts(np.arange(len(picked))) == [texts[one] for one in ids.tolist()] == table.texts(ids)
    for number, text in enumerate(texts):
        assert (picked.find(text, 3) >= 0) == (number in ids)
    assert len(table.picked(ids[:0])) == 0


def test_a_text_spells_an_integer_where_the_pattern_says_so() -> None:
    random = Random(1)
    texts = ["", "0", "-", "-0", "00", "9" * 18, "9" * 19, "-" + "9" * 18, "1" + "0" * 17, "+1", "1 ", "--1", "1-"]
    texts += ["".join(random.choices("0123456789-x", k=random.randrange(1, 5))) for _ in range(3_000)]
    data, ends = laid_out([text.encode() for text in texts])
    values, others = spelled_integers(data, ends[:-1], ends[1:])
    are = [re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) is not None for text in texts]
    assert others.tolist() == [place for place, one in enumerate(are) if not one]
    assert [values[place] for place, one in enumerate(are) if one] == [
        int(text) for text, one in zip(texts, are, strict=True) if one
    ]
    assert 100 < sum(are) < 2_900


PARTS = ["http", "h", "1", ":", "/", "//", "://", "a.b", "?", "#", "x=1", "@", "%20", "é", " ", "<", ">", "~", "\\", ""]


def test_what_is_taken_for_a_plain_iri_is_what_the_pattern_of_formats_takes_for_one() -> None:
    random = Random(3)
    pattern = re.compile(_BARE.encode())
    taken = 0
    for _ in range(5_000):
        text = "".join(random.choices(PARTS, k=random.randrange(8)))
        if random.random() < 0.5:
            text = f"http://{text}"
        data, ends = laid_out([text.encode()])
        is_bracketed = text.startswith("<") and text.endswith(">") and len(text) >= 2
        bare = text[1:-1] if is_bracketed else text
        found = plain_iris(data, ends)
        assert (found is not None) == (pattern.fullmatch(bare.encode()) is not None), text
        if found is not None:
            taken += 1
            assert data[found[0][0] : found[1][0]].tobytes().decode() == bare
    assert taken > 100


def test_one_text_that_is_not_plain_spoils_all() -> None:
    data, ends = laid_out([b"http://a", b"_:b"])
    assert plain_iris(data, ends) is None
