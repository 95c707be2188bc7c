"""Case files: the semantics as stories that run.

A `.case` file has a story in `#` lines and sections:

    --- options          one `key: value` a line: date, windows, conflicts, lateness, now, until, drain, streams,
                         late (how many events are late), ordered, on_error, `param NAME: JSON`, `prefix NAME: IRI`
    --- query            one or more REGISTER QUERY, in any of the languages
    --- graph NAME       a static graph, in the short notation or in Turtle
    --- events [STREAM]  NDJSON, the short notation, or an instant and Turtle; lines that begin with a blank continue
                         the event above
    --- answers [QUERY]  `columns: a | b`, then a line per row: instant, op, win_start-win_end, values
    --- warnings         a line per warning: instant, text
    --- error            the diagnostics, as people see them

A case runs as: one event per push, all at once, and restarted after every event; all three must give exactly
the answers of the expectation and of the oracle. `python -m anabranch.testing.cases --rewrite FILE` replaces the
expectation by the answers of the oracle.

Invariant: an expectation never comes from the engine that it tests.
"""

from __future__ import annotations

import argparse
import heapq
import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from anabranch.algebra.operators import Registration
from anabranch.algebra.walk import windows
from anabranch.engine.answers import Answer
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Query, Session, parameter_values
from anabranch.errors import QueryError
from anabranch.formats.values import cypher_text
from anabranch.model.event import Event
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Value
from anabranch.model.windows import EvaluationInstants
from anabranch.syntax import languages
from anabranch.testing.case_file import CaseFile, load, read_case
from anabranch.testing.notation import (
    INSTANT,
    NotationError,
    write_instant,
)
from anabranch.testing.oracle import Oracle, accepted
from anabranch.testing.turtle import term_short

_ANSWER = re.compile(rf"({INSTANT}) +(snapshot|entering|exiting) +({INSTANT})-({INSTANT})(?: +(.*))?$")
NO_ROWS = "(no rows)"


__all__ = [
    "CaseFailure",
    "CaseFile",
    "agreed",
    "answer_lines",
    "load",
    "new_session",
    "oracles",
    "read_case",
    "rewrite",
    "run_case",
]


class CaseFailure(AssertionError):
    """A case that does not hold; the message shows the expected and the actual answers."""


# --- running ----------------------------------------------------------------------------------------------------------


def run_case(case: CaseFile) -> None:
    """Run a case in all ways; raise CaseFailure where one differs from the expectation."""
    if case.error is not None:
        _expect_error(case)
        return
    got = agreed(case)
    for registration in languages.registrations(case.query, file_name=case.path.name):
        expected = case.answers.get(registration.name, case.answers.get(None))
        if expected is None:
            raise CaseFailure(f"{case.path.name}: no answers expected for query `{registration.name}`")
        _compare(case, registration.name, expected, answer_lines(case, registration, got[registration.name]))


def agreed(case: CaseFile) -> dict[str, list[Answer]]:
    """Run a case in every way and by the law, and return the common answers; raise CaseFailure where one differs."""
    one_by_one = _run(case, _push_one_by_one)
    _same(case, "all at once", one_by_one, _run(case, _push_at_once))
    _same(case, "restarted after every event", one_by_one, _run(case, _push_with_restarts))
    for law in oracles(case):
        _check_law(case, law, one_by_one[law.registration.name])
    return one_by_one


Outcome = dict[str, list[Answer]]


def _run(case: CaseFile, push: Any) -> Outcome:
    session = new_session(case)
    queries = session.register_all(case.query, parameters=case.parameters, now=case.now, file_name=case.path.name)
    names = [query.name for query in queries]
    session, outcome = push(case, session, names)
    session.finish(case.until, case.drain)
    for name in names:
        outcome[name] = [*outcome.get(name, []), *session.query(name).poll()]
    if "late" in case.options and sum(session.late.values()) != int(case.options["late"]):
        raise CaseFailure(f"{case.path.name}: expected {case.options['late']} late events, got {session.late}")
    if case.warnings is not None and push is _push_one_by_one:
        _compare(case, "warnings", case.warnings, _warning_lines(case, session.queries))
    return dict(outcome)


def new_session(
    case: CaseFile, rules: str | Sequence[str] = "all", evaluation: EvaluationOptions | None = None
) -> Session:
    names = [name.strip() for name in case.options["streams"].split(",")] if "streams" in case.options else None
    session = Session.local(
        streams=names,
        lateness=case.lateness,
        windows=case.options.get("windows", "trailing"),  # type: ignore[arg-type]
        conflicts=case.options.get("conflicts", "latest"),  # type: ignore[arg-type]
        rules=rules,
        evaluation=evaluation or EvaluationOptions(on_error=case.options.get("on_error", "skip")),  # type: ignore[arg-type]
    )
    for name, graph in case.graphs.items():
        session.graph(name, graph)
    return session


def _in_arrival_order(case: CaseFile) -> list[tuple[str, Event]]:
    """Return the events of all streams in a plausible order of arrival: each stream in its own order, the streams
    interleaved."""
    tagged = []
    for position, (name, events) in enumerate(case.streams.items()):
        newest = accumulate((event.event_time for event in events), max)
        tagged.append(
            [(time, position, index, name) for index, (time, _) in enumerate(zip(newest, events, strict=True))]
        )
    return [(name, case.streams[name][index]) for _, _, index, name in heapq.merge(*tagged)]


def _push_one_by_one(case: CaseFile, session: Session, names: list[str]) -> tuple[Session, Outcome]:
    outcome: Outcome = {name: [] for name in names}
    for stream, event in _in_arrival_order(case):
        session.push(stream, event)
        for name in names:
            outcome[name].extend(session.query(name).poll())
    return session, outcome


def _push_at_once(case: CaseFile, session: Session, names: list[str]) -> tuple[Session, Outcome]:
    for stream, events in case.streams.items():
        session.push(stream, events)
    return session, {}


def _push_with_restarts(case: CaseFile, session: Session, names: list[str]) -> tuple[Session, Outcome]:
    for stream, event in _in_arrival_order(case):
        session.push(stream, event)
        session = Session.restore(session.checkpoint())
    return session, {}


def _expect_error(case: CaseFile) -> None:
    try:
        session = new_session(case)
        names = [query.name for query in session.register_all(case.query, parameters=case.parameters, now=case.now)]
        session, _ = _push_at_once(case, session, names)
        session.finish(case.until, case.drain)
        for name in names:
            while session.query(name).poll():
                pass
    except QueryError as error:
        _compare(case, "error", (case.error or "").splitlines(), error.render().splitlines(), ordered=True)
        return
    raise CaseFailure(f"{case.path.name}: expected an error, got none")


# --- comparing --------------------------------------------------------------------------------------------------------


def oracles(case: CaseFile) -> list[Oracle]:
    """Return the oracle of every query of a case; a derived stream is made by its oracle too."""
    streams = {name: accepted(events, case.lateness) for name, events in case.streams.items()}
    waiting = list(languages.registrations(case.query, file_name=case.path.name))
    made = {one.into for one in waiting if one.into is not None}
    found: dict[str, Oracle] = {}
    clocks: dict[str, int] = {}
    while waiting:
        ready = [one for one in waiting if not made & {window.stream.name for window in windows(one.plan)}]
        if not ready:
            raise CaseFailure(f"{case.path.name}: the queries wait for each other's streams")
        for registration in ready:
            law = found[registration.name] = _oracle(case, registration, streams, clocks)
            waiting.remove(registration)
            if registration.into is not None:
                streams = {**streams, registration.into: law.events(case.until, case.drain)}
                clock = law.clock(case.until, case.drain)
                clocks = clocks if clock is None else {**clocks, registration.into: clock}
                made.discard(registration.into)
    return [found[one.name] for one in languages.registrations(case.query, file_name=case.path.name)]


def _oracle(
    case: CaseFile, registration: Registration, streams: Mapping[str, Sequence[Event]], clocks: Mapping[str, int]
) -> Oracle:
    return Oracle(
        registration,
        streams,
        case.options.get("windows", "trailing"),
        case.options.get("conflicts", "latest"),
        parameter_values(case.parameters),
        case.graphs,
        case.now,
        clocks=clocks,
        on_error=case.options.get("on_error", "skip"),
    )


def answer_lines(case: CaseFile, registration: Registration, answers: Sequence[Answer]) -> list[str]:
    """Format answers as the lines of a case file."""
    lines = [f"columns: {' | '.join(registration.columns)}"]
    for answer in answers:
        at, win_start, win_end = (
            write_instant(instant, case.date) for instant in (answer.at, answer.win_start, answer.win_end)
        )
        head = f"{at} {answer.op} {win_start}-{win_end}"
        lines.extend(f"{head}  {' | '.join(_text(case, value) for value in row)}" for row in answer.rows)
        if not answer.rows:
            lines.append(f"{head}  {NO_ROWS}")
    return lines


def _text(case: CaseFile, value: Value) -> str:
    if isinstance(value, Iri | Blank | Literal):
        return term_short(value, case.prefixes)
    return cypher_text(value)


def _warning_lines(case: CaseFile, queries: Sequence[Query]) -> list[str]:
    found = [warning for query in queries for warning in query.warnings()]
    return [f"{write_instant(warning.at, case.date)} {warning}" for warning in found]


def _compare(case: CaseFile, what: str, expected: Sequence[str], got: Sequence[str], ordered: bool = False) -> None:
    wanted, found = [_normal(line) for line in expected], [_normal(line) for line in got]
    if wanted and found and not wanted[0].startswith("columns:") and found[0].startswith("columns:"):
        del found[0]
    if not ordered and "ordered" not in case.options:
        wanted, found = sorted(wanted), sorted(found)
    if wanted != found:
        shown = "\n".join(["expected:", *(f"  {line}" for line in wanted), "got:", *(f"  {line}" for line in found)])
        raise CaseFailure(f"{case.path.name}, {what}:\n{shown}")


def _normal(line: str) -> str:
    match = _ANSWER.match(line)
    if match is None:
        return line.rstrip()
    return f"{match[1]} {match[2]} {match[3]}-{match[4]}  {match[5] or ''}"


def _same(case: CaseFile, way: str, expected: Outcome, got: Outcome) -> None:
    wanted, found = _as_text(expected), _as_text(got)
    if wanted != found:
        raise CaseFailure(f"{case.path.name}, {way}:\nexpected:\n{wanted}\ngot:\n{found}")


def _as_text(outcome: Mapping[str, Sequence[Answer]]) -> str:
    return "\n".join(json.dumps(answer.to_dict()) for answers in outcome.values() for answer in answers)


def _check_law(case: CaseFile, law: Oracle, got: Sequence[Answer]) -> None:
    """Compare every instant with the law; if there are very many, only instants with an answer and their neighbours."""
    expected = law.answers(case.until, case.drain)
    if expected is None and law.starting_at is not None:
        instants = EvaluationInstants(law.starting_at, law.registration.every)
        told = {instants.index_at_or_after(answer.at) for answer in got}
        near = sorted({index + shift for index in told for shift in (-1, 0, 1) if index + shift >= 0})
        expected = [answer for index in near if (answer := law.answer(index)) is not None]
    _same(case, "the law", {law.registration.name: list(expected or [])}, {law.registration.name: list(got)})


# --- rewriting --------------------------------------------------------------------------------------------------------


def rewrite(path: Path) -> None:
    """Rewrite the answers of a case file with those of the oracle."""
    case = load(path)
    text = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    registrations = languages.registrations(case.query, file_name=path.name)
    first = next((i for i, line in enumerate(text) if line.startswith("--- answers")), len(text))
    kept = text[:first]
    while kept and not kept[-1].strip():
        kept.pop()
    for law in oracles(case):
        registration = law.registration
        expected = law.answers(case.until, case.drain)
        if expected is None:
            sys.exit(f"{path}: too many instants for the oracle")
        kept += ["", "--- answers" if len(registrations) == 1 else f"--- answers {registration.name}"]
        kept += answer_lines(case, registration, expected)
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m anabranch.testing.cases", description="Run or rewrite case files.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rewrite", action="store_true", help="write the answers anew, from the oracle")
    options = parser.parse_args(arguments)
    try:
        for path in options.files:
            if options.rewrite:
                rewrite(path)
            else:
                run_case(load(path))
            print(f"{path}: {'rewritten' if options.rewrite else 'holds'}")
    except (CaseFailure, NotationError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
