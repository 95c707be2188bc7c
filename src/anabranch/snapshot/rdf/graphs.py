"""The roots of graph-valued queries (CONSTRUCT, DESCRIBE, ASK), and queries that the SPARQL plug-in answers.

Invariant: each triple is given once, and is one: no literal as subject, nothing but an IRI as predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import Constant
from anabranch.errors import EvaluationError
from anabranch.model.terms import FALSE, TRUE, Blank, Iri, Literal, Term, Triple
from anabranch.model.triples import Triples
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, RowSource
from anabranch.snapshot.context import Context

GraphRows = Iterator[tuple[Value, ...]]
_NEW = " _:"  # prefix of the names of the template's blank nodes


def is_triple(subject: object, predicate: object, object_: object) -> bool:
    return (
        isinstance(subject, Iri | Blank) and isinstance(predicate, Iri) and isinstance(object_, Iri | Blank | Literal)
    )


# --- CONSTRUCT --------------------------------------------------------------------------------------------------------


class Template:
    """A CONSTRUCT's template, ready for rows with the columns of its input."""

    def __init__(self, operator: tr.Construct) -> None:
        columns = operator.input.columns
        places = [place for pattern in operator.template for place in pattern.places]
        names = (place.name for place in places if isinstance(place, tr.Var) and place.name.startswith(_NEW))
        self.fresh = tuple(dict.fromkeys(names))
        # a blank node of the WHERE clause may have the same label, and is another one
        known = (*("" if name.startswith(_NEW) else name for name in columns), *self.fresh)
        self._slots = [tuple(_slot(place, known) for place in pattern.places) for pattern in operator.template]
        self._origin = repr([pattern.places for pattern in operator.template])

    def triples(self, row: tuple[Value, ...], copy: int) -> Iterator[Triple]:
        """The triples for a row; `copy` is how many equal rows came before it."""
        values = row + _new_blanks(self.fresh, self._origin, row, copy) if self.fresh else row
        for slots in self._slots:
            subject, predicate, object_ = (slot if at < 0 else values[at] for at, slot in slots)
            if is_triple(subject, predicate, object_):
                yield Triple(subject, predicate, object_)  # type: ignore[arg-type]


def compile_construct(operator: tr.Construct, source: RowSource) -> RowSource:
    template = Template(operator)

    def rows(context: Context, row: tuple[Value, ...]) -> GraphRows:
        seen: set[Triple] = set()
        copies: dict[tuple[Value, ...], int] = {}
        for one in source(context, row):
            copy = 0
            if template.fresh:
                copy = copies[one] = copies.get(one, -1) + 1
            for triple in template.triples(one, copy):
                if triple not in seen:
                    seen.add(triple)
                    yield tuple(triple)

    return rows


def _slot(place: tr.TermPlace, names: Sequence[str]) -> tuple[int, Term | None]:
    """Return the position of a template place's value in the row, or its constant (null for a variable that no row
    binds)."""
    if not isinstance(place, tr.Var):
        return -1, place
    return (names.index(place.name), None) if place.name in names else (-1, None)


def _new_blanks(fresh: Sequence[str], origin: str, row: tuple[Value, ...], copy: int) -> tuple[Blank, ...]:
    """Blank nodes named by what the row holds, by the template, and by how many equal rows came before."""
    digest = blake2b(repr((origin, row, copy)).encode(), digest_size=12).hexdigest()
    return tuple(Blank(f"{name.removeprefix(_NEW)}-{digest}", "constructed") for name in fresh)


# --- DESCRIBE ---------------------------------------------------------------------------------------------------------


def compile_describe(operator: tr.Describe, source: RowSource, resources: Sequence[ExpressionEvaluator]) -> RowSource:
    """Terms that the query itself names are described even when its pattern finds nothing."""
    constants = [one.value for one in operator.resources if isinstance(one, Constant)]

    def rows(context: Context, row: tuple[Value, ...]) -> GraphRows:
        wanted: dict[Any, None] = dict.fromkeys(constants)
        for one in source(context, row):
            wanted |= dict.fromkeys(resource(one, context) for resource in resources)
        yield from _described(wanted, context.triples(operator.source), context)

    return rows


def _described(wanted: dict[Any, None], graph: Triples, context: Context) -> GraphRows:
    pending = [term for term in wanted if isinstance(term, Iri | Blank)]
    reached = set(pending)
    pending.reverse()
    while pending:
        for triple in graph.match(pending.pop(), None, None):
            context.spend(1)
            yield tuple(triple)
            if isinstance(triple.object, Blank) and triple.object not in reached:
                reached.add(triple.object)
                pending.append(triple.object)


# --- ASK and the plug-in ----------------------------------------------------------------------------------------------


def compile_ask(source: RowSource) -> RowSource:
    def rows(context: Context, row: tuple[Value, ...]) -> GraphRows:
        found = next(iter(source(context, row)), None) is not None
        yield (TRUE if found else FALSE,)

    return rows


def compile_delegated(operator: tr.PluginQuery) -> RowSource:
    def rows(context: Context, row: tuple[Value, ...]) -> GraphRows:
        if context.plugin is None:
            raise EvaluationError(
                "SPQ-301", "no SPARQL plug-in was given to answer this part of the query", "install pyoxigraph"
            ).located(operator.span)
        named = {name: context.triples(source) for name, source in operator.named}
        columns, found = context.plugin.evaluate(operator.text, context.triples(operator.default), named)
        picks = [columns.index(name) if name in columns else None for name in operator.names]
        for one in found:
            yield tuple([None if at is None else one[at] for at in picks])

    return rows
