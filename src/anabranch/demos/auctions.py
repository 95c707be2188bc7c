"""Made-up auctions as events: RDF in the words of the LUPOS paper's auction query, or a property graph.

    person   <person/7> user.userName "Ada Novak" ; user.city "Turku"
    item     <item/3> title, keyword, primaryCategory, sellerInfo, sellingStatus.currentPrice, listingInfo.endTime, ...
    bid      <item/3> title, sellingStatus.currentPrice, sellingStatus.bidCount, listingInfo.endTime, bid <bid/104>
             <bid/104> bid.amount, bid.number, bid.time, bid.bidder <person/7>

The properties are those of an item in an answer of findItemsByKeywords (Groppe et al., Using a Streaming SPARQL
Evaluator for Monitoring eBay Auctions, 2011, Figure 6), written as paths; what that service does not tell (bids,
people, keywords) is written the same way. As there, an item whose price changes is emitted with its title, so that a
window of the last triples holds both.

    (:Person {id, name, city})-[:SELLS]->(:Item {id, title, keyword, price, bids, opens_at, closes_at, buy_now})
    (:Person {id, name})-[:BIDS {price, number, at}]->(:Item {id, title, price, bids, closes_at})-[:IN]->(:Category)

Invariant: both models tell the same facts at the same instants; event i is a function of the settings and of i alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from anabranch.demos.auction_house import FIRST_BID, ITEMS, OLD_HANDS, ROUND, AuctionHouse, Bids, HouseSettings
from anabranch.demos.auction_words import TRADES
from anabranch.demos.chance import DrawnNumbers, EventClock, Generator, whole
from anabranch.errors import StreamError
from anabranch.model.event import Event
from anabranch.model.instants import MICROS_PER_DAY, MICROS_PER_SECOND, format_instant
from anabranch.model.temporal import Date, DateTime, LocalTime
from anabranch.model.terms import FALSE, TRUE, XSD_DATE_TIME, XSD_DECIMAL, XSD_INTEGER, Iri, Literal, Term, Triple
from anabranch.model.values import Node, Relationship

EBAY = "http://developer.ebay.com/DevZone/finding/CallRef/findItemsByKeywords.html#"
THINGS = "http://auctions.example/"

_MODELS = ("rdf", "property")
_BLOCK = 20_000
_MOST = 1 << 24


class Auctions(Generator):
    """An auction house: of 50 events one is a person, three are items, 46 are bids."""

    options: ClassVar[Mapping[str, str]] = {
        "model": "rdf (triples in the words of the LUPOS paper) or property (nodes and relationships) (rdf)",
        "open": "how many auctions are open at a time, about (60)",
        "hot": "one bid in so many goes to the hot item of the moment; 0 for none (3)",
        "snipers": "one auction in so many is won by a bid in the last moment; 0 for none (20)",
        "jumps": "one bid in so many at least doubles the price; 0 for none (200)",
        "rings": "in one of so many periods a ring of people bids on its own items; 0 for none (2)",
    }
    step: ClassVar[str] = "PT0.1S"

    def __init__(self, seed: int, clock: EventClock, options: Mapping[str, str]) -> None:
        model = options.get("model", "rdf")
        if model not in _MODELS:
            raise StreamError(f"model={model}: it is {' or '.join(_MODELS)}")
        settings = HouseSettings(
            seed,
            whole(options, "open", 60, 12, 3000),
            whole(options, "hot", 3, 0, _MOST),
            whole(options, "snipers", 20, 0, _MOST),
            whole(options, "jumps", 200, 0, _MOST),
            whole(options, "rings", 2, 0, _MOST),
        )
        self._house = AuctionHouse(settings)
        self._clock = clock
        self._teller: type[_Teller] = _Triples if model == "rdf" else _Nodes

    def events(self, first: int, stop: int) -> Iterator[Event]:
        for begin in range(first, stop, _BLOCK):
            yield from self._block(begin, min(begin + _BLOCK, stop))

    def _block(self, first: int, stop: int) -> Iterator[Event]:
        numbers = np.arange(first, stop, dtype=np.int64)
        rounds, places = np.divmod(numbers, ROUND)
        bids = self._house.bids(first, stop)
        put_up = (rounds * ITEMS + places - 1)[(places > 0) & (places < FIRST_BID)]
        items = np.unique(np.concatenate((bids.items, put_up)))
        new = rounds[places == 0] + OLD_HANDS
        people = np.unique(np.concatenate((bids.bidders, self._house.sellers(items), new)))
        teller = self._teller(self._house, self._clock, items, people)
        told = teller.bids(bids)
        times = self._clock.times(numbers).tolist()
        for place, round_number, at in zip(places.tolist(), rounds.tolist(), times, strict=True):
            if place >= FIRST_BID:
                yield next(told)
            elif place == 0:
                yield teller.person(at, OLD_HANDS + round_number)
            else:
                yield teller.item(at, round_number * ITEMS + place - 1)


# --- what a block tells -----------------------------------------------------------------------------------------------


class AuctionItem(NamedTuple):
    """An item's properties when it is put up; instants are microseconds, prices cents, 0 for none."""

    title: str
    keyword: str
    trade: int
    seller: int
    start_price: int
    buy_now_price: int
    closes_at: int


class _Teller(ABC):
    """Writes the events of a block. Properties of its items and people are computed once for all of them."""

    def __init__(self, house: AuctionHouse, clock: EventClock, items: DrawnNumbers, people: DrawnNumbers) -> None:
        self._clock = clock
        columns = (
            house.trades(items),
            house.sellers(items),
            house.start_prices(items),
            house.buy_now_prices(items),
            clock.times(house.closes(items)),
        )
        rows = zip(house.titles(items), *(column.tolist() for column in columns), strict=True)
        told = (AuctionItem(*words, *numbers) for words, *numbers in rows)
        self._items = dict(zip(items.tolist(), told, strict=True))
        self._names = dict(zip(people.tolist(), house.names(people), strict=True))
        self._cities = dict(zip(people.tolist(), house.cities(people), strict=True))

    @abstractmethod
    def person(self, at: int, person: int) -> Event: ...

    @abstractmethod
    def item(self, at: int, item: int) -> Event: ...

    @abstractmethod
    def bids(self, bids: Bids) -> Iterator[Event]:
        """An event for each bid."""

    def _rows(self, bids: Bids) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Number, instant, item, bidder, count and price of each bid."""
        columns = (bids.numbers, self._clock.times(bids.numbers), bids.items, bids.bidders, bids.counts, bids.prices)
        return zip(*(column.tolist() for column in columns), strict=True)


def _property(path: str) -> Iri:
    return Iri(f"{EBAY}Response.{path}")


_TITLE = _property("searchResult.item.title")
_KEYWORD = _property("searchResult.item.keyword")
_CATEGORY = _property("searchResult.item.primaryCategory")
_CATEGORY_ID = _property("searchResult.item.primaryCategory.categoryId")
_CATEGORY_NAME = _property("searchResult.item.primaryCategory.categoryName")
_SELLER = _property("searchResult.item.sellerInfo")
_SELLER_NAME = _property("searchResult.item.sellerInfo.sellerUserName")
_PRICE = _property("searchResult.item.sellingStatus.currentPrice")
_BID_COUNT = _property("searchResult.item.sellingStatus.bidCount")
_START_TIME = _property("searchResult.item.listingInfo.startTime")
_END_TIME = _property("searchResult.item.listingInfo.endTime")
_BUY_NOW = _property("searchResult.item.listingInfo.buyItNowAvailable")
_BUY_NOW_PRICE = _property("searchResult.item.listingInfo.buyItNowPrice")
_BID = _property("searchResult.item.bid")
_AMOUNT = _property("searchResult.item.bid.amount")
_NUMBER = _property("searchResult.item.bid.number")
_TIME = _property("searchResult.item.bid.time")
_BIDDER = _property("searchResult.item.bid.bidder")
_USER_NAME = _property("user.userName")
_CITY = _property("user.city")


class _Triples(_Teller):
    def person(self, at: int, person: int) -> Event:
        name, city = Literal(self._names[person]), Literal(self._cities[person])
        return Event(at, triples=(Triple(_who(person), _USER_NAME, name), Triple(_who(person), _CITY, city)))

    def item(self, at: int, item: int) -> Event:
        told = self._items[item]
        pairs: list[tuple[Iri, Term]] = [
            (_TITLE, Literal(told.title)),
            (_KEYWORD, Literal(told.keyword)),
            (_CATEGORY, Iri(f"{THINGS}category/{told.trade + 1}")),
            (_CATEGORY_ID, Literal(str(told.trade + 1))),
            (_CATEGORY_NAME, Literal(TRADES[told.trade].name)),
            (_SELLER, _who(told.seller)),
            (_SELLER_NAME, Literal(self._names[told.seller])),
            (_PRICE, _money(told.start_price)),
            (_BID_COUNT, Literal("0", XSD_INTEGER)),
            (_START_TIME, _instant(at)),
            (_END_TIME, _instant(told.closes_at)),
            (_BUY_NOW, TRUE if told.buy_now_price else FALSE),
        ]
        if told.buy_now_price:
            pairs.append((_BUY_NOW_PRICE, _money(told.buy_now_price)))
        subject = Iri(f"{THINGS}item/{item + 1}")
        return Event(at, triples=tuple(Triple(subject, *pair) for pair in pairs))

    def bids(self, bids: Bids) -> Iterator[Event]:
        # A stream is made a hundred thousand events a second: terms are made without their constructors, once each.
        new, triple, literal = tuple.__new__, Triple, Literal
        known: dict[int, tuple[Iri, Triple, Triple]] = {}
        bidders = {who: (_who(who), Triple(_who(who), _USER_NAME, Literal(name))) for who, name in self._names.items()}
        counts = [Literal(str(count), XSD_INTEGER) for count in range(int(bids.counts.max(initial=0)) + 1)]
        text = _Texts()
        for number, at, item, bidder, count, price in self._rows(bids):
            if item not in known:
                told, one = self._items[item], Iri(f"{THINGS}item/{item + 1}")
                known[item] = (
                    one,
                    Triple(one, _TITLE, Literal(told.title)),
                    Triple(one, _END_TIME, _instant(told.closes_at)),
                )
            subject, title, end = known[item]
            who, named = bidders[bidder]
            amount = new(literal, (f"{price // 100}.{price % 100:02}", XSD_DECIMAL, ""))
            bid = new(Iri, (f"{THINGS}bid/{number + 1}",))
            triples = (
                title,
                new(triple, (subject, _PRICE, amount)),
                new(triple, (subject, _BID_COUNT, counts[count])),
                end,
                new(triple, (subject, _BID, bid)),
                new(triple, (bid, _AMOUNT, amount)),
                new(triple, (bid, _NUMBER, counts[count])),
                new(triple, (bid, _TIME, new(literal, (text(at), XSD_DATE_TIME, "")))),
                new(triple, (bid, _BIDDER, who)),
                named,
            )
            yield Event(at, (), (), triples)


class _Texts:
    """Instants as texts, as `format_instant` writes them. The second is written once for all of its events."""

    def __init__(self) -> None:
        self._second: int | None = None
        self._text = ""

    def __call__(self, at: int) -> str:
        second, micros = divmod(at, MICROS_PER_SECOND)
        if second != self._second:
            self._second, self._text = second, format_instant(second * MICROS_PER_SECOND).removesuffix("Z")
        return f"{self._text}.{micros:06}".rstrip("0") + "Z" if micros else f"{self._text}Z"


def _who(person: int) -> Iri:
    return Iri(f"{THINGS}person/{person + 1}")


def _money(cents: int) -> Literal:
    return Literal(f"{cents // 100}.{cents % 100:02}", XSD_DECIMAL)


def _instant(at: int) -> Literal:
    return Literal(format_instant(at), XSD_DATE_TIME)


class _Moments:
    """Instants as values. The day is made once for all of its events."""

    def __init__(self) -> None:
        self._day: int | None = None
        self._date = Date(1970, 1, 1)

    def __call__(self, at: int) -> DateTime:
        day, rest = divmod(at, MICROS_PER_DAY)
        if day != self._day:
            self._day, self._date = day, DateTime.from_epoch_micros(at).date
        seconds, micros = divmod(rest, MICROS_PER_SECOND)
        minutes, second = divmod(seconds, 60)
        return DateTime(self._date, LocalTime(minutes // 60, minutes % 60, second, micros * 1000))


class _Nodes(_Teller):
    def person(self, at: int, person: int) -> Event:
        properties = {"id": person + 1, "name": self._names[person], "city": self._cities[person]}
        return Event(at, (Node(f"p{person + 1}", ("Person",), properties),))

    def item(self, at: int, item: int) -> Event:
        told = self._items[item]
        properties: dict[str, object] = {
            "id": item + 1,
            "title": told.title,
            "keyword": told.keyword,
            "price": told.start_price / 100,
            "bids": 0,
            "opens_at": DateTime.from_epoch_micros(at),
            "closes_at": DateTime.from_epoch_micros(told.closes_at),
        }
        if told.buy_now_price:
            properties["buy_now"] = told.buy_now_price / 100
        node = Node(f"i{item + 1}", ("Item",), properties)
        seller = self._person(told.seller)
        trade = {"id": told.trade + 1, "name": TRADES[told.trade].name}
        category = Node(f"c{told.trade + 1}", ("Category",), trade)
        sells = Relationship(f"s{item + 1}", "SELLS", seller.id, node.id)
        belongs = Relationship(f"n{item + 1}", "IN", node.id, category.id)
        return Event(at, (seller, node, category), (sells, belongs))

    def bids(self, bids: Bids) -> Iterator[Event]:
        people = {person: self._person(person) for person in self._names}
        closes = {item: DateTime.from_epoch_micros(told.closes_at) for item, told in self._items.items()}
        moment = _Moments()
        for number, at, item, bidder, count, price in self._rows(bids):
            amount = price / 100
            properties = {
                "id": item + 1,
                "title": self._items[item].title,
                "price": amount,
                "bids": count,
                "closes_at": closes[item],
            }
            node, person = Node(f"i{item + 1}", ("Item",), properties), people[bidder]
            said = {"price": amount, "number": count, "at": moment(at)}
            yield Event(at, (person, node), (Relationship(f"b{number + 1}", "BIDS", person.id, node.id, said),))

    def _person(self, person: int) -> Node:
        return Node(f"p{person + 1}", ("Person",), {"id": person + 1, "name": self._names[person]})
