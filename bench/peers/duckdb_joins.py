"""DuckDB: SQL over tables of its own in memory; the joins' order is its optimizer's."""

from __future__ import annotations

from itertools import count
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from peers.jobs import Ids, Plan, Window, column, join_order, joined_sql

VERSION = duckdb.__version__
_connection = duckdb.connect()
_numbers = count()


def prepare(plan: Plan, window: Window) -> Any:
    names = []
    for columns, table in zip(plan.columns, window.tables, strict=True):
        name = f"t{next(_numbers)}"
        given = pa.table({column(one): table[:, place] for place, one in enumerate(columns)})
        _connection.register("given", given)
        _connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        _connection.unregister("given")
        names.append(name)
    order = join_order(plan.columns, [len(table) for table in window.tables])
    return names, joined_sql(plan, names, order)


def evaluate(plan: Plan, prepared: Any) -> Any:
    return _connection.sql(prepared[1]).to_arrow_table()


def rows(plan: Plan, answer: Any) -> Ids:
    return np.column_stack([answer.column(column(one)).to_numpy() for one in range(plan.variables)])


def drop(prepared: Any) -> None:
    for name in prepared[0]:
        _connection.execute(f"DROP TABLE {name}")
