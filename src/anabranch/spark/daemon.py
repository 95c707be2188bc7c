"""The parent of Spark's Python workers: loads the modules that workers need before it forks.

Spark starts one for each kind of worker and names the kind as its argument; only workers that run tasks need kernels,
and the readers among them only few.

Spark's daemon lets each worker collect garbage after every task. Modules loaded before are no garbage, and scanning
them would take longer than many tasks: they are excluded first (`settle`).

Invariant: it adds imports and loaded kernels to Spark's own daemon, and nothing else.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import pyspark.daemon

from anabranch.runner.garbage import settle

_PLANS = {
    "pyspark.sql.worker.create_data_source": ("anabranch.spark.source",),
    "pyspark.sql.worker.plan_data_source_read": ("anabranch.spark.source",),
}
# Spark's own code for Arrow needs pandas.
_READS = ("pyspark.worker", "pandas", "anabranch.spark.source")
_EVALUATES = (*_READS, "anabranch.runner.cell", "anabranch.spark.processor")


def load(kind: str, is_reader: bool) -> None:
    """Load the modules that workers of this kind need."""
    runs_tasks = kind == "pyspark.worker"
    wanted = (_READS if is_reader else _EVALUATES) if runs_tasks else _PLANS.get(kind, ())
    for module in wanted:
        import_module(module)
    if runs_tasks:
        import_module("anabranch.delta.warm").warm(*(("texts", "connectivity") if is_reader else ()))


if __name__ == "__main__":
    load(sys.argv[-1], is_reader="SPARK_SIMPLIFIED_TRACEBACK" in os.environ)  # see `session.properties`
    settle()
    pyspark.daemon.manager()
