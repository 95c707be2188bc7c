"""Small queries over triples, built by hand, and what an engine tells of them."""

from __future__ import annotations

from typing import Any

from anabranch.algebra.operators import Operator, Registration, Stream, TripleSource, Window
from anabranch.algebra.triples import Construct, GraphPattern, TriplePattern, Var
from anabranch.engine.answers import Answer
from anabranch.engine.engine import Engine
from anabranch.engine.query_options import QueryOptions
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.model.terms import Iri, Literal, Triple

P, Q = Iri("urn:anabranch:vocabulary:p"), Iri("urn:anabranch:vocabulary:q")


def at(clock: str) -> int:
    return parse_instant(f"2024-05-01T{clock}Z")


def event(clock: str, *said: str) -> Event:
    """`a` at a time is the triple n:a p "a"."""
    return Event(at(clock), triples=tuple(Triple(Iri(f"n:{name}"), P, Literal(name)) for name in said))


def lasting(text: str, stream: str = "s", **more: Any) -> Window:
    return Window(Stream(stream), parse_duration(text), **more)


def last(count: int, stream: str = "s", **more: Any) -> Window:
    return Window(Stream(stream), count=count, **more)


def everything(stream: str = "s") -> Window:
    return Window(Stream(stream), unbounded=True)


def objects(source: TripleSource) -> Operator:
    return GraphPattern(source, (TriplePattern(Var("s"), P, Var("x")),))


def passed_on(source: TripleSource) -> Operator:
    """The triples as they are."""
    return Construct(objects(source), (TriplePattern(Var("s"), P, Var("x")),))


def asked(plan: Operator, name: str = "q", every: str | None = "PT1M", **more: Any) -> Registration:
    duration: Duration | None = None if every is None else parse_duration(every)
    more.setdefault("starting_at", None)
    more.setdefault("language", "csparql")
    return Registration(name, plan, every=duration, **more)


def options(registration: Registration, **more: Any) -> QueryOptions:
    return QueryOptions(text="-", source_name=registration.name, **more)


def told(engine: Engine, name: str = "q") -> list[str]:
    """One line per answer: the time of day and the objects, in the order of the alphabet."""
    return [f"{_clock(answer.at)} {' '.join(_objects(answer))}".rstrip() for answer in engine.poll(name)]


def _clock(instant: int) -> str:
    minutes, micros = divmod(instant - at("00:00"), 60_000_000)
    seconds = f":{micros // 1_000_000:02d}" if micros else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}{seconds}"


def _objects(answer: Answer) -> list[str]:
    place = answer.columns.index("object" if "object" in answer.columns else "x")
    return sorted(str(getattr(row[place], "lexical", row[place])) for row in answer.rows)
