"""Made-up auctions: an orderly house, with the things in it that are worth finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from anabranch.demos.auction_house import ROUND, AuctionHouse, HouseSettings
from anabranch.demos.auctions import EBAY, THINGS
from anabranch.errors import StreamError
from anabranch.formats.events import event_to_dict
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import DateTime
from anabranch.model.terms import Iri, Literal
from anabranch.sources.base import as_event
from anabranch.sources.generators import GeneratorSource

SETTINGS: Sequence[dict[str, int]] = [
    {},
    {"seed": 7, "open": 12, "hot": 1, "snipers": 1, "jumps": 3, "rings": 1},
    {"seed": -5, "open": 200, "hot": 0, "snipers": 2, "jumps": 1, "rings": 3},
    {"seed": 1, "snipers": 0, "jumps": 0, "rings": 0},
]


def made(first: int, stop: int, **options: Any) -> list[Event]:
    source = GeneratorSource("s", "auctions", {name: str(value) for name, value in options.items()})
    pieces = source.pieces({"next": first}, {"next": stop})
    return [event for piece in pieces for event in source.read(piece, as_event) if isinstance(event, Event)]


@dataclass
class Auction:
    seller: object
    opens_at: int
    closes_at: int
    bids: list[tuple[int, object, float, int]] = field(default_factory=list)
    """Instant, bidder, price and number."""


@cache
def house(count: int = 6000, **options: Any) -> dict[object, Auction]:
    """The auctions by item, read from the events as a bystander would."""
    auctions: dict[object, Auction] = {}
    for event in made(0, count, model="property", **options):
        nodes = {node.id: node for node in event.nodes}
        for one in event.relationships:
            said = nodes[one.target].properties
            if one.type == "SELLS":
                closes_at = said["closes_at"]
                assert isinstance(closes_at, DateTime)
                auctions[one.target] = Auction(one.source, event.event_time, closes_at.to_epoch_micros())
            elif one.type == "BIDS":
                assert (said["price"], said["bids"]) == (one.properties["price"], one.properties["number"])
                assert isinstance(said["closes_at"], DateTime)
                assert said["closes_at"].to_epoch_micros() == auctions[one.target].closes_at
                row: Any = (event.event_time, one.source, one.properties["price"], one.properties["number"])
                auctions[one.target].bids.append(row)
    return auctions


def test_of_fifty_events_one_is_a_person_three_are_items_and_the_rest_are_bids() -> None:
    kinds = Counter(tuple(sorted(one.type for one in event.relationships)) for event in made(0, 1000, model="property"))
    assert kinds == {(): 20, ("IN", "SELLS"): 60, ("BIDS",): 920}


@pytest.mark.parametrize("options", SETTINGS)
def test_bids_are_numbered_and_rise_while_their_auction_is_open_and_sellers_do_not_bid(options: dict[str, int]) -> None:
    for auction in house(**options).values():
        assert [number for *_, number in auction.bids] == list(range(1, len(auction.bids) + 1))
        for (_, _, lower, _), (_, _, higher, _) in pairwise(auction.bids):
            assert lower < higher
        assert all(auction.opens_at < at < auction.closes_at for at, *_ in auction.bids)
        assert auction.seller not in [bidder for _, bidder, _, _ in auction.bids]


@pytest.mark.parametrize("options", SETTINGS)
def test_a_range_of_events_is_the_same_wherever_it_is_cut(options: dict[str, int]) -> None:
    whole = [event_to_dict(event) for event in made(0, 3000, **options)]
    draw = np.random.default_rng(3)
    for first in draw.integers(0, 2990, 25).tolist():
        stop = min(3000, first + int(draw.integers(1, 120)))
        assert [event_to_dict(event) for event in made(first, stop, **options)] == whole[first:stop]


@pytest.mark.parametrize("options", SETTINGS)
def test_both_models_tell_the_same_bids(options: dict[str, int]) -> None:
    item = f"{EBAY}Response.searchResult.item."
    for triples, graph in zip(made(900, 1100, **options), made(900, 1100, model="property", **options), strict=True):
        assert triples.event_time == graph.event_time
        said = {
            (one.subject, one.predicate.value): one.object for one in triples.triples if isinstance(one.predicate, Iri)
        }
        bids = [one for one in graph.relationships if one.type == "BIDS"]
        if not bids:
            assert not any(key[1] == f"{item}bid" for key in said)
            continue
        subject, bid = next((key[0], term) for key, term in said.items() if key[1] == f"{item}bid")
        (one,) = bids
        assert (subject, bid) == (Iri(f"{THINGS}item/{str(one.target)[1:]}"), Iri(f"{THINGS}bid/{str(one.id)[1:]}"))
        assert said[bid, f"{item}bid.bidder"] == Iri(f"{THINGS}person/{str(one.source)[1:]}")
        texts = {name: said[bid, f"{item}bid.{name}"][0] for name in ("amount", "number", "time")}
        assert float(texts["amount"]) == one.properties["price"]
        assert int(texts["number"]) == one.properties["number"]
        assert parse_instant(texts["time"]) == parse_instant(str(one.properties["at"])) == graph.event_time
        assert said[subject, f"{item}sellingStatus.currentPrice"] == said[bid, f"{item}bid.amount"]
        assert said[subject, f"{item}title"] == Literal(str(graph.nodes[1].properties["title"]))


def test_a_new_item_says_the_same_in_both_models() -> None:
    item = f"{EBAY}Response.searchResult.item."
    for triples, graph in zip(made(1, 4, seed=3), made(1, 4, seed=3, model="property"), strict=True):
        said = {one.predicate[0].removeprefix(item): one.object[0] for one in triples.triples}
        seller, node, category = graph.nodes
        told = node.properties
        assert said["title"] == told["title"]
        assert said["keyword"] == told["keyword"]
        assert (said["primaryCategory.categoryName"], said["sellerInfo.sellerUserName"]) == (
            category.properties["name"],
            seller.properties["name"],
        )
        assert (float(said["sellingStatus.currentPrice"]), said["sellingStatus.bidCount"]) == (told["price"], "0")
        for name, property_name in (("startTime", "opens_at"), ("endTime", "closes_at")):
            assert parse_instant(said[f"listingInfo.{name}"]) == parse_instant(str(told[property_name]))
        assert said["listingInfo.buyItNowAvailable"] == ("true" if "buy_now" in told else "false")
        assert float(said.get("listingInfo.buyItNowPrice", 0)) == told.get("buy_now", 0)


def late_winners(**options: Any) -> Counter[object]:
    """Who won with a bid in the last two seconds; auctions that are over."""
    auctions = house(**options).values()
    end = max(at for auction in auctions for at, *_ in auction.bids)
    return Counter(
        auction.bids[-1][1]
        for auction in auctions
        if auction.closes_at <= end and auction.bids and auction.closes_at - auction.bids[-1][0] <= 2_000_000
    )


def test_three_snipers_win_again_and_again_in_the_last_moment() -> None:
    assert {person for person, won in late_winners(snipers=4).items() if won > 5} == {"p1", "p2", "p3"}
    assert max(late_winners(snipers=0).values()) <= 5


@pytest.mark.parametrize(("jumps", "least", "most"), [(0, 0, 0), (50, 80, 130), (10, 400, 600)])
def test_one_bid_in_so_many_at_least_doubles_the_price(jumps: int, least: int, most: int) -> None:
    pairs = [pair for auction in house(jumps=jumps).values() for pair in pairwise(auction.bids)]
    assert least <= sum(high[2] >= 2 * low[2] for low, high in pairs) <= most


def components(auctions: dict[object, Auction]) -> list[set[object]]:
    """Who hangs together by selling and bidding, by merging sets."""
    found: list[set[object]] = []
    for item, auction in auctions.items():
        joined = {item, auction.seller, *(bidder for _, bidder, _, _ in auction.bids)}
        apart = [one for one in found if one.isdisjoint(joined)]
        for one in found:
            if not one.isdisjoint(joined):
                joined |= one
        found = [*apart, joined]
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_ring_is_a_component_in_which_everybody_sells_and_everybody_bids(seed: int) -> None:
    auctions = house(5000, rings=1, seed=seed)  # five whole periods
    crowd, *rings = sorted((one for one in components(auctions) if len(one) > 2), key=len, reverse=True)
    assert len(crowd) > 300
    assert len(rings) == 5
    for ring in rings:
        sellers = {auctions[item].seller for item in ring & auctions.keys()}
        bidders = {bidder for item in ring & auctions.keys() for _, bidder, _, _ in auctions[item].bids}
        assert 3 <= len(sellers) <= 5
        assert sellers == bidders == ring - auctions.keys()
    assert len([one for one in components(house(5000, rings=0, seed=seed)) if len(one) > 2]) == 1


def test_some_items_and_bidders_are_hot() -> None:
    auctions = house()
    counts = sorted((len(auction.bids) for auction in auctions.values()), reverse=True)
    assert counts[5] > 5 * counts[len(counts) // 2]
    bidders = Counter(bidder for auction in auctions.values() for _, bidder, _, _ in auction.bids)
    assert bidders.most_common(1)[0][1] > 3 * sum(bidders.values()) / len(bidders)
    cold = sorted((len(auction.bids) for auction in house(hot=0).values()), reverse=True)
    assert cold[5] < 5 * cold[len(cold) // 2]


@pytest.mark.parametrize("wanted", [30, 120])
def test_about_so_many_auctions_are_open_at_a_time(wanted: int) -> None:
    auctions = house(open=wanted).values()
    at = max(auction.opens_at for auction in auctions)
    assert 0.6 * wanted < sum(auction.opens_at <= at < auction.closes_at for auction in auctions) < 1.5 * wanted


def test_prices_spread_over_orders_of_magnitude() -> None:
    values = np.sort(AuctionHouse(HouseSettings()).values(np.arange(2000)))
    assert values[100] * 50 < values[-100]
    assert values[0] >= 256


def test_an_event_comes_each_tenth_of_a_second_unless_a_step_is_given() -> None:
    first, second = made(0, 2)
    assert second.event_time - first.event_time == 100_000
    first, second = made(0, 2, step="PT3S")
    assert second.event_time - first.event_time == 3_000_000


def test_instants_before_1970_are_written_too() -> None:
    times = made(0, ROUND, start="1969-12-31T23:59:58Z")
    for event in times[4:]:
        (text,) = [one.object[0] for one in event.triples if one.predicate[0].endswith("bid.time")]
        assert event_to_dict(event)["at"] == text


def test_the_stream_stays_the_same_from_version_to_version() -> None:
    (bid,) = made(1234, 1235, seed=7, model="property")
    assert event_to_dict(bid) == STILL


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "xml"}, "gen:auctions: model=xml: it is rdf or property"),
        ({"open": "1"}, "gen:auctions: open=1: it goes from 12 to 3000"),
        ({"sniper": "1"}, "there is no option sniper\nhint: did you mean snipers?"),
        ({"user": "1"}, "\n  step: the time between two events (PT0.1S)"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(StreamError) as refused:
        GeneratorSource("s", "auctions", options)
    assert message in str(refused.value)


STILL: dict[str, Any] = {
    "at": "2022-10-14T14:47:03.4Z",
    "nodes": [
        {"id": "p6", "labels": ["Person"], "properties": {"id": 6, "name": "Vera Bauer"}},
        {
            "id": "i61",
            "labels": ["Item"],
            "properties": {
                "id": 61,
                "title": "Original Stahlbau drill",
                "price": 283.0,
                "bids": 68,
                "closes_at": {"$datetime": "2022-10-14T14:49:10.1Z"},
            },
        },
    ],
    "relationships": [
        {
            "id": "b1235",
            "type": "BIDS",
            "from": "p6",
            "to": "i61",
            "properties": {"price": 283.0, "number": 68, "at": {"$datetime": "2022-10-14T14:47:03.4Z"}},
        }
    ],
}
