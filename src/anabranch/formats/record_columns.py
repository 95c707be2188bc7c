"""Records as columns: the values of each field, and which of them each record has.

Law: record i has in each field the value that the reader of `formats.records` or of `formats.ndjson` gives it; a field
that it lacks is null.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import MalformedEventError
from anabranch.formats.arrow_arrays import numbers, text_buffers, truths
from anabranch.formats.events import value_from_json
from anabranch.formats.values import INTEGER_MAX, INTEGER_MIN
from anabranch.model.graph_block import Bytes, Places
from anabranch.model.values import Value

ValueCodes: TypeAlias = npt.NDArray[np.int64]

_PADDING = 8  # bytes behind texts that kernels may read
_ESCAPED = np.isin(np.arange(256), np.frombuffer(b"'\\\n\r\t", np.uint8))  # bytes that `cypher_text` escapes
_IN_DECIMALS = np.isin(np.arange(256), np.frombuffer(b"0123456789.-", np.uint8))
_TEXTS = frozenset((str, type(None)))
_HASHED = frozenset((str, int, bool, type(None)))


class FieldColumn:
    """The values of one field: as Arrow texts where all are texts or null, and as codes of distinct values."""

    def __init__(self, texts: Any = None, values: Sequence[Value] = ()) -> None:
        self.texts = texts
        self._values = values
        self._coded: tuple[ValueCodes, list[Value]] | None = None

    @classmethod
    def of(cls, values: Sequence[Value]) -> FieldColumn:
        if set(map(type, values)) <= _TEXTS:
            try:
                return cls(pa.array(values, pa.string()))
            except UnicodeEncodeError:
                pass  # half of a surrogate pair
        return cls(values=values)

    @cached_property
    def is_plain(self) -> bool:
        """Whether all values are texts, or null, in which nothing is escaped in keys of elements."""
        if self.texts is None:
            return False
        data, _starts, _stops = self.places
        return not _ESCAPED[data[:-_PADDING]].any()

    @cached_property
    def places(self) -> tuple[Bytes, Places, Places]:
        """The bytes of the texts, and where each begins and ends in them."""
        data, ends = text_buffers(self.texts, _PADDING)
        return data, ends[:-1], ends[1:]

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which values are not null; only of texts."""
        return truths(self.texts.is_valid())

    @cached_property
    def integers(self) -> npt.NDArray[np.int64] | None:
        """The numbers that the texts spell, 0 for null; None where one spells no integer as it is usually written."""
        if self.texts is None:
            return None
        # Other fields need no kernels.
        from anabranch.delta.texts import spelled_integers

        values, others = spelled_integers(*self.places)
        if len(others):
            if self.present[others].any():
                return None
            values[others] = 0
        return values

    def numbers(self, *, whole: bool) -> Any:
        """Return the integers, or the floats, that the texts spell; None where one spells none in its usual form."""
        if self.texts is None:
            return None
        if whole:
            values = self.integers
            return None if values is None else pa.array(values, mask=None if self.present.all() else ~self.present)
        data, _starts, _stops = self.places
        if not _IN_DECIMALS[data[:-_PADDING]].all():
            return None
        try:
            found = self.texts.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
        return found if np.isfinite(numbers(pc.fill_null(found, 0.0))).all() else None

    @property
    def has_any(self) -> bool:
        """Whether any value is not null."""
        if self.texts is None:
            return any(value is not None for value in self._values)
        return bool(self.texts.null_count < len(self.texts))

    def coded(self) -> tuple[ValueCodes, list[Value]]:
        """Return a code for each record, and the value of each code."""
        if self._coded is None:
            self._coded = self._coded_values() if self.texts is None else self._coded_texts()
        return self._coded

    def _coded_texts(self) -> tuple[ValueCodes, list[Value]]:
        encoded = self.texts.dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()

    def _coded_values(self) -> tuple[ValueCodes, list[Value]]:
        codes: dict[Any, int] = {}
        distinct: list[Value] = []
        found = np.empty(len(self._values), np.int64)
        for row, value in enumerate(self._values):
            kind = value.__class__
            # 1, 1.0 and true are equal in Python; a list or a map is a value of its own.
            key: Any = (kind, value) if kind in _HASHED else (kind, repr(value)) if kind is float else (None, row)
            code = codes.setdefault(key, len(distinct))
            if code == len(distinct):
                distinct.append(value)
            found[row] = code
        return found, distinct


class RecordColumns(ABC):
    """Records of a source, with their numbers. `odd` are the places of records that are no plain maps of values."""

    numbers: Sequence[int]
    odd: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @abstractmethod
    def field(self, name: str) -> FieldColumn:
        """Return the values of a field."""

    @abstractmethod
    def record(self, place: int) -> Any:
        """Return the record at a place, as a reader of records gives it."""


class TextRows(RecordColumns):
    """Rows of a table of texts, whose columns are named; an empty text is null."""

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str]], first_number: int) -> None:
        self.numbers = range(first_number, first_number + len(rows))
        self._names, self._rows = names, rows
        self._places = {name: place for place, name in enumerate(names)}
        self._columns: list[Sequence[str]] | None = None
        if any(name.startswith("$") for name in names):
            self.odd = range(len(rows))

    def field(self, name: str) -> FieldColumn:
        place = self._places.get(name)
        if place is None:
            return FieldColumn(pa.nulls(len(self), pa.string()))
        if self._columns is None:
            width = len(self._names)
            even = all(len(row) == width for row in self._rows)
            rows = self._rows if even else [[*row[:width], *[""] * (width - len(row))] for row in self._rows]
            self._columns = list(zip(*rows, strict=True))
        texts = pa.array(self._columns[place], pa.string())
        return FieldColumn(with_nulls(texts))

    def record(self, place: int) -> dict[str, Any]:
        row = self._rows[place]
        found: dict[str, Any] = dict(zip(self._names, row, strict=False))
        found.update(dict.fromkeys(self._names[len(row) :]))
        return {name: value or None for name, value in found.items()}


class TextColumns(RecordColumns):
    """Rows of a table of texts, as columns that are named; an empty text is null."""

    def __init__(self, names: Sequence[str], columns: Sequence[Any], first_number: int) -> None:
        self.numbers = range(first_number, first_number + len(columns[0]))
        self._columns = dict(zip(names, columns, strict=True))
        if any(name.startswith("$") for name in names):
            self.odd = range(len(self.numbers))

    def field(self, name: str) -> FieldColumn:
        texts = self._columns.get(name)
        return FieldColumn(pa.nulls(len(self), pa.string()) if texts is None else with_nulls(texts))

    def record(self, place: int) -> dict[str, Any]:
        return {name: texts[place].as_py() or None for name, texts in self._columns.items()}


class MapRows(RecordColumns):
    """Records that are JSON-like maps."""

    def __init__(self, numbers: Sequence[int], records: Sequence[Any]) -> None:
        self.numbers = numbers
        self._records = records
        self._values: list[Mapping[str, Value]] = []
        odd = []
        plain: set[tuple[str, ...]] = set()  # names of fields, none of which marks a typed value
        for place, record in enumerate(records):
            try:
                self._values.append(_value_of(record, plain))
            except (MalformedEventError, RecursionError):
                odd.append(place)
                self._values.append({})
        self.odd = odd

    def field(self, name: str) -> FieldColumn:
        return FieldColumn.of([value.get(name) for value in self._values])

    def record(self, place: int) -> Any:
        return self._records[place]


def _value_of(record: Any, plain: set[tuple[str, ...]]) -> Mapping[str, Value]:
    """Return the value of a record; raises MalformedEventError for one that has none."""
    if record.__class__ is dict:
        names = tuple(record)
        if names in plain or not any(name.__class__ is not str or name[:1] == "$" for name in names):
            plain.add(names)
            if all(map(_is_value, record.values())):
                return record
    value = value_from_json(record)
    if not isinstance(value, dict):
        raise MalformedEventError("a record is an object with named fields")
    if any(name.startswith("$") for name in record):
        raise MalformedEventError("a typed value")
    return value


def _is_value(data: Any) -> bool:
    kind = data.__class__
    if kind is str or data is None or kind is bool:
        return True
    return INTEGER_MIN <= data <= INTEGER_MAX if kind is int else kind is float and math.isfinite(data)


def with_nulls(texts: Any) -> Any:
    """Return texts with null for empty ones."""
    empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts) if pc.any(empty).as_py() else texts
