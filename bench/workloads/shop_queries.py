"""The questions over purchases and payments, as our languages ask them: Seraph, and RSP-QL over triples.

The peers' forms of the same questions are in peers/whole_duckdb.py, whole_polars.py and whole_pathway.py. The first
instant is that of the first full window.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workloads.shop import EX, START

LEAST_PRICE = 990  # one purchase in a hundred costs more
BRANCH = 7
MOST_HOPS = 3


@dataclass(frozen=True, slots=True)
class ShopQuery:
    """A question: the stream that it reads, its columns, the clauses around WITHIN in Seraph, and its form in RSP-QL,
    where there is one. `entering` tells what is new at an instant, else everything is told."""

    name: str
    stream: str
    columns: tuple[str, ...]
    match: str
    emit: str
    sparql: str | None = None
    entering: bool = False

    def text(self, format: str, file: Path, window: int, slide: int) -> str:
        """The file of the query, for a stream in this format."""
        first = START + np.timedelta64(window, "s")
        if format == "triples":
            return self._rspql(str(first), window, slide)
        load = f"{_LOAD[self.stream].format(file=file.name)}\n" if format == "csv" else ""
        return (
            f"{load}REGISTER QUERY {self.name} STARTING AT {first} {{\n"
            f"  MATCH {self.match.replace(' WHERE ', f' WITHIN PT{window}S WHERE ', 1)}"
            f"{'' if ' WHERE ' in self.match else f' WITHIN PT{window}S'}\n"
            f"  EMIT {self.emit}\n"
            f"  {'ON ENTERING' if self.entering else 'SNAPSHOT'} EVERY PT{slide}S\n}}\n"
        )

    def _rspql(self, first: str, window: int, slide: int) -> str:
        if self.sparql is None:
            raise ValueError(f"`{self.name}` has no form in SPARQL")
        return (
            f"PREFIX : <{EX}>\n"
            f"REGISTER {'ISTREAM' if self.entering else 'RSTREAM'} :{self.name} STARTING AT {first}Z AS\n"
            + self.sparql.format(window=f"FROM NAMED WINDOW :w ON :{self.stream} [RANGE PT{window}S STEP PT{slide}S]")
        )

    def stream_name(self, format: str) -> str:
        return f"{EX}{self.stream}" if format == "triples" else self.stream


_LOAD = {
    "purchases": (
        "LOAD STREAM FROM '{file}' AS row AT row.at INTO purchases\n"
        "MERGE (u:User {{id: toInteger(row.user)}})\n"
        "MERGE (i:Item {{id: toInteger(row.item)}})\n"
        "CREATE (u)-[:BOUGHT {{price: toFloat(row.price)}}]->(i)\n"
        "SET u.name = row.name, u.age = toInteger(row.age), i.category = row.category\n"
    ),
    "payments": (
        "LOAD STREAM FROM '{file}' AS row AT row.at INTO payments\n"
        "MERGE (a:Account {{id: toInteger(row.source)}})\n"
        "MERGE (b:Account {{id: toInteger(row.target)}})\n"
        "CREATE (a)-[:PAID {{amount: toFloat(row.amount)}}]->(b)\n"
        "SET a.branch = toInteger(row.source_branch), b.branch = toInteger(row.target_branch)\n"
    ),
}

_PURCHASE = "(u:User)-[b:BOUGHT]->(i:Item)"
_FILTERED = (
    "SELECT ?user ?item ?price {window}\n"
    "WHERE {{ WINDOW :w {{ ?b :buyer ?u ; :item ?i ; :price ?price . ?u :id ?user . ?i :id ?item .\n"
    f"  FILTER (?price > {LEAST_PRICE}) }} }} }}\n"
).replace("} } }", "}} }}")

QUERIES = (
    ShopQuery(
        "filter", "purchases", ("user", "item", "price"),
        f"{_PURCHASE} WHERE b.price > {LEAST_PRICE}",
        "u.id AS user, i.id AS item, b.price AS price",
        _FILTERED,
    ),
    ShopQuery(
        "entering", "purchases", ("user", "item", "price"),
        f"{_PURCHASE} WHERE b.price > {LEAST_PRICE}",
        "u.id AS user, i.id AS item, b.price AS price",
        _FILTERED,
        entering=True,
    ),
    ShopQuery(
        "group", "purchases", ("category", "n", "total"),
        _PURCHASE,
        "i.category AS category, count(*) AS n, sum(b.price) AS total",
        "SELECT ?category (COUNT(*) AS ?n) (SUM(?price) AS ?total) {window}\n"
        "WHERE {{ WINDOW :w {{ ?b :item ?i ; :price ?price . ?i :category ?category }} }} GROUP BY ?category\n",
    ),
    ShopQuery(
        "pairs", "purchases", ("category", "n"),
        "(u:User)-[:BOUGHT]->(i:Item)<-[:BOUGHT]-(x:User) WHERE u.id < x.id",
        "i.category AS category, count(*) AS n",
        "SELECT ?category (COUNT(*) AS ?n) {window}\n"
        "WHERE {{ WINDOW :w {{ ?b :buyer ?u ; :item ?i . ?c :buyer ?x ; :item ?i . ?u :id ?user . ?x :id ?other .\n"
        "  ?i :category ?category . FILTER (?user < ?other) }} }} GROUP BY ?category\n",
    ),
    ShopQuery(
        "topk", "purchases", ("item", "total"),
        _PURCHASE,
        "i.id AS item, sum(b.price) AS total ORDER BY total DESC, item LIMIT 10",
        "SELECT ?item (SUM(?price) AS ?total) {window}\n"
        "WHERE {{ WINDOW :w {{ ?b :item ?i ; :price ?price . ?i :id ?item }} }}\n"
        "GROUP BY ?item ORDER BY DESC(?total) ?item LIMIT 10\n",
    ),
    ShopQuery(
        "two_hop", "payments", ("branch", "n"),
        "(a:Account)-[:PAID]->(b:Account)-[:PAID]->(c:Account)",
        "b.branch AS branch, count(*) AS n",
        "SELECT ?branch (COUNT(*) AS ?n) {window}\n"
        "WHERE {{ WINDOW :w {{ ?a :paid ?b . ?b :paid ?c . ?b :branch ?branch }} }} GROUP BY ?branch\n",
    ),
    ShopQuery(
        "triangle", "payments", ("x", "y", "z"),
        "(a:Account)-[:PAID]->(b:Account)-[:PAID]->(c:Account)-[:PAID]->(a) WHERE a.id < b.id AND a.id < c.id",
        "a.id AS x, b.id AS y, c.id AS z",
        "SELECT ?x ?y ?z {window}\n"
        "WHERE {{ WINDOW :w {{ ?a :paid ?b . ?b :paid ?c . ?c :paid ?a . ?a :id ?x . ?b :id ?y . ?c :id ?z .\n"
        "  FILTER (?x < ?y && ?x < ?z) }} }}\n",
        entering=True,
    ),
    ShopQuery(
        "path", "payments", ("hops", "trails"),
        f"(a:Account {{branch: {BRANCH}}})-[p:PAID*1..{MOST_HOPS}]->(b:Account)",
        "size(p) AS hops, count(*) AS trails",
    ),
    ShopQuery(
        "connectivity", "payments", ("size", "accounts"),
        "(a:Account)",
        "componentSize(a, ['PAID']) AS size, count(*) AS accounts",
        "SELECT ?size (COUNT(*) AS ?accounts) {window}\n"
        "WHERE {{ WINDOW :w {{ ?a a :Account . BIND (anb:componentSize(?a, :paid) AS ?size) }} }} GROUP BY ?size\n",
    ),
)  # fmt: skip
BY_NAME = {query.name: query for query in QUERIES}
