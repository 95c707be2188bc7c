"""The Spark carrier, and queries over Spark's data frames: the only room that imports pyspark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.spark.frames import query as query

__all__ = ["query"]


def __getattr__(name: str) -> Any:  # workers that only read need no engine
    if name == "query":
        from anabranch.spark.frames import query

        return query
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
