"""Insight into a query: its operators, the messages between them, the window as a graph, and why a row is there or not.

Invariant: all results depend on a recording only; nothing here reads a file, a clock or the network, or changes a
running query.
"""

from anabranch.insight.operators import graph_of, operator_graph
from anabranch.insight.recording import Recording
from anabranch.insight.scenes import Scenes
from anabranch.insight.shapes import (
    Departure,
    Element,
    FilterVerdict,
    Memory,
    Message,
    OperatorBox,
    OperatorGraph,
    OperatorLoad,
    PatternPart,
    Scene,
    StepState,
    Why,
    WhyNot,
    to_json,
)
from anabranch.insight.steps import RecordedSteps
from anabranch.insight.why import why, why_left
from anabranch.insight.why_not import why_not

__all__ = [
    "Departure",
    "Element",
    "FilterVerdict",
    "Memory",
    "Message",
    "OperatorBox",
    "OperatorGraph",
    "OperatorLoad",
    "PatternPart",
    "RecordedSteps",
    "Recording",
    "Scene",
    "Scenes",
    "StepState",
    "Why",
    "WhyNot",
    "graph_of",
    "operator_graph",
    "to_json",
    "why",
    "why_left",
    "why_not",
]
