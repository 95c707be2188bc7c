"""Many RDF terms as adjacent texts; a term object is made only on request.

Terms that share a form (IRIs; literals of a datatype; strings of a language; blank nodes of a document) stand side by
side. To find equal terms it is enough to compare bytes; no term is made.

Law: as a sequence it is the list of the terms from which it was made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import pairwise, repeat
from typing import Any, NamedTuple, cast, overload

import numpy as np
import numpy.typing as npt

from anabranch.model.terms import LANG_STRING, Blank, Iri, Literal, Term

TextEnds = npt.NDArray[np.int64]

PADDING = 8
"""The number of bytes behind the texts, so that a reader of eight bytes at a time stays inside the array."""


class TermKind(IntEnum):
    IRI = 0
    LITERAL = 1
    TAGGED = 2
    BLANK = 3


class TermForm(NamedTuple):
    """The common part of terms: their kind, and their datatype, language or document."""

    kind: TermKind
    shared: str = ""


class TermTexts(Sequence[Term]):
    """Terms as texts. `data` are the texts in UTF-8 and PADDING bytes; `ends` has one number more than there are terms;
    `forms` gives the number of terms of each form."""

    __slots__ = ("_made", "data", "ends", "forms")

    def __init__(self, forms: tuple[tuple[TermForm, int], ...], data: npt.NDArray[np.uint8], ends: TextEnds) -> None:
        if sum(count for _, count in forms) != len(ends) - 1 or ends[-1] + PADDING > len(data):
            raise ValueError("terms are missing")
        self.forms = forms
        self.data = data
        self.ends = ends
        self._made: list[Term] | None = None

    def __len__(self) -> int:
        return len(self.ends) - 1

    @overload
    def __getitem__(self, index: int) -> Term: ...

    @overload
    def __getitem__(self, index: slice) -> list[Term]: ...

    def __getitem__(self, index: int | slice) -> Term | list[Term]:
        return self.terms()[index]

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms())

    def terms(self) -> list[Term]:
        """Return all terms, made once."""
        if self._made is None:
            with undisturbed():
                found: list[Term] = []
                start = 0
                for form, count in self.forms:
                    found += terms_of(form, self._texts(start, start + count))
                    start += count
                self._made = found
        return self._made

    def _texts(self, start: int, stop: int) -> list[str]:
        ends = self.ends[start : stop + 1].tolist()
        data = self.data[ends[0] : ends[-1]].tobytes()
        begin = ends[0]
        if data.isascii():
            text = data.decode("ascii")
            return [text[first - begin : last - begin] for first, last in pairwise(ends)]
        return [data[first - begin : last - begin].decode("utf-8", "surrogatepass") for first, last in pairwise(ends)]


def form_of(term: Term) -> TermForm:
    match term:
        case Iri():
            return IRI_FORM
        case Literal(_, _, language) if language:
            return TermForm(TermKind.TAGGED, language)
        case Literal(_, datatype, _):
            return TermForm(TermKind.LITERAL, datatype)
        case Blank(_, document):
            return TermForm(TermKind.BLANK, document)


IRI_FORM = TermForm(TermKind.IRI)


def terms_of(form: TermForm, texts: list[str]) -> Iterator[Term]:
    """Return the terms of one form with these texts."""
    made: type[Term]
    fields: Any
    match form.kind:
        case TermKind.IRI:
            made, fields = Iri, zip(texts)
        case TermKind.LITERAL:
            made, fields = Literal, zip(texts, repeat(form.shared), repeat(""))
        case TermKind.TAGGED:
            made, fields = Literal, zip(texts, repeat(LANG_STRING), repeat(form.shared))
        case TermKind.BLANK:
            made, fields = Blank, zip(texts, repeat(form.shared))
    # Half the time of calling the class, which would only do the same in Python.
    return cast(Iterator[Term], map(tuple.__new__, repeat(made), fields))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Pause the garbage collector while very many small objects without cycles are made: it would take most of the
    time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
