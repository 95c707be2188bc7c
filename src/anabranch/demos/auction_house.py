"""The numbers of a generated auction house: registrations, items, bids, and the closing of auctions.

After the model of NEXMark (Tucker, Tufte, Papadimos and Maier, 2002): of 50 events one is a person, three are items
that are put up, 46 are bids; some items and some bidders are hot, prices spread over orders of magnitude. Beyond it,
auctions close, bids rise, and three things happen that are worth finding: a sniper bids last, right before the close; a
bid doubles the price at once; a ring of people bids on its own items, on which no other person bids.

A bid depends on the earlier bids on the same item. Auctions last a bounded number of events, so all of these lie within
a bounded stretch before it: a range of events is computed from the hashes of that range and of the stretch before.
Work: O(n + stretch) hashes for n events, and a pass for each of the greatest number of bids on one item.

Invariant: the content of event i is a function of the settings and of i alone, and only integers decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from anabranch.demos.auction_words import ADJECTIVES, CITIES, FIRST_NAMES, LAST_NAMES, TRADES
from anabranch.demos.chance import DrawnNumbers, chosen

ROUND = 50
"""Events of a round: a person, items, bids."""
ITEMS = 3
FIRST_BID = 1 + ITEMS
OLD_HANDS = 20
"""People who were there before the stream began; the person of round r has the number OLD_HANDS + r."""
SNIPERS = 3
"""So many of the old hands are the snipers."""
HOT_ROUNDS = 10
"""A new hot item, and a new hot bidder, each so many rounds."""
RING_ROUNDS = 20
"""A ring lives in one period of so many rounds: members register, put up an item each, and bid."""

_RING_SELLS_FROM = 5
_RING_LASTS = 16  # rounds that a ring's item is up: longer than the ring bids
_REACH = 100  # bidders are among the last so many registered people
_SELLERS_REACH = 50
_TRIES = 6
_LAST_MOMENT = 15  # events
_FOOLISH = 256  # times its value is too much to be doubled

DrawnFlags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


@dataclass(frozen=True, slots=True)
class HouseSettings:
    """How many auctions are open at a time, about, and one in how many bids, auctions, periods is special; 0: none."""

    seed: int = 0
    open: int = 60
    hot: int = 3
    snipers: int = 20
    jumps: int = 200
    rings: int = 2


@dataclass(frozen=True, slots=True)
class Bids:
    """Bids in the order of their events: columns of one length. Prices are cents; `counts` is 1 for an item's first
    bid.
    """

    numbers: DrawnNumbers
    items: DrawnNumbers
    bidders: DrawnNumbers
    counts: DrawnNumbers
    prices: DrawnNumbers


class AuctionHouse:
    """The events of an auction house, as columns of numbers."""

    def __init__(self, settings: HouseSettings) -> None:
        self._settings = settings
        self._seed = settings.seed
        self._longest = settings.open // 2  # rounds
        self._stretch = max(self._longest, HOT_ROUNDS + 1, RING_ROUNDS) + 1

    # --- people -------------------------------------------------------------------------------------------------------

    def names(self, people: DrawnNumbers) -> list[str]:
        first = self._chosen(len(FIRST_NAMES), 20, people).tolist()
        last = self._chosen(len(LAST_NAMES), 21, people).tolist()
        return [f"{FIRST_NAMES[one]} {LAST_NAMES[other]}" for one, other in zip(first, last, strict=True)]

    def cities(self, people: DrawnNumbers) -> list[str]:
        return [CITIES[one] for one in self._chosen(len(CITIES), 22, people).tolist()]

    def ring_sizes(self, periods: DrawnNumbers) -> DrawnNumbers:
        """Return how many members the ring of a period has; 0 where there is none."""
        if self._settings.rings == 0:
            return np.zeros_like(periods)
        there = (self._chosen(self._settings.rings, 23, periods) == 0) & (periods >= 0)
        return np.where(there, 3 + self._chosen(3, 24, periods), 0)

    def in_ring(self, people: DrawnNumbers) -> DrawnFlags:
        periods, place = np.divmod(people - OLD_HANDS, RING_ROUNDS)
        return place < self.ring_sizes(periods)

    # --- items --------------------------------------------------------------------------------------------------------

    def opens(self, items: DrawnNumbers) -> DrawnNumbers:
        """The event that puts an item up."""
        rounds, place = np.divmod(items, ITEMS)
        return rounds * ROUND + 1 + place

    def closes(self, items: DrawnNumbers) -> DrawnNumbers:
        """The event at whose instant an auction is over: bids come before it."""
        longest = self._longest * ROUND
        lasting = longest // 3 + self._chosen(longest - longest // 3, 25, items)
        hot = items % (ITEMS * HOT_ROUNDS) == 0
        lasting = np.where(hot, max(longest, (HOT_ROUNDS + 1) * ROUND), lasting)
        return self.opens(items) + np.where(self.of_ring(items), _RING_LASTS * ROUND, lasting)

    def of_ring(self, items: DrawnNumbers) -> DrawnFlags:
        rounds, place = np.divmod(items, ITEMS)
        periods, at = np.divmod(rounds, RING_ROUNDS)
        seller = at - _RING_SELLS_FROM
        found: DrawnFlags = (place == ITEMS - 1) & (seller >= 0) & (seller < self.ring_sizes(periods))
        return found

    def sniped(self, items: DrawnNumbers) -> DrawnFlags:
        if self._settings.snipers == 0:
            return np.zeros(len(items), np.bool_)
        found: DrawnFlags = (self._chosen(self._settings.snipers, 26, items) == 0) & ~self.of_ring(items)
        return found

    def sellers(self, items: DrawnNumbers) -> DrawnNumbers:
        rounds = items // ITEMS
        known = OLD_HANDS + rounds + 1  # the round's person has registered before
        sellers = known - 1 - self._chosen(1 << 40, 27, items) % np.minimum(known, _SELLERS_REACH)
        sellers = np.where(self.in_ring(sellers), self._chosen(OLD_HANDS, 28, items), sellers)
        own = OLD_HANDS + rounds // RING_ROUNDS * RING_ROUNDS + rounds % RING_ROUNDS - _RING_SELLS_FROM
        return np.where(self.of_ring(items), own, sellers)

    def trades(self, items: DrawnNumbers) -> DrawnNumbers:
        """The categories, as places in TRADES."""
        return self._chosen(len(TRADES), 29, items)

    def titles(self, items: DrawnNumbers) -> list[tuple[str, str]]:
        """Title and keyword."""
        adjectives, brands = self._chosen(len(ADJECTIVES), 30, items), self._chosen(4, 31, items)
        columns = (self.trades(items), adjectives, brands, self._chosen(3, 32, items))
        titles = []
        for trade, adjective, brand, thing in zip(*(column.tolist() for column in columns), strict=True):
            word = TRADES[trade].things[thing]
            titles.append((f"{ADJECTIVES[adjective]} {TRADES[trade].brands[brand]} {word}", word))
        return titles

    def values(self, items: DrawnNumbers) -> DrawnNumbers:
        """Return the value of each item, in cents: spread evenly from each power of two to the next."""
        least = np.array([trade.octave for trade in TRADES], np.int64)[self.trades(items)]
        octaves: DrawnNumbers = np.left_shift(np.int64(1), least + self._chosen(4, 33, items))
        values: DrawnNumbers = octaves + self._chosen(1 << 40, 34, items) % octaves
        return values

    def start_prices(self, items: DrawnNumbers) -> DrawnNumbers:
        return np.maximum(self.values(items) // 20, 10) * 5

    def buy_now_prices(self, items: DrawnNumbers) -> DrawnNumbers:
        """0 where an item is sold by auction alone."""
        return np.where(self._chosen(4, 35, items) == 0, self.values(items) * 3 // 100 * 100 + 99, 0)

    # --- bids ---------------------------------------------------------------------------------------------------------

    def bids(self, first: int, stop: int) -> Bids:
        """The bids among the events from `first` to before `stop`."""
        since = max(0, first // ROUND - self._stretch) * ROUND
        numbers = np.arange(since, stop, dtype=np.int64)
        numbers = numbers[numbers % ROUND >= FIRST_BID]
        items = self._items_of(numbers)
        wanted = np.unique(items[numbers >= first])
        kept = np.isin(items, wanted, kind="sort")
        numbers, items = numbers[kept], items[kept]
        counts, prices = self._rising(numbers, items)
        asked = numbers >= first
        numbers, items = numbers[asked], items[asked]
        return Bids(numbers, items, self._bidders(numbers, items), counts[asked], prices[asked])

    def _items_of(self, numbers: DrawnNumbers) -> DrawnNumbers:
        """Return the item of each bid, from a run of events on."""
        if len(numbers) == 0:
            return numbers
        rounds = numbers // ROUND
        oldest = max(0, int(rounds[0]) - self._stretch) * ITEMS
        known = np.arange(oldest, (int(rounds[-1]) + 1) * ITEMS, dtype=np.int64)
        snipes = np.where(self.sniped(known), self._snipes(known), -1)
        # Only a ring bids on its items, and no bidder comes after a sniper.
        ends = np.where(self.of_ring(known), -1, np.where(snipes >= 0, snipes, self.closes(known)))
        opens = self.opens(known)
        items = rounds * ITEMS + self._chosen(2, 36, numbers)  # just put up: surely open
        found = np.zeros(len(numbers), np.bool_)
        among = np.minimum(rounds + 1, self._longest) * ITEMS
        for attempt in range(_TRIES + 1):
            if attempt == 0:
                if self._settings.hot == 0:
                    continue
                candidates = rounds // HOT_ROUNDS * HOT_ROUNDS * ITEMS
                able = self._chosen(self._settings.hot, 37, numbers) == 0
            else:
                candidates = (rounds + 1) * ITEMS - 1 - self._chosen(1 << 40, 37 + attempt, numbers) % among
                able = np.ones(len(numbers), np.bool_)
            places = np.maximum(candidates - oldest, 0)
            able &= ~found & (candidates >= oldest) & (opens[places] < numbers) & (numbers < ends[places])
            items = np.where(able, candidates, items)
            found |= able
        return self._overridden(numbers, items, known, snipes)

    def _overridden(
        self, numbers: DrawnNumbers, items: DrawnNumbers, known: DrawnNumbers, snipes: DrawnNumbers
    ) -> DrawnNumbers:
        """Events that belong to snipers, the oldest item first, and before them to rings."""
        at = np.full(int(numbers[-1]) - int(numbers[0]) + 1, -1, np.int64)
        inside = (snipes >= numbers[0]) & (snipes <= numbers[-1])
        at[snipes[inside][::-1] - numbers[0]] = known[inside][::-1]
        taken = at[numbers - numbers[0]]
        items = np.where(taken >= 0, taken, items)
        ring = self._ring_bids(numbers)
        return np.where(ring[0] >= 0, ring[0], items)

    def _snipes(self, items: DrawnNumbers) -> DrawnNumbers:
        """The last event with a bid before the last moment."""
        last = self.closes(items) - 1 - self._chosen(_LAST_MOMENT, 50, items)
        rounds, place = np.divmod(last, ROUND)
        return np.where(place >= FIRST_BID, last, rounds * ROUND - 1)

    def _ring_bids(self, numbers: DrawnNumbers) -> tuple[DrawnNumbers, DrawnNumbers]:
        """Return the item that a ring bids on in each of these events, and the bidding member; -1 where none bids."""
        rounds, place = np.divmod(numbers, ROUND)
        periods, at = np.divmod(rounds, RING_ROUNDS)
        sizes = self.ring_sizes(periods)
        turn = at - _RING_SELLS_FROM - sizes
        bidding = (sizes > 0) & (turn >= 0) & (place == FIRST_BID + self._chosen(ROUND - FIRST_BID, 51, rounds))
        sizes = np.maximum(sizes, 3)
        # In the first turns each bids on the next one's item: a circle, so that all members are connected.
        lap, seller = np.divmod(np.maximum(turn, 0), sizes)
        bidder = (seller + 1 + lap % (sizes - 1)) % sizes
        begun = periods * RING_ROUNDS
        items = (begun + _RING_SELLS_FROM + seller) * ITEMS + ITEMS - 1
        return np.where(bidding, items, -1), np.where(bidding, OLD_HANDS + begun + bidder, -1)

    def _bidders(self, numbers: DrawnNumbers, items: DrawnNumbers) -> DrawnNumbers:
        sellers = self.sellers(items)
        rounds = numbers // ROUND
        known = OLD_HANDS + rounds + 1
        old = self._chosen(OLD_HANDS, 52, numbers)
        bidders = np.where(old == sellers, (old + 1) % OLD_HANDS, old)
        found = np.zeros(len(numbers), np.bool_)
        for attempt in range(4):
            if attempt == 0:  # the hot bidder registered when no ring does
                candidates = OLD_HANDS + np.maximum(rounds // HOT_ROUNDS * HOT_ROUNDS - 1, -1)
                able = self._chosen(5, 53, numbers) == 0
            else:
                candidates = known - 1 - self._chosen(1 << 40, 53 + attempt, numbers) % np.minimum(known, _REACH)
                able = np.ones(len(numbers), np.bool_)
            able &= ~found & (candidates != sellers) & ~self.in_ring(candidates)
            bidders = np.where(able, candidates, bidders)
            found |= able
        snipers = self._chosen(SNIPERS, 60, items)
        snipers = np.where(snipers == sellers, (snipers + 1) % SNIPERS, snipers)
        sniping = self.sniped(items) & (self._snipes(items) == numbers)
        ring = self._ring_bids(numbers)[1]
        return np.where(ring >= 0, ring, np.where(sniping, snipers, bidders))

    def _rising(self, numbers: DrawnNumbers, items: DrawnNumbers) -> tuple[DrawnNumbers, DrawnNumbers]:
        """Return the count and the price of each bid, for items whose bids are all given."""
        groups, of = np.unique(items, return_inverse=True)
        order = np.argsort(of, kind="stable")
        begins = np.searchsorted(of[order], np.arange(len(groups)))
        counts = np.empty(len(items), np.int64)
        counts[order] = np.arange(len(items)) - begins[of[order]] + 1
        shares = np.left_shift(np.int64(4) + self._chosen(4, 61, numbers), self._chosen(4, 62, numbers))
        steps = np.maximum(self.values(items) * shares // 1024 // 5, 5) * 5
        jumps = self._settings.jumps
        doubles = self._chosen(jumps, 63, numbers) == 0 if jumps else np.zeros(len(numbers), np.bool_)
        prices = np.empty(len(items), np.int64)
        standing = self.start_prices(groups)
        dear = self.values(groups) * _FOOLISH
        by_count = np.argsort(counts, kind="stable")
        bounds = np.searchsorted(counts[by_count], np.arange(1, int(counts.max(initial=0)) + 2))
        for first, stop in pairwise(bounds.tolist()):
            rows = by_count[first:stop]
            item = of[rows]
            before = standing[item]
            # A first bid is compared with nothing, and doubling again and again would leave 64 bits.
            doubling = doubles[rows] & (counts[rows] > 1) & (before < dear[item])
            standing[item] = before + steps[rows] + np.where(doubling, before, 0)
            prices[rows] = standing[item]
        return counts, prices

    def _chosen(self, among: int, purpose: int, *parts: DrawnNumbers) -> DrawnNumbers:
        return chosen(among, self._seed, purpose, *parts)
