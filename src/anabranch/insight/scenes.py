"""Scenes: a query's windows as a graph, instant by instant, with the elements that entered, left or take part in a
match.

A property graph is drawn with its nodes and relationships. For triples, resources are nodes and triples between them
are links; literals are properties of their subject, and its types are its label.

Invariant: both ends of every shown link are shown. A scene depends on the recording and the instant only.

Work: a scene takes O(window), and one evaluation of the query's patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anabranch.errors import QueryError
from anabranch.formats.values import to_json
from anabranch.insight.anatomy import RowFinder
from anabranch.insight.elements import ElementUnit, term_name, unit_name
from anabranch.insight.held import Holding
from anabranch.insight.minimal import Budget
from anabranch.insight.recording import Recording
from anabranch.insight.replay import Replay, ReplayInstant
from anabranch.insight.shapes import Element, Json, Scene
from anabranch.model.terms import RDF_TYPE, Literal, Term, Triple

MOST_ELEMENTS = 400
_MOST_MATCHES = 5_000


@dataclass(slots=True)
class _Resource:
    """A node under construction."""

    term: Term
    stream: str
    at: int
    types: list[str] = field(default_factory=list)
    properties: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The elements of an instant by id, and the drawn element for each element of the stream."""

    elements: dict[str, Element]
    shown_as: dict[ElementUnit, tuple[str, ...]]


class Scenes:
    """The scenes of a recording. `note` describes what could not be determined."""

    def __init__(self, recording: Recording) -> None:
        self._replay = Replay(recording)
        self.instants: list[int] = [moment.at for moment in self._replay.moments]
        self.note = ""

    def scene(self, at: int | None = None) -> Scene:
        """Return the scene of the last instant at or before a time; without a time, of the last instant."""
        moment = self._replay.moment(at)
        place = self._replay.position(moment)
        holding = Holding(self._replay, moment)
        now = self._drawn(holding)
        before = _Drawn({}, {})
        if place:
            before = self._drawn(Holding(self._replay, self._replay.moments[place - 1]))
        fresh = (shown for unit, shown in now.shown_as.items() if unit not in before.shown_as)
        entered = dict.fromkeys(one for shown in fresh for one in shown[:1])
        matched = self._matched(moment, holding, now)
        chosen = _chosen(now.elements, matched)
        return Scene(
            moment.at,
            tuple(chosen.values()),
            tuple(one for one in entered if one in chosen),
            tuple(element for name, element in before.elements.items() if name not in now.elements)[:MOST_ELEMENTS],
            tuple(one for one in chosen if one in matched),
            len(now.elements),
            len(chosen) < len(now.elements),
        )

    def _matched(self, moment: ReplayInstant, holding: Holding, drawn: _Drawn) -> frozenset[str]:
        finding = RowFinder(self._replay, self._replay.context(moment), holding.windows, Budget(0))
        try:
            units = finding.matched(self._replay.registration.plan, _MOST_MATCHES)
        except QueryError as error:
            self.note = f"what matches is not shown: {error}"
            return frozenset()
        return frozenset(name for unit in units for name in drawn.shown_as.get(unit, ()))

    # --- drawing ---

    def _drawn(self, holding: Holding) -> _Drawn:
        return self._of_triples(holding) if self._replay.of_triples else self._of_elements(holding)

    def _of_elements(self, holding: Holding) -> _Drawn:
        elements: dict[str, Element] = {}
        shown: dict[ElementUnit, tuple[str, ...]] = {}
        for unit in holding.units:
            element = holding.element(unit)
            elements[element.id] = element
            shown[unit] = (unit_name(unit),)
        for link in list(elements.values()):
            for end in (link.source, link.target):
                if end is not None and end not in elements:  # an end that no event describes
                    elements[end] = Element(end, link.stream, link.at, "node", f"({end[1:]})")
        return _Drawn(elements, shown)

    def _of_triples(self, holding: Holding) -> _Drawn:
        things = self._replay.things
        resources: dict[str, _Resource] = {}
        links: dict[str, Element] = {}
        shown: dict[ElementUnit, tuple[str, ...]] = {}

        def resource(term: Term, element: Element) -> str:
            name = term_name(term)
            known = resources.setdefault(name, _Resource(term, element.stream, element.at))
            known.at = max(known.at, element.at)
            return name

        for unit in holding.units:
            assert isinstance(unit.key, Triple)
            subject, predicate, object_ = unit.key
            element = holding.element(unit)
            name = resource(subject, element)
            if isinstance(object_, Literal):
                _note_value(resources[name].properties, element.label, to_json(object_))
                shown[unit] = (name,)
            elif predicate == RDF_TYPE:
                resources[name].types.append(things.term_text(object_))
                shown[unit] = (name,)
            else:
                other = resource(object_, element)
                links[element.id] = element
                shown[unit] = (element.id, name, other)
        nodes = {name: self._node(name, one) for name, one in resources.items()}
        return _Drawn({**nodes, **links}, shown)

    def _node(self, name: str, one: _Resource) -> Element:
        text = self._replay.things.term_text(one.term)
        if one.properties:
            said = ", ".join(f"{key}: {value}" for key, value in one.properties.items())
            text = f"{text} {{{said}}}"
        return Element(
            name, one.stream, one.at, "node", text, label=", ".join(sorted(one.types)), properties=one.properties
        )


def _note_value(properties: dict[str, Json], key: str, value: Json) -> None:
    """Add a value to those that a property has already."""
    known = properties.get(key)
    if key not in properties:
        properties[key] = value
    elif isinstance(known, list):
        known.append(value)
    else:
        properties[key] = [known, value]


def _chosen(elements: dict[str, Element], matched: Iterable[str]) -> dict[str, Element]:
    """Return as many elements as a scene may hold, matched and recent ones first; nodes before links."""
    matched = frozenset(matched)
    order = sorted(elements.values(), key=lambda one: (one.id not in matched, -one.at, one.id))
    chosen: dict[str, Element] = {}
    for one in order:
        ends = [elements[end] for end in (one.source, one.target) if end is not None]
        needed = {part.id: part for part in (*ends, one) if part.id not in chosen}
        if len(chosen) + len(needed) <= MOST_ELEMENTS:
            chosen |= needed
    return dict(sorted(chosen.items(), key=lambda item: item[1].kind != "node"))
