"""Parsing, checking and explaining query texts, within a time limit and off the event loop.

Invariant: checking a text changes nothing; every text gives registrations, an explanation, or an error with a code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from functools import lru_cache
from typing import Any, TypeVar

from anabranch.algebra.explain import explain as explain_query
from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Registration
from anabranch.drawings import draw
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.groups import shared_runs
from anabranch.engine.plans import planned
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.errors import AnabranchError, QueryError
from anabranch.model.windows import WindowPolicy
from anabranch.optimizer import Knowledge, optimize
from anabranch.server.problems import (
    BAD_REQUEST,
    BUSY,
    TEXT_TOO_LONG,
    TOO_DEEP,
    TOOK_TOO_LONG,
    ServerError,
    diagnostic_dict,
    error_dict,
)
from anabranch.sources.static import AnyGraph
from anabranch.syntax import languages
from anabranch.syntax.languages import Script

T = TypeVar("T")

LANGUAGES = ("seraph", "csparql", "lupos", "rspql")


class Workers:
    """A few threads for short work. Work that exceeds its time limit is abandoned: its thread ends by itself, later."""

    def __init__(self, threads: int = 2, most: int = 16) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="check")
        self._room = threading.Semaphore(most)

    def within(self, seconds: float, work: Callable[[], T], what: str) -> T:
        if not self._room.acquire(blocking=False):
            raise ServerError(BUSY, "too many texts are being read at once", "try again in a moment")
        future = self._pool.submit(work)
        future.add_done_callback(lambda done: self._room.release())
        try:
            return future.result(seconds)
        except TooLate:
            future.cancel()
            raise ServerError(TOOK_TOO_LONG, f"{what} took more than {seconds:g} s", "make it smaller") from None
        except RecursionError:
            raise ServerError(TOO_DEEP, "the text is nested too deeply", "say it in several steps") from None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def refuse_long(text: str, most: int) -> None:
    if len(text) > most:
        raise ServerError(TEXT_TOO_LONG, f"the text has {len(text):,} characters; {most:,} are taken at most")
    refuse_halves(text)


def refuse_halves(text: str) -> None:
    """Refuse lone surrogates: JSON can hold them, other encodings cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ServerError(BAD_REQUEST, f"character {error.start} is half of a surrogate pair", "send UTF-8") from None
    if "\0" in text:
        raise ServerError(BAD_REQUEST, f"character {text.index(chr(0))} is a null character")


def language_of(text: str, language: str | None) -> str:
    """Return the language of a text, as the file ending of that language."""
    if language is None:
        found = languages.language_of(text)
        return "csparql" if found == "sparql" else found
    if language not in LANGUAGES:
        raise ServerError(BAD_REQUEST, f"there is no language `{language[:40]}`", f"there are {', '.join(LANGUAGES)}")
    return language


@lru_cache(maxsize=256)
def script(text: str, file_name: str) -> Script:
    """Parse a text into statements; recent results are cached."""
    return languages.script(text, file_name)


def registrations(text: str, file_name: str) -> tuple[Registration, ...]:
    return script(text, file_name).registrations


def diagnostics_of(error: AnabranchError, text: str) -> list[dict[str, Any]]:
    """Return the diagnostics of an error, for an editor to underline; an error without a place has no span."""
    if isinstance(error, QueryError):
        return [diagnostic_dict(one, text) for one in error.diagnostics]
    said = error_dict(error)
    empty = dict.fromkeys(("line", "column", "end_line", "end_column", "start", "stop"))
    return [{"code": said["code"], "message": said["message"], **empty, "label": "", "hint": said["hint"]}]


def plan_all(found: Sequence[Registration], graphs: Mapping[str, AnyGraph]) -> None:
    """Plan queries and discard the plans, so that a query that the planner refuses is refused now."""
    for one in found:
        planned(optimize(one.plan, Knowledge.of(dict(graphs), one.prefixes)).plan, one, EvaluationOptions(), {})


def explained(
    text: str, file_name: str, graphs: Mapping[str, AnyGraph], windows: WindowPolicy = "trailing"
) -> dict[str, Any]:
    """Explain a text's statements: as text, as JSON, and as SVG drawings before and after the rules."""
    found = []
    statements = languages.statements(text, file_name)
    registered = [one for one in statements if isinstance(one, Registration)]
    shared = shared_runs(CompiledQuery(one, QueryOptions(windows)) for one in registered)
    for one in statements:
        match one:
            case Ingestion():
                found.append(explain_query(one))
            case Registration():
                optimized = optimize(one.plan, Knowledge.of(dict(graphs), one.prefixes))
                plan = planned(optimized.plan, one, EvaluationOptions(), {})
                explanation = explain_query(one, windows, optimized, ways=plan.way)
                if one.name in shared:
                    run = shared[one.name]
                    explanation = explanation.with_fact("shared", str(run), shared_with=list(run.others))
                found.append(explanation)
    return {
        "text": "\n\n".join(one.text(100) for one in found),
        "json": [one.to_dict() for one in found],
        "drawings": {
            "before": draw(found, "svg", "ograph", "before"),
            "after": draw(found, "svg", "ograph", "after"),
            "dgraph": draw(found, "svg", "dgraph", "after"),
        },
    }
