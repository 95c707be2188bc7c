"""Random continuous queries over random streams, to compare the engine with the law.

A draw is a random case like those in tests/cases: `agreed` runs it one event per push, all at once and restarted after
every event, and compares each answer with the plain evaluation of that instant's window.

    python -m tests.support.draws --count 10000 --seed law

Invariant: a draw is a function of its random source only, and every draw is a legal query whose answer does not depend
on the order in which matches are found.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.values import Node, Relationship, Value
from anabranch.testing.cases import CaseFailure, CaseFile, agreed

_START = parse_instant("2022-10-14T12:00Z")
_MINUTE = 60_000_000
_LABELS = ("A", "B", "C")
_TYPES = ("R", "S")
_WIDTHS = ("PT2M", "PT3M", "PT5M", "PT10M", "PT90S")
_DEEPEST = 6  # conditions within conditions
_READINGS = ("win_end.minute", "duration.inSeconds(win_start, win_end).minutes", "datetime().minute", "win_start")
_RHYTHMS = ("PT1M", "PT2M", "PT3M", "PT150S", "PT7M")


def draw_case(random: Random, number: int = 0) -> CaseFile:
    """Draw a case: one or two streams of events and one to three queries over them."""
    streams = ["s"] if random.random() < 0.8 else ["s", "t"]
    options = {"windows": random.choice(("trailing", "trailing", "formal", "right-open"))}
    options["conflicts"] = random.choice(("latest", "latest", "latest", "strict"))
    if random.random() < 0.3:
        options["lateness"] = random.choice(("PT1M", "PT3M"))
    if random.random() < 0.3:
        options["drain"] = ""
    options["streams"] = ", ".join(streams)
    # Unbounded trails may be so many that the plain evaluator finds them all only in small graphs.
    endless = random.random() < 0.2
    queries = [_Query(random, streams, f"q{index}", endless).text() for index in range(random.choice((1, 1, 1, 2, 3)))]
    return CaseFile(
        Path(f"draw-{number}.case"),
        options=options,
        parameters={"p": random.randint(0, 3)},
        query="\n".join(queries),
        streams={name: _events(random, "lateness" in options or random.random() < 0.1, endless) for name in streams},
    )


def _events(random: Random, disordered: bool, few: bool) -> list[Event]:
    """Draw events with up to four relationships each and 16 in all; `few`: with up to two each and six in all."""
    events = []
    left = 6 if few else 16
    at = _START + random.randint(-5, 5) * _MINUTE
    for _ in range(random.choice((0, 2, 4, 6, 8, 12))):
        at += random.choice((0, 15, 30, 60, 60, 90, 120, 420)) * 1_000_000
        shift = random.choice((0, 0, 30, 120)) * 1_000_000 if disordered else 0
        nodes = {node_id: _node(random, node_id) for node_id in random.sample(range(4), random.randint(1, 3))}
        relationships = []
        count = min(left, random.choice((0, 0, 1, 1, 2)) if few else random.randint(0, 4))
        left -= count
        for index in range(count):
            source, target = random.randrange(4), random.randrange(4)
            kind = random.choice(_TYPES)
            identity = None if random.random() < 0.3 else f"{kind}{source}{target}"
            relationships.append(Relationship(identity, kind, source, target, _properties(random)))
            if any(one.id is not None and one.id == identity for one in relationships[:index]):
                relationships.pop()
        events.append(Event(at - shift, tuple(nodes.values()), tuple(relationships)))
    return events


def _node(random: Random, node_id: int) -> Node:
    return Node(node_id, tuple(sorted(random.sample(_LABELS, random.randint(1, 3)))), _properties(random))


def _properties(random: Random) -> dict[str, Value]:
    values: tuple[Value, ...] = (0, 1, 2, 3, 1.5, "a", "b", True, [1, 2])
    return {key: random.choice(values) for key in ("x", "y") if random.random() < 0.6}


_UNWOUND = (
    "EMIT x LIMIT {few}",
    "EMIT x, n.k AS k SKIP 1 LIMIT {few}",
    "EMIT x, count(*) AS c ORDER BY c{desc} LIMIT {few}",
    "EMIT x, n.k AS k ORDER BY k{desc}",
    "WITH DISTINCT x EMIT collect(x) AS xs",
    "WITH DISTINCT x EMIT x LIMIT {few}",
    "WITH x, count(*) AS c EMIT collect(x) AS xs, sum(c) AS c",
    "WITH x, n ORDER BY n.k{desc} EMIT collect(x) AS xs",
    "WITH x, n ORDER BY n.k{desc} LIMIT {few} EMIT collect(n.k) AS ks",
    "EMIT collect(x) AS xs, collect(n.k) AS ks",
    "EMIT n.k AS k, collect(DISTINCT x) AS xs",
    "UNWIND [x, 1] AS y EMIT collect(y) AS ys",
    "MATCH (n)-->(m) WITHIN PT5M EMIT collect(m.k) AS ms, collect(x) AS xs",
    "WITH n, collect(x) AS xs ORDER BY size(xs) EMIT collect(xs) AS all",
    "WITH n, x ORDER BY x MATCH (n)-->(m) WITHIN PT5M EMIT x, collect(m.k) AS ms",
)


def draw_unwound(random: Random, number: int = 0) -> CaseFile:
    """Draw a case whose queries unwind lists of nodes, cut rows off and collect the rest, over events of few instants.
    No two events of an instant describe the same element."""
    queries = []
    for index in range(3):
        body = random.choice(_UNWOUND).format(few=random.randint(1, 3), desc=random.choice(("", " DESC")))
        text = f"MATCH (n) WITHIN {random.choice(_WIDTHS)} UNWIND n.xs AS x {body}"
        output = random.choice(("SNAPSHOT", "SNAPSHOT", "ON ENTERING"))
        queries.append(f"REGISTER QUERY q{index} STARTING AT 2022-10-14T12:00 {{ {text} {output} EVERY PT1M }}")
    events = []
    for at in range(random.randint(1, 4)):
        ids = random.sample(range(8), random.randint(2, 8))
        for event, source in enumerate(ids):
            xs: list[Value] = [random.choice((1, 2, 3, 1.0, "a", "b")) for _ in range(random.randint(0, 3))]
            node = Node(source, ("A",), {"k": random.randint(0, 2), "xs": xs})
            targets = random.sample(ids[: event + 1], min(event + 1, random.randint(0, 2)))
            edges = tuple(Relationship(f"{at}/{source}/{target}", "R", source, target) for target in targets)
            events.append(Event(_START + at * _MINUTE, (node,), edges))
    return CaseFile(
        Path(f"unwound-{number}.case"), options={"streams": "s"}, query="\n".join(queries), streams={"s": events}
    )


_ON_TRAILS = (
    "ALL(e IN relationships(p) WHERE e.{key} {sign} {value})",
    "ALL(e IN relationships(p) WHERE e.{key} {sign} a.{key}) AND length(p) < 3",
    "NONE(e IN relationships(p) WHERE e.{key} {sign} {value}) AND b.{key} IS NOT NULL",
    "ALL(e IN relationships(p) WHERE e.{key} {sign} {value} OR type(e) = 'R')",
)


def draw_trails(random: Random, number: int = 0) -> CaseFile:
    """Draw a case whose queries have conditions on all relationships of a path of variable length."""
    queries = []
    for index in range(2):
        key, sign = random.choice("xy"), random.choice(("=", "<>", "<", ">="))
        where = random.choice(_ON_TRAILS).format(key=key, sign=sign, value=random.randint(0, 2))
        trail = f"{random.choice(('', ':R', ':R|S'))}*{random.choice(('', '0..', '1..2', '2..3', '..3'))}"
        head = random.choice((">", ""))
        text = f"MATCH p = (a:A)-[{trail}]-{head}(b) WITHIN {random.choice(_WIDTHS)} WHERE {where}"
        emitted = random.choice(("id(a) AS a, id(b) AS b, length(p) AS n", "count(*) AS n", "DISTINCT id(b) AS b"))
        output = random.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
        queries.append(
            f"REGISTER QUERY q{index} STARTING AT 2022-10-14T12:00 {{ {text} EMIT {emitted} {output} EVERY PT1M }}"
        )
    return CaseFile(
        Path(f"trails-{number}.case"), options={"streams": "s"}, query="\n".join(queries), streams={"s": _few(random)}
    )


def _few(random: Random) -> list[Event]:
    """Draw events of few nodes and relationships, so that there are few trails."""
    events = []
    for at in range(random.randint(2, 5)):
        nodes = tuple(Node(one, ("A",) if one % 2 else ("B",), _properties(random)) for one in range(5))
        edges = {}
        for number in random.sample(range(8), 2):
            source, target = random.choices(range(5), k=2)
            properties: dict[str, Value] = {key: random.randint(0, 2) for key in ("x", "y")}
            edges[number] = Relationship(f"r{number}", _TYPES[number % 2], source, target, properties)
        events.append(Event(_START + at * _MINUTE, nodes, tuple(edges.values())))
    return events


_IDIOMS = (
    # the ends of a relationship, in the row and beyond it
    "MATCH (a)-[r:{type}]->(b) WITHIN {width} EMIT startNode(r).x AS s, id(endNode(r)) AS e, r.y AS y",
    "MATCH (a)-[r]-(b) WITHIN {width} WHERE startNode(r) = a OR endNode(r).x = 1 EMIT startNode(r) AS s, id(b) AS b",
    "MATCH (a) WITHIN {width} OPTIONAL MATCH (a)-[r]-(b:B) WITHIN {width} EMIT id(a) AS a, startNode(r).x AS s",
    "MATCH (a)-[r]-(b) WITHIN {width} WITH r, a.x AS x EMIT x, endNode(r).y AS y, count(*) AS n",
    "MATCH p = (a)-[:{type}*1..2]-(b) WITHIN {width} EMIT [q IN relationships(p) | id(startNode(q))] AS s",
    "MATCH (a)-[r]->(b) WITHIN {width} MATCH (c)-[q]->(d) WITHIN PT2M EMIT startNode(r).x AS s, id(endNode(q)) AS e",
    "MATCH (a)-[r]-(b) WITHIN {width} WHERE EXISTS {{ MATCH (a)-[q]-(c) WHERE startNode(q) = c AND c.x = r.x }} "
    "EMIT id(a) AS a, id(startNode(r)) AS s",
    # lists in an order
    "MATCH (a)-[r]->(b) WITHIN {width} WITH r.x AS x, a ORDER BY x{desc} LIMIT {few} EMIT collect(x) AS xs",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH a, r ORDER BY r.x{desc}, r.y "
    "EMIT id(a) AS a, head(collect(r.x)) AS first, last(collect(r.y)) AS last, count(*) AS n",
    "MATCH (a) WITHIN {width} WITH a ORDER BY a.x{desc} WITH a.y AS y, a SKIP 1 LIMIT {few} WHERE y <> 0 "
    "EMIT collect(DISTINCT y) AS ys, collect(id(a)) AS ids",
    "MATCH (a) WITHIN {width} WITH a.x AS x ORDER BY x{desc} UNWIND [x, 1, x] AS u WITH u SKIP 1 LIMIT 4 "
    "EMIT collect(u) AS us",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH a.x AS x, r.y AS y ORDER BY y LIMIT 4 WITH x, y ORDER BY x{desc} "
    "EMIT y, collect(x) AS xs",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH r.x AS x ORDER BY x{desc} LIMIT {few} WITH DISTINCT x "
    "EMIT collect(x) AS xs",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH a, r ORDER BY r.x WITH a, collect(r.x) AS xs EMIT collect(xs) AS all",
    # the clock and the window, in more places than a column
    "MATCH (a) WITHIN {width} WHERE a.y >= 0 AND datetime({{timezone: coalesce(a.zone, 'Z')}}).minute % 2 = a.x "
    "EMIT id(a) AS a",
    "MATCH (a) WITHIN {width} WITH a.x AS x, datetime({{timezone: coalesce(a.zone, 'Z')}}).minute AS m "
    "EMIT x, max(m) AS m, collect(x + m) AS s",
    "MATCH (a) WITHIN {width} WITH a ORDER BY datetime({{timezone: coalesce(a.zone, 'Z')}}).minute * a.x, id(a) "
    "LIMIT {few} EMIT id(a) AS a",
    "MATCH (a) WITHIN {width} EMIT id(a) AS a, [k IN [0, 1, 2] WHERE EXISTS {{ MATCH (a)--(z) WHERE z.x = k }}] AS ks",
    # rows against an aggregate of all
    "MATCH (a) WITHIN {width} WITH {all}(a.x) AS m MATCH (b) WITHIN PT3M WHERE b.x {sign} m EMIT id(b) AS b, b.x AS x",
    "MATCH (a)-[r]->() WITHIN {width} WITH count(r) AS m MATCH (b)-[q]->(c) WITHIN {width} WHERE m / 2 {sign} q.x "
    "AND b.y = 1 EMIT id(b) AS b, m",
    "MATCH (a:A) WITHIN {width} WITH {all}(a.x) AS m MATCH (b) WITHIN {width} WHERE b.x + 1 {sign} m * 2 "
    "EMIT count(*) AS n, collect(b.y) AS ys",
)


def draw_idioms(random: Random, number: int = 0) -> CaseFile:
    """Draw a case whose queries look up the ends of relationships, collect in an order, read the clock row by row, or
    compare rows with an aggregate of all."""
    queries = []
    for index in range(2):
        body = random.choice(_IDIOMS).format(
            width=random.choice(_WIDTHS),
            type=random.choice(_TYPES),
            few=random.randint(1, 3),
            desc=random.choice(("", " DESC")),
            all=random.choice(("avg", "max", "min")),
            sign=random.choice(("<", "<=", ">", ">=")),
        )
        output = random.choice(("SNAPSHOT", "SNAPSHOT", "ON ENTERING", "ON EXIT"))
        every = random.choice(_RHYTHMS)
        queries.append(f"REGISTER QUERY q{index} STARTING AT 2022-10-14T11:58 {{ {body} {output} EVERY {every} }}")
    options = {"streams": "s", "windows": random.choice(("trailing", "trailing", "formal", "right-open"))}
    options["conflicts"] = random.choice(("latest", "latest", "latest", "strict"))
    if random.random() < 0.5:
        options["drain"] = ""
    events = _events(random, disordered=False, few=False)
    return CaseFile(Path(f"idioms-{number}.case"), options=options, query="\n".join(queries), streams={"s": events})


_ELEMENTS = (
    # elements that two patterns share, in one window and in two
    "MATCH (a:A)-[r]->(b) WITHIN {width} MATCH (a)-[q:{type}]->(c) WITHIN {width} EMIT a.x AS x, b.y AS y, q.x AS q",
    "MATCH (a)-[r]->(b) WITHIN {width} MATCH (b)-[q]->(a) WITHIN {other} EMIT a.x AS x, b.y AS y, r.x AS r, q.y AS q",
    "MATCH (a)-[r]->(b) WITHIN {width} MATCH (x)-[r]->(b) WITHIN {other} EMIT a = x AS same, r.x AS x, r.y AS y, b",
    "MATCH (a:A) WITHIN {width} OPTIONAL MATCH (a)-[r:{type}]-(b:B) WITHIN {width} EMIT a.x AS x, b.y AS y, r",
    "MATCH (a) WITHIN {width} OPTIONAL MATCH (a)-[r]->(b) WITHIN {other} WHERE b.x = a.x EMIT a.y AS y, labels(b) AS l",
    "MATCH (a), (b) WITHIN {width} WHERE a.x = b.y EMIT id(a) AS a, id(b) AS b, a.y AS y",
    "MATCH (a)-[r]->(b), (c)-[q]->(d) WITHIN {width} WHERE a.x = c.x EMIT r.x AS r, q.y AS q",
    "MATCH (a)-[r]->(b) WITHIN {width} WHERE NOT EXISTS {{ MATCH (b)-[q]->(c) WHERE c.x = a.x }} EMIT a.x AS x",
    "MATCH (a:A) WITHIN {width} WHERE (a)-[:{type}]->(:B) AND NOT (a)<--(:C) EMIT a.x AS x",
    "MATCH (a) WITHIN {width} WHERE EXISTS {{ MATCH (a)--(z) WITHIN {other} WHERE z.y = a.y }} EMIT a.x AS x, a",
    "MATCH (a:A) WITHIN {width} EMIT id(a) AS a, [(a)-[q]->(z) | z.x] AS xs",
    # whole elements and parts of them
    "MATCH (a)-[r:{type}]->(b:B) WITHIN {width} EMIT a, r, b",
    "MATCH (a)-[r]->(b) WITHIN {width} EMIT labels(a) AS l, type(r) AS t, keys(b) AS k, properties(r) AS p",
    "MATCH (a)-[r]-(b) WITHIN {width} WHERE labels(a) = labels(b) AND type(r) = '{type}' EMIT a.x AS x, labels(a) AS l",
    "MATCH (a) WITHIN {width} WHERE 'A' IN labels(a) OR a.x = 1 EMIT labels(a) AS l, properties(a) AS p, a.y AS y",
    "MATCH (a)-->(b) WITHIN {width} WHERE a:A OR size(keys(b)) > 1 EMIT DISTINCT b",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH b, count(*) AS n, count(DISTINCT a) AS d EMIT b.x AS x, b.y AS y, n, d",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH b, count(r) AS n EMIT b, n",
    "MATCH (a)-->(b) WITHIN {width} WITH b, a ORDER BY id(a) EMIT b.x AS x, collect(a) AS a",
    "MATCH (a)-->(b) WITHIN {width} WITH a AS c, b WHERE c <> b EMIT c, properties(b) = properties(c) AS same",
    "MATCH p = (a:A)-[r]->(b) WITHIN {width} EMIT p, r.x AS x",
    "MATCH (a)-[r]->(b) WITHIN {width} WITH [a, b] AS both, r EMIT both, head(both).x AS x, type(r) AS t",
    "MATCH (a:A) WITHIN {width} WITH DISTINCT a MATCH (a)-[r]->(b) WITHIN {other} EMIT a, b.x AS x ORDER BY x LIMIT 2",
)


def draw_elements(random: Random, number: int = 0) -> CaseFile:
    """Draw a case whose patterns share elements, or read them whole, over events that give an element changing labels
    and keys."""
    queries = []
    for index in range(2):
        width = random.choice(_WIDTHS)
        body = random.choice(_ELEMENTS).format(
            width=width,
            other=random.choice((width, *_WIDTHS)),
            type=random.choice(_TYPES),
        )
        output = random.choice(("SNAPSHOT", "SNAPSHOT", "ON ENTERING", "ON EXIT"))
        if "LIMIT" in body:
            output = "SNAPSHOT"
        every = random.choice(_RHYTHMS)
        queries.append(f"REGISTER QUERY q{index} STARTING AT 2022-10-14T11:58 {{ {body} {output} EVERY {every} }}")
    options = {"streams": "s", "windows": random.choice(("trailing", "trailing", "formal", "right-open"))}
    options["conflicts"] = random.choice(("latest", "latest", "latest", "strict"))
    if random.random() < 0.5:
        options["drain"] = ""
    events = _events(random, disordered=random.random() < 0.2, few=False)
    return CaseFile(Path(f"elements-{number}.case"), options=options, query="\n".join(queries), streams={"s": events})


def permuted(case: CaseFile, random: Random) -> CaseFile:
    """Return the case with the events of each instant in another order."""
    streams = {}
    for name, events in case.streams.items():
        shuffled = random.sample(events, len(events))
        streams[name] = sorted(shuffled, key=lambda event: event.event_time)
    return replace(case, streams=streams)


class _Query:
    """One random REGISTER QUERY; `scope` holds the variables by kind as the clauses bind them."""

    def __init__(self, random: Random, streams: list[str], name: str, endless: bool) -> None:
        self.random = random
        self.endless = endless  # whether trails are unbounded
        self.streams = streams
        self.name = name
        self.nodes: list[str] = []
        self.relationships: list[str] = []
        self.values: list[str] = []
        self.paths: list[str] = []
        self.made = 0
        self.budget = 4  # relationships that may still be drawn, so that the number of matches stays small

    def text(self) -> str:
        random = self.random
        start = random.choice(("NOW", "2022-10-14T12:00", "2022-10-14T11:57:30", "2022-10-14T12:01"))
        body = self._part()
        if random.random() < 0.1:
            columns = random.choice(("1 AS c", "count(*) AS c"))
            sides = [f"{_Query(random, self.streams, '', self.endless)._clauses()} EMIT {columns}" for _ in range(2)]
            body = random.choice((" UNION ", " UNION ALL ")).join(sides)
        if random.random() < 0.1:
            return f"REGISTER QUERY {self.name} STARTING AT {start} {{ {body.replace('EMIT', 'RETURN')} }}"
        output = random.choice(("SNAPSHOT", "ON ENTERING", "ON EXIT"))
        return f"REGISTER QUERY {self.name} STARTING AT {start} {{ {body} {output} EVERY {random.choice(_RHYTHMS)} }}"

    def _part(self) -> str:
        clauses = self._clauses()
        return f"{clauses} EMIT {self._emitted()}"

    def _clauses(self) -> str:
        random = self.random
        parts = [self._match(optional=False)]
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            kind = random.random()
            if kind < 0.35:
                parts.append(self._match(optional=False))
            elif kind < 0.6:
                parts.append(self._match(optional=True))
            elif kind < 0.7:
                name = self._fresh("u")
                parts.append(f"UNWIND [1, $p, {self._value()}] AS {name}")
                self.values.append(name)
            else:
                parts.append(self._with())
        return " ".join(parts)

    def _fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def _match(self, *, optional: bool) -> str:
        random = self.random
        paths = [self._path() for _ in range(random.choice((1, 1, 1, 2)))]
        text = ("OPTIONAL MATCH " if optional else "MATCH ") + ", ".join(paths) + f" WITHIN {random.choice(_WIDTHS)}"
        if len(self.streams) > 1:
            text += f" ON STREAM {random.choice(self.streams)}"
        if random.random() < (0.6 if self.endless else 0.35):
            text += f" WHERE {self._condition()}"
        return text

    def _path(self) -> str:
        random = self.random
        nodes: list[str] = []
        text = self._node(nodes)
        length = min(random.choice((0, 1, 1, 1, 2)), max(self.budget, 0))
        many = False
        for _ in range(length):
            relation, is_many = self._relationship()
            many = many or is_many
            text += relation + self._node(nodes)
        if length == 1 and many and random.random() < 0.3:
            text = f"{random.choice(('shortestPath', 'allShortestPaths'))}({text})"
            if text.startswith("shortestPath"):
                return text  # the path gets no name, because any of several shortest paths may be chosen
        if random.random() < 0.2:
            name = self._fresh("p")
            self.paths.append(name)
            return f"{name} = {text}"
        return text

    def _node(self, inside: list[str]) -> str:
        random = self.random
        label = f":{random.choice(_LABELS)}" if random.random() < 0.3 else ""
        properties = f" {{x: {self._literal()}}}" if random.random() < 0.05 else ""
        if random.random() < 0.25:
            return f"({label}{properties})"
        known = [name for name in self.nodes if name not in inside]
        if known and random.random() < 0.5:
            return f"({random.choice(known)}{label})"
        name = self._fresh("n")
        self.nodes.append(name)
        inside.append(name)
        return f"({name}{label}{properties})"

    def _relationship(self) -> tuple[str, bool]:
        random = self.random
        kind = f":{random.choice(('R', 'S', 'R|S'))}" if random.random() < 0.6 else ""
        many = self.budget >= 3 and random.random() < (0.6 if self.endless else 0.3)
        self.budget -= 3 if many else 1
        name = ""
        if many:
            kind += random.choice(("*", "*", "*0..") if self.endless else ("*1..2", "*0..2", "*2", "*..3"))
        elif random.random() < 0.5:
            name = self._fresh("r")
            self.relationships.append(name)
        left, right = random.choice((("-", "->"), ("<-", "-"), ("-", "-")))
        return f"{left}[{name}{kind}]{right}", many

    def _literal(self) -> str:
        return self.random.choice(("0", "1", "2", "3", "1.5", "'a'", "true", "null", "$p", "[1, 2]"))

    def _value(self) -> str:
        """Draw an expression over the variables in scope."""
        random = self.random
        choices = [self._literal()]
        if self.nodes:
            choices += [f"{random.choice(self.nodes)}.{key}" for key in ("x", "y")]
            choices.append(f"size(labels({random.choice(self.nodes)}))")
        if self.relationships:
            choices += [f"{random.choice(self.relationships)}.x", f"type({random.choice(self.relationships)})"]
        if self.paths:
            choices.append(f"length({random.choice(self.paths)})")
        choices += self.values
        if random.random() < 0.08:
            choices = list(_READINGS)
        elif self.nodes and random.random() < 0.05:
            choices = [f"CASE WHEN {self._subquery()} THEN 1 ELSE 2 END"]
        one = random.choice(choices)
        return one if random.random() < 0.8 else f"coalesce({one}, {self._literal()})"

    def _condition(self, depth: int = 0) -> str:
        random = self.random
        if self.endless and self.nodes and random.random() < 0.5:
            return self._trail_exists()
        if self.paths and random.random() < 0.4:
            return self._along()
        kind = random.random() if depth < _DEEPEST else random.uniform(0.3, 1)
        if kind < 0.15:
            return f"NOT ({self._condition(depth + 1)})"
        if kind < 0.3:
            operator = random.choice(("AND", "OR", "XOR"))
            return f"({self._condition(depth + 1)} {operator} {self._condition(depth + 1)})"
        if kind < 0.45 and self.nodes:
            return f"({random.choice(self.nodes)})-[:{random.choice(_TYPES)}]->(:{random.choice(_LABELS)})"
        if kind < 0.55 and self.nodes:
            return self._subquery()
        if kind < 0.65 and self.nodes:
            return f"{random.choice(self.nodes)}:{random.choice(_LABELS)}"
        if kind < 0.75:
            return f"{self._value()} IS {random.choice(('', 'NOT '))}NULL"
        if kind < 0.85:
            return f"{self._value()} IN [{self._literal()}, {self._literal()}]"
        return f"{self._value()} {random.choice(('=', '<>', '<', '<=', '>'))} {self._value()}"

    def _subquery(self) -> str:
        """Draw an EXISTS with a pattern or with clauses, which have aggregates, orders and names of their own."""
        random = self.random
        node = random.choice(self.nodes)
        bound = random.choice(("0", "1", "2"))
        body = random.choice(
            (
                f"MATCH ({node})--(z) WHERE z.x = {self._literal()}",
                f"MATCH ({node})--(z) WHERE z.x < win_end.minute",
                f"MATCH ({node})--(z) WITH count(z) AS k WHERE k > {bound} RETURN k",
                f"MATCH ({node})-->(z) RETURN count(z.x)",
                f"MATCH ({node})-->(z) WITH z.x AS k, count(*) AS m WHERE m > {bound} AND k <= {node}.x RETURN k",
                f"WITH {self._literal()} AS k MATCH ({node})-->(z) WHERE z.y = k",
                f"MATCH ({node})--(z) WITH DISTINCT z.x AS k ORDER BY k SKIP {bound} LIMIT 1 WHERE {node}.x = k",
                f"MATCH ({node})-->(z:A) RETURN z UNION MATCH (z:B)-->({node}) RETURN z",
            )
        )
        return f"EXISTS {{ {body} }}"

    def _along(self) -> str:
        """Draw a condition on the elements of a path."""
        random = self.random
        quantifier = random.choice(("ALL", "ALL", "ALL", "NONE", "ANY", "SINGLE"))
        what = random.choice(("relationships", "relationships", "nodes"))
        test = f"e.{random.choice('xy')} {random.choice(('=', '<>', '<', '>='))} {self._value()}"
        return f"{quantifier}(e IN {what}({random.choice(self.paths)}) WHERE {test})"

    def _trail_exists(self) -> str:
        random = self.random
        left, right = random.choice((("-", "->"), ("<-", "-"), ("-", "-"), ("-", "-")))
        one, other = random.choice(self.nodes), random.choice((*self.nodes, f":{random.choice(_LABELS)}"))
        text = f"({one}){left}[{random.choice(('*', '*', ':R*', '*0..', '*..3'))}]{right}({other})"
        if random.random() < 0.3:
            return f"({one} <> {random.choice(self.nodes)} AND {text})"
        return text if random.random() < 0.7 else f"NOT {text}"

    def _with(self) -> str:
        random = self.random
        if random.random() < 0.4:
            return self._grouped_with()
        kept_nodes = [name for name in self.nodes if random.random() < 0.8]
        name = self._fresh("v")
        items = [*kept_nodes, f"{self._value()} AS {name}"]
        distinct = "DISTINCT " if random.random() < 0.3 else ""
        self.nodes, self.relationships, self.paths, self.values = kept_nodes, [], [], [name]
        where = f" WHERE {self._condition()}" if random.random() < 0.3 else ""
        return f"WITH {distinct}{', '.join(items)}{where}"

    def _grouped_with(self) -> str:
        random = self.random
        key, total = self._fresh("k"), self._fresh("a")
        value = self._value()
        aggregate = random.choice(
            (f"count({value})", f"count(DISTINCT {value})", "count(*)", f"min({value})", f"max({value})")
        )
        if random.random() < 0.3:
            aggregate = f"size(collect(DISTINCT {self._value()}))"
        text = f"WITH {self._value()} AS {key}, {aggregate} AS {total}"
        self.nodes, self.relationships, self.paths, self.values = [], [], [], [key, total]
        return text + (f" WHERE {self._condition()}" if random.random() < 0.3 else "")

    def _emitted(self) -> str:
        random = self.random
        kind = random.random()
        if kind < 0.2:
            grouped = f"{self._value()} AS c0, " if random.random() < 0.6 else ""
            return f"{grouped}count(*) AS c1, min({self._value()}) AS c2"
        columns = [f"{self._value()} AS c{index}" for index in range(random.choice((1, 2, 2, 3)))]
        if self.nodes and random.random() < 0.3:
            columns.append(f"{random.choice(self.nodes)} AS c9")
        text = ("DISTINCT " if random.random() < (0.7 if self.endless else 0.2) else "") + ", ".join(columns)
        if random.random() < 0.2:
            names = [column.rsplit(" AS ", 1)[1] for column in columns]
            random.shuffle(names)
            keys = ", ".join(name + random.choice(("", " DESC")) for name in names)
            text += f" ORDER BY {keys}" + (f" LIMIT {random.randint(0, 3)}" if random.random() < 0.7 else "")
        return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold the engine against the law on random queries and streams.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="law", help="any text; the test suite draws with `law`")
    parser.add_argument("--show", type=int, help="print one draw and its queries")
    options = parser.parse_args()
    if options.show is not None:
        case = draw_case(Random(f"{options.seed}/{options.show}"), options.show)
        print(case.query, case.options, *case.streams.items(), sep="\n")
        options.count = 0
    started = time.perf_counter()
    answers = 0
    for number in range(options.count):
        case = draw_case(Random(f"{options.seed}/{number}"), number)
        try:
            answers += sum(len(told) for told in agreed(case).values())
        except CaseFailure as failure:
            print(f"draw {number} of seed {options.seed} differs\n{case.query}\n{failure}")
            return 1
    seconds = time.perf_counter() - started
    agree = "one by one, all at once, restarted and the law agree"
    print(f"{options.count} draws, {answers} answers: {agree}; {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
