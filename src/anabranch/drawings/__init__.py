"""Drawings of explained queries: the O-Graph or the D-Graph, as Mermaid, Graphviz or SVG.

Invariant: a drawing shows the content of EXPLAIN; it adds no fact and omits no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from anabranch.algebra.explain import Explanation, Stage
from anabranch.drawings import dgraph, ograph
from anabranch.drawings.dot import dot
from anabranch.drawings.mermaid import mermaid
from anabranch.drawings.picture import Drawing, Panel
from anabranch.drawings.svg import svg

__all__ = ["DrawingForm", "DrawingSubject", "draw", "picture"]

DrawingForm = Literal["mermaid", "dot", "svg"]
DrawingSubject = Literal["ograph", "dgraph"]

_FORMS = {"mermaid": mermaid, "dot": dot, "svg": svg}
_NAMES = {"ograph": "O-Graph", "dgraph": "D-Graph"}


def draw(
    explained: Sequence[Explanation], form: DrawingForm, view: DrawingSubject = "ograph", stage: Stage = "both"
) -> str:
    """Draw the explanations in one drawing. A LOAD STREAM has no D-Graph; its steps are drawn instead."""
    return _FORMS[form](picture(explained, view, stage))


def picture(explained: Sequence[Explanation], view: DrawingSubject = "ograph", stage: Stage = "both") -> Drawing:
    rows = tuple(_row(one, f"q{number}", view, stage) for number, one in enumerate(explained, 1))
    title = f"{_NAMES[view]}: {', '.join(one.title for one in explained)}"
    parts = {box.part for row in rows for panel in row for box in panel.boxes}
    known = dgraph.LEGEND if view == "dgraph" else ograph.LEGEND
    legend = tuple(one for one in known if one[0] not in ("static", "streaming") or one[0] in parts)
    return Drawing(title, rows, legend)


def _row(one: Explanation, row_id: str, view: DrawingSubject, stage: Stage) -> tuple[Panel, ...]:
    stages = ("before", "after") if stage == "both" and one.before is not None else ("after",)
    if stage == "before" and one.before is not None:
        stages = ("before",)
    return tuple(_panel(one, f"{row_id}_{name}", view, name, len(stages) > 1) for name in stages)


def _panel(one: Explanation, panel_id: str, view: DrawingSubject, stage: str, named: bool) -> Panel:
    title = f"{one.title}, {stage} the rules" if named else one.title
    if view == "dgraph" and one.queries:
        plan = one.queries[0 if stage == "before" else 1]
        drawn = dgraph.dgraph(plan, panel_id, title, one.prefixes)
        if drawn.boxes:
            return drawn
    root = one.before if stage == "before" and one.before is not None else one.root
    return ograph.ograph(root, panel_id, title)
