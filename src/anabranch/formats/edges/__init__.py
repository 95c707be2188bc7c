"""Tables of edges: CSV, NDJSON or Parquet files with two columns of vertices and one of times, read in blocks."""
