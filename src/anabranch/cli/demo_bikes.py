"""The story of the running example: the rides, and the reason for each row.

Invariant: rows come from the engine only. The paper's tables are here only for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from anabranch.demos.examples import examples
from anabranch.formats.ndjson import read_line
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import ElementId, Node, Relationship, Value

TITLE = "The student trick"
INTRODUCTION = (
    "RideAnywhere lends bikes, and for students the first 20 minutes are free. Some ride on for free: they return a"
    " bike and take the next one right away. Which users do that, and when? Stations send what happened every few"
    " minutes, as small property graphs; the query below watches their stream."
)
SOURCE = "Listing 5 of the Seraph paper (path read undirected). Cypher's keywords are blue, Seraph's own green."

PAPER: Mapping[int, tuple[str, tuple[Value, ...]]] = {
    parse_instant("2022-10-14T15:15Z"): ("Table 5", (1234, 1, "14:40", [2, 3])),
    parse_instant("2022-10-14T15:40Z"): ("Table 6", (5678, 2, "14:58", [3, 4])),
}
NOTES: Mapping[int, str] = {
    parse_instant("2022-10-14T14:45Z"): "no row: a bike was rented, and that is all",
    parse_instant("2022-10-14T15:00Z"): "no row: 1234 has changed bikes, and has not arrived yet",
    parse_instant("2022-10-14T15:20Z"): "no new row: now 5678 has changed bikes; 1234 was told at 15:15",
    parse_instant("2022-10-14T15:40Z"): "1234 is still in the answer; ON ENTERING tells only what is new",
}


@dataclass(frozen=True, slots=True)
class Ride:
    """One rental that has ended."""

    user: Value
    bike: str
    taken_at: str
    taken_from: ElementId
    returned_at: str
    returned_to: ElementId
    minutes: int


def query_text() -> str:
    return _data("student_trick.seraph").decode()


def bare_query() -> str:
    """Return the query without the comments above it."""
    lines = query_text().strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("//"))


def events() -> list[Event]:
    lines = _data("events.ndjson").splitlines()
    return [record for line in lines if isinstance(record := read_line(line), Event)]


def _data(name: str) -> bytes:
    return (examples() / "bikes" / name).read_bytes()


def drawn_event(event: Event) -> list[Text]:
    """Return one line per relationship: `(5:EBike) ─rentedAt 14:40, user 1234→ (1:Station)`."""
    nodes = {node.id: node for node in event.nodes}
    names = {node.id: _node(node) for node in event.nodes}
    widest = max(len(names[one.source]) for one in event.relationships)
    lines = []
    for one in event.relationships:
        facts = f"{one.properties['val_time']}, user {one.properties['user_id']}"
        if "duration" in one.properties:
            facts += f", {one.properties['duration']} min"
        line = Text(names[one.source].ljust(widest), style="cyan" if "EBike" in nodes[one.source].labels else "blue")
        line.append(" ─", style="dim")
        line.append(one.type, style="bold green" if one.type == "rentedAt" else "bold magenta")
        line.append(f" {facts}", style="default").append("→ ", style="dim")
        lines.append(line.append(names[one.target], style="yellow"))
    return lines


def _node(node: Node) -> str:
    return f"({node.id}:{node.labels[-1]})"


def rides(seen: Iterable[Event], user: Value, since: str) -> list[Ride]:
    """Return the rides of a user that began at or after a time of day, oldest first."""
    nodes: dict[ElementId, Node] = {}
    taken: dict[ElementId, Relationship] = {}
    found = []
    for event in seen:
        nodes |= {node.id: node for node in event.nodes}
        for one in event.relationships:
            if one.properties["user_id"] != user or str(one.properties["val_time"]) < since:
                continue
            if one.type == "rentedAt":
                taken[one.source] = one
            elif one.source in taken:
                began = taken.pop(one.source)
                bike = f"{'e-bike' if 'EBike' in nodes[one.source].labels else 'bike'} {one.source}"
                times = str(began.properties["val_time"]), str(one.properties["val_time"])
                found.append(Ride(user, bike, times[0], began.target, times[1], one.target, _minutes(*times)))
    return found


def chain(ridden: Sequence[Ride]) -> Text:
    """Return the route: `station 1 ─e-bike 5, 15 min→ station 2 ─bike 6, 16 min→ station 3`."""
    text = Text(f"station {ridden[0].taken_from}", style="bold yellow")
    for ride in ridden:
        text.append(" ─", style="dim").append(f"{ride.bike}, {ride.minutes} min", style="cyan")
        text.append("→ ", style="dim")
        text.append(f"station {ride.returned_to}", style="bold yellow")
    return text


def why(ridden: Sequence[Ride]) -> str:
    """Return the reason for a row, as a sentence."""
    first = ridden[0]
    text = (
        f"User {first.user} took {first.bike} at station {first.taken_from} at {first.taken_at} and returned it at"
        f" station {first.returned_to} at {first.returned_at}"
    )
    for before, ride in pairwise(ridden):
        gap = _minutes(before.returned_at, ride.taken_at)
        text += (
            f"; {gap} minutes later took {ride.bike} there and returned it at station {ride.returned_to} at"
            f" {ride.returned_at}"
        )
    spans = " and ".join(str(ride.minutes) for ride in ridden)
    hops = " and ".join(str(ride.returned_to) for ride in ridden)
    return f"{text}. Rides of {spans} minutes, each under 20, so each was free; the hops are stations {hops}."


def _minutes(start: str, end: str) -> int:
    hours, minutes = (int(e) - int(s) for s, e in zip(start.split(":"), end.split(":"), strict=True))
    return hours * 60 + minutes
