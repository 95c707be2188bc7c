"""A plain query over given graphs, answered once: openCypher over a property graph, SPARQL over RDF.

Invariant: the answer is that of the snapshot evaluator; nothing is cached between calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from anabranch.algebra.operators import DEFAULT_GRAPH, Source, Static
from anabranch.algebra.walk import static_graphs
from anabranch.engine.session import InstantLike, micros, parameter_values
from anabranch.engine.surroundings import StaticGraph
from anabranch.errors import EngineError, EvaluationError, closest
from anabranch.formats.events import GraphLike, any_graph_from
from anabranch.formats.tables import Table
from anabranch.model.graph import EMPTY_GRAPH, PropertyGraph
from anabranch.model.mapping import Mapping as ModelMapping
from anabranch.model.triples import TripleGraph
from anabranch.plugins.oxigraph import Oxigraph
from anabranch.snapshot import Context, compile_plan
from anabranch.sources.graphs import is_rdf, load_graph
from anabranch.sources.property_graphs import read_graph as read_graph
from anabranch.sources.static import GraphFile
from anabranch.syntax import languages

AnyGraphLike: TypeAlias = GraphLike | TripleGraph | str | os.PathLike[str]


def evaluate(
    text: str,
    graph: AnyGraphLike | None = None,
    parameters: Mapping[str, object] | None = None,
    *,
    named: Mapping[str, AnyGraphLike] | None = None,
    mapping: ModelMapping | None = None,
    now: InstantLike | None = None,
    seed: int | None = None,
    file_name: str = "<query>",
) -> Table:
    """Answer a plain query, openCypher or SPARQL, over a graph.

    `graph` is a PropertyGraph, a mapping with `nodes` and `relationships` (or `edges`), events, which are united, a
    TripleGraph, or the path of a file with any of these. `named` are further graphs, for FROM and GRAPH of SPARQL. A
    graph of one model is read by a query of the other through `mapping`. `now` is the value of datetime() and NOW(), by
    default the wall clock; `seed` makes rand() repeat itself.
    """
    plan, form, prefixes = languages.plan(text, file_name, tuple(named or ()))
    compiled = compile_plan(plan)
    graphs = {DEFAULT_GRAPH: graph, **(named or {})}
    models = {name: StaticGraph(1, _graph(one), mapping or ModelMapping()) for name, one in graphs.items()}

    def found(source: Source) -> StaticGraph:
        name = source.name if isinstance(source, Static) else DEFAULT_GRAPH
        if name not in models:
            models[name] = StaticGraph(1, _named(name, file_name, models), mapping or ModelMapping())
        return models[name]

    for one in static_graphs(plan):
        found(one)
    context = Context(
        graph=lambda source: found(source).as_graph(),
        triple_graph=lambda source: found(source).as_triples(),
        plugin=Oxigraph(),
        parameters=parameter_values(parameters or {}),
        clock=time.time_ns() // 1000 if now is None else micros(now),
        seed=seed if seed is not None else os.urandom(8),
    )
    try:
        return Table(compiled.columns, compiled.run(context), form, prefixes)
    except EvaluationError as error:
        raise error.in_text(text, file_name) from None


def _graph(graph: AnyGraphLike | None) -> PropertyGraph | TripleGraph:
    if graph is None:
        return EMPTY_GRAPH
    if isinstance(graph, str | os.PathLike):
        return GraphFile(DEFAULT_GRAPH, (os.fspath(graph),)).load()
    return any_graph_from(graph)


def _named(name: str, file_name: str, known: Mapping[str, object]) -> TripleGraph:
    """Load a graph that the query names and the caller has not given; relative names begin at the query's folder."""
    if is_rdf(name):
        return load_graph(name, Path(file_name).parent if Path(file_name).exists() else ".")
    near = closest(name, known, limit=1)
    guess = f"did you mean `{near[0]}`?  " if near else ""
    raise EngineError(f"no graph `{name}`; {guess}graphs: {', '.join(known)}")
