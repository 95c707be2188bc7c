"""The way that `auto` chooses beside every way that can be forced, from windows that overlap much to those that do not.

    python bench/run.py choices                     all of it
    python bench/choices.py --only star,pairs --windows 1000,10000 --overlaps 1,2,10

The first writes bench/results/choices.json. One event comes each millisecond; windows and slides count events. Streams
are pushed as columns in pieces of at most PIECE events, so that reading costs little beside matching, and small windows
also slide by slide. Figures are processor milliseconds per slide, after the first answer over a full window, without
garbage collections; `ratio` is auto's figure over the best of the ways:

    log         from the changes alone (--matcher log)
    semijoin    the whole window at each slide, on arrays (--matcher semijoin; patterns over triples only)
    recompute   the whole window at each slide, by the plain evaluator (--force recompute)
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from random import Random
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from anabranch import EvaluationOptions, Session
from anabranch.formats.graph_lines import GraphLines

Way = Literal["auto", "log", "semijoin", "recompute"]
WAYS: tuple[Way, ...] = ("auto", "log", "semijoin", "recompute")
WINDOWS = (100, 1_000, 10_000, 100_000)
OVERLAPS = (1, 2, 10, 100, 1_000)
PIECE = 10_000
ENOUGH = 0.3  # processor seconds after which a way has been measured
MOST_SLIDES = 2_000
MOST_EVENTS = 300_000  # after the first window
PLAIN_EVENTS = 20_000  # that the plain evaluator is given at once, over all slides
GOAL = 1.25
STREAM = "http://ex.org/s"
_START = 1_704_067_200_000
_EX = "http://ex.org/"

Triple = tuple[str, str, str]
TripleAt = Callable[[Random, int, int], Triple]
EventAt = Callable[[Random, int, int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A query, with the stream that it reads: item i of a stream for windows of a given size."""

    name: str
    text: str
    at: TripleAt | EventAt
    is_graph: bool = False

    def query(self, window: int, slide: int) -> tuple[str, str]:
        """The text and the name of its file."""
        text = self.text.format(start=_iso(_START + window), window=_seconds(window), slide=_seconds(slide))
        return text, "q.seraph" if self.is_graph else "q.rspql"

    def pieces(self, window: int, first: int, stop: int) -> object:
        """The items of a stretch, as columns."""
        random = Random(first)
        items = [self.at(random, i, window) for i in range(first, stop)]
        if self.is_graph:
            return GraphLines.of_dicts([{"at": _START + first + i, **item} for i, item in enumerate(items)])  # type: ignore[dict-item]
        times = pa.array(range(_START + first, _START + stop), pa.int64())
        return pa.table({"at": times, **{key: [item[place] for item in items] for place, key in enumerate("spo")}})


def _iso(millis: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis / 1000)) + f".{millis % 1000:03d}Z"


def _seconds(millis: int) -> str:
    return f"{millis // 1000}.{millis % 1000:03d}"


def _iri(name: str) -> str:
    return f"<{_EX}{name}>"


def _sparse(predicates: str, random: Random, i: int, window: int) -> Triple:
    nodes = window // 2 + 10
    subject, target = random.randrange(nodes), random.randrange(nodes)
    return _iri(f"n{subject}"), _iri(random.choice(predicates)), _iri(f"n{target}")


def _star(random: Random, i: int, window: int) -> Triple:
    subject, place = _iri(f"b{i // 3}"), i % 3
    target = random.randrange(window // 3 + 10)
    return subject, _iri(("buyer", "item", "shop")[place]), _iri(f"{'uis'[place]}{target}")


def _selective(random: Random, i: int, window: int) -> Triple:
    nodes = window // 2 + 10
    subject, target = random.randrange(nodes), random.randrange(nodes)
    return _iri(f"n{subject}"), _iri("rare" if i % 100 == 0 else random.choice("pq")), _iri(f"n{target}")


def _rspql(select: str, where: str, output: str = "ISTREAM", tail: str = "") -> str:
    return (
        f"PREFIX : <{_EX}> REGISTER {output} <urn:q> STARTING AT {{start}} AS SELECT {select} "
        f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT{{window}}S STEP PT{{slide}}S] "
        f"WHERE {{{{ WINDOW <urn:w> {{{{ {where} }}}} }}}} {tail}"
    )


def _seraph(match: str, emit: str, output: str = "ON ENTERING") -> str:
    within = "WITHIN PT{window}S"
    return (
        f"REGISTER QUERY q STARTING AT {{start}} {{{{ {match.replace('WITHIN', within)} EMIT {emit} {output} "
        "EVERY PT{slide}S }}"
    )


def _purchase(random: Random, i: int, window: int) -> dict[str, Any]:
    user, item = random.randrange(window // 2 + 10), random.randrange(window // 4 + 10)
    return {
        "nodes": [
            {"id": f"u{user}", "labels": ["User"], "properties": {"uid": user, "age": 18 + user % 60}},
            {"id": f"i{item}", "labels": ["Item"], "properties": {"iid": item, "category": f"c{item % 20}"}},
        ],
        "relationships": [
            {"id": i, "type": "BOUGHT", "from": f"u{user}", "to": f"i{item}", "properties": {"price": i * 37 % 1000}}
        ],
    }


def _payment(random: Random, i: int, window: int) -> dict[str, Any]:
    accounts = window // 2 + 10
    source, target = random.randrange(accounts), random.randrange(accounts)
    return {
        "nodes": [],
        "relationships": [{"id": i, "type": random.choice("PQ"), "from": source, "to": target, "properties": {"w": i}}],
    }


SHAPES = (
    Shape("star", _rspql("?b ?u ?i ?s", "?b :buyer ?u ; :item ?i ; :shop ?s"), _star),
    Shape("path2", _rspql("?a ?c", "?a :p ?b . ?b :q ?c"), partial(_sparse, "pq")),
    Shape("path2-all", _rspql("?a ?c", "?a :p ?b . ?b :q ?c", "RSTREAM"), partial(_sparse, "pq")),
    Shape("path3", _rspql("?a ?d", "?a :p ?b . ?b :q ?c . ?c :p ?d"), partial(_sparse, "pq")),
    Shape("triangle", _rspql("?a ?b ?c", "?a :p ?b . ?b :p ?c . ?c :p ?a"), partial(_sparse, "p")),
    Shape("selective", _rspql("?a ?c", "?a :p ?b . ?b :rare ?c"), _selective),
    Shape("count", _rspql("(COUNT(*) AS ?n)", "?a :p ?b . ?b :q ?c", "RSTREAM"), partial(_sparse, "pq")),
    Shape(
        "filter",
        _seraph("MATCH (u:User)-[b:BOUGHT]->(i:Item) WITHIN WHERE b.price > 950", "u.uid, i.iid, b.price", "SNAPSHOT"),
        _purchase,
        True,
    ),
    Shape(
        "pairs",
        _seraph(
            "MATCH (u:User)-[:BOUGHT]->(i:Item)<-[:BOUGHT]-(x:User) WITHIN WHERE u.uid < x.uid",
            "i.category AS category, count(*) AS n",
            "SNAPSHOT",
        ),
        _purchase,
        True,
    ),
    Shape(
        "triangles",
        _seraph("MATCH (a)-[:P]->(b)-[:P]->(c)-[:P]->(a) WITHIN", "id(a), id(b), id(c)"),
        _payment,
        True,
    ),
    Shape(
        "two-hop",
        _seraph(
            "MATCH (a)-[:P]->(b) WITHIN OPTIONAL MATCH (b)-[:Q]->(c) WITHIN", "id(a) AS a, count(c) AS n", "SNAPSHOT"
        ),
        _payment,
        True,
    ),
)
_BY_NAME = {shape.name: shape for shape in SHAPES}


class Setting(NamedTuple):
    """A shape, with the events of its window, how many slides make a window, and how many events are pushed at once;
    1: those of a slide."""

    shape: Shape
    window: int
    overlap: int
    piece: int = PIECE


class Stream:
    """The pieces of a shape's stream for one window and slide, made once for all ways."""

    def __init__(self, shape: Shape, window: int, slide: int, most: int, piece: int) -> None:
        self._shape, self._window, self._slide, self._most = shape, window, slide, piece
        self._slides = max(2, min(most, MOST_EVENTS // slide))
        self._made: dict[tuple[int, int], object] = {}

    def fill(self) -> Iterator[object]:
        for first in range(0, self._window, PIECE):
            yield self._piece(first, min(first + PIECE, self._window))

    def first(self) -> object:
        """The events that let the first window be answered."""
        return self._piece(self._window, self._window + 2)

    def after(self, way: Way) -> Iterator[object]:
        """The pieces that follow; those for the plain evaluator are small, because it takes long."""
        slides = self._most // self._slide
        if way == "recompute":
            slides = min(slides, PLAIN_EVENTS // self._window)
        slides = min(max(1, slides), self._slides)
        size, begin = slides * self._slide, self._window + 2
        for first in range(begin, begin + self._slides * self._slide - size + 1, size):
            yield self._piece(first, first + size)

    def _piece(self, first: int, stop: int) -> object:
        if (first, stop) not in self._made:
            self._made[first, stop] = self._shape.pieces(self._window, first, stop)
        return self._made[first, stop]


def _options(way: Way) -> EvaluationOptions:
    if way == "recompute":
        return EvaluationOptions(force="recompute")
    return EvaluationOptions(matcher=way)


def measured_way(shape: Shape, window: int, slide: int, way: Way, stream: Stream) -> tuple[float, int, int]:
    """Processor milliseconds per slide, how many slides were measured, and the rows of the first of these."""
    session = Session.local(evaluation=_options(way))
    text, file_name = shape.query(window, slide)
    query = session.register(text, file_name=file_name)
    push = session.push if shape.is_graph else session.push_table
    for piece in stream.fill():
        push(STREAM, piece)  # type: ignore[operator]
    push(STREAM, stream.first())  # type: ignore[operator]
    rows = sum(len(answer.rows) for answer in query.poll())
    gc.collect()
    gc.disable()  # a full collection would fall on one of the ways
    spent, slides = 0.0, query.instants
    began = slides
    for piece in stream.after(way):
        start = time.process_time()
        push(STREAM, piece)  # type: ignore[operator]
        query.poll()
        spent += time.process_time() - start
        slides = query.instants
        if spent > ENOUGH:
            break
    gc.enable()
    return spent * 1000 / max(1, slides - began), slides - began, rows


def measured_cell(setting: Setting, repetitions: int, most: int) -> dict[str, Any]:
    """Figures of all ways at one setting, the best of a few runs each."""
    shape, window, overlap, piece = setting
    slide = window // overlap
    stream = Stream(shape, window, slide, most, piece)
    record: dict[str, Any] = {"query": shape.name, "window": window, "slide": slide, "overlap": overlap}
    record |= {"pushed": "slide by slide" if piece == 1 else "in pieces", "ms": {}}
    ways = [way for way in WAYS if way != "semijoin" or not shape.is_graph]
    for _ in range(repetitions):  # in turns: the machine's other work is shared by all ways
        for way in ways:
            figure, slides, rows = measured_way(shape, window, slide, way, stream)
            record["ms"][way] = min(round(figure, 4), record["ms"].get(way, figure))
            record["slides"], record["rows"] = slides, rows
    best = min((figure, way) for way, figure in record["ms"].items() if way != "auto")
    return record | {"best": best[1], "ratio": round(record["ms"]["auto"] / max(best[0], 1e-6), 2)}


def measured(settings: Iterable[Setting], repetitions: int, most: int = MOST_SLIDES) -> list[dict[str, Any]]:
    found = []
    for setting in settings:
        if setting.window >= setting.overlap:
            found.append(measured_cell(setting, repetitions, most))
            print(said(found[-1]), flush=True)
    return found


def said(record: dict[str, Any]) -> str:
    ways = "  ".join(f"{way} {figure:,.3f}" for way, figure in record["ms"].items())
    mark = " <-- above the goal" if record["ratio"] > GOAL else ""
    return (
        f"{record['query']:>10} {record['window']:>9,} / {record['overlap']:<5,} ms per slide: {ways}; "
        f"auto / {record['best']} = {record['ratio']:.2f}{mark}"
    )


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    ratios = [record["ratio"] for record in records]
    return {
        "goal": GOAL,
        "cells": len(ratios),
        "above": sum(ratio > GOAL for ratio in ratios),
        "worst": max(ratios),
        "median": statistics.median(ratios),
    }


def run(smoke: bool = False) -> dict[str, Any]:
    if smoke:
        records = measured([Setting(shape, 100, 10, piece) for shape in SHAPES for piece in (1, PIECE)], 1, 3)
    else:
        live = product(SHAPES, WINDOWS[:2], OVERLAPS, (1,))
        records = measured(map(Setting._make, (*product(SHAPES, WINDOWS, OVERLAPS, (PIECE,)), *live)), 2)
    told = summary(records)
    print(f"auto / best: median {told['median']:.2f}, worst {told['worst']:.2f}; {told['above']} cells above {GOAL}")
    return {"summary": told, "measured": records}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(_BY_NAME))
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)))
    parser.add_argument("--overlaps", default=",".join(map(str, OVERLAPS)))
    parser.add_argument("--piece", type=int, default=PIECE, help="events pushed at once; 1: those of a slide")
    parser.add_argument("--repetitions", type=int, default=2)
    asked = parser.parse_args()
    shapes = [_BY_NAME[name] for name in asked.only.split(",")]
    windows, overlaps = (list(map(int, text.split(","))) for text in (asked.windows, asked.overlaps))
    records = measured(map(Setting._make, product(shapes, windows, overlaps, (asked.piece,))), asked.repetitions)
    print(summary(records))


if __name__ == "__main__":
    main()
