"""Arrow arrays as columns of values: texts stay in Arrow's bytes, and no value of a plain type becomes an object.

Law: a column has the values that the exact reader makes of the array's items, null where it has none. An array with an
item that no property can hold raises.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.formats.arrow_arrays import numbers, truths
from anabranch.formats.events import value_from_json
from anabranch.model.graph_block import Bytes, Places, ValueColumn, ValueKind
from anabranch.model.values import Value

_PADDING = 8
_SEPARATOR = "\x00"


class IrregularBatch(Exception):
    """A batch that the exact reader must look at."""


class ArrowValues:
    """Collects arrays as columns that share `data` and `objects`."""

    __slots__ = ("_parts", "_size", "objects")

    def __init__(self) -> None:
        self.objects: list[Value] = []
        self._parts: list[Bytes] = []
        self._size = 0

    def data(self) -> Bytes:
        """Return the bytes of all texts so far, with zeros behind them."""
        return np.concatenate([*self._parts, np.zeros(_PADDING, np.uint8)])

    def spans(self, array: pa.Array) -> tuple[Places, Places]:
        """Return where the texts of an array will stand in `data`; those of null are anywhere."""
        if not len(array):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends, part = _text_buffers(array)
        places = ends + (self._size - int(ends[0]))
        self._parts.append(part)
        self._size += len(part)
        return places[:-1], places[1:]

    def column(self, array: pa.Array) -> ValueColumn:
        """Return the column of an array of any type."""
        array = plain(array)
        if pa.types.is_null(array.type):
            return absent(len(array))
        if is_text(array.type):
            starts, stops = self.spans(array)
            return _with_nulls(array, ValueKind.TEXT, starts, stops)
        if pa.types.is_boolean(array.type):
            firsts = truths(array).astype(np.int64)
            return _with_nulls(array, ValueKind.BOOLEAN, firsts)
        if pa.types.is_integer(array.type):
            firsts = numbers(array.cast(pa.int64()))
            return _with_nulls(array, ValueKind.INTEGER, firsts)
        if is_float(array.type):
            firsts = numbers(array.cast(pa.float64())).view(np.int64)
            return _with_nulls(array, ValueKind.FLOAT, firsts)
        try:
            items = array.to_pylist()
        except (ValueError, OverflowError):
            raise IrregularBatch from None
        return self.object_column([None if item is None else value_from_json(item) for item in items])

    def object_column(self, values: list[Value]) -> ValueColumn:
        """Return the column of values, each an object of its own."""
        present = np.array([value is not None for value in values], np.bool_)
        places = np.arange(len(self.objects), len(self.objects) + len(values))
        self.objects += values
        return ValueColumn(_kinds(present, ValueKind.OBJECT), places, np.zeros(len(values), np.int64))

    def labels(self, array: pa.Array) -> ValueColumn:
        """Return the column of lists of labels: one object for each distinct list."""
        if pa.types.is_null(array.type):
            return absent(len(array))
        if not is_list(array.type):
            raise IrregularBatch
        flat = array.flatten()
        if not len(flat):
            return absent(len(array))
        encoded = flat if pa.types.is_dictionary(flat.type) else plain(flat).dictionary_encode()
        if not is_text(encoded.type.value_type) or flat.null_count:
            raise IrregularBatch
        if any(not name or _SEPARATOR in name for name in encoded.dictionary.to_pylist()):
            raise IrregularBatch
        lengths = list_lengths(array)
        if len(flat) != len(array) or (lengths != 1).any():
            texts = pa.ListArray.from_arrays(pa.array(_ends(lengths), pa.int32()), plain(flat))
            encoded = pc.binary_join(texts, _SEPARATOR).dictionary_encode()
        first = len(self.objects)
        distinct = [tuple(dict.fromkeys(text.split(_SEPARATOR))) for text in encoded.dictionary.to_pylist()]
        self.objects += distinct
        return ValueColumn(
            _kinds(lengths > 0, ValueKind.OBJECT),
            first + numbers(encoded.indices).astype(np.int64),
            np.zeros(len(array), np.int64),
        )


def check_values(array: pa.Array) -> None:
    """Refuse an array with an item that no property can hold."""
    array = plain(array)
    if is_text(array.type):
        if len(array):
            _ends_of_texts, part = _text_buffers(array)
            if (part >= 0x80).any():
                array.validate(full=True)
    elif is_float(array.type):
        if not (np.isfinite(numbers(array)) | ~truths(array.is_valid())).all():
            raise IrregularBatch
    elif pa.types.is_uint64(array.type):
        array.cast(pa.int64())
    elif not (pa.types.is_null(array.type) or pa.types.is_boolean(array.type) or pa.types.is_integer(array.type)):
        ArrowValues().column(array)


def plain(array: pa.Array) -> pa.Array:
    """Return an array of the values themselves: neither by a dictionary nor marked as JSON."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.storage if isinstance(array.type, pa.JsonType) else array


def absent(count: int) -> ValueColumn:
    return ValueColumn(np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))


def list_lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the number of items of each list, 0 for null."""
    lengths = pc.list_value_length(array)
    return numbers(pc.fill_null(lengths, 0) if lengths.null_count else lengths).astype(np.int64)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _text_buffers(array: pa.Array) -> tuple[npt.NDArray[np.int64], Bytes]:
    """Return the ends of an array's texts, with the first one's start before them, and the bytes between the first and
    the last of these."""
    _validity, offsets, data = array.buffers()
    kind = np.dtype(np.int32 if pa.types.is_string(array.type) else np.int64)
    ends = np.frombuffer(offsets, kind, len(array) + 1, array.offset * kind.itemsize).astype(np.int64)
    if data is None:
        return ends, np.zeros(0, np.uint8)
    return ends, np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def _with_nulls(array: pa.Array, kind: ValueKind, firsts: Places, stops: Places | None = None) -> ValueColumn:
    stops = np.zeros(len(array), np.int64) if stops is None else stops
    if not array.null_count:
        firsts = firsts if firsts.flags.writeable else firsts.copy()  # kernels take no arrays of Arrow's
        return ValueColumn(np.full(len(array), kind, np.uint8), firsts, stops)
    present = truths(array.is_valid())
    return ValueColumn(_kinds(present, kind), np.where(present, firsts, 0), np.where(present, stops, 0))


def _kinds(present: npt.NDArray[np.bool_], kind: ValueKind) -> npt.NDArray[np.uint8]:
    return present.astype(np.uint8) * np.uint8(kind)


def _ends(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])
