"""Garbage collection in a process that holds windows: collections look at new objects only.

Python's full collections look at every object, so that a large window holds a slide up for as long as it takes to look
at all of it. Windows hold no garbage: an object that leaves them is freed at once, by its count of references. So
between two batches all living objects are put out of the collector's sight (`gc.freeze`), after a look at the young
ones. Reference cycles among older objects, such as an engine that was replaced, are found when the memory in use has
doubled, or on request.

These settings hold for the whole process. The carrier of a run, Spark's workers and the commands apply them; a
`Session` does not: it is a guest in its process, and leaves the choice to the program.

Invariant: after the last `quiet_collector` has ended, the collector sees every object again.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GROWTH = 2  # the memory in use since the last whole collection at which there is another one
_OBJECTS = 500_000  # new objects between two collections: more than a command loads, of which nothing is garbage
_YOUNG = 1  # the generation of objects that few collections have looked at
_lock = threading.Lock()
_users = 0
_blocks = 0  # of memory after the last whole collection


def collect_seldom() -> None:
    """Let more objects come between two collections, and collect nothing at the end. For the beginning of a process of
    our own, which loads many modules: the system takes its memory back."""
    gc.set_threshold(_OBJECTS, 20, 20)
    atexit.register(gc.freeze)


def settle(whole: bool = False) -> None:
    """Collect what came since the last time, or the `whole` memory, and put what is alive out of the collector's sight.

    To be called where nothing is half done: between two batches or slides.
    """
    global _blocks
    if whole or sys.getallocatedblocks() > _GROWTH * _blocks:
        gc.unfreeze()
        gc.collect()
        _blocks = sys.getallocatedblocks()
    else:
        gc.collect(_YOUNG)
    gc.freeze()


@contextmanager
def quiet_collector() -> Iterator[Callable[[], None]]:
    """Keep collections short while windows are held; yields `settle`, to be called between two batches or slides."""
    global _users, _blocks
    with _lock:
        _users += 1
        if _users == 1:
            # What the process has loaded is hardly garbage: to look at it would take longer than many a run.
            gc.freeze()
            _blocks = sys.getallocatedblocks()
        else:
            settle(whole=True)  # an engine before this one may have left its cycles
    try:
        yield settle
    finally:
        with _lock:
            _users -= 1
            if not _users:
                gc.unfreeze()
