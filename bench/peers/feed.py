"""From a stream and a conjunction to what peers are given: pruned windows, and pruned changes per slide.

Law: the tables of a window hold exactly the bindings of each pattern alone, each once; their join is the conjunction.
Summing the changes up to slide i gives the tables of slide i's window.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Mask
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free
from peers.jobs import Ids, Plan, Slides, Window

Numbers = npt.NDArray[np.float64] | None


def plan_of(conjunction: Conjunction) -> Plan:
    if conjunction.width != 3 or conjunction.different:
        raise ValueError("peers are given triples, and no pairs that differ")
    ranged = [pattern for pattern in conjunction.patterns if pattern.ranges]
    for pattern in ranged:
        # A store has one set of triples for all patterns, so a range must not concern another pattern's triples.
        if sum(other.places[1] == pattern.places[1] for other in conjunction.patterns) > 1:
            raise ValueError("a predicate with a range must stand in one pattern only")
    places = tuple(_places(pattern) for pattern in conjunction.patterns)
    return Plan(conjunction.variables, places, tuple(pattern.variables for pattern in conjunction.patterns))


def _places(pattern: FactPattern) -> tuple[int, int, int]:
    found: list[int] = []
    for place in pattern.places:
        match place:
            case Fixed(id):
                found.append(id)
            case Free(variable):
                found.append(-1 - variable)
            case None:
                raise ValueError("peers need every place of a pattern")
    return found[0], found[1], found[2]


def fits(pattern: FactPattern, facts: Ids, numbers: Numbers) -> Mask:
    """Which facts fit a pattern."""
    kept = np.ones(len(facts), np.bool_)
    seen: dict[int, int] = {}
    for place, wanted in enumerate(pattern.places):
        match wanted:
            case Fixed(id):
                kept &= facts[:, place] == id
            case Free(variable) if variable in seen:
                kept &= facts[:, place] == facts[:, seen[variable]]
            case Free(variable):
                seen[variable] = place
    for bound in pattern.ranges:
        assert numbers is not None
        found = numbers[facts[:, bound.column]]
        kept &= (found >= bound.low) & (found <= bound.high)
    return kept


def _columns(pattern: FactPattern) -> list[int]:
    """The first column of each variable."""
    places = list(pattern.places)
    return [places.index(Free(variable)) for variable in pattern.variables]


def window_of(conjunction: Conjunction, facts: Ids, numbers: Numbers) -> Window:
    masks = [fits(pattern, facts, numbers) for pattern in conjunction.patterns]
    tables = tuple(
        np.unique(facts[mask][:, _columns(pattern)], axis=0)
        for pattern, mask in zip(conjunction.patterns, masks, strict=True)
    )
    return Window(tables, np.unique(facts[np.logical_or.reduce(masks)], axis=0))


def slides_of(conjunction: Conjunction, facts: Ids, numbers: Numbers, ends: Ids, tails: Ids) -> Slides:
    """What changes slide by slide, when slide i's window holds the arrivals `tails[i] <= number < ends[i]`."""
    facts = facts[: ends[-1]]
    positions = np.flatnonzero(np.logical_or.reduce([fits(one, facts, numbers) for one in conjunction.patterns]))
    triples = _lives(facts[positions], positions, ends, tails)
    rows = []
    for pattern in conjunction.patterns:
        mask = fits(pattern, triples[0], numbers)
        rows.append((np.ascontiguousarray(triples[0][mask][:, _columns(pattern)]), triples[1][mask], triples[2][mask]))
    return Slides(len(ends), tuple(rows), triples)


def _lives(facts: Ids, positions: Ids, ends: Ids, tails: Ids) -> tuple[Ids, Ids, Ids]:
    """When each distinct fact enters and leaves: the lives of its arrivals, joined where one begins by the slide at
    which the one before would end."""
    if not len(facts):
        nothing = np.empty(0, np.int64)
        return facts, nothing, nothing
    distinct, which = np.unique(facts, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.lexsort((positions, which))
    which, positions = which[order], positions[order]
    begins = np.searchsorted(ends, positions, side="right")
    leaves = np.searchsorted(tails, positions, side="right")
    living = leaves > begins
    which, begins, leaves = which[living], begins[living], leaves[living]
    first = np.ones(len(which), np.bool_)
    first[1:] = (which[1:] != which[:-1]) | (begins[1:] > leaves[:-1])
    last = np.ones(len(which), np.bool_)
    last[:-1] = first[1:]
    gone = leaves[last] < len(ends)
    numbers = np.concatenate((leaves[last][gone], begins[first]))
    weights = np.concatenate((np.full(int(gone.sum()), -1), np.ones(int(first.sum()), np.int64)))
    members = np.concatenate((which[last][gone], which[first]))
    order = np.argsort(numbers, kind="stable")  # what leaves stands before what enters
    return distinct[members[order]], weights[order].astype(np.int64), numbers[order].astype(np.int64)
