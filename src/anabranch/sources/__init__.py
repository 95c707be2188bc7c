"""Where streams come from: files, Kafka, push sources behind a spool, generators. One address, one source."""
