"""Generated streams: rentals of bikes, and random graphs; auctions have a file of their own (`auctions.py`).

Invariant: event number i is a function of the settings and of i alone; no event needs another one to be made first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from math import gcd
from typing import ClassVar

import numpy as np

from anabranch.demos.auctions import Auctions
from anabranch.demos.chance import DrawnNumbers, EventClock, Generator, chosen, whole
from anabranch.model.event import Event
from anabranch.model.instants import MICROS_PER_SECOND
from anabranch.model.values import Node, Relationship

_MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND
_RIDE = 15 * _MICROS_PER_MINUTE
_MOST = 1 << 24


class Bikes(Generator):
    """Rentals as in the running example. Every user rents, rides, returns and rents again, once in each round.

    A round has one event of each user, in an order of its own; a ride begins in an even round and ends in the next one,
    so that it takes one round on average and two at most. Students rent their next bike where they have returned the
    last one, others somewhere else. In each round every user has another bike.
    """

    options: ClassVar[Mapping[str, str]] = {
        "users": "how many people ride; a ride takes users * step on average (so many that it takes 15 minutes)",
        "stations": "how many stations there are, at least 4 (50)",
        "students": "one user in so many returns a bike and takes the next one right away; 0 for none (20)",
    }

    def __init__(self, seed: int, clock: EventClock, options: Mapping[str, str]) -> None:
        self._seed = seed
        self._clock = clock
        self._users = whole(options, "users", min(max(2, _RIDE // clock.step), 1_000_000), 1, _MOST)
        self._stations = whole(options, "stations", 50, 4, _MOST)
        self._students = whole(options, "students", 20, 0, _MOST)

    def events(self, first: int, stop: int) -> Iterator[Event]:
        numbers = np.arange(first, stop, dtype=np.int64)
        rounds, slots = np.divmod(numbers, self._users)
        users = self._shuffled(rounds, slots)
        rides, returns = np.divmod(rounds, 2)
        bikes = self._shuffled(-1 - rides, users)
        stations = np.where(returns == 1, self._returned_to(users, rides), self._rented_at(users, rides))
        times = self._clock.times(numbers)
        minutes = times // _MICROS_PER_MINUTE
        begun = self._clock.times((rounds - 1) * self._users + self._slot_of(rounds - 1, users))
        durations = minutes - begun // _MICROS_PER_MINUTE
        columns = (numbers, times, users, returns, bikes, stations, minutes % 1440, durations)
        for number, at, user, back, bike, station, minute, duration in zip(*(c.tolist() for c in columns), strict=True):
            properties: dict[str, object] = {"user_id": 1000 + user, "val_time": f"{minute // 60:02}:{minute % 60:02}"}
            if back:
                properties["duration"] = duration
            bike_node, station_node = self._bike(bike), self._station(station)
            kind = "returnedAt" if back else "rentedAt"
            one = Relationship(f"r{number + 1}", kind, bike_node.id, station_node.id, properties)
            yield Event(at, (bike_node, station_node), (one,))

    def _returned_to(self, users: DrawnNumbers, rides: DrawnNumbers) -> DrawnNumbers:
        """Even rides end in one half of the stations and odd ones in the other: two in a row never end at the same."""
        half = self._stations // 2
        return chosen(half, self._seed, 1, users, rides) * 2 + rides % 2

    def _rented_at(self, users: DrawnNumbers, rides: DrawnNumbers) -> DrawnNumbers:
        last, going_to = self._returned_to(users, rides - 1), self._returned_to(users, rides)
        place = chosen(self._stations, self._seed, 2, users, rides)
        for _ in range(2):  # two stations are out of the question
            place = np.where((place == last) | (place == going_to), (place + 1) % self._stations, place)
        if self._students == 0:
            return place
        student = chosen(self._students, self._seed, 3, users) == 0
        return np.where(student & (rides % 2 == 1), last, place)

    @cached_property
    def _multipliers(self) -> tuple[DrawnNumbers, DrawnNumbers]:
        """Numbers without a common divisor with that of the users, and their inverses: they make permutations."""
        found = list(islice((one for one in range(1, self._users + 1) if gcd(one, self._users) == 1), 1 << 10))
        return np.array(found), np.array([pow(one, -1, self._users) for one in found])

    def _shuffled(self, rounds: DrawnNumbers, places: DrawnNumbers) -> DrawnNumbers:
        multipliers, _ = self._multipliers
        which = chosen(len(multipliers), self._seed, 4, rounds)
        return (multipliers[which] * places + chosen(self._users, self._seed, 5, rounds)) % self._users

    def _slot_of(self, rounds: DrawnNumbers, users: DrawnNumbers) -> DrawnNumbers:
        multipliers, inverses = self._multipliers
        which = chosen(len(multipliers), self._seed, 4, rounds)
        return (inverses[which] * (users - chosen(self._users, self._seed, 5, rounds))) % self._users

    def _station(self, station: int) -> Node:
        return Node(station + 1, ("Station",), {"id": station + 1})

    def _bike(self, bike: int) -> Node:
        bike_id = self._stations + 1 + bike
        return Node(bike_id, ("Bike", "EBike") if bike % 3 == 0 else ("Bike",), {"id": bike_id})


class RandomGraph(Generator):
    """A random graph that grows: each event is a vertex with some relationships to others. Few vertices have many."""

    options: ClassVar[Mapping[str, str]] = {
        "nodes": "how many vertices there are (1000)",
        "labels": "how many labels: L0, L1, ...; each vertex has one (3)",
        "types": "how many types of relationships: T0, T1, ... (3)",
        "degree": "relationships in each event, all from one vertex (1)",
        "skew": "1 chooses all vertices alike; 2, 3, ... makes the first ones more and more popular (2)",
    }

    def __init__(self, seed: int, clock: EventClock, options: Mapping[str, str]) -> None:
        self._seed = seed
        self._clock = clock
        self._nodes = whole(options, "nodes", 1000, 2, 1 << 40)
        self._labels = whole(options, "labels", 3, 1, _MOST)
        self._types = whole(options, "types", 3, 1, _MOST)
        self._degree = whole(options, "degree", 1, 1, 1 << 16)
        self._skew = whole(options, "skew", 2, 1, 16)

    def events(self, first: int, stop: int) -> Iterator[Event]:
        numbers = np.arange(first, stop, dtype=np.int64)
        ends = np.repeat(numbers, self._degree)
        which = np.tile(np.arange(self._degree, dtype=np.int64), len(numbers))
        sources = self._popular(6, ends, np.zeros_like(which))
        targets = self._popular(7, ends, which)
        targets = np.where(targets == sources, (targets + 1) % self._nodes, targets)
        types = chosen(self._types, self._seed, 8, ends, which)
        weights = chosen(100, self._seed, 9, ends, which)
        columns = (sources, self._label(sources), targets, self._label(targets), types, weights)
        edges = zip(*(column.tolist() for column in columns), strict=True)
        for index, at in zip(range(first, stop), self._clock.times(numbers).tolist(), strict=True):
            nodes: dict[int, Node] = {}
            relationships = []
            for place in range(self._degree):
                source, source_label, target, target_label, kind, weight = next(edges)
                for node, label in ((source, source_label), (target, target_label)):
                    if node not in nodes:
                        nodes[node] = Node(node, (f"L{label}",), {"id": node})
                name = f"e{index + 1}" if self._degree == 1 else f"e{index + 1}.{place + 1}"
                relationships.append(Relationship(name, f"T{kind}", source, target, {"weight": weight}))
            yield Event(at, tuple(nodes.values()), tuple(relationships))

    def _popular(self, purpose: int, *parts: DrawnNumbers) -> DrawnNumbers:
        uniform = chosen(1 << 53, self._seed, purpose, *parts) / float(1 << 53)
        skewed = uniform
        for _ in range(self._skew - 1):  # a product is rounded alike on every machine, a power need not be
            skewed = skewed * uniform
        return np.minimum((skewed * self._nodes).astype(np.int64), self._nodes - 1)

    def _label(self, nodes: DrawnNumbers) -> DrawnNumbers:
        return chosen(self._labels, self._seed, 10, nodes)


GENERATORS: Mapping[str, type[Auctions] | type[Bikes] | type[RandomGraph]] = {
    "auctions": Auctions,
    "bikes": Bikes,
    "graph": RandomGraph,
}
