"""Spark carries it: the only room that knows pyspark."""
