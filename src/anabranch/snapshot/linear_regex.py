"""Python's regular expressions in time that is linear in the text, by RE2.

RE2 has other letters, words and cases than Python. Therefore it never sees the text or a class of characters: Python
decides for every character which places of the pattern it fits, and characters that fit the same places become one
symbol. RE2 reads the text as symbols and the pattern as classes of symbols. Letters of words become letters of RE2's
words, for `\\b`; the line ends that `^` or `$` look for stay line ends.

Law: the answer is that of Python's `re`. References back, look-around, possessive repetitions and patterns too large
for RE2 have none. Work: O(text) for a pattern; a new set of symbols is compiled once.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as kinds
from typing import Any

_WORD = string.ascii_letters + string.digits + "_"
_OTHERS = 0x100  # the first of the symbols that are no letters of a word
_PLACES = 0xF0000  # stands for the first place of a pattern until its symbols are known
_MOST_REPEATS = 1000  # of a repetition in RE2, with those inside of it
_LONGEST = 1 << 17  # of a pattern that is written down
_MOST_SYMBOLS = 1 << 14
_MEMORY = 8 << 20  # of one machine
_CAUTIOUS_MEMORY = _MEMORY >> 4  # a pattern that fits in here fits in _MEMORY, whatever its symbols are
_ALPHABETS = re.ASCII | re.UNICODE
_OF_CHARACTERS = re.IGNORECASE | re.DOTALL | _ALPHABETS
_CHARACTERS = (kinds.LITERAL, kinds.NOT_LITERAL, kinds.ANY, kinds.IN)
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT)


class NotLinear(Exception):
    """A pattern that RE2 cannot be asked."""


def fits_linearly(pattern: re.Pattern[str], text: str, whole: bool) -> bool:
    """Whether the pattern fits the whole text, or some part of it. Raises NotLinear."""
    spelling = _spelling(pattern.pattern, pattern.flags)
    if spelling.word is not None and not text:  # Pythons differ in whether an empty text is no boundary
        raise NotLinear
    found = {char: spelling.places_of(char) for char in set(text)}
    symbols, machine = _compiled(spelling, frozenset(found.values()), _MEMORY)
    table = {ord(char): symbols[places] for char, places in found.items()}
    last = ""
    if spelling.every_line:
        table[ord("\n")] = "\n"
    elif text.endswith("\n"):
        text, last = text[:-1], "\n"
    coded = text.translate(table) + last
    return (machine.fullmatch(coded) if whole else machine.search(coded)) is not None


def refuse_unknown(pattern: re.Pattern[str]) -> None:
    """Raise NotLinear if there may be a text for which RE2 cannot be asked."""
    spelling = _spelling(pattern.pattern, pattern.flags)
    _compiled(spelling, frozenset({(True,) * len(spelling.tests)}), _CAUTIOUS_MEMORY)
    if spelling.word is not None and spelling.most_symbols > len(_WORD):
        raise NotLinear


@dataclass(frozen=True, eq=False, slots=True)
class _Spelling:
    """A pattern as RE2 has it, with numbers for the tests of one character each."""

    text: str
    tests: tuple[re.Pattern[str], ...]
    most_symbols: int
    word: int | None
    every_line: bool

    def places_of(self, char: str) -> tuple[bool, ...]:
        return tuple(test.match(char) is not None for test in self.tests)


@lru_cache(maxsize=128)
def _compiled(
    spelling: _Spelling, found: frozenset[tuple[bool, ...]], memory: int
) -> tuple[dict[tuple[bool, ...], str], Any]:
    """The symbols of characters that fit the same places, and the machine that reads them."""
    import re2

    symbols: dict[tuple[bool, ...], str] = {}
    words = iter(_WORD)
    for number, places in enumerate(sorted(found)):
        is_word = spelling.word is not None and places[spelling.word]
        symbols[places] = next(words, "") if is_word else chr(_OTHERS + number)
    if "" in symbols.values() or len(symbols) > _MOST_SYMBOLS:
        raise NotLinear
    meant = [*symbols.items(), (spelling.places_of("\n"), r"\n")]
    classes = {}
    for place in range(len(spelling.tests)):
        fitting = "".join(symbol for places, symbol in meant if places[place])
        classes[_PLACES + place] = f"[{fitting}]" if fitting else r"[^\x00-\x{10FFFF}]"
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, memory
    try:
        return symbols, re2.compile(spelling.text.translate(classes), options)
    except re2.error:
        raise NotLinear from None


@lru_cache(maxsize=256)
def _spelling(pattern: str, flags: int) -> _Spelling:
    speller = _Speller()
    text, _ = speller.sequence(_parser.parse(pattern, flags), flags)
    if len(speller.lines) > 1 or len(speller.words) > 1:
        raise NotLinear
    # A literal is one character, or the few cases of one; each other test may halve all the rest.
    cases = [4 if flags & re.IGNORECASE else 1 for kind, _, flags in speller.tests if kind is kinds.LITERAL]
    most_symbols = sum(cases) + 2 ** (len(speller.tests) - len(cases))
    tests = tuple(_test(kind, given, flags) for (kind, _, flags), (_, given) in speller.tests.items())
    return _Spelling(text, tests, most_symbols, next(iter(speller.words), None), "every" in speller.lines)


def _test(kind: Any, given: Any, flags: int) -> re.Pattern[str]:
    found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(_parser.State(), [(kind, given)]), flags)
    return found


class _Speller:
    """Writes a parsed pattern down for RE2; a part comes with how often it repeats what is inside of it."""

    def __init__(self) -> None:
        self.tests: dict[tuple[Any, str, int], tuple[int, Any]] = {}
        self.lines: set[str] = set()  # which line ends are looked for
        self.words: set[int] = set()  # the tests of a word's letters that boundaries ask for

    def sequence(self, parts: Any, flags: int) -> tuple[str, int]:
        spelled = [self._part(kind, given, flags) for kind, given in parts]
        return "".join(text for text, _ in spelled), max((times for _, times in spelled), default=1)

    def _part(self, kind: Any, given: Any, flags: int) -> tuple[str, int]:
        if kind in _CHARACTERS:
            return chr(_PLACES + self._place(kind, given, flags)), 1
        if kind is kinds.AT:
            return self._position(given, flags), 1
        if kind is kinds.BRANCH:
            spelled = [self.sequence(one, flags) for one in given[1]]
            return f"(?:{'|'.join(text for text, _ in spelled)})", max(times for _, times in spelled)
        if kind is kinds.SUBPATTERN:
            _, added, removed, body = given
            kept = flags & ~(_ALPHABETS if added & _ALPHABETS else 0)
            text, times = self.sequence(body, (kept | added) & ~removed)
            return f"(?:{text})", times
        if kind in _REPEATS:
            low, high, body = given
            return _repeated(*self.sequence(body, flags), int(low), None if high is kinds.MAXREPEAT else int(high))
        raise NotLinear

    def _place(self, kind: Any, given: Any, flags: int) -> int:
        flags &= _OF_CHARACTERS
        return self.tests.setdefault((kind, repr(given), flags), (len(self.tests), given))[0]

    def _position(self, given: Any, flags: int) -> str:
        lines = flags & re.MULTILINE
        match given:
            case kinds.AT_BEGINNING_STRING:
                return r"\A"
            case kinds.AT_END_STRING:
                return r"\z"
            case kinds.AT_BEGINNING:
                self.lines |= {"every"} if lines else set()
                return "(?m:^)" if lines else r"\A"
            case kinds.AT_END:
                self.lines.add("every" if lines else "last")
                return "(?m:$)"
            case kinds.AT_BOUNDARY | kinds.AT_NON_BOUNDARY:
                self.words.add(self._place(kinds.IN, [(kinds.CATEGORY, kinds.CATEGORY_WORD)], flags))
                return r"\b" if given is kinds.AT_BOUNDARY else r"\B"
        raise NotLinear


def _repeated(text: str, times: int, low: int, high: int | None) -> tuple[str, int]:
    """A repetition, cut into as many as RE2's limit makes necessary."""
    step = max(1, _MOST_REPEATS // times)
    more = 0 if high is None else high - low
    body = f"(?:{text})"
    if (low // step + more // step + 3) * len(body) > _LONGEST:
        raise NotLinear
    pieces = [*[step] * (low // step), low % step]
    spelled = "".join(f"{body}{{{count}}}" for count in pieces if count)
    if high is None:
        spelled += f"{body}*"
    pieces = [*[step] * (more // step), more % step]
    spelled += "".join(f"{body}{{0,{count}}}" for count in pieces if count)
    return f"(?:{spelled})", times * max(1, min(step, max(low, more)))
