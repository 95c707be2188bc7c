"""Dictionary of values: each value that a user can distinguish from others has an id of its own.

1, 1.0, "1" and the literal "1"^^xsd:integer are four ids. Equivalence (by which DISTINCT, grouping and joins compare)
and sameness in an answer (by which ON ENTERING compares) are coarser: each id has the ids of its two classes. An
element of a property graph is one id per content; its class is its identity.

Terms that come as adjacent texts (`TermTexts`) are distinguished by their bytes, in a table beside the values
(`texts.TextTable`), and become values at the first request. Terms that came as values are added to that table before
the next texts are looked up in it, so that a term has one id whichever way it came.

Invariant: an id means the same value as long as the dictionary lives; it only grows. When it has grown too large, its
owner makes a new one and rebuilds all state. Id 0 is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import NULL, Ids, Mask
from anabranch.delta.element_versions import ElementShape, ElementVersions
from anabranch.delta.texts import PADDING, TextTable
from anabranch.model.compare import content_key, identity_key
from anabranch.model.term_texts import TermForm, TermKind, TermTexts, form_of, terms_of
from anabranch.model.terms import Blank, Iri, Literal, Term
from anabranch.model.values import Node, Path, Relationship, Value

_PLAIN = frozenset((Iri, Literal, Blank))  # kinds whose equality is that of users
_ELEMENTS = frozenset((Node, Relationship))
_SELF = frozenset((str, Iri, Literal, Blank))  # kinds that are their own class in both senses
_FEW = 64  # up to this many terms, making them is faster than text lookup
_BYTES_OF_VALUE = 150  # guesses: what Python objects take
_BYTES_OF_ELEMENT = 600


class _Unmade:
    """The place of a term that was not requested yet."""


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
    """Ids of values. `number_of` gives the number of a value, rounded to a float; NaN for a value that is no number."""

    __slots__ = (
        "_classes",
        "_elements",
        "_form_numbers",
        "_forms",
        "_identities",
        "_ids",
        "_looks",
        "_number_of",
        "_numbers",
        "_numbers_known",
        "_texts",
        "_texts_known",
        "_values",
        "_weighed",
        "_weight",
        "versions",
    )

    def __init__(self, number_of: Callable[[Value], float] | None = None) -> None:
        self._number_of = number_of or _plain_number
        self._values: list[Value] = [None]
        self._ids: dict[Hashable, int] = {}
        self._elements: dict[int, int] = {}  # by `id`: elements that it holds itself, and so keeps alive
        self._classes: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
        self._identities = _Column()
        self._looks = _Column()
        self._numbers: npt.NDArray[np.float64] = np.full(1024, np.nan)
        self._numbers_known = 1
        self._texts: TextTable | None = None  # once there are terms that came as texts
        self._texts_known = 1  # terms among the values below it are in the table
        self._forms: list[TermForm] = []
        self._form_numbers: dict[TermForm, int] = {}
        self._weight = 0  # of the values below the next
        self._weighed = 0
        self.versions = ElementVersions()

    def __len__(self) -> int:
        return len(self._values)

    def weight(self) -> int:
        """Return about how many bytes the values take. Work: O(values that came since the last call)."""
        self._weight += sum(map(_weight_of, self._values[self._weighed :]))
        self._weighed = len(self._values)
        return self._weight + self.versions.nbytes + (0 if self._texts is None else self._texts.nbytes)

    # --- values and ids ---

    def encode(self, value: Value) -> int:
        if value is None:
            return NULL
        key: Hashable = value if value.__class__ in _PLAIN else self._key(value)
        found = self._ids.get(key)
        if found is None:
            found = self._found_as_text(value)
            if found is None:
                found = len(self._values)
                self._values.append(value)
            self._ids[key] = found
        return found

    def find(self, value: Value) -> int | None:
        """Return the id of a value that was met before, else None."""
        if value is None:
            return NULL
        found = self._ids.get(value if value.__class__ in _PLAIN else self._key(value))
        return self._found_as_text(value) if found is None else found

    def _found_as_text(self, value: Value) -> int | None:
        if self._texts is None or not isinstance(value, Iri | Literal | Blank):
            return None
        form = self._form_numbers.get(form_of(value))
        found = -1 if form is None else self._texts.find(_text_of(value), form)
        return None if found < 0 else found

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
        return np.array([self.encode(value) for value in values], np.int64)

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
            if self._texts is None:
                ids.update(zip(fresh, count(len(values))))
                values.extend(fresh)
            else:
                self._tell_texts(self._texts)
                ids.update(zip(fresh, self._put_into(self._texts, list(fresh)), strict=True))
                for term in fresh:
                    values[ids[term]] = term
            found[missing] = np.fromiter(map(ids.__getitem__, wanted), np.int64, len(wanted))
        return found

    def _encode_texts(self, terms: TermTexts) -> Ids:
        table = self._texts = self._texts or TextTable()
        self._tell_texts(table)
        found = np.empty(len(terms), np.int64)
        start = 0
        for form, size in terms.forms:
            starts, stops = terms.ends[start : start + size], terms.ends[start + 1 : start + size + 1]
            found[start : start + size] = table.add(terms.data, starts, stops, self._form(form))
            start += size
        self._reach_texts(table)
        return found

    def _reach_texts(self, table: TextTable) -> None:
        self._values += repeat(_LATER, table.next_id - len(self._values))
        self._texts_known = len(self._values)

    def _tell_texts(self, table: TextTable) -> None:
        """Add to the table the terms that came as values since the last call."""
        new = range(self._texts_known, len(self._values))
        came = [one for one in new if self._values[one].__class__ in _PLAIN]
        self._put_into(table, [self._values[one] for one in came], came)
        table.next_id = self._texts_known = len(self._values)

    def _put_into(self, table: TextTable, terms: Sequence[Any], given: Sequence[int] | None = None) -> list[int]:
        """Return the ids of terms by the table; new ones get the next ids, or the given ones."""
        found = np.array([0] * len(terms) if given is None else given, np.int64)
        groups: dict[int, list[int]] = {}
        for place, term in enumerate(terms):
            groups.setdefault(self._form(form_of(term)), []).append(place)
        for form, places in groups.items():
            texts = [_text_of(terms[place]) for place in places]
            ends = np.zeros(len(texts) + 1, np.int64)
            np.cumsum([len(text) for text in texts], out=ends[1:])
            data = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8).copy()
            found[places] = table.add(data, ends[:-1], ends[1:], form, None if given is None else found[places])
        if given is None:
            self._reach_texts(table)
        ids: list[int] = found.tolist()
        return ids

    def _form(self, form: TermForm) -> int:
        found = self._form_numbers.get(form)
        if found is None:
            found = self._form_numbers[form] = len(self._forms)
            self._forms.append(form)
        return found

    def add_versions(self, shape: int, records: Ids) -> None:
        """Give the next ids to versions of elements."""
        if len(records):
            self.versions.add(len(self._values), shape, records)
            self._values += repeat(_LATER, len(records))

    def _made_of_version(self, shape: ElementShape, record: list[int]) -> Value:
        key, number, source, target, *values = record
        pairs = zip(shape.keys, values, strict=True)
        properties = {name: self.decode(value) for name, value in pairs if value != NULL}
        element_id: Any = self.decode(key)
        if shape.types is None:
            return Node(element_id, (), properties)
        ends: Any = (self.decode(source), self.decode(target))
        return Relationship(element_id, shape.types[number], *ends, properties)

    def _made(self, identifier: int) -> Value:
        """Make the element of a version, or the term of an id that came as a text."""
        version = self.versions.record(identifier)
        if version is not None:
            made = self._values[identifier] = self._made_of_version(*version)
            return made
        assert self._texts is not None
        number, text = self._texts.text(identifier)
        (term,) = terms_of(self._forms[number], [text.decode("utf-8", "surrogatepass")])
        self._values[identifier] = term
        return term

    def are_resources(self, ids: Ids) -> Mask:
        """Return which values are IRIs or blank nodes."""
        unmade = self._unmade(ids)
        found = np.zeros(len(ids), np.bool_)
        if unmade.any():
            assert self._texts is not None
            kinds = np.array([form.kind in (TermKind.IRI, TermKind.BLANK) for form in self._forms], np.bool_)
            found[unmade] = kinds[self._texts.forms(ids[unmade])]
        for place in np.flatnonzero(~unmade).tolist():
            found[place] = isinstance(self._values[ids[place]], Iri | Blank)
        return found

    def _unmade(self, ids: Ids) -> Mask:
        """Return which ids may belong to terms that were not made: all that the table of texts has."""
        return np.zeros(ids.shape, np.bool_) if self._texts is None else self._texts.has(ids)

    def decode(self, identifier: int) -> Value:
        value = self._values[identifier]
        return self._made(identifier) if value is _LATER else value

    def rows(self, ids: Ids) -> list[tuple[Value, ...]]:
        """Decode a matrix of ids into rows of values."""
        values = self._values
        if not ids.shape[1]:
            return [()] * len(ids)
        if self._texts is not None or len(self.versions):
            for one in np.unique(ids[self._unmade(ids) | self.versions.has(ids)]).tolist():
                if values[one] is _LATER:
                    self._made(one)
        columns = [[values[one] for one in column] for column in ids.T.tolist()]
        return list(zip(*columns, strict=True))

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
            if self._texts is not None:  # terms are their own classes
                terms = ids[(found < 0) & self._unmade(ids)]
                column.values[terms] = terms
                found = column.values[ids]
            for one in np.unique(ids[found < 0]).tolist():
                column.values[one] = self._class_of(one, identity)
            found = column.values[ids]
        return found

    def _class_of(self, one: int, identity: bool) -> int:
        value = self.decode(one)
        if one == NULL or value.__class__ in _SELF:
            return one
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
        for one in new[~self._unmade(new) | ~self.are_resources(new)].tolist():
            self._numbers[one] = self._number_of(self.decode(one))
        self._numbers_known = size
        return self._numbers


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
    return 0 if value is _LATER else _BYTES_OF_VALUE


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


def _text_of(term: Any) -> bytes:
    """Return the text of a term: its first field, the part beside its form."""
    text: bytes = term[0].encode("utf-8", "surrogatepass")
    return text


def exact_key_of_id(element_id: object) -> Hashable:
    return (element_id.__class__, element_id)


def _plain_number(value: Value) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return math.nan
