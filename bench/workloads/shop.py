"""Two streams of property-graph events as files in four formats: purchases of users, and payments between accounts.

An event has two nodes with labels and properties and one relationship, about 300 bytes as NDJSON; one event comes each
second. A node has the same properties in all its events, and no account pays another twice within a window: so the same
question has the same answer over nodes and relationships, over triples, and over rows. Prices are multiples of a
quarter: their sums are exact in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

START = np.datetime64("2024-01-01T00:00:00", "s")
USERS, ITEMS, CATEGORIES, BRANCHES = 5_000, 2_000, 50, 50
EX = "http://ex.org/"
FORMATS = {"ndjson": "ndjson", "csv": "csv", "parquet": "parquet", "triples": "nt.tsv"}
"""Formats with the endings of their files."""
ROW_GROUP = 100_000
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ShopStream:
    """The columns of a stream, one row per event."""

    name: str
    columns: dict[str, _Numbers]

    def cut(self, events: int) -> ShopStream:
        """The first events alone."""
        return ShopStream(self.name, {name: column[:events] for name, column in self.columns.items()})

    def write(self, format: str, path: Path) -> None:
        if format == "parquet":
            beside = path.with_suffix(".rows.ndjson")
            self.write("ndjson", beside)
            block = pa.json.ReadOptions(block_size=16 << 20)
            pq.write_table(pa.json.read_json(beside, read_options=block), path, row_group_size=ROW_GROUP)
            beside.unlink()
            return
        with path.open("w", encoding="utf-8") as file:
            file.writelines(_WRITERS[self.name, format](self))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The time as text, the number of the event, and the values of the columns, for each event."""
        count = len(next(iter(self.columns.values())))
        times = np.datetime_as_string(START + np.arange(1, count + 1))
        return zip(times.tolist(), range(count), *(column.tolist() for column in self.columns.values()), strict=True)


def purchases(events: int, seed: int = 7) -> ShopStream:
    """(:User {id, name, age})-[:BOUGHT {price}]->(:Item {id, category})."""
    drawn = np.random.default_rng(seed).random((events, 3))
    ranges = {"user": (0, USERS), "item": (0, ITEMS), "quarters": (4, 4_000)}
    columns = {
        name: (low + drawn[:, place] * (high - low)).astype(np.int64)
        for place, (name, (low, high)) in enumerate(ranges.items())
    }
    return ShopStream("purchases", columns)


def payments(events: int, window: int, seed: int = 7) -> ShopStream:
    """(:Account {id, branch})-[:PAID {amount}]->(:Account {id, branch}). A window has twice as many payments as there
    are accounts, however large it is."""
    random = np.random.default_rng(seed)
    accounts = max(10, window // 2)
    if accounts * (accounts - 1) < 2 * window:
        raise ValueError(f"a window of {window} events is too small for payments that differ")
    pairs = (random.random(events) * (accounts * (accounts - 1))).astype(np.int64)
    while len(again := _repeated(pairs, window)):
        pairs[again] = (random.random(len(again)) * (accounts * (accounts - 1))).astype(np.int64)
    sources, steps = np.divmod(pairs, accounts - 1)
    targets = (sources + 1 + steps) % accounts
    return ShopStream("payments", {"source": sources, "target": targets, "quarters": pairs % 4_000 + 4})


def _repeated(pairs: _Numbers, window: int) -> _Numbers:
    """Where a pair is that came within the last events already, too."""
    order = np.argsort(pairs, kind="stable")
    near = (np.diff(pairs[order]) == 0) & (np.diff(order) <= window)
    return np.sort(order[1:][near])


# --- formats ---


def _purchases_ndjson(stream: ShopStream) -> Iterator[str]:
    for at, number, user, item, quarters in stream.rows():
        yield (
            f'{{"at":"{at}Z","nodes":[{{"id":"u{user}","labels":["User"],"properties":{{"id":{user},'
            f'"name":"n{user}","age":{18 + user % 60}}}}},{{"id":"i{item}","labels":["Item"],"properties":'
            f'{{"id":{item},"category":"{category(item)}"}}}}],"relationships":[{{"id":"b{number}","type":"BOUGHT",'
            f'"from":"u{user}","to":"i{item}","properties":{{"price":{quarters / 4}}}}}]}}\n'
        )


def _payments_ndjson(stream: ShopStream) -> Iterator[str]:
    for at, number, source, target, quarters in stream.rows():
        ends = ",".join(
            f'{{"id":"a{one}","labels":["Account"],"properties":{{"id":{one},"branch":{one % BRANCHES}}}}}'
            for one in (source, target)
        )
        yield (
            f'{{"at":"{at}Z","nodes":[{ends}],"relationships":[{{"id":"p{number}","type":"PAID",'
            f'"from":"a{source}","to":"a{target}","properties":{{"amount":{quarters / 4}}}}}]}}\n'
        )


def _purchases_csv(stream: ShopStream) -> Iterator[str]:
    lines = (
        f"{at}Z,{user},n{user},{18 + user % 60},{item},{category(item)},{quarters / 4}\n"
        for at, _, user, item, quarters in stream.rows()
    )
    return chain(["at,user,name,age,item,category,price\n"], lines)


def _payments_csv(stream: ShopStream) -> Iterator[str]:
    lines = (
        f"{at}Z,{source},{source % BRANCHES},{target},{target % BRANCHES},{quarters / 4}\n"
        for at, _, source, target, quarters in stream.rows()
    )
    return chain(["at,source,source_branch,target,target_branch,amount\n"], lines)


def _purchases_triples(stream: ShopStream) -> Iterator[str]:
    for at, number, user, item, quarters in stream.rows():
        buyer, bought, purchase = _iri(f"u{user}"), _iri(f"i{item}"), _iri(f"b{number}")
        yield from _lines(at, [
            (buyer, _TYPE, _iri("User")), (buyer, _iri("id"), _literal(user, "integer")),
            (buyer, _iri("name"), f'"n{user}"'), (buyer, _iri("age"), _literal(18 + user % 60, "integer")),
            (bought, _TYPE, _iri("Item")), (bought, _iri("id"), _literal(item, "integer")),
            (bought, _iri("category"), f'"{category(item)}"'),
            (purchase, _iri("buyer"), buyer), (purchase, _iri("item"), bought),
            (purchase, _iri("price"), _literal(quarters / 4, "double")),
        ])  # fmt: skip


def _payments_triples(stream: ShopStream) -> Iterator[str]:
    for at, _, source, target, _quarters in stream.rows():
        made = [(_iri(f"a{source}"), _iri("paid"), _iri(f"a{target}"))]
        for one in (source, target):
            account = _iri(f"a{one}")
            made += [(account, _TYPE, _iri("Account")), (account, _iri("id"), _literal(one, "integer"))]
            made.append((account, _iri("branch"), _literal(one % BRANCHES, "integer")))
        yield from _lines(at, made)


def category(item: int) -> str:
    return f"c{item % CATEGORIES}"


def _lines(at: str, triples: list[tuple[str, str, str]]) -> Iterator[str]:
    return (f"{at}Z\t{s} {p} {o} .\n" for s, p, o in triples)


def _iri(name: str) -> str:
    return f"<{EX}{name}>"


def _literal(value: float, type: str) -> str:
    return f'"{value}"^^<{_XSD}{type}>'


_WRITERS: dict[tuple[str, str], Callable[[ShopStream], Iterator[str]]] = {
    ("purchases", "ndjson"): _purchases_ndjson,
    ("purchases", "csv"): _purchases_csv,
    ("purchases", "triples"): _purchases_triples,
    ("payments", "ndjson"): _payments_ndjson,
    ("payments", "csv"): _payments_csv,
    ("payments", "triples"): _payments_triples,
}
