"""The options of a registered query, and a compiled query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from anabranch.algebra.operators import Registration
from anabranch.engine.evaluation_options import OnError
from anabranch.engine.plans import Evaluator
from anabranch.model.union import ConflictPolicy
from anabranch.model.values import Value
from anabranch.model.windows import WindowPolicy


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of a registered query. `text` and `source_name` (its name in the text) let a checkpoint find it
    again.
    """

    windows: WindowPolicy = "trailing"
    conflicts: ConflictPolicy = "latest"
    parameters: Mapping[str, Value] = field(default_factory=dict)
    now: int | None = None
    text: str = ""
    file_name: str = "<query>"
    source_name: str = ""
    evaluator: Evaluator = "own"
    on_error: OnError | None = None  # None: the engine's default


class CompiledQuery(NamedTuple):
    """A query that was parsed and checked, with the options under which it is registered."""

    registration: Registration
    options: QueryOptions
