"""The layout of a panel: positions of its boxes and frames.

Trees: every box is centred above the boxes that feed it; each level is as high as its highest box. Other graphs: in
layers by the longest path from their start; side by side in bands, one for each frame and one for boxes without a
frame, so that no frame covers a box of another.

Invariant: no two boxes of a panel overlap, and every number is a function of the panel only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.drawings.picture import Box, Panel, PictureEdge

TITLE_HEIGHT, LINE_HEIGHT = 24.0, 16.0
LETTER = 7.0  # the width of a letter of the fixed-width font at 11.5 px, a little more than it needs
_PADDING, _GAP, _LEVEL, _BAND, _TITLE, _TITLE_LETTER = 12.0, 22.0, 40.0, 46.0, 26.0, 6.4


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle: its left upper corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2

    def moved(self, x: float, y: float) -> Rectangle:
        return Rectangle(self.x + x, self.y + y, self.width, self.height)


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """A panel with the places of its boxes and frames, in a coordinate system of its own."""

    panel: Panel
    boxes: dict[str, Rectangle]
    frames: dict[str, Rectangle]
    width: float
    height: float


def size_of(box: Box) -> tuple[float, float]:
    letters = max(len(box.title) * 1.06, *(len(line) for line in box.lines), 5)
    height = TITLE_HEIGHT + (LINE_HEIGHT * len(box.lines) + 6 if box.lines else 4)
    return letters * LETTER + 2 * _PADDING, height


def arranged(panel: Panel) -> PanelLayout:
    boxes = _tree(panel) if panel.tree else _layers(panel)
    frames = {}
    for frame in panel.frames:
        held = [boxes[one] for one in frame.boxes]
        left, right = min(p.x for p in held), max(p.x + p.width for p in held)
        width = max(right - left + 24, len(frame.title) * _TITLE_LETTER + 20)
        top, bottom = min(p.y for p in held) - _TITLE, max(p.y + p.height for p in held) + 12
        frames[frame.id] = Rectangle((left + right - width) / 2, top, width, bottom - top)
    places = [*boxes.values(), *frames.values()]
    left, top = min(p.x for p in places), min(p.y for p in places)
    return PanelLayout(
        panel,
        {key: place.moved(-left, -top) for key, place in boxes.items()},
        {key: place.moved(-left, -top) for key, place in frames.items()},
        max(p.x + p.width for p in places) - left,
        max(p.y + p.height for p in places) - top,
    )


# --- trees ------------------------------------------------------------------------------------------------------------


def _tree(panel: Panel) -> dict[str, Rectangle]:
    sizes = {box.id: size_of(box) for box in panel.boxes}
    children: dict[str, list[str]] = {box.id: [] for box in panel.boxes}
    for edge in panel.edges:
        children[edge.head].append(edge.tail)
    depth = {panel.boxes[0].id: 0}
    for box in panel.boxes:  # a box comes before those that feed it
        depth |= dict.fromkeys(children[box.id], depth[box.id] + 1)
    heights = [0.0] * (max(depth.values()) + 1)
    for key, level in depth.items():
        heights[level] = max(heights[level], sizes[key][1])
    tops = [sum(heights[:level]) + _LEVEL * level for level in range(len(heights))]
    room: dict[str, float] = {}
    for box in reversed(panel.boxes):
        below = sum(room[one] for one in children[box.id]) + _GAP * max(0, len(children[box.id]) - 1)
        room[box.id] = max(sizes[box.id][0], below)
    places: dict[str, Rectangle] = {}
    lefts = {panel.boxes[0].id: 0.0}
    for box in panel.boxes:
        left, (width, height) = lefts[box.id], sizes[box.id]
        level = depth[box.id]
        y = tops[level] + (heights[level] - height) / 2
        places[box.id] = Rectangle(left + (room[box.id] - width) / 2, y, width, height)
        below = sum(room[one] for one in children[box.id]) + _GAP * max(0, len(children[box.id]) - 1)
        left += (room[box.id] - below) / 2
        for one in children[box.id]:
            lefts[one] = left
            left += room[one] + _GAP
    return places


# --- layers -----------------------------------------------------------------------------------------------------------


def _layers(panel: Panel) -> dict[str, Rectangle]:
    sizes = {box.id: size_of(box) for box in panel.boxes}
    order = [box.id for box in panel.boxes]
    layer = _ranks(order, panel.edges)
    band = _bands(panel)
    grid: dict[int, dict[int, list[str]]] = {}
    for key in order:
        grid.setdefault(layer[key], {}).setdefault(band[key], []).append(key)
    near = _neighbours(panel.edges)
    for level in sorted(grid):
        for keys in grid[level].values():
            above = {}
            for key in keys:
                at = [_at(grid, one, layer, band) for one in near.get(key, ()) if layer[one] < level]
                above[key] = sum(at) / len(at) if at else 0.0
            keys.sort(key=above.__getitem__)
    titles = dict(enumerate(len(frame.title) * _TITLE_LETTER for frame in panel.frames))
    widths = {
        index: max(titles.get(index, 0.0), *(_row_width(row.get(index, ()), sizes) for row in grid.values()))
        for index in {*band.values()}
    }
    lefts: dict[int, float] = {}
    left = 0.0
    for index in _band_order(panel, widths):
        lefts[index] = left
        left += widths[index] + _BAND
    places: dict[str, Rectangle] = {}
    top = 0.0
    for level in sorted(grid):
        height = max(sizes[key][1] for keys in grid[level].values() for key in keys)
        for index, keys in grid[level].items():
            x = lefts[index] + (widths[index] - _row_width(keys, sizes)) / 2
            for key in keys:
                places[key] = Rectangle(x, top + (height - sizes[key][1]) / 2, *sizes[key])
                x += sizes[key][0] + _GAP
        top += height + _LEVEL
    return places


def _row_width(keys: Sequence[str], sizes: dict[str, tuple[float, float]]) -> float:
    return sum(sizes[key][0] for key in keys) + _GAP * max(0, len(keys) - 1)


def _ranks(order: list[str], edges: Sequence[PictureEdge]) -> dict[str, int]:
    """Assign layers by the longest path; an edge that would close a cycle is ignored."""
    after: dict[str, list[str]] = {key: [] for key in order}
    for edge in edges:
        tail, head = (edge.head, edge.tail) if edge.upward else (edge.tail, edge.head)
        if tail != head:
            after[tail].append(head)
    done: dict[str, bool] = {}
    finished: list[str] = []
    forward: dict[str, list[str]] = {key: [] for key in order}
    for start in order:
        stack = [] if start in done else [(start, iter(after[start]))]
        done.setdefault(start, False)
        while stack:
            key, following = stack[-1]
            one = next(following, None)
            if one is None:
                done[key] = True
                finished.append(key)
                stack.pop()
            elif one not in done:
                done[one] = False
                forward[key].append(one)
                stack.append((one, iter(after[one])))
            elif done[one]:
                forward[key].append(one)
    rank = dict.fromkeys(order, 0)
    for key in reversed(finished):
        for one in forward[key]:
            rank[one] = max(rank[one], rank[key] + 1)
    return rank


def _bands(panel: Panel) -> dict[str, int]:
    """Return the band of each box: the number of its frame, or a common band for boxes without a frame."""
    free = len(panel.frames)
    found = {box: index for index, frame in enumerate(panel.frames) for box in frame.boxes}
    return {box.id: found.get(box.id, free) for box in panel.boxes}


def _band_order(panel: Panel, widths: dict[int, float]) -> list[int]:
    """Order the bands: boxes without a frame come after the first frame, between the sources that share them."""
    frames = list(range(len(panel.frames)))
    free = len(panel.frames)
    return [index for index in [*frames[:1], free, *frames[1:]] if index in widths]


def _neighbours(edges: Sequence[PictureEdge]) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for edge in edges:
        near.setdefault(edge.tail, []).append(edge.head)
        near.setdefault(edge.head, []).append(edge.tail)
    return near


def _at(grid: dict[int, dict[int, list[str]]], key: str, layer: dict[str, int], band: dict[str, int]) -> float:
    """Return the horizontal position of a box in its layer, as a sort key."""
    row = grid[layer[key]].get(band[key], [])
    return band[key] * 100 + (row.index(key) if key in row else 0)
