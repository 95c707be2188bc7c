"""Names of vertices have the numbers that their texts determine, in whatever form they come."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch import ConnectivityWorkload
from anabranch.engine.connectivity.names import VertexNames
from anabranch.errors import EngineError
from anabranch.model.scrambled import scrambled


def test_an_integer_and_the_text_that_spells_it_are_one_vertex() -> None:
    names = VertexNames()
    numbers = np.array([17, -4, 0, 10**18 - 1, 10**18, 2**63 - 1, -(2**63)])
    as_integers = names.numbers_of(numbers)
    assert names.names_of(as_integers) == numbers.tolist()
    texts = [str(number) for number in numbers.tolist()]
    for given in (
        pa.array(texts),
        texts,
        np.array(texts),
        pa.array(texts).dictionary_encode(),
        pa.chunked_array([texts]),
    ):
        assert names.numbers_of(given).tolist() == as_integers.tolist()
    assert names.names_of(as_integers) == texts
    assert len(set(as_integers.tolist())) == len(texts)
    assert names.numbers_of(pa.array([2**64 - 1], pa.uint64())) == names.number_of(str(2**64 - 1))


def test_texts_that_only_look_like_integers_are_themselves() -> None:
    names = VertexNames()
    texts = ["1", "01", "+1", "1.0", " 1", "1\n", "-0", "0", "", "١"]
    for given in (texts, pa.array(texts)):
        found = names.numbers_of(given)
        assert len(set(found.tolist())) == len(texts)
        assert names.names_of(found) == texts


def _set_digest(monkeypatch: pytest.MonkeyPatch, digest: Callable[[str], int]) -> None:
    def digests(names: VertexNames, first: int) -> Any:
        new = names._table.texts(np.arange(first, len(names._table)))
        return np.array([digest(text.decode()) for text in new], np.int64)

    monkeypatch.setattr(VertexNames, "_digests", digests)


def _expected(name: str | int) -> int:
    """The number of a name, as the module's docstring has it."""
    text = str(name)
    is_integer = re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) is not None
    return int(text) if is_integer else 1 << 62 | (scrambled(text) & ((1 << 62) - 1))


def _given(random: Random, texts: list[str]) -> Any:
    """Texts in one of the forms in which they may come."""
    array = pa.array(["not this one", *texts, "nor this"])[1:-1]
    cut = random.randrange(len(texts) + 1)
    return random.choice([
        lambda: texts,
        lambda: tuple(texts),
        lambda: np.array(texts, np.object_),
        lambda: array,
        lambda: array.cast(pa.large_string()),
        lambda: array.cast(pa.string_view()),
        lambda: array.dictionary_encode(),
        lambda: pa.array(["unused", *texts]).dictionary_encode()[1:],
        lambda: pa.chunked_array([array[:cut], array[cut:]], pa.string()),
        lambda: [int(text) if str(_expected(text)) == text else text for text in texts],
    ])()  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_digests_of_names_however_these_come(seed: int) -> None:
    random = Random(seed)
    names = VertexNames()
    kept: set[str] = set()
    for _ in range(15):
        length = random.choice((0, 1, 7, 20, 140))
        texts = [
            "".join(random.choices("01-aé€😀 ", k=random.randrange(1, length + 2)))
            for _ in range(random.choice((0, 1, 30, 400)))
        ]
        found = names.numbers_of(_given(random, texts))
        assert found.tolist() == [_expected(text) for text in texts]
        kept |= set(texts)
        if random.random() < 0.3:
            kept = set(random.sample(sorted(kept), len(kept) // 3))
            names.keep(np.array([_expected(text) for text in kept], np.int64))
            assert len(names) == sum(_expected(text) >= 1 << 62 for text in kept)
        names.are_texts = True
        asked = sorted(kept)
        assert names.names_of(np.array([_expected(text) for text in asked], np.int64)) == asked


def test_texts_that_no_encoding_has_are_names_too() -> None:
    names = VertexNames()
    texts = ["\ud800", "\udc00", "\ud800\udc00", "\U00010000"]
    found = names.numbers_of(texts)
    assert found.tolist() == [_expected(text) for text in texts]
    assert names.names_of(found) == texts


def test_a_chunked_array_without_chunks_has_no_names() -> None:
    assert VertexNames().numbers_of(pa.chunked_array([], pa.string())).tolist() == []


def test_a_null_of_a_dictionary_is_refused_where_it_is_used() -> None:
    names = VertexNames()
    dictionary = pa.array(["a", None])
    used = pa.DictionaryArray.from_arrays(pa.array([0, 1]), dictionary)
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0]), dictionary)
    assert names.numbers_of(unused).tolist() == [_expected("a")] * 2
    with pytest.raises(EngineError, match="a null among the ids"):
        names.numbers_of(used)


def test_texts_whose_digests_meet_have_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_digest(monkeypatch, lambda text: -1)
    names = VertexNames()
    names.numbers_of(["earlier"])
    found = names.numbers_of(["a", "b", "c", "a"])
    assert len(set(found.tolist())) == 3
    assert names.names_of(found) == ["a", "b", "c", "a"]
    names.keep(found[1:2])
    assert names.names_of(found[1:2]) == ["b"]
    with pytest.raises(EngineError, match="was forgotten"):
        names.names_of(found[:1])


def test_a_pair_keeps_its_number_while_other_texts_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_digest(monkeypatch, lambda text: scrambled(text.replace("double", "pinned")))
    workload = ConnectivityWorkload(10, 10, pairs=[("pinned", "other")])
    for start in range(0, 20_000, 1000):
        names = [f"v{number}" for number in range(start, start + 1000)]
        list(workload.push(names, names))
    list(workload.push(["double"] * 10, ["other"] * 10))
    of_double = list(workload.push(["pinned"] * 10, ["other"] * 10))
    of_pinned = list(workload.finish())
    assert [answer.connected.tolist() for answer in of_double + of_pinned] == [[False], [True]]
