"""The state of a cell in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class MemoryState:
    """A cell's state that lives as long as its process, as a store would keep it."""

    durable: bool = True
    the_head: bytes | None = None
    the_chunks: dict[int, bytes] = field(default_factory=dict)
    the_parts: dict[str, bytes] = field(default_factory=dict)

    def head(self) -> bytes | None:
        return self.the_head

    def put_head(self, data: bytes) -> None:
        self.the_head = data

    def chunk(self, number: int) -> bytes | None:
        return self.the_chunks.get(number)

    def chunks(self) -> Iterable[tuple[int, bytes]]:
        return list(self.the_chunks.items())

    def put_chunk(self, number: int, data: bytes) -> None:
        self.the_chunks[number] = data

    def remove_chunk(self, number: int) -> None:
        self.the_chunks.pop(number, None)

    def parts(self) -> Iterable[tuple[str, bytes]]:
        return list(self.the_parts.items())

    def put_part(self, name: str, data: bytes) -> None:
        self.the_parts[name] = data

    def remove_part(self, name: str) -> None:
        self.the_parts.pop(name, None)
