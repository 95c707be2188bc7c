"""Parse, print, parse is the identity."""

from __future__ import annotations

import pytest
from tests.suites import tck
from tests.support.seraph_printer import print_query, print_script

from anabranch.errors import QueryError
from anabranch.syntax.seraph.parser import parse_query, parse_script

QUERIES = [
    "RETURN -(5) AS a, -(-x) AS b, (-5).y AS c, 1 - -5 AS d, -5 ^ 2 AS e, (1 - 2) - (3 - 4) AS f",
    "RETURN NOT (a AND (b OR c)) XOR d AS x, (a = b) = c AS y, a = (b = c) AS z, (a < b) IS NULL AS w",
    "RETURN [(x IN xs)] AS a, [x IN xs] AS b, [x IN (y IN ys) | x] AS c, all(x IN xs WHERE x) AS d",
    "RETURN (a:B):C AS x, a {.*, .b, c, d: 1} AS y, a['b'][1..] AS z, a[..-1] AS w",
    "RETURN 'it\\'s \\\\ \\n' AS x, `a b`.`c``d` AS y, $0 + $p AS z, 1e300 AS w, 1.5e-7 AS v, 1E22 AS u",
    "MATCH p = shortestPath((a)-[:T*1..3 {k: 1}]->(b)), (c)<-[r:X|Y]-() WHERE exists((a)-->(b)) RETURN p",
    "MATCH (c) RETURN c.x AS x ORDER BY c.x DESC, c.y SKIP 1 LIMIT $n",
    "RETURN reduce(a = (1 = 2), x IN xs | a + x) AS x, CASE a WHEN 1 THEN 2 END AS y",
    "RETURN CASE WHEN a THEN b ELSE c END AS z, [p = (a)-[*2]-(b:L {x: 1}) WHERE p.x | 1] AS x",
    "RETURN EXISTS { MATCH (a) WHERE a.x = 1 RETURN a } AS y, EXISTS { (a)-->() } AS z",
    "RETURN DISTINCT *, count(DISTINCT a.b) AS x, count(*) AS y, date.truncate('day', d) AS z LIMIT 3",
    "RETURN 1 AS x UNION ALL RETURN 2 AS x UNION ALL RETURN 3 AS x",
]

SCRIPTS = [
    """REGISTER QUERY q STARTING AT 2022-10-14T14:45 {
         MATCH (a)-->(b) WITHIN P1M ON STREAM s WHERE a.x = 1
         OPTIONAL MATCH (b)-->(c) ON GRAPH g
         WITH a, count(*) AS n WHERE n > 1 EMIT a.x, n AS `the n` ON EXIT EVERY PT0.5S }
       REGISTER QUERY <r> { UNWIND [1] AS x RETURN x }""",
    """LOAD STREAM FROM 'kafka:///bikes' AS e AT e.time INTO rides
       UNWIND e.items AS i WITH e, i WHERE i.ok
       MERGE (b:Bike {id: i.id}) ON CREATE SET b.new = true ON MATCH SET b += {seen: 1}
       CREATE (b)-[:AT]->(s:Station) SET s:Big:Old, s = {x: 1}""",
]


@pytest.mark.parametrize("text", [text.replace("", "") for text in QUERIES])
def test_a_printed_query_parses_to_the_same_tree(text: str) -> None:
    tree = parse_query(text)
    assert parse_query(print_query(tree)) == tree


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_printed_script_parses_to_the_same_tree(text: str) -> None:
    tree = parse_script(text)
    assert parse_script(print_script(tree)) == tree


@pytest.mark.skipif(not tck.scenarios(), reason=f"the TCK is not at {tck.suites_folder()}")
def test_every_query_of_the_tck_survives_printing() -> None:
    seen = 0
    for scenario in tck.scenarios():
        try:
            tree = parse_query(scenario["query"])
        except QueryError:
            continue
        seen += 1
        assert parse_query(print_query(tree)) == tree, scenario["query"]
    assert seen > 1000
