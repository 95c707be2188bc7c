"""Scenes: the window as a graph, with what came, what left and what matches."""

from __future__ import annotations

import pytest

from anabranch.insight.recording import Recording
from anabranch.insight.scenes import MOST_ELEMENTS, Scenes
from anabranch.insight.shapes import to_json
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import RDF_TYPE, Iri, Literal, Triple
from anabranch.model.values import Node, Relationship

from .recordings import case_recordings

SECOND = 1_000_000
RECORDINGS = {name: recording for name, recording, _ in case_recordings()}
PAIRS = """REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z {
  MATCH (a)-[r:R]->(b) WITHIN PT3S WHERE r.weight > 5 EMIT a.id AS a SNAPSHOT EVERY PT1S }"""


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_link_of_a_scene_has_both_its_ends(name: str) -> None:
    scenes = Scenes(RECORDINGS[name])
    before: dict[str, object] = {}
    for at in scenes.instants[:20]:
        scene = scenes.scene(at)
        names = {element.id for element in scene.elements}
        assert len(names) == len(scene.elements) == scene.total
        assert set(scene.matched) <= names
        assert set(scene.entered) <= names
        for element in scene.elements:
            if element.kind != "node":
                assert {element.source, element.target} <= names
        assert {element.id for element in scene.left} == before.keys() - names
        before = dict.fromkeys(names)
        assert isinstance(to_json(scene), dict)


def _relationship(number: int, weight: int) -> Event:
    ends = (Node(2 * number, (), {"id": 2 * number}), Node(2 * number + 1))
    return Event(
        number * SECOND, ends, (Relationship(f"e{number}", "R", *(one.id for one in ends), {"weight": weight}),)
    )


def test_what_came_left_and_matches_is_told() -> None:
    scenes = Scenes(Recording(PAIRS, events={"s": [_relationship(1, 9), _relationship(2, 1), _relationship(5, 9)]}))
    first, second, *_, last = [scenes.scene(at) for at in scenes.instants]
    assert set(first.entered) == {"re1", "n2", "n3"}
    assert set(second.entered) == {"re2", "n4", "n5"}
    assert set(second.matched) == {"re1", "n2", "n3"}, "the second is too light"
    assert {element.id for element in last.left} == {"re2", "n4", "n5"}
    assert set(last.matched) == {"re5", "n10", "n11"}


def test_literals_are_properties_of_their_subject_and_types_its_label() -> None:
    text = """REGISTER QUERY q AS PREFIX : <http://x/>
    SELECT ?x FROM STREAM <http://x/s> [RANGE 10s STEP 1s] WHERE { ?x :knows ?y . ?y :name "Bo" }"""
    ada, bo = Iri("http://x/ada"), Iri("http://x/bo")
    triples = (
        Triple(ada, Iri("http://x/knows"), bo),
        Triple(bo, Iri("http://x/name"), Literal("Bo")),
        Triple(bo, Iri("http://x/name"), Literal("Robert")),
        Triple(ada, RDF_TYPE, Iri("http://x/Person")),
    )
    scene = Scenes(Recording(text, events={"http://x/s": [Event(0, triples=triples)]})).scene()
    nodes = {element.id: element for element in scene.elements if element.kind == "node"}
    [link] = [element for element in scene.elements if element.kind == "triple"]
    assert nodes["<http://x/ada>"].label == ":Person"
    assert sorted(nodes["<http://x/bo>"].properties[":name"]) == ["Bo", "Robert"]  # type: ignore[arg-type]
    assert (link.source, link.target, link.label) == ("<http://x/ada>", "<http://x/bo>", ":knows")
    assert set(scene.matched) == {link.id, *nodes}


def test_of_very_many_elements_matched_and_recent_ones_are_shown() -> None:
    events = [_relationship(number, 9 if number == 1 else 1) for number in range(1, 300)]
    crowd = [Event(SECOND, one.nodes, one.relationships) for one in events]
    scene = Scenes(Recording(PAIRS, events={"s": crowd})).scene()
    assert scene.truncated
    assert scene.total == 3 * 299
    assert MOST_ELEMENTS - 3 < len(scene.elements) <= MOST_ELEMENTS
    assert set(scene.matched) == {"re1", "n2", "n3"}
    names = {element.id for element in scene.elements}
    assert all({one.source, one.target} <= names for one in scene.elements if one.kind == "relationship")


def test_an_instant_between_two_shows_the_one_before() -> None:
    scenes = Scenes(RECORDINGS["bikes_snapshot-student_trick"])
    at = parse_instant("2022-10-14T15:17Z")
    assert scenes.scene(at).at == parse_instant("2022-10-14T15:15Z")
