"""Which LOAD STREAM statements have a shape, and why the others have none."""

from __future__ import annotations

import pytest

from anabranch.algebra.explain import explain
from anabranch.algebra.record_shape import RecordShape, record_shape
from anabranch.syntax.seraph import ingestions


def shape(clauses: str) -> RecordShape | str:
    (load,) = ingestions(f"LOAD STREAM FROM 'r.csv' AS r AT r.t {clauses}")
    return record_shape(load)


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("UNWIND r.items AS i CREATE (:A {x: i})", "UNWIND makes several rows of a record"),
        ("CREATE (a:A) WITH a, r WHERE r.x = 1 CREATE (a)-[:T]->(:B)", "WHERE comes after a clause that writes"),
        ("WITH DISTINCT r.x AS x CREATE (:A {x: x})", "WITH needs Distinct"),
        ("CREATE (a:A) SET a = r", "SET a takes a map whose keys the record decides"),
        ("CREATE (a:A {all: r})", "an expression reads all of `r`"),
        ("CREATE (a:A {x: [i IN r.xs | i + 1]})", "an expression is a Comprehension"),
        ("CREATE (a:A {x: rand()})", "an expression reads the clock or chance"),
        ("CREATE (a:A {day: date(r.x)})", "`day` is a temporal value or a point"),
        ("WITH r.a AS a CREATE (a)-[:T]->(:B)", "`a` is a value of the record"),
    ],
)
def test_a_mapping_whose_records_differ_in_shape_says_why(clauses: str, reason: str) -> None:
    assert shape(clauses) == reason


def test_properties_that_later_clauses_read_or_change_are_followed() -> None:
    found = shape("CREATE (a:A {x: r.x}) WITH a AS b, r SET b.y = b.x, b:New CREATE (b)<-[:T]-(:C)")
    assert isinstance(found, RecordShape)
    first, second = found.nodes
    assert (first.labels, first.number, second.number) == (("A", "New"), 1, 2)
    assert dict(first.properties)["y"] == dict(first.properties)["x"]
    (edge,) = found.relationships
    assert (edge.source, edge.target, edge.number) == (1, 0, 3)


def test_explain_says_that_a_mapping_goes_by_columns() -> None:
    (load,) = ingestions("LOAD STREAM FROM 'r.csv' AS r AT r.t MERGE (a:A {k: r.k})")
    assert "  execution   by columns of records, as the stream is read" in explain(load).text()
    assert explain(load).to_dict()["execution"] == "by columns of records"
