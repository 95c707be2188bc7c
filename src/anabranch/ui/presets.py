"""Preset queries, each with its streams and static graphs.

The texts are those of examples/, which an installed package carries as anabranch/demos/examples.

Invariant: a use case has a session of its own, so that a query that names no stream finds the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from anabranch.demos.examples import examples

if TYPE_CHECKING:
    from anabranch.server.hub import Hub
    from anabranch.server.session import LiveSession

_CITY = (("", "tolls/city.ttl"), ("city", "tolls/city.ttl"))


@dataclass(frozen=True, slots=True)
class UseCase:
    """A session: streams as (name, address), graphs as (name, file). A file's path is relative to the examples. `scene`
    describes the source of its events."""

    session: str
    title: str
    scene: str
    streams: tuple[tuple[str, str], ...]
    graphs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """A query with its use case. `story` describes its rows; `draw` are the columns that are drawn over time until the
    visitor chooses others, with one line for each value of the column `each`."""

    case: UseCase
    title: str
    note: str
    file: str
    story: str
    draw: tuple[str, ...] = ()
    each: str = ""

    @property
    def language(self) -> str:
        return LANGUAGES[self.file.rpartition(".")[2]]

    def text(self) -> str:
        return _text(self.file)


@cache
def _text(file: str) -> str:
    return (examples() / file).read_text("utf-8")


LANGUAGES: Mapping[str, str] = {"seraph": "Seraph", "csparql": "C-SPARQL", "lupos": "LUPOS", "rspql": "RSP-QL"}

_AUCTIONS = UseCase(
    "auctions", "Auctions, as triples", "An auction house", (("stream", "gen:auctions?rate=10&early=600&jumps=100"),)
)
_PEOPLE = UseCase(
    "auctions-graph",
    "Auctions, as a property graph",
    "An auction house, its clock five times as fast as ours",
    (("auctions", "gen:auctions?model=property&rate=50&early=3000&rings=1&snipers=8"),),
)
_BIKES = UseCase("bikes", "Bikes", "Bikes, rented and returned", (("rides", "bikes/events.ndjson"),))
_CITY_BIKES = UseCase(
    "city-bikes",
    "Bikes of a whole city",
    "A city of riders, its clock 300 times as fast as ours",
    (("rides", "gen:bikes?step=PT10S&stations=300&students=6&rate=30&early=400"),),
)
_NETWORK = UseCase(
    "network", "Network", "A network that tells its cables every five minutes", (("network", "network/events.ndjson"),)
)
_CRIME = UseCase("crime", "Crime", "Reports of crimes and of people", (("reports", "crime/events.ndjson"),))
_TOLLS = UseCase(
    "tolls",
    "Tollgates, one question in four languages",
    "Cars that pass tollgates of a city",
    (("tolls", "tolls/passages.nt.tsv"),),
    _CITY,
)

PRESETS: tuple[Preset, ...] = (
    Preset(
        _AUCTIONS,
        "Busiest items",
        "Ten bids or more in the last minute",
        "auctions/busiest_items.csparql",
        "Items with ten bids or more in the last minute, every second.",
        ("avg", "max"),
    ),
    Preset(
        _AUCTIONS,
        "Busiest items",
        "The same question, with a named window",
        "auctions/busiest_items.rspql",
        "Items with ten bids or more in the last minute, every second.",
        ("avg", "max"),
    ),
    Preset(
        _AUCTIONS,
        "Prices of the last 100 triples",
        "Figure 6 of the LUPOS paper, as printed",
        "auctions/figure6.lupos",
        "The bids among the last hundred triples, with their average, least, greatest and sum, every second.",
        ("avg", "max"),
    ),
    Preset(
        _AUCTIONS,
        "Price jumps",
        "Bids at least twice the bid before",
        "auctions/price_jumps.csparql",
        "Bids of the last half minute that are at least twice the bid before them.",
    ),
    Preset(
        _PEOPLE,
        "Price jumps",
        "Bids at least twice the bid before",
        "auctions/price_jumps.seraph",
        "Bids that are at least twice the bid before them, each told once.",
    ),
    Preset(
        _PEOPLE,
        "Snipers",
        "Who wins again and again in the last two seconds",
        "auctions/snipers.seraph",
        "People who won three auctions or more of the last five minutes by a bid in the last two seconds.",
        ("won",),
        "name",
    ),
    Preset(
        _PEOPLE,
        "Bidding rings",
        "People who bid on one another's items",
        "auctions/bidding_rings.seraph",
        "Groups of people who bid on one another's items and on no others, in the last two minutes.",
    ),
    Preset(
        _BIKES,
        "Student trick",
        "Free first minutes, twice in a row: five events",
        "bikes/student_trick.seraph",
        "Riders who change bikes before the free twenty minutes are over, each told once.",
    ),
    Preset(
        _CITY_BIKES,
        "Student trick",
        "The same, while it happens",
        "bikes/student_trick.seraph",
        "Riders who change bikes before the free twenty minutes are over, each told once.",
    ),
    Preset(
        _NETWORK,
        "Anomalous routes",
        "Ways to the egress router that became too long",
        "network/anomalous_routes.seraph",
        "Routes from a rack to the egress router that became too long: a cable was cut.",
    ),
    Preset(
        _CRIME,
        "Crime scene",
        "Suspects near the scene of a crime of their kind",
        "crime/watch_for_suspects.seraph",
        "Suspects who were seen near the scene of a crime of their kind.",
    ),
    Preset(
        _TOLLS,
        "Cars by district",
        "Static city, moving cars",
        "tolls/districts.csparql",
        "How many cars entered each district in the last ten minutes; which gate is where does not move.",
    ),
    Preset(
        _TOLLS,
        "Cars by district",
        "Only what is new",
        "tolls/districts.rspql",
        "How many cars entered each district in the last ten minutes, where that has changed.",
    ),
    Preset(
        _TOLLS,
        "Cars at each gate",
        "With the number of all rows",
        "tolls/gates.lupos",
        "The cars at each gate in the last ten minutes, with the number of all.",
    ),
    Preset(
        _TOLLS,
        "Cars by district",
        "Triples as nodes and relationships",
        "tolls/districts.seraph",
        "How many cars entered each district in the last ten minutes.",
    ),
)

RATES: Mapping[str, str] = {
    "10": "10 / s",
    "20": "20 / s",
    "50": "50 / s",
    "200": "200 / s",
    "1000": "1,000 / s",
    "5000": "5,000 / s",
    "": "as fast as it goes",
}


def available() -> tuple[Preset, ...]:
    folder = examples()
    return tuple(one for one in PRESETS if (folder / one.file).is_file())


def preset_of(session: str, text: str) -> Preset | None:
    """Return the preset whose text equals that of a session's query."""
    of_session = [
        one for one in available() if session == one.case.session or session.startswith(f"{one.case.session}-")
    ]
    return next((one for one in of_session if one.text() == text), None)


def prepared(hub: Hub, preset: Preset) -> LiveSession:
    """Return the session of a preset with its streams and graphs. A session of that name with other streams is not
    changed: a further session is created."""
    case = preset.case
    held = {one.name: one for one in hub.sessions()}
    names = (case.session if number == 1 else f"{case.session}-{number}" for number in count(1))
    name = next(one for one in names if one not in held or _fits(held[one], case))
    session = held.get(name) or hub.create(name)
    there = {one.name for one in session.streams()}
    for stream, address in case.streams:
        if stream not in there:
            session.add_stream(stream, address_of(address))
    graphs = {one.name for one in session.graphs()}
    for graph, file in case.graphs:
        if graph not in graphs:
            session.add_graph(graph, (examples() / file).read_bytes(), "text/turtle")
    return session


def _fits(session: LiveSession, case: UseCase) -> bool:
    """Return whether all streams of a session are those of a use case, at any rate."""
    wanted = {name: _origin(address_of(address)) for name, address in case.streams}
    own = [one for one in session.streams() if one.kind != "query"]
    return all(one.address is not None and wanted.get(one.name) == _origin(one.address) for one in own)


def _origin(address: str) -> tuple[str, str]:
    """Return the origin of events: a file, or a generator and its model."""
    name, _, query = address.partition("?")
    return (name, dict(parse_qsl(query)).get("model", "")) if address.startswith("gen:") else (address, "")


def address_of(address: str) -> str:
    """Return a stream's address for a session: a file gets its full path."""
    return address if address.startswith("gen:") else str(examples() / address)


def rate_of(address: str) -> str | None:
    """Return the events per second of a generator's address; None for an address without a rate."""
    if not address.startswith("gen:"):
        return None
    return dict(parse_qsl(address.partition("?")[2])).get("rate", "")


def at_rate(address: str, rate: str) -> str:
    """Return the address with another rate."""
    name, _, query = address.partition("?")
    options = [(key, value) for key, value in parse_qsl(query) if key != "rate"]
    if rate:
        options.append(("rate", rate))
    return f"{name}?{urlencode(options, safe=':,')}" if options else name
