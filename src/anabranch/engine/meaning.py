"""The meaning of a registered query as a key: two queries with equal keys differ in their names alone.

Invariant: equal keys mean equal rows at every instant, in the same order and of the same columns, and the same errors.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import reads_chance, windows
from anabranch.engine.query_options import QueryOptions
from anabranch.formats.values import to_typed_json


def meaning_of(registration: Registration, options: QueryOptions) -> Hashable:
    """Return the key of a query; None for one that runs alone.

    A query runs alone that makes a stream, draws by chance, answers once, reads no window, or whose instants depend on
    arrivals. The text of a plan distinguishes 1, 1.0 and true, which Python takes as equal.
    """
    plan = registration.plan
    makes_or_waits = registration.into is not None or registration.arrivals is not None or registration.every is None
    if makes_or_waits or options.evaluator != "own" or not windows(plan) or reads_chance(plan):
        return None
    parameters = repr(sorted((name, to_typed_json(value)) for name, value in options.parameters.items()))
    return repr(replace(registration, name="")), options.windows, options.conflicts, options.on_error, parameters
