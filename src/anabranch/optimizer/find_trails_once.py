"""Finds trails of which only the existence matters once for each pair of ends, instead of one by one.

    Distinct(Project(Pattern((a)-[:T*]->(b)), a, b))  =  Distinct(Project(Pattern((a)-[:T* once]->(b)), a, b))

There may be exponentially many trails between two nodes, but never more pairs of ends than nodes squared.

Law: no expression reads the trail (its variable, or a path that passes it), no other relationship of the pattern can be
one of the trail's, and no operator above counts rows. The operators above, up to a DISTINCT, an aggregate over distinct
values only, or EXISTS, give the same result whether a row is there once or several times. Expressions between see the
same values, so they fail where they failed before. The rule does not apply below expressions that read the clock or
chance, which may give a new value for each row, or below LIMIT, which counts rows.

A trail of at least zero or one relationship has the same ends as a walk (`snapshot.paths.ends_of_trails` gives the
reason, and the conditions for relationships without direction). The rule does not apply to a larger minimum length, or
to a maximum length without direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import (
    Aggregate,
    Argument,
    Distinct,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Operator,
    Order,
    PathPattern,
    Pattern,
    Project,
    RelationshipPattern,
    Union,
    Unwind,
)
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import is_volatile, walk
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import everywhere, own_expressions, with_inputs

LONGEST = 16
"""The largest maximum length of trails with a direction that are found once: a search has a state for each step."""

_ONLY_DIFFERENT = frozenset({"min", "max"})


def find_trails_once(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    finder = _Finder(Counter(_names(plan)), [])
    new = finder.above(plan, _Seen(once=False, whole=True))
    return Rewrite(new, tuple(dict.fromkeys(finder.notes))) if finder.notes else None


def _names(plan: Operator) -> Iterator[str]:
    """Yield every name of the plan, as often as it is mentioned."""
    for node in walk(plan):
        match node:
            case ex.Variable(name):
                yield name
            case Argument(names):
                yield from names
            case Pattern(paths=paths):
                for path in paths:
                    yield from (one.variable for one in path.relationships)
                    if path.variable is not None:
                        yield path.variable
            case Extend(column=column) | Unwind(column=column):
                yield column


@dataclass(frozen=True, slots=True)
class _Seen:
    """How the rows of an operator are read. `once`: the result is the same if equal rows come once or several times.
    `whole`: all columns are read, not only those that expressions mention."""

    once: bool
    whole: bool


_WHOLE = _Seen(once=False, whole=True)


@dataclass(frozen=True, slots=True)
class _Finder:
    mentioned: Counter[str]
    notes: list[str]

    def above(self, plan: Operator, seen: _Seen) -> Operator:
        """Return the plan in which suitable trails are found once."""
        plan = self._with_subqueries(plan)
        if isinstance(plan, Pattern):
            return self._found_once(plan) if seen.once and not seen.whole else plan
        below = _below(plan, seen)
        return with_inputs(plan, lambda one: self.above(one, below))

    def _with_subqueries(self, plan: Operator) -> Operator:
        """Apply the rule to subqueries: EXISTS reads only the existence of a row, a list of rows counts them."""

        def change(item: object) -> object:
            match item:
                case ex.Exists(inner):
                    new = self.above(inner, _Seen(once=True, whole=False))
                    return item if new is inner else replace(item, plan=new)
                case ex.CollectRows(inner):
                    new = self.above(inner, _WHOLE)
                    return item if new is inner else replace(item, plan=new)
            return item

        if not any(map(_asks, own_expressions(plan))):
            return plan
        held = {one.name: getattr(plan, one.name) for one in fields(plan) if one.name != "span"}
        new = {name: everywhere(value, change) for name, value in held.items() if not isinstance(value, Operator)}
        new = {name: value for name, value in new.items() if value is not held[name]}
        return replace(plan, **new) if new else plan

    def _found_once(self, pattern: Pattern) -> Pattern:
        paths = tuple(self._path(path, pattern) for path in pattern.paths)
        return pattern if paths == pattern.paths else replace(pattern, paths=paths)

    def _path(self, path: PathPattern, pattern: Pattern) -> PathPattern:
        if path.kind != "trail" or (path.variable is not None and self.mentioned[path.variable] > 1):
            return path
        others = [one for other in pattern.paths for one in other.relationships]
        steps = tuple(replace(step, once=True) if self._is_free(step, others) else step for step in path.relationships)
        if steps == path.relationships:
            return path
        new = replace(path, relationships=steps, variable=None)
        self.notes.append(f"only the ends of {Speller().path(replace(path, variable=None))} are seen, each pair once")
        return new

    def _is_free(self, step: RelationshipPattern, steps: list[RelationshipPattern]) -> bool:
        """Return whether a trail may be any trail between its ends."""
        if step.once or step.length is None or step.where is not None or self.mentioned[step.variable] > 1:
            return False
        least, most = step.length
        if least > 1 or (most is not None and (step.direction == "both" or not 1 <= most <= LONGEST)):
            return False
        return all(other is step or _have_no_type_in_common(step, other) for other in steps)


def _below(plan: Operator, seen: _Seen) -> _Seen:
    """Return how the inputs of an operator are read, given how its own rows are read."""
    if any(map(is_volatile, own_expressions(plan))):
        return _WHOLE
    match plan:
        case Distinct():
            return _Seen(once=True, whole=True)
        case Project():
            return _Seen(seen.once, whole=False)
        case Aggregate(aggregates=aggregates):
            once = all(call.distinct or call.function.lower() in _ONLY_DIFFERENT for _, call in aggregates)
            return _Seen(once, whole=False)
        case Filter() | Extend() | Unwind() | Order() | Join() | LeftJoin():
            return seen
        case Union():  # its sides have the same columns
            return _Seen(seen.once, whole=True)
        case _:
            return _WHOLE


def _asks(expression: ex.Expression) -> bool:
    return any(isinstance(node, ex.Exists | ex.CollectRows) for node in walk(expression))


def _have_no_type_in_common(one: RelationshipPattern, other: RelationshipPattern) -> bool:
    return bool(one.types and other.types) and frozenset(one.types).isdisjoint(other.types)
