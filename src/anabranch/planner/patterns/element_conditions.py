"""Assigns the conditions of a pattern to its elements: those that can be tested on one element, before a match is
found.

Law: a match passes all conditions if its elements pass their own, and the match passes those in `kept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Pattern, RelationshipPattern
from anabranch.algebra.walk import conjuncts
from anabranch.model.values import Value
from anabranch.optimizer.support.rebuild import everywhere
from anabranch.planner.patterns.safety import is_about_the_row_alone, never_fails
from anabranch.planner.reads import properties_of
from anabranch.snapshot.variables import free_variables


@dataclass(frozen=True, slots=True)
class PatternHop:
    """A relationship pattern read along its direction, or a trail read from the left."""

    pattern: RelationshipPattern
    source: str
    target: str
    kind: Literal["trail", "shortest", "all-shortest"] = "trail"

    @property
    def is_shortest(self) -> bool:
        return self.kind != "trail"

    @property
    def is_trail(self) -> bool:
        return self.pattern.length is not None and not self.is_shortest

    @property
    def variable(self) -> str:
        return self.pattern.variable


def hops_of(pattern: Pattern) -> list[PatternHop]:
    """Return the relationship patterns of all paths, in their order."""
    found = []
    for path in pattern.paths:
        for at, one in enumerate(path.relationships):
            ends = (path.nodes[at].variable, path.nodes[at + 1].variable)
            turned = one.direction == "in" and one.length is None and path.kind == "trail"
            found.append(PatternHop(one, *(ends[::-1] if turned else ends), path.kind))
    return found


class ElementConditions:
    """Conditions by the variable of their element: `labels` of nodes, `early` conditions of single elements, and of
    trails the conditions on `each` relationship and the values that are the `same` along it. `alike` are values of two
    elements that are equal in every match; `kept` must be tested on the matches."""

    def __init__(self, pattern: Pattern, hops: Sequence[PatternHop], parameters: Mapping[str, Value]) -> None:
        self._pattern = pattern
        self._parameters = parameters
        self.labels: dict[str, dict[str, None]] = {}
        for node in (node for path in pattern.paths for node in path.nodes):
            self.labels.setdefault(node.variable, {}).update(dict.fromkeys(node.labels))
        self.trails = frozenset(hop.variable for hop in hops if hop.is_trail)
        single = (hop.variable for hop in hops if not hop.is_trail and not hop.is_shortest)
        self.elements = frozenset((*self.labels, *single))
        self.early: dict[str, list[ex.Expression]] = {name: [] for name in self.elements}
        self.each: dict[str, list[tuple[str, ex.Expression]]] = {name: [] for name in self.trails}
        self.same: dict[str, list[tuple[str, ex.Expression]]] = {name: [] for name in self.trails}
        self.alike: list[tuple[ex.Expression, ex.Expression]] = []
        self.kept: list[ex.Expression] = []
        for hop in hops:
            if hop.is_trail and hop.pattern.where is not None:
                self._take_of_each(hop, hop.pattern.where)

    def take(self, conditions: Iterable[ex.Expression | None]) -> None:
        """Assign conditions that all must be true."""
        for condition in conditions:
            for part in conjuncts(condition):
                self._take(part)

    def _take(self, part: ex.Expression) -> None:
        """Test a condition early if it is about properties of one element; test it on the match if it is not, or if it
        may fail."""
        match part:
            case ex.HasLabels(ex.Variable(name), labels) if name in self.labels:
                self.labels[name].update(dict.fromkeys(labels))
                return
            case ex.Quantifier("all", each, source, condition) if self._is_settled_by_each(each, source, condition):
                return
        read = free_variables(part)
        if len(read) == 1 and read <= self.elements and is_about_the_row_alone(part):
            (name,) = read
            if properties_of(part, name) is not None:
                self.early[name].append(part)
                if never_fails(part, self.elements, self._parameters):
                    return
        self.kept.append(part)

    def _is_settled_by_each(self, each: str, source: ex.Expression, condition: ex.Expression) -> bool:
        """Test a condition on all relationships of a trail or path on each relationship instead; return whether that is
        enough."""
        match source:
            case ex.Variable(name):
                walked = [name]
            case ex.Call("relationships", (ex.Variable(name),)):
                paths = [path for path in self._pattern.paths if path.variable == name]
                walked = [one.variable for path in paths for one in path.relationships]
            case _:
                return False
        if free_variables(condition) != {each} or not is_about_the_row_alone(condition):
            return False
        for trail in self.trails.intersection(walked):
            self.each[trail].append((each, condition))
        settled = bool(walked) and self.trails.issuperset(walked)
        return settled and never_fails(condition, frozenset({each}), self._parameters)

    def _take_of_each(self, hop: PatternHop, where: ex.Expression) -> None:
        """Assign the pattern's own condition on each relationship of a trail: tested early as far as possible."""
        trail, settled = hop.variable, True
        for part in conjuncts(where):
            if free_variables(part) == {trail} and is_about_the_row_alone(part):
                self.each[trail].append((trail, part))
                settled = settled and never_fails(part, frozenset({trail}), self._parameters)
                continue
            settled = False
            found = self._common_value(trail, part)
            if found is not None:
                value, key = found
                self.same[trail].append((trail, ex.Property(ex.Variable(trail), key)))
                if hop.pattern.length is not None and hop.pattern.length[0] > 0:
                    first = ex.Subscript(ex.Variable(trail), ex.Constant(0))
                    self.alike.append((value, ex.Property(first, key)))
        if not settled:
            name = f" each {trail}"
            condition = everywhere(where, lambda item: ex.Variable(name) if item == ex.Variable(trail) else item)
            self.kept.append(ex.Quantifier("all", name, ex.Variable(trail), condition, span=where.span))

    def _common_value(self, trail: str, part: ex.Expression) -> tuple[ex.Expression, str] | None:
        """Return a value of another element that a property of each relationship of a trail must equal, and the
        property's key."""
        if isinstance(part, ex.Compare) and part.operator == "=":
            for one, other in ((part.left, part.right), (part.right, part.left)):
                match one, other:
                    case ex.Property(ex.Variable(name), key), ex.Property(ex.Variable(element)):
                        if name == trail and element in self.elements:
                            return other, key
        return None
