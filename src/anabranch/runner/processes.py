"""Child processes: finds and ends them without knowing how they were started.

Invariant: it imports no heavy module, and ends only the given processes and their children.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress


def end_processes(numbers: Iterable[int]) -> None:
    """Kill processes and their children."""
    for number in numbers:
        for one in (*children_of(number), number):
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)


def children_of(parent: int) -> list[int]:
    """Return the children of a process; none where the system does not show them."""
    found = []
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", encoding="ascii", errors="replace") as file:
                said = file.read()
        except OSError:
            continue
        if int(said.rpartition(")")[2].split()[1]) == parent:
            found.append(number)
    return found
