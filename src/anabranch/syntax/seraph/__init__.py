"""Seraph: the Cypher family's continuous query language. Text in, algebra out.

Invariant: the output is checked: names, kinds and counts are right, or a `QueryError` with every problem was raised.
"""

from __future__ import annotations

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
from anabranch.syntax.seraph.parser import parse_query, parse_script
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


def plan(text: str, file_name: str = "<query>") -> Operator:
    """The algebra of a plain query (no REGISTER, no windows)."""
    problems = Problems()
    operator = lower_query(parse_query(text, file_name), problems)
    problems.refuse(_CLASSES, text, file_name)
    return operator


def statements(text: str, file_name: str = "<query>") -> tuple[Registration | Ingestion, ...]:
    """The statements of a file, in its order, all of them checked."""
    problems = Problems()
    found: list[Registration | Ingestion] = []
    names: set[str] = set()
    for statement in parse_script(text, file_name).statements:
        if isinstance(statement, tree.LoadStreamTree):
            found.append(lower_ingestion(statement, problems))
            continue
        name = statement.name
        if name.text in names:
            problems.add("SER-044", f"there is a query `{name.text}` already", name.span, "", "names are unique")
        names.add(name.text)
        found.append(lower_registration(statement, problems))
    problems.refuse(_CLASSES, text, file_name)
    return tuple(found)


def registrations(text: str, file_name: str = "<query>") -> tuple[Registration, ...]:
    """The continuous queries of a file."""
    return tuple(one for one in statements(text, file_name) if isinstance(one, Registration))


def ingestions(text: str, file_name: str = "<query>") -> tuple[Ingestion, ...]:
    """The LOAD STREAM statements of a file."""
    return tuple(one for one in statements(text, file_name) if isinstance(one, Ingestion))
