"""SPARQL plug-in: pyoxigraph answers plain queries, and the parts of queries that read only static knowledge.

C-SPARQL's architecture (section 4, and part 2 of the deliverable) sets a SPARQL engine beside the continuous one; this
is that engine. It has no streams and no time: its input is graphs and its output rows.

Invariant: matches come back in an order that depends on them alone, and a blank node of a graph as the same blank node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from anabranch.algebra.triples import TermPlace, TriplePattern, Var
from anabranch.errors import EngineError, EvaluationError
from anabranch.formats.rdf.terms import from_oxigraph, legal_label, term_text, to_oxigraph
from anabranch.model.terms import Blank, Iri, Literal, Term, Triple
from anabranch.model.triples import Triples

TermRows = list[tuple[Term | None, ...]]


class Oxigraph:
    """pyoxigraph as a plug-in; it keeps no state between calls."""

    name = "pyoxigraph"

    def evaluate(self, text: str, default: Triples, named: Mapping[Iri, Triples]) -> tuple[tuple[str, ...], TermRows]:
        """Answer a plain query: its columns and rows; for ASK a column `ask`, for a graph its triples."""
        store = ox.Store()
        blanks: dict[str, Blank] = {}
        _fill(store, default, None, blanks)
        for name, graph in named.items():
            store.add_graph(ox.NamedNode(name.value))  # without triples it is an empty graph, not a missing one
            _fill(store, graph, name, blanks)
        try:
            found: Any = store.query(text)
        except (SyntaxError, ValueError, RuntimeError, OSError) as error:
            hint = "leave out --evaluator plugin"
            raise EvaluationError("SPQ-303", f"pyoxigraph refuses the query: {error}", hint) from None
        if isinstance(found, ox.QueryBoolean):
            return ("ask",), [(Literal("true" if found else "false", "http://www.w3.org/2001/XMLSchema#boolean"),)]
        if isinstance(found, ox.QueryTriples):
            triples = [(one.subject, one.predicate, one.object) for one in found]
            return ("subject", "predicate", "object"), _rows(triples, blanks)
        columns = tuple(variable.value for variable in found.variables)
        return columns, _rows(([solution[name] for name in columns] for solution in found), blanks)

    def match(self, patterns: Sequence[TriplePattern], graph: Triples) -> TermRows:
        """Return all matches of a basic graph pattern: the values of its variables in the order of their first
        appearance."""
        columns = tuple(dict.fromkeys(name for pattern in patterns for name in pattern.variables))
        names = {column: f"v{index}" for index, column in enumerate(columns)}
        where = " . ".join(" ".join(_place(place, names) for place in pattern.places) for pattern in patterns)
        projected = " ".join(f"?{names[column]}" for column in columns) or "(1 AS ?one)"
        _, rows = self.evaluate(f"SELECT {projected} {{ {where} }}", graph, {})
        # pyoxigraph gives rows in an order of its own, which need not be that of the next run.
        return sorted(rows, key=repr) if columns else [() for _ in rows]


def _fill(store: ox.Store, graph: Iterable[Triple], name: Iri | None, blanks: dict[str, Blank]) -> None:
    graph_name = ox.DefaultGraph() if name is None else ox.NamedNode(name.value)
    store.extend(
        ox.Quad(_given(subject, blanks), _given(predicate, blanks), _given(value, blanks), graph_name)
        for subject, predicate, value in graph
    )


def _given(term: Term, blanks: dict[str, Blank]) -> Any:
    if isinstance(term, Blank):
        blanks[legal_label(term)] = term
    return to_oxigraph(term)


def _rows(rows: Iterable[Iterable[Any]], blanks: Mapping[str, Blank]) -> TermRows:
    def term(value: Any) -> Term | None:
        if value is None:
            return None
        if isinstance(value, ox.BlankNode):
            return blanks.get(value.value, Blank(value.value, "plug-in"))
        return from_oxigraph(value, "plug-in")

    return [tuple(map(term, row)) for row in rows]


def _place(place: TermPlace, names: Mapping[str, str]) -> str:
    if isinstance(place, Var):
        return f"?{names[place.name]}"
    if isinstance(place, Blank):
        raise EngineError("a blank node of the data cannot stand in a query")
    return term_text(place)
