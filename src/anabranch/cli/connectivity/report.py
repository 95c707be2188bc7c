"""Answers of a connectivity workload as lines for people, JSON lines or CSV.

    pairs        which pairs became connected or came apart; or of every pair what holds, at every instant
    components   how many there are, of how many vertices and edges, and how large they are
    changes      what became of components: merged, split, appeared, vanished, and with `all` those that kept on

Invariant: a fact is one line. JSON and CSV lose nothing; the lines for people cut long lists of components short.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.console import Console
from rich.text import Text

from anabranch.cli.console import printable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from anabranch.engine.connectivity.changes import ChangeKind, ComponentChange, WindowComponent, WindowComponents
    from anabranch.engine.connectivity.names import VertexId
    from anabranch.engine.connectivity.workload import ConnectivityAnswer

COMPONENT_COLUMNS = ("components", "vertices", "edges", "largest", "min", "median", "p99")
_HEADS = {"components": 10, "vertices": 10, "edges": 10, "largest": 8, "min": 6, "median": 7, "p99": 8}
_MOST_SHOWN = 6
_STYLES = {
    "connected": "green", "apart": "red", "merge": "green", "split": "red", "appear": "cyan", "vanish": "magenta",
}  # fmt: skip


ConnectivityForm: TypeAlias = Literal["table", "json", "csv"]
WhichChanges: TypeAlias = Literal["main", "all"]


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of output for the instant `at`: a pair, the components, or a change."""

    at: int
    pair: tuple[VertexId, VertexId] | None = None
    connected: bool = False
    components: WindowComponents | None = None
    change: ComponentChange | None = None


@dataclass(slots=True)
class ReportOptions:
    """The content of the report at an instant: pairs (if there are any) only when they changed, unless `every`."""

    pairs: Sequence[tuple[VertexId, VertexId]]
    every: bool
    components: bool
    changes: WhichChanges | None
    _before: npt.NDArray[np.bool_] | None = field(default=None, init=False)

    def facts(self, answer: ConnectivityAnswer) -> Iterator[ReportLine]:
        # Changes first: their computation also finds the components.
        changes = answer.changes().of(*self._kinds()) if self.changes is not None else ()
        if self.components:
            yield ReportLine(answer.at, components=answer.components())
        for change in changes:
            yield ReportLine(answer.at, change=change)
        if self.pairs:
            told = answer.connected if self._before is None else answer.connected != self._before
            places = range(len(self.pairs)) if self.every else told.nonzero()[0].tolist()
            for place in places:
                yield ReportLine(answer.at, pair=self.pairs[place], connected=bool(answer.connected[place]))
            self._before = answer.connected

    def _kinds(self) -> tuple[ChangeKind, ...]:
        from anabranch.engine.connectivity.changes import CHANGE_KINDS

        return CHANGE_KINDS if self.changes == "all" else CHANGE_KINDS[:4]


WriteLine = Callable[[ReportLine], None]


def make_report(form: ConnectivityForm, console: Console, asked: ReportOptions) -> WriteLine:
    match form:
        case "json":
            return _write_json
        case "csv":
            return _CsvReport(asked).write
        case "table":
            return _LineReport(console, asked).write


def instant_text(at: int) -> str | int:
    """Format an instant as ISO text; a number of edges stays a number."""
    from anabranch.model.instants import Instant

    return str(at) if isinstance(at, Instant) else at


# --- programs ---


def _write_json(fact: ReportLine) -> None:
    found: dict[str, Any] = {"at": instant_text(fact.at)}
    if fact.pair is not None:
        found |= {"pair": list(fact.pair), "connected": fact.connected}
    elif fact.components is not None:
        counts = component_counts(fact.components)
        sizes = {name: counts.pop(name) for name in ("min", "median", "p99")}
        found |= {**counts, "sizes": sizes}
    elif fact.change is not None:
        before, after = ([one.to_dict() for one in some] for some in (fact.change.before, fact.change.after))
        found |= {"change": fact.change.kind, "from": before, "into": after}
    print(json.dumps(found, ensure_ascii=False))


def component_counts(components: WindowComponents) -> dict[str, int]:
    values = (
        len(components), components.vertices, components.edges, components.largest, components.smallest,
        components.median, components.p99,
    )  # fmt: skip
    return dict(zip(COMPONENT_COLUMNS, values, strict=True))


class _CsvReport:
    """A report of one kind of facts, with one header."""

    def __init__(self, asked: ReportOptions) -> None:
        self._csv = csv.writer(sys.stdout, lineterminator="\n")
        if asked.components:
            head: Sequence[str] = COMPONENT_COLUMNS
        elif asked.changes is not None:
            head = ("change", "from", "into")
        else:
            head = ("source", "target", "connected")
        self._csv.writerow(["at", *head])

    def write(self, fact: ReportLine) -> None:
        row: list[Any] = [instant_text(fact.at)]
        if fact.pair is not None:
            row += [*fact.pair, "true" if fact.connected else "false"]
        elif fact.components is not None:
            row += component_counts(fact.components).values()
        elif fact.change is not None:
            row += [fact.change.kind, _json_list(fact.change.before), _json_list(fact.change.after)]
        self._csv.writerow(row)


def _json_list(components: Sequence[WindowComponent]) -> str:
    return json.dumps([[one.name, one.size] for one in components], ensure_ascii=False)


# --- people ---


class _LineReport:
    """A report with a line per fact, the instant before the first of them; numbers of components in columns."""

    def __init__(self, console: Console, asked: ReportOptions) -> None:
        self._console = console
        self._is_plain = not console.is_terminal or console.color_system is None
        self._at: int | None = None
        self._when = ""
        self._has_head = not asked.components
        self._widths: Mapping[str, int] = _HEADS

    def write(self, fact: ReportLine) -> None:
        if fact.at != self._at:
            self._when = lead = _when(fact.at)
            self._at = fact.at
        else:
            lead = " " * len(self._when)
        if not self._has_head:
            self._has_head = True
            if self._console.is_terminal:
                self._widths = _fitting(self._console.width - len(lead))
            heads = "".join(f"{'P99' if name == 'p99' else name:>{width + 2}}" for name, width in self._widths.items())
            self._print((f"{'at':<{len(lead)}}{heads}", "bold"))
        if fact.components is not None:
            counts = component_counts(fact.components)
            said = "".join(f"{counts[name]:>{width + 2},}" for name, width in self._widths.items())
            self._print((lead, "yellow"), (said, ""))
        elif fact.pair is not None:
            word = "connected" if fact.connected else "apart"
            self._print((lead, "yellow"), (f"  {word:<11}", _STYLES[word]), (f"{fact.pair[0]} - {fact.pair[1]}", ""))
        elif fact.change is not None:
            kind = fact.change.kind
            self._print((lead, "yellow"), (f"  {kind:<11}", _STYLES.get(kind, "dim")), (_told(fact.change), ""))

    def _print(self, *parts: tuple[str, str]) -> None:
        said = [(printable(text), style) for text, style in parts]
        if self._is_plain:
            self._console.file.write(f"{''.join(text for text, _ in said)}\n")
        else:
            self._console.print(Text.assemble(*said), soft_wrap=True)


def _fitting(room: int) -> dict[str, int]:
    """Return the widths of the columns of numbers, within `room` if their names fit."""
    widths = dict(_HEADS)
    while sum(widths.values()) + 2 * len(widths) > room:
        spare, widest = max((width - len(name), name) for name, width in widths.items())
        if spare == 0:
            break
        widths[widest] -= 1
    return widths


def _told(change: ComponentChange) -> str:
    sides = [_listed(side) for side in (change.before, change.after) if side]
    return " → ".join(sides)


def _listed(components: Sequence[WindowComponent]) -> str:
    shown = [f"{one.name} ({one.size:,})" for one in components[:_MOST_SHOWN]]
    if len(components) > _MOST_SHOWN:
        shown.append(f"{len(components) - _MOST_SHOWN:,} more")
    return " + ".join(shown)


def _when(at: int) -> str:
    from anabranch.cli.values import clock
    from anabranch.model.instants import Instant

    return clock(at) if isinstance(at, Instant) else f"{at:>12,}"
