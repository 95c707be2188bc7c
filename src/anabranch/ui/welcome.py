"""The welcome sentence above the answers of an example: the source of the events, the meaning of the rows, the next
step.

Invariant: a closed sentence stays closed in that browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui.element import Element

from anabranch.ui.desk import Desk
from anabranch.ui.pieces import button, say, shown, tag, words
from anabranch.ui.presets import Preset, preset_of, rate_of

if TYPE_CHECKING:
    from anabranch.server.streams import StreamInfo

_ASK = "Click a row: why is it there?"


class Welcome:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._preset: Preset | None = None

    def build(self) -> Element:
        with tag("div", "ab-welcome ab-hidden", role="note", aria_label="about this example") as self._all:
            with tag("p"):
                self._scene = words("b", "")
                self._story = words("span", "")
            button("", self._close, icon="close", classes="small ghost", label="Close the welcome")
        return self._all

    def show(self, streams: list[StreamInfo]) -> None:
        self._preset = preset_of(self._desk.session_name, self._desk.query_text())
        shown(self._all, self._preset is not None and not self._desk.recall(self._key))
        if self._preset is not None:
            say(self._scene, scene(self._preset, streams))
            say(self._story, f" {self._preset.story} {_ASK}")

    @property
    def _key(self) -> str:
        return f"welcome:{self._preset.file if self._preset is not None else ''}"

    def _close(self) -> None:
        self._desk.remember(self._key, "closed")
        shown(self._all, False)


def scene(preset: Preset, streams: list[StreamInfo]) -> str:
    """Describe the source of the events, and their present rate."""
    stream = next((one for one in streams if one.kind != "query"), None)
    rate = None if stream is None or stream.address is None else rate_of(stream.address)
    if rate:
        return f"{preset.case.scene}, {float(rate):,g} events a second."
    return f"{preset.case.scene}."
