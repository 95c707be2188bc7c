"""A continuous query between two frames of Spark: events in, answers out, joined with a table of the user's own.

spark-submit examples/bikes/frames.py, or with an own session: answers(spark, folder_of_events).
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from anabranch.spark import query

HERE = Path(__file__).parent


def answers(spark: SparkSession, events: str) -> DataFrame:
    """The student trick over a folder of events, one JSON text a line, with the names of the stations."""
    rides = spark.readStream.text(events)
    found = query(
        (HERE / "student_trick.seraph").read_text(),
        {"rides": rides},
        types={"r.user_id": "int64", "s.id": "int64"},
    )
    stations = spark.createDataFrame([(1, "Main Square"), (2, "Old Harbour")], "id long, station string")
    return found.join(stations, found["`s.id`"] == stations["id"]).selectExpr(
        "at", "`r.user_id` AS user", "station", "hops"
    )


if __name__ == "__main__":
    session = (
        SparkSession.builder.config("spark.sql.shuffle.partitions", "2")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    told = answers(session, sys.argv[1] if len(sys.argv) > 1 else str(HERE / "events*.ndjson"))
    told.writeStream.format("console").option("truncate", False).trigger(availableNow=True).start().awaitTermination()
