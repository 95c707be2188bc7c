"""The settings of a job's one source, for the process that plans batches and for those that read them.

Spark starts a Python process for each of the two, so this file does not import what only reading needs.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.engine.timing import StreamTiming
from anabranch.planner.link_streams import LinkStream
from anabranch.runner.refreshing import RefreshSettings
from anabranch.sources.base import Limit, OpenedStream

OPTION = "job.secret"
"""The option of Spark's source that holds the settings. Spark shows no option whose name says that it is secret: the
settings hold addresses with their passwords."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The part of a job that the source needs."""

    streams: tuple[OpenedStream, ...]
    queries: str
    limit: Limit
    timings: Mapping[str, StreamTiming]
    refresh: RefreshSettings | None = None
    tasks: int = 8
    """How many tasks a batch is read by at most: each costs a tenth of a second, whatever it reads."""
    links: Mapping[str, LinkStream] = field(default_factory=dict)
    """The streams that travel as links."""
    clocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def to_option(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_option(text: str) -> SourceSettings:
        settings = pickle.loads(base64.b64decode(text))
        assert isinstance(settings, SourceSettings)
        return settings
