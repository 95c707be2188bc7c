"""A dictionary that is given values in columns and one by one: one id for one value, whichever way it came."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from anabranch.delta.batch import ABSENT, NULL
from anabranch.delta.dictionary import Dictionary, exact_key
from anabranch.formats.events import value_from_json
from anabranch.model.compare import content_key, identity_key
from anabranch.model.graph_block import Bytes, ValueColumn, ValueKind
from anabranch.model.temporal import Date
from anabranch.model.terms import Iri, Literal
from anabranch.model.values import Value

NOTHING = object()
NUMBERS = [0, 1, -1, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 7.0, 0.5, 2.0**53, 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf, math.nan]
LISTS: list[Value] = [[1], [1.0], ["a", None], {"a": 1}, {}, Date(19_000)]


def drawn(random: Random) -> object:
    match random.randrange(8):
        case 0:
            return NOTHING
        case 1:
            return random.choice("abcdé\ud800") * random.randrange(12)
        case 2:
            return random.choice(NUMBERS) if random.random() < 0.5 else random.randrange(-50, 50)
        case 3:
            return random.choice(FLOATS) if random.random() < 0.5 else float(random.randrange(-50, 50))
        case 4:
            return random.choice((True, False))
        case 5:
            return random.randrange(100) / 8
        case 6:
            return str(random.randrange(300))
    return random.choice(LISTS)


def column_of(values: Sequence[object], random: Random) -> tuple[ValueColumn, Bytes, list[Value]]:
    """Lay values out in a column, texts with gaps between them, lists and maps as JSON or as objects."""
    data, objects = bytearray(b"before"), list[Value]()
    rows: list[tuple[int, int, int]] = []

    def laid_out(kind: ValueKind, text: bytes) -> None:
        data.extend(b"?" * random.randrange(3))
        rows.append((kind, len(data), len(data) + len(text)))
        data.extend(text)

    for value in values:
        if value is NOTHING:
            rows.append((ValueKind.ABSENT, 5, 5))
        elif isinstance(value, str):
            laid_out(ValueKind.TEXT, value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bool):
            rows.append((ValueKind.BOOLEAN, value, 0))
        elif isinstance(value, int):
            rows.append((ValueKind.INTEGER, value, 0))
        elif isinstance(value, float):
            rows.append((ValueKind.FLOAT, struct.unpack("=q", struct.pack("=d", value))[0], 0))
        elif isinstance(value, list | dict) and random.random() < 0.6:
            laid_out(ValueKind.JSON, json.dumps(value, indent=random.choice((None, 1))).encode())
        else:
            rows.append((ValueKind.OBJECT, len(objects), 0))
            objects.append(value)  # type: ignore[arg-type]
    kinds, firsts, stops = np.array(rows, np.int64).reshape(-1, 3).T
    return ValueColumn(kinds.astype(np.uint8), firsts, stops), np.frombuffer(data + bytes(8), np.uint8), objects


def encoded(dictionary: Dictionary, values: Sequence[object], random: Random) -> list[int]:
    return dictionary.encode_column(*column_of(values, random)).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_ids_are_one_to_one_with_values_whichever_way_they_come(seed: int) -> None:
    random = Random(seed)
    dictionary = Dictionary(value_of_json=value_from_json)
    naive: dict[object, int] = {}
    values: dict[int, Value] = {}

    def check(value: object, found: int) -> None:
        if value is NOTHING:
            assert found == ABSENT
            return
        assert naive.setdefault(exact_key(value), found) == found  # type: ignore[arg-type]
        values[found] = value  # type: ignore[assignment]

    for value in (True, False):  # one of them in a column brings both
        check(value, dictionary.encode(value))
    for _ in range(60):
        some = [drawn(random) for _ in range(random.choice((0, 1, 10, 200)))]
        match random.randrange(4):
            case 0:
                for value in some:
                    if value is not NOTHING:
                        check(value, dictionary.encode(value))  # type: ignore[arg-type]
            case 1:
                for value in some:
                    if value is not NOTHING:
                        found = dictionary.find(value)  # type: ignore[arg-type]
                        assert found == naive.get(exact_key(value))  # type: ignore[arg-type]
            case _:
                for value, found in zip(some, encoded(dictionary, some, random), strict=True):
                    check(value, found)
        assert len(set(naive.values())) == len(naive) == len(dictionary) - 1
        asked = np.array(random.sample(sorted(values), min(len(values), random.randrange(40))), np.int64)
        for classes, key in ((dictionary.identities, identity_key), (dictionary.looks, content_key)):
            of_class: dict[object, int] = {}
            for one, found in zip(asked.tolist(), classes(asked).tolist(), strict=True):
                assert of_class.setdefault(key(values[one]), found) == found
            assert len(set(of_class.values())) == len(of_class)
    ids = np.array(list(values))
    got = dictionary.rows(ids.reshape(-1, 1))
    assert [exact_key(row[0]) for row in got] == [exact_key(value) for value in values.values()]
    assert [exact_key(dictionary.decode(one)) for one in values] == [exact_key(value) for value in values.values()]


@pytest.mark.parametrize("seed", range(8))
def test_classes_are_those_of_a_dictionary_that_met_all_values_one_by_one(seed: int) -> None:
    random = Random(seed)
    by_column, one_by_one = Dictionary(), Dictionary()
    for _ in range(40):
        some = [value for value in (drawn(random) for _ in range(20)) if value is not NOTHING]
        ids = np.array(encoded(by_column, some, random), np.int64)
        same = one_by_one.encode_all(some)  # type: ignore[arg-type]
        for classes, naive in ((by_column.identities, one_by_one.identities), (by_column.looks, one_by_one.looks)):
            pairs = set(zip(classes(ids).tolist(), naive(same).tolist(), strict=True))
            assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
        # A class keeps its id, whichever value is met later.
        every = np.arange(len(by_column))
        known = by_column.identities(every)
        assert (by_column.identities(known) == known).all()


def test_numbers_of_columns_are_those_of_values_and_make_none() -> None:
    random = Random(3)
    values: list[object] = [*NUMBERS, *FLOATS, "1", True, [1], *[random.random() for _ in range(100)]]
    by_column, one_by_one = Dictionary(), Dictionary()
    ids = np.array(encoded(by_column, values, random))
    same = one_by_one.encode_all(values)  # type: ignore[arg-type]
    np.testing.assert_array_equal(by_column.numbers()[ids], one_by_one.numbers()[same])
    later = ids[: len(NUMBERS) + len(FLOATS)]
    assert all(not isinstance(by_column._values[one], int | float) for one in later.tolist())
    more = by_column.encode_floats(np.array([math.pi, 7.0]))
    assert by_column.numbers()[more].tolist() == [math.pi, 7.0]


def test_equal_numbers_of_two_kinds_are_one_class_whichever_is_asked_first() -> None:
    for first, second in ((1, 1.0), (1.0, 1), (0, -0.0), (-0.0, 0.0), (2**62, 2.0**62), (-(2**63), -(2.0**63))):
        dictionary = Dictionary()
        one, other = encoded(dictionary, [first, second, "1", 1.5, True], Random(0))[:2]
        assert dictionary.identities(np.array([one])).tolist() == [one]
        assert dictionary.identities(np.array([other, one])).tolist() == [one, one]


def test_integers_that_no_float_equals_are_classes_of_their_own() -> None:
    dictionary = Dictionary()
    ids = np.array(encoded(dictionary, [2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63], Random(0)))
    assert len(set(dictionary.identities(ids).tolist())) == 4
    huge = dictionary.encode(2**63)
    assert dictionary.identities(np.array([huge])).tolist() == dictionary.identities(ids[3:]).tolist()


def test_a_value_that_came_before_the_first_column_keeps_its_id_and_class() -> None:
    dictionary = Dictionary()
    early = {value: dictionary.encode(value) for value in ("a", 5, 2.5)}  # type: ignore[arg-type]
    dictionary.identities(np.array(list(early.values())))
    ids = encoded(dictionary, ["a", 5, 2.5, 5.0], Random(0))
    assert ids[:3] == list(early.values())
    assert dictionary.identities(np.array(ids))[3] == early[5]


def test_texts_in_json_are_read_once_each() -> None:
    read: list[object] = []

    def value_of(data: object) -> Value:
        read.append(data)
        return data  # type: ignore[return-value]

    data = np.frombuffer(b"[1][1]null[1, 2]" + bytes(8), np.uint8)
    column = ValueColumn(np.full(4, ValueKind.JSON, np.uint8), np.array([0, 3, 6, 10]), np.array([3, 6, 10, 16]))
    dictionary = Dictionary(value_of_json=value_of)
    first = dictionary.encode_column(column, data, ())
    assert dictionary.encode_column(column, data, ()).tolist() == first.tolist()
    assert read == [[1], None, [1, 2]]
    assert first[0] == first[1] == dictionary.find([1])
    assert first[2] == NULL


def test_strings_are_no_terms_with_the_same_text() -> None:
    dictionary = Dictionary()
    terms = [dictionary.encode(Iri("a")), dictionary.encode(Literal("a"))]
    (text,) = encoded(dictionary, ["a"], Random(0))
    assert text not in terms
    assert dictionary.are_resources(np.array([text, *terms])).tolist() == [False, True, False]


def test_an_unknown_kind_is_refused() -> None:
    column = ValueColumn(np.full(1, 9, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="kind"):
        Dictionary().encode_column(column, np.zeros(8, np.uint8), ())
