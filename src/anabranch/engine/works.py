"""The work of a running query's operators, numbered as in its operator graph.

Operator ids: windows, static graphs, operators (flow order), result. A query that is recomputed as a whole has one
operator.

Invariant: the ids of a query change only when its plan does; counters begin again at 0 when its operators are rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from anabranch.algebra.operators import Window
from anabranch.engine.flows import QueryFlow, whole


class OperatorWork(NamedTuple):
    """Changes taken in and given out, rows held now, time and calls of one operator.

    For a window, changes are the events that entered and left, and its readers take these in; for the result,
    `held_rows` are the rows of the last instant.
    """

    id: int
    rows_in: int = 0
    rows_out: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    seconds: float = 0.0
    calls: int = 0


def operator_works(
    windows: Sequence[Window], graphs: Sequence[str], flow: QueryFlow | None, evaluations: int, rows: int
) -> list[OperatorWork]:
    first = len(windows) + len(graphs)
    found = [OperatorWork(number) for number in range(first)]
    if flow is None:
        found.append(OperatorWork(first, held_rows=rows, calls=evaluations))
        found.append(OperatorWork(first + 1, held_rows=rows, calls=evaluations))
        return found
    for number, window in enumerate(windows):
        passed = flow.passed(window)
        if passed is not None:
            changes = passed.came + passed.left
            found[number] = OperatorWork(number, passed.came, changes, passed.stop - passed.first, calls=flow.ticks)
    numbers = {window: number for number, window in enumerate(windows)}
    for place, (spec, work, size) in enumerate(flow.maintained.flow.works()):
        read = {numbers.get(whole(one)) for one in spec.asks() if isinstance(one, Window)}
        came = work.rows_in + sum(found[one].rows_out for one in read if one is not None)
        seconds = work.nanoseconds / 1e9
        found.append(OperatorWork(first + place, came, work.rows_out, size.rows, size.bytes, seconds, work.calls))
    root = found[-1]
    found.append(OperatorWork(len(found), root.rows_out, root.rows_out, rows, calls=evaluations))
    return found
