"""The O-Graph of a query: its operators, and the rows that flow from the sources up to the answer (C-SPARQL, 3.4).

Invariant: one box for each step of EXPLAIN, in the same order.
"""

from __future__ import annotations

from anabranch.algebra.steps import GLUE, PlanStep
from anabranch.drawings.picture import Box, Panel, PictureEdge, wrapped

_WIDTH = 38

LEGEND = (("static", "static knowledge"), ("streaming", "streaming"))


def ograph(root: PlanStep, panel_id: str, title: str) -> Panel:
    boxes: list[Box] = []
    edges: list[PictureEdge] = []

    def add(step: PlanStep) -> str:
        box_id = f"{panel_id}_{len(boxes) + 1}"
        name = f"{step.label} {step.operator}" if step.label else step.operator
        lines = tuple(part for line in step.details if line for part in wrapped(line, _WIDTH))
        boxes.append(Box(box_id, name, tuple(line.replace(GLUE, " ") for line in lines), step.part))
        for child in step.inputs:
            edges.append(PictureEdge(add(child), box_id))
        return box_id

    add(root)
    return Panel(panel_id, title, tuple(boxes), tuple(edges))
