"""The text forms of answers: JSON lines, CSV, the result formats of SPARQL, the graph formats of RDF.

JSON and CSV are rendered in the worker that has the answer; the formats of RDF are made here, from the typed answer.

Invariant: a form names the rendering of an answer that it needs, and a file's name tells its form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from anabranch.formats.answers import TypedAnswers
from anabranch.sinks.base import AnswerForm, RenderedAnswer

if TYPE_CHECKING:
    from anabranch.formats.rdf.results import ResultTexts


@dataclass(frozen=True, slots=True)
class RdfForm:
    """One of `formats.rdf.results.FORMS`, with the prefixes that its texts may use."""

    name: str
    prefixes: Mapping[str, str] = field(default_factory=dict)


LineForm: TypeAlias = Literal["json", "csv"] | RdfForm

SUFFIXES: Mapping[str, str] = {
    ".srj": "sparql-json",
    ".srx": "sparql-xml",
    ".tsv": "tsv",
    ".nt": "ntriples",
    ".nq": "nquads",
    ".ttl": "turtle",
    ".rdf": "rdfxml",
    ".jsonld": "jsonld",
}
_SUFFIX_OF = {form: suffix for suffix, form in SUFFIXES.items()} | {"sparql-csv": ".csv"}


def needed(form: LineForm) -> AnswerForm:
    """Return the rendering of an answer that the form is made from."""
    return "typed" if isinstance(form, RdfForm) else form


def suffix_of(form: LineForm) -> str:
    if isinstance(form, RdfForm):
        return _SUFFIX_OF[form.name]
    return ".csv" if form == "csv" else ".ndjson"


class LineTexts:
    """The texts of answers in one form. A row that its query's answer before had is not rendered again."""

    def __init__(self, form: LineForm) -> None:
        self._form: LineForm = form
        self._rdf: dict[str, tuple[TypedAnswers, ResultTexts]] = {}  # by query

    def of(self, answers: Iterable[RenderedAnswer]) -> list[bytes]:
        """Return the texts of the answers that have any."""
        return [text for told in answers if (text := self._text(told))]

    def _text(self, told: RenderedAnswer) -> bytes:
        form = self._form
        if not isinstance(form, RdfForm):
            return told.csv if form == "csv" else told.json
        if told.query not in self._rdf:
            from anabranch.formats.rdf.results import ResultTexts

            self._rdf[told.query] = TypedAnswers(), ResultTexts(form.name, form.prefixes)
        answers, texts = self._rdf[told.query]
        return texts.render(answers.read(told.typed))


def check_form(form: LineForm, columns: Iterable[Sequence[str]]) -> None:
    """Refuse a form that some query's answers do not have: rows of bindings are no graph."""
    if isinstance(form, RdfForm):
        from anabranch.formats.rdf.results import check_form as check

        for names in columns:
            check(form.name, names)
