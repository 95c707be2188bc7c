"""The limits of a server: on requests, on stored data and on responses.

Invariant: every limit that a client can reach has an error code of its own, and reaching it changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.snapshot.context import MAX_STEPS


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits as counts, bytes and seconds. Results are limited per query (`results_kept`) and per session (in
    bytes)."""

    body_bytes: int = 16 << 20
    rows_per_result: int = 10_000
    queries: int = 100
    streams: int = 100
    graphs: int = 100
    sessions: int = 20
    clients: int = 200
    query_text: int = 200_000
    results_kept: int = 1_000
    result_bytes_kept: int = 64 << 20
    client_queue: int = 1_000
    """A client that has been so many results behind for `client_patience` seconds is cut off."""
    client_patience: float = 5.0
    steps: int = MAX_STEPS
    """How many steps one evaluation of a query may need."""
    batch_events: int = 5_000
    """Records per stream and batch: what waits longer than a batch takes is told, and does not make the next longer."""
    insight_events: int = 20_000
    check_seconds: float = 20.0
    """How long reading and planning a text may take."""
    insight_seconds: float = 60.0
