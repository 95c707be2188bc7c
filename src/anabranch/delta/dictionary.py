"""Values as numbers: each value that differs in any way a user can see has an id of its own.

1, 1.0, "1" and the literal "1"^^xsd:integer are four ids. Equivalence (what DISTINCT, grouping and joins compare by)
and sameness in an answer (what ON ENTERING compares by) are coarser: each id knows the ids of its two classes. An
element of a property graph is one id per content; its class is its identity.

Invariant: an id means the same value as long as the dictionary lives; it only grows. Whoever has it grown too large
takes a new one and builds all state anew. Id 0 is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count, repeat

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import NULL, Ids
from anabranch.model.compare import content_key, identity_key
from anabranch.model.terms import Blank, Iri, Literal, Term
from anabranch.model.values import Node, Path, Relationship, Value

_PLAIN = frozenset((Iri, Literal, Blank))  # kinds whose equality is the sameness that a user sees
_ELEMENTS = frozenset((Node, Relationship))
_SELF = frozenset((str, Iri, Literal, Blank))  # kinds that are their own class in both senses


class _Column:
    """A growing vector, filled on demand with a function of the id; -1 marks what nobody has asked for yet."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: Ids = np.full(1024, -1, np.int64)

    def reach(self, size: int) -> None:
        if size > len(self.values):
            grown = np.full(max(size, 2 * len(self.values)), -1, np.int64)
            grown[: len(self.values)] = self.values
            self.values = grown


class Dictionary:
    """`number_of` says which number a value is, rounded to a float; NaN for what is none."""

    __slots__ = (
        "_classes",
        "_elements",
        "_identities",
        "_ids",
        "_looks",
        "_number_of",
        "_numbers",
        "_numbers_known",
        "_values",
    )

    def __init__(self, number_of: Callable[[Value], float] | None = None) -> None:
        self._number_of = number_of or _plain_number
        self._values: list[Value] = [None]
        self._ids: dict[Hashable, int] = {}
        self._elements: dict[int, int] = {}  # by `id`, the elements that it holds itself, which therefore live
        self._classes: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
        self._identities = _Column()
        self._looks = _Column()
        self._numbers: npt.NDArray[np.float64] = np.full(1024, np.nan)
        self._numbers_known = 1

    def __len__(self) -> int:
        return len(self._values)

    # --- values and ids ---

    def encode(self, value: Value) -> int:
        if value is None:
            return NULL
        key: Hashable = value if value.__class__ in _PLAIN else self._key(value)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._values)
            self._values.append(value)
        return found

    def find(self, value: Value) -> int | None:
        """The id of a value that was met before."""
        if value is None:
            return NULL
        return self._ids.get(value if value.__class__ in _PLAIN else self._key(value))

    def _key(self, value: Value) -> Hashable:
        """What a value is found by. Paths, and lists of elements, are found by the ids of their elements: many share
        these, and what an element holds is looked at once."""
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
        """The same for very many RDF terms, most of them different; they are their own keys."""
        ids, values = self._ids, self._values
        found = np.fromiter(map(ids.get, terms, repeat(-1)), np.int64, len(terms))
        missing = np.flatnonzero(found < 0)
        if len(missing):
            wanted = [terms[place] for place in missing.tolist()]
            fresh = dict.fromkeys(wanted)
            ids.update(zip(fresh, count(len(values))))
            values.extend(fresh)
            found[missing] = np.fromiter(map(ids.__getitem__, wanted), np.int64, len(wanted))
        return found

    def decode(self, identifier: int) -> Value:
        return self._values[identifier]

    def rows(self, ids: Ids) -> list[tuple[Value, ...]]:
        """A matrix of ids as rows of values."""
        values = self._values
        if not ids.shape[1]:
            return [()] * len(ids)
        columns = [[values[one] for one in column] for column in ids.T.tolist()]
        return list(zip(*columns, strict=True))

    # --- classes ---

    def identities(self, ids: Ids) -> Ids:
        """The ids of the classes of equivalence: the same id exactly where values are equivalent."""
        return self._filled(self._identities, ids, identity=True)

    def looks(self, ids: Ids) -> Ids:
        """The ids of the classes of sameness in an answer."""
        return self._filled(self._looks, ids, identity=False)

    def _filled(self, column: _Column, ids: Ids, identity: bool) -> Ids:
        column.reach(len(self._values))
        found: Ids = column.values[ids]
        if found.size and found.min() < 0:
            for one in np.unique(ids[found < 0]).tolist():
                column.values[one] = self._class_of(one, identity)
            found = column.values[ids]
        return found

    def _class_of(self, one: int, identity: bool) -> int:
        value = self._values[one]
        if one == NULL or value.__class__ in _SELF:
            return one
        key = identity_key(value) if identity else content_key(value)
        # The first value of a class that anybody asks about stands for it.
        return self._classes[identity].setdefault(key, one)

    # --- numbers ---

    def numbers(self) -> npt.NDArray[np.float64]:
        """By id, the number that a value is, rounded to a float; NaN for all that is none."""
        size = len(self._values)
        if size > len(self._numbers):
            grown = np.full(max(size, 2 * len(self._numbers)), np.nan)
            grown[: len(self._numbers)] = self._numbers
            self._numbers = grown
        for one in range(self._numbers_known, size):
            self._numbers[one] = self._number_of(self._values[one])
        self._numbers_known = size
        return self._numbers


def exact_key(value: Value) -> Hashable:
    """A key that two values share only when nothing tells them apart: neither kind, nor digits, nor order of keys."""
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


def _plain_number(value: Value) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return math.nan
