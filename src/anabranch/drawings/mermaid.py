"""Drawings as Mermaid flowcharts, which GitHub, GitLab and many editors show.

Invariant: for any names and literals of a query, the text is a flowchart with exactly the boxes of the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.drawings.picture import Box, Drawing, Panel, PictureEdge, PictureFrame, printable

_SHAPES = {"box": ("[", "]"), "round": ("([", "])"), "plain": (">", "]")}
_CLASSES = (
    "classDef static fill:#dbeafe,stroke:#2563eb,color:#0f172a",
    "classDef streaming fill:#ffedd5,stroke:#ea580c,color:#0f172a",
    "classDef other fill:#f1f5f9,stroke:#64748b,color:#0f172a",
    "classDef filled fill:#1e293b,stroke:#0f172a,color:#f8fafc",
)


def mermaid(drawing: Drawing) -> str:
    panels = drawing.panels
    lines = [
        "---",
        f"title: {_quoted(drawing.title)}",
        "---",
        f"flowchart {'BT' if all(panel.tree for panel in panels) else 'TB'}",
    ]
    for panel in panels:
        body = list(_panel(panel))
        if len(panels) > 1:
            body = [f'subgraph {panel.id}["{_escaped(panel.title)}"]', *(f"  {line}" for line in body), "end"]
        lines += [f"  {line}" for line in body]
    lines += [f"  {line}" for line in _CLASSES]
    for name in ("static", "streaming", "other", "filled"):
        members = [box.id for panel in panels for box in panel.boxes if _class(box) == name]
        lines += [f"  class {','.join(members)} {name}"] if members else []
    frames = [frame.id for panel in panels for frame in panel.frames if frame.dashed]
    lines += [f"  style {one} fill:none,stroke-dasharray:6 4" for one in frames]
    return "\n".join(lines)


def _panel(panel: Panel) -> Iterator[str]:
    framed = {box: frame for frame in panel.frames for box in frame.boxes}
    for frame in panel.frames:
        yield from _frame(frame, panel)
    yield from (_box(box) for box in panel.boxes if box.id not in framed)
    yield from (_edge(edge) for edge in panel.edges)


def _frame(frame: PictureFrame, panel: Panel) -> Iterator[str]:
    yield f'subgraph {frame.id}["{_escaped(frame.title)}"]'
    yield from (f"  {_box(box)}" for box in panel.boxes if box.id in frame.boxes)
    yield "end"


def _class(box: Box) -> str:
    return "filled" if box.filled else box.part or "other"


def _box(box: Box) -> str:
    opening, closing = _SHAPES[box.shape]
    title = f"<b>{_escaped(box.title)}</b>" if box.lines else _escaped(box.title)
    text = "<br/>".join([title, *map(_escaped, box.lines)])
    return f'{box.id}{opening}"{text}"{closing}'


def _edge(edge: PictureEdge) -> str:
    arrow = "-.->" if edge.faint else "-->"
    label = f'|"{_escaped(edge.label)}"|' if edge.label else ""
    return f"{edge.tail} {arrow}{label} {edge.head}"


def _escaped(text: str) -> str:
    """Replace every character that Mermaid, Markdown in it, or HTML would interpret by an entity."""
    text = printable(text)
    return "".join(one if one.isalnum() or one in " .,:;=+-/()?∧∨¬∃∀∈≠≤≥→_^'" else f"#{ord(one)};" for one in text)


def _quoted(text: str) -> str:
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
