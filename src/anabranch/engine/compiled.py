"""Compiled queries: the continuous queries of texts, parsed and checked once, with how each is registered.

This file and the session are the engine's doors to the query languages.

Invariant: a compiled query travels as it is; its text is read again only where a checkpoint holds nothing else.
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
    """The queries of scripts, in their order. The plug-in answers SPARQL alone."""
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
    """The columns of each query, by its name."""
    return {one.registration.name: one.registration.columns for one in queries}


def prefixes_of(queries: Sequence[CompiledQuery]) -> Mapping[str, str]:
    """The prefixes of all queries; where two disagree, the first has it."""
    return {name: iri for one in reversed(queries) for name, iri in one.registration.prefixes}


def recompile(options: QueryOptions) -> Registration:
    """The registration of a query's text, under its name there."""
    for registration in languages.registrations(options.text, file_name=options.file_name):
        if registration.name == options.source_name:
            return registration
    raise EngineError(f"the checkpoint's text has no query `{options.source_name}`")
