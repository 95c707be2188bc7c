"""Limits each triple pattern to the sources that can hold its triples.

    GraphPattern(stream + graph, a + b)  =  Join(GraphPattern(stream + graph, a), GraphPattern(stream, b))

when the graph is known to hold no triple with b's predicate. A graph pattern whose triple patterns get different
sources is split; connected triple patterns with the same source stay together. Patterns whose predicate is known to be
in a static graph are split off too, for `evaluate_static_parts`. Where such patterns alone would have far more matches
than there are triples (`?a a ?t . ?b a ?t`), they stay with the others, which narrow them.

Law: a triple pattern has the same matches with or without a graph that holds none of its triples. The content of a
static graph is known exactly, the future content of a stream is not: windows always stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from anabranch.algebra.operators import Join, MergedSource, Operator, Source, Static, TripleSource, Window
from anabranch.algebra.triples import GraphPattern, Path, TriplePattern, Var
from anabranch.algebra.walk import parts_of
from anabranch.model.terms import Term
from anabranch.optimizer.support.columns import is_lenient
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.property_paths import steps_needed
from anabranch.optimizer.support.rebuild import bottom_up, source_of
from anabranch.optimizer.support.sizes import is_small


def narrow_sources(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []

    def change(operator: Operator) -> Operator:
        match operator:
            case GraphPattern(source=MergedSource(parts)) if any(isinstance(part, Window) for part in parts):
                return _split(operator, knowledge, notes)
            case Path(source=MergedSource() as source):
                steps = steps_needed(operator)
                narrow = source if steps is None else _narrow(source, tuple(sorted(steps)), knowledge)
                if narrow == source:
                    return operator
                notes.append(f"{knowledge.speller().property_path(operator.path)} is not {_lost(source, narrow)}")
                return replace(operator, source=narrow)
            case _:
                return operator

    narrowed = bottom_up(plan, change)
    return Rewrite(narrowed, tuple(notes)) if notes else None


def is_static(pattern: TriplePattern, source: TripleSource, knowledge: Knowledge) -> bool:
    """Return whether static knowledge is expected to answer the pattern: one of its graphs holds the predicate, and the
    query does not read the time of the triple."""
    graphs = [part for part in parts_of(source) if isinstance(part, Static)]
    if not graphs or pattern.times or isinstance(pattern.predicate, Var):
        return False
    return len(graphs) == len(parts_of(source)) or any(knowledge.holds(one, pattern.predicate) for one in graphs)


def _narrow(source: MergedSource, predicates: tuple[Term, ...], knowledge: Knowledge) -> TripleSource:
    kept: tuple[Source, ...] = tuple(
        part
        for part in source.parts
        if isinstance(part, Window) or any(knowledge.may_hold(part, p) for p in predicates)
    )
    return source_of(kept or source.parts[:1])


def _split(operator: GraphPattern, knowledge: Knowledge, notes: list[str]) -> Operator:
    source = operator.source
    assert isinstance(source, MergedSource)
    groups: dict[tuple[TripleSource, bool], list[TriplePattern]] = {}
    together = _held_together(operator, knowledge)
    for pattern in operator.patterns:
        fixed = not isinstance(pattern.predicate, Var) and pattern not in together
        narrow = _narrow(source, (pattern.predicate,), knowledge) if fixed else source  # type: ignore[arg-type]
        groups.setdefault((narrow, fixed and is_static(pattern, narrow, knowledge)), []).append(pattern)
    if len(groups) == 1 and next(iter(groups))[0] == source:
        return operator
    pieces: list[GraphPattern] = []
    for (narrow, static), patterns in groups.items():
        spelled = ", ".join(dict.fromkeys(knowledge.speller().place(one.predicate) for one in patterns))
        if narrow != source:
            notes.append(f"{spelled}: not {_lost(source, narrow)}")
        elif static:
            notes.append(f"{spelled}: set apart, static knowledge holds it")
        pieces += [GraphPattern(narrow, piece, span=operator.span) for piece in connected(patterns)]
    return joined(pieces)


def _held_together(operator: GraphPattern, knowledge: Knowledge) -> frozenset[TriplePattern]:
    """Return the patterns that are not split: static ones that would have too many matches without the others, and all
    patterns connected with them, which narrow them."""
    static = [one for one in operator.patterns if is_static(one, operator.source, knowledge)]
    large: set[TriplePattern] = set()
    for piece in connected(static):
        if len(piece) > 1 and not is_small(replace(operator, patterns=piece), knowledge.sizes):
            large.update(piece)
    if not large:
        return frozenset()
    pieces = connected(list(operator.patterns))
    return frozenset(one for piece in pieces if not large.isdisjoint(piece) for one in piece)


def _lost(source: MergedSource, narrow: TripleSource) -> str:
    gone = [part.name for part in source.parts if part not in parts_of(narrow) and isinstance(part, Static)]
    return f"in {'graph' if len(gone) == 1 else 'graphs'} {', '.join(gone)}"


def connected(patterns: list[TriplePattern]) -> list[tuple[TriplePattern, ...]]:
    """Group the patterns that share variables, in the order of the text."""
    return [tuple(patterns[at] for at in members) for members in components([one.variables for one in patterns])]


def components(sets: Sequence[Iterable[str]]) -> list[list[int]]:
    """Group the positions of sets that share names, directly or through other sets; groups are ordered by their first
    position. An empty set is a group of its own."""
    groups: list[tuple[set[str], list[int]]] = []
    for index, one in enumerate(sets):
        names, members = set(one), [index]
        apart = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                members += group[1]
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return sorted((sorted(members) for _, members in groups), key=lambda members: members[0])


def joined(pieces: Sequence[Operator]) -> Operator:
    """Join the pieces so that each shares a column with those before it; groups that share no column are multiplied
    last, when each of them is complete."""
    groups = [[pieces[at] for at in members] for members in components([piece.columns for piece in pieces])]
    return _pairwise([_one_by_one(group) for group in groups])


def _one_by_one(pieces: list[Operator]) -> Operator:
    result, *rest = pieces
    while rest:
        known = set(result.columns)
        following = next((one for one in rest if known & set(one.columns)), rest[0])
        rest.remove(following)
        result = _pairwise([result, following])
    return result


def _pairwise(sides: list[Operator]) -> Operator:
    result, *rest = sides
    for side in rest:
        result = Join(result, side, lenient=is_lenient(result, side), span=side.span)
    return result
