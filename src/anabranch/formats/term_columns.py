"""RDF terms as columns: texts in a row, those of one form (IRI, datatype, language, document) side by side.

    forms     [kind, what all its terms share, how many there are], ... (JSON)
    lengths   of each text, in bytes (uint32)
    texts     all texts, one behind the other, in UTF-8

The terms of a form share the datatype of literals, the language of tagged strings, the document of blank nodes. So
terms are written and read by whole runs, and a reader of a column of texts can make them without one term in between.

Law: `TermColumns.of(terms)[0].terms()` are the same terms in another order; the second result gives the place of each.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.model.block import Codes
from anabranch.model.term_texts import IRI_FORM, PADDING, TermForm, TermKind, TermTexts, form_of
from anabranch.model.terms import Iri, Term

__all__ = ["TermColumns", "TermForm", "TermKind", "Texts", "form_of"]

_SIZES = struct.Struct("<III")
_LENGTH = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in a row: all of them in UTF-8, and how many bytes each has."""

    data: bytes
    lengths: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        whole = "".join(texts)
        if whole.isascii():
            return cls(whole.encode(), np.fromiter(map(len, texts), _LENGTH, len(texts)))
        data = whole.encode("utf-8", "surrogatepass")
        # Every byte that continues no character begins one: the place where the n-th begins.
        begins = np.flatnonzero(np.frombuffer(data + b"\0", np.int8) >= -64)
        ends = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=ends[1:])
        return cls(data, np.diff(begins[ends]).astype(_LENGTH))

    @classmethod
    def of_arrow(cls, array: pa.Array) -> Texts:
        """An array of large binaries without nulls, in UTF-8."""
        _, offsets, data = array.buffers()
        if not len(array) or data is None:
            return cls(b"", np.zeros(len(array), np.uint32))
        ends = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
        return cls(data[ends[0] : ends[-1]].to_pybytes(), np.diff(ends).astype(np.uint32))

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([np.empty(0, _LENGTH), *(part.lengths for part in parts)])
        return cls(b"".join(part.data for part in parts), lengths)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class TermColumns:
    """Terms in the order of their forms, and how many each form has."""

    forms: tuple[tuple[TermForm, int], ...]
    texts: Texts

    @classmethod
    def of(cls, terms: Sequence[Term]) -> tuple[TermColumns, Codes]:
        """Return the terms as columns, and the place of each term there."""
        iris: list[int] = []
        groups = {IRI_FORM: iris}
        for index, term in enumerate(terms):
            if term.__class__ is Iri:  # most are
                iris.append(index)
            else:
                groups.setdefault(form_of(term), []).append(index)
        order = [index for group in groups.values() for index in group]
        places = np.empty(len(terms), np.int32)
        places[order] = np.arange(len(terms), dtype=np.int32)
        texts = Texts.of([terms[index][0] for index in order])
        return cls(tuple((form, len(group)) for form, group in groups.items()), texts), places

    @classmethod
    def joined(cls, parts: Sequence[TermColumns]) -> TermColumns:
        """Join columns one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(tuple(form for part in parts for form in part.forms), Texts.joined([part.texts for part in parts]))

    def __len__(self) -> int:
        return len(self.texts)

    def picked(self, places: npt.NDArray[np.intp]) -> TermColumns:
        """Return the terms at these places, which are ascending."""
        lazy = self.lazy()
        array = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(lazy.ends), pa.py_buffer(self.texts.data)]
        ).take(pa.array(places))
        counts = np.searchsorted(places, np.cumsum([0, *(count for _, count in self.forms)]))
        forms = tuple((form, int(count)) for (form, _), count in zip(self.forms, np.diff(counts), strict=True))
        return TermColumns(forms, Texts.of_arrow(array))

    def kinds(self) -> npt.NDArray[np.int8]:
        """The kind of each term."""
        kinds = np.array([form.kind for form, _ in self.forms], np.int8)
        return np.repeat(kinds, [count for _, count in self.forms])

    def lazy(self) -> TermTexts:
        """Return the terms, made on first use. Raises ValueError when there are fewer texts than terms."""
        ends = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.texts.lengths, out=ends[1:])
        data = np.empty(len(self.texts.data) + PADDING, np.uint8)
        data[: len(self.texts.data)] = np.frombuffer(self.texts.data, np.uint8)
        data[len(self.texts.data) :] = 0
        return TermTexts(self.forms, data, ends)

    def terms(self) -> list[Term]:
        return self.lazy().terms()

    def to_bytes(self) -> bytes:
        said = [[*form, count] for form, count in self.forms]
        forms = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        sizes = _SIZES.pack(len(forms), len(self.texts), len(self.texts.data))
        return b"".join((sizes, forms, self.texts.lengths.astype(_LENGTH, copy=False).tobytes(), self.texts.data))

    @classmethod
    def from_bytes(cls, data: bytes, place: int = 0) -> TermColumns:
        """The columns that stand at a place. Raises ValueError, or what numpy and struct raise, when they do not."""
        forms_size, count, size = _SIZES.unpack_from(data, place)
        place += _SIZES.size
        said = json.loads(data[place : place + forms_size].decode("utf-8", "surrogatepass"))
        place += forms_size
        lengths = np.frombuffer(data, _LENGTH, count, place)
        place += lengths.nbytes
        forms = tuple((TermForm(TermKind(kind), shared), number) for kind, shared, number in said)
        if sum(number for _, number in forms) != count or place + size > len(data):
            raise ValueError("terms are missing")
        return cls(forms, Texts(data[place : place + size], lengths))
