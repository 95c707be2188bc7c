"""polars: joins of data frames one after the other, smallest table first; what only filters is a semi-join."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from peers.jobs import Ids, Plan, Window, column, join_order

VERSION = pl.__version__


def prepare(plan: Plan, window: Window) -> Any:
    frames = [
        pl.DataFrame({column(one): table[:, place] for place, one in enumerate(columns)})
        for columns, table in zip(plan.columns, window.tables, strict=True)
    ]
    return frames, join_order(plan.columns, [len(table) for table in window.tables])


def evaluate(plan: Plan, prepared: Any) -> Any:
    frames, order = prepared
    bound = set(plan.columns[order[0]])
    joined = frames[order[0]]
    for place in order[1:]:
        shared = [column(one) for one in plan.columns[place] if one in bound]
        how: Any = "semi" if bound.issuperset(plan.columns[place]) else "inner"
        joined = joined.join(frames[place], on=shared, how=how)
        bound.update(plan.columns[place])
    return joined


def rows(plan: Plan, answer: Any) -> Ids:
    return np.column_stack([answer[column(one)].to_numpy() for one in range(plan.variables)])
