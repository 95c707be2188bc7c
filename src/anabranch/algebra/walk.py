"""Walking over plans: every operator and expression of a plan, and questions answered by looking at all of them.

Invariant: the walk knows no operator by name. It follows the fields of the frozen nodes, so a new operator or
expression is walked without a change here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from anabranch.algebra.expressions import Call, Expression, MapOf
from anabranch.algebra.operators import (
    Aggregate,
    Join,
    LeftJoin,
    Operator,
    Pattern,
    Source,
    Static,
    Union,
    Window,
)

_CLOCK_FUNCTIONS = frozenset({"date", "datetime", "time", "localtime", "localdatetime"})
_CLOCK_SUFFIXES = frozenset({"statement", "transaction", "realtime"})
_ALWAYS_VOLATILE = frozenset({"timestamp", "rand", "random", "randomuuid"})


def walk(plan: Operator | Expression) -> Iterator[Operator | Expression]:
    """The node, then everything below it, plans inside of expressions included; each before its parts."""
    pending: list[object] = [plan]
    while pending:
        item = pending.pop()
        if isinstance(item, (Operator, Expression)):
            yield item
        pending.extend(reversed(_parts(item)))


def _parts(item: object) -> list[object]:
    if isinstance(item, tuple):
        return list(item)
    if is_dataclass(item):
        return [getattr(item, field.name) for field in fields(item) if field.name != "span"]
    return []


def sources(plan: Operator) -> tuple[Source, ...]:
    """The windows and static graphs that the plan reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(node.source for node in walk(plan) if isinstance(node, Pattern)))


def windows(plan: Operator) -> tuple[Window, ...]:
    return tuple(source for source in sources(plan) if isinstance(source, Window))


def static_graphs(plan: Operator) -> tuple[Static, ...]:
    return tuple(source for source in sources(plan) if isinstance(source, Static))


def is_volatile(plan: Operator | Expression) -> bool:
    """Whether the plan may answer differently over the same graphs: it reads the clock or a random number."""
    return any(isinstance(node, Call) and _reads_clock_or_chance(node) for node in walk(plan))


def _reads_clock_or_chance(call: Call) -> bool:
    name, _, suffix = call.function.lower().partition(".")
    if name in _ALWAYS_VOLATILE:
        return True
    if name not in _CLOCK_FUNCTIONS:
        return False
    if suffix in _CLOCK_SUFFIXES:
        return True
    if suffix == "truncate":
        return len(call.arguments) < 2 or (name == "time" and len(call.arguments) > 2)
    if suffix:
        return False
    return not call.arguments or _asks_for_zone(name, call.arguments[0])


def _asks_for_zone(name: str, argument: Expression) -> bool:
    """A map with only a zone asks for the time it is there; a time in a zone has the offset that the zone has now."""
    if not isinstance(argument, MapOf):
        return False
    keys = {key.lower() for key, _ in argument.entries}
    return "timezone" in keys and (name == "time" or len(keys) == 1)


def is_empty_without_events(plan: Operator) -> bool:
    """Whether the plan certainly has no row when all its windows are empty, whatever the clock says."""
    match plan:
        case Pattern(source=Window()):
            return True
        case Join():
            return is_empty_without_events(plan.left) or is_empty_without_events(plan.right)
        case LeftJoin():
            return is_empty_without_events(plan.left)
        case Union():
            return is_empty_without_events(plan.left) and is_empty_without_events(plan.right)
        case Aggregate():
            return bool(plan.keys) and is_empty_without_events(plan.input)
        case _:
            return len(plan.inputs) == 1 and is_empty_without_events(plan.inputs[0])
