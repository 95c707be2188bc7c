"""The examples: queries, streams and graphs to begin with, one copy of each.

A checkout has them in examples/; a wheel carries the same folder inside of this room.

Invariant: `examples() / "bikes"` is there, however the package was installed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def examples() -> Path:
    """The folder of the examples."""
    packaged = Path(__file__).parent / "examples"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "examples"
