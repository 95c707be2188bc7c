"""Limits windows to the triples that some pattern can match (SPECTRA, section 5).

    Window(s)  =  Window(s, keep the constants of all patterns that read it)

Law: a triple that fits no pattern is part of no match; count windows count arrivals, kept or not. A window that is read
as a whole (`?s ?p ?o`, DESCRIBE, a query for the plug-in) keeps all triples. The filters depend on the query alone and
are sorted: the windows are the same whatever is known of static graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from anabranch.algebra.expressions import Component, Connected, Constant, Expression, TripleTime
from anabranch.algebra.operators import Operator, TripleFilter, Window
from anabranch.algebra.triples import Describe, GraphPattern, Path, PluginQuery, TermPlace, Var
from anabranch.algebra.walk import parts_of, walk, windows
from anabranch.model.terms import Blank, Iri, Literal, Term
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.property_paths import steps_needed
from anabranch.optimizer.support.rebuild import everywhere

_ALL: TripleFilter = (None, None, None)


def summarise_windows(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    asked: dict[Window, list[TripleFilter]] = {window: [] for window in windows(plan)}
    for node in walk(plan):
        for window, kept in _asked(node):
            asked[window].append(kept)
    new = {window: replace(window, keep=_least(kept)) for window, kept in asked.items()}
    changed = {old: window for old, window in new.items() if old != window}
    if not changed:
        return None
    speller = knowledge.speller()
    notes = [
        f"{window.stream.name or 'the stream'} keeps {', '.join(speller.kept(one) for one in window.keep or ())}"
        for window in changed.values()
        if window.keep is not None
    ]
    rewritten = everywhere(plan, lambda part: changed.get(part, part) if isinstance(part, Window) else part)
    return Rewrite(rewritten, tuple(dict.fromkeys(notes)))


def _asked(node: Operator | Expression) -> Iterator[tuple[Window, TripleFilter]]:
    """Yield the windows that a node reads, with the triples that it may read of each."""
    match node:
        case GraphPattern(source=source, patterns=patterns):
            fits: Iterable[TripleFilter] = [tuple(map(_constant, one.places)) for one in patterns]  # type: ignore[misc]
        case Path(source=source):
            steps = steps_needed(node)
            fits = [_ALL] if steps is None else [(None, step, None) for step in sorted(steps)]
        case TripleTime(source=source):
            places = (node.subject, node.predicate, node.object)
            fits = [tuple(map(_constant_value, places))]  # type: ignore[list-item]
        case Connected(links=links) | Component(links=links):
            source = links.source
            fits = [_ALL] if links.kinds is None else [(None, Iri(kind), None) for kind in links.kinds]
        case Describe(source=source):
            fits = [_ALL]
        case PluginQuery(default=source, named=named):
            fits = [_ALL]
            yield from ((one, _ALL) for _, one in named if isinstance(one, Window))
        case _:
            return
    for part in parts_of(source):
        if isinstance(part, Window):
            yield from ((part, kept) for kept in fits)


def _constant(place: TermPlace) -> Term | None:
    return None if isinstance(place, Var) else place


def _constant_value(expression: Expression) -> Term | None:
    match expression:
        case Constant(value=Iri() | Blank() | Literal() as term):
            return term
        case _:
            return None


def _least(kept: list[TripleFilter]) -> tuple[TripleFilter, ...] | None:
    """Return the fewest filters that keep the same triples; None when they keep all."""
    distinct = list(dict.fromkeys(kept))
    if _ALL in distinct:
        return None
    least = [one for one in distinct if not any(other != one and _covers(other, one) for other in distinct)]
    return tuple(sorted(least, key=lambda kept: [(term is not None, repr(term)) for term in kept]))


def _covers(wide: TripleFilter, narrow: TripleFilter) -> bool:
    return all(a is None or a == b for a, b in zip(wide, narrow, strict=True))
