"""Drawings as SVG: one self-contained file, readable on light and on dark pages.

Invariant: the text is well-formed XML for any query; no font, script or picture is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from anabranch.drawings.layout import LINE_HEIGHT, TITLE_HEIGHT, PanelLayout, Rectangle, arranged
from anabranch.drawings.picture import Box, Drawing, PictureEdge, printable

_MARGIN, _BETWEEN, _HEAD = 28.0, 56.0, 34.0

_STYLE = """\
  svg { --paper: #ffffff; --ink: #0f172a; --faint: #64748b; --line: #94a3b8; --panel: #f8fafc;
        --static: #dbeafe; --static-line: #2563eb; --streaming: #ffedd5; --streaming-line: #ea580c;
        --other: #f1f5f9; --other-line: #94a3b8; --filled: #1e293b; --filled-ink: #f8fafc; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0f172a; --ink: #e2e8f0; --faint: #94a3b8; --line: #64748b; --panel: #131d33;
          --static: #17305c; --static-line: #60a5fa; --streaming: #4a2a12; --streaming-line: #fb923c;
          --other: #1e293b; --other-line: #64748b; --filled: #e2e8f0; --filled-ink: #0f172a; } }
  .paper { fill: var(--paper); } .panel { fill: var(--panel); stroke: var(--line); stroke-width: 0.7; }
  text { fill: var(--ink); font: 11.5px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
  .title { font: 600 16px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
  .stage, .legend, .frame-title { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
  .stage { font-weight: 600; } .frame-title, .legend { fill: var(--faint); }
  .frame-title { paint-order: stroke; stroke: var(--panel); stroke-width: 5px; stroke-linejoin: round; }
  .name { font-weight: 700; font-size: 12px; }
  .static { fill: var(--static); stroke: var(--static-line); }
  .streaming { fill: var(--streaming); stroke: var(--streaming-line); }
  .other { fill: var(--other); stroke: var(--other-line); }
  .filled { fill: var(--filled); stroke: var(--filled); } text.on-filled { fill: var(--filled-ink); stroke: none; }
  .edge { fill: none; stroke: var(--line); stroke-width: 1.4; } .faint { stroke-dasharray: 3 4; }
  .tip { fill: var(--line); } .label { fill: var(--faint); font-size: 10px; }
  .frame { fill: none; stroke: var(--faint); } .dashed { stroke-dasharray: 6 4; }"""


def svg(drawing: Drawing) -> str:
    rows = [[arranged(panel) for panel in row] for row in drawing.rows]
    alone = sum(len(row) for row in rows) == 1
    inset = 0.0 if alone else 16.0
    body: list[str] = []
    top = _MARGIN + _HEAD
    right = _MARGIN + len(drawing.title) * 9.5
    for row in rows:
        left = _MARGIN
        height = max(one.height for one in row) + (0 if alone else _HEAD) + 2 * inset
        for one in row:
            width = max(one.width, 0 if alone else len(one.panel.title) * 7.5) + 2 * inset
            if not alone:
                body.append(f'<rect class="panel" {_rectangle(Rectangle(left, top, width, height))} rx="10"/>')
                body.append(_text(left + inset, top + 22, one.panel.title, "stage"))
            x = left + inset + (width - 2 * inset - one.width) / 2
            y = top + inset + (0 if alone else _HEAD - 6)
            body += [f'<g transform="translate({x:g} {y:g})">', *_panel(one), "</g>"]
            left += width + _BETWEEN / 2
        right = max(right, left - _BETWEEN / 2)
        top += height + _BETWEEN / 2
    legend = list(_legend(drawing, _MARGIN, top + 4))
    width = max(right, _MARGIN + sum(60 + len(text) * 6.6 for _, text in drawing.legend)) + _MARGIN
    height = top + (34 if legend else 0)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img" aria-label="{_attribute(drawing.title)}">',
            f"<title>{escape(printable(drawing.title))}</title>",
            f"<style>\n{_STYLE}\n</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path class="tip" d="M0 0.8 L8 4 L0 7.2 z"/></marker></defs>',
            '<rect class="paper" width="100%" height="100%"/>',
            _text(_MARGIN, _MARGIN + 12, drawing.title, "title"),
            *body,
            *legend,
            "</svg>",
        ]
    )


def _panel(one: PanelLayout) -> Iterator[str]:
    for frame in one.panel.frames:
        place = one.frames[frame.id]
        style = "frame dashed" if frame.dashed else "frame"
        yield f'<rect class="{style}" {_rectangle(place)} rx="8"/>'
    for edge in one.panel.edges:
        yield from _edge(edge, one)
    for frame in one.panel.frames:
        place = one.frames[frame.id]
        yield _text(place.x + 10, place.y + 16, frame.title, "frame-title")
    for box in one.panel.boxes:
        yield from _box(box, one.boxes[box.id])


def _box(box: Box, place: Rectangle) -> Iterator[str]:
    style = "filled" if box.filled else box.part or "other"
    corner = {"box": 5.0, "plain": 0.0, "round": min(place.height / 2, 14.0)}[box.shape]
    ink = " on-filled" if box.filled else ""
    yield f'<rect class="{style}" {_rectangle(place)} rx="{corner:g}"/>'
    middle = place.x + place.width / 2
    if not box.lines:
        yield _text(middle, place.y + place.height / 2 + 4, box.title, f"name{ink}", "middle")
        return
    yield _text(middle, place.y + TITLE_HEIGHT - 7, box.title, f"name{ink}", "middle")
    for index, line in enumerate(box.lines):
        y = place.y + TITLE_HEIGHT + LINE_HEIGHT * index + 9
        yield _text(place.x + 12, y, line, ink.strip() or "line")


def _edge(edge: PictureEdge, one: PanelLayout) -> Iterator[str]:
    tail, head = one.boxes[edge.tail], one.boxes[edge.head]
    style = "edge faint" if edge.faint else "edge"
    if one.panel.tree:
        x, y, u, v = tail.middle[0], tail.y, head.middle[0], head.y + head.height
        bend = (y - v) / 2
        path = f"M{x:.1f} {y:.1f} C{x:.1f} {y - bend:.1f} {u:.1f} {v + bend:.1f} {u:.1f} {v + 2:.1f}"
        yield f'<path class="{style}" d="{path}" marker-end="url(#tip)"/>'
        return
    x, y = _border(tail, head.middle)
    u, v = _border(head, tail.middle)
    yield f'<path class="{style}" d="M{x:.1f} {y:.1f} L{u:.1f} {v:.1f}" marker-end="url(#tip)"/>'
    if edge.label:
        yield _text((x + u) / 2 + 5, (y + v) / 2, edge.label, "label")


def _border(place: Rectangle, toward: tuple[float, float]) -> tuple[float, float]:
    """Return the point where the straight line from a box's centre leaves the box."""
    x, y = place.middle
    dx, dy = toward[0] - x, toward[1] - y
    if not dx and not dy:
        return x, y
    scale = min(
        place.width / 2 / abs(dx) if dx else float("inf"),
        place.height / 2 / abs(dy) if dy else float("inf"),
    )
    return x + dx * scale, y + dy * scale


def _legend(drawing: Drawing, left: float, top: float) -> Iterator[str]:
    for kind, text in drawing.legend:
        style = "frame dashed" if kind == "frame" else kind
        yield f'<rect class="{style}" x="{left:g}" y="{top:g}" width="26" height="15" rx="4"/>'
        yield _text(left + 34, top + 12, text, "legend")
        left += 60 + len(text) * 6.6


def _rectangle(place: Rectangle) -> str:
    return f'x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}"'


def _text(x: float, y: float, text: str, style: str, anchor: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}"{where} xml:space="preserve">{escape(printable(text))}</text>'


def _attribute(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})
