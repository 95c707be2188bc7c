"""Columns of times in common notations, converted to UTC microseconds.

ISO 8601 texts (without an offset they are UTC), timestamps and dates, and numbers of seconds, milliseconds,
microseconds or nanoseconds since 1970. The unit of numbers is given, or found from the size of the first one:
1082040961 are seconds, 1082040961000 are milliseconds. It is the same for all later numbers.

Work: by arrays; text by text only for rare forms and for texts that are no time.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import AnabranchError
from anabranch.formats.arrow_arrays import numbers, taken, texts, truths
from anabranch.model.instants import parse_instant

TimeUnit = Literal["s", "ms", "us", "ns"]

_PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SMALLER: tuple[tuple[float, TimeUnit], ...] = ((1e11, "s"), (1e14, "ms"), (1e17, "us"))
_FARTHEST = 1 << 61
_WHOLE = r"^\s*-?(?:[0-9]{1,18}|[1-8][0-9]{18})\s*$"
_PLAIN_DIGITS = 18  # that many always fit
_DECIMAL = r"^\s*-?[0-9]{1,18}\.[0-9]+\s*$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_LOCAL = rf"{_DATE}(?:{_CLOCK})?$"
_ZONED = rf"{_DATE}{_CLOCK}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})$"
_CASTS = ((_LOCAL, pa.timestamp("us")), (_ZONED, pa.timestamp("us", tz="UTC")))

Micros = npt.NDArray[np.int64]
Good = npt.NDArray[np.bool_]


class TimeReader:
    """Reads the columns of one input, one after the other."""

    def __init__(self, unit: TimeUnit | None = None) -> None:
        self.unit = unit

    def is_time(self, text: str) -> bool:
        """Return whether a text is a time; the unit is not fixed by it."""
        return bool(TimeReader(self.unit).read(texts([text]))[1][0])

    def read(self, column: pa.Array) -> tuple[Micros, Good]:
        """Return the microseconds, and a mask of the valid ones."""
        kind = column.type
        if pa.types.is_dictionary(kind):
            return self.read(column.dictionary_decode())
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            stamps = column.cast(pa.timestamp("us", tz=kind.tz if pa.types.is_timestamp(kind) else None), safe=False)
            return _filled(stamps.cast(pa.int64()))
        if pa.types.is_integer(kind):
            values, good = _filled(column.cast(pa.int64(), safe=False))
            return self._of_whole(values, good)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            decimals, good = _filled(column.cast(pa.float64()))
            return self._of_decimals(decimals, good & np.isfinite(decimals))
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return self._of_texts(column)
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)

    # --- numbers ---

    def _unit_of(self, first: float) -> TimeUnit:
        if self.unit is not None:
            return self.unit
        seen: TimeUnit = next((unit for bound, unit in _SMALLER if abs(first) < bound), "ns")
        self.unit = seen
        return seen

    def _of_whole(self, values: Any, good: Good) -> tuple[Micros, Good]:
        if not good.any():
            return values, good
        per_second = _PER_SECOND[self._unit_of(float(values[good.argmax()]))]
        if per_second > 10**6:
            return values // (per_second // 10**6), good
        factor = 10**6 // per_second
        good = good & (np.abs(values) < _FARTHEST // factor)
        return np.where(good, values, 0) * factor, good

    def _of_decimals(self, values: Any, good: Good) -> tuple[Micros, Good]:
        if not good.any():
            return np.zeros(len(values), np.int64), good
        micros = values * (10**6 / _PER_SECOND[self._unit_of(float(values[good.argmax()]))])
        good = good & (np.abs(micros) < _FARTHEST)
        return np.rint(np.where(good, micros, 0.0)).astype(np.int64), good

    # --- texts ---

    def _of_texts(self, column: pa.Array) -> tuple[Micros, Good]:
        if column.null_count:
            column = pc.fill_null(column, "")
        whole = _are_whole(column)
        if whole.all():
            return self._of_whole(_whole(column), whole)
        micros, good = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)

        def put(places: Any, found: tuple[Micros, Good]) -> None:
            micros[places], good[places] = found

        if whole.any():
            places = np.flatnonzero(whole)
            put(places, self._of_whole(_whole(taken(column, places)), np.ones(len(places), np.bool_)))
        decimal = ~whole & _matching(column, _DECIMAL)
        if decimal.any():
            places = np.flatnonzero(decimal)
            values = numbers(pc.utf8_trim_whitespace(taken(column, places)).cast(pa.float64()))
            put(places, self._of_decimals(values, np.ones(len(places), np.bool_)))
        left = ~whole & ~decimal
        for pattern, kind in _CASTS if left.any() else ():
            places = np.flatnonzero(left & _matching(column, pattern))
            if len(places):
                put(places, _instants(taken(column, places), kind))
                left[places] = False
        places = np.flatnonzero(left)
        if len(places):
            put(places, _one_by_one(taken(column, places)))
        return micros, good


def _are_whole(column: pa.Array) -> Good:
    """Return which texts are whole numbers of 64 bits. Mostly all of them are plain digits, which needs no pattern."""
    digits = truths(pc.ascii_is_decimal(column))
    if digits.all() and len(column) and pc.max(pc.binary_length(column)).as_py() <= _PLAIN_DIGITS:
        return digits
    return _matching(column, _WHOLE)


def _instants(column: pa.Array, kind: pa.DataType) -> tuple[Micros, Good]:
    try:
        micros = numbers(column.cast(kind).cast(pa.int64()))
    except pa.ArrowInvalid:  # a month 13, say
        return _one_by_one(column)
    return micros, np.ones(len(micros), np.bool_)


def _one_by_one(column: pa.Array) -> tuple[Micros, Good]:
    micros, good = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    for place, text in enumerate(column.to_pylist()):
        try:
            micros[place] = parse_instant(text.strip())
        except (AnabranchError, OverflowError):
            continue
        good[place] = True
    return micros, good


def _whole(column: pa.Array) -> Any:
    try:
        return numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:  # spaces around
        return numbers(pc.utf8_trim_whitespace(column).cast(pa.int64()))


def _matching(column: pa.Array, pattern: str) -> Good:
    return truths(pc.match_substring_regex(column, pattern))


def _filled(column: pa.Array) -> tuple[Any, Good]:
    """The values with 0 for nulls, and which are none."""
    if not column.null_count:
        return numbers(column), np.ones(len(column), np.bool_)
    return numbers(pc.fill_null(column, 0)), truths(column.is_valid())
