"""The meaning of a registered query as a key: two queries with equal keys differ in their names alone, and two queries
with equal shapes in their constants too.

Invariant: equal keys mean equal rows at every instant, in the same order and of the same columns, and the same errors.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import reads_chance, windows
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.rule_tables import has_parameters, shape_of
from anabranch.formats.values import to_typed_json


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    """The shape of a query, and its constants: `keys` are the numbers of those that a join can look up."""

    shape: Hashable
    constants: tuple[Any, ...]
    keys: tuple[int, ...]

    @property
    def values(self) -> Hashable:
        """The constants as a key that distinguishes 1, 1.0 and true."""
        return tuple((type(one), one) for one in self.constants)


def meaning_of(registration: Registration, options: QueryOptions) -> QueryMeaning | None:
    """Return the meaning of a query; None for one that runs alone.

    A query runs alone that makes a stream, draws by chance, answers once, reads no window, or whose instants depend on
    arrivals. The text of a plan distinguishes 1, 1.0 and true, which Python takes as equal.
    """
    plan = registration.plan
    makes_or_waits = registration.into is not None or registration.arrivals is not None or registration.every is None
    if makes_or_waits or options.evaluator != "own" or not windows(plan) or reads_chance(plan):
        return None
    shape = shape_of(plan, options.parameters)
    given = sorted((name, to_typed_json(one)) for name, one in options.parameters.items())
    # Where queries stand among their instants is compared when they meet. Only steps of windows count from the start.
    starting_at = registration.starting_at if any(one.step is not None for one in windows(plan)) else None
    key = (
        repr(replace(registration, name="", plan=shape.plan, starting_at=starting_at, aligned=False)),
        registration.columns,
        options.windows,
        options.conflicts,
        options.on_error,
        repr(given) if has_parameters(shape.plan) else "",
    )
    return QueryMeaning(key, tuple(shape.constants), tuple(shape.keys))
