"""A scene as vertices and links. Values that triples give to a subject become words of its vertex.

Invariant: a vertex or link is matched, entered or left if an element that it stands for is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.insight.shapes import Element
from anabranch.ui.values import plain, short_iri

_COLOURS = ("#5b8db8", "#5aa392", "#a583c4", "#c79a54", "#7fa35c", "#c27d8c", "#6d84c9", "#8a9199")
_TITLES = ("name", "title", "label", "id")
_MOST_LINES, _LONGEST, _MOST_KINDS = 6, 26, 64


@dataclass(slots=True)
class _Vertex:
    id: str
    label: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    states: set[str] = field(default_factory=set)
    links: int = 0
    matched: bool = False


def vertices_and_links(
    elements: Iterable[Element],
    entered: Collection[str],
    left: Sequence[Element],
    matched: Collection[str],
    prefixes: Mapping[str, str],
    kinds: list[str],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the vertices and links for the browser. `kinds` are the kinds seen before, which keep their colours; new
    ones are added."""
    entered, matched = frozenset(entered), frozenset(matched)
    vertices: dict[str, _Vertex] = {}
    links: dict[str, dict[str, Any]] = {}
    for one, is_gone in (*((one, False) for one in elements), *((one, True) for one in left)):
        state = "left" if is_gone else "entered" if one.id in entered else "there"
        lit = one.id in matched and not is_gone
        if one.kind == "node":
            vertex = _vertex(vertices, one.id)
            vertex.label = one.label
            vertex.properties |= one.properties
        elif one.target is None:
            vertex = _vertex(vertices, one.source or one.id)
            vertex.properties[_predicate(one.label)] = one.properties.get("value")
        else:
            ends = [_vertex(vertices, one.source or ""), _vertex(vertices, one.target)]
            for end in ends:
                end.links += 1
                end.matched |= lit
                end.states.add(state)
            links[one.id] = {
                "id": one.id,
                "source": one.source,
                "target": one.target,
                "label": _predicate(one.label),
                "state": state,
                "matched": lit,
            }
            continue
        vertex.states.add(state)
        vertex.matched |= lit
    return [_drawn(one, prefixes, kinds) for one in vertices.values()], list(links.values())


def _vertex(vertices: dict[str, _Vertex], key: str) -> _Vertex:
    return vertices.setdefault(key, _Vertex(key))


def _predicate(label: str) -> str:
    """Return the last part of a predicate's name, which distinguishes it from others."""
    return re.split(r"[/#:.]", label.rstrip(">"))[-1] or label


def _drawn(one: _Vertex, prefixes: Mapping[str, str], kinds: list[str]) -> dict[str, Any]:
    name = next((one.properties[key] for key in _TITLES if one.properties.get(key) is not None), None)
    iri = one.id.strip("<>")
    title = (
        plain(name, prefixes) if name is not None else short_iri(iri, prefixes) if "://" in iri else one.label or iri
    )
    kind = one.label or re.sub(r"\d+$", "", iri)
    if kind not in kinds and len(kinds) < _MOST_KINDS:
        kinds.append(kind)
    colour = _COLOURS[kinds.index(kind) % len(_COLOURS)] if kind in kinds else _COLOURS[-1]
    lines = [f"{key}: {plain(value, prefixes)}" for key, value in one.properties.items() if value is not None]
    state = "there" if "there" in one.states else "entered" if "entered" in one.states else "left"
    return {
        "id": one.id,
        "title": title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…",
        "full": f"{one.label} {title}".strip() if one.label != title else title,
        "lines": lines[:_MOST_LINES],
        "colour": colour,
        "radius": min(14, 6 + one.links**0.5 * 1.6),
        "state": state,
        "matched": one.matched,
    }
