"""Draws docs/pictures/walks.svg: the rooms that one query and its events enter, in the order of a traced run.

    python tools/walks.py           writes
    python tools/walks.py --check   exits with 1 where the picture is not what a run shows

The run is `examples/bikes` in this process (`engine="local"`), traced with `sys.setprofile` in the main thread. It is
run once before, so that imports and compiled kernels are no part of the trace. A room is a package or a file directly
below `src/anabranch`; only its first entry in each walk is drawn, as an arrow from the room that calls it. Constructors
and lambdas do not count as entries: options and records are made in rooms that do no work then.

The walk of an event begins when the first piece of a stream is read (`read_piece`). Later work that is done
once for each query (its engine, its plan, its operators) is still the walk of the query: see `BUILDING`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anabranch

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "walks.svg"
PACKAGE = Path(anabranch.__file__).parent
QUERY, EVENTS = ROOT / "examples" / "bikes" / "student_trick.seraph", ROOT / "examples" / "bikes" / "events.ndjson"

FIRST_OF_EVENT = ("runner/packing.py", "read_piece")
BUILDING = {
    ("runner/job.py", "Job.engine"),
    ("runner/cell.py", "Cell._reconcile"),
    ("engine/plans.py", "Plans.planned"),
    ("engine/flows.py", "QueryFlow.__init__"),
}
"""Functions whose work, whenever it is done, belongs to the query: its engine, its plan, its operators."""


@dataclass(frozen=True)
class Entry:
    """The first entry of a walk into a room: its function, and the room that called it (none: the user)."""

    room: str
    function: str
    caller: str | None


@dataclass
class Trace:
    """The first entries of both walks, in their order."""

    query: dict[str, Entry] = field(default_factory=dict)
    event: dict[str, Entry] = field(default_factory=dict)
    has_read: bool = False

    def __call__(self, frame: FrameType, kind: str, _: Any) -> None:
        if kind != "call":
            return
        place = _place(frame.f_code)
        if place is None:
            return
        self.has_read = self.has_read or place == FIRST_OF_EVENT
        file, function = place
        name = function.rsplit(".", 1)[-1]
        room = _room(file)
        if name.startswith(("__", "<")) or (room in self.query and room in self.event):
            return
        above = [one for one in map(_place, _codes_above(frame)) if one is not None]
        is_of_query = not self.has_read or place in BUILDING or any(one in BUILDING for one in above)
        walk = self.query if is_of_query else self.event
        if room not in walk:
            caller = next((_room(one) for one, _ in above if _room(one) != room), None)
            known = caller if caller in walk else None
            walk[room] = Entry(room, _shown(file, function), known)


def _codes_above(frame: FrameType) -> Iterator[CodeType]:
    above = frame.f_back
    while above is not None:
        yield above.f_code
        above = above.f_back


def _place(code: CodeType) -> tuple[str, str] | None:
    """The file of a function of the package, and its name."""
    path = Path(code.co_filename)
    return (path.relative_to(PACKAGE).as_posix(), code.co_qualname) if path.is_relative_to(PACKAGE) else None


def _room(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def _shown(file: str, function: str) -> str:
    """A function as the picture names it: its file within the room, then its name."""
    inside = file.partition("/")[2].removesuffix(".py").removesuffix("__init__").rstrip("/")
    name = function.replace(".<locals>", "")
    return f"{inside}: {name}" if inside else name


def traced() -> Trace:
    text = QUERY.read_text(encoding="utf-8")
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        _run(f"// before the trace\n{text}", Path(folder) / "before.ndjson")
        sys.setprofile(trace)
        try:
            _run(text, Path(folder) / "answers.ndjson")
        finally:
            sys.setprofile(None)
    return trace


def _run(text: str, answers: Path) -> None:
    anabranch.run(text, {"rides": str(EVENTS)}, sinks=[str(answers)], engine="local")


def layers() -> list[list[str]]:
    """The rooms as the import rules have them, from the highest to the lowest."""
    parser = ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    lines = parser["importlinter:contract:rooms"]["layers"].split("\n")
    return [[room.strip() for room in line.split("|")] for line in lines if line.strip()]


_WIDTH, _TOP, _ROW, _GAP, _BOX = 900, 80, 25, 7, 112
_LEFT, _RIGHT = (_WIDTH - _BOX) / 2, (_WIDTH + _BOX) / 2
_DEEPEST = 150

_STYLE = """\
  svg { --paper: #ffffff; --ink: #0f172a; --faint: #64748b; --band: #f1f5f9; --box: #ffffff; --line: #94a3b8;
        --query: #2563eb; --event: #c2410c; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0f172a; --ink: #e2e8f0; --faint: #94a3b8; --band: #17223b; --box: #1e293b; --line: #64748b;
          --query: #60a5fa; --event: #fb923c; } }
  .paper { fill: var(--paper); } .band { fill: var(--band); } .box { fill: var(--box); stroke: var(--line); }
  .quiet { stroke-dasharray: 3 3; }
  text { fill: var(--ink); font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
  .title { font-weight: 700; font-size: 15px; } .note { fill: var(--faint); }
  .room { font-weight: 600; text-anchor: middle; } .room.quiet { fill: var(--faint); font-weight: 400; }
  .left { text-anchor: end; } .number { fill: var(--paper); font-weight: 700; font-size: 10px; text-anchor: middle; }
  .function { font: 11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
  .query { fill: var(--query); } .event { fill: var(--event); }
  path { fill: none; stroke-width: 1.5; } path.query { fill: none; stroke: var(--query); }
  path.event { fill: none; stroke: var(--event); }"""


def drawn(trace: Trace) -> str:
    """Rooms in one column, in bands of the layers; the query's arrows on the left of it, the event's on the right."""
    middles: dict[str, float] = {}
    body: list[str] = []
    y = float(_TOP)
    for layer in layers():
        high = _ROW * len(layer) + 2
        body.append(f'<rect class="band" x="{_LEFT - 8:g}" y="{y - 3:g}" width="{_BOX + 16}" height="{high}" rx="5"/>')
        for room in layer:
            middles[room] = y + _ROW / 2 - 2
            quiet = "" if room in trace.query or room in trace.event else " quiet"
            body += [
                f'<rect class="box{quiet}" x="{_LEFT:g}" y="{y:g}" width="{_BOX}" height="{_ROW - 4}" rx="4"/>',
                f'<text class="room{quiet}" x="{_WIDTH / 2:g}" y="{y + 15:g}">{escape(room)}</text>',
            ]
            y += _ROW
        y += _GAP
    body += [*_walk(trace.query, middles, "query"), *_walk(trace.event, middles, "event")]
    height = y + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" '
        f'height="{height:g}" '
        'role="img" aria-label="The rooms that a query and an event enter, in order">'
    )
    titles = [
        f'<text class="title left query" x="{_LEFT - 24:g}" y="30">A query, from text to operators</text>',
        f'<text class="title event" x="{_RIGHT + 24:g}" y="30">An event, from file to row</text>',
        f'<text class="room" x="{_WIDTH / 2:g}" y="66">rooms</text>',
        f'<text class="note left" x="{_LEFT - 24:g}" y="50">number: order of entry; arrow: from the caller</text>',
        f'<text class="note" x="{_RIGHT + 24:g}" y="50">a room imports only rooms of lower bands</text>',
    ]
    style = f"<style>\n{_STYLE}\n</style>"
    paper = f'<rect class="paper" width="{_WIDTH}" height="{height:g}"/>'
    return "\n".join([head, style, paper, *titles, *body, "</svg>"]) + "\n"


def _walk(walk: dict[str, Entry], middles: dict[str, float], kind: str) -> Iterator[str]:
    edge, outward = (_LEFT, -1) if kind == "query" else (_RIGHT, 1)
    longest = max((abs(middles[one.room] - middles[one.caller]) for one in walk.values() if one.caller), default=1)
    outside = edge + outward * 23  # of the number beside the box
    for entry in walk.values():
        if entry.caller is not None:
            begin, end = middles[entry.caller] + 3, middles[entry.room] - 2
            deep = edge + outward * (50 + _DEEPEST * abs(end - begin) / longest)
            curve = f"C {deep:g} {begin:g} {deep:g} {end:g} {outside:g} {end:g}"
            yield f'<path class="{kind}" d="M {outside:g} {begin:g} {curve}"/>'
    for number, entry in enumerate(walk.values(), 1):
        y = middles[entry.room]
        tip = f"{edge:g},{y:g} {edge + outward * 8:g},{y - 4.5:g} {edge + outward * 8:g},{y + 4.5:g}"
        side = "function left" if kind == "query" else "function"
        x = edge + outward * (_DEEPEST + 30)
        yield f'<polygon class="{kind}" points="{tip}"/>'
        yield f'<circle class="{kind}" cx="{edge + outward * 15.5:g}" cy="{y:g}" r="8.5"/>'
        yield f'<text class="number" x="{edge + outward * 15.5:g}" y="{y + 3.5:g}">{number}</text>'
        yield f'<text class="{side}" x="{x:g}" y="{y + 4:g}">{escape(entry.function)}</text>'


def main() -> int:
    picture = drawn(traced())
    if "--check" not in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    print(f"{PICTURE.relative_to(ROOT)} is not what a run shows")
    return 1


if __name__ == "__main__":
    sys.exit(main())
