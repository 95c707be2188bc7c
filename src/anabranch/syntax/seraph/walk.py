"""Walk over a syntax tree, whatever its nodes are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def walk_tree(part: Any) -> Iterator[Any]:
    """The part and everything below it, outside in."""
    pending = [part]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(reversed(current))
        elif is_dataclass(current) and not isinstance(current, type):
            yield current
            pending.extend(getattr(current, field.name) for field in reversed(fields(current)) if field.name != "span")
