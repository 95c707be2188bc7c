"""The errors of the server, in the one shape that REST, live push and the page show.

    {"error": {"code": "SRV-001", "message": ..., "hint": ..., "diagnostics": [...]}}

Invariant: every expected error has a code and an HTTP status below 500; any other exception is a defect and is sent as
SRV-099, without its details.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch.errors import AnabranchError, Diagnostic, InternalError, QueryError, closest, line_and_column
from anabranch.sources.reach import OutOfReach

STATUS: dict[str, int] = {}
"""The HTTP status of each code."""


def _code(code: str, status: int) -> str:
    STATUS[code] = status
    return code


NOT_FOUND = _code("SRV-001", 404)
EXISTS = _code("SRV-002", 409)
BAD_REQUEST = _code("SRV-003", 422)
BODY_TOO_LARGE = _code("SRV-004", 413)
TEXT_TOO_LONG = _code("SRV-005", 413)
TOO_MANY = _code("SRV-006", 409)
TOO_MANY_CLIENTS = _code("SRV-007", 429)
NO_TOKEN = _code("SRV-008", 401)
OTHER_ORIGIN = _code("SRV-009", 403)
OTHER_HOST = _code("SRV-010", 403)
NOT_KEPT = _code("SRV-011", 410)
TOOK_TOO_LONG = _code("SRV-012", 422)
REFUSED = _code("SRV-013", 422)
BAD_DATA = _code("SRV-014", 422)
UNKNOWN_TYPE = _code("SRV-015", 415)
TOO_SLOW = _code("SRV-016", 429)
NO_METHOD = _code("SRV-017", 405)
TOO_EARLY = _code("SRV-018", 409)
STOPPING = _code("SRV-019", 503)
TOO_DEEP = _code("SRV-020", 422)
OUT_OF_REACH = _code("SRV-021", 403)
BUSY = _code("SRV-022", 429)
INTERNAL = _code("SRV-099", 500)


class ServerError(AnabranchError):
    """A refusal by the server itself. `details` are further fields of the error."""

    def __init__(self, code: str, message: str, hint: str = "", **details: Any) -> None:
        super().__init__(message if not hint else f"{message}\nhint: {hint}")
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details


def unknown(kind: str, name: str, known: Sequence[str]) -> ServerError:
    near = closest(name, known, limit=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}" if 0 < len(known) <= 10 else ""
    return ServerError(NOT_FOUND, f"there is no {kind} `{_short(name)}`", hint)


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:77]}..."


def diagnostic_dict(one: Diagnostic, text: str) -> dict[str, Any]:
    """Return a diagnostic as JSON, with its place as offsets and as one-based lines and columns."""
    span = one.span
    line, column = (None, None) if span is None else line_and_column(text, span.start)
    end_line, end_column = (None, None) if span is None else line_and_column(text, span.end)
    return {
        "code": one.code,
        "message": one.message,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "start": None if span is None else span.start,
        "stop": None if span is None else span.end,
        "label": one.label,
        "hint": one.hint,
    }


def error_dict(error: BaseException) -> dict[str, Any]:
    """Return the content of {"error": ...}."""
    match error:
        case ServerError():
            return _error(error.code, error.message, error.hint) | error.details
        case QueryError():
            found = [diagnostic_dict(one, error.text) for one in error.diagnostics]
            first = error.diagnostics[0] if error.diagnostics else Diagnostic(BAD_REQUEST, "the query is refused")
            return _error(first.code, first.message, first.hint, found)
        case OutOfReach():
            message, _, hint = str(error).partition("\nhint: ")
            return _error(OUT_OF_REACH, message, hint)
        case RecursionError():
            return _error(TOO_DEEP, "the text is nested too deeply", "say it in several steps")
        case AnabranchError() if not isinstance(error, InternalError):
            message, _, hint = str(error).partition("\nhint: ")
            return _error(REFUSED, message, hint)
        case OSError():
            return _error(REFUSED, error.strerror or type(error).__name__)
    return _error(INTERNAL, "something is broken inside the server", "its log says more")


def _error(code: str, message: str, hint: str = "", diagnostics: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint, "diagnostics": list(diagnostics)}


def status_of(error: dict[str, Any]) -> int:
    """Return the HTTP status for the content of {"error": ...}; a refused query is 422."""
    return STATUS.get(error["code"], 422)
