"""Copies of whole graphs: what was kept is what is found, and reading runs nothing."""

from __future__ import annotations

import pickle

import pytest

from anabranch.errors import StreamError
from anabranch.formats.graph_copies import packed_graph, unpacked_graph
from anabranch.model.graph import PropertyGraph
from anabranch.model.terms import Blank, Iri, Literal, Triple
from anabranch.model.triples import TripleGraph
from anabranch.model.values import Node, Relationship

TERMS = (Iri("http://ex/a"), Blank("b0", "g1"), Blank("b0", "g2"), Literal("x"), Literal("x", "http://ex/t"))


def again(graph: PropertyGraph | TripleGraph) -> PropertyGraph | TripleGraph:
    return unpacked_graph(b"".join(packed_graph(graph)))


def test_triples_come_back_in_their_order() -> None:
    graph = TripleGraph(Triple(Iri(f"http://ex/{n}"), Iri("http://ex/p"), term) for n in range(3) for term in TERMS)
    found = again(graph)
    assert isinstance(found, TripleGraph)
    assert list(found) == list(graph)


def test_nodes_and_relationships_come_back_with_their_values() -> None:
    nodes = [Node(1, ("A", "B"), {"a": [1, 2.0, "x"], "big": 2**60}), Node("1"), Node(-5)]
    graph = PropertyGraph(nodes, [Relationship(7, "R", 1, 99, {"t": True}), Relationship("r", "S", "1", -5)])
    found = again(graph)
    assert isinstance(found, PropertyGraph)
    assert list(found.nodes.items()) == list(graph.nodes.items())
    assert list(found.relationships.items()) == list(graph.relationships.items())


@pytest.mark.parametrize("graph", [PropertyGraph(), TripleGraph()])
def test_an_empty_graph_stays_what_it_is(graph: PropertyGraph | TripleGraph) -> None:
    found = again(graph)
    assert type(found) is type(graph)
    assert not list(found if isinstance(found, TripleGraph) else found.nodes)


def test_a_large_graph_is_kept_in_parts() -> None:
    graph = TripleGraph(Triple(Iri("http://ex/s"), Iri("http://ex/p"), Literal(str(n))) for n in range(140_000))
    parts = list(packed_graph(graph))
    assert len(parts) == 1 + 2 * 3
    assert list(again(graph)) == list(graph)  # type: ignore[arg-type]


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("it was run",)


def test_what_is_no_copy_is_refused_and_not_run() -> None:
    whole = b"".join(packed_graph(PropertyGraph([Node(1)])))
    for data in (pickle.dumps(Trap()), b"", b"ANBG", b"ANBG\x02\x00\x00\x00", b"ANBG\x01\x07\x00\x00", whole[:-1]):
        with pytest.raises(StreamError, match="copy of a graph"):
            unpacked_graph(data)
    with pytest.raises(StreamError):
        unpacked_graph(whole[:8] + b"\x05\x00\x00\x00hello")
