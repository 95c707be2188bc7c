"""Listing 5 of the Seraph paper over generated rides: on changes beside the plain evaluator, twelve slides per window.

Trails of three relationships and more through stations that everybody uses: what keeps them few is that all rides of a
trail are one user's, which both ways know while they walk (`push_into_trails`). The plain evaluator has a part of the
stream; the ratio is of the same part.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from anabranch.demos.synthetic import Bikes, EventClock
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.session import Session
from anabranch.model.event import Event

QUERY = Path(__file__).parent.parent / "examples" / "bikes" / "student_trick.seraph"
START = 1_665_758_700_000_000  # 2022-10-14T14:45
SECOND = 1_000_000
PUSHED = 200  # rides per push


def run(smoke: bool = False) -> dict[str, Any]:
    rides, part, users = (600, 300, 50) if smoke else (100_000, 6_000, 900)
    events = list(Bikes(7, EventClock(START, SECOND), {"users": str(users)}).events(0, rides))
    text = QUERY.read_text(encoding="utf-8")
    answered(text, events[:200], EvaluationOptions())  # loads the kernels
    whole, found = answered(text, events, EvaluationOptions())
    ours, rows = answered(text, events[:part], EvaluationOptions())
    anew, same = answered(text, events[:part], EvaluationOptions(force="recompute"))
    if rows != same:
        raise AssertionError("the two ways tell different answers")
    print(
        f"listing 5: {rides / whole:,.0f} rides/s over {rides:,} rides, {len(found):,} rows; over {part:,} rides "
        f"{ours:.2f} s beside {anew:.1f} s of the plain evaluator: {anew / ours:.0f} times faster"
    )
    return {
        "rides": rides,
        "users": users,
        "seconds": round(whole, 2),
        "rides_per_second": round(rides / whole),
        "rows": len(found),
        "part": part,
        "part_seconds": round(ours, 3),
        "part_seconds_recomputed": round(anew, 2),
        "ratio": round(anew / ours, 1),
    }


def answered(text: str, events: list[Event], evaluation: EvaluationOptions) -> tuple[float, list[object]]:
    session = Session.local(evaluation=evaluation)
    query = session.register(text)
    rows: list[object] = []
    began = time.perf_counter()
    for first in range(0, len(events), PUSHED):
        session.push("rides", events[first : first + PUSHED])
        rows += [(answer.at, row) for answer in query.poll() for row in answer.rows]
    session.finish()
    rows += [(answer.at, row) for answer in query.poll() for row in answer.rows]
    return time.perf_counter() - began, rows
