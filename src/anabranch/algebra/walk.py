"""Walks over plans: every operator and expression of a plan, and questions that need all of them.

Invariant: the walk has no case for any operator. It follows the fields of the frozen nodes, so a new operator or
expression is walked without a change here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace

from anabranch.algebra.expressions import (
    AggregateCall,
    And,
    Call,
    Component,
    Connected,
    Expression,
    MapOf,
    TripleTime,
    Variable,
    WindowBound,
)
from anabranch.algebra.operators import (
    Aggregate,
    Annotate,
    Distinct,
    Join,
    LeftJoin,
    MergedSource,
    Operator,
    Order,
    Pattern,
    Project,
    RowBag,
    Slice,
    Source,
    Static,
    TripleSource,
    Union,
    Unit,
    Unwind,
    Window,
    _Single,
)
from anabranch.algebra.sparql_functions import SPARQL_FUNCTIONS
from anabranch.algebra.triples import Ask, Describe, GraphPattern, Minus, Path, PluginQuery, StaticPart

_CLOCK_FUNCTIONS = frozenset({"date", "datetime", "time", "localtime", "localdatetime"})
_NOW = "sparql:now"
_CLOCK_SUFFIXES = frozenset({"statement", "transaction", "realtime"})
_ORDERED_AGGREGATES = frozenset({"collect", "sparql:group_concat"})
_CHANCE_FUNCTIONS = frozenset({"rand", "random", "randomuuid"})


def walk(plan: Operator | Expression) -> Iterator[Operator | Expression]:
    """Yield the node, then everything below it, plans inside of expressions included; each before its parts."""
    pending: list[object] = [plan]
    while pending:
        item = pending.pop()
        if isinstance(item, (Operator, Expression)):
            yield item
        pending.extend(reversed(_parts(item)))


def _parts(item: object) -> Sequence[object]:
    kind = item.__class__
    if kind not in _PART_NAMES:
        _PART_NAMES[kind] = _part_names(kind)
    names = _PART_NAMES[kind]
    if names is None:
        return item  # type: ignore[return-value]
    return [getattr(item, name) for name in names]


_PART_NAMES: dict[type, tuple[str, ...] | None] = {}


def _part_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a node that may hold parts; None for tuples, whose items are the parts."""
    if issubclass(kind, tuple):
        return None
    return tuple(field.name for field in fields(kind) if field.name != "span") if is_dataclass(kind) else ()


def sources(plan: Operator) -> tuple[Source, ...]:
    """Return the windows and static graphs that the plan reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(source for node in walk(plan) for source in read_by(node)))


def read_by(node: Operator | Expression) -> tuple[Source, ...]:
    match node:
        case Pattern(source=source):
            return (source,)
        case GraphPattern(source=source) | Path(source=source) | Describe(source=source) | TripleTime(source=source):
            return parts_of(source)
        case Connected(links=links) | Component(links=links):
            return parts_of(links.source)
        case PluginQuery(default=default, named=named):
            return (*parts_of(default), *(source for _, source in named))
        case StaticPart(windows=guards):
            return guards
        case _:
            return ()


def parts_of(source: TripleSource) -> tuple[Source, ...]:
    """Return the windows and static graphs that a source of triples is made of."""
    return source.parts if isinstance(source, MergedSource) else (source,)


def reads_triples(plan: Operator) -> bool:
    """Return whether the plan reads its sources as RDF, and not as property graphs."""
    return any(
        isinstance(node, GraphPattern | Path | Describe | TripleTime | PluginQuery)
        or (isinstance(node, Connected | Component) and node.links.of_triples)
        for node in walk(plan)
    )


def asks_graph(node: Operator | Expression) -> bool:
    """Return whether a node reads its source as a property graph."""
    return isinstance(node, Pattern) or (isinstance(node, Connected | Component) and not node.links.of_triples)


def windows(plan: Operator) -> tuple[Window, ...]:
    return tuple(source for source in sources(plan) if isinstance(source, Window))


def static_graphs(plan: Operator) -> tuple[Static, ...]:
    return tuple(source for source in sources(plan) if isinstance(source, Static))


def keeps_order(plan: Operator) -> bool:
    """Return whether the query defines the order of the rows: they were sorted on the way, or come from the query
    itself, as the items of a list do. All other rows are a bag, whatever the order in which they are found."""
    return _order_of(plan) == _SAID


def keeps_lists(plan: Operator) -> bool:
    """Return whether the query defines the order of the rows, or at least that of the items of each unwound list."""
    return _order_of(plan) >= _LISTS


def lists_in_order(plan: Operator) -> Operator:
    """Return the plan with the rows of a bag sorted by their values before lists of these rows are unwound: then the
    order of all items does not depend on the order in which rows are found."""
    if isinstance(plan, Unwind) and _order_of(plan.input) == _NONE:
        return replace(plan, input=Order(plan.input, (), span=plan.span))
    if _order_of(plan) != _LISTS:
        return plan
    if isinstance(plan, Union | Join | LeftJoin | Minus):
        return replace(plan, left=lists_in_order(plan.left), right=lists_in_order(plan.right))
    assert isinstance(plan, _Single), "an operator that keeps an order has an input"
    return replace(plan, input=lists_in_order(plan.input))


_NONE, _LISTS, _SAID = range(3)


def _order_of(plan: Operator) -> int:
    """Return how far the query defines the rows' order: not at all, that of lists within rows of a bag, or wholly."""
    match plan:
        case Order():
            return _SAID
        case Unwind(below):
            return max(_order_of(below), _LISTS)
        case Aggregate(below) | Distinct(below):
            return _NONE if _order_of(below) < _SAID else _SAID
        case Join(left, right) | LeftJoin(left, right):
            if isinstance(left, Unit):
                return _order_of(right)
            return _NONE if _reads_any(right) else min(_order_of(left), _order_of(right))
        case Minus(left):
            return _order_of(left)
        case Union(left, right):
            return min(_order_of(left), _order_of(right))
        case _ if read_by(plan) or isinstance(plan, RowBag):
            return _NONE
        case _:
            return min(map(_order_of, plan.inputs), default=_SAID)


def _reads_any(plan: Operator) -> bool:
    return bool(read_by(plan)) or any(map(_reads_any, plan.inputs))


def only_picks(project: Project) -> bool:
    """Return whether a projection only chooses columns."""
    return all(isinstance(expression, Variable) for _, expression in project.items)


def root_order(plan: Operator) -> Order | None:
    """Return the ORDER BY of a plan's output rows, as far as projections that only choose columns preserve it. Without
    one, a continuous query emits its rows in the order of their values."""
    while isinstance(plan, Slice | Distinct) or (isinstance(plan, Project) and only_picks(plan)):
        plan = plan.input
    return plan if isinstance(plan, Order) else None


def depends_on_order(call: AggregateCall) -> bool:
    """Return whether the result of an aggregate depends on the order of its rows."""
    return call.function.lower() in _ORDERED_AGGREGATES


def reads_order(operator: Operator) -> bool:
    """Return whether the rows of an operator depend on the order of its input's rows, where the query defines one."""
    match operator:
        case Order() | Slice():
            return True
        case Aggregate(aggregates=aggregates) | Annotate(aggregates=aggregates):
            return any(depends_on_order(call) for _, call in aggregates)
    return False


def is_volatile(plan: Operator | Expression) -> bool:
    """Return whether the plan may answer differently over the same graphs: it reads the clock or a random number."""
    return any(reads_clock(node) or _reads_chance(node) for node in walk(plan))


def reads_chance(plan: Operator) -> bool:
    """Return whether the plan draws random numbers, or makes names that no other evaluation makes."""
    return any(map(_reads_chance, walk(plan)))


def _reads_chance(node: Operator | Expression) -> bool:
    if not isinstance(node, Call):
        return False
    sparql = SPARQL_FUNCTIONS.get(node.function)
    if sparql is not None:
        return sparql.volatile and node.function != _NOW
    return node.function.lower() in _CHANCE_FUNCTIONS


def reads_clock(call: Operator | Expression) -> bool:
    """Return whether the evaluation instant decides the value of the node itself, its arguments aside."""
    if isinstance(call, WindowBound):
        return True
    if not isinstance(call, Call) or call.function in SPARQL_FUNCTIONS:
        return isinstance(call, Call) and call.function == _NOW
    name, _, suffix = call.function.lower().partition(".")
    if name == "timestamp":
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
    """Return whether a map needs the clock: one with only a zone is the present time there; a time in a zone has the
    zone's present offset."""
    if not isinstance(argument, MapOf):
        return False
    keys = {key.lower() for key, _ in argument.entries}
    return "timezone" in keys and (name == "time" or len(keys) == 1)


def is_empty_without_events(plan: Operator) -> bool:
    """Return whether the plan certainly has no row when all its windows are empty, whatever the clock says."""
    match plan:
        case Pattern(source=Window()):
            return True
        case GraphPattern(source=source, patterns=patterns):
            return bool(patterns) and all(isinstance(part, Window) for part in parts_of(source))
        case StaticPart() | Ask() | Describe():
            return False
        case Minus():
            return is_empty_without_events(plan.left)
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


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """Return the conditions that must all be true for the whole to be true."""
    match condition:
        case None:
            return ()
        case And(operands):
            return tuple(part for operand in operands for part in conjuncts(operand))
        case _:
            return (condition,)
