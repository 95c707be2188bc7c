"""Drawings: the O-Graph and the D-Graph as Mermaid, Graphviz and SVG."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.unit.algebra.brokers import MARKET, QUERY, X, optimized

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.explain import Explanation, explain
from anabranch.algebra.expressions import Call, Constant, Variable
from anabranch.drawings import DrawingForm, DrawingSubject, draw, picture
from anabranch.drawings.layout import Rectangle, arranged
from anabranch.drawings.picture import Box, Panel, PictureEdge, wrapped
from anabranch.model.terms import Iri, Literal
from anabranch.syntax.seraph import ingestions, plan, registrations

TRICK = (Path(__file__).parents[3] / "examples/bikes/student_trick.seraph").read_text()
FORMS: tuple[DrawingForm, ...] = ("mermaid", "dot", "svg")
VIEWS: tuple[DrawingSubject, ...] = ("ograph", "dgraph")


def brokers() -> Explanation:
    return explain(QUERY, optimized=optimized())


def titles(panel: Panel) -> list[str]:
    return [box.title for box in panel.boxes]


def test_the_o_graph_has_every_step_before_and_after() -> None:
    before, after = picture([brokers()]).panels
    assert titles(before)[:6] == ["Emit", "Distinct", "Project", "Annotate", "Filter", "GraphPattern"]
    assert titles(after).count("GraphPattern") == titles(after).count("Filter") == 2
    assert {box.title: box.part for box in after.boxes if box.title in ("Join", "StaticPart")} == {
        "Join": "streaming",
        "StaticPart": "static",
    }


def test_one_stage_is_one_panel() -> None:
    assert [panel.title for panel in picture([brokers()], stage="after").panels] == ["query TotalAmountPerDayAndBroker"]
    (before,) = picture([brokers()], stage="before").panels
    assert "Merged" in titles(before)


def test_the_d_graph_follows_the_paper_s_figure_3() -> None:
    (panel,) = picture([brokers()], "dgraph", "after").panels
    box = {one.title: one for one in panel.boxes}
    linked = {(edge.tail, edge.head) for edge in panel.edges}
    for subject, predicate, object_ in (
        ("?broker", "b:is_from", "?country"),
        ("?broker", "x:does", "?tx"),
        ("?tx", "x:with", "?amount"),
    ):
        assert {(box[subject].id, box[predicate].id), (box[predicate].id, box[object_].id)} <= linked
    assert box["?country"].lines == ('?country = "CH"',)
    assert box["?amount"].lines == ("?amount ≥ 10",)
    assert {title for title, one in box.items() if one.filled} == {"?broker", "?total"}
    assert {
        (box["G"].id, box["sum"].id),
        (box["sum"].id, box["?amount"].id),
        (box["sum"].id, box["?total"].id),
    } <= linked
    frames = {frame.title: {one.title for one in panel.boxes if one.id in frame.boxes} for frame in panel.frames}
    assert frames == {
        "graph …/brokers.rdf": {"b:is_from", "?country"},
        "stream …/market.trdf [PT24H]": {"x:does", "?tx", "x:with", "?amount"},
        "aggregation": {"G", "sum"},
    }


def test_a_predicate_of_two_patterns_is_one_vertex_with_numbered_edges() -> None:
    knows = Iri(f"{X}knows")
    triples = (tr.TriplePattern(tr.Var("a"), knows, tr.Var("b")), tr.TriplePattern(tr.Var("b"), knows, tr.Var("c")))
    (panel,) = picture([explain(replace(QUERY, plan=tr.GraphPattern(MARKET, triples)))], "dgraph").panels
    assert titles(panel).count("x:knows") == 1
    assert [edge.label for edge in panel.edges] == ["1", "1", "2", "2"]


def test_what_is_optional_or_taken_away_has_a_frame_that_says_so() -> None:
    def pattern(name: str, object_: str) -> tr.GraphPattern:
        return tr.GraphPattern(MARKET, (tr.TriplePattern(tr.Var("a"), Iri(f"{X}{name}"), tr.Var(object_)),))

    both = tr.Minus(op.LeftJoin(pattern("p", "b"), pattern("q", "c"), lenient=True), pattern("r", "d"))
    (panel,) = picture([explain(replace(QUERY, plan=both))], "dgraph").panels
    assert [frame.title.partition(" …")[0] for frame in panel.frames] == [
        "stream",
        "optional: stream",
        "taken away: stream",
    ]


def test_property_graph_queries_are_drawn_as_well() -> None:
    trick = explain(registrations(TRICK)[0])
    (ograph,) = picture([trick]).panels
    assert titles(ograph)[:3] == ["Emit", "Project", "Filter"]
    (dgraph,) = picture([trick], "dgraph").panels
    assert {"s:Station", "r:rentedAt", "_n1:Bike"} <= set(titles(dgraph))


HOSTILE = 'x"]; end\n<script>&#35;`\\"{}|\x00\ud800--> %% <br/>'


MERMAID = re.compile(
    r"""\w+ (\[|\(\[|>) "[^"\[\]{}|`\\]*" (\]|\]\)) | \w+\ -(-|\.-)>\ \w+
    | subgraph\ \w+\["[^"\]]*"\] | end | (classDef|class|style)\ .*""",
    re.VERBOSE,
)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("form", FORMS)
def test_no_text_of_a_query_breaks_a_drawing(form: DrawingForm, view: DrawingSubject) -> None:
    condition = Call("sparql:equal", (Variable("a"), Constant(Literal(HOSTILE))))
    pattern = tr.GraphPattern(op.Static(HOSTILE), (tr.TriplePattern(tr.Var("a"), Iri(HOSTILE), Literal(HOSTILE)),))
    drawn = draw([explain(replace(QUERY, name=HOSTILE, plan=op.Filter(pattern, condition)))], form, view)
    if form == "svg":
        texts = [one.text for one in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
        assert any("<script>" in (text or "") for text in texts)
        assert "<script>" not in drawn
    elif form == "mermaid":
        head, body = drawn.split("\n")[:4], drawn.split("\n")[4:]
        assert [head[0], head[2]] == ["---", "---"]
        assert [line for line in body if not MERMAID.fullmatch(line.strip())] == []
    else:
        without_strings = re.sub(r'"(\\.|[^"\\])*"', "", drawn)
        assert '"' not in without_strings
        assert without_strings.count("{") == without_strings.count("}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("view", VIEWS)
def test_every_kind_of_statement_can_be_drawn(form: DrawingForm, view: DrawingSubject) -> None:
    (load,) = ingestions("LOAD STREAM FROM 'x.ndjson' AS e INTO rides MERGE (a:A {k: e.k})")
    explained = [brokers(), explain(registrations(TRICK)[0]), explain(load), explain(plan("RETURN 1 AS one"))]
    drawn = draw(explained, form, view)
    assert "TotalAmountPerDayAndBroker" in drawn
    assert "Merge" in drawn


def test_mermaid_is_a_flowchart_with_a_subgraph_for_each_stage() -> None:
    lines = draw([brokers()], "mermaid").splitlines()
    assert lines[3] == "flowchart BT"
    assert sum(line.strip().startswith("subgraph ") for line in lines) == 2
    assert '    q1_before_5["<b>Filter</b><br/>?country = #34;CH#34; ∧ ?amount ≥ 10"]' in lines
    assert any(re.fullmatch(r"  class [\w,]+ static", line) for line in lines)


def test_graphviz_has_clusters_for_stages_and_sources() -> None:
    drawn = draw([brokers()], "dot", "dgraph")
    assert drawn.startswith('digraph "D-Graph: query TotalAmountPerDayAndBroker" {')
    assert drawn.count("style=dashed;") == 3
    assert 'label="stream …/market.trdf [PT24H]"' in drawn


def test_svg_stands_alone_and_follows_the_reader_s_colours() -> None:
    drawn = draw([brokers()], "svg")
    assert "prefers-color-scheme: dark" in drawn
    assert not re.search(r"(href|src|@import|url\((?!#))", drawn)
    root = ElementTree.fromstring(drawn)
    assert root.find("{http://www.w3.org/2000/svg}title").text == "O-Graph: query TotalAmountPerDayAndBroker"  # type: ignore[union-attr]
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"static knowledge", "streaming", "StaticPart"} <= set(texts)


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    apart = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (apart or one.y + one.height <= other.y or other.y + other.height <= one.y)


@pytest.mark.parametrize("view", VIEWS)
def test_no_two_boxes_overlap_and_frames_hold_only_their_own(view: DrawingSubject) -> None:
    for panel in picture([brokers(), explain(registrations(TRICK)[0])], view).panels:
        placed = arranged(panel)
        assert not any(_overlap(a, b) for a, b in combinations(placed.boxes.values(), 2))
        for frame in panel.frames:
            inside = {key for key, place in placed.boxes.items() if _overlap(place, placed.frames[frame.id])}
            assert inside == set(frame.boxes)


def test_circles_and_self_loops_have_a_layout() -> None:
    boxes = tuple(Box(name, name) for name in "abc")
    edges = (PictureEdge("a", "b"), PictureEdge("b", "c"), PictureEdge("c", "a"), PictureEdge("a", "a"))
    placed = arranged(Panel("p", "circle", boxes, edges, tree=False))
    assert not any(_overlap(a, b) for a, b in combinations(placed.boxes.values(), 2))


def test_long_words_are_cut_and_short_ones_stay_whole() -> None:
    assert wrapped("a bb ccc dddd", 6) == ["a bb", "ccc", "dddd"]
    assert wrapped("http://example.org/very/long", 10) == ["http://exa", "mple.org/v", "ery/long"]
    assert all(len(line) <= 12 for line in wrapped("stream http://example.org/very/long and more", 12))
    assert wrapped("", 10) == [""]
