"""The examples: queries, streams and graphs to begin with, one copy of each.

A checkout has them in examples/; a wheel carries the same folder as anabranch/demos.

Invariant: `examples() / "bikes"` is there, however the package was installed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def examples() -> Path:
    """The folder of the examples."""
    packaged = _PACKAGE / "demos"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "examples"
