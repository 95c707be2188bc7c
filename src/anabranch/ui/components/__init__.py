"""Custom elements that a browser draws: table, chart, operators, messages, window. Their scripts are in this folder.

Invariant: a component draws the data that it receives and reports clicks; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element

from anabranch.ui.values import sendable

# The chart's script imports the module that this element registers.
_ECHARTS = ui.echart


class LiveTable(Element, component="live_table.js"):
    """Rows by key; `steady` never gets lower while rows come and go.

    Events: `tick` with a column's name, `choose` with a row's key."""

    def __init__(
        self,
        label: str,
        empty: str,
        *,
        clickable: bool = False,
        hint: str = "",
        left_hint: str = "",
        steady: bool = False,
    ) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["empty"] = empty
        self._props["clickable"] = clickable
        self._props["hint"] = hint
        self._props["leftHint"] = left_hint
        self._props["steady"] = steady
        self._props["columns"] = []
        self._props["ticked"] = []

    def columns(self, columns: Sequence[Mapping[str, Any]]) -> None:
        if self._props["columns"] != list(columns):
            self._props["columns"] = list(columns)
            self.update()

    def ticked(self, names: Sequence[str]) -> None:
        self._props["ticked"] = list(names)
        self.update()

    def empty(self, words: str) -> None:
        if self._props["empty"] != words:
            self._props["empty"] = words
            self.update()

    def patch(self, order: Sequence[int], fresh: Mapping[int, Sequence[Any]], *, still: bool = False) -> None:
        """Show these rows; with `still`, without marking changes."""
        self.run_method("patch", {"order": list(order), "fresh": sendable(fresh), "still": still})


class HistoryChart(Element, component="history_chart.js"):
    """Lines over time."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["file"] = "series"

    def named(self, file: str) -> None:
        self._props["file"] = file
        self.update()

    def reset(self, names: Sequence[str], points: Mapping[str, Sequence[tuple[float, float | None]]]) -> None:
        self.run_method("reset", sendable(names), sendable(points))

    def append(self, points: Mapping[str, Sequence[tuple[float, float | None]]]) -> None:
        self.run_method("append", sendable(points))


class PlanGraph(Element, component="plan_graph.js"):
    """Boxes and edges. Event: `choose` with a box's id."""

    def __init__(self, label: str, empty: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["empty"] = empty
        self._props["drawing"] = {}
        self._props["lit"] = -1
        self._props["chosen"] = -1
        self._props["kind"] = ""

    def draw(self, drawing: Mapping[str, Any], empty: str | None = None) -> None:
        if self._props["drawing"] == drawing and empty in (None, self._props["empty"]):
            return
        self._props["drawing"] = dict(drawing)
        if empty is not None:
            self._props["empty"] = empty
        self.update()

    def light(self, box: int, kind: str, chosen: int = -1) -> None:
        self._props["lit"], self._props["kind"], self._props["chosen"] = box, kind, chosen
        self.update()

    def load(self, loads: Mapping[int, Sequence[float]]) -> None:
        self.run_method("load", loads)


class MessageList(Element, component="message_list.js"):
    """Some messages in a row. Event: `choose` with a message's number."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["messages"] = []
        self._props["current"] = -1

    def show(self, messages: Sequence[Mapping[str, Any]], current: int) -> None:
        self._props["messages"] = sendable(messages)
        self._props["current"] = current
        self.update()


class WindowGraph(Element, component="window_graph.js"):
    """Vertices and links that come and go."""

    def __init__(self, label: str, empty: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["empty"] = empty

    def empty(self, words: str) -> None:
        if self._props["empty"] != words:
            self._props["empty"] = words
            self.update()

    def scene(self, nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]) -> None:
        self.run_method("scene", sendable({"nodes": nodes, "links": links}))

    def clear_scene(self) -> None:
        self.run_method("clear")


class ChoiceList(Element, component="choice.js"):
    """A list to choose one from. Event: `pick` with the value as text."""

    def __init__(self, label: str, options: Mapping[str, str], value: str = "", *, hidden_label: bool = False) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["hidden"] = hidden_label
        self._props["options"] = []
        self._props["value"] = value
        self.offer(options, value)

    def offer(self, options: Mapping[str, str], value: str) -> None:
        """Set the values, with the text that is shown for each."""
        offered = [{"value": key, "label": label} for key, label in options.items()]
        if self._props["options"] != offered or self._props["value"] != value:
            self._props["options"] = offered
            self._props["value"] = value
            self.update()


class Scrubber(Element, component="scrubber.js"):
    """A place on a line from 0 to `most`. Event: `move` with the new place."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["most"] = 0
        self._props["value"] = 0
        self._props["text"] = ""

    def show(self, value: int, most: int, text: str) -> None:
        if (self._props["value"], self._props["most"], self._props["text"]) != (value, most, text):
            self._props["value"], self._props["most"], self._props["text"] = value, most, text
            self.update()


class DrawingView(Element, component="drawing.js"):
    """An SVG with a style sheet of its own."""

    def __init__(self, label: str, svg: str) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["svg"] = svg
