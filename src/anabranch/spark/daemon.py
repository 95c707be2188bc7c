"""The parent of Spark's Python workers, with everything that a worker needs loaded before it forks.

Invariant: it adds imports to Spark's own daemon, and nothing else.
"""

from __future__ import annotations

import pyspark.daemon

import anabranch.spark.cell
import anabranch.spark.processor
import anabranch.spark.source  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
