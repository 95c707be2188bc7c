"""The two ways in which a temporal or spatial function refuses: a wrong value, a wrong kind of value.

Invariant: nothing in this package raises a bare `ValueError`; what a user can cause carries a code.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.errors import EvaluationError, closest

WRONG_VALUE = "SER-301"
WRONG_KIND = "SER-302"


def wrong_value(message: str, hint: str = "") -> EvaluationError:
    """A value of the right kind that cannot be: month 13, an unknown time zone, text that is not ISO 8601."""
    return EvaluationError(WRONG_VALUE, message, hint=hint)


def wrong_kind(message: str, hint: str = "") -> EvaluationError:
    """A value of a kind that cannot stand here: a list for a date, a string for a month."""
    return EvaluationError(WRONG_KIND, message, hint=hint)


def unknown_name(what: str, name: str, candidates: Iterable[str]) -> EvaluationError:
    """An unknown unit, component or zone, with the nearest real ones as the hint."""
    names = list(candidates)
    near = closest(name, names)
    if near:
        hint = f"did you mean {' or '.join(f'`{candidate}`' for candidate in near)}?"
    elif len(names) <= 24:
        hint = f"one of {', '.join(names)}"
    else:
        hint = ""
    return wrong_value(f"no {what} `{name}`", hint)


def kind_of(value: object) -> str:
    """Return the user's name for the kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a float"
        case str():
            return "a string"
        case dict():
            return "a map"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__.lower()}"
