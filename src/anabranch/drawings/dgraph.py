"""The D-Graph of a query: its variables and patterns, and the source of each (C-SPARQL, section 4).

By the paper's algorithm: variables, IRIs and literals are vertices; a triple pattern is the two edges (s, p) and (p,
o); filters annotate the vertices that they read; an aggregation is a frame with its group and its function, which is
linked to its parameter and bound to its variable; vertices of the answer are filled; dashed frames group the vertices
of a source.

A vertex that two sources share is between their frames; if several sources are asked for the same patterns, one frame
names them all. If several patterns use a predicate its edges are numbered, since one vertex would not show which
subject belongs to which object. Optional, alternative and subtracted patterns have a labelled frame of their own. In
property graphs relationships take the place of predicates.

Invariant: every vertex is drawn once, however often the query names it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from anabranch.algebra import operators as o
from anabranch.algebra import triples as t
from anabranch.algebra.expressions import And, Constant, Expression, Variable
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import parts_of, reads_triples, walk
from anabranch.drawings.picture import Box, BoxShape, Panel, PictureEdge, PictureFrame, wrapped
from anabranch.model.terms import Literal

_WIDTH = 36

LEGEND = (
    ("static", "static knowledge"),
    ("streaming", "streaming"),
    ("filled", "in the answer"),
    ("frame", "one source"),
)


def dgraph(plan: o.Operator, panel_id: str, title: str, prefixes: tuple[tuple[str, str], ...] = ()) -> Panel:
    builder = _Builder(panel_id, Speller(prefixes, sparql=reads_triples(plan)), _top(plan))
    builder.add(plan, "")
    return builder.panel(title, _answer(plan))


@dataclass(slots=True)
class _Vertex:
    title: str
    shape: BoxShape
    notes: dict[str, None] = field(default_factory=dict)


SourcePatterns = dict[tuple[str, str], str]
"""Where something is asked, as (context, source), and which part of the query that belongs to."""


class _Builder:
    def __init__(self, panel_id: str, speller: Speller, top: o.Operator) -> None:
        self._id = panel_id
        self._top = top  # the projection that produces the answer
        self._speller = speller
        self._vertices: dict[str, _Vertex] = {}
        self._links: dict[tuple[str, ...], SourcePatterns] = {}  # subject, predicate and object; or a single vertex
        self._aggregates: dict[tuple[tuple[str, ...], str, tuple[str, ...], str], None] = {}

    # --- collecting -------------------------------------------------------------------------------------------------

    def add(self, plan: o.Operator, context: str) -> None:
        match plan:
            case t.GraphPattern(source=source, patterns=patterns):
                for one in patterns:
                    ends = [self._place(place) for place in one.places]
                    self._link(tuple(ends), context, source)
            case t.Path(source=source, subject=subject, path=path, object=object_):
                text = self._speller.property_path(path)
                step = self._vertex(f"path {text}", text, "box")
                self._link((self._place(subject), step, self._place(object_)), context, source)
            case o.Pattern(source=source, paths=paths):
                for one_path in paths:
                    self._path(one_path, context, source)
            case t.Values(names, rows):
                for name in names:
                    self._note(self._variable(name), f"one of {len(rows)} rows")
            case o.Filter(condition=condition):
                self._condition(condition, plan.columns)
            case o.Extend(column=column, expression=expression):
                self._note(self._variable(column), f"= {self._speller.spell(expression)}")
            case o.Project(input=below, items=items):
                for name, expression in items:
                    if name not in below.columns and plan is not self._top and not isinstance(expression, Constant):
                        self._note(self._variable(name), f"= {self._speller.spell(expression)}")
            case o.Annotate(keys=grouped, aggregates=aggregates):
                self._aggregated(grouped, aggregates)
            case o.Aggregate(keys=keys, aggregates=aggregates):
                self._aggregated(tuple(name for name, _ in keys), aggregates)
            case t.PluginQuery(text=text, default=source):
                step = self._vertex("plug-in", "SPARQL plug-in", "box")
                self._note(step, " ".join(text.split()))
                self._link((step,), context, source)
        self._below(plan, context)

    def _below(self, plan: o.Operator, context: str) -> None:
        match plan:
            case o.LeftJoin(left, right, condition):
                self.add(left, context)
                self.add(right, _within(context, "optional"))
                self._condition(condition, plan.columns)
            case o.Join(left, right, condition):
                self.add(left, context)
                self.add(right, context)
                self._condition(condition, plan.columns)
            case t.Minus(left, right):
                self.add(left, context)
                self.add(right, _within(context, "taken away"))
            case o.Union(left, right):
                self.add(left, _within(context, "either"))
                self.add(right, _within(context, "or"))
            case t.StaticPart(inner):
                self.add(inner, context)
            case _:
                for below in plan.inputs:
                    self.add(below, context)

    def _condition(self, condition: Expression | None, columns: tuple[str, ...]) -> None:
        """Annotate every column that the condition reads; its own inner variables are left out."""
        if isinstance(condition, And):
            for one in condition.operands:
                self._condition(one, columns)
        elif condition is not None:
            text = self._speller.spell(condition)
            read = dict.fromkeys(node.name for node in walk(condition) if isinstance(node, Variable))
            for name in read:
                if name in columns:
                    self._note(self._variable(name), text)

    def _aggregated(self, keys: tuple[str, ...], aggregates: tuple[tuple[str, Expression], ...]) -> None:
        for name in keys:
            self._variable(name)
        for name, call in aggregates:
            read = dict.fromkeys(node.name for node in walk(call) if isinstance(node, Variable))
            arguments = tuple(self._variable(one) for one in read)
            function = self._speller.spell(call).partition("(")[0]
            variable = self._variable(name)
            if arguments != (variable,):  # otherwise the combination of the branches' results would point at itself
                self._aggregates[keys, function, arguments, variable] = None

    def _path(self, path: o.PathPattern, context: str, source: o.Source) -> None:
        nodes = []
        for node in path.nodes:
            text = self._speller.name(node.variable) + "".join(f":{label}" for label in node.labels)
            nodes.append(self._variable(node.variable))
            if node.labels:
                self._vertices[nodes[-1]].title = text
            if not path.relationships:
                self._link((nodes[-1],), context, source)
        for index, one in enumerate(path.relationships):
            text = self._speller.path(o.PathPattern(path.nodes[:2], (one,))).partition("[")[2].rpartition("]")[0]
            step = self._variable(one.variable)
            self._vertices[step].title, self._vertices[step].shape = text, "box"
            ends = nodes[index], nodes[index + 1]
            left, right = reversed(ends) if one.direction == "in" else ends
            self._link((left, step, right), context, source)

    def _link(self, ends: tuple[str, ...], context: str, source: o.TripleSource) -> None:
        static = all(isinstance(part, o.Static) for part in parts_of(source))
        asked = self._links.setdefault(ends, {})
        asked[context, _source_words(source)] = "static" if static else "streaming"

    def _place(self, place: t.TermPlace) -> str:
        if isinstance(place, t.Var):
            return self._variable(place.name)
        text = self._speller.place(place)
        return self._vertex(f"term {text}", text, "plain" if isinstance(place, Literal) else "box")

    def _variable(self, name: str) -> str:
        return self._vertex(f"var {name}", self._speller.name(name), "round")

    def _vertex(self, key: str, title: str, shape: BoxShape) -> str:
        self._vertices.setdefault(key, _Vertex(title, shape))
        return key

    def _note(self, key: str, text: str) -> None:
        self._vertices[key].notes[text] = None

    # --- drawing ----------------------------------------------------------------------------------------------------

    def panel(self, title: str, answer: frozenset[str]) -> Panel:
        ids = {key: f"{self._id}_v{number}" for number, key in enumerate(self._vertices, 1)}
        asked = {key: [where for ends, where in self._links.items() if key in ends] for key in self._vertices}
        boxes = [self._box(key, ids[key], answer, asked[key]) for key in self._vertices]
        triples = [ends for ends in self._links if len(ends) == 3]
        uses = Counter(predicate for _, predicate, _ in triples)
        edges: dict[PictureEdge, None] = {}
        for number, (subject, predicate, object_) in enumerate(triples, 1):
            label = str(number) if uses[predicate] > 1 else ""
            edges[PictureEdge(ids[subject], ids[predicate], label)] = None
            edges[PictureEdge(ids[predicate], ids[object_], label)] = None
        frames = self._frames(ids, asked)
        for number, (keys, function, arguments, variable) in enumerate(self._aggregates, 1):
            group, call = f"{self._id}_g{number}", f"{self._id}_f{number}"
            named = tuple(self._speller.name(name) for name in keys) or ("all rows",)
            boxes += [Box(group, "G", named), Box(call, function, shape="round")]
            frames.append(PictureFrame(f"{self._id}_a{number}", "aggregation", (group, call), dashed=False))
            edges[PictureEdge(group, call)] = None
            edges |= {PictureEdge(ids[f"var {name}"], group, faint=True): None for name in keys}
            edges |= {PictureEdge(call, ids[key], upward=True): None for key in arguments}
            edges[PictureEdge(call, ids[variable])] = None
        return Panel(self._id, title, tuple(boxes), tuple(edges), tuple(frames), tree=False)

    def _box(self, key: str, box_id: str, answer: frozenset[str], asked: list[SourcePatterns]) -> Box:
        vertex = self._vertices[key]
        notes = tuple(part for note in vertex.notes for part in wrapped(note, _WIDTH))
        parts = {part for where in asked for part in where.values()}
        part = parts.pop() if len(parts) == 1 else ""
        return Box(box_id, vertex.title, notes, part, vertex.shape, key.removeprefix("var ") in answer)

    def _frames(self, ids: dict[str, str], asked: dict[str, list[SourcePatterns]]) -> list[PictureFrame]:
        """Return a frame for each source, around the vertices that only this source has."""
        members: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for key, places in asked.items():
            where = {tuple(one) for one in places}
            if len(where) == 1:
                members.setdefault(where.pop(), []).append(ids[key])
        return [
            PictureFrame(
                f"{self._id}_s{number}",
                " / ".join(f"{context}: {of}" if context else of for context, of in where),
                held,
            )
            for number, (where, held) in enumerate(((one, tuple(boxes)) for one, boxes in members.items()), 1)
        ]


def _top(plan: o.Operator) -> o.Operator:
    """Return the topmost operator that chooses columns."""
    while isinstance(plan, o.Distinct | o.Slice | o.Order | t.StaticPart | t.Ask):
        plan = plan.inputs[0]
    return plan


def _answer(plan: o.Operator) -> frozenset[str]:
    """Return the columns that occur in the topmost projection or template."""
    match _top(plan):
        case t.Construct(template=template):
            places = [place for one in template for place in one.places]
            return frozenset(place.name for place in places if isinstance(place, t.Var))
        case o.Project(items=items):
            read = [node.name for _, one in items for node in walk(one) if isinstance(node, Variable)]
            return frozenset((*plan.columns, *read))
        case _:
            return frozenset(plan.columns)


def _within(context: str, word: str) -> str:
    return f"{context}, {word}" if context else word


def _tail(name: str) -> str:
    """Return a short name unchanged, and only the last part of a long IRI, which distinguishes it from others."""
    return name if len(name) <= 24 else "…/" + re.split(r"[/#]", name.rstrip("/#"))[-1]


def _source_words(source: o.TripleSource) -> str:
    words = []
    for part in parts_of(source):
        if isinstance(part, o.Static):
            words.append(f"graph {_tail(part.name)}")
            continue
        name = f"stream {_tail(part.stream.name)}" if part.stream.name is not None else "the only stream"
        size = part.width or (f"last {part.count}" if part.count is not None else "all" if part.unbounded else "")
        words.append(f"{name} [{size}]" if size else name)
    return " + ".join(words)
