"""Pathway: an incremental dataflow of joins.

The whole stream of changes lies in its input before it starts, with the slide as its time, so that it may work on many
slides at once; what it answers is counted inside, so that no Python stands in the way. Most of such a run is reading
the input, which is an artefact of this connector: a run that reads the same tables and drops their rows is taken off,
and so is the same difference for the first window alone. What remains is the joins' work on the slides; what it is with
the reading of the slides is told as well. Seconds are the processor's, not the clock's: Pathway works on one thread,
and differences between wall clocks would drown in what else a machine does.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pandas as pd
import pathway as pw
from pathway.internals.parse_graph import G

from peers.jobs import Ids, Plan, Slides, column, join_order

VERSION = pw.__version__
_Key = tuple[int, bytes, bytes]
logging.disable(logging.CRITICAL)


def stream(plan: Plan, slides: Slides) -> tuple[float, float]:
    """Seconds of the joins of all slides after the first, and with reading those slides. Where the joins have little to
    do, noise may make the former less than nothing."""
    first = slides.cut(1)
    with_reading = _run(plan, slides, joined=True) - _run(plan, first, joined=True)
    reading = _run(plan, slides, joined=False) - _run(plan, first, joined=False)
    return with_reading - max(reading, 0.0), with_reading


def _run(plan: Plan, slides: Slides, joined: bool) -> float:
    G.clear()
    if joined:
        outputs = [_answers(plan, slides)]
    else:
        # Ids are positive, so nothing is left to count.
        outputs = [table.filter(table.c0 < 0) for table in _read(slides).values()]
    for output in outputs:
        pw.io.null.write(output.reduce(matches=pw.reducers.count()))
    began = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return time.process_time() - began


def answers(plan: Plan, slides: Slides) -> Ids:
    """All matches after the last slide."""
    G.clear()
    alive: dict[tuple[int, ...], int] = {}

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        match = tuple(row[column(one)] for one in range(plan.variables))
        alive[match] = alive.get(match, 0) + (1 if is_addition else -1)

    pw.io.subscribe(_answers(plan, slides), on_change=on_change)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    found = [match for match, weight in alive.items() for _ in range(weight)]
    return np.array(found, np.int64).reshape(len(found), plan.variables)


def _answers(plan: Plan, slides: Slides) -> Any:
    read = _read(slides)
    tables = []
    for columns, changes in zip(plan.columns, slides.rows, strict=True):
        table = read[_key(changes)]
        tables.append(table.select(**{column(one): table[f"c{place}"] for place, one in enumerate(columns)}))
    order = join_order(plan.columns, [len(rows) for rows, _, _ in slides.rows])
    joined, bound = tables[order[0]], list(plan.columns[order[0]])
    for place in order[1:]:
        table, columns = tables[place], plan.columns[place]
        shared = [joined[column(one)] == table[column(one)] for one in columns if one in bound]
        picked = {column(one): joined[column(one)] for one in bound}
        picked.update({column(one): table[column(one)] for one in columns if one not in bound})
        joined = joined.join(table, *shared).select(**picked)
        bound.extend(one for one in columns if one not in bound)
    return joined


def _read(slides: Slides) -> dict[_Key, Any]:
    """A table for each content: patterns that ask for the same rows at the same slides share what is read."""
    found: dict[_Key, Any] = {}
    for changes in slides.rows:
        if _key(changes) not in found:
            found[_key(changes)] = _table(*changes)
    return found


def _key(changes: tuple[Ids, Ids, Ids]) -> _Key:
    rows, weights, numbers = changes
    return rows.shape[1], rows.tobytes(), weights.tobytes() + numbers.tobytes()


def _table(rows: Ids, weights: Ids, numbers: Ids) -> Any:
    names = [f"c{place}" for place in range(rows.shape[1])]
    frame = pd.DataFrame({name: rows[:, place] for place, name in enumerate(names)})
    frame["__time__"] = 2 * numbers + 2  # Pathway's times are even
    frame["__diff__"] = weights
    keys = {name: pw.column_definition(primary_key=True, dtype=int) for name in names}
    return pw.debug.table_from_pandas(frame, schema=pw.schema_builder(keys), _new_universe=True)
