"""Seraph: the Cypher family's continuous query language. Text in, algebra out.

Invariant: the output is checked: names, kinds and counts are right, or a `QueryError` with every problem was raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Operator, Registration
from anabranch.errors import (
    QueryError,
    QueryNameError,
    QueryTypeError,
    UnsupportedQueryError,
)
from anabranch.syntax.seraph import tree
from anabranch.syntax.seraph.lower import lower_query, lower_registration
from anabranch.syntax.seraph.lower_ingestion import lower_ingestion
from anabranch.syntax.seraph.parser import parse_query, parse_script, too_deep
from anabranch.syntax.seraph.scope import Problems

__all__ = ["ingestions", "parse_query", "parse_script", "plan", "registrations", "statements"]

_CLASSES: dict[str, type[QueryError]] = {
    "SER-017": QueryNameError,
    "SER-018": QueryNameError,
    "SER-020": QueryNameError,
    "SER-025": QueryNameError,
    "SER-044": QueryNameError,
    "SER-019": QueryTypeError,
    "SER-021": QueryTypeError,
    "SER-022": QueryTypeError,
    "SER-012": UnsupportedQueryError,
}


@contextmanager
def _lowering(text: str, file_name: str) -> Iterator[Problems]:
    """Collect the problems of a text, and raise them at the end."""
    problems = Problems()
    try:
        yield problems
    except RecursionError:
        raise too_deep(text, file_name) from None
    problems.refuse(_CLASSES, text, file_name)


def plan(text: str, file_name: str = "<query>") -> Operator:
    """The algebra of a plain query (no REGISTER, no windows)."""
    with _lowering(text, file_name) as problems:
        return lower_query(parse_query(text, file_name), problems)


def statements(text: str, file_name: str = "<query>") -> tuple[Registration | Ingestion, ...]:
    """The statements of a file, in its order, all of them checked."""
    found: list[Registration | Ingestion] = []
    names: set[str] = set()
    with _lowering(text, file_name) as problems:
        for statement in parse_script(text, file_name).statements:
            if isinstance(statement, tree.LoadStreamTree):
                found.append(lower_ingestion(statement, problems))
                continue
            name = statement.name
            if name.text in names:
                problems.add("SER-044", f"there is a query `{name.text}` already", name.span, "", "names are unique")
            names.add(name.text)
            found.append(lower_registration(statement, problems))
    return tuple(found)


def registrations(text: str, file_name: str = "<query>") -> tuple[Registration, ...]:
    """The continuous queries of a file."""
    return tuple(one for one in statements(text, file_name) if isinstance(one, Registration))


def ingestions(text: str, file_name: str = "<query>") -> tuple[Ingestion, ...]:
    """The LOAD STREAM statements of a file."""
    return tuple(one for one in statements(text, file_name) if isinstance(one, Ingestion))
