"""The common part of generators: their clock, their settings, and random choices without state.

Random choices are hashes (splitmix64) of the seed and of what is chosen, computed for a whole range of events at once.

Invariant: a choice depends on its arguments alone, on every machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from anabranch.errors import StreamError
from anabranch.model.event import Event

DrawnNumbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class Generator(ABC):
    """One kind of stream. `options` are its settings, each with its meaning and its default."""

    options: ClassVar[Mapping[str, str]]
    step: ClassVar[str] = "PT1S"
    """The time between two events, unless it is set."""

    @abstractmethod
    def events(self, first: int, stop: int) -> Iterator[Event]:
        """The events with the numbers from `first` to before `stop`."""


@dataclass(frozen=True, slots=True)
class EventClock:
    """When event number i happens."""

    start: int
    step: int

    def times(self, numbers: DrawnNumbers) -> DrawnNumbers:
        return self.start + numbers * self.step


def chosen(among: int, seed: int, purpose: int, *parts: DrawnNumbers) -> DrawnNumbers:
    """A number below `among` for each row of parts: a hash, which needs no state and is alike on every machine."""
    with np.errstate(over="ignore"):
        mixed = _mix(np.full(len(parts[0]), seed & (2**64 - 1), np.uint64) + np.uint64(purpose))
        for part in parts:
            mixed = _mix(mixed ^ part.astype(np.uint64))
    numbers: DrawnNumbers = (mixed >> np.uint64(1)).astype(np.int64) % among
    return numbers


def _mix(value: Any) -> Any:
    """The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 16)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def whole(options: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise StreamError(f"{name}={text}: a whole number is expected") from None
    if not least <= value <= most:
        raise StreamError(f"{name}={text}: it goes from {least} to {most}")
    return value


def number(options: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = options.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        raise StreamError(f"{name}={text}: a number is expected") from None
    if not least <= value <= most:
        raise StreamError(f"{name}={text}: it goes from {least:g} to {most:g}")
    return value
