"""An operator graph as placed boxes, for the browser to draw. The layout is that of EXPLAIN's drawings.

Invariant: every number is a function of the graph only; windows are above the boxes that they feed, the result below
all.
"""

from __future__ import annotations

from typing import Any

from anabranch.drawings.layout import Rectangle, arranged
from anabranch.drawings.picture import Box, Panel, PictureEdge
from anabranch.insight.shapes import OperatorBox, OperatorGraph

PARTS = {
    "window": "window",
    "static": "static",
    "streaming": "streaming",
    "recomputed": "recomputed",
    "result": "answer",
}
_WIDEST, _MOST_LINES = 40, 3
_COUNTS = ("in 000,000 · out 000,000", "holds 000,000 · 00.00 ms")


def drawing(graph: OperatorGraph, *, counted: bool) -> dict[str, Any]:
    """Return boxes, edges and the total size; `counted` leaves room for the counts of each box."""
    boxes = tuple(_box(one, counted) for one in graph.boxes)
    edges = tuple(PictureEdge(str(source), str(one.id)) for one in graph.boxes for source in dict.fromkeys(one.inputs))
    if not boxes:
        return {}
    found = arranged(Panel("operators", graph.query, boxes, edges, tree=False))
    return {
        "width": round(found.width, 1) + 4,
        "height": round(found.height, 1) + 4,
        "boxes": [_placed(one, found.boxes[str(one.id)], counted) for one in graph.boxes],
        "edges": [
            {
                "from": int(edge.tail),
                "to": int(edge.head),
                "path": _path(found.boxes[edge.tail], found.boxes[edge.head]),
            }
            for edge in edges
        ],
    }


def _lines(detail: str) -> list[str]:
    """Split a detail into a few short lines, broken at spaces."""
    lines: list[str] = []
    for word in detail.split():
        if lines and len(lines[-1]) + 1 + len(word) <= _WIDEST:
            lines[-1] += f" {word}"
        else:
            lines.append(word if len(word) <= _WIDEST else word[: _WIDEST - 1] + "…")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][: _WIDEST - 2] + " …"]
    return lines


def _box(one: OperatorBox, counted: bool) -> Box:
    """Return a box with title and part on one line; counts take two more lines."""
    title = f"{one.name}   {PARTS[one.kind]}"
    return Box(str(one.id), title, (*_lines(one.detail), *(_COUNTS if counted else ())), one.kind)


def _placed(one: OperatorBox, place: Rectangle, counted: bool) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.name,
        "part": PARTS[one.kind],
        "kind": one.kind,
        "lines": _lines(one.detail),
        "full": one.detail,
        "counted": counted,
        "x": round(place.x + 2, 1),
        "y": round(place.y + 2, 1),
        "w": round(place.width, 1),
        "h": round(place.height, 1),
    }


def _path(tail: Rectangle, head: Rectangle) -> str:
    x, y = tail.x + 2 + tail.width / 2, tail.y + 2 + tail.height
    u, v = head.x + 2 + head.width / 2, head.y + 1
    bend = max(12.0, (v - y) / 2)
    return f"M{x:.1f} {y:.1f} C{x:.1f} {y + bend:.1f} {u:.1f} {v - bend:.1f} {u:.1f} {v:.1f}"
