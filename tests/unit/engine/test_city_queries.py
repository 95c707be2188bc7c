"""Queries over a city's sensors: several streams of observations joined with one repository that describes sensors,
roads and places. Every way to run them gives the same rows, and none keeps much more than the repository has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anabranch.engine.answers import row_key
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.terms import RDF_TYPE, XSD_DOUBLE, XSD_INTEGER, Iri, Literal, Term, Triple
from anabranch.model.triples import TripleGraph

C = "http://city/"
SECOND = 1_000_000
KINDS = {
    "traffic": ("CongestionLevel", "AvgSpeed", "VehicleCount"),
    "weather": ("Temperature", "Humidity", "WindSpeed"),
    "parking": ("ParkingVacancy",),
    "pollution": ("API",),
}
STREAMS = {"traffic1": "traffic", "traffic2": "traffic", "weather1": "weather", "parking1": "parking"}
STREAMS |= {"parking2": "parking", "pollution1": "pollution"}


def iri(name: str) -> Iri:
    return Iri(C + name)


def degrees(value: int) -> Literal:
    return Literal(f"{10 + value % 40 / 100}", XSD_DOUBLE)


def repository() -> Iterator[Triple]:
    """Sixty places with a sensor of each kind, which observes properties of the place, and an event at every third."""

    def say(subject: str, predicate: str, value: Term) -> Triple:
        return Triple(iri(subject), iri(predicate), value)

    for at in range(60):
        yield say(f"place{at}", "hasFirstNode", iri(f"node{at}"))
        yield say(f"place{at}", "onRoad", Literal(f"Road {at % 7}"))
        yield say(f"node{at}", "hasLatitude", degrees(at * 7))
        yield say(f"node{at}", "hasLongitude", degrees(at * 11))
        for kind, properties in KINDS.items():
            yield Triple(iri(f"{kind}{at}"), RDF_TYPE, iri("Sensor"))
            for one in properties:
                name = f"{kind}{at}-{one}"
                yield Triple(iri(name), RDF_TYPE, iri(one))
                yield Triple(iri(name), RDF_TYPE, iri("Property"))
                yield say(f"{kind}{at}", "observes", iri(name))
                yield say(name, "isPropertyOf", iri(f"place{at}"))
        if at % 3 == 0:
            yield Triple(iri(f"event{at}"), RDF_TYPE, iri("CulturalEvent"))
            yield say(f"event{at}", "at", iri(f"place{at}"))


def observations(sensor: str, second: int) -> Event:
    triples: list[Triple] = []
    for place, one in enumerate(KINDS[STREAMS[sensor]]):
        seen = iri(f"seen-{sensor}-{one}-{second}")
        value = Literal(str((second * 37 + place * 11 + len(sensor)) % 100), XSD_INTEGER)
        triples += [
            Triple(seen, RDF_TYPE, iri("Observation")),
            Triple(seen, iri("observedBy"), iri(sensor)),
            Triple(seen, iri("observedProperty"), iri(f"{sensor}-{one}")),
            Triple(seen, iri("hasValue"), value),
        ]
    return Event(second * SECOND, triples=tuple(triples))


def user(second: int) -> Event:
    seen = iri(f"user-{second}")
    places = [Triple(seen, iri(name), degrees(second * 5)) for name in ("hasLatitude", "hasLongitude")]
    return Event(second * SECOND, triples=(Triple(seen, iri("observedBy"), iri("users")), *places))


def seen(number: int, sensor: str, kind: str = "?ob") -> str:
    return (
        f"{{ ?o{number} a {kind} . ?o{number} :observedProperty ?p{number} . ?o{number} :hasValue ?v{number} . "
        f"?o{number} :observedBy :{sensor} }}"
    )


def near(first: int, second: int, far: str) -> str:
    parts = [f"(?{name}{first} - ?{name}{second}) * (?{name}{first} - ?{name}{second})" for name in ("lat", "lon")]
    return f"FILTER ({' + '.join(parts)} < {far})"


def place(number: int) -> str:
    return (
        f"?p{number} :isPropertyOf ?f{number} . ?f{number} :hasFirstNode ?n{number} . "
        f"?n{number} :hasLatitude ?lat{number} ; :hasLongitude ?lon{number}"
    )


EVENT = "{ ?e a :CulturalEvent . ?e :at ?f9 . ?f9 :hasFirstNode ?n9 . ?n9 :hasLatitude ?lat9 ; :hasLongitude ?lon9 }"
USER = "{ ?o2 :hasLatitude ?lat2 ; :hasLongitude ?lon2 ; :observedBy :users }"
LEVELS = "?p1 a :CongestionLevel . ?p2 a :CongestionLevel ."
QUERIES = {
    "levels of two roads": f"?v1 ?v2 | {LEVELS} {seen(1, 'traffic1')} {seen(2, 'traffic2')}",
    "weather beside a level": "?v1 ?v2 ?v3 ?v4 | ?p1 a :Temperature . ?p2 a :Humidity . ?p3 a :WindSpeed . "
    f"?p4 a :CongestionLevel . {seen(1, 'weather1')} {seen(2, 'weather1')} {seen(3, 'weather1')} {seen(4, 'traffic1')}",
    "a mean of two levels": f"((?v1 + ?v2) / 2 AS ?mean) | {LEVELS} {seen(1, 'traffic1')} {seen(2, 'traffic2')}",
    "events near a user": f"?e ?o2 | {EVENT} {USER} {near(2, 9, '0.01')}",
    "events near a road": f"?e ?v1 | ?p1 a :CongestionLevel . {place(1)} . {seen(1, 'traffic1')} {EVENT} "
    + near(1, 9, "0.02"),
    "parking near a user": f"?v1 ?o2 | ?p1 a :ParkingVacancy . {place(1)} . ?o1 a ?ob . ?o1 :observedProperty ?p1 . "
    f"?o1 :hasValue ?v1 {USER} {near(1, 2, '0.05')}",
    "little parking": "?v1 ?v2 | ?p1 a :ParkingVacancy . ?p2 a :ParkingVacancy . "
    f"{seen(1, 'parking1')} {seen(2, 'parking2')} FILTER (?v1 < 50 || ?v2 < 50)",
    "parking near events": f"?e ?v2 | {EVENT} {{ ?p2 a :ParkingVacancy . {place(2)} }} "
    f"{{ ?o2 a ?ob . ?o2 :observedProperty ?p2 . ?o2 :hasValue ?v2 }} {near(2, 9, '0.01')}",
    "mean parking near events": f"?e (AVG(?v2) AS ?mean) | {EVENT} {{ ?o2 a ?ob . ?o2 :observedProperty ?p2 . "
    f"?p2 a :ParkingVacancy . {place(2)} . ?o2 :hasValue ?v2 }} {near(2, 9, '0.01')} }} GROUP BY ?e",
    "any two observations of one kind": "?o1 ?o2 | ?o1 a ?ob . ?o2 a ?ob . ?o1 :hasValue ?v1 . ?o2 :hasValue ?v2 . "
    "FILTER (?v1 > ?v2 + 60)",
    "roads, where they are known": f"?v1 ?road ?d | ?p1 a :VehicleCount . {seen(1, 'traffic2')} BIND (?v1 * 2 AS ?d) "
    "FILTER (?d > 60) OPTIONAL { ?p1 :isPropertyOf ?f1 . ?f1 :onRoad ?road }",
    "how much each sensor saw": "?s (COUNT(?o1) AS ?n) (MAX(?v1) AS ?most) | ?s a ?kind . ?s :observes ?p1 . "
    "?other :observes ?p1 . ?o1 a ?ob . ?o1 :observedProperty ?p1 . ?o1 :hasValue ?v1 . "
    "?o1 :observedBy ?s } GROUP BY ?s",
}


def rows_of(body: str, rules: str, evaluation: EvaluationOptions) -> list[tuple[int, list[object]]]:
    columns, _, where = body.partition(" | ")
    where = where if "GROUP BY" in where else where + " }"
    streams = "".join(f"FROM STREAM <{C}{name}> [RANGE 3s STEP 1s]\n" for name in (*STREAMS, "users"))
    text = f"PREFIX : <{C}>\nREGISTER QUERY q AS SELECT {columns}\nFROM <{C}repository>\n{streams} WHERE {{ {where}"
    session = Session.local(rules=rules, streams=[C + name for name in (*STREAMS, "users")], evaluation=evaluation)
    session.graph(C + "repository", TripleGraph(repository()))
    query = session.register(text)
    for second in range(1, 7):
        for name in STREAMS:
            session.push(C + name, observations(name, second))
        session.push(C + "users", user(second))
    session.finish()
    assert not session.failures()
    return [(int(answer.at), sorted(map(row_key, answer.rows), key=repr)) for answer in query.poll()]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_over_sensors_and_their_repository_has_the_same_rows_however_it_runs(name: str) -> None:
    plain = rows_of(QUERIES[name], "none", EvaluationOptions(force="recompute"))
    assert any(rows for _, rows in plain)
    assert rows_of(QUERIES[name], "all", EvaluationOptions()) == plain
    assert rows_of(QUERIES[name], "all", EvaluationOptions(force="recompute")) == plain
