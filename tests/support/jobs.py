"""Jobs for tests: queries as texts, sources as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anabranch.engine.compiled import compile_queries
from anabranch.engine.query_options import CompiledQuery, QueryOptions
from anabranch.runner.job import Job
from anabranch.runner.options import RunOptions
from anabranch.sources.base import Decoding, OpenedStream, Source
from anabranch.syntax import languages


def queries_of(text: str, options: QueryOptions | None = None) -> tuple[CompiledQuery, ...]:
    return compile_queries([languages.script(text)], options or QueryOptions())


def job_for(text: str, sources: Mapping[str, Source], **more: object) -> Job:
    """The job of a text over sources; `more` are fields of the job, or options of its run."""
    streams = tuple(OpenedStream(source, Decoding(name), name) for name, source in sources.items())
    return changed(Job(streams, queries_of(text), ordered=True, forms=("json", "typed")), **more)


def changed(job: Job, **more: object) -> Job:
    """A job with other fields, or other options of its run."""
    of_run = {name: more.pop(name) for name in list(more) if name in RunOptions.__dataclass_fields__}
    return replace(job, options=replace(job.options, **of_run), **more)  # type: ignore[arg-type]
