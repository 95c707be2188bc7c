"""Sources of streams: files, Kafka, push sources behind a spool, generators. One address, one source."""
