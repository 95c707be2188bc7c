"""Disagreements between the events of a window about an element, under the policy `strict`, on arrays.

Law: there is a disagreement exactly when, of two events inside that carry an element with none between them, the newer
says something else than the older about its labels, type, ends or properties (`model.union`).

State: per element that came, its newest event and what that says; per disagreement the positions of its two events.
Work per slide: O(elements of arriving events, and disagreements inside).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.dictionary import Dictionary
from anabranch.engine.views import WindowEvents
from anabranch.errors import InternalError
from anabranch.model.compare import content_key
from anabranch.model.graph_block import PROPERTIES
from anabranch.model.mapping import Mapping
from anabranch.model.union import Conflict, difference
from anabranch.model.values import Node, Relationship
from anabranch.planner.flow.feeds import GraphSlide

_SAID = 4  # numbers that say all about an element: of a node two, of a relationship four
_OLDER, _NEWER, _KEY, _IS_LINK = range(4)


class _NewestCarriers:
    """By the key of an element: what its newest event says, the event's position, and how many rows came before."""

    def __init__(self) -> None:
        self._said: Ids = np.zeros((1024, _SAID), np.int64)
        self._positions: Ids = np.full(1024, -1, np.int64)
        self.order: Ids = np.zeros(1024, np.int64)
        self._rows = 0

    def disagreements(self, positions: Ids, keys: Ids, said: Ids) -> Ids:
        """Take in arrivals; return the positions of the two events of each disagreement, and the element's key."""
        self._reach(int(keys.max(initial=-1)) + 1)
        order = np.argsort(keys, kind="stable")
        keys, said, positions = keys[order], said[order], positions[order]
        goes_on = np.zeros(len(keys), np.bool_)  # the row before is of the same element
        goes_on[1:] = keys[1:] == keys[:-1]
        later = np.flatnonzero(goes_on)
        older, before = self._positions[keys], self._said[keys]
        older[later], before[later] = positions[later - 1], said[later - 1]
        is_last = np.ones(len(keys), np.bool_)
        is_last[later - 1] = False
        last = keys[is_last]
        self._said[last], self._positions[last] = said[is_last], positions[is_last]
        self.order[last] = self._rows + order[is_last]
        self._rows += len(keys)
        differ = (older >= 0) & (said != before).any(axis=1)
        return np.column_stack((older[differ], positions[differ], keys[differ]))

    def _reach(self, size: int) -> None:
        known = len(self._positions)
        if size > known:
            more = max(size, 2 * known) - known
            self._said = np.concatenate((self._said, np.zeros((more, _SAID), np.int64)))
            self._positions = np.concatenate((self._positions, np.full(more, -1, np.int64)))
            self.order = np.concatenate((self.order, np.zeros(more, np.int64)))


class Disagreements:
    """The disagreements inside of one window."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._carriers = _NewestCarriers(), _NewestCarriers()
        self._inside: Ids = np.empty((0, 4), np.int64)
        self._label_numbers: dict[frozenset[str], int] = {}
        self._map_numbers: dict[frozenset[object], int] = {}
        self._number_of_map: dict[int, int] = {}

    def slide(self, slide: GraphSlide) -> bool:
        """Take in arrivals, and let events leave; return whether there is a disagreement."""
        at = slide.keys.index(PROPERTIES)
        nodes, links = slide.nodes, slide.links
        sets = np.array([self._label_number(names) for names in slide.label_sets], np.int64)
        nothing = np.zeros(len(nodes.keys), np.int64)
        said = np.column_stack((sets[nodes.label_sets], self._maps(nodes.values[:, at]), nothing, nothing))
        found = [self._inside]
        of_links = np.column_stack((links.types, links.sources, links.targets, self._maps(links.values[:, at])))
        for is_link, rows, their in ((0, nodes, said), (1, links, of_links)):
            came = self._carriers[is_link].disagreements(rows.positions, rows.keys, their)
            found.append(np.column_stack((came, np.full(len(came), is_link))))
        self._inside = np.concatenate(found)
        self._inside = self._inside[self._inside[:, _OLDER] >= slide.first]
        return bool(len(self._inside))

    def conflict(self, view: WindowEvents, mapping: Mapping) -> Conflict:
        """Return the first disagreement: that of nodes before that of relationships, in the order of the union."""
        is_link = int(self._inside[:, _IS_LINK].min())
        kind = self._inside[self._inside[:, _IS_LINK] == is_link]
        first = kind[np.argmin(self._carriers[is_link].order[kind[:, _KEY]])][_KEY]
        own = kind[kind[:, _KEY] == first]
        pair = own[np.argmin(own[:, _OLDER])]
        carriers: list[Node | Relationship] = []
        for position in dict.fromkeys((int(pair[_OLDER]), int(pair[_NEWER]))):
            (event,) = view.stream.between(position, position + 1)
            nodes, links = mapping.elements_of(event) if event.triples else (event.nodes, event.relationships)
            element_id = self._dictionary.decode(int(first))
            carriers += [one for one in (links if is_link else nodes) if one.id == element_id]
        # An event may carry an element twice, and disagree with itself.
        for older, newer in pairwise(carriers):
            found = difference(older, newer)
            if found is not None:
                return found
        raise InternalError("two events that disagree say the same")

    def _label_number(self, names: tuple[str, ...]) -> int:
        return self._label_numbers.setdefault(frozenset(names), len(self._label_numbers))

    def _maps(self, ids: Ids) -> Ids:
        """Return numbers of maps: the same where no property differs. A property that is null is absent."""
        distinct, places = np.unique(ids, return_inverse=True)
        known, numbers = self._number_of_map, self._map_numbers
        new = [one for one in distinct.tolist() if one not in known]
        for one, properties in zip(new, self._dictionary.decode_all(new), strict=True):
            assert isinstance(properties, dict)
            said = frozenset((name, content_key(value)) for name, value in properties.items() if value is not None)
            known[one] = numbers.setdefault(said, len(numbers))
        return np.array([known[one] for one in distinct.tolist()], np.int64)[places]
