"""Values as texts with ids: RDF terms, strings, integers and floats, without an object for each.

A value is its form and a text: terms have the form that `model.term_texts` gives them; strings, integers and floats
have a form each. The text of a number is its eight bytes. A value is made only on request.

Law: two values have one id exactly when they are of one kind and have the same digits; all NaNs are one.

Invariant: the order of forms is that in which they were met, but for the three that are not of terms.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.texts import PADDING, TextTable
from anabranch.model.graph_block import Bytes
from anabranch.model.term_texts import TermForm, TermKind, TermTexts, form_of, terms_of
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Value

TERM_TYPES = frozenset((Iri, Literal, Blank))
TEXT_TYPES = TERM_TYPES | {str, int, float}

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_NAN = np.array([np.nan]).view(np.int64)[0]


class ValueForm(IntEnum):
    """The forms of values that are no terms."""

    STRING = 0
    INTEGER = 1
    FLOAT = 2


class ValueTexts:
    """A table of values as texts. `met` are the forms of which there are values."""

    __slots__ = ("_forms", "_numbers", "_table", "met")

    def __init__(self, room: int = 0) -> None:
        self._table = TextTable(room=room)
        self._forms: list[TermForm] = []
        self._numbers: dict[TermForm, int] = {}
        self.met: set[int] = set()

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self._table)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    @property
    def next_id(self) -> int:
        """The id of the next new value."""
        return self._table.next_id

    @next_id.setter
    def next_id(self, value: int) -> None:
        self._table.next_id = value

    # --- ids of values ---

    def add_terms(self, terms: TermTexts) -> Ids:
        """Return the ids of terms; new ones get the next ids. So do the methods below."""
        found = np.empty(len(terms), np.int64)
        start = 0
        for form, size in terms.forms:
            starts, stops = terms.ends[start : start + size], terms.ends[start + 1 : start + size + 1]
            found[start : start + size] = self._table.add(terms.data, starts, stops, self._form(form))
            start += size
        return found

    def add_strings(self, data: Bytes, starts: Ids, stops: Ids) -> Ids:
        self.met.add(ValueForm.STRING)
        return self._table.add(data, starts, stops, ValueForm.STRING)

    def add_integers(self, numbers: Ids) -> Ids:
        self.met.add(ValueForm.INTEGER)
        return self._table.add(*_words_laid_out(numbers), ValueForm.INTEGER)

    def add_floats(self, numbers: npt.NDArray[np.float64]) -> Ids:
        self.met.add(ValueForm.FLOAT)
        return self._table.add(*_words_laid_out(_bits(numbers)), ValueForm.FLOAT)

    def add_values(self, values: Sequence[Any], ids: Sequence[int] | None = None) -> list[int]:
        """Return the ids of values of TEXT_TYPES; new ones get the next ids, or the given ones."""
        found = np.array([0] * len(values) if ids is None else ids, np.int64)
        groups: dict[int, list[int]] = {}
        for place, value in enumerate(values):
            groups.setdefault(self._form_of(value), []).append(place)
        self.met.update(groups)
        for form, places in groups.items():
            data, ends = _laid_out([_text_of(values[place]) for place in places])
            found[places] = self._table.add(data, ends[:-1], ends[1:], form, None if ids is None else found[places])
        given: list[int] = found.tolist()
        return given

    def find(self, value: Value) -> int | None:
        """Return the id of a value, if it has one here."""
        if not can_be_text(value):
            return None
        found = self._table.find(_text_of(value), self._form_of(value))
        return None if found < 0 else found

    def find_integers(self, numbers: Ids) -> Ids:
        """Return the ids of integers, -1 for unknown ones."""
        return self._table.find_all(*_words_laid_out(numbers), ValueForm.INTEGER)

    def find_floats(self, numbers: npt.NDArray[np.float64]) -> Ids:
        """Return the ids of floats, -1 for unknown ones."""
        return self._table.find_all(*_words_laid_out(_bits(numbers)), ValueForm.FLOAT)

    def _form_of(self, value: Any) -> int:
        kind = value.__class__
        if kind is str:
            return ValueForm.STRING
        if kind is float:
            return ValueForm.FLOAT
        return ValueForm.INTEGER if kind is int else self._form(form_of(value))

    def _form(self, form: TermForm) -> int:
        found = self._numbers.get(form)
        if found is None:
            found = self._numbers[form] = len(ValueForm) + len(self._forms)
            self._forms.append(form)
        return found

    # --- values of ids ---

    def has(self, ids: Ids) -> Mask:
        """Return which ids belong to values of this table."""
        return self._table.has(ids)

    def size_of(self, ids: Ids) -> int:
        """Return the bytes of the texts of values."""
        return self._table.size_of(ids)

    def forms(self, ids: Ids) -> Ids:
        """Return the forms of values: those of ValueForm, larger numbers for terms, -1 for ids of other values."""
        return self._table.forms(ids)

    def are_resources(self, ids: Ids) -> Mask:
        """Return which values are IRIs or blank nodes."""
        kinds = np.zeros(len(ValueForm) + len(self._forms), np.bool_)
        kinds[len(ValueForm) :] = [form.kind in (TermKind.IRI, TermKind.BLANK) for form in self._forms]
        found: Mask = kinds[self.forms(ids)]
        return found

    def words(self, ids: Ids) -> Ids:
        """Return the eight bytes of numbers: an integer itself, the bits of a float."""
        return self._table.words(ids)

    def floats(self, ids: Ids) -> npt.NDArray[np.float64]:
        """Return the numbers of values that are floats."""
        return self._table.words(ids).view(np.float64)

    def made(self, ids: Ids) -> Iterable[tuple[int, Value]]:
        """Yield values with their ids, in any order."""
        forms = self.forms(ids)
        for form in np.unique(forms).tolist():
            of_form = ids[forms == form]
            values: Iterable[Value]
            if form == ValueForm.INTEGER:
                values = self.words(of_form).tolist()
            elif form == ValueForm.FLOAT:
                values = self.floats(of_form).tolist()
            else:
                texts = [str(text, "utf-8", "surrogatepass") for text in self._table.texts(of_form)]
                values = texts if form == ValueForm.STRING else terms_of(self._forms[form - len(ValueForm)], texts)
            yield from zip(of_form.tolist(), values, strict=True)


def can_be_text(value: Value) -> bool:
    """Return whether a value can be in a table of texts: very large integers cannot."""
    kind = value.__class__
    return kind in TEXT_TYPES and (kind is not int or _SMALLEST <= value <= _LARGEST)  # type: ignore[operator]


def _text_of(value: Any) -> bytes:
    """Return the text of a value, the part beside its form: the first field of a term, the bytes of a number."""
    kind = value.__class__
    if kind is int:
        return struct.pack("=q", value)
    if kind is float:
        return struct.pack("=d", value if value == value else np.nan)
    text: str = value if kind is str else value[0]
    return text.encode("utf-8", "surrogatepass")


def _bits(numbers: npt.NDArray[np.float64]) -> Ids:
    bits: Ids = np.ascontiguousarray(numbers).view(np.int64)
    odd = numbers != numbers
    return np.where(odd, _NAN, bits) if odd.any() else bits


def _words_laid_out(words: Ids) -> tuple[Bytes, Ids, Ids]:
    """Return the bytes of numbers with PADDING behind them, and where each begins and ends."""
    padded = np.zeros(len(words) + PADDING // 8, np.int64)
    padded[: len(words)] = words
    ends = np.arange(0, 8 * len(words) + 8, 8)
    return padded.view(np.uint8), ends[:-1], ends[1:]


def _laid_out(texts: Sequence[bytes]) -> tuple[Bytes, Ids]:
    """Return adjacent texts with PADDING behind them, and their ends with the first start."""
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8).copy(), ends
