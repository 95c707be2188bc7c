"""What registration refuses: names that do not exist, windows and slides that do not move time forward.

Invariant: a query that passes runs; every refusal is a diagnostic with the place in the text and the next thing to try.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from anabranch.algebra.operators import Pattern, Registration, Source, Static, Window
from anabranch.algebra.walk import walk
from anabranch.engine.progress import BEGINNING
from anabranch.engine.query import QueryOptions
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import Diagnostic, EngineError, QueryError, QueryNameError, QueryTypeError, Span, closest
from anabranch.model.instants import format_instant
from anabranch.model.union import CONFLICT_POLICIES
from anabranch.model.windows import WINDOW_POLICIES, require_positive


class Known(Protocol):
    """What registration must know of the engine."""

    @property
    def streams(self) -> tuple[str, ...]: ...

    @property
    def static_graphs(self) -> tuple[str, ...]: ...

    @property
    def queries(self) -> tuple[str, ...]: ...

    def stream(self, name: str) -> StreamBuffer: ...


def check_registration(registration: Registration, options: QueryOptions, known: Known, fixed_streams: bool) -> None:
    if options.windows not in WINDOW_POLICIES:
        raise EngineError(f"no window policy `{options.windows}`; there are {', '.join(WINDOW_POLICIES)}")
    if options.conflicts not in CONFLICT_POLICIES:
        raise EngineError(f"no conflict policy `{options.conflicts}`; there are {', '.join(CONFLICT_POLICIES)}")
    found: dict[Diagnostic, type[QueryError]] = {}
    if registration.name in known.queries:
        hint = f"unregister it first, or register this one under another name; registered: {_list(known.queries)}"
        found[Diagnostic("SER-215", f"a query `{registration.name}` is registered already", hint=hint)] = QueryNameError
    if registration.every is not None:
        try:
            require_positive(registration.every, "EVERY")
        except ValueError as error:
            found[Diagnostic("SER-214", str(error), hint="for example EVERY PT5M")] = QueryTypeError
    for pattern in (node for node in walk(registration.plan) if isinstance(node, Pattern)):
        diagnostic, kind = _check_source(pattern.source, pattern.span, known, fixed_streams)
        if diagnostic is not None:
            found[diagnostic] = kind
    if not found:
        passed = _check_return(registration, options, known)
        if passed is not None:
            found[passed] = QueryError
    if found:
        kinds = set(found.values())
        kind = kinds.pop() if len(kinds) == 1 else QueryError
        raise kind(found, options.text, options.file_name)


def _check_source(
    source: Source, span: Span | None, known: Known, fixed_streams: bool
) -> tuple[Diagnostic | None, type[QueryError]]:
    if isinstance(source, Static):
        if source.name in known.static_graphs:
            return None, QueryError
        return _unknown("SER-212", "graph", source.name, span, known.static_graphs), QueryNameError
    if source.width is None:
        hint = "write WITHIN and a duration after the pattern, for example WITHIN PT1H"
        return Diagnostic("SER-213", "a MATCH over a stream needs a window", span, hint=hint), QueryTypeError
    try:
        require_positive(source.width, "WITHIN")
    except ValueError as error:
        return Diagnostic("SER-214", str(error), span, hint="for example WITHIN PT1H"), QueryTypeError
    return _check_stream(source, span, known, fixed_streams), QueryNameError


def _check_stream(window: Window, span: Span | None, known: Known, fixed_streams: bool) -> Diagnostic | None:
    name = window.stream.name
    if name is None and len(known.streams) > 1:
        return Diagnostic(
            "SER-210",
            "the pattern does not say which stream it reads, and there are several",
            span,
            hint=f"add ON STREAM and a name after WITHIN; streams: {_list(known.streams)}",
        )
    if name is not None and fixed_streams and name not in known.streams:
        return _unknown("SER-211", "stream", name, span, known.streams)
    return None


def _check_return(registration: Registration, options: QueryOptions, known: Known) -> Diagnostic | None:
    """One answer at an instant that the buffers have forgotten can never be given."""
    starting_at = options.now if registration.starting_at is None else registration.starting_at
    if registration.every is not None or starting_at is None:
        return None
    windows = [node.source for node in walk(registration.plan) if isinstance(node, Pattern)]
    names = {window.stream.name for window in windows if isinstance(window, Window)}
    streams = [known.stream(name) for name in known.streams if name in names or None in names]
    complete_from = max((stream.complete_from for stream in streams), default=BEGINNING)
    if starting_at >= complete_from:
        return None
    at = format_instant(starting_at)
    return Diagnostic(
        "SER-217",
        f"the one instant of this query, {at}, has passed, and its events are forgotten",
        hint=f"start at {format_instant(complete_from)} or later, or use EMIT and EVERY",
    )


def _unknown(code: str, what: str, name: str, span: Span | None, candidates: Iterable[str]) -> Diagnostic:
    return Diagnostic(code, f"no {what} `{name}`", span, hint=_suggest(what, name, candidates))


def unknown_name(what: str, name: str, candidates: Iterable[str]) -> EngineError:
    return EngineError(f"no {what} `{name}`; {_suggest(what, name, candidates)}")


def _suggest(what: str, name: str, candidates: Iterable[str]) -> str:
    names = list(candidates)
    if not names:
        return f"there is no {what} yet"
    plural = "queries" if what == "query" else f"{what}s"
    similar = closest(name, names, limit=1)
    guess = f"did you mean `{similar[0]}`?  " if similar else ""
    return f"{guess}{plural}: {_list(names)}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
