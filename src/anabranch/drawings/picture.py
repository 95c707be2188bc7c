"""The elements of a drawing, independent of the output format.

Invariant: every edge and every frame names boxes of its own panel; ids are words that all formats can use unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

BoxShape = Literal["box", "round", "plain"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box. `part` is static, streaming or empty; `filled` marks the columns of the answer."""

    id: str
    title: str
    lines: tuple[str, ...] = ()
    part: str = ""
    shape: BoxShape = "box"
    filled: bool = False


@dataclass(frozen=True, slots=True)
class PictureEdge:
    """An edge from one box to another. `faint` edges are only hints; `upward` ones are drawn against the order of the
    boxes from top to bottom."""

    tail: str
    head: str
    label: str = ""
    faint: bool = False
    upward: bool = False


@dataclass(frozen=True, slots=True)
class PictureFrame:
    """A rectangle around boxes: dashed for a source, solid for other groups."""

    id: str
    title: str
    boxes: tuple[str, ...]
    dashed: bool = True


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph. A `tree` grows upward: every box is above the boxes that feed it."""

    id: str
    title: str
    boxes: tuple[Box, ...]
    edges: tuple[PictureEdge, ...]
    frames: tuple[PictureFrame, ...] = ()
    tree: bool = True


@dataclass(frozen=True, slots=True)
class Drawing:
    """Rows of panels: a row for each query, before and after side by side."""

    title: str
    rows: tuple[tuple[Panel, ...], ...]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row)


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Return the text without control characters and lone surrogates, which not every format can hold."""
    return _UNPRINTABLE.sub("\ufffd", text)


def wrapped(text: str, width: int) -> list[str]:
    """Split the text into lines of about this width; longer words are cut."""
    lines = [""]
    for word in text.split(" "):
        while len(word) > width:
            room = width - len(lines[-1]) - 1 if lines[-1] else width
            if room < width // 3:
                lines.append("")
                room = width
            lines[-1] = f"{lines[-1]} {word[:room]}" if lines[-1] else word[:room]
            word = word[room:]
            lines.append("")
        if not lines[-1]:
            lines[-1] = word
        elif len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line for line in lines if line] or [""]
