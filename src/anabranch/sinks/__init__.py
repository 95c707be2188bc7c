"""Where answers go: files, tables, Kafka, webhooks."""
