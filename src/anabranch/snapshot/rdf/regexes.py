"""Regular expressions of XPath, for Python's `re`.

Features that XPath lacks (look-around, inline flags, named groups, possessive quantifiers) are refused, so that a
pattern means the same here as elsewhere. Taken from other engines: `\\b` and `\\B`; `\\w` and `\\s` are those of
Unicode's words and white space.

Invariant: a pattern is translated once, and an invalid one has no matches and raises no error: its result is null.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

_FLAGS = frozenset("smixq")
_QUANTITY = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_SPACE = " \t\r\n"

Ranges = tuple[tuple[int, int], ...]

_NAME_START: Ranges = (
    *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF)),
    *((0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF)),
    *((0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
)
_NAME: Ranges = tuple(
    sorted((*_NAME_START, (0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040)))
)
_BLOCKS: dict[str, Ranges] = {
    "IsBasicLatin": ((0x0, 0x7F),),
    "IsLatin-1Supplement": ((0x80, 0xFF),),
    "IsLatinExtended-A": ((0x100, 0x17F),),
    "IsLatinExtended-B": ((0x180, 0x24F),),
    "IsIPAExtensions": ((0x250, 0x2AF),),
    "IsCombiningDiacriticalMarks": ((0x300, 0x36F),),
    "IsGreek": ((0x370, 0x3FF),),
    "IsGreekandCoptic": ((0x370, 0x3FF),),
    "IsCyrillic": ((0x400, 0x4FF),),
    "IsArmenian": ((0x530, 0x58F),),
    "IsHebrew": ((0x590, 0x5FF),),
    "IsArabic": ((0x600, 0x6FF),),
    "IsDevanagari": ((0x900, 0x97F),),
    "IsThai": ((0xE00, 0xE7F),),
    "IsLatinExtendedAdditional": ((0x1E00, 0x1EFF),),
    "IsGreekExtended": ((0x1F00, 0x1FFF),),
    "IsGeneralPunctuation": ((0x2000, 0x206F),),
    "IsCurrencySymbols": ((0x20A0, 0x20CF),),
    "IsMathematicalOperators": ((0x2200, 0x22FF),),
    "IsHiragana": ((0x3040, 0x309F),),
    "IsKatakana": ((0x30A0, 0x30FF),),
    "IsCJKUnifiedIdeographs": ((0x4E00, 0x9FFF),),
    "IsHangulSyllables": ((0xAC00, 0xD7AF),),
}


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str) -> re.Pattern[str] | None:
    """The pattern as Python has it; nothing when the pattern or a flag is not XPath's."""
    if not _FLAGS.issuperset(flags):
        return None
    options = re.IGNORECASE if "i" in flags else re.NOFLAG
    try:
        if "q" in flags:
            return re.compile(re.escape(pattern), options)
        if "s" in flags:
            options |= re.DOTALL
        if "m" in flags:
            options |= re.MULTILINE
        return re.compile(_Translator(pattern, "m" in flags, "x" in flags).translated(), options)
    except (re.error, OverflowError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def template(replacement: str, groups: int) -> tuple[str | int, ...] | None:
    """A replacement as text and numbers of groups; nothing when `$` or a backslash stands where it may not."""
    parts: list[str | int] = []
    place = 0
    while place < len(replacement):
        char = replacement[place]
        following = replacement[place + 1 : place + 2]
        if char == "\\":
            if following not in ("\\", "$"):
                return None
            parts.append(following)
            place += 2
        elif char == "$":
            if not _is_digit(following):
                return None
            end = place + 2
            while _is_digit(replacement[end : end + 1]) and int(replacement[place + 1 : end + 1]) <= groups:
                end += 1
            number = int(replacement[place + 1 : end])
            parts.append(number if number <= groups else "")
            place = end
        else:
            parts.append(char)
            place += 1
    return tuple(parts)


class _Translator:
    """Translates the pattern in one pass, token by token."""

    def __init__(self, pattern: str, multiline: bool, spaced: bool) -> None:
        self._pattern = pattern
        self._place = 0
        self._end = "$" if multiline else r"\Z"  # Python's own $ also stands before a newline at the end
        self._spaced = spaced
        self._opened: list[int] = []  # numbers of the groups that are open, 0 for one that captures nothing
        self._groups = 0
        self._closed: set[int] = set()

    def translated(self) -> str:
        parts: list[str] = []
        while self._place < len(self._pattern):
            char = self._pattern[self._place]
            self._place += 1
            if self._spaced and char in _SPACE:
                continue
            parts.append(self._token(char))
        return "".join(parts)

    def _token(self, char: str) -> str:
        match char:
            case "(":
                return self._open()
            case ")":
                number = self._opened.pop() if self._opened else 0
                self._closed.add(number)
                return ")"
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "$":
                return self._end
            case "." | "^" | "|":
                return char
            case "*" | "+" | "?":
                return char + self._lazy()
            case "{":
                quantity = _QUANTITY.match(self._pattern, self._place - 1)
                if quantity is None:
                    raise re.error("a { that begins no quantity")
                self._place = quantity.end()
                return quantity[0] + self._lazy()
        return re.escape(char)

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._place : self._place + length]

    def _skip_space(self) -> None:
        while self._spaced and self._peek() and self._peek() in _SPACE:
            self._place += 1

    def _open(self) -> str:
        if self._peek() == "?":
            if self._peek(2) != "?:":
                raise re.error("XPath has no such group")
            self._place += 2
            self._opened.append(0)
            return "(?:"
        self._groups += 1
        self._opened.append(self._groups)
        return "("

    def _lazy(self) -> str:
        self._skip_space()
        lazy = ""
        if self._peek() == "?":
            self._place += 1
            lazy = "?"
            self._skip_space()
        if self._peek() in ("*", "+", "?", "{"):
            raise re.error("a quantifier of a quantifier")
        return lazy

    def _escape(self) -> str:
        char = self._peek()
        if _is_digit(char):
            return self._back_reference()
        if char and char in "bB":
            self._place += 1
            return f"\\{char}"
        return f"[{self._class_escape()}]"

    def _back_reference(self) -> str:
        end = self._place + 1
        while _is_digit(self._pattern[end : end + 1]) and int(self._pattern[self._place : end + 1]) <= self._groups:
            end += 1
        number = int(self._pattern[self._place : end])
        if number not in self._closed or number == 0:
            raise re.error("a reference to a group that is not closed")
        self._place = end
        return rf"(?:\{number})"

    def _class_escape(self) -> str:
        """Translate an escape that is allowed inside and outside of a class; returns its form inside of one."""
        char = self._peek()
        self._place += 1
        if char and char in "nrtsSdDwW":
            return f"\\{char}"
        match char:
            case "i" | "I":
                return _class_text(_NAME_START if char == "i" else _others(_NAME_START))
            case "c" | "C":
                return _class_text(_NAME if char == "c" else _others(_NAME))
            case "p" | "P":
                ranges = _property(self._property_name())
                return _class_text(ranges if char == "p" else _others(ranges))
        if not char or char.isalnum():
            raise re.error("XPath has no such escape")
        return _escaped(char)

    def _property_name(self) -> str:
        end = self._pattern.find("}", self._place)
        if self._peek() != "{" or end < 0:
            raise re.error("a property is written in braces")
        name = self._pattern[self._place + 1 : end]
        self._place = end + 1
        return name

    def _class(self) -> str:
        """Translate a class, after its bracket; a subtraction becomes a look-ahead."""
        negated = self._peek() == "^"
        self._place += negated
        items: list[str] = []
        without = ""
        while True:
            char = self._peek()
            if not char:
                raise re.error("a class that does not end")
            self._place += 1
            if char == "]":
                break
            if char == "-" and self._peek() == "[" and items:
                self._place += 1
                without = self._class()
                if self._peek() != "]":
                    raise re.error("a subtraction must come last")
                continue
            if char == "[":
                raise re.error("a bracket in a class is written with a backslash")
            items.append(self._class_item(char))
        if not items:
            raise re.error("an empty class")
        text = f"[{'^' if negated else ''}{''.join(items)}]"
        return f"(?:(?!{without}){text})" if without else text

    def _class_item(self, char: str) -> str:
        first = self._class_escape() if char == "\\" else _escaped(char)
        if self._peek() != "-" or self._peek(2) in ("-]", "-["):
            return first
        self._place += 1
        last = self._peek()
        if not last:
            raise re.error("a class that does not end")
        self._place += 1
        end = self._class_escape() if last == "\\" else _escaped(last)
        return f"{first}-{end}"  # a range that makes no sense is refused when Python reads it


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _escaped(char: str) -> str:
    return char if char.isalnum() or not char.isascii() else f"\\x{ord(char):02x}"


def _class_text(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def _others(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= sys.maxunicode:
        found.append((start, sys.maxunicode))
    return tuple(found)


def _property(name: str) -> Ranges:
    if name in _BLOCKS:
        return _BLOCKS[name]
    if name in _categories() or any(category[0] == name for category in _categories()):
        return _merged(name)
    raise re.error("no such property")


@lru_cache(maxsize=64)
def _merged(name: str) -> Ranges:
    chosen = sorted(one for category, ranges in _categories().items() if category.startswith(name) for one in ranges)
    found: list[tuple[int, int]] = []
    for low, high in chosen:
        if found and found[-1][1] == low - 1:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    """Return the code points of each of Unicode's general categories; takes a third of a second, so only on demand."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for point in range(1, sys.maxunicode + 1):
        category = unicodedata.category(chr(point))
        if category != current:
            found.setdefault(current, []).append((start, point - 1))
            start, current = point, category
    found.setdefault(current, []).append((start, sys.maxunicode))
    return found
