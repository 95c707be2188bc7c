"""Drawings in Graphviz's language.

Invariant: for any names and literals of a query, the text is a graph with exactly the boxes of the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.drawings.picture import Box, Drawing, Panel, PictureEdge, printable

_FILLS = {"static": ("#dbeafe", "#2563eb"), "streaming": ("#ffedd5", "#ea580c"), "": ("#f1f5f9", "#64748b")}
_SHAPES = {"box": "box", "round": "box", "plain": "plaintext"}


def dot(drawing: Drawing) -> str:
    panels = drawing.panels
    lines = [
        f"digraph {_quoted(drawing.title)} {{",
        f"  label={_quoted(drawing.title)}; labelloc=t; fontname=Helvetica;",
        f"  rankdir={'BT' if all(panel.tree for panel in panels) else 'TB'};",
        '  node [fontname="monospace", fontsize=10, style=filled];',
        "  edge [fontname=Helvetica, fontsize=9];",
    ]
    for panel in panels:
        body = list(_panel(panel))
        if len(panels) > 1:
            head = [f"subgraph cluster_{panel.id} {{", f"  label={_quoted(panel.title)};"]
            body = [*head, *(f"  {line}" for line in body), "}"]
        lines += [f"  {line}" for line in body]
    return "\n".join([*lines, "}"])


def _panel(panel: Panel) -> Iterator[str]:
    framed = {box for frame in panel.frames for box in frame.boxes}
    for frame in panel.frames:
        yield f"subgraph cluster_{frame.id} {{"
        yield f"  label={_quoted(frame.title)}; style={'dashed' if frame.dashed else 'rounded'};"
        yield from (f"  {_box(box)}" for box in panel.boxes if box.id in frame.boxes)
        yield "}"
    yield from (_box(box) for box in panel.boxes if box.id not in framed)
    yield from (_edge(edge) for edge in panel.edges)


def _box(box: Box) -> str:
    fill, stroke = ("#1e293b", "#0f172a") if box.filled else _FILLS[box.part]
    ink = "#f8fafc" if box.filled else "#0f172a"
    style = "filled" if box.shape == "box" else '"rounded,filled"'
    text = _lines([box.title, *box.lines]) if box.lines else _quoted(box.title)
    colors = f'fillcolor="{fill}", color="{stroke}", fontcolor="{ink}"'
    return f"{box.id} [label={text}, shape={_SHAPES[box.shape]}, style={style}, {colors}];"


def _edge(edge: PictureEdge) -> str:
    tail, head = edge.tail, edge.head
    wanted = [f"label={_quoted(edge.label)}"] if edge.label else []
    wanted += ["style=dashed", 'color="#94a3b8"'] if edge.faint else []
    if edge.upward:
        tail, head = head, tail
        wanted.append("dir=back")
    attributes = f" [{', '.join(wanted)}]" if wanted else ""
    return f"{tail} -> {head}{attributes};"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _lines(lines: list[str]) -> str:
    """Join several lines, each aligned to the left."""
    return '"' + "".join(f"{_escaped(line)}\\l" for line in lines) + '"'


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
