"""Sinks of answers: files, tables, Kafka, webhooks."""
