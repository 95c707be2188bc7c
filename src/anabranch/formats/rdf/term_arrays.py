"""Terms of a whole column of texts at once: plain texts are parsed by Arrow, the rest text by text.

Plain are IRIs of ASCII with an authority, in brackets or bare, and literals without escapes: literals of one ending (a
datatype, a language, or nothing) are recognised from the first of them. A text costs about a tenth of Python's time.

Law: `terms_of_cells(texts)` are the terms that `parse_cell` reads in the object's column, one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.formats.arrow_arrays import truths
from anabranch.formats.rdf.terms import parse_cell, parse_term
from anabranch.formats.term_columns import TermColumns, TermForm, TermKind, Texts, form_of
from anabranch.model.block import Codes

# A part of what `terms` takes for an IRI without asking pyoxigraph: no user and no port.
_CHARACTERS = r"[!$&'()*+,\-./0-9:;=?@A-Z_a-z~]*"
_PLAIN_IRI = rf"[A-Za-z][A-Za-z0-9+.\-]*://[!$&'()*+,\-.0-9;=A-Z_a-z~]*(?:[/?]{_CHARACTERS})?(?:#{_CHARACTERS})?"
_IN_BRACKETS = rf"^<{_PLAIN_IRI}>$"
_BARE = rf"^{_PLAIN_IRI}$"
_NOT_PLAIN = r'["\\\n\r]'
_FEW = 64  # texts that are sooner parsed one by one
_MOST_ENDINGS = 8
_FAR = 1 << 40  # bytes: no text is that long

RowPlaces = npt.NDArray[np.intp]
TermRun = tuple[TermForm, Texts, RowPlaces]


def terms_of_cells(cells: Any, document: str) -> tuple[TermColumns, Codes]:
    """The terms of an array of distinct texts, and where each stands; raises MalformedEventError."""
    parts: list[TermRun] = []
    left = _Left(cells.cast(pa.large_binary()), np.arange(len(cells), dtype=np.intp))
    if len(cells) > _FEW:
        texts, places = left.take(pc.match_substring_regex(left.texts, _IN_BRACKETS))
        parts.append((TermForm(TermKind.IRI), Texts.of_arrow(_cut(texts, 1)), places))
        texts, places = left.take(pc.match_substring_regex(left.texts, _BARE))
        parts.append((TermForm(TermKind.IRI), Texts.of_arrow(texts), places))
        parts += _literals(left, document)
    return _joined(parts, left, document)


class _Left:
    """The texts that are still to be parsed, and their places among all."""

    def __init__(self, texts: Any, places: RowPlaces) -> None:
        self.texts = texts
        self.places = places

    def take(self, mask: Any) -> tuple[Any, RowPlaces]:
        """Return the texts where the mask is true; the others are left."""
        taken = truths(mask)
        found = self.texts.filter(mask), self.places[taken]
        self.texts, self.places = self.texts.filter(pc.invert(mask)), self.places[~taken]
        return found

    def put(self, texts: Any, places: RowPlaces) -> None:
        self.texts = pa.concat_arrays([self.texts, texts])
        self.places = np.concatenate((self.places, places))


def _literals(left: _Left, document: str) -> list[TermRun]:
    """Literals without escapes; those that share an ending are made together."""
    parts: list[TermRun] = []
    quoted = _Left(*left.take(pc.starts_with(left.texts, b'"')))
    for _ in range(_MOST_ENDINGS):
        if len(quoted.places) <= _FEW:
            break
        first = quoted.texts[0].as_py()
        form = form_of(parse_term(first.decode(), document))
        ending = first[first.rindex(b'"') :]
        behind = pc.binary_slice(quoted.texts, 1, _FAR)  # the ending must not begin with the first quote
        alike = _Left(*quoted.take(pc.ends_with(behind, ending)))
        bodies = _cut(alike.texts, len(ending))
        odd = pc.match_substring_regex(bodies, _NOT_PLAIN)  # it has escapes
        left.put(*alike.take(odd))
        parts.append((form, Texts.of_arrow(bodies.filter(pc.invert(odd))), alike.places))
    left.put(quoted.texts, quoted.places)
    return parts


def _cut(texts: Any, ending: int) -> Any:
    """The texts without their first byte, and without so many at their end."""
    return pc.binary_slice(texts, 1, -ending) if len(texts) else texts


def _joined(parts: list[TermRun], left: _Left, document: str) -> tuple[TermColumns, Codes]:
    columns = [TermColumns(((form, len(texts)),), texts) for form, texts, _ in parts]
    texts = left.texts.cast(pa.large_string(), safe=False).to_pylist()
    rest, order = TermColumns.of([parse_cell(text, document, is_object=True) for text in texts])
    codes = np.empty(sum(len(places) for *_, places in parts) + len(rest), np.int32)
    start = 0
    for *_, places in parts:
        codes[places] = np.arange(start, start + len(places), dtype=np.int32)
        start += len(places)
    codes[left.places] = order + np.int32(start)
    return TermColumns.joined([*columns, rest]), codes
