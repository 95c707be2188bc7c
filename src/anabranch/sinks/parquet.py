"""Answers as Parquet: `query=NAME/part-00000012.parquet`, which pyarrow, DuckDB and Spark read as one table a query.

Every row says which answer it belongs to (`number`, `at`, `op`, `correction`, `win_start`, `win_end`) before the
query's own columns, whose types are those of `formats.answer_tables`.

Invariant: the schema of a query's files depends on its columns and the types asked for, never on the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.formats.answer_tables import HEAD, AnswerTables
from anabranch.formats.answers import beside
from anabranch.sinks.base import Ledger, RenderedAnswer, Sink
from anabranch.sinks.parts import PartFiles


class ParquetFolder(Sink):
    """A folder of Parquet files, one folder a query below it. `types` gives columns, in any query, a type."""

    forms = ("typed",)

    def __init__(
        self,
        path: str | Path,
        queries: Mapping[str, Sequence[str]],
        types: Mapping[str, str] | None = None,
        *,
        append: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._parts = PartFiles(path, ".parquet", append=append, overwrite=overwrite)
        self._tables = AnswerTables(queries, types)

    @property
    def path(self) -> Path:
        return self._parts.path

    def open(self, ledger: Ledger) -> None:
        self._parts.open(ledger)

    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        by_query: dict[str, list[RenderedAnswer]] = {}
        for told in answers:
            if told.rows:
                by_query.setdefault(told.query, []).append(told)
        # Every table is made before any file is: a value that does not fit leaves nothing behind.
        tables = {query: self._table(query, some) for query, some in by_query.items()}
        for query, table in tables.items():
            with self._parts.part(batch, f"query={quote(query, safe='')}") as file:
                pq.write_table(table, file)

    def _table(self, query: str, answers: Sequence[RenderedAnswer]) -> Any:
        first, own = self._tables.arrays(query, ((told.number, told.typed) for told in answers))
        fields = [
            *HEAD,
            *(pa.field(shown, own[name].type) for name, shown in zip(own, beside(tuple(own)), strict=True)),
        ]
        return pa.Table.from_arrays([*first, *own.values()], schema=pa.schema(fields))
