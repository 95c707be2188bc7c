"""Each triple pattern is looked for only where it can be found.

    GraphPattern(stream + graph, a + b)  =  Join(GraphPattern(stream + graph, a), GraphPattern(stream, b))

when the graph is known to hold no triple with b's predicate. A graph pattern whose triple patterns end with different
sources falls apart; those with the same source that are connected stay together. Patterns whose predicate is known to
be in a static graph are set apart from the others too: `evaluate_static_parts` takes them.

Law: a triple pattern has the same matches with or without a graph that holds none of its triples. What a static graph
holds is known exactly, what a stream will bring is not: windows always stay.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.algebra.operators import Join, Merged, Operator, Source, Static, TripleSource, Window
from anabranch.algebra.triples import GraphPattern, Path, TriplePattern, Var
from anabranch.algebra.walk import parts_of
from anabranch.model.terms import Term
from anabranch.optimizer.columns import is_lenient
from anabranch.optimizer.knowledge import Knowledge, Rewrite
from anabranch.optimizer.property_paths import steps_needed
from anabranch.optimizer.rebuild import bottom_up, source_of


def narrow_sources(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    notes: list[str] = []

    def change(operator: Operator) -> Operator:
        match operator:
            case GraphPattern(source=Merged(parts)) if any(isinstance(part, Window) for part in parts):
                return _split(operator, knowledge, notes)
            case Path(source=Merged() as source):
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
    """Whether static knowledge is expected to answer the pattern: one of its graphs holds the predicate, and nobody
    asks when the triple came."""
    graphs = [part for part in parts_of(source) if isinstance(part, Static)]
    if not graphs or pattern.times or isinstance(pattern.predicate, Var):
        return False
    return len(graphs) == len(parts_of(source)) or any(knowledge.holds(one, pattern.predicate) for one in graphs)


def _narrow(source: Merged, predicates: tuple[Term, ...], knowledge: Knowledge) -> TripleSource:
    kept: tuple[Source, ...] = tuple(
        part
        for part in source.parts
        if isinstance(part, Window) or any(knowledge.may_hold(part, p) for p in predicates)
    )
    return source_of(kept or source.parts[:1])


def _split(operator: GraphPattern, knowledge: Knowledge, notes: list[str]) -> Operator:
    source = operator.source
    assert isinstance(source, Merged)
    groups: dict[tuple[TripleSource, bool], list[TriplePattern]] = {}
    for pattern in operator.patterns:
        fixed = not isinstance(pattern.predicate, Var)
        narrow = _narrow(source, (pattern.predicate,), knowledge) if fixed else source  # type: ignore[arg-type]
        groups.setdefault((narrow, is_static(pattern, narrow, knowledge)), []).append(pattern)
    if len(groups) == 1 and next(iter(groups))[0] == source:
        return operator
    pieces: list[GraphPattern] = []
    for (narrow, static), patterns in groups.items():
        spelled = ", ".join(dict.fromkeys(knowledge.speller().place(one.predicate) for one in patterns))
        if narrow != source:
            notes.append(f"{spelled}: not {_lost(source, narrow)}")
        elif static:
            notes.append(f"{spelled}: set apart, static knowledge holds it")
        pieces += [GraphPattern(narrow, together, span=operator.span) for together in connected(patterns)]
    return _joined(pieces)


def _lost(source: Merged, narrow: TripleSource) -> str:
    gone = [part.name for part in source.parts if part not in parts_of(narrow) and isinstance(part, Static)]
    return f"in {'graph' if len(gone) == 1 else 'graphs'} {', '.join(gone)}"


def connected(patterns: list[TriplePattern]) -> list[tuple[TriplePattern, ...]]:
    """The patterns in groups that share variables, in the order of the text."""
    groups: list[tuple[set[str], list[int]]] = []
    for index, pattern in enumerate(patterns):
        names, members = set(pattern.variables), [index]
        apart = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                members += group[1]
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return [
        tuple(patterns[index] for index in sorted(members)) for _, members in sorted(groups, key=lambda g: min(g[1]))
    ]


def _joined(pieces: list[GraphPattern]) -> Operator:
    """The pieces joined so that each meets a column of those before it, where any does."""
    result: Operator = pieces[0]
    rest = pieces[1:]
    while rest:
        known = set(result.columns)
        following = next((one for one in rest if known & set(one.columns)), rest[0])
        rest.remove(following)
        result = Join(result, following, lenient=is_lenient(result, following), span=following.span)
    return result
