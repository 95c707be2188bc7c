"""The parent of Spark's Python workers, with what its workers need loaded before it forks.

Spark starts one for each kind of worker and names the kind as its argument; only those that run tasks need the engine.

Spark's daemon lets each worker collect garbage after every task. What was loaded before is no garbage, and to look at
it all would take longer than many a task: it is put aside first.

Invariant: it adds imports and loaded kernels to Spark's own daemon, and nothing else.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import pyspark.daemon

_NEEDED = {
    # Spark's own code for Arrow needs pandas.
    "pyspark.worker": (
        "pyspark.worker",
        "pandas",
        "anabranch.spark.cell",
        "anabranch.spark.processor",
        "anabranch.spark.source",
    ),
    "pyspark.sql.worker.create_data_source": ("anabranch.spark.source",),
    "pyspark.sql.worker.plan_data_source_read": ("anabranch.spark.source",),
}

if __name__ == "__main__":
    for module in _NEEDED.get(sys.argv[-1], ()):
        import_module(module)
    if sys.argv[-1] == "pyspark.worker":
        import_module("anabranch.delta.warm").warm()
    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
