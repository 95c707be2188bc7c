"""A sink takes the answers of one batch after the other.

A batch that was written but not committed comes again after a crash, with the same number and the same answers; a sink
produces its output only once: files and tables go back to where the batch before ended, other sinks send keys by which
a receiver can recognise what it has already.

Invariant: `write` of the same batch, any number of times, cut off anywhere, leaves what one undisturbed write leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

AnswerForm = Literal["json", "csv", "typed"]


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """One answer as it comes out of the engine's worker, rendered there in the forms that the sinks need.

    `number` counts the answers of a query from zero: (query, number) names an answer for ever. `rows` is the number of
    its rows. `json` is one line per row as `--output json` prints it; `csv` the same for CSV, without a header; `typed`
    is `formats.answers.to_typed` of the answer.
    """

    query: str
    number: int
    at: int
    rows: int
    json: bytes = b""
    csv: bytes = b""
    typed: bytes = b""


class Ledger(Protocol):
    """The memory of a sink between runs: small JSON values that are safe on disk when `put` returns."""

    def get(self, key: str) -> object: ...

    def put(self, key: str, value: object) -> None: ...


class Sink(ABC):
    forms: tuple[AnswerForm, ...] = ("json",)

    def open(self, ledger: Ledger) -> None:  # noqa: B027  a sink need not remember anything
        """Open the sink, once before the first write of a run."""

    @abstractmethod
    def write(self, batch: int, answers: Sequence[RenderedAnswer]) -> None:
        """Write the answers of a batch, in their order. Batches come in order; the last one may come again."""

    def close(self) -> None:  # noqa: B027  nor hold anything open
        """Close the sink at the end of the run, however it ended."""
