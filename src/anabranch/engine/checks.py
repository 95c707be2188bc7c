"""Registration checks: they refuse unknown names, windows and slides that do not move time forward, and streams that no
query can make.

Invariant: a query that passes runs; every refusal is a diagnostic with the place in the text and the next thing to try.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from anabranch.algebra.operators import DEFAULT_GRAPH, Registration, Source, Static, Window
from anabranch.algebra.walk import asks_graph, read_by, walk, windows
from anabranch.engine.chains import ChainLink, circle, spell_circle, unreadable
from anabranch.engine.evaluation_options import ON_ERROR
from anabranch.engine.plans import EVALUATORS
from anabranch.engine.progress import BEGINNING, LatePolicy
from anabranch.engine.query_options import QueryOptions
from anabranch.engine.stream import StreamBuffer
from anabranch.errors import (
    Diagnostic,
    EngineError,
    QueryError,
    QueryNameError,
    QueryTypeError,
    Span,
    UnsupportedQueryError,
    closest,
)
from anabranch.model.instants import format_instant
from anabranch.model.temporal import Duration
from anabranch.model.union import CONFLICT_POLICIES
from anabranch.model.windows import WINDOW_POLICIES, require_positive

Refusal = tuple[Diagnostic, type[QueryError]]


class EngineNames(Protocol):
    """The names that registration checks a query against, as they will be when the query is registered."""

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams, derived ones included."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The streams that no query makes."""
        ...

    @property
    def static_graphs(self) -> tuple[str, ...]: ...

    @property
    def queries(self) -> tuple[str, ...]: ...

    @property
    def links(self) -> tuple[ChainLink, ...]:
        """Return the chain links of all queries, this one included."""
        ...

    @property
    def late(self) -> LatePolicy: ...

    def stream(self, name: str) -> StreamBuffer: ...


def check_registration(
    registration: Registration, options: QueryOptions, known: EngineNames, fixed_streams: bool
) -> None:
    if options.windows not in WINDOW_POLICIES:
        raise EngineError(f"no window policy `{options.windows}`; there are {', '.join(WINDOW_POLICIES)}")
    if options.on_error not in (None, *ON_ERROR):
        raise EngineError(f"on_error is {' or '.join(ON_ERROR)}, not `{options.on_error}`")
    if options.conflicts not in CONFLICT_POLICIES:
        raise EngineError(f"no conflict policy `{options.conflicts}`; there are {', '.join(CONFLICT_POLICIES)}")
    if options.evaluator not in EVALUATORS:
        raise EngineError(f"no evaluator `{options.evaluator}`; there are {', '.join(EVALUATORS)}")
    found: dict[Diagnostic, type[QueryError]] = {}
    if registration.name in known.queries:
        hint = f"unregister it first, or register this one under another name; registered: {_list(known.queries)}"
        found[Diagnostic("SER-215", f"a query `{registration.name}` is registered already", hint=hint)] = QueryNameError
    if registration.every is not None:
        found |= _check_duration(registration.every, "EVERY", None, "for example EVERY PT5M")
    found |= _check_sources(registration, known, fixed_streams)
    found |= _check_into(registration, known)
    found |= _check_unreadable(registration, known)
    if options.evaluator == "plugin":
        found |= _check_delegated(registration)
    if known.late.corrects:
        found |= _check_corrections(registration)
    if not found:
        passed = _check_return(registration, options, known)
        if passed is not None:
            found[passed] = QueryError
    if found:
        kinds = set(found.values())
        kind = kinds.pop() if len(kinds) == 1 else QueryError
        raise kind(found, options.text, options.file_name)


def _check_delegated(registration: Registration) -> Iterator[Refusal]:
    if registration.delegated is None:
        yield (
            Diagnostic(
                "SPQ-302",
                f"the SPARQL plug-in cannot answer the query `{registration.name}`: it is more than plain SPARQL",
                hint="the plug-in knows no AGGREGATE, WINDOW, timestamp() or NOW(); leave out --evaluator plugin",
            ),
            UnsupportedQueryError,
        )


# --- what it reads ----------------------------------------------------------------------------------------------------


def _check_sources(registration: Registration, known: EngineNames, fixed_streams: bool) -> Iterator[Refusal]:
    """Check each source of triples once: the default graph stands behind every pattern of a query."""
    seen: set[Source] = set()
    for node in walk(registration.plan):
        is_match = asks_graph(node)
        for source in read_by(node):
            if is_match or source not in seen:
                if not is_match:
                    seen.add(source)
                yield from _check_source(
                    source, node.span, known, fixed_streams, "" if is_match else registration.language
                )


def _check_source(
    source: Source, span: Span | None, known: EngineNames, fixed_streams: bool, language: str
) -> Iterator[Refusal]:
    """Check one source. `language` is that of a query over triples, else empty."""
    if isinstance(source, Static):
        if source.name not in known.static_graphs and not (language and source.name == DEFAULT_GRAPH):
            yield _unknown_graph(source.name, span, known, bool(language)), QueryNameError
        return
    if source.width is None and (not language or source.count is None) and not source.unbounded:
        hint = "write WITHIN and a duration after the pattern, for example WITHIN PT1H"
        yield Diagnostic("SER-213", "a MATCH over a stream needs a window", span, hint=hint), QueryTypeError
        return
    if source.width is not None:
        what, hint = ("RANGE", "for example [RANGE 1h STEP 5m]") if language else ("WITHIN", "for example WITHIN PT1H")
        yield from _check_duration(source.width, what, span, hint)
    if source.step is not None:
        yield from _check_duration(source.step, "STEP", span, "for example STEP 5m")
    if source.count is not None and source.count < 1:
        message = f"a window by count holds at least one triple; got {source.count}"
        yield Diagnostic("SER-214", message, span, hint="for example 100"), QueryTypeError
    unknown = _check_stream(source, span, known, fixed_streams, language)
    if unknown is not None:
        yield unknown, QueryNameError


def _check_duration(duration: Duration, what: str, span: Span | None, hint: str) -> Iterator[Refusal]:
    try:
        require_positive(duration, what)
    except ValueError as error:
        yield Diagnostic("SER-214", str(error), span, hint=hint), QueryTypeError


def _unknown_graph(name: str, span: Span | None, known: EngineNames, of_triples: bool) -> Diagnostic:
    if not of_triples:
        return _unknown("SER-212", "graph", name, span, known.static_graphs)
    names = [one for one in known.static_graphs if one != DEFAULT_GRAPH]
    given = f"; graphs: {_list(names)}" if names else ""
    shown = name if "://" in name else f"'<{name}>'"  # as the command line takes it
    hint = f"give it with --graph {shown}=FILE, or write FROM and the file's name{given}"
    return Diagnostic("SER-212", f"no graph <{name}>", span, hint=hint)


def _check_stream(
    window: Window, span: Span | None, known: EngineNames, fixed_streams: bool, language: str
) -> Diagnostic | None:
    name = window.stream.name
    if name is None and len(known.sources) > 1:
        how = {
            "": "add ON STREAM and a name after WITHIN",
            "lupos": "a LUPOS query reads the only stream: run it with one, or name it in C-SPARQL's FROM STREAM",
        }.get(language, "name it: FROM STREAM <name> [RANGE ...]")
        return Diagnostic(
            "SER-210",
            "the pattern does not say which stream it reads, and there are several",
            span,
            hint=f"{how}; streams: {_list(known.sources)}",
        )
    if name is not None and fixed_streams and name not in known.streams:
        return _unknown("SER-211", "stream", name, span, known.streams)
    return None


# --- what it makes ----------------------------------------------------------------------------------------------------


def _check_into(registration: Registration, known: EngineNames) -> Iterator[Refusal]:
    into = registration.into
    if into is None:
        return
    if registration.language != "seraph" and len(registration.columns) != 3:
        message = f"the answers of `{registration.name}` are no triples, and so no stream"
        hint = "use CONSTRUCT, or SELECT three columns: subject, predicate and object"
        yield Diagnostic("SPQ-202", message, registration.plan.span, hint=hint), QueryTypeError
    if into in known.sources and known.stream(into).origin == "source":
        message = f"query `{registration.name}` cannot make the stream `{into}`: its events come from a source"
        yield (
            Diagnostic("SER-218", message, hint=f"choose another name; streams: {_list(known.streams)}"),
            QueryNameError,
        )
    makers = [link.query for link in known.links if link.into == into and link.query in known.queries]
    if makers:
        message = f"query `{makers[0]}` makes the stream `{into}` already"
        yield Diagnostic("SER-219", message, hint="choose another name, or unregister that one"), QueryNameError
        return
    path = circle(known.links, registration.name)
    if path is not None:
        message = f"queries wait for each other's streams: {spell_circle(path)}"
        yield Diagnostic("SER-220", message, hint="let one of them read a source instead"), QueryNameError


def _check_unreadable(registration: Registration, known: EngineNames) -> Iterator[Refusal]:
    """Refuse readers of a stream whose answers are no triples: they would wait for ever."""

    def is_given(name: str) -> bool:
        return name in known.sources and known.stream(name).origin == "source"

    links = [link for link in known.links if link.unreadable is not None and not is_given(link.unreadable)]
    for diagnostic in unreadable(registration, {link.unreadable or "": link.query for link in links}):
        yield diagnostic, QueryTypeError
    name = registration.unreadable
    readers = [link.query for link in known.links if name in link.reads and link.query in known.queries]
    if name is not None and readers and not is_given(name):
        message = f"query `{readers[0]}` reads the stream `{name}`, and the answers of this query are no triples"
        hint = "use CONSTRUCT, or SELECT three columns: subject, predicate and object"
        yield Diagnostic("SPQ-203", message, registration.plan.span, hint=hint), QueryTypeError


def _check_corrections(registration: Registration) -> Iterator[Refusal]:
    """Refuse the policy `correct` for a query with INTO, or with windows or instants that time alone does not move."""
    found = []
    if any(window.count is not None for window in windows(registration.plan)):
        found.append("a window by count")
    if registration.arrivals is not None:
        found.append("instants that hang on what comes")
    if registration.into is not None:
        found.append("a stream that it makes")
    if found:
        message = f"late events cannot be corrected in query `{registration.name}`: it has {' and '.join(found)}"
        hint = "use --late drop (with --lateness to wait for late events), or windows by time and no INTO"
        yield Diagnostic("SPQ-201", message, registration.plan.span, hint=hint), UnsupportedQueryError


# --- when it answers --------------------------------------------------------------------------------------------------


def _check_return(registration: Registration, options: QueryOptions, known: EngineNames) -> Diagnostic | None:
    """Refuse a single answer at an instant that the buffers have forgotten."""
    starting_at = options.now if registration.starting_at is None else registration.starting_at
    if registration.every is not None or registration.arrivals is not None or starting_at is None:
        return None
    names = {window.stream.name for window in windows(registration.plan)}
    streams = [known.stream(name) for name in known.sources if name in names or None in names]
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
