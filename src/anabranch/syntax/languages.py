"""Detection of a text's language, and the common entry from all languages to the algebra.

The file's extension decides; without one, the content does. A language is loaded when its first text comes.

Invariant: the language of a text depends on the text and its file name only, so a restart detects the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from anabranch.algebra.ingestion import Ingestion
from anabranch.algebra.operators import Registration
from anabranch.syntax.common import PlainQuery

Language: TypeAlias = Literal["seraph", "csparql", "lupos", "rspql", "sparql"]

EXTENSIONS: dict[str, Language] = {
    ".seraph": "seraph",
    ".cypher": "seraph",
    ".csparql": "csparql",
    ".lupos": "lupos",
    ".rspql": "rspql",
    ".rq": "sparql",
    ".sparql": "sparql",
}

SPOKEN: dict[Language, str] = {
    "seraph": "Seraph",
    "csparql": "C-SPARQL",
    "lupos": "LUPOS streaming SPARQL",
    "rspql": "RSP-QL",
    "sparql": "SPARQL",
}


class QueryText(NamedTuple):
    """A text of queries, and its origin."""

    text: str
    file_name: str = "<query>"


@dataclass(frozen=True, slots=True)
class Script:
    """A text of queries, parsed and checked once: its continuous queries and its LOAD STREAM statements."""

    text: str
    file_name: str
    registrations: tuple[Registration, ...]
    ingestions: tuple[Ingestion, ...]


def language_of(text: str, file_name: str = "<query>") -> Language:
    """By the file's extension; else, and where plain SPARQL turns out to be continuous, by what the text holds."""
    dot = file_name.rfind(".")
    said = EXTENSIONS.get(file_name[dot:].lower()) if dot >= 0 else None
    if said is not None and said != "sparql":
        return said
    from anabranch.syntax.sparql.detect import detect

    found = detect(text)
    return "sparql" if said == "sparql" and found == "seraph" else found


def statements(text: str, file_name: str = "<query>") -> tuple[Registration | Ingestion, ...]:
    """The statements of a file, in its order, all of them checked."""
    language = language_of(text, file_name)
    if language == "seraph":
        from anabranch.syntax import seraph

        return seraph.statements(text, file_name)
    from anabranch.syntax import sparql

    return sparql.statements(text, language, file_name)


def script(text: str, file_name: str = "<query>") -> Script:
    """The statements of a file by their kind; only Seraph has LOAD STREAM."""
    found = statements(text, file_name)
    return Script(
        text,
        file_name,
        tuple(one for one in found if isinstance(one, Registration)),
        tuple(one for one in found if isinstance(one, Ingestion)),
    )


def registrations(text: str, file_name: str = "<query>") -> tuple[Registration, ...]:
    """The queries of a file that are registered."""
    return script(text, file_name).registrations


def plan(text: str, file_name: str = "<query>", graphs: tuple[str, ...] | None = None) -> PlainQuery:
    """Return the algebra of a plain query (no REGISTER, no windows). `graphs` are the names of the existing graphs, for
    `GRAPH ?g`; None means that they are not known."""
    if language_of(text, file_name) == "seraph":
        from anabranch.syntax import seraph

        return PlainQuery(seraph.plan(text, file_name), "bindings", ())
    from anabranch.syntax import sparql

    return sparql.plan(text, file_name, graphs or None)
