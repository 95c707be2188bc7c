"""A plain query over one graph, answered once.

Invariant: what is answered is what the snapshot evaluator says; nothing is cached between calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from random import Random

from anabranch.engine.session import InstantLike, micros, parameter_values
from anabranch.errors import EvaluationError
from anabranch.formats.events import GraphLike, graph_from
from anabranch.formats.tables import Table
from anabranch.snapshot import Context, compile_plan
from anabranch.syntax import seraph


def evaluate(
    text: str,
    graph: GraphLike,
    parameters: Mapping[str, object] | None = None,
    *,
    now: InstantLike | None = None,
    seed: int | None = None,
    file_name: str = "<query>",
) -> Table:
    """Answer a plain Cypher query over a property graph.

    `graph` is a PropertyGraph, a mapping with `nodes` and `relationships` (or `edges`), or events, which are united.
    `now` is what datetime() and its kin say, by default the wall clock; `seed` makes rand() repeat itself.
    """
    plan = seraph.plan(text, file_name)
    whole = graph_from(graph)
    context = Context(
        lambda _source: whole,
        parameter_values(parameters or {}),
        clock=time.time_ns() // 1000 if now is None else micros(now),
        random=Random(seed if seed is not None else os.urandom(8)),
    )
    compiled = compile_plan(plan)
    try:
        return Table(compiled.columns, compiled.run(context))
    except EvaluationError as error:
        raise error.in_text(text, file_name) from None
