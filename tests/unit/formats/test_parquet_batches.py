"""Batches of Parquet files take the memory of their values, and lose nothing by it."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.formats.parquet import event_batches, opened_parquet

ROWS = [{"at": second, "nodes": [{"id": second, "labels": ["N"]}]} for second in range(100)]
NODES = pa.list_(pa.struct([("id", pa.int64()), ("labels", pa.list_(pa.string()))]))
PLAIN = pa.schema([("at", pa.int64()), ("nodes", NODES)])
CODES = pa.schema([("at", pa.dictionary(pa.int32(), pa.string())), ("nodes", NODES)])


@pytest.mark.parametrize("schema", [PLAIN, CODES])
def test_a_batch_has_the_rows_of_its_file(schema: pa.Schema) -> None:
    as_text = schema.field("at").type != pa.int64()
    rows = [{**row, "at": f"2024-01-01T00:00:{row['at'] % 60:02}Z"} for row in ROWS] if as_text else ROWS
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    with opened_parquet(file) as parquet:
        found = [row for batch in event_batches(parquet) for row in batch.to_pylist()]
    assert found == rows


def test_the_buffers_of_a_batch_are_filled() -> None:
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS * 100, schema=PLAIN), file)
    with opened_parquet(file) as parquet:
        for batch in event_batches(parquet):
            assert batch.get_total_buffer_size() <= 1.1 * batch.nbytes
