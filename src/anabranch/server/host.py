"""The host of sessions: the things that all sessions of a server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anabranch.engine.timing import AheadBound, StreamTiming
from anabranch.server.carrying import SharedSpark
from anabranch.server.catalogue import Catalogue
from anabranch.server.checking import Workers
from anabranch.server.limits import Limits
from anabranch.sources.reach import ANYWHERE, Reach

DEFAULT_TIMING = StreamTiming(30_000_000, ahead=AheadBound())


@dataclass(frozen=True, slots=True)
class SessionHost:
    """The catalogue, limits and workers of a server, its Spark, and its defaults. `clients` adds to the number of
    clients, and returns False when one more is too many."""

    catalogue: Catalogue
    limits: Limits
    workers: Workers
    spark: SharedSpark | None
    timing: StreamTiming = DEFAULT_TIMING
    reach: Reach = ANYWHERE
    clients: Callable[[int], bool] = lambda change: True
