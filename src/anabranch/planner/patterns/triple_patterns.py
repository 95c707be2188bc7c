"""A basic graph pattern as conjunctions over triples of ids.

Invariant: components share no variable; the matches of the pattern are the combinations of the components' matches. The
columns of a component's matches are its variables, in the order of their first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.algebra.triples import TriplePattern, Var
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Place, Range

NumberBounds = tuple[float, float]
"""The range of a variable's number, both ends included."""


@dataclass(frozen=True, slots=True)
class TripleComponent:
    patterns: tuple[TriplePattern, ...]
    columns: tuple[str, ...]

    def conjunction(self, dictionary: Dictionary, bounds: Mapping[str, NumberBounds]) -> Conjunction:
        """Return the component over ids. Terms not met before get their ids now, before any triple can bring them."""
        number = {name: at for at, name in enumerate(self.columns)}
        bounded: set[str] = set()

        def fact_pattern(pattern: TriplePattern) -> FactPattern:
            places: list[Place] = []
            ranges = []
            for at, place in enumerate(pattern.places):
                if isinstance(place, Var):
                    places.append(Free(number[place.name]))
                    if place.name in bounds and place.name not in bounded:
                        bounded.add(place.name)
                        ranges.append(Range(at, *bounds[place.name]))
                else:
                    places.append(Fixed(dictionary.encode(place)))
            return FactPattern(tuple(places), tuple(ranges))

        patterns = tuple(map(fact_pattern, self.patterns))
        return Conjunction(3, patterns, len(self.columns))


def components(patterns: Sequence[TriplePattern]) -> Iterator[TripleComponent]:
    """Yield the connected parts of a pattern, which share no variable with each other; equal patterns count once."""
    left = list(dict.fromkeys(patterns))
    while left:
        found, names = [left.pop(0)], set[str]()
        names.update(found[0].variables)
        grown = True
        while grown:
            grown = False
            for pattern in list(left):
                if names.intersection(pattern.variables):
                    left.remove(pattern)
                    found.append(pattern)
                    names.update(pattern.variables)
                    grown = True
        ordered = [pattern for pattern in patterns if pattern in found]
        ordered = list(dict.fromkeys(ordered))
        columns = tuple(dict.fromkeys(name for pattern in ordered for name in pattern.variables))
        yield TripleComponent(tuple(ordered), columns)
