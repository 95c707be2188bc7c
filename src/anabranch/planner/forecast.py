"""Estimates how much a query's operators will keep, from the widths of its windows and the rates of its streams.

The estimate is a calculation, not a measurement: every event brings one fact (a triple, or an element of a property
graph), each fact fits one pattern, joins are one to one, and every row is a group of its own. Selective queries keep
less. Patterns whose facts meet many others have more matches than the estimate; `--max-matches` limits those.

Invariant: bytes per row are those that the structures were measured to take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.walk import parts_of
from anabranch.planner.flow.spec import Spec
from anabranch.planner.patterns.questions import seconds
from anabranch.planner.queries import QueryPlan

Rate = Callable[[op.Window], float]
"""Events per second of a window's stream."""

_BYTES_OF_FACT = 150  # in the log matcher, with the node table's share
_BYTES_OF_ROW = 64  # in a trace, besides the ids
_BYTES_OF_ID = 8
_BYTES_OF_GROUP = 600  # Python objects
_BYTES_OF_SORTED = 250


@dataclass(frozen=True, slots=True)
class OperatorForecast:
    """The rows and bytes that one operator of the plan is expected to keep."""

    rows: float
    bytes: float

    def __str__(self) -> str:
        return f"about {self.rows:,.0f} row{'' if round(self.rows) == 1 else 's'}, {size_words(self.bytes)}"


@dataclass(slots=True)
class _Estimate:
    rows: float = 0.0  # of its output, at a time
    kept: float = 0.0
    bytes: float = 0.0


def forecast(query: QueryPlan, rate: Rate) -> dict[int, OperatorForecast]:
    """Estimate what each operator keeps; the result has the id of each operator of the plan that keeps something."""
    found: dict[int, OperatorForecast] = {}
    known: dict[int, _Estimate] = {}
    if query.root is not None:
        _estimate(query.root, rate, known, found)
    return found


def _estimate(spec: Spec, rate: Rate, known: dict[int, _Estimate], found: dict[int, OperatorForecast]) -> _Estimate:
    if id(spec) in known:
        return known[id(spec)]
    inputs = [_estimate(one, rate, known, found) for one in spec.inputs]
    estimate = known[id(spec)] = _own(spec, inputs, rate)
    if spec.about is not None and estimate.kept:
        before = found.get(id(spec.about), OperatorForecast(0.0, 0.0))
        found[id(spec.about)] = OperatorForecast(before.rows + estimate.kept, before.bytes + estimate.bytes)
    return estimate


def _own(spec: Spec, inputs: list[_Estimate], rate: Rate) -> _Estimate:
    largest = max((one.rows for one in inputs), default=0.0)
    total = sum(one.rows for one in inputs)
    row = _BYTES_OF_ROW + _BYTES_OF_ID * spec.width
    match spec.name:
        case "LogMatcher" | "SemiJoins" if not spec.inputs:
            facts = sum(_held(window, rate) for window in _windows(spec.about))
            matches = facts / max(1, _patterns(spec.about))
            return _Estimate(matches, facts, facts * _BYTES_OF_FACT + matches * row)
        case "SymmetricHashJoin" | "SymmetricHashLeftJoin" | "AntiJoin" | "MarkJoin":
            return _Estimate(largest, total, total * row)
        case "Distinct" | "Arguments" | "Constructed":
            return _Estimate(largest, largest, largest * row)
        case "GroupedAggregates" | "AnnotatedRows":
            return _Estimate(largest, largest, largest * _BYTES_OF_GROUP)
        case "OrderedSlice":
            return _Estimate(largest, largest, largest * (_BYTES_OF_SORTED + _BYTES_OF_ID * spec.width))
        case "Asked":
            return _Estimate(1.0)
        case "Union":
            return _Estimate(total)
    return _Estimate(largest)


def _held(window: op.Window, rate: Rate) -> float:
    if window.count is not None:
        return float(window.count)
    return rate(window) * seconds(window.width) if window.width is not None else 0.0


def _windows(about: op.Operator | None) -> list[op.Window]:
    match about:
        case op.Pattern(source=source):
            return [source] if isinstance(source, op.Window) else []
        case tr.GraphPattern(source=triples):
            return [part for part in parts_of(triples) if isinstance(part, op.Window)]
    return []


def _patterns(about: op.Operator | None) -> int:
    match about:
        case op.Pattern(paths=paths):
            return sum(len(path.relationships) or 1 for path in paths)
        case tr.GraphPattern(patterns=patterns):
            return len(patterns)
    return 1


def size_words(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
