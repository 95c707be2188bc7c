"""Records of any shape, as maps: the rows of CSV and Parquet files and the items of JSON lists, for LOAD STREAM.

Invariant: a record is a JSON-like map with its number (from one); files that cannot be read at all raise StreamError.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TextIO

from anabranch.errors import StreamError

_ROWS_PER_BATCH = 4096


def read_csv(
    file: TextIO, names: Sequence[str] | None = None, rows_before: int = 0
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows by names, which are in the first line unless they are given; every value is a text, an empty one is null."""
    for number, row in enumerate(csv.DictReader(file, names), rows_before + 1):
        yield number, {key: value or None for key, value in row.items() if key is not None}


def read_parquet_rows(
    parquet: Any, row_groups: Iterable[int], rows_before: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of some row groups by column name; instants, dates and times become ISO 8601 texts, decimals floats."""
    for batch in parquet.iter_batches(_ROWS_PER_BATCH, row_groups=list(row_groups)):
        yield from read_batch_rows(batch, rows_before)
        rows_before += len(batch)


def read_batch_rows(batch: Any, rows_before: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of an Arrow batch, in the same way."""
    for number, row in enumerate(batch.to_pylist(), rows_before + 1):
        yield number, {key: _json_like(value) for key, value in row.items()}


def _json_like(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {key: _json_like(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_like(item) for item in value]
    return value


def read_json_list(data: bytes) -> Iterator[tuple[int, Any]]:
    """The items of a JSON list: not NDJSON, but what many tools write."""
    try:
        items = json.loads(data)
    except ValueError as error:
        raise StreamError(f"not JSON: {error}") from None
    yield from enumerate(items, 1)
