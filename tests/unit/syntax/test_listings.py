"""The listings of the Seraph paper, to the letter: what parses as printed, and where the others are refused.

Source: Rost et al., Seraph: Continuous Queries on Property Graph Streams, EDBT 2024.
"""

from __future__ import annotations

import pytest

from anabranch.errors import QueryError, line_and_column
from anabranch.syntax.seraph import ingestions, plan, registrations

LISTING_1 = """WITH datetime() - duration('PT60M') AS win_start,
   datetime() AS win_end,
MATCH (:Bike)-[:rentedAt]->(s:Station),
      q = (b)-[:returnedAt|rentedAt*3..]->(o:Station)
WITH r, s, q, relationships(q) AS rels,
    [n IN nodes(q) WHERE 'Station' IN labels(n) | n.id] AS
    hops
WHERE ALL(e IN rels WHERE
    win_start <= e.val_time <= win_end AND
    e.user_id = r.user_id AND e.val_time > r.val_time AND
    (e.duration IS NULL OR e.duration < 20) )
RETURN r.user_id, s.id, r.val_time, hops"""

LISTING_2 = """REGISTER QUERY anomalous_routes STARTING AT datetime() {
  MATCH path = allShortestPaths(
    (rack:Rack)-[:HOLDS|ROUTES|CONNECTS*]->(r:Router:Egress))
  WITHIN PT10M
  WITH rack, avg(length(path)) as 10minAvg, path
  WHERE (10minAvg - 5 / 0.5) >= 3
  EMIT path
  SNAPSHOT
  EVERY PT1M
}"""

LISTING_3 = """REGISTER QUERY watch_for_suspects STARTING AT datetime() {
  MATCH (call:Event)-[:OCCURRED_AT]->(l:Location)
  WITHIN PT15M
  WITH call, point(l) AS crime_scene
  MATCH (crime:Event)<-[:PARTY_TO]->(person:Suspect)-[:
    NEAR_TO]->(last_seen:Location)
  WITHIN PT15M
  WITH call, crime, person, last_seen,
    distance(point(last_seen), crime_scene) AS distance
  WHERE distance < 3000 AND call.type=crime.type
  EMIT person, last_seen, call.description
  SNAPSHOT
  EVERY PT5M
}"""

LISTING_4 = """LOAD STREAM FROM 'kafka:///bikes.stream' AS event
MERGE (b:Bike {id: event.bike_id})
MERGE (s:Station {id: event.location_id})
CREATE (b)-[:rentedAt {val_time: event.time,
          user_id: event.uid}]->(s)"""

LISTING_5 = """REGISTER QUERY student_trick STARTING AT 2022-10-14T14:45
{
  MATCH (:Bike)-[r:rentedAt]->(s:Station),
    q = (b)-[:returnedAt|rentedAt*3..]->(o:Station)
  WITHIN PT1H
  WITH r, s, q, relationships(q) AS rels,
    [n IN nodes(q) WHERE 'Station' IN labels(n) | n.id] AS
    hops
  WHERE ALL(e IN rels WHERE
    e.user_id = r.user_id AND e.val_time > r.val_time AND
    (e.duration IS NULL OR e.duration < 20) )
  EMIT r.user_id, s.id, r.val_time, hops
  ON ENTERING
  EVERY PT5M
}"""


def first_problem(error: QueryError) -> tuple[str, int, int]:
    diagnostic = error.diagnostics[0]
    assert diagnostic.span is not None
    return (diagnostic.message, *line_and_column(error.text, diagnostic.span.start))


def test_listing_1_as_printed_is_refused_at_its_comma_too_many() -> None:
    with pytest.raises(QueryError) as caught:
        plan(LISTING_1)
    assert first_problem(caught.value) == ("a comma too many", 2, 25)


def test_listing_1_without_the_comma_is_refused_where_it_lacks_r() -> None:
    with pytest.raises(QueryError) as caught:
        plan(LISTING_1.replace("win_end,\n", "win_end\n"))
    assert first_problem(caught.value) == ("no variable `r` in scope", 5, 6)


def test_listing_2_as_printed_is_refused_at_the_name_that_begins_with_a_digit() -> None:
    with pytest.raises(QueryError) as caught:
        registrations(LISTING_2)
    assert first_problem(caught.value) == ("unexpected `10minAvg`", 5, 35)
    assert caught.value.diagnostics[0].hint == "a name that begins with a digit needs backticks: `10minAvg`"


def test_listings_3_4_and_5_parse_as_printed() -> None:
    assert registrations(LISTING_3)[0].name == "watch_for_suspects"
    assert ingestions(LISTING_4)[0].stream == "bikes"
    assert registrations(LISTING_5)[0].columns == ("r.user_id", "s.id", "r.val_time", "hops")
