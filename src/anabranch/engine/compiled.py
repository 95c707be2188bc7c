"""Compiled queries: the continuous queries of texts, parsed and checked once, with their registration options.

This file and `session.py` are the only files of the engine that depend on the query languages.

Invariant: a compiled query is passed on unchanged; its text is parsed again only when a checkpoint is restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anabranch.algebra.operators import Registration
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.errors import EngineError
from anabranch.syntax import languages
from anabranch.syntax.languages import Script


def compile_queries(scripts: Iterable[Script], options: QueryOptions) -> tuple[CompiledQuery, ...]:
    """Compile the queries of scripts, in their order. The plug-in answers SPARQL only."""
    return tuple(
        CompiledQuery(
            one,
            replace(
                options,
                text=script.text,
                file_name=script.file_name,
                source_name=one.name,
                evaluator=options.evaluator if one.language != "seraph" else "own",
            ),
        )
        for script in scripts
        for one in script.registrations
    )


def columns_of(queries: Sequence[CompiledQuery]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each query, by the query's name."""
    return {one.registration.name: one.registration.columns for one in queries}


def prefixes_of(queries: Sequence[CompiledQuery]) -> Mapping[str, str]:
    """Return the prefixes of all queries; where two disagree, the first one wins."""
    return {name: iri for one in reversed(queries) for name, iri in one.registration.prefixes}


def recompile(options: QueryOptions) -> Registration:
    """Compile the registration of a query's text again, under its name in that text."""
    for registration in languages.registrations(options.text, file_name=options.file_name):
        if registration.name == options.source_name:
            return registration
    raise EngineError(f"the checkpoint's text has no query `{options.source_name}`")
