"""What a workload is: a stream of triples as ids, the spelling of each id, and queries in two forms.

A query is described once, in the words of SPARQL, and becomes both a `Conjunction` over ids and a C-SPARQL text.

Invariant: ids are dense from 1 on, and two ids never have the same spelling, so that a run over strings and a run over
ids see the same graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.patterns import Conjunction, FactPattern, Fixed, Free, Place, Range

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
Described = tuple[str, str, str]
"""A triple pattern as SPARQL writes it: variables with `?`, prefixed names, IRIs in angle brackets."""
Bound = tuple[str, str, float]
"""A filter: variable, `<` or `>`, number."""


class Terms:
    """The spelling of each id in N-Triples, made when somebody asks: a template by kind, and up to three numbers."""

    def __init__(self) -> None:
        self._templates: list[str] = []
        self._kinds: list[npt.NDArray[np.int16]] = [np.zeros(1, np.int16)]
        self._keys: list[npt.NDArray[np.int32]] = [np.zeros((1, 3), np.int32)]
        self._size = 1

    def __len__(self) -> int:
        return self._size

    def kind(self, template: str) -> int:
        """A new kind of terms; the numbers stand in the template as {0}, {1}, {2}."""
        self._templates.append(template)
        return len(self._templates) - 1

    def one(self, spelling: str) -> int:
        """The id of a term of its own."""
        return int(self.many(self.kind(spelling.replace("{", "{{").replace("}", "}}")), 1)[0])

    def many(self, kind: int, count: int, *keys: int | npt.NDArray[np.int64] | None) -> Ids:
        """So many new ids of a kind. A key that is None counts from 0."""
        numbers = np.zeros((count, 3), np.int32)
        for place, key in enumerate(keys):
            numbers[:, place] = np.arange(count) if key is None else key
        self._kinds.append(np.full(count, kind, np.int16))
        self._keys.append(numbers)
        self._size += count
        return np.arange(self._size - count, self._size, dtype=np.int64)

    def spell(self, ids: Ids) -> list[str]:
        self._kinds = [np.concatenate(self._kinds)]
        self._keys = [np.concatenate(self._keys)]
        kinds, keys = self._kinds[0][ids].tolist(), self._keys[0][ids].tolist()
        return [self._templates[kind].format(*key) for kind, key in zip(kinds, keys, strict=True)]


@dataclass(frozen=True, slots=True)
class Stream:
    """Triples in the order of their arrival. `numbers` has, by id, the number that a term is, else NaN."""

    name: str
    facts: Ids
    terms: Terms
    numbers: npt.NDArray[np.float64] | None = None

    def triples(self, first: int, last: int) -> list[tuple[str, str, str]]:
        """A part of the stream, spelled."""
        part = self.facts[first:last]
        ids, places = np.unique(part, return_inverse=True)
        spelled = self.terms.spell(ids)
        return [(spelled[s], spelled[p], spelled[o]) for s, p, o in places.reshape(part.shape).tolist()]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    variables: tuple[str, ...]
    conjunction: Conjunction
    prefixes: tuple[tuple[str, str], ...]
    body: str

    def sparql(self) -> str:
        return f"{self._prologue()}SELECT {' '.join(self.variables)}\nWHERE {{\n{self.body}\n}}"

    def csparql(self, stream: str, window: int, slide: int) -> str:
        """The same over the last `window` triples of a stream, asked after every `slide` of them."""
        return (
            f"REGISTER QUERY {self.name.replace('-', '_')} AS\n{self._prologue()}SELECT {' '.join(self.variables)}\n"
            f"FROM STREAM <{stream}> [RANGE TRIPLES {window} STEP {slide}]\nWHERE {{\n{self.body}\n}}"
        )

    def _prologue(self) -> str:
        return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in self.prefixes)


def described(
    name: str,
    patterns: Sequence[Described],
    id_of: Callable[[str], int],
    prefixes: Mapping[str, str],
    bounds: Sequence[Bound] = (),
) -> Query:
    """A query from its triple patterns. `id_of` knows the id of a spelled term."""
    numbers: dict[str, int] = {}
    facts: list[FactPattern] = []
    for pattern in patterns:
        places: list[Place] = []
        for text in pattern:
            if text.startswith("?"):
                places.append(Free(numbers.setdefault(text, len(numbers))))
            else:
                places.append(Fixed(id_of(expanded(text, prefixes))))
        ranges = tuple(_range(column, bounds, text) for column, text in enumerate(pattern) if _bounded(bounds, text))
        facts.append(FactPattern(tuple(places), ranges))
    lines = [f"  {' '.join(pattern)} ." for pattern in patterns]
    if bounds:
        lines.append(f"  FILTER ({' && '.join(f'{variable} {sign} {value:g}' for variable, sign, value in bounds)})")
    conjunction = Conjunction(3, tuple(facts), len(numbers))
    return Query(name, tuple(numbers), conjunction, tuple(prefixes.items()), "\n".join(lines))


def expanded(text: str, prefixes: Mapping[str, str]) -> str:
    """A prefixed name as an IRI in angle brackets; anything else as it is."""
    if text == "a":
        return RDF_TYPE
    named = re.fullmatch(r"(\w+):(\w+)", text)
    return f"<{prefixes[named[1]]}{named[2]}>" if named else text


def _bounded(bounds: Sequence[Bound], text: str) -> bool:
    return any(variable == text for variable, _, _ in bounds)


def _range(column: int, bounds: Sequence[Bound], text: str) -> Range:
    """Ranges include their bounds, so a strict one is moved by the smallest step."""
    low, high = -math.inf, math.inf
    for variable, sign, value in bounds:
        if variable == text and sign == ">":
            low = max(low, math.nextafter(value, math.inf))
        elif variable == text:
            high = min(high, math.nextafter(value, -math.inf))
    return Range(column, low, high)
