"""Functions that are called by an IRI, and timestamp().

Invariant: an IRI that names no function is legal and gives null, as the standard says; only a near miss in a namespace
whose functions are all known is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.algebra.expressions import (
    Call,
    Case,
    Component,
    Connected,
    Constant,
    Expression,
    Links,
    TripleTime,
    Variable,
)
from anabranch.algebra.operators import Window
from anabranch.algebra.sparql_functions import CAST, CASTS
from anabranch.errors import closest
from anabranch.model.terms import XSD, Iri
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_times import EXTENSIONS
from anabranch.syntax.sparql.scope import Scope, StatementSettings

LUPOS = "http://www.luposdate.org/"
_LUPOS_AGGREGATES = {
    "average": "sparql:avg",
    "avg": "sparql:avg",
    "min": "sparql:min",
    "max": "sparql:max",
    "sum": "sparql:sum",
    "count": "sparql:count",
}
ANABRANCH = "urn:anabranch:function:"
_CONNECTIVITY = ("connected", "component", "componentSize")
_KNOWN_NAMESPACES = {
    ANABRANCH: _CONNECTIVITY,
    XSD: tuple(sorted(iri.removeprefix(XSD) for iri in CASTS)),
    LUPOS: tuple(_LUPOS_AGGREGATES),
    EXTENSIONS: ("timestamp",),
}


def lupos_aggregate(iri: Iri, dialect: t.Dialect) -> str | None:
    """The aggregate that one of LUPOS's functions stands for; plain SPARQL knows none of them."""
    if dialect == "sparql" or not iri.value.startswith(LUPOS):
        return None
    return _LUPOS_AGGREGATES.get(iri.value.removeprefix(LUPOS))


def cast_or_unknown(
    tree: t.CallTree, iri: Iri, terms: tuple[Expression, ...], settings: StatementSettings
) -> Expression:
    """A cast to a datatype; any other function gives null, unless its name is a near miss."""
    if iri.value in CASTS:
        if len(terms) != 1:
            name = iri.value.removeprefix(XSD)
            settings.problems.add("SPQ-106", f"xsd:{name} takes 1 argument", tree.span, f"{len(terms)} given")
            return Constant(None, span=tree.span)
        return Call(CAST, (terms[0], Constant(iri)), span=tree.span)
    for namespace, known in _KNOWN_NAMESPACES.items():
        if not iri.value.startswith(namespace) or (namespace == LUPOS and settings.dialect == "sparql"):
            continue
        local = iri.value.removeprefix(namespace)
        near = [name for name in closest(local, known) if name != local]
        if near:
            settings.problems.add(
                "SPQ-105",
                f"no function `{local}` in <{namespace}>",
                tree.span,
                "",
                f"did you mean `{near[0]}`?  There are: {', '.join(known)}.",
            )
    return Constant(None, span=tree.span)


def is_connectivity(iri: Iri) -> bool:
    return iri.value.startswith(ANABRANCH) and iri.value.removeprefix(ANABRANCH) in _CONNECTIVITY


def connectivity(
    tree: t.CallTree, name: str, terms: tuple[Expression, ...], scope: Scope, settings: StatementSettings
) -> Expression:
    """anb:connected(?a, ?b), anb:component(?n), anb:componentSize(?n), each perhaps along some predicates alone."""
    nodes = 2 if name == "connected" else 1
    kinds = [term.value.value for term in terms[nodes:] if isinstance(term, Constant) and isinstance(term.value, Iri)]
    if len(terms) < nodes or len(kinds) < len(terms) - nodes:
        given = "anb:connected(?a, ?b, ex:knows)" if nodes == 2 else f"anb:{name}(?n, ex:knows)"
        settings.problems.add(
            "SPQ-106",
            f"anb:{name} takes {'two nodes' if nodes == 2 else 'a node'}, and perhaps predicates to go along",
            tree.span,
            "",
            given,
        )
        return Constant(None, span=tree.span)
    links = Links(scope.source, tuple(kinds) or None, of_triples=True)
    if name == "connected":
        return Connected(links, terms[0], terms[1], span=tree.span)
    return Component(links, terms[0], "name" if name == "component" else "size", span=tree.span)


def timestamp(
    tree: t.CallTree, term: Callable[[t.ExpressionTree], Expression], scope: Scope, settings: StatementSettings
) -> Expression:
    """timestamp(?v), timestamp(?v, stream), or timestamp(subject, predicate, object) of one triple."""
    match tree.arguments:
        case (subject, predicate, object_):
            time = TripleTime(scope.source, term(subject), term(predicate), term(object_), span=tree.span)
            return Call("sparql:moment", (time,), span=tree.span)
        case (t.VarTree() as variable,):
            return _latest(tree, variable.name, (None,), scope, settings)
        case (t.VarTree() as variable, t.TermTree(Iri() as stream)):
            windows = settings.dataset.windows_of(stream)
            if not windows:
                _unknown_stream(tree, stream, settings)
                return Constant(None, span=tree.span)
            return _latest(tree, variable.name, windows, scope, settings)
        case (t.VarTree() as variable, t.VarTree() as stream_name):
            return _of_stream_in(tree, variable.name, term(stream_name), scope, settings)
    settings.problems.add(
        "SPQ-106",
        "timestamp takes a variable, and perhaps a stream",
        tree.span,
        "",
        "timestamp(?car), timestamp(?car, <http://streams.org/cameras>)",
    )
    return Constant(None, span=tree.span)


def _latest(
    tree: t.CallTree, name: str, windows: tuple[Window | None, ...], scope: Scope, settings: StatementSettings
) -> Expression:
    columns = [column for window in windows for column in settings.times.columns(name, window, scope.columns)]
    if not columns:
        elsewhere = bool(settings.times.all_columns(name))
        settings.problems.add(
            "SPQ-107",
            f"timestamp of `?{name}`, which no triple pattern {'of a window ' if windows != (None,) else ''}binds here",
            tree.span,
            "times belong to triples that patterns of this group match",
            f"inside an aggregate, as MAX(timestamp(?{name})), or in WHERE it can be asked"
            if elsewhere and scope.grouping is not None
            else f"ask it in the group that has the pattern with ?{name}",
        )
        return Constant(None, span=tree.span)
    return Call("sparql:moment", tuple(Variable(column) for column in columns), span=tree.span)


def _of_stream_in(
    tree: t.CallTree, name: str, stream: Expression, scope: Scope, settings: StatementSettings
) -> Expression:
    """The time in the stream that a variable of GRAPH or WINDOW names."""
    dataset = settings.dataset
    branches: list[tuple[Expression, Expression]] = []
    for iri in dict.fromkeys((*dataset.streams, *dataset.windows)):
        windows = dataset.windows_of(iri)
        columns = [column for one in windows for column in settings.times.columns(name, one, scope.columns)]
        if columns:
            moment = Call("sparql:moment", tuple(Variable(column) for column in columns), span=tree.span)
            branches.append((Call("sparql:sameterm", (stream, Constant(iri))), moment))
    if not branches:
        return _latest(
            tree, name, tuple(w for iri in dataset.streams for w in dataset.windows_of(iri)), scope, settings
        )
    return Case(tuple(branches), Constant(None), span=tree.span)


def _unknown_stream(tree: t.CallTree, stream: Iri, settings: StatementSettings) -> None:
    known = [iri.value for iri in (*settings.dataset.streams, *settings.dataset.windows)]
    near = closest(stream.value, known, 1)
    listed = ", ".join(f"<{value}>" for value in known) or "none"
    settings.problems.add(
        "SPQ-107",
        f"<{stream.value}> is no stream of this query",
        tree.arguments[1].span or tree.span,
        "",
        (f"did you mean <{near[0]}>?  " if near else "") + f"Streams: {listed}.",
    )
