"""Anabranch: continuous graph queries over streams.

    import anabranch

    session = anabranch.Session.local()
    query = session.register(text)
    session.push("rides", events)
    session.finish()
    answers = query.poll()

Invariant: importing this package loads none of its rooms; a public name loads what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from anabranch.api import RunResult, run
    from anabranch.engine.answers import Answer
    from anabranch.engine.connectivity.workload import ConnectivityAnswer, ConnectivityWorkload
    from anabranch.engine.evaluation_options import EvaluationOptions
    from anabranch.engine.progress import LatePolicy
    from anabranch.engine.session import Query, Session
    from anabranch.engine.timing import AheadBound, IdlePolicy
    from anabranch.errors import (
        AnabranchError,
        Diagnostic,
        EngineError,
        EvaluationError,
        InternalError,
        MalformedEventError,
        QueryError,
        QueryNameError,
        QuerySyntaxError,
        QueryTypeError,
        Span,
        StreamError,
        UnsupportedQueryError,
    )
    from anabranch.formats.tables import Table
    from anabranch.model.event import Event
    from anabranch.model.graph import PropertyGraph
    from anabranch.model.mapping import Mapping
    from anabranch.model.terms import Blank, Iri, Literal, Triple
    from anabranch.model.triples import TripleGraph
    from anabranch.model.values import Node, Path, Relationship
    from anabranch.plain import evaluate
    from anabranch.runner.garbage import quiet_collector
    from anabranch.sinks.memory import MemoryTable
    from anabranch.sources.graphs import load_graph
    from anabranch.syntax.languages import QueryText

__all__ = [
    "AheadBound",
    "AnabranchError",
    "Answer",
    "Blank",
    "ConnectivityAnswer",
    "ConnectivityWorkload",
    "Diagnostic",
    "EngineError",
    "EvaluationError",
    "EvaluationOptions",
    "Event",
    "IdlePolicy",
    "InternalError",
    "Iri",
    "LatePolicy",
    "Literal",
    "MalformedEventError",
    "Mapping",
    "MemoryTable",
    "Node",
    "Path",
    "PropertyGraph",
    "Query",
    "QueryError",
    "QueryNameError",
    "QuerySyntaxError",
    "QueryText",
    "QueryTypeError",
    "Relationship",
    "RunResult",
    "Session",
    "Span",
    "StreamError",
    "Table",
    "Triple",
    "TripleGraph",
    "UnsupportedQueryError",
    "__version__",
    "evaluate",
    "load_graph",
    "quiet_collector",
    "run",
]

_HOMES = {
    "Answer": "anabranch.engine.answers",
    "ConnectivityAnswer": "anabranch.engine.connectivity.workload",
    "ConnectivityWorkload": "anabranch.engine.connectivity.workload",
    "evaluate": "anabranch.plain",
    "Query": "anabranch.engine.session",
    "Session": "anabranch.engine.session",
    "Table": "anabranch.formats.tables",
    "Event": "anabranch.model.event",
    "RunResult": "anabranch.api",
    "LatePolicy": "anabranch.engine.progress",
    "AheadBound": "anabranch.engine.timing",
    "IdlePolicy": "anabranch.engine.timing",
    "EvaluationOptions": "anabranch.engine.evaluation_options",
    "MemoryTable": "anabranch.sinks.memory",
    "quiet_collector": "anabranch.runner.garbage",
    "run": "anabranch.api",
    "PropertyGraph": "anabranch.model.graph",
    "Node": "anabranch.model.values",
    "Path": "anabranch.model.values",
    "Relationship": "anabranch.model.values",
    "Blank": "anabranch.model.terms",
    "Iri": "anabranch.model.terms",
    "Literal": "anabranch.model.terms",
    "Triple": "anabranch.model.terms",
    "TripleGraph": "anabranch.model.triples",
    "Mapping": "anabranch.model.mapping",
    "load_graph": "anabranch.sources.graphs",
    "QueryText": "anabranch.syntax.languages",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "anabranch.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
