"""The mapping between the models: what RDF looks like as a property graph, and the other way round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.compare import content_key
from anabranch.model.event import Event
from anabranch.model.mapping import Mapping
from anabranch.model.temporal import parse_date, parse_date_time, parse_duration, parse_local_date_time, parse_time
from anabranch.model.terms import RDF_TYPE, XSD, Blank, Iri, Literal, Triple, tagged
from anabranch.model.values import Node, Relationship

EX = "http://example.org/"
A, B, KNOWS, AGE = (Iri(EX + name) for name in ("a", "b", "knows", "age"))


def typed(lexical: str, name: str) -> Literal:
    return Literal(lexical, XSD + name)


def elements(*triples: Triple, mapping: Mapping | None = None) -> tuple[tuple[Node, ...], tuple[Relationship, ...]]:
    return (mapping or Mapping()).elements_of(Event(0, triples=triples))


# --- triples as elements ----------------------------------------------------------------------------------------------


def test_types_are_labels_literals_are_properties_and_other_triples_are_relationships() -> None:
    (a, b), (knows,) = elements(
        Triple(A, RDF_TYPE, Iri(EX + "Person")), Triple(A, AGE, typed("42", "integer")), Triple(A, KNOWS, B)
    )
    assert (a.id, a.labels, a.properties) == (EX + "a", ("Person",), {"age": 42})
    assert (b.id, b.labels, b.properties) == (EX + "b", (), {})
    assert (knows.type, knows.source, knows.target) == ("knows", EX + "a", EX + "b")
    assert knows.id == f"{EX}a {EX}knows {EX}b"


def test_several_values_of_one_key_are_a_list_in_their_order_and_the_same_one_counts_once() -> None:
    two, one = Triple(A, AGE, typed("2", "integer")), Triple(A, AGE, typed("1", "integer"))
    (a,), () = elements(two, one, two)
    assert a.properties == {"age": [2, 1]}


def test_blank_nodes_are_told_apart_by_their_documents() -> None:
    (one, other), _ = elements(Triple(Blank("b"), KNOWS, Blank("b", "doc")))
    assert (one.id, other.id) == ("_:b", "_:doc.b")


def test_with_a_vocabulary_its_names_are_short_and_all_others_whole() -> None:
    mapping = Mapping(vocabulary=EX)
    (a,), _ = elements(
        Triple(A, AGE, Literal("1")), Triple(A, Iri("http://other/x#size"), Literal("2")), mapping=mapping
    )
    assert a.properties == {"age": "1", "http://other/x#size": "2"}


@pytest.mark.parametrize("iri", ["http://x.org/y#name", "http://x.org/name", "urn:x:name"])
def test_without_a_vocabulary_a_name_is_what_follows_the_last_separator(iri: str) -> None:
    (a,), _ = elements(Triple(A, Iri(iri), Literal("1")))
    assert a.properties == {"name": "1"}


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (typed("7", "long"), 7),
        (typed("9223372036854775808", "integer"), 9223372036854775808.0),
        (typed("1.5", "decimal"), 1.5),
        (typed("1e3", "double"), 1000.0),
        (typed("-INF", "float"), float("-inf")),
        (typed("1", "boolean"), True),
        (typed("2024-05-01T10:00:00Z", "dateTime"), parse_date_time("2024-05-01T10:00Z")),
        (typed("2024-05-01T10:00:00", "dateTime"), parse_local_date_time("2024-05-01T10:00")),
        (typed("2024-05-01", "date"), parse_date("2024-05-01")),
        (typed("10:00:00+01:00", "time"), parse_time("10:00+01:00")),
        (typed("-P1D", "duration"), parse_duration("P-1D")),
        (tagged("hallo", "de"), "hallo"),
        (typed("twelve", "integer"), "twelve"),
        (Literal("POINT(1 2)", "http://www.opengis.net/ont/geosparql#wktLiteral"), "POINT(1 2)"),
    ],
)
def test_a_literal_is_the_value_that_it_stands_for_or_else_its_text(literal: Literal, value: object) -> None:
    (a,), _ = elements(Triple(A, AGE, literal))
    assert a.properties["age"] == value
    assert type(a.properties["age"]) is type(value)


# --- elements as triples ----------------------------------------------------------------------------------------------


def test_ids_that_are_iris_stay_and_others_stand_behind_the_prefix() -> None:
    mapping = Mapping(resources="urn:r:")
    ids = [EX + "a", 5, "5", "a b", "_:x", "ü", "relationship/1"]
    terms = [mapping.resource(one) for one in ids]
    assert terms == [
        A,
        Iri("urn:r:5"),
        Iri("urn:r:%35"),
        Iri("urn:r:a%20b"),
        Blank("x"),
        Iri("urn:r:ü"),
        Iri("urn:r:%72elationship/1"),
    ]
    assert [mapping.id_of(term) for term in terms] == ids


def test_a_relationship_with_properties_is_a_triple_and_a_statement_about_it() -> None:
    mapping = Mapping(vocabulary=EX, resources=EX)
    found = mapping.triples_of(Event(0, (), (Relationship(7, "knows", "a", "b", {"age": 3}),)))
    assert found[0] == Triple(A, KNOWS, B)
    statement = Iri(EX + "relationship/7")
    assert Triple(statement, AGE, typed("3", "integer")) in found
    assert len(found) == 6


def test_lists_are_one_triple_per_item_and_maps_are_json_text() -> None:
    node = Node(EX + "a", (), {"age": [1, None, True], "knows": {"x": [1]}})
    found = Mapping(vocabulary=EX).triples_of(Event(0, (node,)))
    assert [triple.object for triple in found] == [
        typed("1", "integer"),
        typed("true", "boolean"),
        Literal('{"x": [1]}'),
    ]


def test_a_time_in_a_region_keeps_its_offset_and_has_its_seconds() -> None:
    node = Node(1, (), {"t": parse_date_time("2024-07-01T10:00[Europe/Stockholm]")})
    (triple,) = Mapping().triples_of(Event(0, (node,)))
    assert triple.object == typed("2024-07-01T10:00:00+02:00", "dateTime")


# --- there and back ---------------------------------------------------------------------------------------------------

names = st.text(min_size=1, max_size=5)
ids = st.one_of(st.integers(-20, 20), st.text(max_size=4), st.sampled_from(["http://x/y", "_:b", "12", "-3", "007"]))
values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from(
        [parse_date("2024-02-29"), parse_local_date_time("2024-02-29T12:00"), parse_date_time("-0044-03-15T12:00Z")]
    ),
    st.sampled_from(
        [parse_time("12:00Z"), parse_duration("P1MT2.5S"), parse_duration("P-1DT-1S"), parse_date("+12345-01-01")]
    ),
)
described = st.dictionaries(names, values, min_size=1, max_size=3)
vocabularies = st.sampled_from([None, "http://v/", "urn:v:"])


@given(
    vocabularies,
    st.lists(
        st.builds(Node, ids, st.lists(names, unique=True).map(tuple), described),
        min_size=1,
        max_size=3,
        unique_by=lambda node: (type(node.id), node.id),
    ),
    st.data(),
)
def test_what_both_models_can_say_survives_there_and_back(
    vocabulary: str | None, nodes: list[Node], data: st.DataObject
) -> None:
    ends = st.sampled_from([node.id for node in nodes])
    relationships = data.draw(
        st.lists(
            st.builds(Relationship, ids, names, ends, ends, described),
            max_size=3,
            unique_by=lambda one: (type(one.id), one.id),
        )
    )
    mapping = Mapping(vocabulary)
    event = Event(0, tuple(nodes), tuple(relationships))
    again = mapping.elements_of(Event(0, triples=mapping.triples_of(event)))
    assert {content_key(node) for node in again[0]} == {content_key(node) for node in nodes}
    assert {content_key(one) for one in again[1]} == {content_key(one) for one in relationships}


triples = st.builds(
    Triple,
    st.sampled_from([A, B, Blank("x")]),
    st.sampled_from([KNOWS, AGE, RDF_TYPE, Iri("http://other/p")]),
    st.sampled_from([A, Iri(EX + "T"), Blank("x"), typed("1", "integer"), typed("2", "integer"), Literal("x")]),
)


@given(st.lists(triples, unique=True))
def test_triples_survive_there_and_back_with_a_vocabulary(given_triples: list[Triple]) -> None:
    mapping = Mapping(vocabulary=EX)
    nodes, relationships = mapping.elements_of(Event(0, triples=tuple(given_triples)))
    assert set(mapping.triples_of(Event(0, nodes, relationships))) == set(given_triples)
