"""The Spark carrier: the only room that imports pyspark."""
