"""The first scan of a text: finds comments, strings and IRIs, and replaces the escapes outside of them.

SPARQL lets `\\uXXXX` stand for a character anywhere. In strings and IRIs they are read with the literal; elsewhere they
are replaced before the text is parsed, and `ScannedText` keeps the original offsets.

Invariant: `ScannedText.place` maps every offset of the parsed text to the offset of the user's text that it came from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from anabranch.errors import Span

_PIECES = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
      | (?P<iri><(?:[^<>"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>)
      | (?P<string>\"{3}(?:\"{0,2}(?:[^"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
                 | "(?:[^"\\\n\r]|\\[^\n\r])*" | '(?:[^'\\\n\r]|\\[^\n\r])*')
      | (?P<name>(?:[^\W\d_][\w.-]*)?:(?:[\w:%]|\\[^\w\s])(?:[\w:%.-]|\\[^\w\s])*)
      | (?P<escape>\\u[0-9A-Fa-f]{4} | \\U[0-9A-Fa-f]{8})""",
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class ScannedText:
    """The user's text and the one to parse."""

    __slots__ = ("_shifts", "parsed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.parsed = text
        self._shifts: list[tuple[int, int]] = [(0, 0)]  # from this offset of the parsed text on, this much is missing
        if "\\u" in text or "\\U" in text:
            self._unescape()

    def _unescape(self) -> None:
        written: list[str] = []
        at = length = missing = 0
        for piece in _PIECES.finditer(self.text):
            if piece.lastgroup != "escape":
                continue
            code_point = int(piece.group()[2:], 16)
            if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
                continue  # stays, and is refused where it stands
            written += (self.text[at : piece.start()], chr(code_point))
            length += piece.start() - at + 1
            missing += len(piece.group()) - 1
            at = piece.end()
            self._shifts.append((length, missing))
        self.parsed = "".join(written) + self.text[at:]

    def place(self, offset: int) -> int:
        return offset + self._shifts[bisect_right(self._shifts, (offset, len(self.text))) - 1][1]

    def span(self, start: int, end: int) -> Span:
        if len(self._shifts) == 1:
            return Span(start, end)
        return Span(self.place(start), self.place(end))


def pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Comments, strings, IRIs, prefixed names and escapes of a text, with where they begin and end."""
    for piece in _PIECES.finditer(text):
        yield piece.lastgroup or "", piece.start(), piece.end()


def code_of(text: str) -> str:
    """The text with comments, strings, IRIs and prefixed names blanked out; all else stays where it is."""
    written: list[str] = []
    at = 0
    for kind, start, end in pieces(text):
        if kind == "escape":
            continue
        written += (text[at:start], re.sub(r"[^\r\n]", " ", text[start:end]))
        at = end
    return "".join(written) + text[at:]


def unclosed(text: str) -> Span | None:
    """The innermost bracket that is open at the end of the text."""
    opened: list[int] = []
    code = code_of(text)
    for offset, character in enumerate(code):
        if character in "([{":
            opened.append(offset)
        elif character in _BRACKETS and opened and code[opened[-1]] == _BRACKETS[character]:
            opened.pop()
    return Span(opened[-1], opened[-1] + 1) if opened else None
