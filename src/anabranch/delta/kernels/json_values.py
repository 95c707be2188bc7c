"""JSON in bytes: values of property graphs, checked byte for byte, without an object for each.

Texts end at a quote, at a backslash or at a byte below 32. So no walk passes the end of its line, nor the zeros behind
the last line, which are no part of JSON. A value that the exact reader treats specially or refuses is refused here:
typed values, numbers that do not fit, half surrogate pairs, deep nesting, times in rare forms.

Invariant: a value that is not refused is one that the exact reader accepts, and is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numba import types
from numba.extending import intrinsic

from anabranch.delta.kernels.compiling import Int, compiled, inlined, unsigned
from anabranch.delta.kernels.texts import _same, word_at
from anabranch.model.graph_block import Bytes, ValueKind

JsonValue: TypeAlias = tuple[Int, Int, Int, Int]
"""The place behind a value, its kind, and its two numbers."""

ABSENT, TEXT, INTEGER, _FLOAT = (
    int(one) for one in (ValueKind.ABSENT, ValueKind.TEXT, ValueKind.INTEGER, ValueKind.FLOAT)
)
_BOOLEAN, JSON = int(ValueKind.BOOLEAN), int(ValueKind.JSON)
PROPERTIES = int(ValueKind.PROPERTIES)
REFUSED = 255  # a kind

_DEEPEST = 20
_MOST_LABELS = 16
_FARTHEST_MILLIS = 2**63 // 1000 - 1
_POWERS = np.array([10.0**power for power in range(23)])
_LARGEST_WHOLE = np.uint64(1 << 53)  # floats hold every smaller whole number
_MOST_DIGITS = 19  # that surely fit into 64 bits without a sign
_LARGEST_EXPONENT = 290  # no number with an exponent up to here is infinite
_FAR = 1 << 40  # an exponent as good as any larger one


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


def word_of(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(name.encode()[:8].ljust(8, b"\0"), "little"))


_WORD_TRUE, _WORD_FALSE, _WORD_NULL = (word_of(one) for one in ("true", "false", "null"))
_FOUR_BYTES, _FIVE_BYTES = np.uint64((1 << 32) - 1), np.uint64((1 << 40) - 1)

_ONE = np.uint64(1)
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES, _NEWLINES = np.uint64(0x2020202020202020), np.uint64(0x0A0A0A0A0A0A0A0A)
_THREE = np.uint64(3)


# --- bytes ------------------------------------------------------------------------------------------------------------


@inlined
def past_space(data: Bytes, place: Int) -> Int:
    byte = data[unsigned(place)]
    while byte == 32 or byte == 9 or byte == 13:
        place += 1
        byte = data[unsigned(place)]
    return place


@inlined
def line_end(data: Bytes, place: Int, stop: Int) -> Int:
    while place < stop:
        differing = word_at(data, place) ^ _NEWLINES
        found = (differing - _ONES) & ~differing & _HIGHS
        if found != 0:
            return min(place + np.int64(_zeros_below(found) >> _THREE), stop)
        place += 8
    return stop


@inlined
def first_word(data: Bytes, first: Int, stop: Int) -> Int:
    """Return the first eight bytes of a text, zeros behind its end."""
    word = word_at(data, first)
    length = stop - first
    if length >= 8:
        return word
    return word & ((_ONE << unsigned(8 * length)) - _ONE)


@inlined
def text_end(data: Bytes, place: Int) -> Int:
    """Return where a text ends that goes on here: its closing quote, a backslash, or a byte that no text has."""
    while True:
        word = word_at(data, place)
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


@inlined
def _code(data: Bytes, place: Int) -> Int:
    """Return the number of an escape with four digits, which begins at a backslash, or -1."""
    if data[unsigned(place)] != 92 or data[unsigned(place + 1)] != 117:
        return np.int64(-1)
    number = np.int64(0)
    for at in range(place + 2, place + 6):
        digit = _digit_of_hex(data[unsigned(at)])
        if digit < 0:
            return np.int64(-1)
        number = number * 16 + digit
    return number


@compiled
def _escaped_end(data: Bytes, place: Int) -> Int:
    """Return the closing quote of a text from a backslash on, -1 where it is no text or has half a surrogate pair."""
    while data[unsigned(place)] == 92:
        byte = data[unsigned(place + 1)]
        if byte == 117:
            number = _code(data, place)
            if number < 0 or 0xDC00 <= number <= 0xDFFF:
                return -1
            place += 6
            if 0xD800 <= number <= 0xDBFF:
                number = _code(data, place)
                if number < 0xDC00 or number > 0xDFFF:
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
        place = text_end(data, place)
    return place if data[unsigned(place)] == 34 else -1


@inlined
def _character(data: Bytes, place: Int) -> tuple[Int, Int]:
    """Return the character of a text that was checked, and the place behind it; -1 for its closing quote."""
    byte = np.int64(data[unsigned(place)])
    if byte == 34:
        return np.int64(-1), place
    if byte == 92:
        byte = np.int64(data[unsigned(place + 1)])
        if byte == 117:
            number = _code(data, place)
            if 0xD800 <= number <= 0xDBFF:
                return ((number - 0xD800) << 10) + _code(data, place + 6) - 0xDC00 + 0x10000, place + 12
            return number, place + 6
        if byte == 98:
            byte = np.int64(8)
        elif byte == 102:
            byte = np.int64(12)
        elif byte == 110:
            byte = np.int64(10)
        elif byte == 114:
            byte = np.int64(13)
        elif byte == 116:
            byte = np.int64(9)
        return byte, place + 2
    if byte < 0x80:
        return byte, place + 1
    more = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    number = byte & (0x3F >> more)
    for at in range(place + 1, place + 1 + more):
        number = number << 6 | np.int64(data[unsigned(at)]) & 0x3F
    return number, place + 1 + more


@compiled
def same_text(data: Bytes, one: Int, others: Bytes, other: Int) -> bool:
    """Whether two texts that begin here are the same, however they are written."""
    while True:
        left, one = _character(data, one)
        right, other = _character(others, other)
        if left != right or left < 0:
            return bool(left == right)


# --- values -----------------------------------------------------------------------------------------------------------


@inlined
def _refusal(place: Int) -> JsonValue:
    return place, REFUSED, np.int64(0), np.int64(0)


@compiled
def _number(data: Bytes, place: Int) -> JsonValue:
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
        return place, INTEGER, -whole if negative else whole, np.int64(0)
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
            exponent = min(exponent * 10 + np.int64(byte - 48), np.int64(_FAR))
            place += 1
            byte = data[unsigned(place)]
        if less:
            exponent = -exponent
    if whole_digits + exponent > _LARGEST_EXPONENT:
        return _refusal(place)
    power = exponent - behind
    if digits > _MOST_DIGITS or mantissa > _LARGEST_WHOLE or power < -22 or power > 22:
        return place, JSON, first, place
    # Both numbers are exact, so the result is rounded once.
    value = np.float64(mantissa)
    value = value * _POWERS[unsigned(power)] if power >= 0 else value / _POWERS[unsigned(-power)]
    return place, _FLOAT, _bits_of(-value if negative else value), np.int64(0)


@compiled
def scalar(data: Bytes, place: Int) -> JsonValue:
    """Return a value that is neither a list nor a map."""
    byte = data[unsigned(place)]
    if byte == 34:
        first = place + 1
        stop = text_end(data, first)
        if data[unsigned(stop)] == 34:
            return stop + 1, TEXT, first, stop
        stop = _escaped_end(data, stop)
        if stop < 0:
            return _refusal(place)
        return stop + 1, JSON, place, stop + 1
    if byte == 45 or 48 <= byte <= 57:
        return _number(data, place)
    word = word_at(data, place)
    if word & _FOUR_BYTES == _WORD_TRUE:
        return place + 4, _BOOLEAN, np.int64(1), np.int64(0)
    if word & _FIVE_BYTES == _WORD_FALSE:
        return place + 5, _BOOLEAN, np.int64(0), np.int64(0)
    if word & _FOUR_BYTES == _WORD_NULL:
        return place + 4, ABSENT, np.int64(0), np.int64(0)
    return _refusal(place)


@inlined
def key_end(data: Bytes, place: Int) -> Int:
    """Return the closing quote of a key; -1 where there is none, and for keys with escapes or a leading dollar."""
    if data[unsigned(place)] != 34 or data[unsigned(place + 1)] == 36:
        return -1
    stop = text_end(data, place + 1)
    return stop if data[unsigned(stop)] == 34 else -1


@inlined
def past_colon(data: Bytes, place: Int) -> Int:
    """Return where the value behind a key's closing quote begins, or -1."""
    place = past_space(data, place + 1)
    return past_space(data, place + 1) if data[unsigned(place)] == 58 else -1


@inlined
def any_key_end(data: Bytes, place: Int) -> Int:
    """Return the same for a key that may have escapes."""
    if data[unsigned(place)] != 34:
        return -1
    stop = text_end(data, place + 1)
    if data[unsigned(stop)] != 34:
        stop = _escaped_end(data, stop)
        if stop < 0:
            return -1
    character, _next = _character(data, place + 1)
    return -1 if character == 36 else stop


@compiled
def _past_key(data: Bytes, place: Int) -> Int:
    """Return where the value behind a key of a map begins, or -1."""
    stop = any_key_end(data, place)
    return -1 if stop < 0 else past_colon(data, stop)


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
            place = past_space(data, place + 1)
            if data[unsigned(place)] != byte + 2:
                if byte == 123:
                    place = _past_key(data, place)
                    if place < 0:
                        return -1
                continue
        else:
            place, kind, _first, _stop = scalar(data, place)
            if kind == REFUSED:
                return -1
            place = past_space(data, place)
        while data[unsigned(place)] != 44:
            if data[unsigned(place)] != (125 if maps & _ONE else 93):
                return -1
            place += 1
            depth -= 1
            maps >>= _ONE
            if depth == 0:
                return place
            place = past_space(data, place)
        place = past_space(data, place + 1)
        if maps & _ONE:
            place = _past_key(data, place)
            if place < 0:
                return -1


@inlined
def any_value(data: Bytes, place: Int) -> JsonValue:
    byte = data[unsigned(place)]
    if byte == 123 or byte == 91:
        stop = _container_end(data, place)
        if stop < 0:
            return _refusal(place)
        return stop, JSON, place, stop
    return scalar(data, place)


@compiled
def label_list(data: Bytes, place: Int) -> JsonValue:
    """Return a list of distinct texts that are not empty, or null; an empty list is absent."""
    start = place
    if data[unsigned(place)] != 91:
        place, kind, first, stop = scalar(data, place)
        if kind != ABSENT:
            return _refusal(place)
        return place, kind, first, stop
    place = past_space(data, place + 1)
    if data[unsigned(place)] == 93:
        return place + 1, ABSENT, np.int64(0), np.int64(0)
    count, escapes = 0, 0
    while True:
        if data[unsigned(place)] != 34:
            return _refusal(place)
        place, kind, first, stop = scalar(data, place)
        if kind == REFUSED or first == stop:
            return _refusal(place)
        count += 1
        escapes += kind == JSON
        if count > 1:
            if count > _MOST_LABELS or escapes > 0:
                return _refusal(place)
            # Walk the labels before this one again: lists are short.
            other = past_space(data, start + 1) + 1
            while other < first:
                end = text_end(data, other)
                if end - other == stop - first and _same(data, other, data, first, stop - first):
                    return _refusal(place)
                other = past_space(data, past_space(data, end + 1) + 1) + 1
        place = past_space(data, place)
        if data[unsigned(place)] == 93:
            return place + 1, JSON, start, place + 1
        if data[unsigned(place)] != 44:
            return _refusal(place)
        place = past_space(data, place + 1)


# --- event times ------------------------------------------------------------------------------------------------------


@inlined
def _two_digits(data: Bytes, place: Int) -> Int:
    """Return the number of two digits, or one that is too large for any part of a time."""
    tens, ones = np.int64(data[unsigned(place)]) - 48, np.int64(data[unsigned(place + 1)]) - 48
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return np.int64(1000)
    return tens * 10 + ones


@compiled
def instant(data: Bytes, place: Int, stop: Int) -> tuple[bool, Int]:
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
def event_time(data: Bytes, place: Int) -> tuple[Int, Int]:
    """Return the place behind an event time, -1 where it is none or of a rare form, and the time."""
    place, kind, first, stop = scalar(data, place)
    if kind == INTEGER:
        if -_FARTHEST_MILLIS <= first <= _FARTHEST_MILLIS:
            return place, first * 1000
    elif kind == TEXT:
        common, micros = instant(data, first, stop)
        if common:
            return place, micros
    return np.int64(-1), np.int64(0)
