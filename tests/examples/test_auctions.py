"""The queries over made-up auctions say what counting by hand over the same events says."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anabranch.cli.app import app
from anabranch.demos.auctions import EBAY
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Triple
from anabranch.sources.base import as_event
from anabranch.sources.generators import GeneratorSource

FOLDER = Path(__file__).parents[2] / "examples" / "auctions"
ITEM = f"{EBAY}Response.searchResult.item."
COUNT = 5000
SECOND = 1_000_000


@cache
def events(model: str = "rdf") -> list[Event]:
    source = GeneratorSource("s", "auctions", {"model": model})
    pieces = source.pieces({"next": 0}, {"next": COUNT})
    return [one for piece in pieces for one in source.read(piece, as_event) if isinstance(one, Event)]


def answers(file: str, model: str = "rdf") -> list[tuple[int, dict[str, Any]]]:
    """The rows with their instants."""
    stream = f"auctions=gen:auctions?count={COUNT}&model={model}"
    arguments = ["run", str(FOLDER / file), "-s", stream, "-o", "json", "--quiet", "--engine", "local"]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(parse_instant(one["at"]), one["row"]) for one in told]


def instants(every: int) -> Iterator[int]:
    """The multiples of a pause, from the first event up to the last; then one more, which sees the rest."""
    first, last = events()[0].event_time, events()[-1].event_time
    yield from range(-(-first // every) * every, last + every, every)


def text(term: Any) -> str:
    return str(term[0])


# --- Figure 6 ---------------------------------------------------------------------------------------------------------


def test_figure_6_lists_the_bids_among_the_last_hundred_triples_with_their_average_least_greatest_and_sum() -> None:
    told: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for at, row in answers("figure6.lupos"):
        told[at].append(row)
    came: list[Triple] = []
    coming = iter(events())
    waiting = next(coming)
    rows = 0
    for at in instants(SECOND):
        while waiting is not None and waiting.event_time <= at:
            came += waiting.triples
            waiting = next(coming, None)  # type: ignore[assignment]
        window = set(came[-100:])  # arrivals: a triple may be among them twice
        titles = {one.subject: text(one.object) for one in window if text(one.predicate) == f"{ITEM}title"}
        price = f"{ITEM}sellingStatus.currentPrice"
        bids = [(one.subject, Decimal(text(one.object))) for one in window if text(one.predicate) == price]
        expected = [(text(item), titles[item], bid) for item, bid in bids if item in titles]
        found = [(row["id"], row["title"], Decimal(str(row["bid"]))) for row in told.get(at, [])]
        assert sorted(found) == sorted(expected), at
        values = [bid for _, _, bid in expected]
        for row in told.get(at, []):
            said = [Decimal(str(row[name])) for name in ("min", "max", "sum")]
            assert said == [min(values), max(values), sum(values)]
            assert abs(Decimal(str(row["avg"])) - sum(values) / len(values)) < Decimal("0.000001")
        rows += len(expected)
    assert rows > 4000
    assert set(told) <= set(instants(SECOND))


# --- jumps ------------------------------------------------------------------------------------------------------------


Jump = tuple[int, str, str, float, float]


@cache
def jumps() -> list[tuple[int, int, Jump]]:
    """When the bid before came, when the bid came, and (item, title, bidder, price before, price)."""
    names = {node.id: str(node.properties["name"]) for event in events("property") for node in event.nodes[:1]}
    bids: dict[object, list[tuple[int, Any, Any]]] = defaultdict(list)
    for event in events("property"):
        for one in event.relationships:
            if one.type == "BIDS":
                bids[one.target].append((event.event_time, one, event.nodes[1].properties))
    found = []
    for of_item in bids.values():
        for (before, low, _), (at, high, item) in pairwise(of_item):
            was, price = low.properties["price"], high.properties["price"]
            if price >= 2 * was:
                found.append((before, at, (item["id"], item["title"], names[high.source], was, price)))
    return found


def test_price_jumps_in_seraph_are_the_bids_that_double_the_one_before_each_told_once() -> None:
    rows = answers("price_jumps.seraph", "property")
    told = Counter((row["item"], row["title"], row["bidder"], row["was"], row["price"]) for _, row in rows)
    near = [jump for before, at, jump in jumps() if at - before < 20 * SECOND]
    assert len(near) > 10
    assert told == Counter(near)


def test_price_jumps_in_c_sparql_are_the_same_at_each_instant_while_both_bids_are_in_the_window() -> None:
    told = Counter(
        (at, int(row["item"].rpartition("/")[2]), row["title"], row["bidder"], float(row["was"]), float(row["price"]))
        for at, row in answers("price_jumps.csparql")
    )
    expected = Counter(
        (at, *jump)
        for at in instants(10 * SECOND)
        for before, after, jump in jumps()
        if at - 30 * SECOND < before and after <= at
    )
    assert len(expected) > 10
    assert told == expected


# --- busy items, snipers, rings ---------------------------------------------------------------------------------------


def test_the_busiest_items_are_those_with_ten_bids_in_the_last_minute_in_both_languages() -> None:
    expected = []
    bids = [
        (event.event_time, f"http://auctions.example/item/{str(one.target)[1:]}", event.nodes[1], one)
        for event in events("property")
        for one in event.relationships
        if one.type == "BIDS"
    ]
    for at in instants(SECOND):
        amounts: dict[str, list[float]] = defaultdict(list)
        title: dict[str, Any] = {}
        for time, item, node, bid in bids:
            if at - 60 * SECOND < time <= at:
                amounts[item].append(bid.properties["price"])  # type: ignore[arg-type]
                title[item] = node.properties["title"]
        for item, paid in sorted(amounts.items()):
            if len(paid) >= 10:
                expected.append((at, item, title[item], len(paid), pytest.approx(sum(paid) / len(paid)), max(paid)))
    assert len(expected) > 1000
    for file in ("busiest_items.csparql", "busiest_items.rspql"):
        found = [
            (at, row["item"], row["title"], row["bids"], float(row["avg"]), float(row["max"]))
            for at, row in answers(file)
        ]
        assert found == expected, file


def test_snipers_are_those_who_won_three_auctions_by_a_bid_in_the_last_two_seconds() -> None:
    bids: dict[object, list[tuple[int, object, int]]] = defaultdict(list)
    for event in events("property"):
        for one in event.relationships:
            if one.type == "BIDS":
                closes: Any = event.nodes[1].properties["closes_at"]
                bids[one.target].append((event.event_time, one.source, closes.to_epoch_micros()))
    expected = set()
    for at in instants(60 * SECOND):
        won: Counter[object] = Counter()
        for of_item in bids.values():
            in_time = [bid for bid in of_item if bid[0] <= at]
            if not in_time:
                continue
            last, bidder, closes_at = in_time[-1]
            if at - 300 * SECOND < last and closes_at <= at and closes_at - last <= 2 * SECOND:
                won[bidder] += 1
        expected |= {(at, person, times) for person, times in won.items() if times >= 3}
    found = {(at, f"p{row['person']}", row["won"]) for at, row in answers("snipers.seraph", "property")}
    assert found == expected
    assert {"p1", "p2", "p3"} & {person for _, person, _ in found}


def test_bidding_rings_are_the_components_in_which_everybody_sells_and_everybody_bids() -> None:
    expected = set()
    for at in instants(30 * SECOND):
        sold, bid = {}, defaultdict(list)
        for event in events("property"):
            if at - 120 * SECOND < event.event_time <= at:
                for one in event.relationships:
                    if one.type == "SELLS":
                        sold[one.target] = one.source
                    elif one.type == "BIDS":
                        bid[one.target].append(one.source)
        for group in _groups([*sold.items(), *((item, person) for item in bid for person in bid[item])]):
            items = [item for item in group if item in sold and bid[item]]
            sellers = {sold[item] for item in items}
            bidders = {person for item in items for person in bid[item]}
            if len(sellers) >= 3 and sellers == bidders:
                members = tuple(sorted(int(str(person)[1:]) for person in sellers))
                expected.add((at, len(group), members, sum(len(bid[item]) for item in items)))
    found = {
        (at, row["size"], tuple(sorted(row["sellers"])), row["bids"])
        for at, row in answers("bidding_rings.seraph", "property")
    }
    assert found == expected
    assert {members for _, _, members, _ in found} == {(61, 62, 63, 64, 65), (101, 102, 103)}


def _groups(links: list[tuple[Any, Any]]) -> list[set[Any]]:
    """Sets of what hangs together."""
    of: dict[Any, set[Any]] = {}
    for one, other in links:
        joined = of.get(one, {one}) | of.get(other, {other})
        for member in joined:
            of[member] = joined
    return list({id(group): group for group in of.values()}.values())
