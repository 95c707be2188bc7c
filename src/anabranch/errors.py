"""Diagnostics as data, the error tree, and the text rendering of errors.

Invariant: every refusal of a query is a `Diagnostic`; the CLI draws it, REST sends it, tests compare it, and none of
them has to parse a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MAX_DIAGNOSTICS = 10


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a query text."""

    start: int
    end: int

    def join(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error in a query: a stable code, the message in the user's words, the place, and a hint on how to fix it."""

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    hint: str = ""


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the one-based line and column of an offset."""
    offset = min(offset, len(text))
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def render(diagnostic: Diagnostic, text: str = "", file_name: str = "<query>") -> str:
    """Draw a diagnostic: message, place, the offending line, carets and the hint."""
    parts = [f"error[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.span is not None and text:
        line_number, column = line_and_column(text, diagnostic.span.start)
        line = (text.split("\n") or [""])[line_number - 1].rstrip("\r")
        width = max(1, min(diagnostic.span.end, diagnostic.span.start + len(line) - column + 1) - diagnostic.span.start)
        gutter = str(line_number)
        lead = "".join("\t" if character == "\t" else " " for character in line[: column - 1])
        label = f" {diagnostic.label}" if diagnostic.label else ""
        parts.append(f"  {file_name}:{line_number}:{column}")
        parts.append(f"  {gutter} | {line}")
        parts.append(f"  {' ' * len(gutter)} | {lead}{'^' * width}{label}")
    if diagnostic.hint:
        parts.append(f"hint: {diagnostic.hint}")
    return "\n".join(parts)


class AnabranchError(Exception):
    """The base class of all errors that Anabranch raises on purpose."""


class QueryError(AnabranchError):
    """A refused query: one or more diagnostics, the text that they point into, and the file's name."""

    def __init__(self, diagnostics: Iterable[Diagnostic], text: str = "", file_name: str = "<query>") -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)[:MAX_DIAGNOSTICS]
        self.text = text
        self.file_name = file_name
        super().__init__("; ".join(diagnostic.message for diagnostic in self.diagnostics))

    def render(self) -> str:
        return "\n\n".join(render(diagnostic, self.text, self.file_name) for diagnostic in self.diagnostics)

    def __str__(self) -> str:
        return self.render()


class QuerySyntaxError(QueryError):
    """The text does not follow the grammar."""


class QueryNameError(QueryError):
    """A name that does not exist, or exists already."""


class QueryTypeError(QueryError):
    """A value of a type that is not allowed in this place."""


class UnsupportedQueryError(QueryError):
    """A legal query that this version does not run."""


class EvaluationError(QueryError):
    """A query that failed while it ran: an index out of range, an overflow, a wrong argument value."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        span: Span | None = None,
        text: str = "",
        file_name: str = "<query>",
    ) -> None:
        super().__init__([Diagnostic(code, message, span, "", hint)], text, file_name)

    @property
    def diagnostic(self) -> Diagnostic:
        return self.diagnostics[0]

    def located(self, span: Span | None) -> EvaluationError:
        """Return the same error with a span, unless it has one already."""
        if span is None or self.diagnostic.span is not None:
            return self
        return self.with_diagnostic(replace(self.diagnostic, span=span))

    def with_diagnostic(self, diagnostic: Diagnostic) -> EvaluationError:
        return type(self)(
            diagnostic.code, diagnostic.message, diagnostic.hint, diagnostic.span, self.text, self.file_name
        )

    def in_text(self, text: str, file_name: str) -> EvaluationError:
        diagnostic = self.diagnostic
        return type(self)(diagnostic.code, diagnostic.message, diagnostic.hint, diagnostic.span, text, file_name)


class LimitExceeded(EvaluationError):
    """An evaluation that exceeds its limit of steps, matches or memory. It concerns no single row, so no row is skipped
    for it."""


class Cancelled(AnabranchError):
    """An evaluation that was cancelled. The engine in which it ran cannot be used any more."""


class StreamError(AnabranchError):
    """An error in the records of a stream."""


class MalformedEventError(StreamError):
    """An event that cannot be decoded: it goes to the dead-letter sink with its place and reason."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason if line is None else f"line {line}: {reason}")


class EngineError(AnabranchError):
    """A request that the engine cannot fulfil: an unknown name, a checkpoint of another format."""


class InternalError(AnabranchError):
    """A broken invariant: a defect of Anabranch, never of the query."""


def closest(name: str, candidates: Iterable[str], limit: int = 3) -> list[str]:
    """Return the candidates most similar to a mistyped name, best first."""
    from difflib import get_close_matches

    folded: Mapping[str, str] = {candidate.lower(): candidate for candidate in candidates}
    return [folded[match] for match in get_close_matches(name.lower(), list(folded), n=limit, cutoff=0.6)]
