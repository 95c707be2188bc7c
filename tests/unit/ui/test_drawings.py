"""Operator graphs with places, and scenes as vertices and links."""

from __future__ import annotations

from anabranch.insight.shapes import Element, OperatorBox, OperatorGraph
from anabranch.ui.drawing import drawing
from anabranch.ui.scene import vertices_and_links

GRAPH = OperatorGraph(
    "q",
    (
        OperatorBox(0, "Window", "the last hour", (), "window", ("element",)),
        OperatorBox(1, "Static", "graph city", (), "static", ("element",)),
        OperatorBox(2, "Join", "a very long detail " * 20, (0, 1), "streaming", ("a",)),
        OperatorBox(3, "Result", "all rows", (2,), "result", ("a",)),
    ),
)


def test_boxes_do_not_overlap_and_stand_below_what_feeds_them() -> None:
    drawn = drawing(GRAPH, counted=True)
    boxes = {box["id"]: box for box in drawn["boxes"]}
    for edge in drawn["edges"]:
        assert boxes[edge["from"]]["y"] + boxes[edge["from"]]["h"] <= boxes[edge["to"]]["y"]
    left, right = sorted((boxes[0], boxes[1]), key=lambda box: float(box["x"]))
    assert left["x"] + left["w"] <= right["x"]
    assert all(
        box["x"] + box["w"] <= drawn["width"] and box["y"] + box["h"] <= drawn["height"] for box in boxes.values()
    )
    assert [box["part"] for box in drawn["boxes"]] == ["window", "static", "streaming", "answer"]
    assert len(boxes[2]["lines"]) == 3
    assert boxes[2]["full"] == GRAPH.boxes[2].detail


def test_a_graph_without_boxes_draws_nothing() -> None:
    assert drawing(OperatorGraph("q", ()), counted=False) == {}


def node(key: str, **properties: str) -> Element:
    return Element(f"n{key}", "s", 0, "node", key, label="Person", properties=properties)


def link(key: str, source: str, target: str) -> Element:
    return Element(f"r{key}", "s", 0, "relationship", key, f"n{source}", f"n{target}", "KNOWS")


def test_a_relationship_lights_its_ends_and_what_left_is_told_apart() -> None:
    elements = [node("1", name="Ada"), node("2"), link("1", "1", "2")]
    gone = [node("3"), link("2", "3", "2")]
    nodes, links = vertices_and_links(elements, ["r1"], gone, ["r1"], {}, [])
    found = {one["id"]: one for one in nodes}
    assert found["n1"]["title"] == "Ada"
    assert (found["n1"]["matched"], found["n2"]["matched"], found["n3"]["matched"]) == (True, True, False)
    assert (found["n1"]["state"], found["n3"]["state"]) == ("there", "left")
    assert {one["id"]: (one["state"], one["matched"]) for one in links} == {
        "r1": ("entered", True),
        "r2": ("left", False),
    }


def test_values_of_triples_become_words_of_their_subject() -> None:
    triples = [
        Element("t1", "s", 0, "triple", "", "<http://x.org/item/1>", None, "ebay:item.title", {"value": "Lamp"}),
        Element("t2", "s", 0, "triple", "", "<http://x.org/item/1>", "<http://x.org/person/2>", "ebay:item.seller"),
    ]
    nodes, links = vertices_and_links(triples, [], [], ["t1"], {}, [])
    assert [(one["title"], one["lines"], one["matched"]) for one in nodes] == [
        ("Lamp", ["title: Lamp"], True),
        ("person/2", [], False),
    ]
    assert [one["label"] for one in links] == ["seller"]


def test_kinds_keep_their_colours_from_scene_to_scene() -> None:
    kinds: list[str] = []
    (first,), _ = vertices_and_links([node("1")], [], [], [], {}, kinds)
    _, (other,) = vertices_and_links([link("1", "8", "9")], [], [], [], {}, kinds)
    (again,), _ = vertices_and_links([node("2")], [], [], [], {}, kinds)
    assert first["colour"] == again["colour"]
    assert other["id"] == "r1"
