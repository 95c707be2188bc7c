"""Bytes and JSON to the model and back: events, NDJSON, Parquet, dead letters, values, tables. Knows no engine."""
