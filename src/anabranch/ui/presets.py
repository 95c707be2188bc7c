"""Queries to begin with. Each brings its stream along, and what does not move.

The texts are those of examples/, which an installed package carries as anabranch/demos.

Invariant: a use case has a session of its own, so that a query that names no stream finds the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from anabranch.sources.examples import examples

_CITY = (("", "tolls/city.ttl"), ("city", "tolls/city.ttl"))


@dataclass(frozen=True, slots=True)
class UseCase:
    """A session: streams as (name, address), graphs as (name, file). A file's path begins at the examples."""

    session: str
    title: str
    streams: tuple[tuple[str, str], ...]
    graphs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    case: UseCase
    title: str
    note: str
    file: str

    @property
    def language(self) -> str:
        return LANGUAGES[self.file.rpartition(".")[2]]

    def text(self) -> str:
        return (examples() / self.file).read_text("utf-8")


LANGUAGES: Mapping[str, str] = {"seraph": "Seraph", "csparql": "C-SPARQL", "lupos": "LUPOS", "rspql": "RSP-QL"}

_AUCTIONS = UseCase("auctions", "Auctions, as triples", (("stream", "gen:auctions?rate=20"),))
_PEOPLE = UseCase(
    "auctions-graph", "Auctions, as a property graph", (("auctions", "gen:auctions?model=property&rate=50"),)
)
_BIKES = UseCase("bikes", "Bikes", (("rides", "bikes/events.ndjson"),))
_CITY_BIKES = UseCase("city-bikes", "Bikes of a whole city", (("rides", "gen:bikes?rate=50"),))
_NETWORK = UseCase("network", "Network", (("network", "network/events.ndjson"),))
_CRIME = UseCase("crime", "Crime", (("reports", "crime/events.ndjson"),))
_TOLLS = UseCase("tolls", "Tollgates, one question in four languages", (("tolls", "tolls/passages.nt.tsv"),), _CITY)

PRESETS: tuple[Preset, ...] = (
    Preset(
        _AUCTIONS, "Prices of the last 100 triples", "Figure 6 of the LUPOS paper, as printed", "auctions/figure6.lupos"
    ),
    Preset(
        _AUCTIONS, "Busiest items", "The five items with most bids in the last minute", "auctions/busiest_items.csparql"
    ),
    Preset(_AUCTIONS, "Busiest items", "The same question, with a named window", "auctions/busiest_items.rspql"),
    Preset(_AUCTIONS, "Price jumps", "Bids at least twice the bid before", "auctions/price_jumps.csparql"),
    Preset(_PEOPLE, "Price jumps", "Bids at least twice the bid before", "auctions/price_jumps.seraph"),
    Preset(_PEOPLE, "Snipers", "Who wins again and again in the last two seconds", "auctions/snipers.seraph"),
    Preset(_PEOPLE, "Bidding rings", "People who bid on one another's items", "auctions/bidding_rings.seraph"),
    Preset(_BIKES, "Student trick", "Free first minutes, twice in a row: five events", "bikes/student_trick.seraph"),
    Preset(_CITY_BIKES, "Student trick", "The same, while it happens", "bikes/student_trick.seraph"),
    Preset(
        _NETWORK,
        "Anomalous routes",
        "Ways to the egress router that became too long",
        "network/anomalous_routes.seraph",
    ),
    Preset(
        _CRIME, "Crime scene", "Suspects near the scene of a crime of their kind", "crime/watch_for_suspects.seraph"
    ),
    Preset(_TOLLS, "Cars by district", "Static city, moving cars", "tolls/districts.csparql"),
    Preset(_TOLLS, "Cars by district", "Only what is new", "tolls/districts.rspql"),
    Preset(_TOLLS, "Cars at each gate", "With the number of all rows", "tolls/gates.lupos"),
    Preset(_TOLLS, "Cars by district", "Triples as nodes and relationships", "tolls/districts.seraph"),
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


def address_of(address: str) -> str:
    """A stream's address as a session needs it: that of a file in full."""
    return address if address.startswith("gen:") else str(examples() / address)


def rate_of(address: str) -> str | None:
    """The events per second that a generator is asked for; None of what has no speed."""
    if not address.startswith("gen:"):
        return None
    return dict(parse_qsl(address.partition("?")[2])).get("rate", "")


def at_rate(address: str, rate: str) -> str:
    """The address with another speed."""
    name, _, query = address.partition("?")
    options = [(key, value) for key, value in parse_qsl(query) if key != "rate"]
    if rate:
        options.append(("rate", rate))
    return f"{name}?{urlencode(options, safe=':,')}" if options else name
