"""Parsing of case files: sections, options, events and expectations, as `cases` describes them.

Invariant: an unknown section or option is refused with the section's name; nothing in a file is skipped silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.errors import MalformedEventError
from anabranch.formats.events import event_from_dict, graph_from
from anabranch.model.event import Event
from anabranch.model.graph import PropertyGraph
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.triples import TripleGraph
from anabranch.testing.notation import NotationError, read_event, read_graph_line, read_instant
from anabranch.testing.turtle import read_triples

_SECTION = re.compile(r"--- (\w+)(?: +(\S.*?))? *$")
_OPTIONS = (
    "date",
    "windows",
    "conflicts",
    "lateness",
    "now",
    "until",
    "drain",
    "streams",
    "late",
    "ordered",
    "on_error",
)
_SECTIONS = ("options", "query", "graph", "events", "answers", "warnings", "error")


@dataclass
class CaseFile:
    """A parsed case file."""

    path: Path
    options: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    query: str = ""
    graphs: dict[str, PropertyGraph | TripleGraph] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    streams: dict[str, list[Event]] = field(default_factory=dict)
    answers: dict[str | None, list[str]] = field(default_factory=dict)
    warnings: list[str] | None = None
    error: str | None = None

    @property
    def date(self) -> str | None:
        return self.options.get("date")

    @property
    def until(self) -> int | None:
        return read_instant(self.options["until"], self.date) if "until" in self.options else None

    @property
    def drain(self) -> bool:
        return "drain" in self.options

    @property
    def now(self) -> int | None:
        return read_instant(self.options["now"], self.date) if "now" in self.options else None

    @property
    def lateness(self) -> Duration | None:
        return parse_duration(self.options["lateness"]) if "lateness" in self.options else None


def load(path: Path | str) -> CaseFile:
    path = Path(path)
    return read_case(path.read_text(encoding="utf-8"), path)


def read_case(text: str, path: Path = Path("<case>")) -> CaseFile:
    case = CaseFile(path)
    for kind, name, lines in _sections(text):
        try:
            _read_section(case, kind, name, lines)
        except (NotationError, MalformedEventError, ValueError) as error:
            raise NotationError(f"{path.name}, section `{kind}`: {error}") from error
    return case


def _sections(text: str) -> Iterator[tuple[str, str | None, list[str]]]:
    current: tuple[str, str | None, list[str]] | None = None
    for line in text.splitlines():
        head = _SECTION.match(line)
        if head:
            if current is not None:
                yield current
            current = (head[1], head[2], [])
        elif current is not None and not line.startswith("#"):
            current[2].append(line.rstrip())
    if current is not None:
        yield current


def _read_section(case: CaseFile, kind: str, name: str | None, lines: list[str]) -> None:
    match kind:
        case "options":
            _read_options(case, lines)
        case "query":
            case.query = "\n".join(lines).strip() + "\n"
        case "graph":
            case.graphs[name or "graph"] = _read_graph(case, lines)
        case "events":
            events = case.streams.setdefault(name or "stream", [])
            for line in _joined(lines):
                events.append(_read_event(case, line, f"{name or 'stream'}{len(events)}"))
        case "answers":
            case.answers[name] = _joined(lines)
        case "warnings":
            case.warnings = _joined(lines)
        case "error":
            case.error = "\n".join(lines).strip()
        case _:
            raise NotationError(f"no such section; there are {', '.join(_SECTIONS)}")


def _read_options(case: CaseFile, lines: list[str]) -> None:
    for line in _joined(lines):
        key, _, value = line.partition(":")
        key = key.strip()
        if key.startswith("param "):
            case.parameters[key.removeprefix("param ").strip()] = json.loads(value)
        elif key.startswith("prefix "):
            case.prefixes[key.removeprefix("prefix ").strip()] = value.strip()
        elif key in _OPTIONS:
            case.options[key] = value.strip()
        else:
            raise NotationError(f"no option `{key}`; there are {', '.join(_OPTIONS)}")


def _joined(lines: Sequence[str]) -> list[str]:
    """Return the lines without blank ones; a line that begins with a blank is joined to the line above."""
    joined: list[str] = []
    for line in lines:
        if line[:1] == " " and joined and line.strip():
            joined[-1] += " " + line.strip()
        elif line.strip():
            joined.append(line.strip())
    return joined


def _read_graph(case: CaseFile, lines: Sequence[str]) -> PropertyGraph | TripleGraph:
    joined = _joined(lines)
    if joined and not joined[0].startswith("("):
        return TripleGraph(read_triples("\n".join(lines), case.prefixes, "static"))
    return graph_from([read_graph_line(line) for line in joined])


def _read_event(case: CaseFile, line: str, document: str) -> Event:
    if line.startswith("{"):
        return event_from_dict(json.loads(line))
    at, _, rest = line.partition(" ")
    if rest.lstrip()[:1] in ("", "("):
        return read_event(line, case.date)
    return Event(read_instant(at, case.date), triples=read_triples(rest, case.prefixes, document))
