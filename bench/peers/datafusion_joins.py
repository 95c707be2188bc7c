"""DataFusion: SQL over Arrow tables, with the joins written smallest table first."""

from __future__ import annotations

from typing import Any

import datafusion
import numpy as np
import pyarrow as pa

from peers.jobs import Ids, Plan, Window, column, join_order, joined_sql

VERSION = datafusion.__version__


def prepare(plan: Plan, window: Window) -> Any:
    context = datafusion.SessionContext()
    names = []
    for place, (columns, table) in enumerate(zip(plan.columns, window.tables, strict=True)):
        arrays = [pa.array(np.ascontiguousarray(table[:, one])) for one in range(len(columns))]
        batch = pa.RecordBatch.from_arrays(arrays, names=[column(one) for one in columns])
        context.register_record_batches(f"t{place}", [[batch]])
        names.append(f"t{place}")
    order = join_order(plan.columns, [len(table) for table in window.tables])
    return context, joined_sql(plan, names, order)


def evaluate(plan: Plan, prepared: Any) -> Any:
    context, text = prepared
    return context.sql(text).collect()


def rows(plan: Plan, answer: Any) -> Ids:
    if not answer:
        return np.empty((0, plan.variables), np.int64)
    table = pa.Table.from_batches(answer)
    return np.column_stack([table.column(column(one)).to_numpy() for one in range(plan.variables)])
