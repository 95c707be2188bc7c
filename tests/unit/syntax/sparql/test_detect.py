"""Which language a text is taken for."""

from __future__ import annotations

import pytest

from anabranch.syntax.sparql.detect import detect


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("REGISTER QUERY q STARTING AT NOW { MATCH (n) WITHIN PT1M EMIT n EVERY PT1M }", "seraph"),
        ("REGISTER QUERY <a b> STARTING AT 2022-10-14T14:45 { MATCH (n) RETURN n }", "seraph"),
        ("REGISTER QUERY `select` { MATCH (n) RETURN n }", "seraph"),
        ("MATCH (n)-[:KNOWS]->(m) WHERE n.name = 'SELECT' RETURN n", "seraph"),
        ("// don't SELECT anything\nMATCH (n) RETURN n", "seraph"),
        ("LOAD STREAM FROM 'http://x' AS event MERGE (n)", "seraph"),
        ("REGISTER QUERY q AS SELECT * { }", "csparql"),
        ("REGISTER QUERY q COMPUTED EVERY 5m STARTING AT 2026-01-01T00:00:00Z AS SELECT * { }", "csparql"),
        ("PREFIX ex: <http://e/>\nREGISTER STREAM s AS CONSTRUCT { } WHERE { }", "csparql"),
        ("SELECT * FROM STREAM <s> [RANGE 1s STEP 1s] { }", "csparql"),
        ("SELECT ?x { ?x ?p ?y } AGGREGATE { (?n, COUNT, {?x}) }", "csparql"),
        ("SELECT * STREAM INTERMEDIATERESULT DURATION 1000 WHERE { }", "lupos"),
        ("select * where { window type slidingtriples 10 { } }", "lupos"),
        ("REGISTER RSTREAM <o> AS SELECT * { }", "rspql"),
        ("REGISTER QUERY q AS SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT1S] { }", "rspql"),
        ("PREFIX ex: <http://e/> SELECT * { }", "sparql"),
        ("BASE <http://e/> ASK { }", "sparql"),
        ("# REGISTER QUERY q AS\nSELECT ?match { ?match ?p 'FROM STREAM' }", "sparql"),
        ("DESCRIBE <http://e/#REGISTER>", "sparql"),
        ("", "sparql"),
    ],
)
def test_a_text_is_known_by_what_it_holds(text: str, language: str) -> None:
    assert detect(text) == language
