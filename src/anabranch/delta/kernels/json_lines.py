"""A scan of NDJSON bytes: which lines are plain events of a property graph, and the values in them as columns.

Every line is walked once, byte for byte, and checked as JSON. A line with anything that the format treats specially
(other names for a field, typed values, names given twice, times in rare forms, deep nesting) is left to the exact
reader, and so is a line that is malformed. Bytes are known to be UTF-8, apart from lines that were marked before.

Texts end at a quote, at a backslash or at a byte below 32. So no walk passes the end of its line, nor the bytes behind
the last line, which are no part of JSON.

Invariant: a REGULAR line is an event that the exact reader accepts, and the columns have its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, compiled, inlined, kernel, unsigned
from anabranch.delta.kernels.texts import _same, _word_at
from anabranch.model.graph_block import Bytes, ValueKind

Words: TypeAlias = npt.NDArray[np.uint64]
Table: TypeAlias = npt.NDArray[np.int64]
Value: TypeAlias = tuple[Int, Int, Int, Int]
"""The place behind a value, its kind, and its two numbers."""

UNKNOWN, REGULAR, EXACT, BLANK = range(4)  # of a line; those marked EXACT are not walked
NODE_FIELDS, RELATIONSHIP_FIELDS = 2, 4  # columns before those of properties: id and labels; id, type and ends
LINES, NODES, RELATIONSHIPS = np.uint64(0), np.uint64(1), np.uint64(2)  # the totals of a scan

_ABSENT, _TEXT, _INTEGER, _FLOAT = (
    int(one) for one in (ValueKind.ABSENT, ValueKind.TEXT, ValueKind.INTEGER, ValueKind.FLOAT)
)
_BOOLEAN, _JSON = int(ValueKind.BOOLEAN), int(ValueKind.JSON)
_REFUSED = 255

_DEEPEST = 20
_MOST_LABELS = 16
_MOST_ELEMENTS = 4096  # of an event: each id is compared with those before it
_FARTHEST_MILLIS = 2**63 // 1000 - 1
_POWERS = np.array([10.0**power for power in range(23)])
_LARGEST_WHOLE = np.uint64(1 << 53)  # floats hold every smaller whole number
_MOST_DIGITS = 19  # that surely fit into 64 bits without a sign
_LARGEST_EXPONENT = 290  # no number with an exponent up to here is infinite
_FAR = 1 << 40  # an exponent as good as any larger one

_ID, _LABELS, _PROPERTIES, _TYPE, _SOURCE, _TARGET = 1, 2, 4, 8, 16, 32  # fields that were seen
_AT, _NODES, _RELATIONSHIPS = 1, 2, 4


class AskedKeys(NamedTuple):
    """Property keys: their first eight bytes, where they stand in `data`, which has padding, and for each the row
    of the last element of a list that had it."""

    heads: Words
    starts: Ids
    stops: Ids
    data: Bytes
    seen: Ids


class LineRows(NamedTuple):
    """Lines: where they start and stop, and of regular lines the event time and the numbers of elements."""

    starts: Ids
    stops: Ids
    statuses: Bytes
    times: Ids
    nodes: Ids
    relationships: Ids


class ElementRows(NamedTuple):
    """Values by column and element: the fields of elements, then the asked properties."""

    kinds: npt.NDArray[np.uint8]
    firsts: Table
    stops: Table


def _zeros(typing_context: Any, number: Any) -> Any:
    """The number of zero bits below the lowest one; the number is not 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), code


_zeros_below = cast(Callable[[Any], Any], intrinsic(_zeros))


def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a float as a whole number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), code


_bits_of = cast(Callable[[float], int], intrinsic(_bits))


def _head_of(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(name.encode()[:8].ljust(8, b"\0"), "little"))


_NAME_AT, _NAME_NODES, _NAME_EDGES = _head_of("at"), _head_of("nodes"), _head_of("edges")
_NAME_RELATION, _NAME_SHIPS = _head_of("relation"), _head_of("ships")
_NAME_ID, _NAME_LABEL, _NAME_LABELS, _NAME_TYPE = (_head_of(one) for one in ("id", "label", "labels", "type"))
_NAME_FROM, _NAME_START, _NAME_SOURCE = (_head_of(one) for one in ("from", "start", "source"))
_NAME_TO, _NAME_END, _NAME_TARGET = (_head_of(one) for one in ("to", "end", "target"))
_NAME_PROPERTI, _NAME_ES = _head_of("properti"), _head_of("es")
_WORD_TRUE, _WORD_FALSE, _WORD_NULL = (_head_of(one) for one in ("true", "false", "null"))
_FOUR_BYTES, _FIVE_BYTES = np.uint64((1 << 32) - 1), np.uint64((1 << 40) - 1)

_ONE = np.uint64(1)
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES, _NEWLINES = np.uint64(0x2020202020202020), np.uint64(0x0A0A0A0A0A0A0A0A)
_THREE = np.uint64(3)


# --- bytes ------------------------------------------------------------------------------------------------------------


@inlined
def _past_space(data: Bytes, place: Int) -> Int:
    byte = data[unsigned(place)]
    while byte == 32 or byte == 9 or byte == 13:
        place += 1
        byte = data[unsigned(place)]
    return place


@inlined
def _line_end(data: Bytes, place: Int, stop: Int) -> Int:
    while place < stop:
        differing = _word_at(data, place) ^ _NEWLINES
        found = (differing - _ONES) & ~differing & _HIGHS
        if found != 0:
            return min(place + np.int64(_zeros_below(found) >> _THREE), stop)
        place += 8
    return stop


@inlined
def _head(data: Bytes, first: Int, stop: Int) -> Int:
    """Return the first eight bytes of a text, zeros behind its end."""
    word = _word_at(data, first)
    length = stop - first
    if length >= 8:
        return word
    return word & ((_ONE << unsigned(8 * length)) - _ONE)


@inlined
def _text_end(data: Bytes, place: Int) -> Int:
    """Return where a text ends that goes on here: its closing quote, a backslash, or a byte that no text has."""
    while True:
        word = _word_at(data, place)
        quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
        found = (quotes - _ONES) & ~quotes
        found |= (backslashes - _ONES) & ~backslashes
        found |= (word - _SPACES) & ~word
        found &= _HIGHS
        # A borrow can only mark bytes above one that was found: the lowest is right.
        if found != 0:
            return place + np.int64(_zeros_below(found) >> _THREE)
        place += 8


@inlined
def _digit_of_hex(byte: Int) -> Int:
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    if 65 <= byte <= 70:
        return np.int64(byte) - 55
    if 97 <= byte <= 102:
        return np.int64(byte) - 87
    return np.int64(-1)


@compiled
def _escaped_end(data: Bytes, place: Int) -> Int:
    """Return the closing quote of a text from a backslash on, -1 where it is no text or has half a surrogate pair."""
    while data[unsigned(place)] == 92:
        byte = data[unsigned(place + 1)]
        if byte == 117:
            number = np.int64(0)
            for at in range(place + 2, place + 6):
                digit = _digit_of_hex(data[unsigned(at)])
                if digit < 0:
                    return -1
                number = number * 16 + digit
            if 0xD800 <= number <= 0xDFFF:
                return -1
            place += 6
        elif (
            byte == 34
            or byte == 92
            or byte == 47
            or byte == 98
            or byte == 102
            or byte == 110
            or byte == 114
            or byte == 116
        ):
            place += 2
        else:
            return -1
        place = _text_end(data, place)
    return place if data[unsigned(place)] == 34 else -1


# --- values -----------------------------------------------------------------------------------------------------------


@inlined
def _refusal(place: Int) -> Value:
    return place, _REFUSED, np.int64(0), np.int64(0)


@compiled
def _number(data: Bytes, place: Int) -> Value:
    first = place
    negative = data[unsigned(place)] == 45
    if negative:
        place += 1
    mantissa = np.uint64(0)
    digits = 0  # from the first that is not 0 on
    byte = data[unsigned(place)]
    if byte == 48:
        place += 1
        byte = data[unsigned(place)]
    elif 49 <= byte <= 57:
        while 48 <= byte <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
            digits += 1
            place += 1
            byte = data[unsigned(place)]
    else:
        return _refusal(place)
    if byte != 46 and byte != 101 and byte != 69:
        limit = np.uint64(0x8000000000000000) if negative else np.uint64(0x7FFFFFFFFFFFFFFF)
        if digits > _MOST_DIGITS or mantissa > limit:
            return _refusal(place)
        whole = np.int64(mantissa)
        return place, _INTEGER, -whole if negative else whole, np.int64(0)
    whole_digits, behind = digits, 0
    if byte == 46:
        place += 1
        byte = data[unsigned(place)]
        if byte < 48 or byte > 57:
            return _refusal(place)
        while 48 <= byte <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
            if digits > 0 or byte != 48:
                digits += 1
            behind += 1
            place += 1
            byte = data[unsigned(place)]
    exponent = np.int64(0)
    if byte == 101 or byte == 69:
        place += 1
        byte = data[unsigned(place)]
        less = byte == 45
        if less or byte == 43:
            place += 1
            byte = data[unsigned(place)]
        if byte < 48 or byte > 57:
            return _refusal(place)
        while 48 <= byte <= 57:
            exponent = min(exponent * 10 + np.int64(byte - 48), _FAR)
            place += 1
            byte = data[unsigned(place)]
        if less:
            exponent = -exponent
    if whole_digits + exponent > _LARGEST_EXPONENT:
        return _refusal(place)
    power = exponent - behind
    if digits > _MOST_DIGITS or mantissa > _LARGEST_WHOLE or power < -22 or power > 22:
        return place, _JSON, first, place
    # Both numbers are exact, so the result is rounded once.
    value = np.float64(mantissa)
    value = value * _POWERS[unsigned(power)] if power >= 0 else value / _POWERS[unsigned(-power)]
    return place, _FLOAT, _bits_of(-value if negative else value), np.int64(0)


@compiled
def _scalar(data: Bytes, place: Int) -> Value:
    """Return a value that is neither a list nor a map."""
    byte = data[unsigned(place)]
    if byte == 34:
        first = place + 1
        stop = _text_end(data, first)
        if data[unsigned(stop)] == 34:
            return stop + 1, _TEXT, first, stop
        stop = _escaped_end(data, stop)
        if stop < 0:
            return _refusal(place)
        return stop + 1, _JSON, place, stop + 1
    if byte == 45 or 48 <= byte <= 57:
        return _number(data, place)
    word = _word_at(data, place)
    if word & _FOUR_BYTES == _WORD_TRUE:
        return place + 4, _BOOLEAN, np.int64(1), np.int64(0)
    if word & _FIVE_BYTES == _WORD_FALSE:
        return place + 5, _BOOLEAN, np.int64(0), np.int64(0)
    if word & _FOUR_BYTES == _WORD_NULL:
        return place + 4, _ABSENT, np.int64(0), np.int64(0)
    return _refusal(place)


@inlined
def _key_end(data: Bytes, place: Int) -> Int:
    """Return the closing quote of a key; -1 where there is none, and for keys with escapes or a leading dollar."""
    if data[unsigned(place)] != 34 or data[unsigned(place + 1)] == 36:
        return -1
    stop = _text_end(data, place + 1)
    return stop if data[unsigned(stop)] == 34 else -1


@inlined
def _past_colon(data: Bytes, place: Int) -> Int:
    """Return where the value behind a key's closing quote begins, or -1."""
    place = _past_space(data, place + 1)
    return _past_space(data, place + 1) if data[unsigned(place)] == 58 else -1


@compiled
def _past_key(data: Bytes, place: Int) -> Int:
    """Return where the value behind a key begins, or -1."""
    stop = _key_end(data, place)
    return -1 if stop < 0 else _past_colon(data, stop)


@compiled
def _container_end(data: Bytes, place: Int) -> Int:
    """Return the place behind a list or a map, or -1."""
    depth, maps = 0, np.uint64(0)  # a bit for each level: whether it is a map
    while True:
        byte = data[unsigned(place)]
        if byte == 123 or byte == 91:
            depth += 1
            if depth > _DEEPEST:
                return -1
            maps = (maps << _ONE) | np.uint64(byte == 123)
            place = _past_space(data, place + 1)
            if data[unsigned(place)] != byte + 2:
                if byte == 123:
                    place = _past_key(data, place)
                    if place < 0:
                        return -1
                continue
        else:
            place, kind, _first, _stop = _scalar(data, place)
            if kind == _REFUSED:
                return -1
            place = _past_space(data, place)
        while data[unsigned(place)] != 44:
            if data[unsigned(place)] != (125 if maps & _ONE else 93):
                return -1
            place += 1
            depth -= 1
            maps >>= _ONE
            if depth == 0:
                return place
            place = _past_space(data, place)
        place = _past_space(data, place + 1)
        if maps & _ONE:
            place = _past_key(data, place)
            if place < 0:
                return -1


@inlined
def _value(data: Bytes, place: Int) -> Value:
    byte = data[unsigned(place)]
    if byte == 123 or byte == 91:
        stop = _container_end(data, place)
        if stop < 0:
            return _refusal(place)
        return stop, _JSON, place, stop
    return _scalar(data, place)


@compiled
def _label_list(data: Bytes, place: Int) -> Value:
    """Return a list of distinct texts that are not empty, or null; an empty list is absent."""
    start = place
    if data[unsigned(place)] != 91:
        place, kind, first, stop = _scalar(data, place)
        if kind != _ABSENT:
            return _refusal(place)
        return place, kind, first, stop
    place = _past_space(data, place + 1)
    if data[unsigned(place)] == 93:
        return place + 1, _ABSENT, np.int64(0), np.int64(0)
    count, escapes = 0, 0
    while True:
        if data[unsigned(place)] != 34:
            return _refusal(place)
        place, kind, first, stop = _scalar(data, place)
        if kind == _REFUSED or first == stop:
            return _refusal(place)
        count += 1
        escapes += kind == _JSON
        if count > 1:
            if count > _MOST_LABELS or escapes > 0:
                return _refusal(place)
            # Walk the labels before this one again: lists are short.
            other = _past_space(data, start + 1) + 1
            while other < first:
                end = _text_end(data, other)
                if end - other == stop - first and _same(data, other, data, first, stop - first):
                    return _refusal(place)
                other = _past_space(data, _past_space(data, end + 1) + 1) + 1
        place = _past_space(data, place)
        if data[unsigned(place)] == 93:
            return place + 1, _JSON, start, place + 1
        if data[unsigned(place)] != 44:
            return _refusal(place)
        place = _past_space(data, place + 1)


# --- event times ------------------------------------------------------------------------------------------------------


@inlined
def _two_digits(data: Bytes, place: Int) -> Int:
    """Return the number of two digits, or one that is too large for any part of a time."""
    tens, ones = np.int64(data[unsigned(place)]) - 48, np.int64(data[unsigned(place + 1)]) - 48
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return np.int64(1000)
    return tens * 10 + ones


@compiled
def _instant(data: Bytes, place: Int, stop: Int) -> tuple[bool, Int]:
    """Return whether a text is a time of the common form, and its microseconds."""
    nothing = np.int64(0)
    length = stop - place
    if length < 10 or data[unsigned(place + 4)] != 45 or data[unsigned(place + 7)] != 45:
        return False, nothing
    century, year = _two_digits(data, place), _two_digits(data, place + 2)
    month, day = _two_digits(data, place + 5), _two_digits(data, place + 8)
    if century > 99 or year > 99 or month < 1 or month > 12 or day < 1 or day > 31:
        return False, nothing
    year += century * 100
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2:
        longest = 29 if leap else 28
    else:
        longest = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if year < 1 or day > longest:
        return False, nothing
    # Days from 1970-01-01 on, counted in years that begin in March.
    shifted = year - 1 if month <= 2 else year
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719468
    seconds, micros = days * 86400, nothing
    place += 10
    if place < stop:
        if stop - place < 6 or (data[unsigned(place)] != 84 and data[unsigned(place)] != 32):
            return False, nothing
        hour, minute = _two_digits(data, place + 1), _two_digits(data, place + 4)
        if data[unsigned(place + 3)] != 58 or hour > 23 or minute > 59:
            return False, nothing
        seconds += hour * 3600 + minute * 60
        place += 6
        if place < stop and data[unsigned(place)] == 58:
            second = _two_digits(data, place + 1)
            if second > 59:
                return False, nothing
            seconds += second
            place += 3
            if place < stop and data[unsigned(place)] == 46:
                place += 1
                unit, digits = np.int64(100000), 0
                while 48 <= data[unsigned(place)] <= 57:
                    micros += unit * (np.int64(data[unsigned(place)]) - 48)
                    unit //= 10
                    digits += 1
                    place += 1
                if digits < 1 or digits > 9:
                    return False, nothing
        byte = data[unsigned(place)]
        if place < stop and byte == 90:
            place += 1
        elif place < stop and (byte == 43 or byte == 45):
            if stop - place != 6 or data[unsigned(place + 3)] != 58:
                return False, nothing
            hour, minute = _two_digits(data, place + 1), _two_digits(data, place + 4)
            if minute > 59 or hour * 60 + minute > 18 * 60:
                return False, nothing
            offset = hour * 3600 + minute * 60
            seconds += offset if byte == 45 else -offset
            place += 6
    return place == stop, seconds * 1000000 + micros


@inlined
def _time(data: Bytes, place: Int) -> tuple[Int, Int]:
    """Return the place behind an event time, -1 where it is none or of a rare form, and the time."""
    place, kind, first, stop = _scalar(data, place)
    if kind == _INTEGER:
        if -_FARTHEST_MILLIS <= first <= _FARTHEST_MILLIS:
            return place, first * 1000
    elif kind == _TEXT:
        common, micros = _instant(data, first, stop)
        if common:
            return place, micros
    return np.int64(-1), np.int64(0)


# --- elements ---------------------------------------------------------------------------------------------------------


@inlined
def _put(rows: ElementRows, column: Int, row: Int, kind: Int, first: Int, stop: Int) -> None:
    at, place = unsigned(column), unsigned(row)
    rows.kinds[at, place] = kind
    rows.firsts[at, place] = first
    rows.stops[at, place] = stop


@inlined
def _key_number(data: Bytes, first: Int, stop: Int, asked: AskedKeys) -> Int:
    """Return the number of an asked key, or -1."""
    head = _head(data, first, stop)
    for number in range(asked.heads.size):
        if asked.heads[number] == head:
            other, length = asked.starts[number], stop - first
            if asked.stops[number] - other == length and _same(data, first, asked.data, other, length):
                return number
    return -1


@inlined
def _properties(data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, row: Int, column: Int) -> Int:
    """Return the place behind a map of properties, or -1; the asked ones are put into columns from `column` on."""
    if data[unsigned(place)] != 123:
        place, kind, _first, _stop = _scalar(data, place)
        return place if kind == _ABSENT else -1
    place = _past_space(data, place + 1)
    if data[unsigned(place)] == 125:
        return place + 1
    while True:
        first = place + 1
        stop = _key_end(data, place)
        if stop < 0:
            return -1
        place = _past_colon(data, stop)
        if place < 0:
            return -1
        number = _key_number(data, first, stop, asked)
        place, kind, first, stop = _value(data, place)
        if kind == _REFUSED:
            return -1
        if number >= 0:
            if asked.seen[unsigned(number)] == row:
                return -1
            asked.seen[unsigned(number)] = row
            _put(rows, column + number, row, kind, first, stop)
        place = _past_space(data, place)
        if data[unsigned(place)] == 125:
            return place + 1
        if data[unsigned(place)] != 44:
            return -1
        place = _past_space(data, place + 1)


@inlined
def _field(head: Int, length: Int, tail: Int, is_node: bool) -> Int:
    """Return which field a name means: 0 for a name that means none, -1 for one that the exact reader looks at."""
    if head == _NAME_ID:
        return _ID
    if head == _NAME_PROPERTI and length == 10 and tail == _NAME_ES:
        return _PROPERTIES
    if is_node:
        if head == _NAME_LABELS:
            return _LABELS
        return -1 if head == _NAME_LABEL else 0
    if head == _NAME_TYPE:
        return _TYPE
    if head in (_NAME_FROM, _NAME_START, _NAME_SOURCE):
        return _SOURCE
    if head in (_NAME_TO, _NAME_END, _NAME_TARGET):
        return _TARGET
    return 0


@inlined
def _element(data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, row: Int, is_node: bool) -> Int:
    """Return the place behind an element, or -1; its values are put into the columns."""
    fields = NODE_FIELDS if is_node else RELATIONSHIP_FIELDS
    if data[unsigned(place)] != 123:
        return -1
    for column in range(rows.kinds.shape[0]):
        _put(rows, column, row, _ABSENT, 0, 0)
    place = _past_space(data, place + 1)
    seen = 0
    while True:
        first = place + 1
        stop = _key_end(data, place)
        if stop < 0:
            return -1
        place = _past_colon(data, stop)
        if place < 0:
            return -1
        length = stop - first
        tail = _head(data, first + 8, stop) if length > 8 else np.uint64(0)
        field = _field(_head(data, first, stop), length, tail, is_node)
        if field < 0 or field & seen:
            return -1
        seen |= field
        if field == _PROPERTIES:
            place = _properties(data, place, asked, rows, row, fields)
            if place < 0:
                return -1
        elif field == _LABELS:
            place, kind, first, stop = _label_list(data, place)
            if kind == _REFUSED:
                return -1
            _put(rows, 1, row, kind, first, stop)
        else:
            place, kind, first, stop = _value(data, place)
            if kind == _REFUSED:
                return -1
            if field != 0:
                text = kind == _TEXT or (kind == _JSON and data[unsigned(first)] == 34)
                if field == _TYPE:
                    if not text or first == stop:
                        return -1
                    _put(rows, 1, row, kind, first, stop)
                else:
                    if not text and kind != _INTEGER and (kind != _ABSENT or is_node or field != _ID):
                        return -1
                    column = 0 if field == _ID else 2 if field == _SOURCE else 3
                    _put(rows, column, row, kind, first, stop)
        place = _past_space(data, place)
        if data[unsigned(place)] == 125:
            break
        if data[unsigned(place)] != 44:
            return -1
        place = _past_space(data, place + 1)
    wanted = _ID if is_node else _TYPE | _SOURCE | _TARGET
    return place + 1 if seen & wanted == wanted else -1


@inlined
def _is_named_before(data: Bytes, rows: ElementRows, start: Int, row: Int) -> bool:
    """Whether an element from `start` on may have the id of this row."""
    kind = rows.kinds[0, unsigned(row)]
    if kind == _ABSENT:
        return False
    first, length = rows.firsts[0, unsigned(row)], rows.stops[0, unsigned(row)] - rows.firsts[0, unsigned(row)]
    for other in range(start, row):
        if rows.kinds[0, unsigned(other)] == _ABSENT:
            continue
        if kind == _JSON or rows.kinds[0, unsigned(other)] == _JSON:
            return True  # the same text may be written in many ways
        if kind != rows.kinds[0, unsigned(other)]:
            continue
        place = rows.firsts[0, unsigned(other)]
        if kind == _INTEGER:
            if place == first:
                return True
        elif rows.stops[0, unsigned(other)] - place == length and _same(data, place, data, first, length):
            return True
    return False


@compiled
def _elements(
    data: Bytes, place: Int, asked: AskedKeys, rows: ElementRows, start: Int, is_node: bool
) -> tuple[Int, Int]:
    """Return the place behind a list of elements, or -1, and their number; their rows begin at `start`."""
    count = np.int64(0)
    for number in range(asked.seen.size):
        asked.seen[number] = -1
    if data[unsigned(place)] != 91:
        place, kind, _first, _stop = _scalar(data, place)
        return (place if kind == _ABSENT else np.int64(-1)), count
    place = _past_space(data, place + 1)
    if data[unsigned(place)] == 93:
        return place + 1, count
    while count < _MOST_ELEMENTS:
        place = _element(data, place, asked, rows, start + count, is_node)
        if place < 0 or _is_named_before(data, rows, start, start + count):
            break
        count += 1
        place = _past_space(data, place)
        if data[unsigned(place)] == 93:
            return place + 1, count
        if data[unsigned(place)] != 44:
            break
        place = _past_space(data, place + 1)
    return np.int64(-1), count


# --- lines ------------------------------------------------------------------------------------------------------------


@kernel
def lines_end(data: Bytes, place: Int, end: Int, count: Int) -> Int:
    """Return the place behind this many lines, or the end."""
    for _ in range(count):
        if place >= end:
            return end
        place = _line_end(data, place, end) + 1
    return min(place, end)


@kernel
def scan(
    data: Bytes,
    start: Int,
    end: Int,
    asked: AskedKeys,
    lines: LineRows,
    nodes: ElementRows,
    relationships: ElementRows,
    totals: Ids,
) -> None:
    """Fill the rows of the lines between two places, with the elements of those that are regular. Behind `end` there is
    a line end or zeros, and there are rows for all lines and for as many elements as there are opening braces."""
    line = np.int64(0)
    node_count, relationship_count = np.int64(0), np.int64(0)
    place = start
    while place < end:
        first = place
        status, time = EXACT, np.int64(0)
        own_nodes, own_relationships = np.int64(0), np.int64(0)
        if lines.statuses[unsigned(line)] != EXACT:
            place = _past_space(data, place)
            byte = data[unsigned(place)]
            if byte == 123:
                seen = 0
                place = _past_space(data, place + 1)
                while True:
                    name = place + 1
                    stop = _key_end(data, place)
                    if stop < 0:
                        break
                    place = _past_colon(data, stop)
                    if place < 0:
                        break
                    head, length = _head(data, name, stop), stop - name
                    if head == _NAME_AT:
                        field = _AT
                    elif head == _NAME_NODES:
                        field = _NODES
                    elif head == _NAME_EDGES or (
                        length == 13 and head == _NAME_RELATION and _head(data, name + 8, stop) == _NAME_SHIPS
                    ):
                        field = _RELATIONSHIPS
                    else:
                        break
                    if seen & field:
                        break
                    seen |= field
                    if field == _AT:
                        place, time = _time(data, place)
                    elif field == _NODES:
                        place, own_nodes = _elements(data, place, asked, nodes, node_count, True)
                    else:
                        place, own_relationships = _elements(
                            data, place, asked, relationships, relationship_count, False
                        )
                    if place < 0:
                        break
                    place = _past_space(data, place)
                    if data[unsigned(place)] == 125:
                        place = _past_space(data, place + 1)
                        if seen & _AT and (place == end or data[unsigned(place)] == 10):
                            status = REGULAR
                        break
                    if data[unsigned(place)] != 44:
                        break
                    place = _past_space(data, place + 1)
            elif byte == 35:
                status = BLANK
            else:
                while byte == 32 or byte == 9 or byte == 13 or byte == 11 or byte == 12:
                    place += 1
                    byte = data[unsigned(place)]
                if place >= end or byte == 10:
                    status = BLANK
        place = place if status == REGULAR else _line_end(data, first, end)
        row = unsigned(line)
        lines.starts[row], lines.stops[row], lines.statuses[row] = first, place, status
        if status == REGULAR:
            lines.times[row] = time
            lines.nodes[row], lines.relationships[row] = own_nodes, own_relationships
            node_count += own_nodes
            relationship_count += own_relationships
        line += 1
        place += 1
    totals[LINES], totals[NODES], totals[RELATIONSHIPS] = line, node_count, relationship_count
