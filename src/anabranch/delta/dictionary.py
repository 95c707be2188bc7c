"""Dictionary of values: each value that a user can distinguish from others has an id of its own.

1, 1.0, "1" and the literal "1"^^xsd:integer are four ids. Equivalence (by which DISTINCT, grouping and joins compare)
and sameness in an answer (by which ON ENTERING compares) are coarser: each id has the ids of its two classes. An
element of a property graph is one id per content; its class is its identity.

Terms that come as adjacent texts (`TermTexts`), and strings and numbers that come in columns (`ValueColumn`), are
distinguished by their bytes, in a table beside the values (`value_texts.ValueTexts`), and become values at the first
request. Terms, strings and numbers that came as values are added to that table before the next texts are looked up in
it, so that a value has one id whichever way it came.

Invariant: an id means the same value as long as the dictionary lives; it only grows. When it has grown too large, its
owner makes a new one and rebuilds all state. Id 0 is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import ABSENT, NULL, Ids, Mask
from anabranch.delta.element_versions import (
    BENEATH,
    KEY,
    KEY_SET,
    LABELS,
    RECORD,
    TYPE,
    ElementShape,
    ElementVersions,
)
from anabranch.delta.number_sums import FLOAT, Kinds
from anabranch.delta.texts import TextTable
from anabranch.delta.value_texts import TERM_TYPES, ValueForm, ValueTexts, can_be_text
from anabranch.model.compare import content_key, identity_key
from anabranch.model.graph_block import PROPERTIES, Bytes, ValueColumn, ValueKind
from anabranch.model.term_texts import TermTexts
from anabranch.model.terms import Blank, Iri, Literal, Term
from anabranch.model.union import overlay
from anabranch.model.values import Node, Path, Relationship, Value

_PLAIN = TERM_TYPES  # kinds whose equality is that of users
_ELEMENTS = frozenset((Node, Relationship))
_SELF = frozenset((str, Iri, Literal, Blank))  # kinds that are their own class in both senses
_LARGE = 2.0**63  # from here on, and from its negative down, numbers are compared one by one
_FEW = 64  # up to this many terms, making them is faster than text lookup
_FEW_NUMBERS = 4
_EXPONENT = 0x7FF << 52  # all bits of it set: an infinity or NaN
_BYTES_OF_VALUE = 150  # guesses: what Python objects take
_BYTES_OF_ELEMENT = 600
_NO_IDS = np.empty(0, np.int64)


class _Unmade:
    """The place of a value that was not requested yet. It is one, also in a copy of the dictionary."""

    def __deepcopy__(self, memo: object) -> _Unmade:
        return self


_LATER: Any = _Unmade()


class _Column:
    """A growing vector, filled on demand with a function of the id; -1 marks an entry that was not requested yet."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: Ids = np.full(1024, -1, np.int64)

    def reach(self, size: int) -> None:
        if size > len(self.values):
            grown = np.full(max(size, 2 * len(self.values)), -1, np.int64)
            grown[: len(self.values)] = self.values
            self.values = grown


class Dictionary:
    """Ids of values. `number_of` gives the number of a value, rounded to a float; NaN for a value that is no number,
    and strings are none. `value_of_json` gives the value of what JSON text holds. There is `room` for so many texts
    before their table grows."""

    __slots__ = (
        "_classes",
        "_element_classes",
        "_elements",
        "_identities",
        "_ids",
        "_json",
        "_looks",
        "_number_of",
        "_numbers",
        "_numbers_known",
        "_room",
        "_texts",
        "_texts_known",
        "_value_of_json",
        "_values",
        "_weight",
        "versions",
    )

    def __init__(
        self,
        number_of: Callable[[Value], float] | None = None,
        value_of_json: Callable[[Any], Value] | None = None,
        room: int = 0,
    ) -> None:
        self._number_of = number_of or _plain_number
        self._value_of_json = value_of_json or _same
        self._values: list[Value] = [None]
        self._ids: dict[Hashable, int] = {}
        self._elements: dict[int, int] = {}  # by `id`: elements that it holds itself, and so keeps alive
        self._classes: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
        self._element_classes = _Column(), _Column()  # of nodes and relationships, by the id of their id
        self._identities = _Column()
        self._looks = _Column()
        self._numbers: npt.NDArray[np.float64] = np.full(1024, np.nan)
        self._numbers_known = 1
        self._texts: ValueTexts | None = None  # once there are values that came as texts
        self._room = room
        self._texts_known = 1  # the values below it are in the table, if they can be
        self._json: dict[int, tuple[TextTable, Ids]] = {}  # by kind: distinct texts, numbered from 0, and their ids
        self._weight = 0  # of the values that exist
        self.versions = ElementVersions()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def text_count(self) -> int:
        """How many values are in the table of texts."""
        return 0 if self._texts is None else self._texts.count

    def weight(self) -> int:
        """Return about how many bytes the values take."""
        tables = (self.versions, self._texts, *(table for table, _ in self._json.values()))
        return self._weight + sum([table.nbytes for table in tables if table is not None])

    # --- values and ids ---

    def encode(self, value: Value) -> int:
        if value is None:
            return NULL
        key: Hashable = value if value.__class__ in _SELF else self._key(value)
        found = self._ids.get(key)
        if found is None:
            found = self._found_as_text(value)
            if found is None:
                found = len(self._values)
                self._values.append(value)
                self._weight += _weight_of(value)
            self._ids[key] = found
        return found

    def find(self, value: Value) -> int | None:
        """Return the id of a value that was met before, else None."""
        if value is None:
            return NULL
        found = self._ids.get(value if value.__class__ in _SELF else self._key(value))
        return self._found_as_text(value) if found is None else found

    def _found_as_text(self, value: Value) -> int | None:
        return None if self._texts is None else self._texts.find(value)

    def _key(self, value: Value) -> Hashable:
        """Return the lookup key of a value. Paths and lists of elements have the ids of their elements as keys: many
        share elements, and the content of an element is compared once."""
        if isinstance(value, Path):
            return (Path, tuple(map(self._element, value.nodes)), tuple(map(self._element, value.relationships)))
        if isinstance(value, list) and value and all(item.__class__ in _ELEMENTS for item in value):
            return (_ELEMENTS, tuple(map(self._element, value)))
        return exact_key(value)

    def _element(self, element: Node | Relationship) -> int:
        found = self._elements.get(id(element))
        if found is None:
            found = self.encode(element)
            if self._values[found] is element:
                self._elements[id(element)] = found
        return found

    def encode_all(self, values: Iterable[Value]) -> Ids:
        values = list(values)
        if self._texts is None or len(values) < _FEW_NUMBERS:
            return np.array([self.encode(value) for value in values], np.int64)
        # Looking many numbers up in the table of texts takes about as long as looking up one.
        kinds = [value.__class__ for value in values]
        if all(kind is float for kind in kinds):
            return self.encode_floats(np.array(values, np.float64))
        found = np.empty(len(values), np.int64)
        floats = [place for place, kind in enumerate(kinds) if kind is float]
        integers = [place for place, kind in enumerate(kinds) if kind is int and can_be_text(values[place])]
        others = set(range(len(values))).difference(floats, integers)
        found[floats] = self.encode_floats(np.array([values[place] for place in floats], np.float64))
        found[integers] = self.encode_integers(np.array([values[place] for place in integers], np.int64))
        for place in others:
            found[place] = self.encode(values[place])
        return found

    def encode_terms(self, terms: Sequence[Term]) -> Ids:
        """Encode very many RDF terms, most of them different; terms are their own keys."""
        if isinstance(terms, TermTexts):
            if len(terms) > _FEW:
                return self._encode_texts(terms)
            terms = terms.terms()
        ids, values = self._ids, self._values
        found = np.fromiter(map(ids.get, terms, repeat(-1)), np.int64, len(terms))
        missing = np.flatnonzero(found < 0)
        if len(missing):
            wanted = [terms[place] for place in missing.tolist()]
            fresh = dict.fromkeys(wanted)
            self._weight += sum(map(_weight_of, fresh))
            if self._texts is None:
                ids.update(zip(fresh, count(len(values))))
                values.extend(fresh)
            else:
                self._tell_texts(self._texts)
                ids.update(zip(fresh, self._texts.add_values(list(fresh)), strict=True))
                self._reach_texts(self._texts)
                for term in fresh:
                    values[ids[term]] = term
            found[missing] = np.fromiter(map(ids.__getitem__, wanted), np.int64, len(wanted))
        return found

    def encode_column(self, column: ValueColumn, data: Bytes, objects: Sequence[Value]) -> Ids:
        """Return the ids of a column's values, ABSENT where there is none. `data` and `objects` are what the column
        refers to."""
        least, most = int(column.kinds.min(initial=len(ValueKind))), int(column.kinds.max(initial=ValueKind.ABSENT))
        if least == most and most != ValueKind.ABSENT:
            return self._encode_kind(most, column, data, objects)
        found = np.full(len(column.kinds), ABSENT, np.int64)
        for kind in range(max(least, 1), most + 1):
            chosen = np.flatnonzero(column.kinds == kind)
            if len(chosen):
                found[chosen] = self._encode_kind(kind, column.picked(chosen), data, objects)
        return found

    def _encode_kind(self, kind: int, column: ValueColumn, data: Bytes, objects: Sequence[Value]) -> Ids:
        firsts = np.ascontiguousarray(column.firsts)
        match kind:
            case ValueKind.TEXT:
                return self._encode_strings(data, firsts, np.ascontiguousarray(column.stops))
            case ValueKind.INTEGER:
                return self.encode_integers(firsts)
            case ValueKind.FLOAT:
                return self.encode_floats(firsts.view(np.float64))
            case ValueKind.BOOLEAN:
                return np.where(firsts != 0, self.encode(True), self.encode(False))
            case ValueKind.JSON | ValueKind.PROPERTIES:
                return self._encode_json(kind, data, firsts, np.ascontiguousarray(column.stops))
            case ValueKind.OBJECT:
                places, rows = np.unique(firsts, return_inverse=True)
                return self.encode_all(objects[place] for place in places.tolist())[rows]
        raise ValueError(f"{kind} is no kind of a value")

    def encode_integers(self, numbers: Ids) -> Ids:
        """Return the ids of integers."""
        texts = self._known_texts()
        found = texts.add_integers(numbers)
        self._reach_texts(texts)
        return found

    def encode_floats(self, numbers: npt.NDArray[np.float64]) -> Ids:
        """Return the ids of floats."""
        texts = self._known_texts()
        found = texts.add_floats(numbers)
        self._reach_texts(texts)
        return found

    def _encode_strings(self, data: Bytes, starts: Ids, stops: Ids) -> Ids:
        texts = self._known_texts()
        found = texts.add_strings(_writeable(data), starts, stops)
        self._reach_texts(texts)
        return found

    def _encode_json(self, kind: int, data: Bytes, starts: Ids, stops: Ids) -> Ids:
        """Return the ids of values, or of maps of properties, in JSON: each distinct text is read once."""
        spans, ids = self._json.get(kind) or (TextTable(), _NO_IDS)
        numbers = spans.add(_writeable(data), starts, stops, 0)
        if len(spans) > len(ids):
            read = [json.loads(text) for text in spans.texts(np.arange(len(ids), len(spans)))]
            value = self._properties_of_json if kind == ValueKind.PROPERTIES else self._value_of_json
            ids = np.concatenate((ids, self.encode_all(map(value, read))))
        self._json[kind] = spans, ids
        return ids[numbers]

    def _properties_of_json(self, read: dict[str, Any]) -> Value:
        """Return the map of an element's properties; one that is null is absent."""
        return {key: self._value_of_json(item) for key, item in read.items() if item is not None}

    def _known_texts(self) -> ValueTexts:
        """Return the table of texts with all values that can be in it."""
        texts = self._texts = self._texts or ValueTexts(self._room)
        self._tell_texts(texts)
        return texts

    def _encode_texts(self, terms: TermTexts) -> Ids:
        texts = self._known_texts()
        found = texts.add_terms(terms)
        self._reach_texts(texts)
        return found

    def _reach_texts(self, texts: ValueTexts) -> None:
        self._values += repeat(_LATER, texts.next_id - len(self._values))
        self._texts_known = len(self._values)

    def _tell_texts(self, texts: ValueTexts) -> None:
        """Add to the table the values that came as such since the last call."""
        size = len(self._values)
        if self._texts_known < size:
            new = enumerate(self._values[self._texts_known :], self._texts_known)
            came = [one for one, value in new if value is not _LATER and can_be_text(value)]
            texts.add_values([self._values[one] for one in came], came)
        texts.next_id = self._texts_known = size

    def are_resources(self, ids: Ids) -> Mask:
        """Return which values are IRIs or blank nodes."""
        in_texts = self._in_texts(ids)
        found = np.zeros(len(ids), np.bool_)
        if self._texts is not None:
            found[in_texts] = self._texts.are_resources(ids[in_texts])
        for place in np.flatnonzero(~in_texts).tolist():
            found[place] = isinstance(self._values[ids[place]], Iri | Blank)
        return found

    def _in_texts(self, ids: Ids) -> Mask:
        """Return which ids the table of texts has: others belong to values that exist."""
        return np.zeros(ids.shape, np.bool_) if self._texts is None else self._texts.has(ids)

    def decode(self, identifier: int) -> Value:
        value = self._values[identifier]
        if value is _LATER:
            self._make(np.array([identifier]))
            value = self._values[identifier]
        return value

    def _make(self, ids: Ids) -> None:
        """Make the values of ids: elements of versions, or what the table of texts has."""
        are_versions = self.versions.has(ids)
        for one in ids[are_versions].tolist():
            self._values[one] = value = self._element_of(one)
            self._weight += _weight_of(value)
        ids = ids[~are_versions]
        if len(ids):
            assert self._texts is not None
            self._weight += _BYTES_OF_VALUE * len(ids) + self._texts.size_of(ids)
            for one, value in self._texts.made(ids):
                self._values[one] = value

    def add_versions(self, shapes: Ids, records: Ids) -> None:
        """Give the next ids to versions of elements."""
        if len(records):
            first = len(self._values)
            self.versions.add(first, shapes, records)
            self._values += repeat(_LATER, len(records))
            if self._texts is not None and self._texts_known == first:  # there is nothing to tell it
                self._texts.next_id = self._texts_known = len(self._values)

    def _element_of(self, version: int) -> Value:
        """Return the element of a version: it lies over the layers beneath it."""
        layers = []
        while version != NULL:
            shape, record = self.versions.record(version)
            layers.append(self._layer_of(shape, record))
            version = record[BENEATH]
        found = layers.pop()
        while layers:
            found = overlay(found, layers.pop())
        return found

    def _layer_of(self, shape: ElementShape, record: list[int]) -> Any:
        pairs = zip(shape.keys, record[RECORD:], strict=True)
        held = {name: self.decode(value) for name, value in pairs if value != NULL and name != KEY_SET}
        properties: Any = held if PROPERTIES not in shape.keys else held.get(PROPERTIES, {})
        element_id: Any = self.decode(record[0])
        if shape.types is None:
            return Node(element_id, () if shape.label_sets is None else shape.label_sets[record[1]], properties)
        source, target = (self.decode(end) if end >= 0 else element_id for end in record[2:4])
        return Relationship(element_id, shape.types[record[1]], source, target, properties)  # type: ignore[arg-type]

    def parts(self, ids: Ids, key: str) -> Ids | None:
        """Return the ids of a property of elements, or of their id, type, labels or properties; null where there is
        none. None where one of the ids is neither null nor a version that holds it."""
        found = self.versions.values(ids, key)
        if found is None or key not in (TYPE, LABELS, PROPERTIES):
            return found
        some = ids != NULL
        if key == PROPERTIES:
            found[some & (found == NULL)] = self.encode({})
        else:
            distinct, places = np.unique(self.versions.names(ids[some]), return_inverse=True)
            names = [self.versions.name(one) for one in distinct.tolist()]
            found[some] = self.encode_all(list(one) if key == LABELS else one for one in names)[places]
        if key != TYPE:
            for place in np.flatnonzero(self.versions.are_layered(ids)).tolist():
                element: Any = self.decode(int(ids[place]))
                found[place] = self.encode(list(element.labels) if key == LABELS else dict(element.properties))
        return found

    def decode_all(self, ids: Sequence[int]) -> list[Value]:
        """Decode ids. The values that were not requested before are made together, which takes a tenth of the time."""
        values = self._values
        found = [values[one] for one in ids]
        if _LATER in found:
            later = {one for one, value in zip(ids, found, strict=True) if value is _LATER}
            self._make(np.array(list(later), np.int64))
            found = [values[one] for one in ids]
        return found

    def rows(self, ids: Ids) -> list[tuple[Value, ...]]:
        """Decode a matrix of ids into rows of values."""
        if not ids.shape[1]:
            return [()] * len(ids)
        return list(zip(*map(self.decode_all, ids.T.tolist()), strict=True))

    # --- classes ---

    def identities(self, ids: Ids) -> Ids:
        """Return the ids of the equivalence classes: the same id exactly where values are equivalent."""
        return self._filled(self._identities, ids, identity=True)

    def looks(self, ids: Ids) -> Ids:
        """Return the ids of the classes of sameness in an answer."""
        return self._filled(self._looks, ids, identity=False)

    def _filled(self, column: _Column, ids: Ids, identity: bool) -> Ids:
        column.reach(len(self._values))
        found: Ids = column.values[ids]
        if found.size and found.min() < 0:
            if identity and len(self.versions):
                missing = ids[found < 0]
                self._fill_from_versions(column, missing[self.versions.has(missing)])
                found = column.values[ids]
            if self._texts is not None:
                self._tell_texts(self._texts)
                missing = ids[found < 0]
                self._fill_from_texts(self._texts, column, missing[self._texts.has(missing)])
                found = column.values[ids]
            for one in np.unique(ids[found < 0]).tolist():
                column.values[one] = self._class_of(one, identity)
            found = column.values[ids]
        return found

    def _fill_from_versions(self, column: _Column, ids: Ids) -> None:
        """Fill in the classes of versions: those of one element are one class, which its first version stands for."""
        keys, are_links = self.versions.values(ids, KEY), self.versions.are_links(ids)
        assert keys is not None
        for classes, chosen in zip(self._element_classes, (~are_links, are_links), strict=True):
            own, versions = keys[chosen], ids[chosen]
            classes.reach(len(self._values))
            new = classes.values[own] < 0
            first, places = np.unique(own[new], return_index=True)
            classes.values[first] = versions[new][places]
            column.values[versions] = classes.values[own]

    def _fill_from_texts(self, texts: ValueTexts, column: _Column, ids: Ids) -> None:
        """Fill in the classes of values that are texts: each is a class of its own, but a number is in the class of the
        equal number of the other kind, if that was requested before. Zeros and very large numbers are left out."""
        forms = texts.forms(ids)
        numbers = (forms == ValueForm.INTEGER) | (forms == ValueForm.FLOAT)
        others = ids[~numbers]
        column.values[others] = others
        if len(others) == len(ids):
            return
        integers = ids[forms == ValueForm.INTEGER]
        values = texts.words(integers)
        rounded = values.astype(np.float64)
        usual = (values != 0) & (rounded != -_LARGE)
        integers, values, rounded = integers[usual], values[usual], rounded[usual]
        column.values[integers] = integers
        if len(integers) and ValueForm.FLOAT in texts.met:
            exact = rounded != _LARGE
            exact[exact] = rounded[exact].astype(np.int64) == values[exact]
            _join_twins(column, integers[exact], texts.find_floats(rounded[exact]))
        floats = ids[forms == ValueForm.FLOAT]
        read = texts.floats(floats)
        usual = (read != 0) & ~(np.isfinite(read) & (np.abs(read) >= _LARGE))
        floats, read = floats[usual], read[usual]
        column.values[floats] = floats
        if len(floats) and ValueForm.INTEGER in texts.met:
            whole = np.isfinite(read) & (read == np.floor(read))
            _join_twins(column, floats[whole], texts.find_integers(read[whole].astype(np.int64)))

    def _class_of(self, one: int, identity: bool) -> int:
        value = self.decode(one)
        if one == NULL or value.__class__ in _SELF:
            return one
        if identity and isinstance(value, Node | Relationship):
            classes, key_of = self._element_classes[isinstance(value, Relationship)], self.encode(value.id)
            classes.reach(len(self._values))
            if classes.values[key_of] < 0:
                classes.values[key_of] = one
            return int(classes.values[key_of])
        key = identity_key(value) if identity else content_key(value)
        # The first requested value of a class stands for it.
        return self._classes[identity].setdefault(key, one)

    # --- numbers ---

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return, by id, the number of each value, rounded to a float; NaN for values that are no numbers."""
        size = len(self._values)
        if size > len(self._numbers):
            grown = np.full(max(size, 2 * len(self._numbers)), np.nan)
            grown[: len(self._numbers)] = self._numbers
            self._numbers = grown
        new = np.arange(self._numbers_known, size)
        if self._texts is not None:
            in_texts = self._texts.has(new)
            self._fill_numbers(self._texts, new[in_texts])
            new = new[~in_texts]
        for one in new.tolist():
            self._numbers[one] = self._number_of(self._values[one])
        self._numbers_known = size
        return self._numbers

    def number_words(self, ids: Ids) -> tuple[Kinds, Ids]:
        """Return which values are integers of 64 bits and which are finite floats, as `number_sums` has them, and the
        eight bytes of each; 0 for all others. Ids may be negative."""
        texts = self._known_texts()
        forms = texts.forms(ids)
        floats = forms == ValueForm.FLOAT
        numbers = floats | (forms == ValueForm.INTEGER)
        kinds = np.where(floats, FLOAT, numbers).astype(np.uint8)
        if numbers.all():
            words = texts.words(ids)
        else:
            words = np.zeros(len(ids), np.int64)
            words[numbers] = texts.words(ids[numbers])
        odd = floats & (words & _EXPONENT == _EXPONENT)
        if odd.any():
            kinds[odd] = 0
        return kinds, words

    def _fill_numbers(self, texts: ValueTexts, ids: Ids) -> None:
        forms = texts.forms(ids)
        integers, floats = ids[forms == ValueForm.INTEGER], ids[forms == ValueForm.FLOAT]
        self._numbers[integers] = texts.words(integers)
        self._numbers[floats] = texts.floats(floats)
        literals = ids[forms >= len(ValueForm)]
        for one in literals[~texts.are_resources(literals)].tolist():
            self._numbers[one] = self._number_of(self.decode(one))


def _join_twins(column: _Column, ids: Ids, twins: Ids) -> None:
    """Put numbers into the classes of their twins, where these have one."""
    has_class = twins >= 0
    has_class[has_class] = column.values[twins[has_class]] >= 0
    column.values[ids[has_class]] = column.values[twins[has_class]]


def _writeable(data: Bytes) -> Bytes:
    """Return the bytes in an array that kernels take: they have one signature, that of arrays that can be written."""
    return data if data.flags.writeable else data.copy()


def _weight_of(value: Any) -> int:
    """Estimate the bytes of a value and of its entries in the dictionary: only parts that may be large are measured."""
    kind = value.__class__
    if kind is str:
        return _BYTES_OF_VALUE + len(value)
    if kind in _PLAIN:
        return _BYTES_OF_VALUE + len(value[0])
    if kind in _ELEMENTS:
        return _BYTES_OF_ELEMENT + sum(map(_weight_of, value.properties.values()))
    if kind is list:
        return _BYTES_OF_VALUE + sum(map(_weight_of, value))
    if kind is dict:
        return _BYTES_OF_VALUE + sum(map(_weight_of, value.values()))
    return _BYTES_OF_VALUE


def exact_key(value: Value) -> Hashable:
    """Return a key that two values share only when they are the same in kind, digits and order of keys."""
    kind = value.__class__
    if kind is str or kind in _PLAIN:
        return value
    match value:
        case None:
            return None
        case int():  # and bool, which is another kind
            return (kind, value)
        case float():
            return (kind, "nan") if value != value else (kind, value, math.copysign(1.0, value))
        case list():
            return (list, tuple(map(exact_key, value)))
        case dict():
            return (dict, tuple((name, exact_key(item)) for name, item in value.items()))
        case Node():
            return (Node, exact_key_of_id(value.id), value.labels, exact_key(value.properties))
        case Relationship():
            ends = (exact_key_of_id(value.source), exact_key_of_id(value.target))
            return (Relationship, exact_key_of_id(value.id), value.type, ends, exact_key(value.properties))
        case Path():
            return (Path, tuple(map(exact_key, value.nodes)), tuple(map(exact_key, value.relationships)))
        case Hashable():
            return (kind, value)
    raise TypeError(f"{type(value).__name__} is not a value of the model")


def exact_key_of_id(element_id: object) -> Hashable:
    return (element_id.__class__, element_id)


def _same(value: Value) -> Value:
    return value


def _plain_number(value: Value) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return math.nan
